//! The names of agents, and what a name that somebody gives stands for.

use std::{borrow::Cow, fmt, ops::Deref};

use serde::{Serialize, Serializer};
use thiserror::Error;

use super::{AGENTS, AgentSpec, find};

/// The name of an agent: built-in or configured, hence not an enum.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentName(Cow<'static, str>);

impl AgentName {
    /// Takes a name as it is.
    pub fn new(name: impl Into<String>) -> Self {
        Self(Cow::Owned(name.into()))
    }

    /// Takes the name of an agent in a table.
    #[must_use]
    pub const fn built_in(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for AgentName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for AgentName {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for AgentName {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl From<&AgentName> for String {
    fn from(name: &AgentName) -> Self {
        name.0.clone().into_owned()
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for AgentName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// A name that stands for no agent.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NameError {
    /// Not one of the names.
    #[error("unknown agent {name:?}; valid agents: {}", valid_names())]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// Not one of the names, where the older product's names are also taken.
    #[error("invalid agent provider {name:?}; valid agents: {valid}")]
    InvalidProvider {
        /// What was asked for.
        name: String,
        /// What could have been asked for.
        valid: String,
    },
}

/// Resolves the value of `AGENT_BACKEND`: unset is `claude`, else an exact name.
///
/// # Errors
/// When it is anything else, the empty string included.
pub fn resolve_backend(value: Option<&str>) -> Result<&'static AgentSpec, NameError> {
    let name = value.unwrap_or("claude");
    find(name).ok_or_else(|| NameError::Unknown { name: name.to_owned() })
}

/// Other names that the older product's users know an agent by.
pub(super) const ALIASES: &[(&str, &str)] = &[("claudecode", "claude")];

/// Resolves a name where the alias `claudecode` is taken as well.
///
/// # Errors
/// When it is neither a name nor the alias.
pub fn resolve_provider(name: &str) -> Result<&'static AgentSpec, NameError> {
    find(canonical(name))
        .ok_or_else(|| NameError::InvalidProvider { name: name.to_owned(), valid: valid_names() })
}

/// Returns the name that an alias stands for, or the name itself.
pub(super) fn canonical(name: &str) -> &str {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, canonical)| canonical)
}

fn valid_names() -> String {
    let names: Vec<&str> = AGENTS.iter().map(|spec| spec.name.as_str()).collect();
    names.join(", ")
}
