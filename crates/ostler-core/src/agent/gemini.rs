//! Gemini CLI, driven one turn at a time in its headless mode, or kept running.
//!
//! Facts only. How a command line is made is in `launch`, what is sent as the
//! prompt in `prompt`, which tools are allowed in `policy`, how the output is
//! read in `dialect` (JSON) and `plain` (text), and how it is kept in `warm`.

mod complaint;
mod dialect;
mod fault;
mod home;
mod launch;
mod patience;
mod plain;
mod policy;
mod prompt;
mod stats;
#[cfg(test)]
mod tests;
mod tool;
mod turn;
mod warm;

use std::{borrow::Cow, time::Duration};

use super::{AgentName, AgentSpec, Caps, Heard, Names, Signal, StopStep};
use crate::request::{self, RequestError};

/// Everything Ostler knows about Gemini CLI.
pub static SPEC: AgentSpec = AgentSpec {
    name: AgentName::built_in("gemini"),
    title: Cow::Borrowed("Gemini"),
    program: Cow::Borrowed("gemini"),
    custom: None,
    // The program is the script itself: it has no native one beside it.
    natives: &[],
    caps: Caps {
        supports_session_continuation: true,
        supports_model_selection: true,
        supports_tool_control: true,
        supports_streaming: true,
        supports_approvals: true,
        supports_warm: true,
        supports_max_turns: true,
        supports_system_prompt: true,
        // Aliases first; they follow the newest model of their kind.
        supported_models: &[
            "auto",
            "pro",
            "flash",
            "flash-lite",
            "gemini-3.1-pro-preview",
            "gemini-3.8-flash",
            "gemini-3.5-flash-lite",
            "gemini-2.5-pro",
            "gemini-2.5-flash",
        ],
        default_model: Some("auto"),
        // Standard input is cut at 8 MiB, system prompt and identity text included.
        max_prompt_length: 8_000_000,
    },
    env: Names::Listed(ENV),
    home_env: &["GEMINI_CLI_HOME", "GOOGLE_APPLICATION_CREDENTIALS"],
    project_files: &[".gemini/settings.json"],
    // SIGTERM makes it exit 0 within a tenth of a second. It leaves its shells,
    // which have sessions of their own, to the keeper.
    stop: &[StopStep::Signal { signal: Signal::Term, wait: Duration::from_secs(2) }],
    tested_versions: &["0.61.0"],
    install_hint: "npm install -g @google/gemini-cli (wants Node 20 or newer)",
    identity: "You are Gemini, a coding agent that people reach through a gateway. \
               Answer briefly and say what you did.",
    system_prompt: Heard::FirstTurn,
    check_session,
    launch: launch::launch,
    dialect: dialect::dialect,
    warm: Some(&warm::WARM),
};

/// Credentials and choices of the CLI's own. The variables that say where
/// requests go (`GOOGLE_GEMINI_BASE_URL` and the like) are for the operator to
/// name: a repository's `.env` could set them as well; see `home`.
const ENV: &[&str] = &[
    "GEMINI_API_KEY",
    "GEMINI_API_KEY_AUTH_MECHANISM",
    "GEMINI_CLI_HOME",
    "GEMINI_CLI_USE_COMPUTE_ADC",
    "GEMINI_MODEL",
    "GOOGLE_API_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CLOUD_LOCATION",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_CLOUD_PROJECT_ID",
    "GOOGLE_GENAI_API_VERSION",
    "GOOGLE_GENAI_USE_GCA",
    "GOOGLE_GENAI_USE_VERTEXAI",
];

/// Refuses what the CLI takes for a place in its list of sessions: another
/// session than the one that was meant would go on.
fn check_session(id: &str) -> Result<(), RequestError> {
    request::check_session(id)?;
    let why = if id == "latest" || id.bytes().all(|byte| byte.is_ascii_digit()) {
        "Gemini takes it for a place in its list of sessions"
    } else if !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
        "Gemini's ids have letters, digits, dashes and underscores only"
    } else {
        return Ok(());
    };
    Err(RequestError::BadSession { id: id.to_owned(), why })
}
