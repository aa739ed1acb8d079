//! The same suite for every agent: the real CLI, run by `ostler run` against
//! the simulated model. What a CLI cannot do stands in its [`Facts`], and the
//! suite asserts that as well.

mod answers;
pub(crate) mod cancel;
pub(crate) mod chat;
mod discord;
mod errors;
mod own;
mod prompts;
mod real;
mod rig;
mod sessions;
mod settings;
mod twilio;
mod warm;

use ostler_sim::model::{ANTHROPIC_USAGE, CHAT_USAGE, Charge, GEMINI_USAGE, RESPONSES_USAGE};

/// What is true of one agent and not of all.
pub(crate) struct Facts {
    pub(crate) agent: &'static str,
    /// The native program, below the folder of installed CLIs.
    pub(crate) program: &'static str,
    /// Whether text comes in pieces.
    pub(crate) streams: bool,
    /// Whether the model's reasoning can be seen.
    pub(crate) shows_thinking: bool,
    /// Whether a call of a tool that does not exist can be seen.
    pub(crate) shows_unknown_tool: bool,
    /// Whether a failed command's exit code can be seen.
    pub(crate) shows_exit_code: bool,
    /// Whether the number of model calls can be limited.
    pub(crate) limits_turns: bool,
    /// Whether tools can be restricted.
    pub(crate) restricts_tools: bool,
    /// Whether the CLI says what a turn cost.
    pub(crate) tells_cost: bool,
    /// What a declined answer comes to.
    pub(crate) refusal: Refusal,
    /// What an answer that is cut at its length limit comes to.
    pub(crate) cut_answer: CutAnswer,
    /// Whether a tool can be seen while it runs, not only when it is done.
    pub(crate) shows_running_tool: bool,
    /// Whether a session is there after its very first turn was cancelled.
    pub(crate) keeps_cancelled_first_turn: bool,
    /// Whether several first starts at once in a new home get in each other's way.
    pub(crate) first_start_is_exclusive: bool,
    /// A model beside the usual one, by the name that reaches the provider at its end.
    pub(crate) other_model: &'static str,
    /// What the model gets to see of a prompt.
    pub(crate) arrives: fn(&str) -> String,
    /// Whether a retry that went well is told.
    pub(crate) tells_retries: bool,
    /// What one call of the simulated model costs.
    pub(crate) usage: Charge,
    /// What differs when the agent is kept running.
    pub(crate) kept: Kept,
    /// How it is configured, if it is not built in.
    pub(crate) own: Option<own::Own>,
}

/// What is true of an agent that is kept running.
pub(crate) struct Kept {
    /// Whether the output of a command can be seen.
    pub(crate) shows_output: bool,
    /// Whether failed calls can be seen as such.
    pub(crate) shows_failures: bool,
    /// Whether it is told how much of a prompt came from a cache.
    pub(crate) tells_cached: bool,
    /// Whether the figures include what the model thought.
    pub(crate) counts_thoughts: bool,
    /// Whether it makes its history shorter when a prompt is too long for the model,
    /// and tries again.
    pub(crate) shortens_history: bool,
    /// What the model gets to see of a prompt.
    pub(crate) arrives: fn(&str) -> String,
}

impl Kept {
    /// Everything can be seen.
    const OPEN: Self = Self {
        shows_output: true,
        shows_failures: true,
        tells_cached: true,
        counts_thoughts: true,
        shortens_history: false,
        arrives: as_typed,
    };
}

/// What becomes of an answer that is cut at its length limit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutAnswer {
    Error,
    StopReason,
    NotShown,
}

/// Returns the prompt as it was typed.
fn as_typed(prompt: &str) -> String {
    prompt.to_owned()
}

/// What becomes of an answer that the model declines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Error,
    EmptyAnswer,
    Text,
}

pub(crate) static CLAUDE: Facts = Facts {
    agent: "claude",
    program: "node_modules/@anthropic-ai/claude-code-linux-x64/claude",
    streams: true,
    shows_thinking: true,
    shows_unknown_tool: true,
    shows_exit_code: true,
    limits_turns: true,
    restricts_tools: true,
    tells_cost: true,
    refusal: Refusal::Error,
    cut_answer: CutAnswer::Error,
    shows_running_tool: true,
    keeps_cancelled_first_turn: true,
    first_start_is_exclusive: false,
    other_model: "claude-sonnet-4-5",
    arrives: as_typed,
    tells_retries: true,
    usage: ANTHROPIC_USAGE.with_cache_apart(),
    kept: Kept { shortens_history: true, ..Kept::OPEN },
    own: None,
};

pub(crate) static CODEX: Facts = Facts {
    agent: "codex",
    program: "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
    streams: false,
    shows_thinking: true,
    shows_unknown_tool: false,
    shows_exit_code: true,
    limits_turns: false,
    restricts_tools: false,
    tells_cost: false,
    // Codex drops a refusal from the stream: the turn ends with no text at all.
    refusal: Refusal::EmptyAnswer,
    cut_answer: CutAnswer::Error,
    shows_running_tool: true,
    keeps_cancelled_first_turn: true,
    first_start_is_exclusive: false,
    other_model: "gpt-5.5",
    arrives: as_typed,
    // It retries a request silently and tells only of broken streams.
    tells_retries: false,
    usage: RESPONSES_USAGE.with_cache_within(),
    kept: Kept::OPEN,
    own: None,
};

pub(crate) static GEMINI: Facts = Facts {
    agent: "gemini",
    program: "node_modules/.bin/gemini",
    streams: true,
    // Only its token counts show that the model thought.
    shows_thinking: false,
    shows_unknown_tool: true,
    // A command that failed is a success to it, without a code.
    shows_exit_code: false,
    limits_turns: true,
    restricts_tools: true,
    tells_cost: false,
    // The API has no word for it: the model says so in its text.
    refusal: Refusal::Text,
    cut_answer: CutAnswer::NotShown,
    shows_running_tool: true,
    keeps_cancelled_first_turn: true,
    first_start_is_exclusive: false,
    other_model: "gemini-2.5-pro",
    arrives: escaped_for_gemini,
    tells_retries: true,
    usage: Charge {
        output: GEMINI_USAGE.output + GEMINI_USAGE.reasoning,
        ..GEMINI_USAGE.with_cache_within()
    },
    kept: Kept {
        // A command that has ended says no more than that, and a tool that does
        // not exist nothing at all.
        shows_output: false,
        shows_failures: false,
        tells_cached: false,
        counts_thoughts: false,
        shortens_history: false,
        arrives: kept_from_gemini,
    },
    own: None,
};

pub(crate) static OPENCODE: Facts = Facts {
    agent: "opencode",
    program: "node_modules/opencode-linux-x64/bin/opencode",
    streams: false,
    shows_thinking: true,
    shows_unknown_tool: true,
    shows_exit_code: true,
    limits_turns: true,
    restricts_tools: true,
    tells_cost: true,
    refusal: Refusal::EmptyAnswer,
    cut_answer: CutAnswer::StopReason,
    shows_running_tool: false,
    keeps_cancelled_first_turn: true,
    first_start_is_exclusive: true,
    other_model: "ostler_sim/sim-1",
    arrives: as_typed,
    tells_retries: true,
    usage: CHAT_USAGE.with_cache_within(),
    kept: Kept { shortens_history: true, ..Kept::OPEN },
    own: None,
};

pub(crate) static PI: Facts = Facts {
    agent: "pi",
    program: "node_modules/.bin/pi",
    streams: true,
    shows_thinking: true,
    shows_unknown_tool: true,
    shows_exit_code: true,
    limits_turns: true,
    restricts_tools: true,
    tells_cost: true,
    refusal: Refusal::EmptyAnswer,
    cut_answer: CutAnswer::Error,
    shows_running_tool: true,
    keeps_cancelled_first_turn: false,
    first_start_is_exclusive: false,
    other_model: "ostler_sim/other",
    arrives: as_typed,
    tells_retries: true,
    usage: CHAT_USAGE.with_cache_within(),
    kept: Kept::OPEN,
    own: None,
};

pub(crate) static COPILOT: Facts = Facts {
    agent: "copilot",
    program: "node_modules/@github/copilot-linux-x64/copilot",
    // The first start unpacks a quarter of a gigabyte.
    first_start_is_exclusive: true,
    other_model: "other",
    own: Some(own::COPILOT),
    ..OWN
};

pub(crate) static QWEN: Facts = Facts {
    agent: "qwen",
    program: "node_modules/.bin/qwen",
    // It offers the one model that it was started with.
    other_model: "sim-1",
    first_start_is_exclusive: false,
    own: Some(own::QWEN),
    ..OWN
};

pub(crate) static OPENCODE_BY_ACP: Facts = Facts {
    agent: "opencode-acp",
    program: OPENCODE.program,
    other_model: "ostler_sim/sim-1",
    own: Some(own::OPENCODE),
    ..OWN
};

/// What is true of those that are driven by configuration.
const OWN: Facts = Facts {
    agent: "",
    program: "",
    streams: true,
    shows_thinking: true,
    shows_unknown_tool: true,
    shows_exit_code: true,
    limits_turns: false,
    restricts_tools: false,
    tells_cost: false,
    refusal: Refusal::Error,
    cut_answer: CutAnswer::NotShown,
    shows_running_tool: true,
    keeps_cancelled_first_turn: true,
    first_start_is_exclusive: false,
    other_model: "",
    arrives: as_typed,
    tells_retries: false,
    usage: CHAT_USAGE.with_cache_within(),
    kept: Kept::OPEN,
    own: None,
};

/// Nothing but a backslash keeps Gemini from putting a file in the place of
/// `@name`, and nothing but a blank from running a leading `/name`.
fn escaped_for_gemini(prompt: &str) -> String {
    let blank = if prompt.starts_with('/') { " " } else { "" };
    format!("{blank}{}", prompt.replace('@', "\\@"))
}

/// Kept running, it reads no references, but a command after any blank that has
/// a width.
fn kept_from_gemini(prompt: &str) -> String {
    let blank = if prompt.starts_with(['/', '$']) { "\u{200b}" } else { "" };
    format!("{blank}{prompt}")
}

/// Writes the tests of one file down for every agent.
macro_rules! for_every_agent {
    ($($test:ident)*) => {
        mod claude {
            $(#[test] fn $test() { super::$test(&super::super::CLAUDE); })*
        }
        mod codex {
            $(#[test] fn $test() { super::$test(&super::super::CODEX); })*
        }
        mod gemini {
            $(#[test] fn $test() { super::$test(&super::super::GEMINI); })*
        }
        mod opencode {
            $(#[test] fn $test() { super::$test(&super::super::OPENCODE); })*
        }
        mod pi {
            $(#[test] fn $test() { super::$test(&super::super::PI); })*
        }
    };
}
pub(crate) use for_every_agent;
