//! A driver that keeps its rules, an agent that keeps none, and what can happen
//! between them.

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::{Side, message};
use crate::{
    agent::{
        Action, Input, Order, SessionKey, TurnKey,
        testing::{Ledger, Talk, any_value, exit, stdout_line, written},
    },
    event::Stream,
    permission::Ruling,
    request::Open,
};

/// A session that nobody has opened.
const STRANGER: &str = "00000000-0000-4000-8000-000000000000";

/// One thing that happens. Numbers choose among what is there at that time.
#[derive(Clone, Debug)]
pub(crate) enum Happens {
    Open { resumed: bool },
    Prompt(usize, usize),
    Steer(usize),
    Decide(usize, bool),
    Cancel(usize),
    Abandon(usize),
    Close(usize),
    Ring(usize),
    Reply(usize, usize, Reply),
    Request(usize, usize, Value),
    Resolution(usize),
    Notification(usize, usize, Value),
    Recorded(usize, usize),
    Stderr(&'static str),
    Garbage(Vec<u8>, bool, bool),
}

/// How the agent answers.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Good,
    Error(Value),
    Odd(Value),
}

/// Makes a story of things that happen. It begins with a turn that runs, for else
/// many would end before anything is asked.
pub(crate) fn any_story<S: Side>() -> impl Strategy<Value = Vec<Happens>> {
    let n = any::<usize>;
    let value = || any_value(S::FIELDS);
    let reply = prop_oneof![
        8 => Just(Reply::Good),
        1 => value().prop_map(Reply::Error),
        1 => value().prop_map(Reply::Odd),
    ];
    let happens = prop_oneof![
        2 => any::<bool>().prop_map(|resumed| Happens::Open { resumed }),
        5 => (n(), n()).prop_map(|(at, choice)| Happens::Prompt(at, choice)),
        1 => n().prop_map(Happens::Steer),
        3 => (n(), any::<bool>()).prop_map(|(at, yes)| Happens::Decide(at, yes)),
        2 => n().prop_map(Happens::Cancel),
        1 => n().prop_map(Happens::Abandon),
        1 => n().prop_map(Happens::Close),
        2 => n().prop_map(Happens::Ring),
        9 => (n(), n(), reply).prop_map(|(at, choice, how)| Happens::Reply(at, choice, how)),
        6 => (n(), n(), value()).prop_map(|(at, choice, v)| Happens::Request(at, choice, v)),
        1 => n().prop_map(Happens::Resolution),
        5 => (n(), n(), value()).prop_map(|(at, choice, v)| Happens::Notification(at, choice, v)),
        8 => (n(), n()).prop_map(|(at, line)| Happens::Recorded(at, line)),
        2 => prop::sample::select(S::STDERR).prop_map(Happens::Stderr),
        2 => (vec(any::<u8>(), 0..40), any::<bool>(), any::<bool>())
            .prop_map(|(bytes, stderr, cut)| Happens::Garbage(bytes, stderr, cut)),
    ];
    let good = || Happens::Reply(0, 0, Reply::Good);
    let begin = [Happens::Open { resumed: false }, good(), Happens::Prompt(0, 0), good()];
    vec(happens, 0..60).prop_map(move |rest| begin.iter().cloned().chain(rest).collect())
}

/// Both sides. After each step the agent waits for exactly what a person is asked.
pub(crate) struct World<S> {
    talk: Talk<()>,
    ledger: Ledger,
    n_requests: u64,
    /// Our requests that the agent has not answered.
    pending: Vec<Value>,
    /// The ids of sessions that were said.
    names: Vec<String>,
    side: std::marker::PhantomData<S>,
}

impl<S: Side> World<S> {
    /// Begins with a process that is ready.
    pub(crate) fn new() -> Self {
        let mut world = Self {
            talk: Talk::with(S::dialect(), ()),
            ledger: Ledger::default(),
            n_requests: 0,
            pending: Vec::new(),
            names: vec![STRANGER.to_owned()],
            side: std::marker::PhantomData,
        };
        world.order(Order::Start);
        world.reply(0, 0, Reply::Good);
        assert!(world.ledger.is_ready());
        world
    }

    /// Lets everything happen, and then the process end.
    pub(crate) fn live(mut self, story: Vec<Happens>, code: i32) {
        for what in story {
            self.happens(what);
        }
        self.ledger.process_ended();
        self.give(Input::Exited(&exit(code, "")));
        self.ledger.check_all_ended();
    }

    fn give(&mut self, input: Input<'_>) {
        let actions = self.talk.step(input);
        self.ledger.take(&actions);
        for message in written(&actions) {
            self.note_name(&message, S::NAMES[0]);
            if message.get("method").is_none() {
                self.ledger.pay(&message["id"].to_string());
            } else if message.get("id").is_some() {
                S::check(&message, &self.pending);
                self.pending.push(message);
            } else if let Some(session) = S::stops(&message).and_then(|id| self.ledger.named(id)) {
                self.ledger.stop(session);
            }
        }
        self.ledger.check();
    }

    fn note_name(&mut self, message: &Value, place: &str) {
        let name = message.pointer(place).and_then(Value::as_str);
        if let Some(name) = name.filter(|name| !self.names.iter().any(|known| known == name)) {
            self.names.push(name.to_owned());
        }
    }

    fn name(&self, at: usize) -> &str {
        &self.names[at % self.names.len()]
    }

    fn order(&mut self, order: Order<'_>) {
        self.give(Input::Order(order));
    }

    fn say(&mut self, fields: Value) {
        self.give(stdout_line(message::<S>(fields).to_string().as_bytes()));
    }

    fn reply(&mut self, at: usize, choice: usize, how: Reply) {
        if self.pending.is_empty() {
            return;
        }
        let asked = self.pending.remove(at % self.pending.len());
        let result = match how {
            Reply::Good => S::complete(S::result(&asked, choice), &asked),
            Reply::Odd(value) => value,
            Reply::Error(data) => {
                let error = json!({ "code": 500, "message": "no", "data": data });
                return self.say(json!({ "id": asked["id"], "error": error }));
            }
        };
        self.note_name(&result, S::NAMES[1]);
        self.say(json!({ "id": asked["id"], "result": result }));
    }

    /// The agent makes a request. It may name them with numbers and with texts.
    fn request(&mut self, method: &str, params: &Value) {
        self.n_requests += 1;
        let number = self.n_requests;
        let id = if number.is_multiple_of(3) { json!(number.to_string()) } else { json!(number) };
        self.ledger.owe(id.to_string());
        self.say(json!({ "id": id, "method": method, "params": params }));
    }

    fn decide(&mut self, request: &str, is_allowed: bool) {
        let turn = self.ledger.decide(request);
        let why = String::new();
        let ruling = if is_allowed { Ruling::Allow { text: None } } else { Ruling::Deny { why } };
        self.order(Order::Answer { turn, request, ruling: &ruling });
    }

    /// Cancels as the driver does: it answers first what is asked.
    fn cancel(&mut self, turn: TurnKey) {
        for request in self.ledger.asked_in(turn) {
            self.decide(&request, false);
        }
        self.give(Input::Cancel { turn });
    }

    fn close(&mut self, session: Option<SessionKey>) {
        if let Some(session) = session {
            self.ledger.close(session);
            self.order(Order::Close { session });
        }
    }

    fn happens(&mut self, what: Happens) {
        let (busy, idle) = (self.ledger.sessions(true), self.ledger.sessions(false));
        let running = self.ledger.running();
        match what {
            Happens::Open { resumed } => {
                let session = self.ledger.open();
                let open = if resumed { S::resumed(session.0) } else { Open::New };
                let options = S::options(0);
                self.order(Order::Open { session, open: &open, options: &options });
            }
            Happens::Prompt(at, choice) => {
                let Some(session) = choose(&idle, at) else { return };
                let turn = self.ledger.begin(session);
                let options = S::options(choice);
                self.order(Order::Prompt { session, turn, prompt: "hi", options: &options });
            }
            Happens::Steer(at) => {
                if let Some(turn) = choose(&running, at) {
                    self.order(Order::Steer { turn, text: "more" });
                }
            }
            Happens::Decide(at, is_allowed) => {
                if let Some(request) = choose(&self.ledger.asked(), at) {
                    self.decide(&request, is_allowed);
                }
            }
            Happens::Cancel(at) => {
                if let Some(turn) = choose(&running, at) {
                    self.cancel(turn);
                }
            }
            Happens::Abandon(at) => self.close(choose(&busy, at)),
            Happens::Close(at) => self.close(choose(&idle, at)),
            Happens::Ring(at) => {
                if let Some(timer) = self.ledger.take_timer(at) {
                    self.give(Input::Timer(timer));
                }
            }
            Happens::Reply(at, choice, how) => self.reply(at, choice, how),
            Happens::Request(at, choice, value) => {
                let (method, params) = S::request(self.name(at), choice, value);
                self.request(method, &params);
            }
            Happens::Resolution(at) => {
                let Some(id) = choose(&self.ledger.owed(), at) else { return };
                let resolution = S::resolution(&serde_json::from_str(&id).unwrap());
                if let Some((method, params)) = resolution {
                    self.ledger.forgive(&id);
                    self.say(json!({ "method": method, "params": params }));
                }
            }
            Happens::Notification(at, choice, value) => {
                let (method, params) = S::notification(self.name(at), choice, value);
                self.say(json!({ "method": method, "params": params }));
            }
            Happens::Recorded(at, line) => {
                let mut message = S::recorded()[line % S::recorded().len()].clone();
                S::address(&mut message, self.name(at));
                if message.get("id").is_some() {
                    let method = message["method"].as_str().unwrap();
                    self.request(method, &message["params"]);
                } else {
                    self.say(message);
                }
            }
            Happens::Stderr(line) => {
                let bytes = line.as_bytes();
                self.give(Input::Line { from: Stream::Stderr, bytes, cut: false });
            }
            Happens::Garbage(bytes, is_stderr, cut) => {
                let from = if is_stderr { Stream::Stderr } else { Stream::Stdout };
                self.give(Input::Line { from, bytes: &bytes, cut });
            }
        }
    }
}

fn choose<T: Clone>(among: &[T], at: usize) -> Option<T> {
    among.get(at % among.len().max(1)).cloned()
}

/// Asserts that a process which ends before it is ready says so once, whatever
/// it has said.
pub(crate) fn survives_before_the_start<S: Side>(lines: &[Vec<u8>], line: usize) {
    let mut talk = Talk::with(S::dialect(), ());
    talk.order(Order::Start);
    for line in lines {
        talk.step(stdout_line(line));
    }
    talk.say(&S::recorded()[line % S::recorded().len()]);
    talk.exit(&exit(1, ""));
    let is_failed = |action: &&Action| matches!(action, Action::OpenFailed { .. });
    assert_eq!(talk.actions.iter().filter(is_failed).count(), 1);
}
