//! One session of an agent: how it is opened, and the prompt that waits in it.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{AcpFacts, turn::LiveTurn};
use crate::{
    agent::TurnKey,
    request::{Open, Options, Permissions},
};

/// A session.
pub(super) struct Session {
    /// The id that the agent is told.
    pub(super) wire_id: Option<String>,
    /// The id that the caller knows.
    pub(super) id: Option<String>,
    cwd: PathBuf,
    pub(super) state: State,
    /// Whether the agent has had the system prompt.
    pub(super) system_sent: bool,
    /// The model that was chosen last.
    pub(super) model: Option<String>,
    /// Whether a model can be chosen.
    pub(super) has_models: bool,
    /// What to say in the first turn.
    pub(super) warning: Option<&'static str>,
    /// A prompt that waits.
    pub(super) held: Option<Held>,
    pub(super) turn: Option<LiveTurn>,
    /// Whether a prompt has no reply yet. A second one would end it.
    pub(super) is_busy: bool,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The agent has not confirmed it.
    Opening,
    /// The agent may still repeat its history.
    Replaying,
    /// The agent is being told which model to take.
    Choosing,
    /// It takes prompts.
    Open,
}

/// A prompt that waits.
pub(super) struct Held {
    pub(super) turn: TurnKey,
    pub(super) prompt: String,
    pub(super) model: Option<String>,
    pub(super) options: Options,
}

impl Held {
    pub(super) fn permissions(&self) -> Permissions {
        self.options.permissions
    }
}

impl Session {
    /// A session that is to be opened.
    pub(super) fn new(facts: &AcpFacts, open: &Open, options: &Options) -> Self {
        let memo = open.memo();
        Self {
            wire_id: memo.map(|memo| (facts.load_id)(&memo.id)),
            id: memo.map(|memo| memo.id.clone()),
            cwd: options.cwd.clone(),
            state: State::Opening,
            system_sent: memo.is_some_and(|memo| memo.system_sent),
            model: None,
            has_models: false,
            warning: (facts.ignored)(open, options),
            held: None,
            turn: None,
            is_busy: false,
        }
    }

    /// Returns method and parameters of the request that opens it.
    pub(super) fn opening(&self) -> (&'static str, Value) {
        let cwd = self.cwd.to_string_lossy();
        match &self.wire_id {
            Some(id) => ("session/load", json!({ "sessionId": id, "cwd": cwd, "mcpServers": [] })),
            None => ("session/new", json!({ "cwd": cwd, "mcpServers": [] })),
        }
    }

    /// Takes what the agent says about a session that it has opened.
    pub(super) fn confirmed(&mut self, told: &Value) {
        self.has_models = told.get("models").is_some_and(Value::is_object);
    }

    /// Returns the model that the agent has to be told first.
    pub(super) fn wanted_model(&self) -> Option<&String> {
        let wanted = self.held.as_ref().and_then(|held| held.model.as_ref());
        wanted.filter(|_| self.has_models).filter(|wanted| self.model.as_ref() != Some(*wanted))
    }
}
