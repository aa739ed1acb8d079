//! A driver that keeps its rules, a server that keeps none, and what can happen
//! between them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::LazyLock,
};

use proptest::{collection::vec, prelude::*};

use super::{talk::written, *};
use crate::{
    agent::{
        Input, Order, SessionKey, TimerKey,
        testing::{any_value, stdout_line},
    },
    event::Stream,
    permission::Ruling,
};

const FIELDS: &[&str] = &[
    "threadId",
    "turnId",
    "turn",
    "id",
    "item",
    "type",
    "itemId",
    "delta",
    "status",
    "error",
    "message",
    "codexErrorInfo",
    "willRetry",
    "tokenUsage",
    "total",
    "inputTokens",
    "plan",
    "params",
    "result",
    "thread",
    "method",
];

const METHODS: &[&str] = &[
    "turn/started",
    "turn/completed",
    "item/started",
    "item/completed",
    "item/agentMessage/delta",
    "item/reasoning/summaryTextDelta",
    "thread/tokenUsage/updated",
    "thread/closed",
    "thread/started",
    "turn/plan/updated",
    "error",
    "warning",
    "brand/new",
];

const REQUESTS: &[&str] = &[
    "item/commandExecution/requestApproval",
    "item/fileChange/requestApproval",
    "item/permissions/requestApproval",
    "item/tool/requestUserInput",
    "mcpServer/elicitation/request",
    "brand/new",
];

/// The lines that the real server printed.
pub(super) static RECORDED: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/codex/0.166.0");
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            for line in fs::read_to_string(path).unwrap().lines() {
                let mut entry: Value = serde_json::from_str(line).unwrap();
                if entry["dir"] == "server->client" && entry["msg"].get("method").is_some() {
                    lines.push(entry["msg"].take());
                }
            }
        }
    }
    lines
});

/// One thing that happens. Numbers choose among what is there at that time.
#[derive(Clone, Debug)]
pub(super) enum Happens {
    Open { resumed: bool },
    Prompt(usize, bool),
    Steer(usize),
    Answer(usize, bool),
    Cancel(usize),
    Abandon(usize),
    Close(usize),
    Ring(usize),
    Reply(usize, bool),
    Asks(usize, Value),
    Tells(usize, usize, Value),
    Recorded(usize, usize),
    Garbage(Vec<u8>, bool, bool),
}

pub(super) fn happens() -> impl Strategy<Value = Happens> {
    let n = any::<usize>;
    prop_oneof![
        2 => any::<bool>().prop_map(|resumed| Happens::Open { resumed }),
        5 => (n(), any::<bool>()).prop_map(|(at, other)| Happens::Prompt(at, other)),
        1 => n().prop_map(Happens::Steer),
        3 => (n(), any::<bool>()).prop_map(|(at, yes)| Happens::Answer(at, yes)),
        2 => n().prop_map(Happens::Cancel),
        1 => n().prop_map(Happens::Abandon),
        1 => n().prop_map(Happens::Close),
        2 => n().prop_map(Happens::Ring),
        8 => (n(), prop::bool::weighted(0.85)).prop_map(|(at, ok)| Happens::Reply(at, ok)),
        3 => (n(), any_value(FIELDS)).prop_map(|(at, value)| Happens::Asks(at, value)),
        5 => (n(), n(), any_value(FIELDS)).prop_map(|(a, b, v)| Happens::Tells(a, b, v)),
        8 => (n(), n()).prop_map(|(line, session)| Happens::Recorded(line, session)),
        2 => (vec(any::<u8>(), 0..40), any::<bool>(), any::<bool>())
            .prop_map(|(bytes, stderr, cut)| Happens::Garbage(bytes, stderr, cut)),
    ]
}

/// The driver's side, with its rules, and the server's.
pub(super) struct World {
    talk: Talk,
    n_sessions: u32,
    n_turns: u32,
    n_requests: u64,
    /// The turn of each session that is known to the driver.
    sessions: BTreeMap<u32, Option<TurnKey>>,
    pub(super) ended: BTreeMap<u32, u32>,
    /// Turns whose end is for the driver to say.
    given_up: BTreeSet<u32>,
    /// Requests that wait for the user, with their turns.
    pub(super) asked: BTreeMap<String, TurnKey>,
    /// The server's requests without a reply.
    pub(super) open_requests: BTreeSet<u64>,
    pub(super) replied_twice: bool,
    /// Our requests that the server has not answered.
    pending: Vec<Value>,
    timers: Vec<TimerKey>,
    pub(super) begun: BTreeSet<u32>,
}

impl World {
    pub(super) fn new() -> Self {
        let mut world = Self {
            talk: Talk::new(),
            n_sessions: 0,
            n_turns: 0,
            n_requests: 0,
            sessions: BTreeMap::new(),
            ended: BTreeMap::new(),
            given_up: BTreeSet::new(),
            asked: BTreeMap::new(),
            open_requests: BTreeSet::new(),
            replied_twice: false,
            pending: Vec::new(),
            timers: Vec::new(),
            begun: BTreeSet::new(),
        };
        world.give(Input::Order(Order::Start));
        world.reply(0, true);
        world
    }

    pub(super) fn give(&mut self, input: Input<'_>) {
        let actions = self.talk.step(input);
        for message in written(&actions) {
            if message.get("method").is_none() {
                let id = message["id"].as_u64().unwrap();
                self.replied_twice |= !self.open_requests.remove(&id);
            } else if message.get("id").is_some() {
                self.pending.push(message);
            }
        }
        for action in actions {
            match action {
                Action::Arm { timer, .. } => self.timers.push(timer),
                Action::Ask { turn, permission } => {
                    let is_new = self.asked.insert(permission.request.clone(), turn).is_none();
                    assert!(is_new, "two requests of one name");
                }
                Action::Withdraw { request, .. } => {
                    // The server knows by itself; a further question has a longer name.
                    let id = request.split('+').next().unwrap().parse().unwrap();
                    self.open_requests.remove(&id);
                    self.asked.remove(&request);
                }
                Action::Unasked { session, turn } => {
                    self.begun.insert(turn.0);
                    self.sessions.insert(session.0, Some(turn));
                }
                Action::EndTurn { turn, .. } => self.ended(turn),
                Action::OpenFailed { session, .. } => {
                    if let Some(Some(turn)) = self.sessions.remove(&session.0) {
                        self.ended(turn);
                    }
                }
                Action::Emit { turn, .. } => {
                    assert!(!self.ended.contains_key(&turn.0), "an event after the end");
                }
                Action::Write(_)
                | Action::Ready
                | Action::Opened { .. }
                | Action::Call { .. }
                | Action::Listen(_)
                | Action::Stop => {}
            }
        }
    }

    fn ended(&mut self, turn: TurnKey) {
        if !self.given_up.contains(&turn.0) {
            *self.ended.entry(turn.0).or_default() += 1;
        }
        self.asked.retain(|_, asker| *asker != turn);
        for active in self.sessions.values_mut() {
            if *active == Some(turn) {
                *active = None;
            }
        }
    }

    fn reply(&mut self, at: usize, ok: bool) {
        if self.pending.is_empty() {
            return;
        }
        let asked = self.pending.remove(at % self.pending.len());
        let id = asked["id"].clone();
        let result = match asked["method"].as_str().unwrap() {
            "thread/start" => {
                super::talk::thread(&thread_name(u32::try_from(id.as_u64().unwrap()).unwrap()))
            }
            "thread/resume" => super::talk::thread(asked["params"]["threadId"].as_str().unwrap()),
            "thread/unsubscribe" if !at.is_multiple_of(3) => json!({ "status": "unsubscribed" }),
            "turn/start" => json!({ "turn": { "id": turn_name(&asked["params"]["threadId"]) } }),
            _ => json!({}),
        };
        let result = super::talk::as_asked(result, &asked["params"]);
        let message = if ok || asked["method"] == "initialize" {
            json!({ "id": id, "result": result })
        } else {
            json!({ "id": id, "error": { "code": -32600, "message": "no" } })
        };
        self.give(stdout_line(message.to_string().as_bytes()));
    }

    /// A thread that the server was told of, and a turn of it.
    fn names(&self, at: usize) -> (Value, Value) {
        let opened = self.talk.actions.iter().filter_map(|action| {
            let Action::Opened { id, .. } = action else { return None };
            Some(id.clone())
        });
        let opened: Vec<String> = opened.collect();
        let thread =
            if opened.is_empty() { THREAD.into() } else { opened[at % opened.len()].clone() };
        let turn = turn_name(&json!(thread));
        (thread.into(), turn.into())
    }

    pub(super) fn happens(&mut self, what: Happens) {
        let choose = |at: usize, keys: Vec<u32>| (!keys.is_empty()).then(|| keys[at % keys.len()]);
        let busy: Vec<u32> =
            self.sessions.iter().filter(|(_, t)| t.is_some()).map(|(k, _)| *k).collect();
        let idle: Vec<u32> =
            self.sessions.iter().filter(|(_, t)| t.is_none()).map(|(k, _)| *k).collect();
        match what {
            Happens::Open { resumed } => {
                let session = SessionKey(self.n_sessions);
                self.n_sessions += 1;
                self.sessions.insert(session.0, None);
                let memo = Memo::of_id("codex", thread_name(1000 + session.0));
                let open = if resumed { Open::Resume(Box::new(memo)) } else { Open::New };
                let options = asking();
                self.give(Input::Order(Order::Open { session, open: &open, options: &options }));
            }
            Happens::Prompt(at, other) => {
                let Some(key) = choose(at, idle) else { return };
                let turn = TurnKey(self.n_turns);
                self.n_turns += 1;
                self.begun.insert(turn.0);
                self.sessions.insert(key, Some(turn));
                let options = if other { options() } else { asking() };
                let session = SessionKey(key);
                let order = Order::Prompt { session, turn, prompt: "hi", options: &options };
                self.give(Input::Order(order));
            }
            Happens::Steer(at) => {
                let Some(Some(turn)) = choose(at, busy).map(|key| self.sessions[&key]) else {
                    return;
                };
                self.give(Input::Order(Order::Steer { turn, text: "more" }));
            }
            Happens::Answer(at, yes) => {
                let names: Vec<String> = self.asked.keys().cloned().collect();
                if names.is_empty() {
                    return;
                }
                let request = names[at % names.len()].clone();
                let Some(turn) = self.asked.remove(&request) else { return };
                let ruling = if yes {
                    Ruling::Allow { text: None }
                } else {
                    Ruling::Deny { why: String::new() }
                };
                self.give(Input::Order(Order::Answer { turn, request: &request, ruling: &ruling }));
            }
            Happens::Cancel(at) => {
                let Some(Some(turn)) = choose(at, busy).map(|key| self.sessions[&key]) else {
                    return;
                };
                self.give(Input::Cancel { turn });
            }
            Happens::Abandon(at) => {
                let Some(key) = choose(at, busy) else { return };
                let Some(Some(turn)) = self.sessions.remove(&key) else { return };
                *self.ended.entry(turn.0).or_default() += 1;
                self.given_up.insert(turn.0);
                self.asked.retain(|_, asker| *asker != turn);
                self.give(Input::Order(Order::Close { session: SessionKey(key) }));
            }
            Happens::Close(at) => {
                let Some(key) = choose(at, idle) else { return };
                self.sessions.remove(&key);
                self.give(Input::Order(Order::Close { session: SessionKey(key) }));
            }
            Happens::Ring(at) => {
                if !self.timers.is_empty() {
                    let timer = self.timers.remove(at % self.timers.len());
                    self.give(Input::Timer(timer));
                }
            }
            Happens::Reply(at, ok) => self.reply(at, ok),
            Happens::Asks(at, value) => {
                self.n_requests += 1;
                self.open_requests.insert(self.n_requests);
                let (thread, turn) = self.names(at);
                let questions =
                    json!([{ "id": "q", "question": "?" }, { "id": "r", "question": "?" }]);
                let params = json!({ "threadId": thread, "turnId": turn, "command": value,
                    "questions": questions, "permissions": {} });
                let method = REQUESTS[at % REQUESTS.len()];
                let message = json!({ "id": self.n_requests, "method": method, "params": params });
                self.give(stdout_line(message.to_string().as_bytes()));
            }
            Happens::Tells(at, which, value) => {
                let (thread, turn) = self.names(at);
                let status = ["completed", "failed", "interrupted", "odd"][at % 4];
                let body = json!({ "id": turn, "status": status, "error": value });
                let params = json!({ "threadId": thread, "turnId": turn, "turn": body,
                    "item": value, "itemId": "m", "delta": "x", "error": value,
                    "willRetry": at % 2 == 0, "plan": value, "tokenUsage": { "total": value } });
                let method = METHODS[which % METHODS.len()];
                let message = json!({ "method": method, "params": params });
                self.give(stdout_line(message.to_string().as_bytes()));
            }
            Happens::Recorded(line, session) => {
                let mut message = RECORDED[line % RECORDED.len()].clone();
                let (thread, turn) = self.names(session);
                message["params"]["threadId"] = thread;
                message["params"]["turnId"] = turn.clone();
                if message["params"]["turn"].is_object() {
                    message["params"]["turn"]["id"] = turn;
                }
                if message.get("id").is_some() {
                    self.n_requests += 1;
                    self.open_requests.insert(self.n_requests);
                    message["id"] = self.n_requests.into();
                }
                self.give(stdout_line(message.to_string().as_bytes()));
            }
            Happens::Garbage(bytes, stderr, cut) => {
                let from = if stderr { Stream::Stderr } else { Stream::Stdout };
                self.give(Input::Line { from, bytes: &bytes, cut });
            }
        }
    }
}

fn thread_name(number: u32) -> String {
    format!("01a1e08f-eb0e-76c1-b501-{number:012}")
}

/// Turns of one thread share a name here, so that late lines hit the next one.
fn turn_name(thread: &Value) -> String {
    format!("turn of {}", thread.as_str().unwrap_or_default())
}
