//! How a turn ended, and what it used.

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use super::Mode;
use crate::{agent::AgentName, failure::Failure, memo::Memo};

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
    /// Makes the report of a turn that could not even be started.
    #[must_use]
    pub fn not_started(agent: AgentName, failure: Failure) -> Self {
        Self {
            agent,
            session_id: None,
            response_text: Some(failure.response_text().to_owned()),
            error: Some(failure),
            exit_code: None,
            duration_ms: 0,
            model: None,
            stop_reason: Some(StopReason::Error),
            mode: Mode::OneShot,
            usage: Usage::default(),
            truncated: false,
            memo: None,
            meta: Map::new(),
        }
    }

    /// Returns whether the turn failed.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.error.is_some()
    }

    pub(super) fn entries<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
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
