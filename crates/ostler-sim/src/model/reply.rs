//! What the simulated model says, before any API gives it a shape.
//!
//! A behaviour produces a [`Reply`]; a wire renders it. Nothing here knows JSON
//! of a provider, HTTP or time.

use std::time::Duration;

use serde_json::Value;

/// One complete reaction to one request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    Answer(Answer),
    Refuse(Refusal),
}

/// A successful response of the model, however it is delivered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) blocks: Vec<Block>,
    pub(crate) stop: Stop,
    pub(crate) pace: Pace,
}

impl Answer {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::blocks(vec![Block::Text(text.into())])
    }

    pub(crate) fn blocks(blocks: Vec<Block>) -> Self {
        Self { blocks, stop: Stop::End, pace: Pace::AtOnce }
    }

    pub(crate) fn stopping(self, stop: Stop) -> Self {
        Self { stop, ..self }
    }

    pub(crate) fn paced(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    pub(crate) fn has_tool_calls(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block, Block::Tool(_)))
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

/// One part of an answer, in the order in which it is said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    Thinking(String),
    Text(String),
    Tool(ToolCall),
}

/// A call of one of the tools that the CLI offered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolCall {
    pub(crate) name: String,
    pub(crate) input: ToolInput,
}

/// What a tool is called with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ToolInput {
    Json(Value),
    /// The tool takes free text instead of JSON (OpenAI's custom tools).
    Text(String),
}

/// Why the model stopped. A stop for tool calls follows from the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    End,
    Length,
    /// The model declines in its own words.
    Refusal,
    /// The provider stops the answer.
    Filter,
}

/// How the bytes of an answer travel.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Pace {
    AtOnce,
    /// Spread evenly over this time.
    Over(Duration),
    /// Response headers, then nothing.
    Silence,
    /// Half of the text, then nothing.
    Stall,
    /// Half of the text, then the connection is dropped.
    Cut,
    /// Half of the text, then the provider reports an error inside the stream.
    ErrorAtHalf,
}

/// An error of the provider instead of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    BadRequest,
    NoKey,
    /// What the provider says to a key that it does not know.
    WrongKey,
    /// HTTP 401, which for most providers is the same.
    Unauthenticated,
    Forbidden,
    UnknownModel,
    TooLarge,
    RateLimited {
        retry_after_s: Option<u64>,
    },
    Quota,
    ServerError,
    Unavailable,
    Overloaded,
    ContextTooLong,
}

/// What each model call reports as used, as the numbers stand on the wire.
///
/// It is the same for every call, so that tests can assert on sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Anthropic counts cached tokens apart from this number, the others within
    /// it.
    pub input: u64,
    /// Tokens written to the prompt cache; only Anthropic reports them.
    pub cache_write: u64,
    /// Tokens read from the prompt cache.
    pub cache_read: u64,
    /// Tokens of the answer, reasoning included except for Gemini.
    pub output: u64,
    /// Tokens of reasoning: for OpenAI a part of `output`, for Gemini beside it;
    /// Anthropic does not report them.
    pub reasoning: u64,
}

impl Usage {
    /// Counts as providers do that report cached tokens beside the input.
    pub(crate) const fn with_cache_apart(self) -> Charge {
        let input = self.input + self.cache_write + self.cache_read;
        Charge { input, cached: self.cache_read, output: self.output }
    }

    /// Counts as providers do that report cached tokens as a part of the input.
    pub(crate) const fn with_cache_within(self) -> Charge {
        Charge { input: self.input, cached: self.cache_read, output: self.output }
    }
}

/// What one call costs, counted the same way for every provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// The whole prompt, cached or not.
    pub input: u64,
    /// The part of the prompt that was read from a cache.
    pub cached: u64,
    /// The answer, reasoning included.
    pub output: u64,
}
