//! The gateway in numbers, in the text format of Prometheus. What is not counted as
//! it happens is looked at when somebody asks, for a short time.

use std::{collections::HashSet, time::Duration};

use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use tokio::time;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{ApiError, Service, caller::Caller, error::Errors, provider};
use crate::{
    channel::{DISCORD, GROUP, SMS, WEBHOOK, WHATSAPP},
    clock::Millis,
    config::Metrics,
    key::Scope,
    store::{
        StoreError,
        numbers::{self, Numbers},
        webhooks::NOTICE,
    },
    telemetry::{Telemetry, names},
};

/// How long it may take to look at everything.
const PATIENCE: Duration = Duration::from_secs(2);
/// The text format that is written.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// The gateway in numbers
///
/// In the text format of Prometheus. Without a key only if `api.metrics` says so.
#[utoipa::path(get, path = "/metrics", tag = "health", security(("key" = ["admin"])),
    responses((status = 200, content_type = "text/plain", body = String), Errors),
)]
async fn metrics(
    caller: Result<Caller, ApiError>,
    State(service): State<Service>,
) -> Result<Response, ApiError> {
    match service.policy().api.metrics {
        Metrics::Anybody => {}
        Metrics::Admin => caller?.may_everywhere(Scope::Admin)?,
    }
    let telemetry = service.gateway().telemetry();
    let projects = gather(&service, telemetry).await;
    Ok(([(CONTENT_TYPE, FORMAT)], telemetry.text(projects.as_ref())).into_response())
}

/// Looks at what is not counted; returns the projects that there are, if the store
/// says.
async fn gather(service: &Service, telemetry: &Telemetry) -> Option<HashSet<String>> {
    let (gateway, store) = (service.gateway(), service.store());
    let numbers = store.read((), |conn, ()| Box::pin(numbers::count(conn)));
    let now = Millis::now();
    let (looked, ()) = tokio::join!(time::timeout(PATIENCE, numbers), pool(service, telemetry));
    telemetry.stand(gateway.since(), now);
    telemetry.gauge(&names::TURNS_RUNNING, &[]).set(float(gateway.n_running() as u64));
    let looked: Option<Numbers> = match looked {
        Ok(Ok(numbers)) => Some(numbers),
        Ok(Err(error)) => {
            let error = StoreError::chain(&error);
            tracing::warn!(error, "the store does not say how much there is in it");
            None
        }
        Err(_) => None,
    };
    telemetry.gauge(&names::STORE_UP, &[]).set(if looked.is_some() { 1.0 } else { 0.0 });
    queue(telemetry, looked.as_ref(), now);
    let numbers = looked?;
    for (agent, n_sessions) in &numbers.sessions {
        telemetry.gauge(&names::SESSIONS, &[provider(agent)]).set(float(*n_sessions));
    }
    // What was there once is told until there is none of it.
    for (channel, state) in CHANNELS.iter().flat_map(|channel| STATES.map(|s| (*channel, s))) {
        let found = numbers.outbox.iter().find(|(of, is, _)| *of == channel && *is == state);
        let n_messages = found.map_or(0, |(_, _, n_messages)| *n_messages);
        telemetry.gauge(&names::OUTBOX, &[channel, state]).set(float(n_messages));
    }
    Some(numbers.projects.into_iter().collect())
}

/// The channels and the states of messages that are told.
const CHANNELS: [&str; 6] = [WEBHOOK, DISCORD, WHATSAPP, SMS, GROUP, NOTICE];
const STATES: [&str; 3] = ["waiting", "sending", "failed"];

fn queue(telemetry: &Telemetry, numbers: Option<&Numbers>, now: Millis) {
    for state in ["waiting", "ready", "running", "dead"] {
        let n_jobs = numbers.map_or(f64::NAN, |numbers| {
            let found = numbers.jobs.iter().find(|(is, _)| is == state);
            float(found.map_or(0, |(_, n_jobs)| *n_jobs))
        });
        telemetry.gauge(&names::QUEUE, &[state]).set(n_jobs);
    }
    let oldest = numbers.map_or(f64::NAN, |numbers| {
        let since = numbers.oldest_at.unwrap_or(now);
        let millis = now.0.saturating_sub(since.0).max(0).unsigned_abs();
        Duration::from_millis(millis).as_secs_f64()
    });
    telemetry.gauge(&names::OLDEST, &[]).set(oldest);
}

/// Looks at the processes that are kept.
async fn pool(service: &Service, telemetry: &Telemetry) {
    let Ok(agent) = service.policy().active_agent() else { return };
    let Ok(stats) = time::timeout(PATIENCE, agent.host().pool_stats()).await else { return };
    for (state, n_processes) in [("busy", stats.busy), ("parked", stats.parked)] {
        telemetry.gauge(&names::POOL, &[state]).set(float(n_processes as u64));
    }
    for (what, n_processes) in [
        ("started", stats.started),
        ("reused", stats.reused),
        ("evicted", stats.evicted),
        ("outdated", stats.outdated),
        ("died", stats.died),
    ] {
        telemetry.counter(&names::POOL_TOTAL, &[what]).absolute(n_processes);
    }
}

#[expect(clippy::cast_precision_loss, reason = "nothing here is counted beyond 2^53")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
