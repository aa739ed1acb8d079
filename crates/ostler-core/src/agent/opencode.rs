//! OpenCode, driven one turn at a time through `opencode run`, or kept running
//! as a server (`warm`).
//!
//! Facts only. How a command line is made is in `launch` (what goes into its
//! configuration in `settings`), how the output is read in `dialect` (JSON
//! lines) and `plain` (text), what it logs on standard error in `log`.

mod answer;
mod dialect;
mod fault;
mod launch;
mod log;
mod message;
mod patience;
mod plain;
mod settings;
#[cfg(test)]
mod tests;
mod tool;
mod turn;
mod variables;
mod warm;

use std::{borrow::Cow, time::Duration};

use super::{AgentName, AgentSpec, Caps, Heard, Names, Signal, StopStep};
use crate::request;

/// Everything Ostler knows about OpenCode.
pub static SPEC: AgentSpec = AgentSpec {
    name: AgentName::built_in("opencode"),
    title: Cow::Borrowed("OpenCode"),
    program: Cow::Borrowed("opencode"),
    custom: None,
    natives: NATIVES,
    caps: Caps {
        supports_session_continuation: true,
        supports_model_selection: true,
        supports_tool_control: true,
        // `run` prints whole texts as they come, never pieces of one; the server does.
        supports_streaming: false,
        // `run` rejects every request for permission by itself; the server asks.
        supports_approvals: cfg!(feature = "http"),
        supports_warm: cfg!(feature = "http"),
        // The CLI's own limit is advice to the model; Ostler counts the calls.
        supports_max_turns: true,
        supports_system_prompt: true,
        // Whatever its providers offer, as `provider/model`; `opencode models` lists them.
        supported_models: &[],
        default_model: None,
        max_prompt_length: 0,
    },
    env: Names::Listed(ENV),
    home_env: &[
        "OPENCODE_CONFIG",
        "OPENCODE_CONFIG_DIR",
        "OPENCODE_DB",
        "OPENCODE_MODELS_PATH",
        "AWS_PROFILE",
        "GOOGLE_APPLICATION_CREDENTIALS",
    ],
    project_files: &[
        "opencode.json",
        "opencode.jsonc",
        ".opencode",
        "AGENTS.md",
        "CLAUDE.md",
        ".agents/skills",
        ".claude/skills",
    ],
    // Every signal ends it at once and leaves the running tool, which has a
    // session of its own, to the keeper.
    stop: &[StopStep::Signal { signal: Signal::Term, wait: Duration::from_secs(2) }],
    tested_versions: &["1.18.33"],
    install_hint: "npm install -g opencode-ai",
    identity: "You are OpenCode, answering through a chat gateway. \
               Keep replies short enough to be read in a chat.",
    system_prompt: Heard::EachTurn,
    check_session: request::check_session,
    launch: launch::launch,
    dialect: dialect::dialect,
    // It is spoken to over HTTP.
    warm: if cfg!(feature = "http") { Some(&warm::WARM) } else { None },
};

/// Where its settings are and the keys of the providers that its documentation
/// names. A provider of another name is for the operator to pass on, as are
/// long-lived cloud keys. `OPENCODE_CONFIG_CONTENT` and `OPENCODE_PERMISSION`
/// are not inherited: Ostler says its own settings there.
const ENV: &[&str] = &[
    "OPENCODE_CONFIG",
    "OPENCODE_CONFIG_DIR",
    "OPENCODE_DB",
    "OPENCODE_MODELS_PATH",
    "OPENCODE_MODELS_URL",
    "OPENCODE_API_KEY",
    "OPENCODE_AUTH_CONTENT",
    "ANTHROPIC_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_PROFILE",
    "AWS_REGION",
    "AZURE_API_KEY",
    "AZURE_RESOURCE_NAME",
    "CEREBRAS_API_KEY",
    "CLOUDFLARE_ACCOUNT_ID",
    "CLOUDFLARE_API_TOKEN",
    "CLOUDFLARE_GATEWAY_ID",
    "DEEPINFRA_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GROQ_API_KEY",
    "HF_TOKEN",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY",
    "VERTEX_LOCATION",
    "XAI_API_KEY",
    "ZHIPU_API_KEY",
];

/// Paths of the native program, relative to the folder of the npm command
/// `opencode-ai/bin/opencode.exe`, which only complains unless its install
/// script ran. The baseline build runs on every processor; the musl builds are
/// installed where they are needed only, the others everywhere.
macro_rules! natives {
    ($($platform:literal),*) => {
        &[$(
            concat!("../../opencode-", $platform, "/bin/opencode"),
            concat!("../node_modules/opencode-", $platform, "/bin/opencode"),
        )*]
    };
}

const NATIVES: &[&str] = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
    natives!("linux-x64-baseline-musl", "linux-x64-musl", "linux-x64-baseline", "linux-x64")
} else if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
    natives!("linux-arm64-musl", "linux-arm64")
} else if cfg!(all(target_os = "macos", target_arch = "x86_64")) {
    natives!("darwin-x64-baseline", "darwin-x64")
} else if cfg!(all(target_os = "macos", target_arch = "aarch64")) {
    natives!("darwin-arm64")
} else {
    &[]
};
