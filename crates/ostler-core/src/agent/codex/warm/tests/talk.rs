//! A conversation between the state machine and a server that a test plays.

use serde_json::{Value, json};

use super::{THREAD, TURN, options};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, ONLY_SESSION, Order, SessionKey, TimerKey, TurnKey,
        WarmLaunch,
        codex::{SPEC, warm::WARM},
        testing::stdout_line,
    },
    event::Stream,
    permission::Ruling,
    request::{Open, Options},
};

/// A conversation.
pub(super) struct Talk {
    dialect: Box<dyn Dialect>,
    /// Everything that followed so far.
    pub(super) actions: Vec<Action>,
}

impl Talk {
    /// Begins one; nothing was said yet.
    pub(super) fn new() -> Self {
        Self::with_variables(&[])
    }

    pub(super) fn with_variables(variables: &[(&str, &str)]) -> Self {
        let options = options();
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let launch = WarmLaunch {
            spec: &SPEC,
            options: &options,
            open: &Open::New,
            new_id: "",
            version: None,
            variables: &variables,
            run_dir: std::path::Path::new("/run"),
        };
        Self { dialect: (WARM.dialect)(&launch), actions: Vec::new() }
    }

    /// Begins one in which the server is ready.
    pub(super) fn ready() -> Self {
        let mut talk = Self::new();
        talk.order(Order::Start);
        talk.answer_ok("initialize", json!({ "userAgent": "ostler/0.166.0 (x)" }));
        talk
    }

    /// Begins one with an open session.
    pub(super) fn open(options: &Options) -> Self {
        let mut talk = Self::ready();
        talk.open_session(ONLY_SESSION, &Open::New, options);
        talk.answer_ok("thread/start", thread(THREAD));
        talk
    }

    /// Begins one with a turn that runs.
    pub(super) fn running(options: &Options, turn: TurnKey) -> Self {
        let mut talk = Self::open(options);
        talk.prompt(turn, "hi", options);
        talk.answer_ok("turn/start", json!({ "turn": { "id": TURN } }));
        talk.tell("turn/started", json!({ "threadId": THREAD, "turn": { "id": TURN } }));
        talk
    }

    /// Gives an input; returns what followed from it.
    pub(super) fn step(&mut self, input: Input<'_>) -> Vec<Action> {
        let mut out = Vec::new();
        self.dialect.step(jiff::Timestamp::UNIX_EPOCH, input, &mut out);
        self.actions.extend(out.iter().cloned());
        out
    }

    pub(super) fn order(&mut self, order: Order<'_>) -> Vec<Action> {
        self.step(Input::Order(order))
    }

    pub(super) fn open_session(&mut self, session: SessionKey, open: &Open, options: &Options) {
        self.order(Order::Open { session, open, options });
    }

    pub(super) fn prompt(&mut self, turn: TurnKey, prompt: &str, options: &Options) -> Vec<Action> {
        self.order(Order::Prompt { session: ONLY_SESSION, turn, prompt, options })
    }

    pub(super) fn decide(&mut self, turn: TurnKey, request: &str, ruling: &Ruling) -> Vec<Action> {
        self.order(Order::Answer { turn, request, ruling })
    }

    pub(super) fn cancel(&mut self, turn: TurnKey) -> Vec<Action> {
        self.step(Input::Cancel { turn })
    }

    /// The server says something.
    pub(super) fn say(&mut self, message: &Value) -> Vec<Action> {
        self.step(stdout_line(message.to_string().as_bytes()))
    }

    /// The server tells something.
    pub(super) fn tell(&mut self, method: &str, params: Value) -> Vec<Action> {
        self.say(&json!({ "method": method, "params": params }))
    }

    /// The server tells something of the running turn.
    pub(super) fn tell_turn(&mut self, method: &str, mut params: Value) -> Vec<Action> {
        params["threadId"] = THREAD.into();
        params["turnId"] = TURN.into();
        self.tell(method, params)
    }

    /// The server says that the turn is over.
    pub(super) fn over(&mut self, status: &str, error: Value) -> Vec<Action> {
        let turn = json!({ "id": TURN, "status": status, "items": [], "error": error });
        self.tell("turn/completed", json!({ "threadId": THREAD, "turn": turn }))
    }

    /// The server does what it was asked last by this method.
    pub(super) fn answer_ok(&mut self, method: &str, result: Value) -> Vec<Action> {
        let request = self.last_request(method);
        let result = as_asked(result, &request["params"]);
        self.say(&json!({ "id": request["id"], "result": result }))
    }

    /// The server closes the thread that is to be opened anew.
    pub(super) fn close_thread(&mut self) -> Vec<Action> {
        let mut then = self.answer_ok("thread/unsubscribe", json!({ "status": "unsubscribed" }));
        then.extend(self.tell("thread/closed", json!({ "threadId": THREAD })));
        then
    }

    /// The server does not do what it was asked last by this method.
    pub(super) fn answer_error(&mut self, method: &str, message: &str) -> Vec<Action> {
        let id = self.last_request(method)["id"].clone();
        self.say(&json!({ "id": id, "error": { "code": -32600, "message": message } }))
    }

    /// The timer that was armed last rings.
    pub(super) fn ring(&mut self) -> Vec<Action> {
        let armed = self.actions.iter().rev().find_map(|action| {
            let Action::Arm { timer, .. } = action else { return None };
            Some(*timer)
        });
        self.step(Input::Timer(armed.unwrap_or(TimerKey(0))))
    }

    pub(super) fn stderr(&mut self, line: &str) -> Vec<Action> {
        let bytes = line.as_bytes();
        self.step(Input::Line { from: Stream::Stderr, bytes, cut: false })
    }

    pub(super) fn exit(&mut self, exit: &Exit) -> Vec<Action> {
        self.step(Input::Exited(exit))
    }

    /// Everything that was written to the server.
    pub(super) fn written(&self) -> Vec<Value> {
        written(&self.actions)
    }

    /// The last request to the server by this method.
    pub(super) fn last_request(&self, method: &str) -> Value {
        let found = self.written().into_iter().rfind(|message| message["method"] == method);
        found.unwrap_or_else(|| panic!("{method} was not asked for: {:?}", self.written()))
    }
}

/// What was written to the server.
pub(super) fn written(actions: &[Action]) -> Vec<Value> {
    let written = actions.iter().filter_map(|action| {
        let Action::Write(bytes) = action else { return None };
        Some(serde_json::from_slice(bytes).expect("one message"))
    });
    written.collect()
}

/// The methods that were written to the server.
pub(super) fn methods(actions: &[Action]) -> Vec<String> {
    let written = written(actions).into_iter();
    written.filter_map(|message| Some(message["method"].as_str()?.to_owned())).collect()
}

/// A thread as the server tells it.
pub(super) fn thread(id: &str) -> Value {
    let path = format!("/home/user/.codex/sessions/{id}.jsonl");
    json!({ "thread": { "id": id, "path": path }, "model": "gpt-5.5" })
}

/// Adds to a thread that it is held to what was asked for.
pub(super) fn as_asked(mut result: Value, params: &Value) -> Value {
    if result["thread"].is_object() && result.get("sandbox").is_none() {
        result["approvalPolicy"] = params["approvalPolicy"].clone();
        result["sandbox"] = sandbox(params["sandbox"].as_str().unwrap());
    }
    result
}

/// A sandbox as the server tells it.
pub(super) fn sandbox(asked: &str) -> Value {
    match asked {
        "danger-full-access" => json!({ "type": "dangerFullAccess" }),
        "workspace-write" => json!({ "type": "workspaceWrite", "writableRoots": ["/extra"] }),
        "read-only" => json!({ "type": "readOnly", "networkAccess": false }),
        other => panic!("what is {other}?"),
    }
}
