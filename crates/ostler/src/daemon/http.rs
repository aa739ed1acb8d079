//! The HTTP side of a gateway: whether it lives, whether it is ready, and where
//! it may listen.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use serde::Serialize;
use serde_json::json;
use thiserror::Error;
use tokio::{net::TcpListener, sync::watch, task, time::Instant};

use crate::background::Background;

/// How long it counts which agents there are: looking for them reads folders.
const FRESH: Duration = Duration::from_secs(5);
/// The most that a body may be long, in bytes.
const LONGEST: usize = 1024 * 1024;

/// How far a gateway is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    Starting,
    Ready,
    Stopping,
}

/// Why a gateway cannot listen.
#[derive(Debug, Error)]
pub(crate) enum ListenError {
    /// Others could reach it, and nothing would keep them out.
    #[error(
        "{0} can be reached from other machines, and this ostler cannot tell them from you yet; \
         listen on 127.0.0.1 or [::1] (gateway.listen, OSTLER_LISTEN or --listen), and put a \
         server that asks for a login before it if others are to reach it"
    )]
    Public(SocketAddr),
    #[error("could not listen on {address}; {}", advice(source))]
    Refused {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
}

impl ListenError {
    /// Returns whether somebody else listens there.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the list of them is the system's, and open")]
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program does; stop it, or choose another port with gateway.listen, \
             OSTLER_LISTEN or --listen"
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address; choose another with gateway.listen, \
             OSTLER_LISTEN or --listen"
        }
        io::ErrorKind::PermissionDenied => {
            "this user may not; choose a port above 1023 with gateway.listen, OSTLER_LISTEN \
             or --listen"
        }
        _ => "choose another address with gateway.listen, OSTLER_LISTEN or --listen",
    }
}

/// Decides whether an address may be listened on: only this machine's own, as
/// long as there are no keys to tell who asks.
pub(crate) fn may_listen(address: SocketAddr) -> Result<(), ListenError> {
    let is_own = address.ip().to_canonical().is_loopback();
    if is_own { Ok(()) } else { Err(ListenError::Public(address)) }
}

/// Listens on an address.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, ListenError> {
    may_listen(address)?;
    TcpListener::bind(address).await.map_err(|source| ListenError::Refused { address, source })
}

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Http(Background);

impl Http {
    /// Answers calls. The function looks which agents can be used, by name; it may
    /// read folders, but start nothing.
    pub(crate) fn start(
        listener: TcpListener,
        phase: watch::Receiver<Phase>,
        agents: impl Fn() -> Vec<(String, bool)> + Send + Sync + 'static,
    ) -> Self {
        let look = Look { agents: Box::new(agents), seen: Mutex::default() };
        let router = router(Shared { phase, look: Arc::new(look) });
        Self(Background::start(|stop| async move {
            let served =
                axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
            if let Err(error) = served.await {
                tracing::error!(%error, "the HTTP server has ended");
            }
        }))
    }

    /// Takes no more calls, and returns when those under way are answered. Those
    /// that are not after this long end with the process.
    pub(crate) async fn stop(self, limit: Duration) {
        self.0.stop(limit).await;
    }
}

#[derive(Clone)]
struct Shared {
    phase: watch::Receiver<Phase>,
    look: Arc<Look>,
}

/// Which agents there are, looked up now and then.
struct Look {
    agents: Box<dyn Fn() -> Vec<(String, bool)> + Send + Sync>,
    seen: Mutex<Option<(Instant, BTreeMap<String, &'static str>)>>,
}

impl Look {
    /// Returns which agents there are. Reads folders, so that it may take a moment;
    /// whoever comes meanwhile waits for it.
    fn agents(&self, now: Instant) -> BTreeMap<String, &'static str> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, agents)) = seen.as_ref()
            && now.saturating_duration_since(*at) < FRESH
        {
            return agents.clone();
        }
        let agents = (self.agents)().into_iter().map(|(name, is_there)| {
            (shown(name), if is_there { "available" } else { "unavailable" })
        });
        let agents: BTreeMap<_, _> = agents.collect();
        *seen = Some((now, agents.clone()));
        agents
    }
}

/// Returns the name of an agent as HTTP clients know it.
fn shown(name: String) -> String {
    if name == "claude" { "claudecode".to_owned() } else { name }
}

fn router(shared: Shared) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/ready", get(ready))
        .fallback(async || error(StatusCode::NOT_FOUND, "NOT_FOUND", "there is nothing here"))
        .method_not_allowed_fallback(async || {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            error(status, "METHOD_NOT_ALLOWED", "this cannot be done here")
        })
        .layer(DefaultBodyLimit::max(LONGEST))
        .with_state(shared)
}

/// An agent that is missing does not make a gateway ill: others may be there.
async fn health(State(shared): State<Shared>) -> Response {
    let (look, now) = (shared.look, Instant::now());
    match task::spawn_blocking(move || look.agents(now)).await {
        Ok(agents) => Json(json!({ "status": "healthy", "agents": agents })).into_response(),
        Err(_) => {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            error(status, "INTERNAL_ERROR", "it could not be seen which agents there are")
        }
    }
}

async fn ready(State(shared): State<Shared>) -> Response {
    let phase = *shared.phase.borrow();
    let status = match phase {
        Phase::Ready => StatusCode::OK,
        Phase::Starting | Phase::Stopping => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, Json(json!({ "status": phase }))).into_response()
}

fn error(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({ "error": { "code": code, "message": message } }))).into_response()
}

#[cfg(test)]
mod tests;
