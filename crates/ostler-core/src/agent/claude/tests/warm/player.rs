//! Plays a recorded conversation with a kept process: gives the orders where
//! the client's lines stand, and feeds the agent's.
//!
//! The client that was recorded chose other ids than the dialect does, so its
//! ids are replaced by the dialect's in what the agent said. What a client can
//! do and the dialect never does is left out, and written down.

use std::{collections::VecDeque, fmt::Write as _, fs, path::Path};

use super::*;
use crate::event::Stream;

pub(super) struct Player {
    talk: Talk,
    entries: VecDeque<Value>,
    /// The client's ids and the dialect's for the same things.
    ids: Vec<(String, String)>,
    /// Our requests that no line of the client's was found for.
    requests: Vec<(String, String)>,
    /// The client's id of the prompt that was ordered and not written yet.
    ordered: Option<String>,
    /// Prompts that wait for the end of a turn.
    waiting: VecDeque<Value>,
    n_prompts: u32,
    active: Option<u32>,
    stderr: String,
    pub(super) notes: String,
}

impl Player {
    /// Plays a file of `{dir, t, msg}` lines to its end.
    pub(super) fn play(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let mut entries: VecDeque<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let argv = entries.pop_front().expect("it begins with the arguments");
        let argv: Vec<&str> =
            argv["argv"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let resumed = argv.iter().position(|arg| *arg == "--resume").map(|at| argv[at + 1]);
        let open = resumed.map_or(Open::New, resume);
        let initializes = |entry: &Value| entry["msg"]["request"]["subtype"] == "initialize";
        let is_first = entries.front().is_some_and(initializes);
        let mut player = Self {
            talk: Talk::start(options(), &open),
            entries,
            ids: Vec::new(),
            requests: Vec::new(),
            ordered: None,
            waiting: VecDeque::new(),
            n_prompts: 0,
            active: None,
            stderr: String::new(),
            notes: String::new(),
        };
        let started = player.talk.actions.clone();
        player.note(&started);
        if !is_first {
            player.notes.push_str("(the client did not initialize; confirmed here)\n");
            let out = player.talk.confirm("initialize");
            player.note(&out);
        }
        while let Some(entry) = player.entries.pop_front() {
            player.entry(&entry, &open);
        }
        player
    }

    pub(super) fn actions(&self) -> &[Action] {
        &self.talk.actions
    }

    pub(super) fn n_prompts(&self) -> u32 {
        self.n_prompts
    }

    fn entry(&mut self, entry: &Value, open: &Open) {
        let msg = &entry["msg"];
        match entry["dir"].as_str().unwrap() {
            "send" => self.send(msg),
            "recv" => {
                let mut line = msg.to_string();
                for (theirs, ours) in &self.ids {
                    line = line.replace(theirs.as_str(), ours);
                }
                let out = self.talk.step(stdout_line(line.as_bytes()));
                self.note(&out);
                if out.iter().any(|action| matches!(action, Action::Ready)) {
                    self.talk.open(open);
                }
            }
            "stderr" => {
                let text = msg.as_str().unwrap();
                self.stderr.push_str(text);
                for line in text.lines() {
                    let bytes = line.as_bytes();
                    let input = Input::Line { from: Stream::Stderr, bytes, cut: false };
                    let out = self.talk.step(input);
                    self.note(&out);
                }
            }
            "exit" => {
                let code = i32::try_from(entry["code"].as_i64().unwrap()).unwrap();
                let out = self.talk.exit(&exit(code, &self.stderr));
                self.note(&out);
            }
            other => panic!("direction {other}"),
        }
    }

    fn send(&mut self, msg: &Value) {
        match (msg["type"].as_str(), msg["request"]["subtype"].as_str()) {
            (Some("user"), _) if msg["uuid"].is_null() => {
                self.notes.push_str("(the client sent a prompt without an id)\n");
            }
            (Some("user"), _) => {
                let id = msg["uuid"].as_str();
                let is_known = self.ids.iter().any(|(theirs, _)| Some(theirs.as_str()) == id);
                if is_known || self.ordered.as_deref() == id {
                    return;
                }
                self.waiting.push_back(msg.clone());
                self.prompt_next();
            }
            (Some("control_response"), _) => self.answer(&msg["response"]),
            (Some("control_request"), Some("interrupt")) if self.active.is_some() => {
                if msg["request"]["cancel_queued"] == true {
                    self.waiting.clear();
                }
                writeln!(self.notes, "> cancel").unwrap();
                let out = self.talk.cancel(self.active.unwrap());
                self.note(&out);
                self.match_request(msg, "interrupt");
            }
            (Some("control_request"), Some("set_model")) => {
                let is_prompt =
                    |entry: &&Value| entry["dir"] == "send" && entry["msg"]["type"] == "user";
                let next = self.entries.iter().find(is_prompt);
                let next = next.expect("a prompt follows")["msg"].clone();
                let model = msg["request"]["model"].as_str().unwrap();
                self.talk.played.options.model = Some(model.to_owned());
                self.waiting.push_back(next);
                self.prompt_next();
                self.match_request(msg, "set_model");
            }
            (Some("control_request"), Some(subtype @ ("initialize" | "stop_task"))) => {
                self.match_request(msg, subtype);
            }
            _ => {
                let what: String = msg.to_string().chars().take(100).collect();
                writeln!(self.notes, "(the client sent {what})").unwrap();
            }
        }
    }

    fn prompt_next(&mut self) {
        if self.active.is_some() {
            return;
        }
        let Some(msg) = self.waiting.pop_front() else { return };
        let content = &msg["message"]["content"];
        let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        let turn = self.n_prompts;
        self.n_prompts += 1;
        self.active = Some(turn);
        self.ordered = msg["uuid"].as_str().map(str::to_owned);
        let short: String = text.chars().take(60).collect();
        writeln!(self.notes, "> prompt {turn} {short:?}").unwrap();
        let out = self.talk.prompt(turn, &text);
        self.note(&out);
    }

    /// Answers as the client did, question by question.
    fn answer(&mut self, response: &Value) {
        let id = response["request_id"].as_str().unwrap();
        let turn = self.active.unwrap_or(u32::MAX);
        let reply = &response["response"];
        let mut open = vec![id.to_owned()];
        while let Some(request) = open.pop() {
            let asked = asked(&self.talk.actions);
            let asked = asked.iter().rfind(|asked| asked.request == request).unwrap();
            let text = reply.pointer("/updatedInput/answers").map(|answers| &answers[&asked.title]);
            let ruling = match reply["behavior"].as_str() {
                Some("allow") => {
                    let text = text.and_then(Value::as_str).map(str::to_owned);
                    Ruling::Allow { text }
                }
                _ => Ruling::Deny { why: reply["message"].as_str().unwrap().to_owned() },
            };
            writeln!(self.notes, "> answer {request} {ruling:?}").unwrap();
            let out = self.talk.answer(turn, &request, &ruling);
            open.extend(super::asked(&out).first().map(|next| next.request.clone()));
            self.note(&out);
        }
    }

    /// Finds our request that stands for the client's.
    fn match_request(&mut self, msg: &Value, subtype: &str) {
        let theirs = msg["request_id"].as_str().unwrap().to_owned();
        if let Some(at) = self.requests.iter().position(|(known, _)| known == subtype) {
            let (_, ours) = self.requests.remove(at);
            // Short ids of theirs would be found inside of others.
            self.ids.push((format!("\"{theirs}\""), format!("\"{ours}\"")));
        }
    }

    /// Writes down what came of something, and goes on with what waited for it.
    fn note(&mut self, out: &[Action]) {
        for line in written(out) {
            if let Some(subtype) = line["request"]["subtype"].as_str() {
                let id = line["request_id"].as_str().unwrap().to_owned();
                self.requests.push((subtype.to_owned(), id));
            }
            if let Some(ours) = line["uuid"].as_str() {
                self.ids.extend(self.ordered.take().map(|theirs| (theirs, ours.to_owned())));
            }
        }
        self.notes.push_str(&transcript(out));
        let is_over = ends(out).iter().any(|(turn, _)| self.active == Some(*turn));
        if is_over {
            self.active = None;
            self.prompt_next();
        }
    }
}

/// Writes actions down with the turns that they belong to.
pub(super) fn transcript(actions: &[Action]) -> String {
    let mut text = String::new();
    for action in actions {
        if let Action::Emit { turn, .. }
        | Action::EndTurn { turn, .. }
        | Action::Ask { turn, .. }
        | Action::Withdraw { turn, .. } = action
        {
            match turn.0 {
                unasked if unasked > u32::MAX / 2 => write!(text, "u{} ", u32::MAX - unasked),
                turn => write!(text, "{turn} "),
            }
            .unwrap();
        }
        text.push_str(&play::transcript(std::slice::from_ref(action)));
    }
    text
}
