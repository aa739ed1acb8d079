//! Every recorded conversation with the real CLI, and what came of it.
//!
//! The client's lines become the orders that lead to them, so that our own
//! requests stand where those of the recording client stood.

use std::{collections::BTreeMap, fs};

use super::*;
use crate::{
    agent::{Order, SessionKey},
    permission::{Answer, Decision},
};

/// Plays a transcript.
struct Player {
    talk: Talk,
    /// How many of the actions were looked at.
    n_seen: usize,
    /// Requests of the recording client that we have not made yet: the method,
    /// the session, the number.
    due: Vec<(String, String, u64)>,
    /// Our number for each number of the recording client's requests.
    numbers: BTreeMap<u64, Value>,
    /// Our name and our id for each session that the recording names.
    sessions: BTreeMap<String, (SessionKey, String)>,
    /// Sessions that were asked for and have no id yet, by the request's number.
    opening: BTreeMap<u64, SessionKey>,
    /// The turns of each session, in order.
    turns: BTreeMap<String, Vec<TurnKey>>,
    n_sessions: u32,
    n_turns: u32,
}

impl Player {
    fn new() -> Self {
        Self {
            talk: Talk::new(),
            n_seen: 0,
            due: Vec::new(),
            numbers: BTreeMap::new(),
            sessions: BTreeMap::new(),
            opening: BTreeMap::new(),
            turns: BTreeMap::new(),
            n_sessions: 0,
            n_turns: 0,
        }
    }

    fn client(&mut self, message: &Value) {
        let params = &message["params"];
        let named = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let method = message["method"].as_str();
        if let (Some(method), Some(number)) = (method, message["id"].as_u64()) {
            self.due.push((method.to_owned(), named.clone(), number));
        }
        match method {
            Some("initialize") => {
                self.talk.order(Order::Start);
            }
            Some("session/new" | "session/load") => {
                let key = SessionKey(self.n_sessions);
                self.n_sessions += 1;
                let mut options = asking();
                options.cwd = params["cwd"].as_str().unwrap_or_default().into();
                let open = match method {
                    Some("session/load") => {
                        self.sessions.insert(named.clone(), (key, format!(" {named}")));
                        resume(&named)
                    }
                    _ => {
                        self.opening.insert(message["id"].as_u64().unwrap(), key);
                        Open::New
                    }
                };
                self.talk.open_session(key, &open, &options);
            }
            Some("session/prompt") => {
                if let Some((session, _)) = self.sessions.get(&named) {
                    let (session, turn) = (*session, TurnKey(self.n_turns));
                    self.n_turns += 1;
                    self.turns.entry(named).or_default().push(turn);
                    let prompt = params["prompt"][0]["text"].as_str().unwrap();
                    let options = asking();
                    self.talk.order(Order::Prompt { session, turn, prompt, options: &options });
                }
            }
            Some("session/cancel") => {
                for turn in self.turns.get(&named).cloned().unwrap_or_default() {
                    self.talk.cancel(turn);
                }
            }
            // What only the recording client asked.
            Some(_) => {}
            None => self.decide(message),
        }
        self.catch_up();
    }

    fn decide(&mut self, message: &Value) {
        let outcome = &message["result"]["outcome"];
        let is_allowed =
            outcome["optionId"].as_str().is_some_and(|option| option.starts_with("proceed"));
        let decision = if is_allowed { Decision::Allow } else { Decision::Deny };
        let turn = TurnKey(self.n_turns - 1);
        self.talk.decide(turn, &message["id"].to_string(), &Answer::new(decision).ruling());
    }

    /// Finds our numbers for what the recording client had asked.
    fn catch_up(&mut self) {
        let ours = written(&self.talk.actions[self.n_seen..]);
        self.n_seen = self.talk.actions.len();
        for ours in ours {
            let named = ours["params"]["sessionId"].as_str().unwrap_or_default().trim();
            let is_it = |(method, session, _): &(String, String, u64)| {
                ours["method"] == *method && session == named
            };
            if let Some(at) = self.due.iter().position(is_it) {
                let (_, _, number) = self.due.remove(at);
                self.numbers.insert(number, ours["id"].clone());
            }
        }
    }

    fn agent(&mut self, message: &Value) {
        let mut message = message.clone();
        if message.get("method").is_none() {
            let number = message["id"].as_u64().unwrap();
            // Replies to what only the recording client asked are nobody's.
            message["id"] = self.numbers.remove(&number).unwrap_or(json!(1_000_000 + number));
            if let (Some(key), Some(id)) =
                (self.opening.remove(&number), message["result"]["sessionId"].as_str())
            {
                self.sessions.insert(id.to_owned(), (key, id.to_owned()));
            }
        }
        let named = message["params"]["sessionId"].as_str().unwrap_or_default();
        if let Some((_, ours)) = self.sessions.get(named) {
            message["params"]["sessionId"] = json!(ours);
        }
        self.talk.say(&message);
        self.catch_up();
    }
}

#[test]
fn every_transcript_reads_as_its_snapshot_and_ends_every_turn_once() {
    insta::with_settings!({snapshot_path => "../../snapshots", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::glob!("../../../../../../../fixtures/gemini", "*/warm-*.jsonl", |path| {
            let mut player = Player::new();
            for line in fs::read_to_string(path).unwrap().lines() {
                let entry: Value = serde_json::from_str(line).unwrap();
                let message = &entry["msg"];
                match entry["dir"].as_str().unwrap() {
                    "client->agent" => player.client(message),
                    "agent->client" if message["eof"] == true => {
                        player.talk.exit(&exit(0, ""));
                    }
                    "agent->client" => player.agent(message),
                    other => panic!("who is {other}?"),
                }
            }
            for turn in 0..player.n_turns {
                end_of_turn(&player.talk.actions, TurnKey(turn));
            }
            insta::assert_snapshot!("warm", play::transcript(&player.talk.actions));
        });
    });
}
