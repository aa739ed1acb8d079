//! A conversation between the state machine and an agent that a test plays.

use serde_json::{Value, json};

use super::*;
use crate::{
    agent::{Dialect, ONLY_SESSION, Order, SessionKey, TimerKey, WarmLaunch, testing::stdout_line},
    permission::Ruling,
};

/// A conversation.
pub(super) struct Talk {
    dialect: Box<dyn Dialect>,
    /// Everything that followed so far.
    pub(super) actions: Vec<Action>,
    /// The id that the agent is told for the session.
    pub(super) wire_id: String,
}

impl Talk {
    /// Begins one; nothing was said yet.
    pub(super) fn new() -> Self {
        let options = options();
        let launch = WarmLaunch {
            spec: &SPEC,
            options: &options,
            open: &Open::New,
            new_id: "",
            version: None,
            variables: &[],
            run_dir: Path::new(RUN_DIR),
        };
        let dialect = (WARM.dialect)(&launch);
        Self { dialect, actions: Vec::new(), wire_id: SESSION.to_owned() }
    }

    /// Begins one in which the agent is ready.
    pub(super) fn ready() -> Self {
        let mut talk = Self::new();
        talk.order(Order::Start);
        talk.answer_ok(
            "initialize",
            json!({
                "protocolVersion": 1,
                "agentInfo": { "version": "0.61.0" },
                "agentCapabilities": { "loadSession": true },
            }),
        );
        talk
    }

    /// Begins one with an open session.
    pub(super) fn open(options: &Options) -> Self {
        let mut talk = Self::ready();
        talk.open_session(ONLY_SESSION, &Open::New, options);
        talk.answer_ok("session/new", json!({ "sessionId": SESSION, "models": {} }));
        talk
    }

    /// Begins one with a session that is gone on with, as far as the reply.
    pub(super) fn loaded(options: &Options) -> Self {
        let mut talk = Self::ready();
        talk.open_session(ONLY_SESSION, &resume(SESSION), options);
        talk.wire_id =
            talk.last_request("session/load")["params"]["sessionId"].as_str().unwrap().to_owned();
        talk.answer_ok("session/load", json!({ "models": {} }));
        talk
    }

    /// Begins one with a turn that runs.
    pub(super) fn running(options: &Options) -> Self {
        let mut talk = Self::open(options);
        talk.prompt("hi", options);
        talk
    }

    /// Gives an input; returns what followed from it.
    pub(super) fn step(&mut self, input: Input<'_>) -> Vec<Action> {
        let mut out = Vec::new();
        self.dialect.step(Timestamp::UNIX_EPOCH, input, &mut out);
        self.actions.extend(out.iter().cloned());
        out
    }

    pub(super) fn order(&mut self, order: Order<'_>) -> Vec<Action> {
        self.step(Input::Order(order))
    }

    pub(super) fn open_session(&mut self, session: SessionKey, open: &Open, options: &Options) {
        self.order(Order::Open { session, open, options });
    }

    pub(super) fn prompt(&mut self, prompt: &str, options: &Options) -> Vec<Action> {
        self.order(Order::Prompt { session: ONLY_SESSION, turn: TURN, prompt, options })
    }

    pub(super) fn decide(&mut self, request: &str, ruling: &Ruling) -> Vec<Action> {
        self.order(Order::Answer { turn: TURN, request, ruling })
    }

    pub(super) fn cancel(&mut self) -> Vec<Action> {
        self.step(Input::Cancel { turn: TURN })
    }

    /// The agent says something.
    pub(super) fn say(&mut self, message: &Value) -> Vec<Action> {
        self.step(stdout_line(message.to_string().as_bytes()))
    }

    /// The agent tells something of the session.
    pub(super) fn tell(&mut self, update: Value) -> Vec<Action> {
        let params = json!({ "sessionId": self.wire_id, "update": update });
        self.say(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
    }

    /// The agent says a piece of the answer.
    pub(super) fn text(&mut self, text: &str) -> Vec<Action> {
        let content = json!({ "type": "text", "text": text });
        self.tell(json!({ "sessionUpdate": "agent_message_chunk", "content": content }))
    }

    /// The agent asks whether it may run a command.
    pub(super) fn asks(&mut self, id: u64, command: &str) -> Vec<Action> {
        let params = json!({
            "sessionId": self.wire_id,
            "options": [
                { "optionId": "proceed_always", "kind": "allow_always" },
                { "optionId": "proceed_once", "kind": "allow_once" },
                { "optionId": "cancel", "kind": "reject_once" },
            ],
            "toolCall": {
                "toolCallId": format!("run_shell_command__x_{id}"),
                "status": "pending",
                "title": command,
                "content": [],
                "kind": "execute",
            },
        });
        let method = "session/request_permission";
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    /// The agent does what it was asked last by this method.
    pub(super) fn answer_ok(&mut self, method: &str, result: Value) -> Vec<Action> {
        let id = self.last_request(method)["id"].clone();
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    /// The agent does not do what it was asked last by this method.
    pub(super) fn answer_error(&mut self, method: &str, error: Value) -> Vec<Action> {
        let id = self.last_request(method)["id"].clone();
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
    }

    /// The agent ends the turn.
    pub(super) fn over(&mut self, reason: &str) -> Vec<Action> {
        self.answer_ok("session/prompt", json!({ "stopReason": reason }))
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
        self.step(Input::Line { from: Stream::Stderr, bytes: line.as_bytes(), cut: false })
    }

    /// The last request to the agent by this method.
    pub(super) fn last_request(&self, method: &str) -> Value {
        let found = written(&self.actions).into_iter().rfind(|one| one["method"] == method);
        found.unwrap_or_else(|| panic!("{method} was not asked for: {:?}", self.actions))
    }
}

/// What was written to the agent.
pub(super) fn written(actions: &[Action]) -> Vec<Value> {
    let written = actions.iter().filter_map(|action| {
        let Action::Write(bytes) = action else { return None };
        Some(serde_json::from_slice(bytes).expect("one message"))
    });
    written.collect()
}

/// The methods that were written to the agent.
pub(super) fn methods(actions: &[Action]) -> Vec<String> {
    let written = written(actions).into_iter();
    written.filter_map(|message| Some(message["method"].as_str()?.to_owned())).collect()
}
