//! A conversation between the state machine and a Gemini that a test plays.

use serde_json::json;

use super::*;
use crate::{
    agent::{
        Dialect, ONLY_SESSION, Order, WarmLaunch,
        testing::{self, warm_launch_of},
    },
    protocol::acp::testing::AcpAgent,
};

/// The CLI.
pub(super) struct Gemini {
    /// The id that it is told for the session.
    pub(super) session: String,
}

impl AcpAgent for Gemini {
    const STDERR: &'static [&'static str] = &[
        "Attempt 1 failed with status 500. Retrying with backoff... Error: no",
        "Attempt 2 failed with status 429. Retrying after 60000ms... Error: no",
        "Warning: something",
        "Error handling request {",
    ];

    fn dialect() -> Box<dyn Dialect> {
        let (options, open) = (options(), Open::New);
        let run_dir = Path::new(RUN_DIR);
        (WARM.dialect)(&WarmLaunch { run_dir, ..warm_launch_of(&SPEC, &options, &open) })
    }

    fn session(&self) -> &str {
        &self.session
    }
}

/// A conversation.
pub(super) type Talk = testing::Talk<Gemini>;

impl Talk {
    /// Begins one; nothing was said yet.
    pub(super) fn new() -> Self {
        Self::playing(Gemini { session: SESSION.to_owned() })
    }

    /// Begins one in which the agent is ready.
    pub(super) fn ready() -> Self {
        let mut talk = Self::new();
        talk.order(Order::Start);
        let about = json!({
            "protocolVersion": 1,
            "agentInfo": { "version": "0.61.0" },
            "agentCapabilities": { "loadSession": true },
        });
        talk.answer_ok("initialize", about);
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
        let session = talk.last_request("session/load")["params"]["sessionId"].take();
        talk.played.session = session.as_str().unwrap().to_owned();
        talk.answer_ok("session/load", json!({ "models": {} }));
        talk
    }

    /// Begins one with a turn that runs.
    pub(super) fn running(options: &Options) -> Self {
        let mut talk = Self::open(options);
        talk.prompt(TURN, "hi", options);
        talk
    }

    /// The agent asks whether it may run a command.
    pub(super) fn asks_to_run(&mut self, id: u64, command: &str) -> Vec<Action> {
        let options = json!([
            { "optionId": "proceed_always", "kind": "allow_always" },
            { "optionId": "proceed_once", "kind": "allow_once" },
            { "optionId": "cancel", "kind": "reject_once" },
        ]);
        let call = json!({
            "toolCallId": format!("run_shell_command__x_{id}"),
            "status": "pending",
            "title": command,
            "content": [],
            "kind": "execute",
        });
        self.asks(json!(id), options, call)
    }
}
