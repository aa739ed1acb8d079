//! How somebody wants a turn to be run, whichever way the wish came: by the
//! command line, or with a message to the gateway, which stores it.
//!
//! Together with the configuration it makes a request. What is not wished is
//! as configured.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use ostler_core::{
    agent::{AgentRef, NameError},
    host::Host,
    request::{Format, Permissions, ProjectSettings, Thinking, TurnRequest},
};
use serde::{Deserialize, Serialize};

use crate::config::{Settings, word};

/// How a turn is to be run. The field names are stored, and part of the socket's contract.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Wishes {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// A session of the agent's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// Where the agent works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_turns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idle_timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ask_timeout_ms: Option<u64>,
    #[serde(with = "word::permissions", skip_serializing_if = "Option::is_none")]
    pub(crate) permissions: Option<Permissions>,
    #[serde(with = "word::thinking", skip_serializing_if = "Option::is_none")]
    pub(crate) thinking: Option<Thinking>,
    #[serde(with = "word::format", skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<Format>,
    /// How often a turn that failed is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retries: Option<u32>,
    /// With a home of the agent's own.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) isolated: bool,
    /// With a process of its own.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) cold: bool,
    /// With the settings that lie in the working directory.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) trust_project: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde asks for")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Returns a duration as wishes have it.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Wishes {
    /// Returns the agent that is wished for, else the configured one.
    pub(crate) fn agent<'a>(&self, settings: &'a Settings) -> Result<&'a AgentRef, NameError> {
        match &self.agent {
            Some(name) => settings.roster.resolve(name),
            None => Ok(&settings.agent),
        }
    }

    /// Returns the agent's own home, if it is to have one.
    pub(crate) fn home(&self, agent: &str, host: &Host) -> Option<PathBuf> {
        self.isolated.then(|| host.isolated_home(agent))
    }

    /// Makes a request that lacks nothing but its prompt and its session.
    pub(crate) fn request(
        &self,
        spec: &AgentRef,
        cwd: &Path,
        settings: &Settings,
        host: &Host,
    ) -> TurnRequest {
        let is_backend = spec.name == settings.agent.name;
        let or = |wish: Option<u64>, set: Duration| wish.map_or(set, Duration::from_millis);
        let mut request = TurnRequest::new(String::new(), cwd);
        request.timeout = or(self.timeout_ms, settings.timeout);
        request.idle_timeout = or(self.idle_timeout_ms, settings.idle_timeout);
        request.ask_timeout = or(self.ask_timeout_ms, settings.ask_timeout);
        let options = &mut request.options;
        options.model =
            self.model.clone().or_else(|| settings.model.clone().filter(|_| is_backend));
        options.system_prompt.clone_from(&self.system);
        options.allowed_tools =
            self.allowed_tools.clone().or_else(|| settings.allowed_tools.clone());
        options.max_turns = self.max_turns.or(settings.max_turns);
        let by_default =
            if spec.caps.supports_approvals { Permissions::Ask } else { Permissions::ReadOnly };
        options.permissions = self.permissions.or(settings.permissions).unwrap_or(by_default);
        options.thinking = self.thinking.or(settings.thinking);
        options.format = self.format.unwrap_or(options.format);
        options.env.clone_from(&settings.env);
        if self.trust_project {
            options.project_settings = ProjectSettings::Trusted;
        }
        options.home = self.home(&spec.name, host);
        request
    }
}
