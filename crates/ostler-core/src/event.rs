//! What a turn tells while it runs, in words that no agent owns.
//!
//! Data only. A dialect makes [`EventBody`] values; the driver numbers, dates
//! and sends them as [`Event`]s.

mod json;
mod report;

use std::{fmt, path::PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use self::json::lossy;
pub use self::report::{StopReason, TurnReport, Usage};
use crate::{
    agent::AgentName,
    failure::Failure,
    permission::{DecidedBy, Decision, Permission},
};

/// The id of one prompt and its answer: `trn_` and a UUIDv7.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TurnId(String);

impl TurnId {
    /// Makes a new id; ids made later sort later.
    #[must_use]
    pub fn new() -> Self {
        Self::from_uuid(uuid::Uuid::now_v7())
    }

    /// Takes an id that somebody else made.
    #[must_use]
    pub fn from_uuid(uuid: uuid::Uuid) -> Self {
        Self(format!("trn_{}", uuid.simple()))
    }

    /// Returns the id as it is printed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for TurnId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One thing that happened in a turn.
#[derive(Clone, Debug)]
pub struct Event {
    /// Position within the turn, from 1 without gaps.
    pub seq: u64,
    /// When the driver saw it.
    pub at: Timestamp,
    /// The turn it belongs to.
    pub turn: TurnId,
    /// The tool call of the sub-agent that it came from, if any.
    pub parent: Option<String>,
    /// What happened.
    pub body: EventBody,
}

/// What happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EventBody {
    /// The agent's process runs. The first event of every turn.
    Started(Started),
    /// A piece of the answer. Texts of one block concatenate.
    Output {
        /// The piece.
        text: String,
        /// Which block of text it continues.
        block: String,
    },
    /// A piece of the agent's reasoning.
    Thinking {
        /// The piece.
        text: String,
        /// Which block of text it continues.
        block: String,
    },
    /// The agent calls a tool.
    ToolUse {
        /// The agent's id for the call.
        id: String,
        /// The tool's name in the agent's own words.
        tool: String,
        /// Its arguments, if the agent tells them.
        input: Option<Value>,
        /// One line for people.
        title: String,
    },
    /// A tool call came back.
    ToolResult(ToolResult),
    /// The agent waits for somebody's decision.
    Permission(Permission),
    /// What the turn used so far.
    Usage(Usage),
    /// Why the turn failed. At most one, just before `Complete`.
    Error(Failure),
    /// A line that was not understood, kept as it was.
    Unknown {
        /// Where it was printed.
        stream: Stream,
        /// The line, or the start of a very long one.
        text: String,
    },
    /// Something worth knowing that is neither answer nor failure.
    Status(Status),
    /// The end. Exactly one, always last.
    Complete(Box<TurnReport>),
}

impl EventBody {
    /// Returns the name that stands in the `type` field.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Started(_) => "started",
            Self::Output { .. } => "output",
            Self::Thinking { .. } => "thinking",
            Self::ToolUse { .. } => "tool_use",
            Self::ToolResult(_) => "tool_result",
            Self::Permission(_) => "permission",
            Self::Usage(_) => "usage",
            Self::Error(_) => "error",
            Self::Unknown { .. } => "unknown",
            Self::Status(_) => "status",
            Self::Complete(_) => "complete",
        }
    }
}

/// How a turn began.
#[derive(Clone, Debug, Serialize)]
pub struct Started {
    /// Which agent.
    pub agent: AgentName,
    /// Its version, when a former look at the binary left it in the cache.
    pub version: Option<String>,
    /// One process per turn, or a warm one.
    pub mode: Mode,
    /// The session that is resumed; a new one is told by a `session` status.
    pub session_id: Option<String>,
    /// The model that was asked for.
    pub model: Option<String>,
    /// Where the agent works.
    #[serde(serialize_with = "lossy")]
    pub cwd: PathBuf,
    /// Whether an existing session goes on.
    pub resumed: bool,
    /// Which try at this prompt it is, from 1.
    pub attempt: u32,
    /// Who began the turn.
    pub trigger: Trigger,
}

/// How the agent's process is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// One process, one turn.
    OneShot,
    /// A process that is kept for further turns.
    Warm,
}

/// Who began a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Trigger {
    /// A prompt of ours.
    Prompt,
    /// The agent itself, for instance because its work in the background ended.
    Agent,
}

/// What a tool gave back.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    /// The tool's name, empty when the agent does not repeat it and the call was not seen.
    pub tool: String,
    /// What it printed or returned, as text.
    pub output: String,
    /// Whether it failed.
    pub is_error: bool,
    /// The exit code of a command, when the agent tells it.
    pub exit_code: Option<i32>,
    /// Whether the agent cut the output.
    pub truncated: bool,
}

/// Where a line was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A notice: a code to branch on, a text to read, fields of its own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Status {
    /// The agent's id for the session is known.
    Session {
        /// The id to resume with.
        session_id: String,
    },
    /// The agent tries a request to its model again.
    Retry {
        /// Which retry, from 1, if the agent counts.
        attempt: Option<u32>,
        /// How many it will make, if it says.
        max: Option<u32>,
        /// How long it waits first.
        delay_ms: Option<u64>,
        /// Why, in the agent's words.
        text: String,
    },
    /// Something was ignored or is not as asked; the turn goes on.
    Warning {
        /// What, and what to do about it.
        text: String,
    },
    /// Text that was streamed is not part of the answer after all.
    Retracted {
        /// The block to forget.
        block: String,
    },
    /// The turn waits for another user of the same session.
    Queued {
        /// Why.
        text: String,
    },
    /// A permission request was decided.
    PermissionResolved {
        /// The request's id.
        request: String,
        /// How.
        decision: Decision,
        /// By whom.
        by: DecidedBy,
    },
    /// The running turn took a further text into account.
    Steered {
        /// The text.
        text: String,
    },
    /// The agent made its history shorter.
    Compacted {
        /// In the agent's words.
        text: String,
    },
}

impl Status {
    /// Returns the code and the text.
    #[must_use]
    pub fn code_and_text(&self) -> (&'static str, &str) {
        match self {
            Self::Session { session_id } => ("session", session_id),
            Self::Retry { text, .. } => ("retry", text),
            Self::Warning { text } => ("warning", text),
            Self::Retracted { .. } => ("retracted", "streamed text withdrawn"),
            Self::Queued { text } => ("queued", text),
            Self::PermissionResolved { decision, .. } => ("permission_resolved", decision.code()),
            Self::Steered { text } => ("steered", text),
            Self::Compacted { text } => ("compacted", text),
        }
    }
}
