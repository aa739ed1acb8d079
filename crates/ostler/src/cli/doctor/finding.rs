//! What the doctor says: one thing it looked at, and what to do about it.

use ostler_core::agent::AgentName;
use serde::Serialize;

/// How bad it is. Only an error makes `doctor` fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Info,
    /// May go wrong.
    Warning,
    /// Does not work.
    Error,
}

impl Level {
    /// Returns the sign in front of a line for people.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Ok => "✓",
            Self::Info => "·",
            Self::Warning => "!",
            Self::Error => "✗",
        }
    }
}

/// What was looked at. The words are part of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Area {
    /// The settings of this program.
    Settings,
    /// An agent's program.
    Binary,
    /// The server that an agent is attached to.
    Server,
    /// Its version.
    Version,
    /// The Node that a program needs.
    Node,
    /// Whether the agent has credentials.
    Login,
    /// Processes that outlived their turn.
    Processes,
    /// The folder for sessions.
    DataDir,
    /// The folder for temporary files.
    RunDir,
    /// The time of day.
    Clock,
    /// The limit of open files.
    Limits,
    /// The chats that people write in.
    Channels,
    /// Turns against the simulated model.
    Live,
}

/// One finding. The field names are part of the contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    pub(crate) area: Area,
    /// The agent that it is about, if it is about one.
    pub(crate) agent: Option<AgentName>,
    pub(crate) message: String,
    /// What to do about it, where there is something to do.
    pub(crate) fix: Option<String>,
}

impl Finding {
    pub(crate) fn new(level: Level, area: Area, message: impl Into<String>) -> Self {
        Self { level, area, agent: None, message: message.into(), fix: None }
    }

    pub(crate) fn ok(area: Area, message: impl Into<String>) -> Self {
        Self::new(Level::Ok, area, message)
    }

    pub(crate) fn about(mut self, agent: &AgentName) -> Self {
        self.agent = Some(agent.clone());
        self
    }

    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}
