//! What holds however lines, orders, answers, cancels, timers and the end come.

use std::{
    collections::{HashSet, VecDeque},
    fs,
    path::Path,
    sync::LazyLock,
};

use proptest::prelude::*;

use super::*;
use crate::{
    agent::{TimerKey, testing::any_value},
    event::Stream,
};

/// Every line that a kept process was recorded with.
static RECORDED: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/claude");
    let mut lines = Vec::new();
    for version in fs::read_dir(fixtures).unwrap() {
        for file in fs::read_dir(version.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                let text = fs::read_to_string(path).unwrap();
                let entries = text.lines().map(|line| serde_json::from_str(line).unwrap());
                let said = entries.filter(|entry: &Value| entry["dir"] == "recv");
                lines.extend(said.map(|mut entry| entry["msg"].take()));
            }
        }
    }
    lines
});

const KEYS: &[&str] = &[
    "type",
    "subtype",
    "request_id",
    "request",
    "response",
    "tool_name",
    "input",
    "questions",
    "question",
    "options",
    "label",
    "command_uuid",
    "state",
    "user_message_uuids",
    "result",
    "origin",
    "is_error",
    "task_id",
    "capabilities",
    "session_id",
    "cancelled",
    "message",
];

#[derive(Clone, Debug)]
enum Move {
    /// A recorded line, with its ids of messages and answers made ours or not.
    Recorded {
        at: prop::sample::Index,
        ours: bool,
    },
    Garbage {
        bytes: Vec<u8>,
        cut: bool,
        stderr: bool,
    },
    Value(Value),
    Lifecycle(&'static str),
    /// The CLI answers our oldest request.
    Respond {
        error: bool,
    },
    Prompt {
        model: Option<&'static str>,
    },
    Answer {
        at: prop::sample::Index,
        allow: bool,
    },
    Cancel {
        at: prop::sample::Index,
    },
    Timer {
        at: prop::sample::Index,
    },
}

fn any_move() -> impl Strategy<Value = Move> {
    use prop::sample::{Index, select};
    let state = select(vec!["queued", "started", "completed", "cancelled"]);
    prop_oneof![
        12 => (any::<Index>(), any::<bool>()).prop_map(|(at, ours)| Move::Recorded { at, ours }),
        1 => (any::<Vec<u8>>(), any::<bool>(), any::<bool>())
            .prop_map(|(bytes, cut, stderr)| Move::Garbage { bytes, cut, stderr }),
        2 => any_value(KEYS).prop_map(Move::Value),
        3 => state.prop_map(Move::Lifecycle),
        4 => any::<bool>().prop_map(|error| Move::Respond { error }),
        4 => select(vec![None, Some("opus"), Some("haiku")]).prop_map(|model| Move::Prompt { model }),
        3 => (any::<Index>(), any::<bool>()).prop_map(|(at, allow)| Move::Answer { at, allow }),
        2 => any::<Index>().prop_map(|at| Move::Cancel { at }),
        1 => any::<Index>().prop_map(|at| Move::Timer { at }),
    ]
}

/// Keeps to what the driver promises, and counts.
struct Driver {
    talk: Talk,
    is_ready: bool,
    /// Our requests that the CLI has not answered.
    requests: VecDeque<String>,
    /// The id of the newest prompt.
    message: Option<String>,
    prompted: u32,
    active: Option<u32>,
    begun: HashSet<u32>,
    ended: Vec<u32>,
    armed: Vec<TimerKey>,
    open: Vec<(u32, String)>,
    /// Requests of the CLI that it waits for.
    owed: Vec<(Option<u32>, String)>,
}

impl Driver {
    fn new() -> Self {
        let talk = Talk::start(options(), &Open::New);
        let started = talk.said.clone();
        let mut driver = Self {
            talk,
            is_ready: false,
            requests: VecDeque::new(),
            message: None,
            prompted: 0,
            active: None,
            begun: HashSet::new(),
            ended: Vec::new(),
            armed: Vec::new(),
            open: Vec::new(),
            owed: Vec::new(),
        };
        driver.took(&started);
        driver
    }

    fn make(&mut self, made: &Move) {
        match made {
            Move::Recorded { at, ours } => {
                let mut line = at.get(&RECORDED).clone();
                if let (true, Some(id), true) =
                    (*ours, &self.message, line.get("user_message_uuids").is_some())
                {
                    line["user_message_uuids"] = json!([id]);
                }
                self.line(&line);
            }
            Move::Garbage { bytes, cut, stderr } => {
                let from = if *stderr { Stream::Stderr } else { Stream::Stdout };
                let out = self.talk.step(Input::Line { from, bytes, cut: *cut });
                self.took(&out);
            }
            Move::Value(value) => self.line(value),
            Move::Lifecycle(state) => {
                if let Some(id) = &self.message {
                    let line = lifecycle(id, state);
                    self.line(&line);
                }
            }
            Move::Respond { error } => {
                if let Some(id) = self.requests.pop_front() {
                    // A greeting that is refused is no process that is kept.
                    let subtype = if *error && self.is_ready { "error" } else { "success" };
                    let response = json!({"subtype": subtype, "request_id": id, "response": {}});
                    self.line(&json!({"type": "control_response", "response": response}));
                }
            }
            Move::Prompt { model } if self.is_ready && self.active.is_none() => {
                let turn = self.prompted;
                self.prompted += 1;
                self.active = Some(turn);
                self.begun.insert(turn);
                self.talk.options.model = model.map(str::to_owned);
                let out = self.talk.prompt(turn, "hi");
                self.took(&out);
            }
            Move::Answer { at, allow } if !self.open.is_empty() => {
                let (turn, request) = self.open.remove(at.index(self.open.len()));
                let ruling = match allow {
                    true => Ruling::Allow { text: Some("yes".into()) },
                    false => Ruling::Deny { why: "no".into() },
                };
                let out = self.talk.answer(turn, &request, &ruling);
                self.took(&out);
            }
            Move::Cancel { at } if !self.begun.is_empty() => {
                let mut turns: Vec<_> = self.begun.iter().copied().collect();
                turns.sort_unstable();
                let out = self.talk.cancel(*at.get(&turns));
                self.took(&out);
            }
            Move::Timer { at } if !self.armed.is_empty() => {
                let timer = self.armed.remove(at.index(self.armed.len()));
                let out = self.talk.step(Input::Timer(timer));
                self.took(&out);
            }
            Move::Prompt { .. }
            | Move::Answer { .. }
            | Move::Cancel { .. }
            | Move::Timer { .. } => {}
        }
    }

    fn line(&mut self, line: &Value) {
        let before = self.talk.said.len();
        let out = self.talk.line(line);
        let id = line["request_id"].as_str().filter(|id| !id.is_empty());
        if let (Some("control_request"), Some(id)) = (line["type"].as_str(), id) {
            let turn = self.talk.said[before..].iter().find_map(|action| {
                let Action::Ask { turn, .. } = action else { return None };
                Some(turn.0)
            });
            if !self.owed.iter().any(|(_, known)| known == id) {
                self.owed.push((turn, id.to_owned()));
            }
        }
        if let (Some("control_cancel_request"), Some(id)) = (line["type"].as_str(), id) {
            self.owed.retain(|(_, known)| known != id);
        }
        self.took(&out);
    }

    fn took(&mut self, out: &[Action]) {
        for action in out {
            match action {
                Action::Ready => {
                    assert!(!self.is_ready, "ready once");
                    self.is_ready = true;
                    self.talk.open(&Open::New);
                }
                Action::Unasked { turn, .. } => {
                    assert!(self.begun.insert(turn.0), "a turn begins once");
                }
                Action::Emit { turn, .. } => {
                    let is_open = self.begun.contains(&turn.0) && !self.ended.contains(&turn.0);
                    assert!(is_open, "told of a turn that does not run");
                }
                Action::EndTurn { turn, .. } => {
                    assert!(self.begun.contains(&turn.0), "a turn that never began");
                    assert!(!self.ended.contains(&turn.0), "a turn ends once");
                    self.ended.push(turn.0);
                    self.open.retain(|(open, _)| *open != turn.0);
                    self.active.take_if(|active| *active == turn.0);
                }
                Action::Ask { turn, permission } => {
                    assert!(!self.ended.contains(&turn.0), "asked in a turn that is over");
                    let request = permission.request.clone();
                    assert!(!self.open.iter().any(|(_, open)| *open == request), "asked once");
                    self.open.push((turn.0, request));
                }
                Action::Withdraw { request, .. } => {
                    self.open.retain(|(_, open)| open != request);
                }
                Action::Arm { timer, .. } => self.armed.push(*timer),
                Action::Write(_)
                | Action::Stop
                | Action::Opened { .. }
                | Action::Call { .. }
                | Action::Listen(_)
                | Action::OpenFailed { .. } => {}
            }
        }
        for line in written(out) {
            match line["type"].as_str().unwrap() {
                "control_response" => {
                    let id = line["response"]["request_id"].as_str().unwrap();
                    self.owed.retain(|(_, owed)| owed != id);
                }
                "control_request" => {
                    self.requests.push_back(line["request_id"].as_str().unwrap().to_owned());
                }
                _ => self.message = line["uuid"].as_str().map(str::to_owned),
            }
        }
        let ended = &self.ended;
        for (turn, id) in &self.owed {
            let turn = turn.expect("answered at once, or asked");
            assert!(!ended.contains(&turn), "{id} is left open by a turn that is over");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_turn_ends_once_and_every_request_is_answered(
        moves in prop::collection::vec(any_move(), 0..60), is_ready in prop::bool::weighted(0.9)
    ) {
        let mut driver = Driver::new();
        if is_ready {
            driver.make(&Move::Respond { error: false });
        }
        for made in &moves {
            driver.make(made);
        }
        let out = driver.talk.exit(&exit(1, "gone"));
        driver.owed.clear();
        driver.took(&out);
        let mut ended = driver.ended.clone();
        ended.sort_unstable();
        let mut begun: Vec<_> = driver.begun.into_iter().collect();
        begun.sort_unstable();
        prop_assert_eq!(ended, begun);
    }
}
