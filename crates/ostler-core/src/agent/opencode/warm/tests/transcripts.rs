//! Every recorded conversation with the real server, and what came of it.
//!
//! The client's calls become the orders that lead to them. The server's word on
//! a session is kept until our own call for it comes.

use std::{fs, path::Path};

use super::*;
use crate::{
    agent::{ONLY_SESSION, Order, play},
    permission::Ruling,
    request::Open,
};

/// Plays a transcript.
struct Player {
    talk: Talk,
    session: Option<Value>,
    is_open: bool,
    n_turns: u32,
}

impl Player {
    fn play(&mut self, line: &Value) {
        match line["dir"].as_str().unwrap() {
            "->" => self.client(line),
            "<-" if line["path"] == "/session" => self.session = Some(line["body"].clone()),
            "<-" if line["path"] == "/api/session" => {
                self.session = Some(line["body"]["data"].clone());
            }
            "sse" => {
                self.talk.event(&line["event"]);
            }
            "<-" | "#" => {}
            other => panic!("who is {other}?"),
        }
        self.answer_calls();
    }

    fn client(&mut self, line: &Value) {
        let (path, body) = (line["path"].as_str().unwrap(), &line["body"]);
        let last = path.rsplit('/').next().unwrap();
        match (line["method"].as_str().unwrap(), last) {
            ("POST", "prompt_async" | "message" | "prompt") => self.prompt(body),
            ("POST", "abort") => {
                self.talk.cancel(TurnKey(self.n_turns));
            }
            ("POST", "reply") if path.starts_with("/question") => {
                let text = body["answers"][0][0].as_str().map(str::to_owned);
                self.decide(path.split('/').nth(2).unwrap(), &Ruling::Allow { text });
            }
            ("POST", "reply") => {
                let ruling = match body["reply"].as_str().unwrap() {
                    "once" => Ruling::Allow { text: None },
                    _ => {
                        let why = body["message"].as_str().unwrap_or_default().to_owned();
                        Ruling::Deny { why }
                    }
                };
                self.decide(path.split('/').nth(2).unwrap(), &ruling);
            }
            // The older way to answer.
            ("POST", id) if id.starts_with("per_") => {
                self.decide(id, &Ruling::Deny { why: String::new() });
            }
            ("GET" | "DELETE", _) | ("POST", "session" | "wait") => {}
            (method, _) => panic!("what order leads to {method} {path}?"),
        }
    }

    fn prompt(&mut self, body: &Value) {
        let mut options = asking();
        options.system_prompt = body["system"].as_str().map(str::to_owned);
        let text = body["parts"][0]["text"].as_str().or_else(|| body["prompt"]["text"].as_str());
        let text = text.unwrap();
        if !std::mem::replace(&mut self.is_open, true) {
            let open = &Open::New;
            self.talk.order(Order::Open { session: ONLY_SESSION, open, options: &options });
        } else if !has_ended(&self.talk.actions, TurnKey(self.n_turns)) {
            self.talk.order(Order::Steer { turn: TurnKey(self.n_turns), text });
            return;
        }
        self.n_turns += 1;
        self.talk.prompt(TurnKey(self.n_turns), text, &options);
    }

    fn decide(&mut self, request: &str, ruling: &Ruling) {
        let turn = TurnKey(self.n_turns);
        self.talk.order(Order::Answer { turn, request, ruling });
    }

    fn answer_calls(&mut self) {
        while let Some((call, request)) = self.talk.open_calls.pop() {
            let is_session = request.url.contains("/session?");
            let session = self.session.clone().unwrap_or_default();
            let reply = if is_session { (200, &session) } else { (204, &Value::Null) };
            self.talk.reply_to(call, Ok(reply));
        }
    }
}

fn play(path: &Path) -> Player {
    let talk = Talk::ready();
    let mut player = Player { talk, session: None, is_open: false, n_turns: 0 };
    for line in fs::read_to_string(path).unwrap().lines() {
        player.play(&serde_json::from_str(line).unwrap());
    }
    player.talk.exit();
    player
}

#[test]
fn every_transcript_reads_as_its_snapshot_and_ends_every_turn_once() {
    insta::with_settings!({snapshot_path => "../../snapshots", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::glob!("../../../../../../../fixtures/opencode", "*/warm-serve*.jsonl", |path| {
            let player = play(path);
            for turn in 1..=player.n_turns {
                end_of(&player.talk.actions, TurnKey(turn));
            }
            insta::assert_snapshot!("warm", play::transcript(&player.talk.actions));
        });
    });
}

#[test]
fn every_kind_of_event_is_known() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/opencode/1.18.33/sse-event-examples.jsonl");
    for line in fs::read_to_string(path).unwrap().lines() {
        let mut talk = Talk::running(&asking());
        let mut line: Value = serde_json::from_str(line).unwrap();
        let mut event = line["event"].take();
        if event["properties"].get("sessionID").is_some() {
            event["properties"]["sessionID"] = SESSION.into();
        }
        for action in talk.event(&event) {
            let is_unknown =
                matches!(&action, Action::Emit { event: EventBody::Unknown { .. }, .. });
            assert!(!is_unknown, "{}", line["case"]);
        }
    }
}
