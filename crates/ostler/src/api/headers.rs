//! Headers that every answer has, and those that let pages of other origins call.

use std::time::Duration;

use axum::{
    Router,
    extract::Request,
    http::{
        HeaderName, HeaderValue, Method,
        header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS},
    },
    middleware::Next,
    response::Response,
};
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser may remember what pages may do.
const REMEMBERED: Duration = Duration::from_secs(10 * 60);

/// Adds what keeps browsers and proxies from guessing and from keeping answers.
pub(super) async fn secure(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // What may be kept says so itself.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Lets pages of these origins call; without any, nothing is said of origins.
pub(super) fn allow_origins(router: Router, origins: &[String]) -> Router {
    if origins.is_empty() {
        return router;
    }
    let allowed = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok());
    let name = HeaderName::from_static;
    let cors = CorsLayer::new()
        .allow_origin(AllowOrigin::list(allowed))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([
            AUTHORIZATION,
            CONTENT_TYPE,
            name("x-api-key"),
            name("x-request-id"),
            name("idempotency-key"),
            name("last-event-id"),
        ])
        .expose_headers([RETRY_AFTER, name("x-request-id"), name("idempotency-replayed")])
        .max_age(REMEMBERED);
    router.layer(cors)
}
