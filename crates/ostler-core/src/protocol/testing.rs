//! What the tests of everything share that speaks JSON-RPC: a conversation with
//! an agent that is played, and the world in which anything happens.

mod world;

use serde_json::{Value, json};

pub(crate) use self::world::{World, any_story, survives_before_the_start};
use super::jsonrpc::Form;
use crate::{
    agent::{
        Action, Dialect, Input, ONLY_SESSION, Order, SessionKey, TurnKey,
        testing::{Talk, written},
    },
    permission::Ruling,
    request::{Open, Options},
};

/// An agent that can be played.
pub(crate) trait Side {
    /// The form of its messages.
    const FORM: Form;
    /// The fields that its messages have.
    const FIELDS: &'static [&'static str];
    /// What it prints on standard error.
    const STDERR: &'static [&'static str];
    /// Where a message to it names a session, and where a result does.
    const NAMES: [&'static str; 2];

    /// Makes the state machine that speaks with it.
    fn dialect() -> Box<dyn Dialect>;

    /// Returns the requests and notifications that a real one sent.
    fn recorded() -> &'static [Value];

    /// Returns the nth session of those that it has from before.
    fn resumed(number: u32) -> Open;

    /// Returns options for a prompt.
    fn options(choice: usize) -> Options;

    /// Returns a good answer to what it was asked.
    fn result(asked: &Value, choice: usize) -> Value;

    /// Adds to an answer what follows from what was asked.
    fn complete(result: Value, _asked: &Value) -> Value {
        result
    }

    /// Makes method and parameters of a request about a session.
    fn request(session: &str, choice: usize, value: Value) -> (&'static str, Value);

    /// Makes method and parameters of a notification about a session.
    fn notification(session: &str, choice: usize, value: Value) -> (&'static str, Value);

    /// Makes a recorded message one about a session.
    fn address(message: &mut Value, session: &str);

    /// Returns the session whose turn a message tells it to stop, so that it
    /// waits for nothing there.
    fn stops(_message: &Value) -> Option<&str> {
        None
    }

    /// Makes method and parameters of the notification that it does not wait any
    /// more for the answer to a request, if it can say so.
    fn resolution(_id: &Value) -> Option<(&'static str, Value)> {
        None
    }

    /// Asserts what must hold of a request beside those that it has not answered.
    fn check(_request: &Value, _pending: &[Value]) {}
}

/// Makes a message of its fields.
fn message<S: Side>(mut fields: Value) -> Value {
    if S::FORM == Form::Marked {
        fields["jsonrpc"] = "2.0".into();
    }
    fields
}

impl<S: Side> Talk<S> {
    /// Begins one; nothing was said yet.
    pub(crate) fn playing(played: S) -> Self {
        Self::with(S::dialect(), played)
    }

    pub(crate) fn open_session(
        &mut self,
        session: SessionKey,
        open: &Open,
        options: &Options,
    ) -> Vec<Action> {
        self.order(Order::Open { session, open, options })
    }

    pub(crate) fn prompt(&mut self, turn: TurnKey, prompt: &str, options: &Options) -> Vec<Action> {
        self.order(Order::Prompt { session: ONLY_SESSION, turn, prompt, options })
    }

    pub(crate) fn decide(&mut self, turn: TurnKey, request: &str, ruling: &Ruling) -> Vec<Action> {
        self.order(Order::Answer { turn, request, ruling })
    }

    pub(crate) fn cancel(&mut self, turn: TurnKey) -> Vec<Action> {
        self.step(Input::Cancel { turn })
    }

    /// The agent tells something.
    pub(crate) fn notify(&mut self, method: &str, params: Value) -> Vec<Action> {
        self.say(&message::<S>(json!({ "method": method, "params": params })))
    }

    /// The agent wants something.
    pub(crate) fn request(&mut self, id: Value, method: &str, params: Value) -> Vec<Action> {
        self.say(&message::<S>(json!({ "id": id, "method": method, "params": params })))
    }

    /// The agent does what it was asked last by this method.
    pub(crate) fn answer_ok(&mut self, method: &str, result: Value) -> Vec<Action> {
        let asked = self.last_request(method);
        let result = S::complete(result, &asked);
        self.say(&message::<S>(json!({ "id": asked["id"], "result": result })))
    }

    /// The agent does not do what it was asked last by this method.
    pub(crate) fn answer_error(&mut self, method: &str, error: Value) -> Vec<Action> {
        let id = self.last_request(method)["id"].take();
        self.say(&message::<S>(json!({ "id": id, "error": error })))
    }

    /// The last request to the agent by this method.
    pub(crate) fn last_request(&self, method: &str) -> Value {
        let found = self.written().into_iter().rfind(|message| message["method"] == method);
        found.unwrap_or_else(|| panic!("{method} was not asked for: {:?}", self.written()))
    }
}

/// The methods that were written to the agent.
pub(crate) fn methods(actions: &[Action]) -> Vec<String> {
    let written = written(actions).into_iter();
    written.filter_map(|message| Some(message["method"].as_str()?.to_owned())).collect()
}
