//! The `agents` key: agents of the operator's own, by name.

use std::{collections::BTreeMap, fmt, path::Path};

use ostler_core::agent::acp::AcpAgent;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::secret::{HIDDEN, settle_program};

/// Agents of the operator's own, in the order of the file.
#[derive(Clone, Default)]
pub(crate) struct OwnAgents {
    agents: Vec<AcpAgent>,
}

impl fmt::Debug for OwnAgents {
    /// Leaves the variables out: there are secrets in them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.agents.iter().map(|agent| &agent.name)).finish()
    }
}

impl OwnAgents {
    /// Adds an agent, as a file that was checked describes it.
    pub(super) fn add(&mut self, name: &str, entry: Map<String, Value>) -> Result<(), String> {
        let entry: Entry = serde_path_to_error::deserialize(Value::Object(entry))
            .map_err(|error| error.to_string())?;
        let agent = entry.named(name.to_owned());
        agent.clone().spec().map_err(|error| error.to_string())?;
        self.agents.push(agent);
        Ok(())
    }

    /// Takes programs that are named by a relative path as seen from a folder.
    pub(super) fn settle_in(&mut self, folder: &Path) {
        for agent in &mut self.agents {
            let version = agent.version.iter_mut().flat_map(|words| words.first_mut());
            for program in agent.command.first_mut().into_iter().chain(version) {
                settle_program(program, folder);
            }
        }
    }

    /// Drops the programs that would be run without their agent being asked for.
    pub(super) fn run_only_when_named(&mut self) {
        self.agents.iter_mut().for_each(|agent| agent.version = None);
    }

    /// Returns the agents.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &AcpAgent> {
        self.agents.iter()
    }

    /// Returns what they are by key, with the values of variables as these are
    /// (to compare them) or hidden (to show them).
    pub(super) fn by_key(&self, values: Values) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        for agent in &self.agents {
            let env = agent.env.iter().map(|(name, value)| {
                let value = match values {
                    Values::Real => value.as_str(),
                    Values::Hidden => HIDDEN,
                };
                (name.clone(), json!(value))
            });
            for (name, value) in [
                ("dialect", json!("acp")),
                ("command", json!(agent.command)),
                ("env", Value::Object(env.collect())),
                ("pass_env", json!(agent.pass_env)),
                ("version", json!(agent.version)),
            ] {
                all.push((format!("agents.{}.{name}", agent.name), value));
            }
        }
        all
    }
}

/// Which values of variables are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    Real,
    Hidden,
}

/// What is said about one agent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    dialect: Dialect,
    command: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    pass_env: Vec<String>,
    #[serde(default)]
    version: Option<Vec<String>>,
}

impl Entry {
    fn named(self, name: String) -> AcpAgent {
        match self.dialect {
            Dialect::Acp => AcpAgent {
                name,
                command: self.command,
                env: self.env.into_iter().collect(),
                pass_env: self.pass_env,
                version: self.version,
            },
        }
    }
}

/// How an agent is spoken with.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Dialect {
    Acp,
}
