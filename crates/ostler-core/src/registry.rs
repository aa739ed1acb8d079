//! The agents of an Ostler by name, and which one is meant when none is named.

use std::{
    pin::Pin,
    sync::{Arc, PoisonError, RwLock},
};

use thiserror::Error;

use crate::{
    agent::{AgentName, Caps},
    binary::BinaryError,
    cli_agent::StartError,
    request::TurnRequest,
    turn::Turn,
    version::Health,
};

/// A future that can be held without knowing its type.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What can be asked of any agent.
pub trait Agent: Send + Sync {
    /// Returns the agent's name.
    fn name(&self) -> &AgentName;

    /// Returns what the agent can do.
    fn caps(&self) -> &Caps;

    /// Finds out whether the agent could run, and which version it is.
    fn validate(&self) -> BoxFuture<'_, Result<Health, BinaryError>>;

    /// Starts a turn. Its events and its end come from the turn.
    fn start(&self, request: TurnRequest) -> BoxFuture<'_, Result<Turn, StartError>>;
}

/// No agent of that name is registered.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("agent {name} is not registered")]
pub struct NotRegistered {
    /// The name.
    pub name: AgentName,
}

/// Agents by name, in the order of their registration. Safe to share.
#[derive(Default)]
pub struct Registry {
    inner: RwLock<Inner>,
}

#[derive(Default)]
struct Inner {
    agents: Vec<Arc<dyn Agent>>,
    default: Option<AgentName>,
}

impl Inner {
    fn get(&self, name: &AgentName) -> Option<&Arc<dyn Agent>> {
        self.agents.iter().find(|agent| agent.name() == name)
    }
}

impl Registry {
    /// Makes an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an agent, or replaces the one of that name. The first becomes the default.
    pub fn register(&self, agent: Arc<dyn Agent>) {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let name = agent.name().clone();
        match inner.agents.iter_mut().find(|known| *known.name() == name) {
            Some(known) => *known = agent,
            None => inner.agents.push(agent),
        }
        inner.default.get_or_insert(name);
    }

    /// Returns the agent of that name.
    #[must_use]
    pub fn get(&self, name: &AgentName) -> Option<Arc<dyn Agent>> {
        self.read(|inner| inner.get(name).cloned())
    }

    /// Returns the default agent.
    #[must_use]
    pub fn default_agent(&self) -> Option<Arc<dyn Agent>> {
        self.read(|inner| inner.default.as_ref().and_then(|name| inner.get(name)).cloned())
    }

    /// Returns the default agent's name.
    #[must_use]
    pub fn default_provider(&self) -> Option<AgentName> {
        self.read(|inner| inner.default.clone())
    }

    /// Makes another agent the default.
    ///
    /// # Errors
    /// When it is not registered; the default stays as it was.
    pub fn set_default(&self, name: &AgentName) -> Result<(), NotRegistered> {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if inner.get(name).is_none() {
            return Err(NotRegistered { name: name.clone() });
        }
        inner.default = Some(name.clone());
        Ok(())
    }

    /// Returns all agents in the order of their registration.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<dyn Agent>> {
        self.read(|inner| inner.agents.clone())
    }

    /// Returns those that could run now.
    pub async fn list_available(&self) -> Vec<Arc<dyn Agent>> {
        let mut available = Vec::new();
        for agent in self.list() {
            if agent.validate().await.is_ok() {
                available.push(agent);
            }
        }
        available
    }

    /// Returns how many agents there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.read(|inner| inner.agents.len())
    }

    fn read<T>(&self, look: impl FnOnce(&Inner) -> T) -> T {
        look(&self.inner.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests;
