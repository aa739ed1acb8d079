//! The agents: which there are, what they can do, how they are, and which of them
//! answers in projects that name nobody.

use std::time::Duration;

use axum::extract::{FromRequest as _, Request, State};
use ostler_core::{
    CliAgent,
    agent::{AgentRef, Caps},
    failure::chain,
    registry::Agent as _,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::{self, Instant};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiError, Data, Service,
    caller::Caller,
    error::{BodyErrors, Errors},
    health::{Availability, provider},
    projects::{Capabilities, chosen_agent, nobody},
    take::{Body, Named},
};
use crate::{
    clock::Millis,
    gateway::policy::Policy,
    key::Scope,
    project::{self, on_the_side},
    store::{
        audit,
        choices::{self, PROJECT_AGENT},
    },
};

/// How long an agent may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get_default, put_default))
        .routes(routes!(get))
        .routes(routes!(health))
}

/// An agent.
#[derive(Serialize, ToSchema)]
#[schema(as = Agent)]
struct AgentView {
    /// By which it is named in requests.
    #[schema(example = "claudecode")]
    name: String,
    title: String,
    /// Whether it could run, as far as that can be seen without starting it.
    state: Availability,
    /// Its program; only for keys with the scope `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// As far as it is known without starting it.
    version: Option<String>,
    #[schema(value_type = Capabilities)]
    capabilities: Caps,
    /// Whether it answers in projects that name nobody.
    is_default: bool,
}

impl AgentView {
    /// Looks for an agent. Reads the file system.
    fn look(policy: &Policy, spec: &AgentRef, default: &AgentRef, shows_path: bool) -> Self {
        let agent = policy.agents.agent(spec);
        let path = agent.find().ok().filter(|_| shows_path && agent.server().is_none());
        Self {
            name: provider(&spec.name).to_owned(),
            title: spec.title.to_string(),
            state: if policy.can_run(spec) {
                Availability::Available
            } else {
                Availability::Unavailable
            },
            path: path.map(|path| path.display().to_string()),
            version: agent.known_version(),
            capabilities: spec.caps.clone(),
            is_default: spec.name == default.name,
        }
    }
}

/// Lists the agents, those of the configuration too
#[utoipa::path(get, path = "/agents", tag = "agents",
    security(("key" = ["projects:read"])),
    responses((status = 200, body = Data<Vec<AgentView>>), Errors))]
async fn list(
    caller: Caller,
    State(service): State<Service>,
) -> Result<Data<Vec<AgentView>>, ApiError> {
    caller.may(Scope::ProjectsRead)?;
    let default = default_agent(&service).await?;
    let (policy, shows_path) = (service.policy(), caller.may(Scope::Admin).is_ok());
    let looked = on_the_side(move || {
        let names = policy.agents.availability().into_iter().map(|(name, _)| name);
        let specs = names.filter_map(|name| policy.agents.resolve(Some(&name)).ok());
        let views = specs.map(|spec| AgentView::look(&policy, &spec, &default, shows_path));
        Ok(views.collect())
    });
    Ok(Data::new(looked.await?))
}

/// Returns an agent
#[utoipa::path(get, path = "/agents/{agent}", tag = "agents",
    params(("agent" = String, Path, description = "The name of an agent")),
    security(("key" = ["projects:read"])),
    responses((status = 200, body = Data<AgentView>), Errors))]
async fn get(
    caller: Caller,
    State(service): State<Service>,
    Named(name): Named<String>,
) -> Result<Data<AgentView>, ApiError> {
    caller.may(Scope::ProjectsRead)?;
    let spec = known(&service, &name)?;
    let default = default_agent(&service).await?;
    let (policy, shows_path) = (service.policy(), caller.may(Scope::Admin).is_ok());
    let looked =
        on_the_side(move || Ok(AgentView::look(&policy, &spec, &default, shows_path))).await;
    Ok(Data::new(looked?))
}

/// How an agent is.
#[derive(Debug, Serialize, ToSchema)]
struct AgentHealth {
    status: Wellness,
    version: Option<String>,
    /// What is wrong, or not as it should be.
    message: Option<String>,
    /// How long it took to find out.
    latency_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Wellness {
    Healthy,
    Unhealthy,
}

/// Says how an agent is
///
/// Its program is asked for its version, unless that is known; one that is a server
/// is asked how it is. It has five seconds.
#[utoipa::path(get, path = "/agents/{agent}/health", tag = "agents",
    params(("agent" = String, Path, description = "The name of an agent")),
    security(("key" = ["projects:read"])),
    responses((status = 200, body = Data<AgentHealth>), Errors))]
async fn health(
    caller: Caller,
    State(service): State<Service>,
    Named(name): Named<String>,
) -> Result<Data<AgentHealth>, ApiError> {
    caller.may(Scope::ProjectsRead)?;
    let spec = known(&service, &name)?;
    let agent = service.policy().agents.agent(&spec);
    let mut health = ask(&agent, PATIENCE).await;
    if caller.may(Scope::Admin).is_err() {
        health.message = health.message.map(|_| without_paths(&spec, health.status));
    }
    Ok(Data::new(health))
}

/// Asks an agent how it is.
async fn ask(agent: &CliAgent, limit: Duration) -> AgentHealth {
    let began = Instant::now();
    let answer = time::timeout(limit, agent.validate()).await;
    let latency_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (status, version, message) = match answer {
        Ok(Ok(found)) => (Wellness::Healthy, found.version, found.warning),
        Ok(Err(error)) => (Wellness::Unhealthy, None, Some(chain(&error))),
        Err(_) => (Wellness::Unhealthy, None, Some(format!("no answer within {limit:?}"))),
    };
    AgentHealth { status, version, message, latency_ms }
}

/// Says what is wrong to those who are not shown where programs lie.
fn without_paths(spec: &AgentRef, status: Wellness) -> String {
    match status {
        Wellness::Healthy => format!("something about {} is not as it should be", spec.name),
        Wellness::Unhealthy => {
            format!("{} cannot be run, or does not answer; `ostler doctor` says why", spec.name)
        }
    }
}

/// The agent that answers in projects that name nobody.
#[derive(Serialize, ToSchema)]
struct DefaultAgent {
    #[schema(example = "claudecode")]
    agent_provider: String,
    #[schema(value_type = Capabilities)]
    agent_capabilities: Caps,
}

impl DefaultAgent {
    fn new(spec: &AgentRef) -> Self {
        let agent_provider = provider(&spec.name).to_owned();
        Self { agent_provider, agent_capabilities: spec.caps.clone() }
    }
}

/// Returns the agent of projects that name nobody
#[utoipa::path(get, path = "/agents/default", tag = "agents",
    security(("key" = ["projects:read"])),
    responses((status = 200, body = Data<DefaultAgent>), Errors))]
async fn get_default(
    caller: Caller,
    State(service): State<Service>,
) -> Result<Data<DefaultAgent>, ApiError> {
    caller.may(Scope::ProjectsRead)?;
    Ok(Data::new(DefaultAgent::new(&default_agent(&service).await?)))
}

/// Who is to answer in projects that name nobody.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Choice {
    /// An agent that could run; null for the configured one.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required = true)]
    agent_provider: Option<String>,
}

/// Chooses the agent of projects that name nobody
#[utoipa::path(put, path = "/agents/default", tag = "agents", request_body = Choice,
    security(("key" = ["admin"])),
    responses((status = 200, body = Data<DefaultAgent>), Errors, BodyErrors))]
async fn put_default(
    caller: Caller,
    State(service): State<Service>,
    request: Request,
) -> Result<Data<DefaultAgent>, ApiError> {
    caller.may_everywhere(Scope::Admin)?;
    let Body(choice): Body<Choice> = Body::from_request(request, &service).await?;
    let policy = service.policy();
    let chosen = on_the_side(move || {
        let spec = choice.agent_provider.map(|name| project::usable(&policy, &name));
        Ok(spec.transpose()?.map(|spec| spec.name.to_string()))
    });
    let (chosen, now) = (chosen.await?, Millis::now());
    let detail = json!({ "agent": chosen });
    let entry = caller.entry("agent.default", PROJECT_AGENT, detail, now);
    let written = service.store().write((chosen, entry, now), |conn, (chosen, entry, now)| {
        Box::pin(async move {
            match chosen {
                Some(name) => choices::keep(conn, PROJECT_AGENT, name, *now).await?,
                None => choices::forget(conn, PROJECT_AGENT).await?,
            }
            audit::add(conn, entry).await
        })
    });
    written.await?;
    Ok(Data::new(DefaultAgent::new(&default_agent(&service).await?)))
}

/// Returns who answers in projects that name nobody.
async fn default_agent(service: &Service) -> Result<AgentRef, ApiError> {
    let chosen = chosen_agent(service).await?;
    project::who_answers(&service.policy(), None, chosen.as_deref()).map_err(nobody)
}

/// Returns the agent of a name in a path.
fn known(service: &Service, name: &str) -> Result<AgentRef, ApiError> {
    let found = service.policy().agents.resolve(Some(name));
    found.map_err(|_| ApiError::not_found(format!("there is no agent {name:?}")))
}

#[cfg(test)]
pub(super) mod tests;
