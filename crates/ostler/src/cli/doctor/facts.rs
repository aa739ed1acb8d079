//! What the doctor knows of each agent beside its spec: the Node it needs, and
//! where its login can be seen without reading it.

/// The facts of one agent.
pub(crate) struct Facts {
    pub(crate) agent: &'static str,
    /// The oldest Node that the tested versions run on, major and minor, where
    /// the program is a script of Node's.
    pub(crate) needs_node: Option<(u64, u64)>,
    /// Variables that are a login when they are set.
    pub(crate) variables: &'static [&'static str],
    /// Files that hold a login, or settings that can name one, when they exist.
    pub(crate) files: &'static [File],
    /// How to log in.
    pub(crate) log_in: &'static str,
    /// Whether it shows what a tool that read a file gave back.
    pub(crate) shows_what_was_read: bool,
}

/// A file of an agent. It is never opened.
pub(crate) struct File {
    /// The variable that names the folder.
    pub(crate) variable: &'static str,
    /// The folder below the home when the variable is not set.
    pub(crate) folder: &'static str,
    /// The file below the folder.
    pub(crate) path: &'static str,
}

/// Returns the facts of an agent.
pub(crate) fn of(agent: &str) -> Option<&'static Facts> {
    FACTS.iter().find(|facts| facts.agent == agent)
}

static FACTS: &[Facts] = &[
    Facts {
        agent: "claude",
        shows_what_was_read: true,
        needs_node: None,
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_FOUNDRY",
            "CLAUDE_CODE_USE_VERTEX",
        ],
        files: &[File {
            variable: "CLAUDE_CONFIG_DIR",
            folder: ".claude",
            path: ".credentials.json",
        }],
        log_in: "run `claude` once and log in, or set ANTHROPIC_API_KEY",
    },
    Facts {
        agent: "codex",
        shows_what_was_read: true,
        needs_node: None,
        // `codex exec` does not look at OPENAI_API_KEY.
        variables: &["CODEX_API_KEY", "CODEX_ACCESS_TOKEN"],
        files: &[File { variable: "CODEX_HOME", folder: ".codex", path: "auth.json" }],
        log_in: "run `codex login`, or set CODEX_API_KEY",
    },
    Facts {
        agent: "gemini",
        shows_what_was_read: false,
        needs_node: Some((20, 0)),
        variables: &[
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_GENAI_USE_GCA",
            "GOOGLE_GENAI_USE_VERTEXAI",
        ],
        files: &[
            File { variable: "GEMINI_CLI_HOME", folder: "", path: ".gemini/oauth_creds.json" },
            File {
                variable: "GEMINI_CLI_HOME",
                folder: "",
                path: ".gemini/gemini-credentials.json",
            },
        ],
        log_in: "run `gemini` once and log in, or set GEMINI_API_KEY",
    },
    Facts {
        agent: "opencode",
        shows_what_was_read: true,
        needs_node: None,
        variables: &[
            "ANTHROPIC_API_KEY",
            "GEMINI_API_KEY",
            "OPENAI_API_KEY",
            "OPENCODE_API_KEY",
            "OPENROUTER_API_KEY",
        ],
        files: &[
            File { variable: "XDG_DATA_HOME", folder: ".local/share", path: "opencode/auth.json" },
            // A provider that is configured here may need no login at all.
            File { variable: "XDG_CONFIG_HOME", folder: ".config", path: "opencode/opencode.json" },
        ],
        log_in: "run `opencode auth login`, or set the key of a provider",
    },
    Facts {
        agent: "pi",
        shows_what_was_read: true,
        needs_node: Some((22, 19)),
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_OAUTH_TOKEN",
            "GEMINI_API_KEY",
            "OPENAI_API_KEY",
            "OPENROUTER_API_KEY",
        ],
        files: &[
            File { variable: "PI_CODING_AGENT_DIR", folder: ".pi/agent", path: "auth.json" },
            // A provider that is configured here may need no login at all.
            File { variable: "PI_CODING_AGENT_DIR", folder: ".pi/agent", path: "models.json" },
        ],
        log_in: "run `pi` once and log in with /login, or set the key of a provider",
    },
];

#[cfg(test)]
mod tests {
    use ostler_core::agent::AGENTS;

    use super::*;

    #[test]
    fn there_are_facts_of_every_agent() {
        for spec in AGENTS {
            let facts = of(&spec.name).unwrap_or_else(|| panic!("no facts of {}", spec.name));
            assert!(!facts.files.is_empty(), "{}", spec.name);
            let passed_on = facts.variables.iter().any(|name| spec.env.contains(name));
            assert!(passed_on, "no login of {} reaches it by a variable", spec.name);
        }
    }
}
