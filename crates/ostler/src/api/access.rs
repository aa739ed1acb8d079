//! What is noted of each request: a line in the log, and its number and time. Never
//! what was asked for beyond the route, nor a key, of which only the id is told.

use std::sync::OnceLock;

use axum::{
    extract::{MatchedPath, Request, State},
    http::Method,
    middleware::Next,
    response::Response,
};
use tokio::time::Instant;

use super::{Service, request};
use crate::{id::KeyId, logging};

/// What is asked for again and again by those who watch.
const WATCHED: [&str; 3] = ["/health", "/ready", "/metrics"];
/// What stands for a route that there is not.
const NOWHERE: &str = "none";

tokio::task_local! {
    static KEY: OnceLock<KeyId>;
}

/// Notes with which key a request came.
pub(super) fn came_with(key: KeyId) {
    // Only requests that nobody notes are elsewhere.
    KEY.try_with(|cell| cell.set(key).ok()).ok();
}

/// Notes a request, and what it was answered with.
pub(super) async fn note(
    State(service): State<Service>,
    request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let method = word(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let answered = KEY.scope(OnceLock::new(), async move {
        let response = next.run(request).await;
        let route = route.as_ref().map_or(NOWHERE, MatchedPath::as_str);
        let status = response.status().as_u16();
        let took = begun.elapsed();
        service.gateway().telemetry().request(method, route, status, took);
        let key = KEY.with(|cell| cell.get().map(|key| tracing::field::display(*key)));
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if WATCHED.contains(&route) {
            tracing::debug!(method, route, status, ms, key, "answered");
        } else {
            tracing::info!(method, route, status, ms, key, "answered");
        }
        response
    });
    logging::about(vec![("request", request::id())], answered).await
}

/// Returns a method; those that a caller made up are one.
fn word(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "OTHER",
    }
}
