//! The same suite for every agent: the real CLI, run by `ostler run` against
//! the simulated model. What a CLI cannot do stands in its [`Facts`], and the
//! suite asserts that as well.

mod answers;
mod cancel;
mod errors;
mod prompts;
mod rig;
mod sessions;
mod settings;

use ostler_sim::model::{ANTHROPIC_USAGE, RESPONSES_USAGE, Usage};

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
    /// Whether a declined answer is an error; else it is an empty answer.
    pub(crate) refusal_is_error: bool,
    /// What one call of the simulated model costs.
    pub(crate) usage: Usage,
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
    refusal_is_error: true,
    usage: ANTHROPIC_USAGE,
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
    refusal_is_error: false,
    usage: RESPONSES_USAGE,
};

/// Writes the tests of one file down for every agent.
macro_rules! for_every_agent {
    ($($test:ident)*) => {
        mod claude {
            $(#[test] fn $test() { super::$test(&super::super::CLAUDE); })*
        }
        mod codex {
            $(#[test] fn $test() { super::$test(&super::super::CODEX); })*
        }
    };
}
pub(crate) use for_every_agent;
