//! Settings from the environment: the only place in this program that reads it.

mod server;

use std::{ffi::OsStr, fmt, path::PathBuf, time::Duration};

use ostler_core::{
    agent::{self, AgentSpec, NameError, http::ServerAddress},
    environment::Variables,
    request::Permissions,
};
use thiserror::Error;

/// How many model calls a turn may make when `BACKEND_MAX_TURNS` cannot be read.
const DEFAULT_MAX_TURNS: u32 = 25;

/// A variable whose value cannot be used.
#[derive(Debug, Error)]
pub(crate) enum ConfigError {
    /// No such agent.
    #[error("AGENT_BACKEND: {0}")]
    Agent(#[from] NameError),
    /// Anything else.
    #[error("{name}: {why}")]
    Value {
        /// Which variable.
        name: &'static str,
        /// What is wrong with it, and what is right.
        why: String,
    },
}

/// What the environment says about agents.
pub(crate) struct Settings {
    /// The outer environment.
    pub(crate) environment: Variables,
    /// `AGENT_BACKEND`, or Claude.
    pub(crate) agent: &'static AgentSpec,
    /// `BACKEND_CLI_PATH`, for that agent.
    pub(crate) program: Option<PathBuf>,
    /// `BACKEND_MODEL`, for that agent.
    pub(crate) model: Option<String>,
    /// `BACKEND_MAX_TURNS`.
    pub(crate) max_turns: Option<u32>,
    /// `ALLOWED_TOOLS`, separated by commas.
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// `QUERY_TIMEOUT_MS`.
    pub(crate) timeout: Option<Duration>,
    /// `PERMISSION_MODE`.
    pub(crate) permissions: Option<Permissions>,
    /// The server that is the agent `opencode`: `OPENCODE_ENABLED`, `OPENCODE_URL`,
    /// `OPENCODE_USERNAME` and `OPENCODE_PASSWORD`.
    pub(crate) opencode_server: Option<ServerAddress>,
    /// What was read but is not as it should be.
    pub(crate) warnings: Vec<String>,
}

impl fmt::Debug for Settings {
    /// Leaves the environment out: there are secrets in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("agent", &self.agent).finish_non_exhaustive()
    }
}

impl Settings {
    /// Reads the environment of this process.
    pub(crate) fn from_process() -> Result<Self, ConfigError> {
        #[expect(clippy::disallowed_methods, reason = "configuration is read here")]
        Self::from_environment(std::env::vars_os().collect())
    }

    /// Reads an environment as given.
    pub(crate) fn from_environment(environment: Variables) -> Result<Self, ConfigError> {
        let raw = |name: &'static str| match environment.get(OsStr::new(name)) {
            None => Ok(None),
            Some(value) => value.to_str().map(Some).ok_or_else(|| ConfigError::Value {
                name,
                why: "its value is not valid UTF-8".to_owned(),
            }),
        };
        let text = |name| raw(name).map(|value| value.filter(|value| !value.is_empty()));
        let mut warnings = Vec::new();
        let max_turns = text("BACKEND_MAX_TURNS")?.map(|value| {
            value.parse().ok().filter(|turns| *turns > 0).unwrap_or_else(|| {
                warnings.push(format!(
                    "BACKEND_MAX_TURNS: {value:?} is not a positive number; using {DEFAULT_MAX_TURNS}"
                ));
                DEFAULT_MAX_TURNS
            })
        });
        let timeout = text("QUERY_TIMEOUT_MS")?
            .map(|value| match value.parse() {
                Ok(ms) if ms > 0 => Ok(Duration::from_millis(ms)),
                _ => Err(ConfigError::Value {
                    name: "QUERY_TIMEOUT_MS",
                    why: format!("invalid timeout {value:?}; give milliseconds above 0"),
                }),
            })
            .transpose()?;
        let allowed_tools = text("ALLOWED_TOOLS")?
            .map(|value| {
                let tools = value.split(',').map(str::trim).filter(|tool| !tool.is_empty());
                tools.map(str::to_owned).collect::<Vec<_>>()
            })
            .filter(|tools| !tools.is_empty());
        let server = server::Raw {
            enabled: raw("OPENCODE_ENABLED")?,
            url: raw("OPENCODE_URL")?,
            user: raw("OPENCODE_USERNAME")?,
            password: raw("OPENCODE_PASSWORD")?,
        };
        let opencode_server = server::read(&server, &mut warnings)?;
        Ok(Self {
            opencode_server,
            agent: agent::resolve_backend(raw("AGENT_BACKEND")?)?,
            program: text("BACKEND_CLI_PATH")?.map(PathBuf::from),
            model: text("BACKEND_MODEL")?.map(str::to_owned),
            max_turns,
            allowed_tools,
            timeout,
            permissions: text("PERMISSION_MODE")?.map(permissions).transpose()?,
            warnings,
            environment,
        })
    }
}

impl Settings {
    /// Returns the server that an agent is, if it is one.
    pub(crate) fn server_of(&self, agent: &str) -> Option<&ServerAddress> {
        self.opencode_server.as_ref().filter(|_| agent == "opencode")
    }
}

/// Reads `PERMISSION_MODE`: the older product's words, and ours.
fn permissions(value: &str) -> Result<Permissions, ConfigError> {
    Ok(match value {
        "bypassPermissions" | "bypass" => Permissions::Bypass,
        "default" | "ask" => Permissions::Ask,
        "plan" | "read-only" => Permissions::ReadOnly,
        other => {
            return Err(ConfigError::Value {
                name: "PERMISSION_MODE",
                why: format!("{other:?} is none of bypassPermissions, default, plan"),
            });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn read(pairs: &[(&str, &str)]) -> Result<Settings, ConfigError> {
        Settings::from_environment(pairs.iter().map(|(k, v)| (k.into(), v.into())).collect())
    }

    #[test]
    fn unset_variables_mean_claude_and_the_agents_own_defaults() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.agent.name, "claude");
        assert_eq!((settings.program, settings.model, settings.max_turns), (None, None, None));
        assert!(settings.permissions.is_none() && settings.timeout.is_none());
    }

    #[test]
    fn a_wrong_or_empty_backend_is_an_error_that_lists_the_valid_ones() {
        for name in ["", "Claude", "claudecode", "gpt"] {
            let error = read(&[("AGENT_BACKEND", name)]).unwrap_err().to_string();
            assert!(error.contains("claude, codex, gemini, opencode, pi"), "{error}");
        }
        assert_eq!(read(&[("AGENT_BACKEND", "codex")]).unwrap().agent.name, "codex");
    }

    #[test]
    fn an_unreadable_turn_limit_is_25_and_a_warning() {
        for value in ["many", "0", "-3"] {
            let settings = read(&[("BACKEND_MAX_TURNS", value)]).unwrap();
            assert_eq!(settings.max_turns, Some(25));
            assert_eq!(settings.warnings.len(), 1);
        }
        assert_eq!(read(&[("BACKEND_MAX_TURNS", "7")]).unwrap().max_turns, Some(7));
    }

    #[test]
    fn the_older_permission_words_keep_their_meaning() {
        let mode = |value| read(&[("PERMISSION_MODE", value)]).unwrap().permissions;
        assert_eq!(mode("bypassPermissions"), Some(Permissions::Bypass));
        assert_eq!(mode("plan"), Some(Permissions::ReadOnly));
        assert!(read(&[("PERMISSION_MODE", "yes")]).is_err());
    }

    #[test]
    fn tools_are_separated_by_commas_and_a_zero_timeout_is_refused() {
        let tools = read(&[("ALLOWED_TOOLS", "Bash, Read,,")]).unwrap().allowed_tools;
        assert_eq!(tools, Some(vec!["Bash".to_owned(), "Read".to_owned()]));
        assert_eq!(read(&[("ALLOWED_TOOLS", ",")]).unwrap().allowed_tools, None);
        let error = read(&[("QUERY_TIMEOUT_MS", "0")]).unwrap_err().to_string();
        assert!(error.contains("invalid timeout"), "{error}");
    }
}
