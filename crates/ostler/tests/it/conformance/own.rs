//! Agents that are not built in: how each is written down in a configuration.

use std::path::Path;

use serde_json::{Value, json};

/// What a configuration says of an agent, apart from where its program lies.
pub(crate) struct Own {
    args: &'static [&'static str],
    /// The variables that it needs; `{url}` and `{key}` are the simulated model's.
    env: &'static [(&'static str, &'static str)],
}

pub(crate) const COPILOT: Own = Own {
    args: &["--acp", "--no-auto-update"],
    env: &[
        ("COPILOT_PROVIDER_BASE_URL", "{url}/v1"),
        ("COPILOT_PROVIDER_TYPE", "openai"),
        ("COPILOT_PROVIDER_API_KEY", "{key}"),
        ("COPILOT_MODEL", "sim-1"),
        ("COPILOT_OFFLINE", "true"),
        ("COPILOT_AUTO_UPDATE", "false"),
    ],
};

pub(crate) const QWEN: Own = Own {
    args: &["--acp", "--auth-type", "openai", "-m", "sim-1", "--safe-mode"],
    env: &[
        ("OPENAI_BASE_URL", "{url}/v1"),
        ("OPENAI_API_KEY", "{key}"),
        ("QWEN_CODE_NO_RELAUNCH", "true"),
    ],
};

/// OpenCode where only its standard input and output can be reached.
pub(crate) const OPENCODE: Own = Own {
    args: &["acp"],
    env: &[
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
        // It listens as well, whether anybody wants that or not.
        ("OPENCODE_SERVER_PASSWORD", "not-for-anybody"),
        ("OPENCODE_CONFIG_CONTENT", OPENCODE_SETTINGS),
    ],
};

const OPENCODE_SETTINGS: &str = r#"{
    "model": "ostler_sim/sim-1",
    "small_model": "ostler_sim/sim-1",
    "enabled_providers": ["ostler_sim"],
    "permission": { "bash": "ask" },
    "provider": { "ostler_sim": {
        "npm": "@ai-sdk/openai-compatible",
        "options": { "baseURL": "{url}/v1", "apiKey": "{key}" },
        "models": { "sim-1": { "limit": { "context": 200000, "output": 8192 } } }
    } }
}"#;

impl Own {
    /// Returns the configuration with this agent.
    pub(crate) fn config(&self, name: &str, program: &Path, url: &str, key: &str) -> Value {
        let command: Vec<_> =
            std::iter::once(program.to_str().unwrap()).chain(self.args.iter().copied()).collect();
        let env: serde_json::Map<_, _> = self
            .env
            .iter()
            .map(|(name, value)| {
                let value = value.replace("{url}", url).replace("{key}", key);
                ((*name).to_owned(), Value::from(value))
            })
            .collect();
        json!({ "agents": { name: { "dialect": "acp", "command": command, "env": env } } })
    }
}
