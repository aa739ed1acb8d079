//! A conversation between the state machine and a server that a test plays.

use serde_json::{Value, json};

use super::{
    THREAD, TURN, options,
    server::{Codex, thread},
};
use crate::{
    agent::{
        Action, ONLY_SESSION, Order, TurnKey, WarmLaunch,
        codex::{SPEC, warm::WARM},
        testing::{self, warm_launch_of},
    },
    request::{Open, Options},
};

/// A conversation.
pub(super) type Talk = testing::Talk<Codex>;

impl Talk {
    /// Begins one; nothing was said yet.
    pub(super) fn new() -> Self {
        Self::playing(Codex)
    }

    pub(super) fn with_variables(variables: &[(&str, &str)]) -> Self {
        let (options, open) = (options(), Open::New);
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let launch = WarmLaunch { variables: &variables, ..warm_launch_of(&SPEC, &options, &open) };
        Self::with((WARM.dialect)(&launch), Codex)
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
        talk.notify("turn/started", json!({ "threadId": THREAD, "turn": { "id": TURN } }));
        talk
    }

    /// The server tells something of the running turn.
    pub(super) fn tell_turn(&mut self, method: &str, mut params: Value) -> Vec<Action> {
        params["threadId"] = THREAD.into();
        params["turnId"] = TURN.into();
        self.notify(method, params)
    }

    /// The server says that the turn is over.
    pub(super) fn over(&mut self, status: &str, error: Value) -> Vec<Action> {
        let turn = json!({ "id": TURN, "status": status, "items": [], "error": error });
        self.notify("turn/completed", json!({ "threadId": THREAD, "turn": turn }))
    }

    /// The server closes the thread that is to be opened anew.
    pub(super) fn close_thread(&mut self) -> Vec<Action> {
        let mut then = self.answer_ok("thread/unsubscribe", json!({ "status": "unsubscribed" }));
        then.extend(self.notify("thread/closed", json!({ "threadId": THREAD })));
        then
    }

    /// The server does not do what it was asked last by this method.
    pub(super) fn refuse(&mut self, method: &str, message: &str) -> Vec<Action> {
        self.answer_error(method, json!({ "code": -32600, "message": message }))
    }
}
