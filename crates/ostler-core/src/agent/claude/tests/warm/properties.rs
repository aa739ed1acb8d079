//! What holds however lines, orders, answers, cancels, timers and the end come.

use std::{collections::VecDeque, sync::LazyLock};

use proptest::prelude::*;

use super::*;
use crate::{
    agent::testing::{Ledger, any_value, recorded_lines},
    event::Stream,
};

/// Every line that a kept process was recorded with.
static RECORDED: LazyLock<Vec<Value>> = LazyLock::new(|| recorded_lines("claude", "recv"));

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
    /// The CLI asks before it runs a tool.
    Asks {
        tool: &'static str,
    },
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
        3 => select(vec!["Bash", "AskUserQuestion"]).prop_map(|tool| Move::Asks { tool }),
        3 => state.prop_map(Move::Lifecycle),
        4 => any::<bool>().prop_map(|error| Move::Respond { error }),
        4 => select(vec![None, Some("opus"), Some("haiku")]).prop_map(|model| Move::Prompt { model }),
        3 => (any::<Index>(), any::<bool>()).prop_map(|(at, allow)| Move::Answer { at, allow }),
        2 => any::<Index>().prop_map(|at| Move::Cancel { at }),
        1 => any::<Index>().prop_map(|at| Move::Timer { at }),
    ]
}

/// Keeps to what the driver promises. After each step the CLI waits for exactly
/// what a person is asked.
struct Driver {
    talk: Talk,
    ledger: Ledger,
    /// Our requests that the CLI has not answered.
    requests: VecDeque<String>,
    /// The id of the newest prompt.
    message: Option<String>,
    n_asks: u32,
}

impl Driver {
    fn new() -> Self {
        let talk = Talk::start(options(), &Open::New);
        let started = talk.actions.clone();
        let mut driver = Self {
            talk,
            ledger: Ledger::default(),
            requests: VecDeque::new(),
            message: None,
            n_asks: 0,
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
            Move::Asks { tool } => {
                self.n_asks += 1;
                let questions = json!([{ "question": "1?" }, { "question": "2?" }]);
                let line =
                    asks(&format!("a{}", self.n_asks), tool, &json!({ "questions": questions }));
                self.line(&line);
            }
            Move::Lifecycle(state) => {
                if let Some(id) = &self.message {
                    let line = lifecycle(id, state);
                    self.line(&line);
                }
            }
            Move::Respond { error } => {
                if let Some(id) = self.requests.pop_front() {
                    // A greeting that is refused is no process that is kept.
                    let subtype =
                        if *error && self.ledger.is_ready() { "error" } else { "success" };
                    let response = json!({"subtype": subtype, "request_id": id, "response": {}});
                    self.line(&json!({"type": "control_response", "response": response}));
                }
            }
            Move::Prompt { model } if self.ledger.is_ready() && !self.is_prompted() => {
                let turn = self.ledger.begin(ONLY_SESSION);
                self.talk.played.options.model = model.map(str::to_owned);
                let out = self.talk.prompt(turn.0, "hi");
                self.took(&out);
            }
            Move::Answer { at, allow } if !self.ledger.asked().is_empty() => {
                let asked = self.ledger.asked();
                self.answer(&asked[at.index(asked.len())], *allow);
            }
            Move::Cancel { at } if !self.ledger.running().is_empty() => {
                let turn = *at.get(&self.ledger.running());
                for request in self.ledger.asked_in(turn) {
                    self.answer(&request, false);
                }
                let out = self.talk.cancel(turn.0);
                self.took(&out);
            }
            Move::Timer { at } => {
                if let Some(timer) = self.ledger.take_timer(at.index(usize::MAX)) {
                    let out = self.talk.step(Input::Timer(timer));
                    self.took(&out);
                }
            }
            Move::Prompt { .. } | Move::Answer { .. } | Move::Cancel { .. } => {}
        }
    }

    /// Returns whether a turn runs that somebody asked for.
    fn is_prompted(&self) -> bool {
        self.ledger.running().iter().any(|turn| turn.0 < u32::MAX / 2)
    }

    fn answer(&mut self, request: &str, allow: bool) {
        let turn = self.ledger.decide(request);
        let ruling = match allow {
            true => Ruling::Allow { text: Some("yes".into()) },
            false => Ruling::Deny { why: "no".into() },
        };
        let out = self.talk.answer(turn.0, request, &ruling);
        self.took(&out);
    }

    fn line(&mut self, line: &Value) {
        let id = line["request_id"].as_str().filter(|id| !id.is_empty());
        match (line["type"].as_str(), id) {
            (Some("control_request"), Some(id)) => self.ledger.owe(id),
            (Some("control_cancel_request"), Some(id)) => self.ledger.forgive(id),
            _ => {}
        }
        let out = self.talk.say(line);
        self.took(&out);
    }

    fn took(&mut self, out: &[Action]) {
        let was_ready = self.ledger.is_ready();
        self.ledger.take(out);
        if self.ledger.is_ready() && !was_ready {
            assert_eq!(self.ledger.open(), ONLY_SESSION);
            self.talk.open(&Open::New);
        }
        for line in written(out) {
            match line["type"].as_str().unwrap() {
                "control_response" => {
                    self.ledger.pay(line["response"]["request_id"].as_str().unwrap());
                }
                "control_request" => {
                    self.requests.push_back(line["request_id"].as_str().unwrap().to_owned());
                }
                _ => self.message = line["uuid"].as_str().map(str::to_owned),
            }
        }
        self.ledger.check();
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
        driver.ledger.process_ended();
        let out = driver.talk.exit(&exit(1, "gone"));
        driver.took(&out);
        driver.ledger.check_all_ended();
    }
}
