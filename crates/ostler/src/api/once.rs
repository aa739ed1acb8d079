//! Requests that are done once however often they come: those with an
//! `Idempotency-Key`. The answer is kept in the same write as what was asked for,
//! and given again to the same request for a day.
//!
//! ```text
//! let request = once.request(&caller, &bytes);
//! if let Some(before) = request.answered(&service).await? { return Ok(before); }
//! let answer = request.answer(StatusCode::CREATED, &view, now)?;
//! // The first thing of the write; if there is an answer, nothing else is done:
//! let before = answered_requests::keep(conn, &answer.kept()).await?;
//! answer.settle(before)
//! ```

use std::fmt::Write as _;

use axum::{
    extract::FromRequestParts,
    http::{HeaderName, HeaderValue, Method, StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::{ApiError, Caller, Code, Data, Service};
use crate::{
    clock::Millis,
    store::{
        StoreError,
        answered_requests::{self, AnsweredRequest},
    },
};

const NAME: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The longest name that a request may have.
const LONGEST: usize = 255;

/// What a request is called, if it has a name, and what it is about.
#[derive(Clone, Debug)]
pub(crate) struct Once {
    name: Option<String>,
    method: Method,
    path: String,
}

impl FromRequestParts<Service> for Once {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Service) -> Result<Self, ApiError> {
        let mut names = parts.headers.get_all(NAME).iter();
        let name = names.next().map(name).transpose()?;
        if names.next().is_some() {
            return Err(ApiError::bad_request("there must be one Idempotency-Key at most"));
        }
        Ok(Self { name, method: parts.method.clone(), path: parts.uri.path().to_owned() })
    }
}

fn name(value: &HeaderValue) -> Result<String, ApiError> {
    let name = value.to_str().unwrap_or_default();
    let is_printable = name.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if name.is_empty() || name.len() > LONGEST || !is_printable {
        let message = format!("an Idempotency-Key has 1 to {LONGEST} printable characters");
        return Err(ApiError::bad_request(message));
    }
    Ok(name.to_owned())
}

impl Once {
    /// Makes the request that it is with this body, by this caller. What stands
    /// behind the question mark is how it is answered, not what is asked.
    pub(crate) fn request(self, caller: &Caller, body: &[u8]) -> Request {
        let Self { name, method, path } = self;
        let key = name.map(|name| Key {
            actor: caller.key.to_string(),
            name,
            fingerprint: fingerprint(&method, &path, body),
        });
        Request { key }
    }
}

/// Returns what only the same request has.
fn fingerprint(method: &Method, path: &str, body: &[u8]) -> String {
    let mut hasher = Sha256::new();
    // Neither has such a character in it.
    for part in [method.as_str().as_bytes(), b"\n", path.as_bytes(), b"\n", body] {
        hasher.update(part);
    }
    hasher.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        write!(text, "{byte:02x}").ok();
        text
    })
}

/// A request that may have a name.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    key: Option<Key>,
}

#[derive(Clone, Debug)]
struct Key {
    actor: String,
    name: String,
    fingerprint: String,
}

impl Request {
    /// Returns what was answered before, if it was.
    pub(crate) async fn answered(&self, service: &Service) -> Result<Option<Answered>, ApiError> {
        let Some(Key { actor, name, fingerprint }) = &self.key else { return Ok(None) };
        let args = (actor.clone(), name.clone());
        let found = service
            .store()
            .read(args, |conn, (actor, name)| Box::pin(answered_requests::find(conn, actor, name)));
        let found: Option<AnsweredRequest> = found.await.map_err(|error: StoreError| error)?;
        found.map(|found| again(fingerprint, found)).transpose()
    }

    /// Makes the answer to it, which is kept if the request has a name.
    pub(crate) fn answer<T: Serialize>(
        self,
        status: StatusCode,
        data: &T,
        now: Millis,
    ) -> Result<Answer, ApiError> {
        let unwritable = |_| ApiError::new(Code::InternalError, "the answer cannot be written");
        let body = serde_json::to_string(data).map_err(unwritable)?;
        let kept = self.key.map(|Key { actor, name, fingerprint }| AnsweredRequest {
            actor,
            name,
            fingerprint,
            status: status.as_u16(),
            body: body.clone(),
            at: now,
        });
        Ok(Answer { kept, fresh: Answered { status, body, is_again: false } })
    }
}

/// Returns the answer again, unless another request has the name.
fn again(fingerprint: &str, found: AnsweredRequest) -> Result<Answered, ApiError> {
    if found.fingerprint != fingerprint {
        let message = "another request was made with this Idempotency-Key";
        return Err(ApiError::conflict(message));
    }
    let status = StatusCode::from_u16(found.status).unwrap_or(StatusCode::OK);
    Ok(Answered { status, body: found.body, is_again: true })
}

/// An answer that is about to be given.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    kept: Option<AnsweredRequest>,
    fresh: Answered,
}

impl Answer {
    /// Returns what is to be kept with what was asked for, if anything is.
    pub(crate) fn kept(&self) -> Option<AnsweredRequest> {
        self.kept.clone()
    }

    /// Returns what to answer, by what was kept before.
    pub(crate) fn settle(self, before: Option<AnsweredRequest>) -> Result<Answered, ApiError> {
        match (before, self.kept) {
            // The write was done a second time, and found what it did the first time.
            (Some(before), Some(kept)) if before != kept => again(&kept.fingerprint, before),
            _ => Ok(self.fresh),
        }
    }
}

/// An answer, given for the first time or again.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    status: StatusCode,
    /// As JSON.
    body: String,
    is_again: bool,
}

impl Answered {
    /// Reads what is told.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        let unreadable = |_| ApiError::new(Code::InternalError, "an answer cannot be read");
        serde_json::from_str(&self.body).map_err(unreadable)
    }

    /// Marks another answer to the same request if that was answered before.
    pub(crate) fn mark(&self, mut response: Response) -> Response {
        if self.is_again {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }
}

impl IntoResponse for Answered {
    fn into_response(self) -> Response {
        let data = RawValue::from_string(self.body.clone());
        let data = data.unwrap_or_else(|_| RawValue::NULL.to_owned());
        let response = Data::with_status(self.status, data).into_response();
        self.mark(response)
    }
}

#[cfg(test)]
mod tests;
