//! The documentation of the service: the OpenAPI document for programs, and a page
//! for people that is made of it. The page has everything in itself, and no script.

mod html;
mod markdown;
mod page;
mod sample;
mod schema;
mod source;

use std::sync::LazyLock;

use axum::{
    http::{
        HeaderName, HeaderValue,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
            X_CONTENT_TYPE_OPTIONS,
        },
    },
    response::{IntoResponse, Response},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{ApiError, Code, Service, document, error::ErrorBody};

/// A page as it is sent.
struct Page {
    text: String,
    /// What it may load: nothing but its own style.
    policy: HeaderValue,
}

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(openapi)).routes(routes!(docs))
}

/// The OpenAPI document
///
/// Everything that this gateway can be asked for, for programs. `ostler openapi`
/// prints the same.
#[utoipa::path(get, path = "/openapi.json", tag = "docs", responses(
    (status = 200, description = "An OpenAPI document", body = Object),
    (status = 429, description = "Too many requests; `Retry-After` says when again", body = ErrorBody),
    (status = 500, description = "Something is wrong with the gateway", body = ErrorBody),
))]
async fn openapi() -> Result<Response, ApiError> {
    let text = document::text().map_err(broken)?;
    let headers = with_headers("application/json");
    Ok((headers, text).into_response())
}

/// The page for people
///
/// The same as the OpenAPI document, to be read.
#[utoipa::path(get, path = "/docs", tag = "docs", responses(
    (status = 200, description = "A page", body = String, content_type = "text/html"),
    (status = 429, description = "Too many requests; `Retry-After` says when again", body = ErrorBody),
    (status = 500, description = "Something is wrong with the gateway", body = ErrorBody),
))]
async fn docs() -> Result<Response, ApiError> {
    static PAGE: LazyLock<Result<Page, String>> =
        LazyLock::new(|| make().map_err(|error| error.to_string()));
    let page = PAGE.as_ref().map_err(broken)?;
    let headers = with_headers("text/html; charset=utf-8");
    let policy = [(CONTENT_SECURITY_POLICY, page.policy.clone())];
    Ok((headers, policy, page.text.as_str()).into_response())
}

fn make() -> Result<Page, Box<dyn std::error::Error + Send + Sync>> {
    let (text, style) = page::page(&serde_json::from_str(document::text()?)?);
    let policy = format!(
        "default-src 'none'; style-src '{style}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    Ok(Page { text, policy: HeaderValue::from_str(&policy)? })
}

fn broken(error: impl ToString) -> ApiError {
    let error = error.to_string();
    tracing::error!(error, "the documentation could not be made");
    ApiError::new(Code::InternalError, "the documentation could not be made")
}

fn with_headers(sort: &'static str) -> [(HeaderName, HeaderValue); 4] {
    [
        (CONTENT_TYPE, HeaderValue::from_static(sort)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        // Another version of the gateway may answer the next time.
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ]
}

#[cfg(test)]
mod tests;
