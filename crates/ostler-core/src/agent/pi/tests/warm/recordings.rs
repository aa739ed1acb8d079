//! Every recorded conversation with the real CLI, played again.
//!
//! What the recording client sent becomes the order that would make the dialect
//! send it. The dialect's commands have ids of its own, so that an answer goes
//! to its oldest command of the same kind; answers to commands that it never
//! gives are left as they are.

use std::{fmt::Write as _, fs, path::Path};

use super::*;

/// Returns the id that would be asked for by somebody who knows this file.
fn id_in(path: &str) -> &str {
    let name = path.rsplit(['/', '_']).next().unwrap();
    match name.strip_suffix(".jsonl").unwrap() {
        // The recording client wrote this one by hand.
        "hand-made" => "hand-made-1",
        id => id,
    }
}

struct Player<'a> {
    started: Started<'a>,
    process: Process,
    n_turns: u32,
    /// The session that the recording client goes to.
    moving: Option<Value>,
    /// The newest timer, and when it rings.
    armed: Option<(TimerKey, f64)>,
    now: f64,
    text: String,
}

impl Player<'_> {
    /// Rings the timer that would have rung by then, and notes the time.
    fn wait_until(&mut self, second: f64) {
        if let Some((timer, _)) = self.armed.take_if(|(_, due)| *due < second) {
            let actions = self.process.step(Input::Timer(timer));
            self.note("ring", &actions);
        }
        self.now = second;
    }

    fn note(&mut self, words: &str, actions: &[Action]) {
        for action in actions {
            if let Action::Arm { timer, after } = action {
                self.armed = Some((*timer, self.now + after.as_secs_f64()));
            }
        }
        if !words.is_empty() {
            writeln!(self.text, "# {words}").unwrap();
        }
        self.text.push_str(&play::transcript(actions));
    }

    fn is_running(&self) -> bool {
        let n_ended = ends(&self.process.actions).len();
        usize::try_from(self.n_turns).unwrap() > n_ended
    }

    /// Starts a process; one that was recorded without being asked for its state
    /// is answered for.
    fn start(&mut self, is_asked: bool) {
        self.process = Process::new(&self.started);
        self.n_turns = 0;
        let actions = self.process.order(Order::Start);
        self.note("start", &actions);
        if !is_asked {
            let actions = self.process.reply("get_state", &state("not-recorded"));
            self.note("state", &actions);
            if self.moving.is_none() {
                self.open(&Open::New);
            }
        }
    }

    fn open(&mut self, open: &Open) {
        let actions = self.process.order_open(open);
        let words = match open {
            Open::New => "open a new session".to_owned(),
            Open::Resume(memo) => format!("open {}", memo.id),
        };
        self.note(&words, &actions);
    }

    fn sent(&mut self, message: &Value) {
        let is_running = self.is_running();
        let turn = self.n_turns.saturating_sub(1);
        let text = message["message"].as_str().unwrap_or_default();
        let kind = message["type"].as_str().unwrap();
        match kind {
            "prompt" if !is_running => {
                let actions = self.process.prompt(self.n_turns, text);
                self.n_turns += 1;
                self.note(&format!("prompt {text:?}"), &actions);
            }
            "abort" if is_running => {
                let actions = self.process.cancel(turn);
                self.note("cancel", &actions);
            }
            "steer" if is_running => {
                let actions = self.process.order(Order::Steer { turn: TurnKey(turn), text });
                self.note(&format!("steer {text:?}"), &actions);
            }
            "extension_ui_response" => {
                let request = message["id"].as_str().unwrap();
                let ruling = match message["value"].as_str() {
                    Some(text) => Ruling::Allow { text: Some(text.to_owned()) },
                    None => Ruling::Deny { why: "cancelled".to_owned() },
                };
                let order = Order::Answer { turn: TurnKey(turn), request, ruling: &ruling };
                let actions = self.process.order(order);
                self.note("answer", &actions);
            }
            "new_session" | "switch_session" => self.moving = Some(message.clone()),
            "get_state" => {}
            other => self.note(&format!("the recording client sent {other}"), &[]),
        }
    }

    fn received(&mut self, message: &Value) {
        let mut line = message.clone();
        let command = line["command"].as_str().unwrap_or_default().to_owned();
        if line["type"] == "response" {
            if self.moving.as_ref().is_some_and(|asked| asked["id"] == line["id"]) {
                self.go();
            }
            if let Some(asked) = self.process.take_command(&command) {
                line["id"] = asked["id"].clone();
            }
        }
        let actions = self.process.say(&line);
        self.note("", &actions);
        if actions.iter().any(|action| matches!(action, Action::Ready)) {
            self.open(&Open::New);
        }
    }

    /// Another process goes to the session, for one of ours does that once.
    fn go(&mut self) {
        let moving = self.moving.clone().unwrap();
        let open = match moving["sessionPath"].as_str() {
            None => {
                self.started.open = resume("not-recorded");
                Open::New
            }
            Some(path) => {
                self.started.open = Open::New;
                let mut memo = Memo::of_id("pi", id_in(path));
                memo.file = Some(path.into());
                Open::Resume(Box::new(memo))
            }
        };
        self.start(false);
        self.moving = None;
        self.open(&open);
    }
}

fn play_conversation(path: &Path) -> String {
    let version = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
    let recorded = fs::read_to_string(path).unwrap();
    let lines: Vec<Value> =
        recorded.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut started = Started { version: Some(version), ..Started::default() };
    // All of them were made with everything allowed, and some with extensions.
    started.options.permissions = crate::request::Permissions::Bypass;
    started.options.prompt_commands = crate::request::PromptCommands::On;
    if lines[0]["argv"].as_str().unwrap().contains("--no-session") {
        started.options.extra_args.push("--no-session".to_owned());
    }
    let process = Process::new(&started);
    let mut player = Player {
        started,
        process,
        n_turns: 0,
        moving: None,
        armed: None,
        now: 0.0,
        text: String::new(),
    };
    player.start(lines[1]["msg"]["type"] == "get_state");
    let mut code = 143;
    for line in &lines[1..] {
        player.wait_until(line["t"].as_f64().unwrap());
        match line["dir"].as_str().unwrap() {
            "client->pi" if line.get("raw").is_some() => {
                player.note("the recording client sent something else", &[]);
            }
            "client->pi" => player.sent(&line["msg"]),
            "pi->client" => player.received(&line["msg"]),
            "note" => {
                for text in line["stderr"].as_str().into_iter().flat_map(str::lines) {
                    let bytes = text.as_bytes();
                    let input = Input::Line { from: Stream::Stderr, bytes, cut: false };
                    let actions = player.process.step(input);
                    player.note("", &actions);
                }
                if let Some(exit) = line["exit"].as_i64() {
                    code = i32::try_from(exit).unwrap();
                }
            }
            other => panic!("direction {other}"),
        }
    }
    let actions = player.process.exit(&exit(code, ""));
    player.note(&format!("exit {code}"), &actions);
    player.text
}

#[test]
fn every_recorded_conversation_reads_as_its_snapshot() {
    insta::with_settings!({snapshot_path => "../../snapshots", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::glob!("../../../../../../../fixtures/pi", "*/warm-*.jsonl", |path| {
            insta::assert_snapshot!("conversation", play_conversation(path));
        });
    });
}
