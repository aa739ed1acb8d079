//! Every recorded conversation with the real server, and what came of it.
//!
//! The client's lines become the orders that lead to them, so that our own
//! requests stand where those of the recording client stood.

use std::{collections::BTreeMap, fs, path::Path};

use super::{server::Codex, *};
use crate::{
    agent::{Order, SessionKey, play},
    permission::{Answer, Decision},
    protocol::testing::Side,
};

/// Who says a line of a transcript.
enum Line {
    Client(Value),
    Server(Value),
    Note,
}

fn read(path: &Path) -> Vec<Line> {
    let text = fs::read_to_string(path).unwrap();
    let line = |line: &str| {
        let mut entry: Value = serde_json::from_str(line).unwrap();
        let message = entry["msg"].take();
        match entry["dir"].as_str().unwrap() {
            "client->server" => Line::Client(message),
            "server->client" => Line::Server(message),
            "note" => Line::Note,
            other => panic!("who is {other}?"),
        }
    };
    text.lines().map(line).collect()
}

/// Plays a transcript.
struct Player {
    talk: Talk,
    /// Our number for each number of the recording client's requests.
    numbers: BTreeMap<u64, Value>,
    /// The threads in the order of their sessions.
    threads: Vec<(SessionKey, Option<String>)>,
    /// Our name for each turn.
    turns: BTreeMap<String, TurnKey>,
    n_sessions: u32,
    n_turns: u32,
}

impl Player {
    fn client(&mut self, message: &Value) {
        let before = self.talk.actions.len();
        let params = &message["params"];
        match message["method"].as_str() {
            Some("initialize") => {
                self.talk.order(Order::Start);
            }
            Some("thread/start") => self.open(&Open::New, params),
            Some("thread/resume") => {
                let id = params["threadId"].as_str().unwrap();
                self.open(&Open::Resume(Box::new(Memo::of_id("codex", id))), params);
            }
            Some("turn/start") => {
                self.wait();
                let session = self.session(params).unwrap();
                let turn = TurnKey(self.n_turns);
                self.n_turns += 1;
                let prompt = params["input"][0]["text"].as_str().unwrap();
                let mut options = recorded_options(&self.opened_with(session));
                options.model = params["model"].as_str().map(str::to_owned);
                self.talk.order(Order::Prompt { session, turn, prompt, options: &options });
            }
            Some("turn/steer") => {
                let turn = TurnKey(self.n_turns - 1);
                let text = params["input"][0]["text"].as_str().unwrap();
                self.talk.order(Order::Steer { turn, text });
            }
            Some("turn/interrupt") => {
                let turn = self.turns[params["turnId"].as_str().unwrap()];
                self.talk.cancel(turn);
            }
            Some("thread/unsubscribe") => {
                let session = self.session(params).unwrap();
                self.threads.retain(|(known, _)| *known != session);
                self.talk.order(Order::Close { session });
            }
            // Written by itself, or not at all.
            Some(
                "initialized" | "thread/backgroundTerminals/clean" | "model/list" | "thread/list",
            ) => {}
            Some(other) => panic!("what order leads to {other}?"),
            None => self.decide(message),
        }
        if let (Some(number), Some(method)) = (message["id"].as_u64(), message["method"].as_str()) {
            let ours = written(&self.talk.actions[before..]);
            let ours = ours.into_iter().find(|ours| ours["method"] == method);
            if let Some(ours) = ours {
                self.numbers.insert(number, ours["id"].clone());
            }
        }
    }

    /// Lets the time pass that a turn waits for what it left behind, where the
    /// recording client did not clean up.
    fn wait(&mut self) {
        let is_end = |action: &Action| matches!(action, Action::EndTurn { .. });
        let n_ends = self.talk.actions.iter().filter(|action| is_end(action)).count();
        if n_ends < self.n_turns as usize {
            self.talk.ring();
        }
    }

    fn open(&mut self, open: &Open, params: &Value) {
        self.wait();
        let session = SessionKey(self.n_sessions);
        self.n_sessions += 1;
        self.threads.push((session, open.memo().map(|memo| memo.id.clone())));
        let options = recorded_options(params);
        self.talk.open_session(session, open, &options);
    }

    fn decide(&mut self, message: &Value) {
        let request = message["id"].to_string();
        let decision = match message["result"]["decision"].as_str().unwrap() {
            "accept" => Decision::Allow,
            // We never say `cancel`; what the server did then is told all the same.
            "decline" | "cancel" => Decision::Deny,
            other => panic!("what is {other}?"),
        };
        let turn = TurnKey(self.n_turns - 1);
        self.talk.decide(turn, &request, &Answer::new(decision).ruling());
    }

    fn server(&mut self, message: &Value) {
        let mut message = message.clone();
        if message.get("method").is_none() {
            let number = message["id"].as_u64().unwrap();
            // Replies to what only the recording client asked are nobody's.
            message["id"] = self.numbers.remove(&number).unwrap_or(json!(1_000_000 + number));
            if let Some(id) = message["result"]["thread"]["id"].as_str()
                && let Some((_, thread)) = self.threads.iter_mut().find(|(_, id)| id.is_none())
            {
                *thread = Some(id.to_owned());
            }
        }
        if let Some(id) = message["result"]["turn"]["id"].as_str() {
            self.turns.insert(id.to_owned(), TurnKey(self.n_turns - 1));
        }
        if message["result"]["thread"].is_object() {
            self.hold_to_what_we_ask(&mut message);
        }
        let before = self.talk.actions.len();
        self.talk.say(&message);
        // Not every recording client cleaned up.
        for ours in written(&self.talk.actions[before..]) {
            if ours["method"] == "thread/backgroundTerminals/clean" {
                self.talk.say(&json!({ "id": ours["id"], "result": {} }));
            }
        }
    }

    /// The recording clients opened threads with a policy and a sandbox that go
    /// together in none of our permissions.
    fn hold_to_what_we_ask(&self, message: &mut Value) {
        let asked = self.talk.written().into_iter().find(|ours| ours["id"] == message["id"]);
        if let Some(asked) = asked {
            let result = message["result"].as_object_mut().unwrap();
            result.remove("sandbox");
            message["result"] = Codex::complete(message["result"].take(), &asked);
        }
    }

    fn session(&self, params: &Value) -> Option<SessionKey> {
        let thread = params["threadId"].as_str()?;
        let mut known = self.threads.iter();
        known.find(|(_, id)| id.as_deref() == Some(thread)).map(|(session, _)| *session)
    }

    /// What the session's thread was opened with.
    fn opened_with(&self, session: SessionKey) -> Value {
        let mut opened = self.talk.written().into_iter().filter(|message| {
            matches!(message["method"].as_str(), Some("thread/start" | "thread/resume"))
        });
        opened.nth(session.0 as usize).unwrap()["params"].take()
    }
}

fn permissions(params: &Value) -> Permissions {
    match (params["approvalPolicy"].as_str(), params["sandbox"].as_str()) {
        (Some("never"), Some("read-only")) => Permissions::ReadOnly,
        (Some("never"), _) => Permissions::Bypass,
        _ => Permissions::Ask,
    }
}

fn recorded_options(params: &Value) -> Options {
    let mut options = options();
    options.permissions = permissions(params);
    options.system_prompt = params["developerInstructions"].as_str().map(str::to_owned);
    options.cwd = params["cwd"].as_str().unwrap().into();
    options
}

#[test]
fn every_transcript_reads_as_its_snapshot_and_ends_every_turn_once() {
    insta::with_settings!({snapshot_path => "../../snapshots", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::glob!("../../../../../../../fixtures/codex", "*/warm-*.jsonl", |path| {
            let mut player = Player {
                talk: Talk::new(),
                numbers: BTreeMap::new(),
                threads: Vec::new(),
                turns: BTreeMap::new(),
                n_sessions: 0,
                n_turns: 0,
            };
            for line in read(path) {
                match line {
                    Line::Client(message) => player.client(&message),
                    Line::Server(message) => player.server(&message),
                    Line::Note => {}
                }
            }
            for turn in 0..player.n_turns {
                end_of(&player.talk.actions, TurnKey(turn));
            }
            insta::assert_snapshot!("warm", play::transcript(&player.talk.actions));
        });
    });
}
