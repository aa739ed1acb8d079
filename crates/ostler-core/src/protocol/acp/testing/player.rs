//! Plays a recorded conversation with a real agent.
//!
//! The client's lines become the orders that lead to them, so that our own
//! requests stand where those of the recording client stood.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::AcpAgent;
use crate::{
    agent::{
        Order, SessionKey, TurnKey,
        testing::{Talk, exit, written},
    },
    memo::Memo,
    permission::{Answer, Decision},
    request::{Open, Options},
};

/// The answers of the recording client that allowed something.
const ALLOWED: &[&str] =
    &["proceed_once", "proceed_always", "proceed_always_project", "allow_once", "allow_always"];

/// Both are ways to go on with a session.
fn same(method: &str) -> &str {
    if method == "session/resume" { "session/load" } else { method }
}

/// Plays a transcript.
pub(crate) struct Player<A> {
    pub(crate) talk: Talk<A>,
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
    pub(crate) n_turns: u32,
    /// How every session is used.
    options: Options,
    /// Makes the id by which an existing session is loaded.
    load_id: fn(&str) -> String,
}

impl<A: AcpAgent> Player<A> {
    /// Begins with an agent that is played, of whom everything is asked with these options.
    pub(crate) fn new(played: A, options: Options, load_id: fn(&str) -> String) -> Self {
        Self {
            talk: Talk::playing(played),
            n_seen: 0,
            due: Vec::new(),
            numbers: BTreeMap::new(),
            sessions: BTreeMap::new(),
            opening: BTreeMap::new(),
            turns: BTreeMap::new(),
            n_sessions: 0,
            n_turns: 0,
            options,
            load_id,
        }
    }

    /// Plays every line of a transcript.
    pub(crate) fn play(&mut self, text: &str) {
        for line in text.lines() {
            let entry: Value = serde_json::from_str(line).unwrap();
            let message = &entry["msg"];
            match entry["dir"].as_str().unwrap() {
                "client->agent" => self.client(message),
                "agent->client" if message["eof"] == true => {
                    self.talk.exit(&exit(0, ""));
                }
                "agent->client" => self.agent(message),
                other => panic!("who is {other}?"),
            }
        }
    }

    fn client(&mut self, message: &Value) {
        let params = &message["params"];
        let named = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let method = message["method"].as_str();
        if let (Some(method), Some(number)) = (method, message["id"].as_u64()) {
            self.due.push((same(method).to_owned(), named.clone(), number));
        }
        match method {
            Some("initialize") => {
                self.talk.order(Order::Start);
            }
            Some("session/new" | "session/load" | "session/resume") => {
                let key = SessionKey(self.n_sessions);
                self.n_sessions += 1;
                let mut options = self.options.clone();
                options.cwd = params["cwd"].as_str().unwrap_or_default().into();
                let open = match method {
                    Some("session/load" | "session/resume") => {
                        self.sessions.insert(named.clone(), (key, (self.load_id)(&named)));
                        Open::Resume(Box::new(Memo::of_id("any", &named)))
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
                    let options = self.options.clone();
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
            outcome["optionId"].as_str().is_some_and(|option| ALLOWED.contains(&option));
        let decision = if is_allowed { Decision::Allow } else { Decision::Deny };
        let Some(turn) = self.n_turns.checked_sub(1).map(TurnKey) else { return };
        self.talk.decide(turn, &message["id"].to_string(), &Answer::new(decision).ruling());
    }

    /// Finds our numbers for what the recording client had asked.
    fn catch_up(&mut self) {
        let ours = written(&self.talk.actions[self.n_seen..]);
        self.n_seen = self.talk.actions.len();
        for ours in ours {
            // The recording client did not change any settings for us.
            if ours["method"].as_str().is_some_and(|method| method.starts_with("session/set_")) {
                self.talk.say(&json!({ "jsonrpc": "2.0", "id": ours["id"], "result": {} }));
                self.catch_up();
                continue;
            }
            let named = ours["params"]["sessionId"].as_str().unwrap_or_default().trim();
            let is_it = |(method, session, _): &(String, String, u64)| {
                ours["method"].as_str().is_some_and(|ours| same(ours) == method) && session == named
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
