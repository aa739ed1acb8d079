//! Whether the gateway lives and is ready, for those who watch it. Anybody may
//! ask, and nothing is in an envelope.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use tokio::{
    task,
    time::{self, Instant},
};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{ApiError, Code, Service, error::ErrorBody};
use crate::{
    gateway::policy::Policy,
    store::{
        Store, StoreError,
        events::{self, Extent},
    },
};

/// How long it counts which agents there are: looking for them reads folders.
const FRESH: Duration = Duration::from_secs(5);
/// How long it counts that the store answered, for anybody may ask as often as he
/// likes; and how long the store may take.
const ANSWERED: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(1);

/// How far a gateway is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Starting,
    Ready,
    Stopping,
}

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(health)).routes(routes!(ready))
}

/// Which agents there are and whether the store is, looked up now and then.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    seen: Arc<Mutex<Option<Seen>>>,
    /// When the store answered last.
    answered: Arc<Mutex<Option<Instant>>>,
}

/// What was seen, and when.
type Seen = (Instant, BTreeMap<String, Availability>);

/// Whether an agent could run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Availability {
    Available,
    Unavailable,
}

impl Look {
    /// Returns which agents there are. Reads folders, so that it may take a moment;
    /// whoever comes meanwhile waits for it.
    fn agents(&self, policy: &Policy, now: Instant) -> BTreeMap<String, Availability> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, agents)) = seen.as_ref()
            && now.saturating_duration_since(*at) < FRESH
        {
            return agents.clone();
        }
        let agents = policy.agents.availability().into_iter().map(|(name, is_there)| {
            let there = if is_there { Availability::Available } else { Availability::Unavailable };
            (provider(&name).to_owned(), there)
        });
        let agents: BTreeMap<_, _> = agents.collect();
        *seen = Some((now, agents.clone()));
        agents
    }

    /// Whether the store answers.
    async fn store(&self, store: &Store, now: Instant) -> bool {
        let answered = *self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if answered.is_some_and(|at| now.saturating_duration_since(at) < ANSWERED) {
            return true;
        }
        let look = store.read((), |conn, ()| Box::pin(events::extent(conn)));
        let answer: Result<Result<Extent, StoreError>, _> = time::timeout(PATIENCE, look).await;
        let is_there = matches!(answer, Ok(Ok(_)));
        if is_there {
            *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        }
        is_there
    }
}

/// Returns the name of an agent as HTTP clients know it.
pub(crate) fn provider(agent: &str) -> &str {
    if agent == "claude" { "claudecode" } else { agent }
}

/// How the gateway is.
#[derive(Serialize, ToSchema)]
struct Health {
    #[schema(example = "healthy")]
    status: &'static str,
    agents: BTreeMap<String, Availability>,
}

/// Whether it lives
///
/// An agent that is missing does not make a gateway ill: others may be there.
#[utoipa::path(get, path = "/health", tag = "health", responses(
    (status = 200, body = Health), (status = 500, body = ErrorBody),
))]
async fn health(State(service): State<Service>) -> Result<Json<Health>, ApiError> {
    let (look, policy, now) = (service.shared.look.clone(), service.policy(), Instant::now());
    let agents = task::spawn_blocking(move || look.agents(&policy, now)).await;
    let failed =
        |_| ApiError::new(Code::InternalError, "it could not be seen which agents there are");
    Ok(Json(Health { status: "healthy", agents: agents.map_err(failed)? }))
}

/// Whether the gateway takes requests.
#[derive(Serialize, ToSchema)]
struct Readiness {
    status: Standing,
}

/// Whether it takes requests, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Standing {
    Starting,
    Ready,
    /// The store did not answer in time.
    StoreUnreachable,
    Stopping,
}

/// Whether it takes requests
///
/// It does not while it starts or stops, nor while its store is out of reach.
#[utoipa::path(get, path = "/ready", tag = "health", responses(
    (status = 200, body = Readiness), (status = 503, body = Readiness),
))]
async fn ready(State(service): State<Service>) -> Response {
    let phase = *service.shared.phase.borrow();
    let standing = match phase {
        Phase::Starting => Standing::Starting,
        Phase::Stopping => Standing::Stopping,
        Phase::Ready if service.shared.look.store(service.store(), Instant::now()).await => {
            Standing::Ready
        }
        Phase::Ready => Standing::StoreUnreachable,
    };
    let status = match standing {
        Standing::Ready => StatusCode::OK,
        Standing::Starting | Standing::StoreUnreachable | Standing::Stopping => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    (status, Json(Readiness { status: standing })).into_response()
}
