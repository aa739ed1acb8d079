//! Settings from the environment and from a file: the only place in this
//! program that reads them. How a file looks is in `file`, and in one file for
//! each of its keys.

mod agents;
mod file;
mod server;
#[cfg(test)]
mod tests;

use std::{
    ffi::OsStr,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use ostler_core::{
    HostConfig,
    agent::{self, AgentRef, NameError, Roster, acp::CustomError, http::ServerAddress},
    environment::Variables,
    request::Permissions,
};
use thiserror::Error;

use crate::store::{Location, LocationError};

/// How many model calls a turn may make when `BACKEND_MAX_TURNS` cannot be read.
const DEFAULT_MAX_TURNS: u32 = 25;

/// A variable or a file that cannot be used.
#[derive(Debug, Error)]
pub(crate) enum ConfigError {
    /// No such agent.
    #[error("AGENT_BACKEND: {0}")]
    Agent(#[from] NameError),
    /// The configuration file.
    #[error(transparent)]
    File(#[from] file::FileError),
    /// An agent of the file, for a reason that reading it did not find.
    #[error("agents: {0}")]
    Custom(#[from] CustomError),
    /// Anything else.
    #[error("{name}: {why}")]
    Value {
        /// Which variable.
        name: &'static str,
        /// What is wrong with it, and what is right.
        why: String,
    },
}

/// What the environment and the file say about agents.
pub(crate) struct Settings {
    /// The outer environment.
    pub(crate) environment: Variables,
    /// The agents there are.
    pub(crate) roster: Roster,
    /// `AGENT_BACKEND`, or Claude.
    pub(crate) agent: AgentRef,
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
    /// Where the store is: `OSTLER_DATABASE_URL`, else a file in the data folder.
    pub(crate) store: Location,
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
    /// Reads the environment of this process, and the file that it names, the
    /// command line names, or that lies where such files lie.
    pub(crate) fn from_process(config: Option<&Path>) -> Result<Self, ConfigError> {
        #[expect(clippy::disallowed_methods, reason = "configuration is read here")]
        let environment = std::env::vars_os().collect();
        let mut file = file::File::default();
        if let Some(found) = file::find(config, &environment) {
            file = file::read(&found.path)?;
            if found.is_local {
                file.agents.run_only_when_named();
            }
        }
        let mut settings = Self::from_environment(environment)?;
        for agent in file.agents.into_vec() {
            settings.roster.add(agent.spec()?);
        }
        Ok(settings)
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
        let store = match text("OSTLER_DATABASE_URL")? {
            Some(url) => url.parse().map_err(|error: LocationError| ConfigError::Value {
                name: "OSTLER_DATABASE_URL",
                why: error.to_string(),
            })?,
            None => {
                Location::in_folder(&HostConfig::from_environment(environment.clone()).data_dir)
            }
        };
        Ok(Self {
            store,
            roster: Roster::default(),
            opencode_server,
            agent: agent::resolve_backend(raw("AGENT_BACKEND")?)?.into(),
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
