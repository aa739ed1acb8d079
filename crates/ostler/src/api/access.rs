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
pub(super) async fn note(State(service): State<Service>, request: Request, next: Next) -> Response {
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::{
        api::testing::Rig,
        logging::{self, Level},
        store::testing::on_sqlite,
    };

    #[tokio::test]
    async fn a_request_is_one_line_without_its_query_its_body_or_its_key() {
        let (logger, lines) = logging::kept(Level::Info);
        let _guard = tracing::subscriber::set_default(logger);
        on_sqlite(async |store| {
            let rig = Rig::new(store).await;
            rig.get("/health").await;
            rig.post("/webhooks?a=very-secret", serde_json::json!({ "url": "very-secret" })).await;
            let answer = rig.get("/webhooks/very-secret").await;
            let request = answer.body["meta"]["request_id"].clone();
            let lines = lines.lock().unwrap().clone();
            assert!(!lines.contains("very-secret") && !lines.contains(&rig.admin), "{lines}");
            let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let lines: Vec<_> = lines.filter(|line| line["message"] == "answered").collect();
            assert_eq!(lines.len(), 2, "{lines:?}");
            let fields = &lines[1]["fields"];
            assert_eq!(fields["method"], "GET");
            assert_eq!(fields["route"], "/webhooks/{webhook}");
            assert_eq!(fields["status"], 404);
            assert_eq!(fields["request"], request);
            assert!(fields["key"].as_str().unwrap().starts_with("key_"), "{fields}");
            assert!(fields["ms"].is_u64(), "{fields}");
            rig.stop().await;
        })
        .await;
    }
}
