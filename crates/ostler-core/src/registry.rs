//! The agents of an Ostler by name, and which one is meant when none is named.

use std::{
    pin::Pin,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use thiserror::Error;
use tokio::{task::JoinSet, time::timeout};

use crate::{
    agent::{AgentName, Caps, http::ServerError},
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
    ///
    /// Takes no longer than ten seconds; a server that somebody else runs has two.
    fn validate(&self) -> BoxFuture<'_, Result<Health, Unusable>>;

    /// Starts a turn. Its events and its end come from the turn.
    fn start(&self, request: TurnRequest) -> BoxFuture<'_, Result<Turn, StartError>>;
}

/// Why an agent cannot run.
#[derive(Debug, Error)]
pub enum Unusable {
    /// Its program cannot.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// It is a server of somebody else's, with which something is wrong.
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// How long any agent may take to say whether it could run. Every agent of this
/// library has a shorter limit of its own.
const LIMIT: Duration = Duration::from_secs(12);

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

    /// Returns those that could run now, in the order of their registration.
    ///
    /// All are asked at once, and none for longer than its time limit, so one
    /// that hangs costs the others nothing.
    pub async fn list_available(&self) -> Vec<Arc<dyn Agent>> {
        self.available_within(LIMIT).await
    }

    async fn available_within(&self, limit: Duration) -> Vec<Arc<dyn Agent>> {
        let mut asked = JoinSet::new();
        for (number, agent) in self.list().into_iter().enumerate() {
            asked.spawn(async move {
                let answer = timeout(limit, agent.validate()).await;
                answer.is_ok_and(|health| health.is_ok()).then_some((number, agent))
            });
        }
        let mut available = Vec::new();
        while let Some(answer) = asked.join_next().await {
            // One whose own code panicked is not available either.
            available.extend(answer.ok().flatten());
        }
        available.sort_by_key(|(number, _)| *number);
        available.into_iter().map(|(_, agent)| agent).collect()
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
