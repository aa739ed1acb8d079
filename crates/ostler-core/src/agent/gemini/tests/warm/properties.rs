//! What holds whatever the agent says, whatever is ordered, in any order.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::LazyLock,
};

use proptest::{collection::vec, prelude::*};

use super::{talk::written, *};
use crate::{
    agent::{Order, SessionKey, TimerKey, testing::stdout_line},
    permission::Ruling,
};

const CASES: u32 = 400;

const FIELDS: &[&str] = &[
    "sessionUpdate",
    "content",
    "type",
    "text",
    "toolCallId",
    "status",
    "title",
    "kind",
    "locations",
    "rawInput",
    "rawOutput",
    "entries",
    "options",
    "toolCall",
    "stopReason",
    "_meta",
    "quota",
];

/// The notifications and requests that the real CLI sent.
static RECORDED: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/gemini/0.61.0");
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            for line in fs::read_to_string(path).unwrap().lines() {
                let mut entry: Value = serde_json::from_str(line).unwrap();
                if entry["dir"] == "agent->client" && entry["msg"].get("method").is_some() {
                    lines.push(entry["msg"].take());
                }
            }
        }
    }
    assert!(lines.len() > 100);
    lines
});

/// One thing that happens. Numbers choose among what is there at that time.
#[derive(Clone, Debug)]
enum Happens {
    Open { resumed: bool },
    Prompt(usize, u8),
    Answer(usize, bool),
    Cancel(usize),
    Abandon(usize),
    Close(usize),
    Ring(usize),
    Reply(usize, Option<Value>),
    Tells(usize, Value),
    Asks(usize, Value),
    Recorded(usize, usize),
    Stderr(&'static str),
    Garbage(Vec<u8>, bool, bool),
}

fn happens() -> impl Strategy<Value = Happens> {
    let n = any::<usize>;
    let lines = prop::sample::select(vec![
        "Attempt 1 failed with status 500. Retrying with backoff... Error: no",
        "Attempt 2 failed with status 429. Retrying after 60000ms... Error: no",
        "Warning: something",
        "Error handling request {",
    ]);
    prop_oneof![
        2 => any::<bool>().prop_map(|resumed| Happens::Open { resumed }),
        5 => (n(), 0u8..3).prop_map(|(at, kind)| Happens::Prompt(at, kind)),
        3 => (n(), any::<bool>()).prop_map(|(at, yes)| Happens::Answer(at, yes)),
        2 => n().prop_map(Happens::Cancel),
        1 => n().prop_map(Happens::Abandon),
        1 => n().prop_map(Happens::Close),
        2 => n().prop_map(Happens::Ring),
        8 => n().prop_map(|at| Happens::Reply(at, None)),
        2 => (n(), any_value(FIELDS)).prop_map(|(at, value)| Happens::Reply(at, Some(value))),
        4 => (n(), any_value(FIELDS)).prop_map(|(at, value)| Happens::Tells(at, value)),
        2 => (n(), any_value(FIELDS)).prop_map(|(at, value)| Happens::Asks(at, value)),
        8 => (n(), n()).prop_map(|(line, session)| Happens::Recorded(line, session)),
        2 => lines.prop_map(Happens::Stderr),
        2 => (vec(any::<u8>(), 0..40), any::<bool>(), any::<bool>())
            .prop_map(|(bytes, stderr, cut)| Happens::Garbage(bytes, stderr, cut)),
    ]
}

/// The driver's side, with its rules, and the agent's.
struct World {
    talk: Talk,
    n_sessions: u32,
    n_turns: u32,
    n_requests: u64,
    /// The turn of each session that is known to the driver.
    sessions: BTreeMap<u32, Option<TurnKey>>,
    begun: BTreeSet<u32>,
    ended: BTreeMap<u32, u32>,
    /// Turns whose end the driver has said.
    given_up: BTreeSet<u32>,
    /// Requests that wait for the user, with their turns.
    asked: BTreeMap<String, TurnKey>,
    /// The agent's requests without a reply.
    unanswered: BTreeSet<u64>,
    answered_twice: bool,
    /// Our requests that the agent has not answered.
    pending: Vec<Value>,
    /// The ids that the agent was told or has told.
    names: Vec<String>,
    timers: Vec<TimerKey>,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            talk: Talk::ready(),
            n_sessions: 0,
            n_turns: 0,
            n_requests: 0,
            sessions: BTreeMap::new(),
            begun: BTreeSet::new(),
            ended: BTreeMap::new(),
            given_up: BTreeSet::new(),
            asked: BTreeMap::new(),
            unanswered: BTreeSet::new(),
            answered_twice: false,
            pending: Vec::new(),
            names: vec![SESSION.to_owned()],
            timers: Vec::new(),
        };
        world.give(Input::Timer(TimerKey(0)));
        world
    }

    fn give(&mut self, input: Input<'_>) {
        let actions = self.talk.step(input);
        for message in written(&actions) {
            if message.get("method").is_none() {
                self.answered_twice |= !self.unanswered.remove(&message["id"].as_u64().unwrap());
            } else if message.get("id").is_some() {
                self.names.extend(message["params"]["sessionId"].as_str().map(str::to_owned));
                let is_prompt = |one: &Value| {
                    one["method"] == "session/prompt"
                        && one["params"]["sessionId"] == message["params"]["sessionId"]
                };
                assert!(
                    !is_prompt(&message) || !self.pending.iter().any(is_prompt),
                    "a second prompt would end the first"
                );
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
                Action::EndTurn { turn, .. } => self.over(turn),
                Action::OpenFailed { session, .. } => {
                    if let Some(Some(turn)) = self.sessions.remove(&session.0) {
                        self.over(turn);
                    }
                }
                Action::Emit { turn, .. } => {
                    assert!(!self.ended.contains_key(&turn.0), "an event after the end");
                }
                Action::Write(_)
                | Action::Ready
                | Action::Opened { .. }
                | Action::Withdraw { .. }
                | Action::Unasked { .. }
                | Action::Call { .. }
                | Action::Listen(_)
                | Action::Stop => {}
            }
        }
    }

    fn over(&mut self, turn: TurnKey) {
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

    fn say(&mut self, message: &Value) {
        self.give(stdout_line(message.to_string().as_bytes()));
    }

    fn reply(&mut self, at: usize, value: Option<Value>) {
        if self.pending.is_empty() {
            return;
        }
        let asked = self.pending.remove(at % self.pending.len());
        let id = &asked["id"];
        let result = match (asked["method"].as_str().unwrap(), &value) {
            (_, Some(Value::Object(fields))) if fields.len() % 2 == 1 => {
                let error = json!({ "code": 500, "message": "no", "data": value });
                return self.say(&json!({ "id": id, "error": error }));
            }
            (_, Some(value)) => value.clone(),
            ("session/new", None) => {
                let name = format!("s{id}");
                self.names.push(name.clone());
                json!({ "sessionId": name, "models": {} })
            }
            ("session/prompt", None) => json!({ "stopReason": "end_turn" }),
            _ => json!({ "models": {} }),
        };
        self.say(&json!({ "id": id, "result": result }));
    }

    fn name(&self, at: usize) -> &str {
        &self.names[at % self.names.len()]
    }

    fn happens(&mut self, what: Happens) {
        let choose = |at: usize, keys: Vec<u32>| (!keys.is_empty()).then(|| keys[at % keys.len()]);
        let keys = |is_busy: bool| {
            let of_kind = self.sessions.iter().filter(|(_, turn)| turn.is_some() == is_busy);
            of_kind.map(|(key, _)| *key).collect::<Vec<u32>>()
        };
        let (busy, idle) = (keys(true), keys(false));
        match what {
            Happens::Open { resumed } => {
                let session = SessionKey(self.n_sessions);
                self.n_sessions += 1;
                self.sessions.insert(session.0, None);
                let open = if resumed { resume(&format!("r{}", session.0)) } else { Open::New };
                let options = asking();
                self.give(Input::Order(Order::Open { session, open: &open, options: &options }));
            }
            Happens::Prompt(at, kind) => {
                let Some(key) = choose(at, idle) else { return };
                let turn = TurnKey(self.n_turns);
                self.n_turns += 1;
                self.begun.insert(turn.0);
                self.sessions.insert(key, Some(turn));
                let mut options = if kind == 0 { bypass() } else { asking() };
                options.model = (kind == 2).then(|| format!("m{}", turn.0));
                let session = SessionKey(key);
                let order = Order::Prompt { session, turn, prompt: "hi", options: &options };
                self.give(Input::Order(order));
            }
            Happens::Answer(at, yes) => {
                let names: Vec<String> = self.asked.keys().cloned().collect();
                let Some(request) = names.get(at % names.len().max(1)) else { return };
                let turn = self.asked.remove(request).unwrap();
                let why = String::new();
                let ruling = if yes { Ruling::Allow { text: None } } else { Ruling::Deny { why } };
                self.give(Input::Order(Order::Answer { turn, request, ruling: &ruling }));
            }
            Happens::Cancel(at) => {
                let turn = choose(at, busy).and_then(|key| self.sessions[&key]);
                if let Some(turn) = turn {
                    self.give(Input::Cancel { turn });
                }
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
            Happens::Reply(at, value) => self.reply(at, value),
            Happens::Tells(at, update) => {
                let params = json!({ "sessionId": self.name(at), "update": update });
                self.say(&json!({ "method": "session/update", "params": params }));
            }
            Happens::Asks(at, mut params) => {
                let method = if at % 3 == 0 { "brand/new" } else { "session/request_permission" };
                if let Some(fields) = params.as_object_mut() {
                    fields.insert("sessionId".to_owned(), json!(self.name(at)));
                }
                self.asks(method, &params);
            }
            Happens::Recorded(line, session) => {
                let mut message = RECORDED[line % RECORDED.len()].clone();
                message["params"]["sessionId"] = json!(self.name(session));
                if message.get("id").is_some() {
                    let method = message["method"].as_str().unwrap().to_owned();
                    self.asks(&method, &message["params"]);
                } else {
                    self.say(&message);
                }
            }
            Happens::Stderr(line) => {
                let bytes = line.as_bytes();
                self.give(Input::Line { from: Stream::Stderr, bytes, cut: false });
            }
            Happens::Garbage(bytes, stderr, cut) => {
                let from = if stderr { Stream::Stderr } else { Stream::Stdout };
                self.give(Input::Line { from, bytes: &bytes, cut });
            }
        }
    }

    fn asks(&mut self, method: &str, params: &Value) {
        let id = self.n_requests;
        self.n_requests += 1;
        self.unanswered.insert(id);
        self.say(&json!({ "id": id, "method": method, "params": params }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn every_turn_ends_once_and_every_request_is_answered(
        story in vec(happens(), 0..60),
        code in 0..3,
    ) {
        let mut world = World::new();
        for what in story {
            world.happens(what);
        }
        prop_assert!(!world.answered_twice, "a request was answered twice");
        // What has no reply waits for a person, in a turn that goes on.
        prop_assert!(
            world.unanswered.len() <= world.asked.len(),
            "unanswered {:?}, asked {:?}", world.unanswered, world.asked
        );
        world.give(Input::Exited(&exit(code, "")));
        for turn in &world.begun {
            prop_assert_eq!(world.ended.get(turn), Some(&1), "turn {}", turn);
        }
    }

    #[test]
    fn nothing_that_is_said_before_the_start_is_over_does_harm(
        lines in vec(any::<Vec<u8>>(), 0..20),
        number in any::<usize>(),
    ) {
        let mut talk = Talk::new();
        talk.order(Order::Start);
        for line in &lines {
            talk.step(stdout_line(line));
        }
        talk.say(&RECORDED[number % RECORDED.len()]);
        talk.step(Input::Exited(&exit(1, "")));
        let is_failed = |action: &&Action| matches!(action, Action::OpenFailed { .. });
        prop_assert_eq!(talk.actions.iter().filter(is_failed).count(), 1);
    }
}
