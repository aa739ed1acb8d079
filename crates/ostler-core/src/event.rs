//! What a turn tells while it runs, in words that no agent owns.
//!
//! Data only. A dialect makes [`EventBody`] values; the driver numbers, dates
//! and sends them as [`Event`]s. The JSON form is the outside contract of
//! `ostler run --output stream-json`: every event is one flat object, which is
//! why serialization is written out here instead of derived.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{
    Serialize, Serializer,
    ser::{Error as _, SerializeMap},
};
use serde_json::{Map, Value};

use crate::{
    agent::AgentName,
    failure::Failure,
    memo::Memo,
    permission::{DecidedBy, Decision, Permission},
};

/// The id of one prompt and its answer: `trn_` and a UUIDv7.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TurnId(String);

impl TurnId {
    /// Makes a new id; ids made later sort later.
    #[must_use]
    pub fn new() -> Self {
        Self(format!("trn_{}", uuid::Uuid::now_v7().simple()))
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

/// Tokens and money of one turn; `None` is unknown, never zero by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// The whole prompt, cache reads and writes included.
    pub input_tokens: Option<u64>,
    /// What the model wrote, reasoning included.
    pub output_tokens: Option<u64>,
    /// The part of the input that was read from a cache.
    pub cached_tokens: Option<u64>,
    /// Input and output.
    pub total_tokens: Option<u64>,
    /// In US dollars, where the agent reports it.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Makes a usage of tokens whose total is the sum of input and output.
    #[must_use]
    pub fn of_tokens(input: u64, output: u64, cached: u64) -> Self {
        Self {
            input_tokens: Some(input),
            output_tokens: Some(output),
            cached_tokens: Some(cached),
            total_tokens: Some(input.saturating_add(output)),
            cost_usd: None,
        }
    }
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It was done.
    EndTurn,
    /// The answer reached its length limit.
    MaxTokens,
    /// The turn reached its limit of model calls.
    MaxTurns,
    /// The model or its provider refused.
    Refusal,
    /// Somebody stopped it.
    Cancelled,
    /// The turn failed.
    Error,
    /// The CLI's own word for anything else.
    Other(String),
}

impl StopReason {
    /// Returns the word that is printed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::EndTurn => "end_turn",
            Self::MaxTokens => "max_tokens",
            Self::MaxTurns => "max_turns",
            Self::Refusal => "refusal",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
            Self::Other(word) => word,
        }
    }
}

impl Serialize for StopReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// How a turn ended: the one object that `ostler run --output json` prints.
#[derive(Clone, Debug)]
pub struct TurnReport {
    /// Which agent.
    pub agent: AgentName,
    /// The session to resume, unless none came to be.
    pub session_id: Option<String>,
    /// The answer; for a failed turn the text to show instead.
    pub response_text: Option<String>,
    /// Why it failed.
    pub error: Option<Failure>,
    /// How the process ended; 128 + signal when a signal ended it.
    pub exit_code: Option<i32>,
    /// From the start of the turn to its end.
    pub duration_ms: u64,
    /// The model that answered, if the agent tells.
    pub model: Option<String>,
    /// Why the model stopped.
    pub stop_reason: Option<StopReason>,
    /// One process per turn, or a warm one.
    pub mode: Mode,
    /// What this turn used.
    pub usage: Usage,
    /// Whether `response_text` was cut at its limit.
    pub truncated: bool,
    /// What to hand back in order to go on with the session.
    pub memo: Option<Memo>,
    /// Everything else the agent told about itself.
    pub meta: Map<String, Value>,
}

impl TurnReport {
    /// Returns whether the turn failed.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.error.is_some()
    }

    fn entries<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("agent", &self.agent)?;
        map.serialize_entry("session_id", &self.session_id)?;
        map.serialize_entry("response_text", &self.response_text)?;
        map.serialize_entry("is_error", &self.is_error())?;
        map.serialize_entry("error", &self.error)?;
        map.serialize_entry("exit_code", &self.exit_code)?;
        map.serialize_entry("duration_ms", &self.duration_ms)?;
        map.serialize_entry("model", &self.model)?;
        map.serialize_entry("stop_reason", &self.stop_reason)?;
        map.serialize_entry("mode", &self.mode)?;
        map.serialize_entry("usage", &self.usage)?;
        if self.truncated {
            map.serialize_entry("truncated", &true)?;
        }
        Ok(())
    }
}

impl Serialize for TurnReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.entries(&mut map)?;
        map.end()
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("seq", &self.seq)?;
        map.serialize_entry("at", &format_args!("{:.3}", self.at))?;
        map.serialize_entry("type", self.body.kind())?;
        map.serialize_entry("turn", self.turn.as_str())?;
        if let Some(parent) = &self.parent {
            map.serialize_entry("parent", parent)?;
        }
        match &self.body {
            EventBody::Started(started) => spread(&mut map, started)?,
            EventBody::Output { text, block } | EventBody::Thinking { text, block } => {
                map.serialize_entry("text", text)?;
                map.serialize_entry("block", block)?;
            }
            EventBody::ToolUse { id, tool, input, title } => {
                map.serialize_entry("id", id)?;
                map.serialize_entry("tool", tool)?;
                map.serialize_entry("input", input)?;
                map.serialize_entry("title", title)?;
            }
            EventBody::ToolResult(result) => spread(&mut map, result)?,
            EventBody::Permission(permission) => spread(&mut map, permission)?,
            EventBody::Usage(usage) => spread(&mut map, usage)?,
            EventBody::Error(failure) => spread(&mut map, failure)?,
            EventBody::Unknown { stream, text } => {
                map.serialize_entry("stream", stream)?;
                map.serialize_entry("text", text)?;
            }
            EventBody::Status(status) => status_entries(status, &mut map)?,
            EventBody::Complete(report) => report.entries(&mut map)?,
        }
        map.end()
    }
}

fn status_entries<M: SerializeMap>(status: &Status, map: &mut M) -> Result<(), M::Error> {
    let (code, text) = status.code_and_text();
    map.serialize_entry("code", code)?;
    map.serialize_entry("text", text)?;
    match status {
        Status::Session { session_id } => map.serialize_entry("session_id", session_id),
        Status::Retry { attempt, max, delay_ms, .. } => {
            map.serialize_entry("attempt", attempt)?;
            map.serialize_entry("max", max)?;
            map.serialize_entry("delay_ms", delay_ms)
        }
        Status::Retracted { block } => map.serialize_entry("block", block),
        Status::PermissionResolved { request, decision, by } => {
            map.serialize_entry("request", request)?;
            map.serialize_entry("decision", decision)?;
            map.serialize_entry("by", by)
        }
        Status::Warning { .. }
        | Status::Queued { .. }
        | Status::Steered { .. }
        | Status::Compacted { .. } => Ok(()),
    }
}

/// Writes a path that need not be UTF-8.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Writes the fields of a small struct into the enclosing object.
fn spread<M: SerializeMap, T: Serialize>(map: &mut M, value: &T) -> Result<(), M::Error> {
    let Value::Object(fields) = serde_json::to_value(value).map_err(M::Error::custom)? else {
        return Err(M::Error::custom("the body of an event must be an object"));
    };
    fields.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))
}
