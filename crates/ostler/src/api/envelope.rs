//! What an answer looks like: `{data, meta}`.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::request;

/// What is told about an answer.
#[derive(Serialize, ToSchema)]
pub(crate) struct Meta {
    /// By which the request is found in the log and the audit.
    pub(crate) request_id: String,
    /// Where the next page begins, if there is one: give it as `cursor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// An answer.
#[derive(Serialize, ToSchema)]
pub(crate) struct Data<T> {
    data: T,
    meta: Meta,
    #[serde(skip)]
    #[schema(ignore)]
    status: StatusCode,
}

impl<T> Data<T> {
    /// Answers with what was asked for.
    pub(crate) fn new(data: T) -> Self {
        let meta = Meta { request_id: request::id(), next_cursor: None };
        Self { data, meta, status: StatusCode::OK }
    }

    /// Answers with something new.
    pub(crate) fn created(data: T) -> Self {
        Self { status: StatusCode::CREATED, ..Self::new(data) }
    }

    /// Answers with a status that says more.
    pub(crate) fn with_status(status: StatusCode, data: T) -> Self {
        Self { status, ..Self::new(data) }
    }

    /// Answers with a page, and where the next one begins.
    pub(crate) fn page(data: T, next_cursor: Option<String>) -> Self {
        let meta = Meta { request_id: request::id(), next_cursor };
        Self { meta, ..Self::new(data) }
    }
}

impl<T: Serialize> IntoResponse for Data<T> {
    fn into_response(self) -> Response {
        (self.status, Json(self)).into_response()
    }
}
