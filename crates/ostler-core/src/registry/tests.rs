use super::*;
use crate::agent::claude;

/// An agent that is nothing but a name and a mark to tell two of them apart.
struct Named {
    name: AgentName,
    mark: usize,
}

impl Agent for Named {
    fn name(&self) -> &AgentName {
        &self.name
    }

    fn caps(&self) -> &Caps {
        &claude::SPEC.caps
    }

    fn validate(&self) -> BoxFuture<'_, Result<Health, BinaryError>> {
        Box::pin(async move {
            if self.mark == 0 {
                let (agent, hint) = (self.name.clone(), "");
                return Err(BinaryError::Missing { agent, path: "gone".into(), hint });
            }
            let path = format!("/{}", self.mark).into();
            Ok(Health { path, version: None, warning: None })
        })
    }

    fn start(&self, _: TurnRequest) -> BoxFuture<'_, Result<Turn, StartError>> {
        Box::pin(async { Err(StartError::ShuttingDown) })
    }
}

fn named(name: &str, mark: usize) -> Arc<dyn Agent> {
    Arc::new(Named { name: AgentName::new(name), mark })
}

fn names(agents: &[Arc<dyn Agent>]) -> Vec<&str> {
    agents.iter().map(|agent| agent.name().as_str()).collect()
}

async fn mark(registry: &Registry, name: &str) -> String {
    let agent = registry.get(&AgentName::new(name)).unwrap();
    agent.validate().await.unwrap().path.display().to_string()
}

#[test]
fn an_empty_registry_has_no_default_and_knows_nobody() {
    let registry = Registry::new();
    assert!(registry.default_agent().is_none());
    assert!(registry.default_provider().is_none());
    assert!(registry.get(&AgentName::new("claude")).is_none());
    assert_eq!(registry.count(), 0);
}

#[tokio::test]
async fn the_first_is_the_default_and_registering_again_overwrites_but_keeps_it() {
    let registry = Registry::new();
    registry.register(named("a", 1));
    registry.register(named("b", 2));
    registry.register(named("a", 3));
    assert_eq!(registry.count(), 2);
    assert_eq!(names(&registry.list()), ["a", "b"]);
    assert_eq!(mark(&registry, "a").await, "/3");
    assert_eq!(registry.default_provider(), Some(AgentName::new("a")));
}

#[test]
fn the_default_can_be_set_to_a_known_agent_only() {
    let registry = Registry::new();
    registry.register(named("a", 1));
    registry.register(named("b", 2));
    registry.set_default(&AgentName::new("b")).unwrap();
    let error = registry.set_default(&AgentName::new("zzz")).unwrap_err();
    assert_eq!(error.to_string(), "agent zzz is not registered");
    assert_eq!(registry.default_agent().unwrap().name().as_str(), "b");
}

#[tokio::test]
async fn only_those_that_could_run_are_available() {
    let registry = Registry::new();
    registry.register(named("gone", 0));
    registry.register(named("here", 1));
    assert_eq!(names(&registry.list_available().await), ["here"]);
}

#[test]
fn many_threads_can_register_and_look_at_once() {
    let registry = Registry::new();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let registry = &registry;
            scope.spawn(move || {
                for round in 0..200 {
                    let name = format!("agent-{}", round % 10);
                    registry.register(named(&name, thread + 1));
                    assert!(registry.get(&AgentName::new(name.as_str())).is_some());
                    registry.set_default(&AgentName::new(name)).unwrap();
                    assert!(registry.default_agent().is_some());
                    assert!(registry.count() <= 10);
                }
            });
        }
    });
    assert_eq!(registry.count(), 10);
}
