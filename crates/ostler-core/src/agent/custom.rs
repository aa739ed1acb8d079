//! An agent that is not in the table: what it has beside the facts, and how it
//! is held.

use std::{fmt, ops::Deref, sync::Arc};

use super::AgentSpec;

/// The facts about an agent, built in or configured. Cheap to clone.
#[derive(Clone)]
pub enum AgentRef {
    /// One of the table.
    BuiltIn(&'static AgentSpec),
    /// One of somebody's own.
    Configured(Arc<AgentSpec>),
}

impl Deref for AgentRef {
    type Target = AgentSpec;

    fn deref(&self) -> &AgentSpec {
        match self {
            Self::BuiltIn(spec) => spec,
            Self::Configured(spec) => spec,
        }
    }
}

impl From<&'static AgentSpec> for AgentRef {
    fn from(spec: &'static AgentSpec) -> Self {
        Self::BuiltIn(spec)
    }
}

impl From<AgentSpec> for AgentRef {
    fn from(spec: AgentSpec) -> Self {
        Self::Configured(Arc::new(spec))
    }
}

impl fmt::Debug for AgentRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Names of variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// Those of a table.
    Listed(&'static [&'static str]),
    /// Those that somebody gave.
    Given(Vec<String>),
}

impl Names {
    /// Returns the names, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let (listed, given): (&[&str], &[String]) = match self {
            Self::Listed(names) => (names, &[]),
            Self::Given(names) => (&[], names),
        };
        listed.iter().copied().chain(given.iter().map(String::as_str))
    }

    /// Returns whether a name is among them.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|known| known == name)
    }
}

/// What only an agent of somebody's own has. There may be secrets in it, so it
/// cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Custom {
    /// The arguments with which its program is always started.
    pub args: Vec<String>,
    /// Variables that it always gets, with their values.
    pub env: Vec<(String, String)>,
    /// The program and the arguments that print its version, if there are such.
    pub version: Option<Vec<String>>,
}
