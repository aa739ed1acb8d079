//! Who plays the agents: those that are installed, and the scripted one for the
//! others.

use std::{fs, io, os::unix::fs::PermissionsExt, path::PathBuf};

use ostler_core::{
    CliAgent, TurnRequest,
    agent::{self, AgentRef, AgentSpec},
    event::Mode,
};

use crate::{
    cli::rehearsal::Setting,
    gateway::{inbound::Payload, policy::Agents},
};

/// Who plays an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    Real,
    Scripted,
}

impl Cast {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Scripted => "scripted",
        }
    }
}

/// Everybody who plays.
#[derive(Clone, Debug)]
pub(crate) struct Troupe {
    setting: Setting,
    all_scripted: bool,
}

impl Troupe {
    pub(crate) fn new(setting: &Setting, all_scripted: bool) -> Self {
        Self { setting: setting.clone(), all_scripted }
    }

    /// Returns who plays an agent.
    pub(crate) fn cast(&self, spec: &'static AgentSpec) -> Cast {
        if !self.all_scripted && self.real(spec).find().is_ok() {
            Cast::Real
        } else {
            Cast::Scripted
        }
    }

    /// Returns the agent itself.
    pub(crate) fn real(&self, spec: &'static AgentSpec) -> CliAgent {
        CliAgent::new(spec, self.setting.host.clone())
    }

    /// Writes an executable file that plays an agent.
    fn stand_in(&self, spec: &AgentSpec) -> io::Result<PathBuf> {
        let path = self.setting.folder.join(&*spec.program);
        if path.exists() {
            return Ok(path);
        }
        // Through a shell, because the path of this program may have spaces in it.
        let own = std::env::current_exe()?.display().to_string().replace('\'', r"'\''");
        let text =
            format!("#!/bin/sh\nexec '{own}' scripted --as {} --pace-ms 15 -- \"$@\"\n", spec.name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(path)
    }

    fn request(&self, spec: &'static AgentSpec) -> TurnRequest {
        let setting = &self.setting;
        let real = match self.cast(spec) {
            // One whose files cannot be written fails, and says why.
            Cast::Real => setting.model_request(spec, "").ok().flatten(),
            Cast::Scripted => None,
        };
        let mut request = real.unwrap_or_else(|| setting.request(spec, ""));
        if spec.warm.is_some() {
            request.mode = Mode::Warm;
        }
        request
    }
}

impl Agents for Troupe {
    fn resolve(&self, name: Option<&str>) -> Result<AgentRef, String> {
        let name = name.unwrap_or("claude");
        let spec = agent::find(name).ok_or_else(|| format!("there is no agent {name:?}"))?;
        Ok(AgentRef::from(spec))
    }

    fn availability(&self) -> Vec<(String, bool)> {
        agent::AGENTS.iter().map(|spec| (spec.name.to_string(), true)).collect()
    }

    fn agent(&self, spec: &AgentRef) -> CliAgent {
        let agent = CliAgent::new(spec.clone(), self.setting.host.clone());
        let is_real = agent::find(&spec.name).is_some_and(|spec| self.cast(spec) == Cast::Real);
        if is_real {
            return agent;
        }
        match self.stand_in(spec) {
            Ok(program) => agent.with_program(program),
            // It is not found then, and says so.
            Err(_) => agent,
        }
    }

    fn prepare(&self, spec: &AgentRef, _: &Payload) -> (CliAgent, TurnRequest) {
        let request = match agent::find(&spec.name) {
            Some(spec) => self.request(spec),
            None => self.setting.request(spec, ""),
        };
        (self.agent(spec), request)
    }
}
