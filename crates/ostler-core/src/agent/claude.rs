//! Claude Code: the facts.
//!
//! What it can do, where it lies, which variables are its own and how it is
//! stopped. How it is started is in `launch` and `prompt`, how it is read in
//! `dialect` and `turn`, how it is kept between turns in `warm`; its sharp edges
//! have a test each.

mod blocks;
mod dialect;
mod failure;
mod field;
mod flat;
mod launch;
mod message;
mod notice;
mod outcome;
mod prompt;
mod reach;
mod session;
mod text;
mod tool;
mod turn;
mod warm;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, time::Duration};

use super::{AgentName, AgentSpec, Caps, Heard, Names, Signal, StopStep};
use crate::request;

/// Claude Code.
pub static SPEC: AgentSpec = AgentSpec {
    name: AgentName::built_in("claude"),
    title: Cow::Borrowed("Claude"),
    program: Cow::Borrowed("claude"),
    custom: None,
    natives: NATIVES,
    caps: Caps {
        supports_session_continuation: true,
        supports_model_selection: true,
        supports_tool_control: true,
        supports_streaming: true,
        supports_approvals: true,
        supports_warm: true,
        supports_max_turns: true,
        supports_system_prompt: true,
        supported_models: &[
            "claude-opus-5-5",
            "claude-sonnet-5-5",
            "claude-opus-4-8",
            "opus",
            "sonnet",
            "haiku",
        ],
        default_model: Some("claude-opus-5-5"),
        // Plain standard input ends at "10MB"; well before that the CLI itself
        // says that the prompt is too long.
        max_prompt_length: 10_000_000,
    },
    env: Names::Listed(ENV),
    home_env: &["CLAUDE_CONFIG_DIR", "GOOGLE_APPLICATION_CREDENTIALS"],
    project_files: &["CLAUDE.md", ".claude", ".mcp.json"],
    // SIGTERM makes it end its running and background shells and exit 143.
    // SIGINT is no cancel: it exits 0, and now and then without a last word.
    // SIGKILL leaves the shells, which have sessions of their own, behind.
    stop: &[StopStep::Signal { signal: Signal::Term, wait: Duration::from_secs(5) }],
    tested_versions: &["2.1.325"],
    install_hint: "npm install -g @anthropic-ai/claude-code (2.1.325 wants Node 22; \
                   on Node 20 npm silently picks 2.1.197)",
    identity: "You are Claude, a coding agent that people reach through a gateway. \
               Answer briefly and say what you did.",
    system_prompt: Heard::EachTurn,
    check_session: request::check_session,
    launch: launch::launch,
    dialect: dialect::dialect,
    warm: Some(&warm::WARM),
};

/// The program itself is in a package of its own beside the launcher's, or
/// below it. After `npm install --ignore-scripts` the launcher is a script that
/// only complains.
macro_rules! natives {
    ($($platform:literal),*) => {
        &[$(
            concat!("../../claude-code-", $platform, "/claude"),
            concat!("../node_modules/@anthropic-ai/claude-code-", $platform, "/claude"),
        )*]
    };
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const NATIVES: &[&str] = natives!("linux-x64", "linux-x64-musl");
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
const NATIVES: &[&str] = natives!("linux-arm64", "linux-arm64-musl");
#[cfg(all(target_os = "macos", target_arch = "x86_64"))]
const NATIVES: &[&str] = natives!("darwin-x64");
#[cfg(all(target_os = "macos", target_arch = "aarch64"))]
const NATIVES: &[&str] = natives!("darwin-arm64");
#[cfg(not(all(
    any(target_os = "linux", target_os = "macos"),
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
const NATIVES: &[&str] = &[];

/// Credentials, addresses and switches of the CLI and its providers. Long-lived
/// cloud keys (`AWS_SECRET_ACCESS_KEY` and the like) are not the CLI's own: an
/// operator who needs them names them.
const ENV: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_BETAS",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_FOUNDRY_API_KEY",
    "ANTHROPIC_FOUNDRY_BASE_URL",
    "ANTHROPIC_FOUNDRY_RESOURCE",
    "ANTHROPIC_VERTEX_BASE_URL",
    "ANTHROPIC_VERTEX_PROJECT_ID",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_PROFILE",
    "AWS_REGION",
    "BASH_DEFAULT_TIMEOUT_MS",
    "BASH_MAX_TIMEOUT_MS",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
    "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
    "CLAUDE_CODE_SKIP_VERTEX_AUTH",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CONFIG_DIR",
    "CLOUD_ML_REGION",
    "GOOGLE_APPLICATION_CREDENTIALS",
    // The operator's own word that this machine is a sandbox; never set by us.
    "IS_SANDBOX",
    "MAX_THINKING_TOKENS",
];
