//! All the agents there are: the built-in ones, and those of somebody's own.

use super::{AGENTS, AgentRef, AgentSpec, NameError, name};

/// The agents by name: first the built-in ones, then those that were added, in
/// their order.
#[derive(Clone, Debug)]
pub struct Roster {
    agents: Vec<AgentRef>,
}

impl Default for Roster {
    /// The built-in ones.
    fn default() -> Self {
        Self { agents: AGENTS.iter().map(|spec| AgentRef::BuiltIn(spec)).collect() }
    }
}

impl Roster {
    /// Adds an agent; one of the same name, unless it is built in, is replaced.
    pub fn add(&mut self, spec: AgentSpec) {
        let spec = AgentRef::from(spec);
        let is_it = |known: &&mut AgentRef| known.name == *spec.name;
        match self.agents.iter_mut().find(is_it) {
            Some(AgentRef::BuiltIn(_)) => {}
            Some(known) => *known = spec,
            None => self.agents.push(spec),
        }
    }

    /// Returns the agents, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &AgentRef> {
        self.agents.iter()
    }

    /// Finds an agent by its exact name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&AgentRef> {
        self.agents.iter().find(|spec| spec.name == *name)
    }

    /// Finds an agent by its name or by what the older product calls it.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn resolve(&self, name: &str) -> Result<&AgentRef, NameError> {
        self.find(name::canonical(name)).ok_or_else(|| NameError::InvalidProvider {
            name: name.to_owned(),
            valid: self.names(),
        })
    }

    /// Returns the names, separated by commas.
    #[must_use]
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.agents.iter().map(|spec| spec.name.as_str()).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::acp::AcpAgent;

    fn own(name: &str, program: &str) -> AgentSpec {
        let command = vec![program.to_owned()];
        AcpAgent { name: name.to_owned(), command, ..AcpAgent::default() }.spec().unwrap()
    }

    #[test]
    fn those_of_ones_own_come_after_the_built_in_ones_and_are_found_like_them() {
        let mut roster = Roster::default();
        roster.add(own("goose", "goose"));
        roster.add(own("goose", "other"));
        assert_eq!(roster.names(), "claude, codex, gemini, opencode, pi, goose");
        assert_eq!(roster.resolve("goose").unwrap().program, "other");
        assert_eq!(roster.resolve("claudecode").unwrap().name, "claude");
        let error = roster.resolve("duck").unwrap_err().to_string();
        assert!(error.starts_with("invalid agent provider \"duck\""), "{error}");
        assert!(error.ends_with("pi, goose"), "{error}");
    }
}
