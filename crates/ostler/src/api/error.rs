//! What goes wrong, as callers are told: a fixed code to branch on, and a text
//! that says what to do. What went wrong inside stays inside.

use std::time::Duration;

use axum::{
    Json,
    http::{
        HeaderValue, StatusCode,
        header::{RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

use super::{envelope::Meta, request};
use crate::{gateway::inbound::Refusal, queue::EnqueueError, store::StoreError};

/// How long to wait for a store that is away.
const PAUSE: Duration = Duration::from_secs(5);

/// The codes that there are. Part of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Code {
    Unauthorized,
    KeyRevoked,
    KeyExpired,
    Forbidden,
    IpNotAllowed,
    BadRequest,
    NotFound,
    Conflict,
    TooManyRequests,
    InternalError,
    ServiceUnavailable,
}

impl Code {
    fn status(self) -> StatusCode {
        match self {
            Self::Unauthorized | Self::KeyRevoked | Self::KeyExpired => StatusCode::UNAUTHORIZED,
            Self::Forbidden | Self::IpNotAllowed => StatusCode::FORBIDDEN,
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Conflict => StatusCode::CONFLICT,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
            Self::ServiceUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Why a request was not done. Nothing of it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) code: Code,
    /// The one that says it best; usually that of the code.
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
}

impl ApiError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, status: code.status(), message: message.into(), retry_after: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(Code::Conflict, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(Code::Forbidden, message)
    }

    /// A request that is wrong in a way that HTTP has a word for.
    pub(crate) fn with_status(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, ..Self::bad_request(message) }
    }

    pub(crate) fn wrong_method() -> Self {
        Self::with_status(StatusCode::METHOD_NOT_ALLOWED, "this cannot be done here")
    }

    pub(crate) fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        tracing::warn!(%error, "a request could not be done");
        let message = "the store is out of reach for now; try again";
        if error.passes() || matches!(error, StoreError::Closed | StoreError::Unclear) {
            return Self::new(Code::ServiceUnavailable, message).retry_after(PAUSE);
        }
        Self::new(Code::InternalError, "it could not be stored; the gateway's log says why")
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        match refusal {
            Refusal::Stopping => Self::new(Code::ServiceUnavailable, message).retry_after(PAUSE),
            Refusal::Enqueue(EnqueueError::QueueFull { .. }) => {
                Self::new(Code::TooManyRequests, message).retry_after(PAUSE)
            }
            Refusal::Enqueue(EnqueueError::Store(error)) => error.into(),
            Refusal::Project(_) | Refusal::Session(_) => Self::not_found(message),
            Refusal::Empty
            | Refusal::Address(_)
            | Refusal::Message(_)
            | Refusal::Url(_)
            | Refusal::Details(_)
            | Refusal::Id(_)
            | Refusal::Number(_)
            | Refusal::Group(_)
            | Refusal::Channel(_)
            | Refusal::Agent(_)
            | Refusal::NoText
            | Refusal::Sender(_)
            | Refusal::NobodyThere => Self::bad_request(message),
        }
    }
}

/// An error as it is sent.
#[derive(Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    error: ErrorDetail,
    meta: Meta,
}

#[derive(Serialize, ToSchema)]
struct ErrorDetail {
    code: Code,
    /// What to do about it, for people.
    message: String,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self { code, status, message, retry_after } = self;
        let meta = Meta { request_id: request::id(), next_cursor: None };
        let body = ErrorBody { error: ErrorDetail { code, message }, meta };
        let mut response = (status, Json(body)).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
        }
        if let Some(wait) = retry_after {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
    }
}

/// The errors that every route with a key may answer with.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only the document is made of it")]
pub(crate) enum Errors {
    /// The request is wrong; the message says how.
    #[response(status = 400)]
    BadRequest(#[to_schema] ErrorBody),
    /// There is no key, or it is revoked or expired.
    #[response(status = 401)]
    Unauthorized(#[to_schema] ErrorBody),
    /// The key may not do this, or not from here.
    #[response(status = 403)]
    Forbidden(#[to_schema] ErrorBody),
    /// There is no such thing, or the key may not see it.
    #[response(status = 404)]
    NotFound(#[to_schema] ErrorBody),
    /// Too many requests; `Retry-After` says when again.
    #[response(status = 429)]
    TooManyRequests(#[to_schema] ErrorBody),
    /// Something is wrong with the gateway; its log says what.
    #[response(status = 500)]
    InternalError(#[to_schema] ErrorBody),
    /// The gateway cannot do it now; `Retry-After` says when again.
    #[response(status = 503)]
    ServiceUnavailable(#[to_schema] ErrorBody),
}

/// The errors that a route may answer with beside [`Errors`] if it takes a body.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only the document is made of it")]
pub(crate) enum BodyErrors {
    /// The body did not come in time.
    #[response(status = 408)]
    Late(#[to_schema] ErrorBody),
    /// It stands against something that is there, or was done before in another way.
    #[response(status = 409)]
    Conflict(#[to_schema] ErrorBody),
    /// The body is too long.
    #[response(status = 413)]
    Long(#[to_schema] ErrorBody),
    /// The body is not `application/json`.
    #[response(status = 415)]
    NotJson(#[to_schema] ErrorBody),
}
