//! Codex, driven one turn at a time through `codex exec`, or kept running as
//! `codex app-server`.
//!
//! Facts only. How a command line is made is in `launch`, how the output is
//! read in `dialect` (JSON lines) and `plain` (text). The server is in `warm`.

mod config;
mod dialect;
mod fault;
mod item;
mod launch;
mod plain;
#[cfg(test)]
mod tests;
mod turn;
mod warm;

use std::{borrow::Cow, time::Duration};

use super::{AgentName, AgentSpec, Caps, Heard, Names, Signal, StopStep};
use crate::request::RequestError;

/// Everything Ostler knows about Codex.
pub static SPEC: AgentSpec = AgentSpec {
    name: AgentName::built_in("codex"),
    title: Cow::Borrowed("Codex"),
    program: Cow::Borrowed("codex"),
    custom: None,
    natives: NATIVES,
    caps: Caps {
        supports_session_continuation: true,
        supports_model_selection: true,
        supports_tool_control: false,
        // `exec` prints whole messages as they come, never pieces of one; the server does.
        supports_streaming: false,
        // `exec` refuses every request for approval without telling anybody; the server asks.
        supports_approvals: true,
        supports_warm: true,
        supports_max_turns: false,
        supports_system_prompt: true,
        // The visible part of the catalogue that is built into the CLI.
        supported_models: &[
            "gpt-6.1-sol",
            "gpt-6.1-terra",
            "gpt-6-astra",
            "gpt-6-sol",
            "gpt-6-luna",
            "gpt-5.6-sol",
            "gpt-5.6-terra",
            "gpt-5.6-luna",
            "gpt-5.5",
        ],
        default_model: Some("gpt-6.1-sol"),
        max_prompt_length: 1_048_576,
    },
    env: Names::Listed(ENV),
    home_env: &["CODEX_HOME", "CODEX_SQLITE_HOME"],
    project_files: &[".codex", "AGENTS.md"],
    // SIGTERM leaves the running tool behind, SIGINT does not.
    stop: &[StopStep::Signal { signal: Signal::Int, wait: Duration::from_secs(2) }],
    tested_versions: &["0.166.0"],
    install_hint: "npm install -g @openai/codex",
    identity: "You are Codex, answering through a chat gateway. \
               Keep replies short enough to be read in a chat.",
    system_prompt: Heard::FirstTurn,
    check_session,
    launch: launch::launch,
    dialect: dialect::dialect,
    warm: Some(&warm::WARM),
};

/// The agent's own variables. `OPENAI_BASE_URL` is not among them because the
/// CLI ignores it. Keys of other providers are for the operator to name: only
/// those are listed that the CLI or its own documentation asks for by name.
const ENV: &[&str] = &[
    "CODEX_HOME",
    "CODEX_SQLITE_HOME",
    "CODEX_API_KEY",
    "CODEX_ACCESS_TOKEN",
    "CODEX_CA_CERTIFICATE",
    "CODEX_OSS_BASE_URL",
    "CODEX_OSS_PORT",
    "OPENAI_API_KEY",
    "OPENAI_ORGANIZATION",
    "OPENAI_PROJECT",
    "AZURE_OPENAI_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
];

/// Paths of the native program, relative to the folder of the npm launcher
/// `@openai/codex/bin/codex.js`: installed beside it, below it, or inside it.
macro_rules! natives {
    ($package:literal, $triple:literal) => {
        &[
            concat!("../../", $package, "/vendor/", $triple, "/bin/codex"),
            concat!("../node_modules/@openai/", $package, "/vendor/", $triple, "/bin/codex"),
            concat!("../vendor/", $triple, "/bin/codex"),
        ]
    };
}

const NATIVES: &[&str] = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
    natives!("codex-linux-x64", "x86_64-unknown-linux-musl")
} else if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
    natives!("codex-linux-arm64", "aarch64-unknown-linux-musl")
} else if cfg!(all(target_os = "macos", target_arch = "x86_64")) {
    natives!("codex-darwin-x64", "x86_64-apple-darwin")
} else if cfg!(all(target_os = "macos", target_arch = "aarch64")) {
    natives!("codex-darwin-arm64", "aarch64-apple-darwin")
} else {
    &[]
};

/// Takes nothing but UUIDs: for any other word the CLI silently starts a new
/// session, and the conversation would seem to go on without its memory.
fn check_session(id: &str) -> Result<(), RequestError> {
    crate::request::check_session(id)?;
    // Upper case would be another session to our lock and the same one to the CLI.
    let is_lower = !id.contains(|c: char| c.is_ascii_uppercase());
    if id.len() == 36 && is_lower && uuid::Uuid::try_parse(id).is_ok() {
        return Ok(());
    }
    Err(RequestError::BadSession {
        id: id.to_owned(),
        why: "Codex knows its sessions by UUID in lower case, such as 01a1e088-9109-7530-b2ac-e9fa07582dea",
    })
}
