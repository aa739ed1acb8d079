//! Pi, driven one turn at a time through `pi -p --mode json`, or kept running as
//! `pi --mode rpc`.
//!
//! Facts only. How a command line is made is in `launch`, how the output is
//! read in `dialect` (JSON lines) and `plain` (text), how a process is kept in
//! `warm`; its sharp edges have a test each.

mod blocks;
mod dialect;
mod fault;
mod field;
mod launch;
mod message;
mod notice;
mod plain;
mod reader;
mod session;
mod stream;
mod tool;
mod turn;
mod version;
mod warm;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, time::Duration};

use super::{AgentName, AgentSpec, Caps, Heard, Names, Signal, StopStep};
use crate::request::RequestError;

/// Everything Ostler knows about Pi.
pub static SPEC: AgentSpec = AgentSpec {
    name: AgentName::built_in("pi"),
    title: Cow::Borrowed("Pi"),
    program: Cow::Borrowed("pi"),
    custom: None,
    // It is JavaScript that `env node` runs; there is no native program.
    natives: &[],
    caps: Caps {
        supports_session_continuation: true,
        supports_model_selection: true,
        supports_tool_control: true,
        supports_streaming: true,
        // It has no permissions to ask for: every tool it is given, it runs.
        supports_approvals: false,
        supports_warm: true,
        // The CLI cannot count; the dialect does.
        supports_max_turns: true,
        supports_system_prompt: true,
        // Which ones there are depends on the user's providers.
        supported_models: &[],
        default_model: None,
        max_prompt_length: 0,
    },
    env: Names::Listed(ENV),
    home_env: &["PI_CODING_AGENT_DIR"],
    project_files: &["AGENTS.override.md", "AGENTS.md", "CLAUDE.md", ".pi", ".agents/skills"],
    // SIGTERM makes it end its running shell and exit 143 within 50 ms. SIGINT
    // has no handler: it dies at once, and the shell, which has a session of
    // its own, lives on.
    stop: &[StopStep::Signal { signal: Signal::Term, wait: Duration::from_secs(2) }],
    tested_versions: &["0.87.1"],
    install_hint: "npm install -g @earendil-works/pi-coding-agent@0.87.1 (it wants Node 22.19 \
                   or newer; on Node 20 npm silently picks 0.74.2)",
    identity: "You are Pi, a coding agent that people write to through a gateway. \
               Be brief, and name what you changed.",
    system_prompt: Heard::EachTurn,
    check_session,
    launch: launch::launch,
    dialect: dialect::dialect,
    warm: Some(&warm::WARM),
};

/// The variables that the CLI's own help names. Long-lived cloud keys
/// (`AWS_SECRET_ACCESS_KEY` and the like) are not the CLI's own: an operator
/// who needs them names them. `PI_CODING_AGENT_SESSION_DIR` is not here because
/// the command line sets it.
const ENV: &[&str] = &[
    "PI_CODING_AGENT_DIR",
    "PI_PACKAGE_DIR",
    "AI_GATEWAY_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_OAUTH_TOKEN",
    "ANT_LING_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_PROFILE",
    "AWS_REGION",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_API_VERSION",
    "AZURE_OPENAI_BASE_URL",
    "AZURE_OPENAI_DEPLOYMENT_NAME_MAP",
    "AZURE_OPENAI_RESOURCE_NAME",
    "BASETEN_API_KEY",
    "CEREBRAS_API_KEY",
    "CLOUDFLARE_ACCOUNT_ID",
    "CLOUDFLARE_API_KEY",
    "CLOUDFLARE_GATEWAY_ID",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GROQ_API_KEY",
    "KIMI_API_KEY",
    "META_API_KEY",
    "MINIMAX_API_KEY",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "NVIDIA_API_KEY",
    "OPENAI_API_KEY",
    "OPENCODE_API_KEY",
    "OPENROUTER_API_KEY",
    "QWEN_TOKEN_PLAN_API_KEY",
    "QWEN_TOKEN_PLAN_CN_API_KEY",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
    "XIAOMI_API_KEY",
    "XIAOMI_TOKEN_PLAN_AMS_API_KEY",
    "XIAOMI_TOKEN_PLAN_CN_API_KEY",
    "XIAOMI_TOKEN_PLAN_SGP_API_KEY",
    "ZAI_API_KEY",
    "ZAI_CODING_CN_API_KEY",
];

/// Takes the ids that the CLI itself would make or accept. Anything with a
/// slash or the ending of its files is a path to it, and a path that does not
/// exist silently becomes a new session.
fn check_session(id: &str) -> Result<(), RequestError> {
    crate::request::check_session(id)?;
    let is_plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    let has_plain_ends =
        [id.bytes().next(), id.bytes().last()].iter().flatten().all(u8::is_ascii_alphanumeric);
    let why = if !is_plain || !has_plain_ends {
        "Pi's ids have letters, digits, and `.`, `_`, `-` between them"
    } else if id.ends_with(".jsonl") {
        "Pi would take it for the path of a file"
    } else {
        return Ok(());
    };
    Err(RequestError::BadSession { id: id.to_owned(), why })
}
