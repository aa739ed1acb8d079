//! What the server's typed errors mean. It has codes, unlike `codex exec`; the
//! words tell the rest.

use serde_json::{Map, Value};

use crate::{
    agent::{codex::fault, field::take_text},
    failure::{Failure, FailureKind},
};

/// The server's codes. Those that wrap an HTTP status are read by that.
const CODES: &[(&str, FailureKind)] = &[
    ("contextWindowExceeded", FailureKind::ContextTooLong),
    ("sessionBudgetExceeded", FailureKind::LimitReached),
    ("usageLimitExceeded", FailureKind::Quota),
    ("rateLimitExceeded", FailureKind::RateLimited),
    ("flexUnavailable", FailureKind::Overloaded),
    ("serverOverloaded", FailureKind::Overloaded),
    ("policyCapacityUnavailable", FailureKind::Overloaded),
    ("modelNotFound", FailureKind::InvalidRequest),
    ("badRequest", FailureKind::InvalidRequest),
    ("cyberPolicy", FailureKind::Refused),
    ("misalignmentPolicyViolation", FailureKind::Refused),
    ("tooManyDenials", FailureKind::Denied),
    ("unauthorized", FailureKind::Auth),
    ("internalServerError", FailureKind::Unavailable),
    ("httpConnectionFailed", FailureKind::Unavailable),
    ("responseStreamConnectionFailed", FailureKind::Unavailable),
    ("responseStreamDisconnected", FailureKind::Unavailable),
    ("responseTooManyFailedAttempts", FailureKind::Unavailable),
];

/// An error that a notification or a failed turn holds.
pub(super) struct TurnError {
    pub(super) message: String,
    pub(super) details: Option<String>,
    kind: Option<FailureKind>,
}

impl TurnError {
    /// Reads it; `None` when there is none.
    pub(super) fn of(error: Option<&mut Value>) -> Option<Self> {
        let error = error.filter(|error| !error.is_null())?;
        let kind = error.get("codexErrorInfo").and_then(kind_of);
        let details = take_text(error, "additionalDetails");
        let message = take_text(error, "message").or_else(|| error.as_str().map(str::to_owned));
        Some(Self { message: message.unwrap_or_else(|| error.to_string()), details, kind })
    }

    /// Makes it a failure; `otherwise` is the kind of an error that tells none.
    pub(super) fn failure(&self, otherwise: FailureKind) -> Failure {
        let mut failure = fault::of_message(&self.message, otherwise);
        if let Some(kind) = self.kind {
            failure.kind = kind;
        }
        failure
    }

    /// Returns why the server tries again.
    pub(super) fn reason(&self) -> &str {
        self.details.as_deref().unwrap_or(&self.message)
    }
}

/// A code is a word, or an object with the word as its only name.
fn kind_of(info: &Value) -> Option<FailureKind> {
    let known = |word: &str| CODES.iter().find(|(code, _)| *code == word).map(|(_, kind)| *kind);
    match info {
        Value::String(word) => known(word),
        Value::Object(fields) => {
            http_status(fields).and_then(FailureKind::of_http_status).or_else(|| {
                let (word, _) = fields.iter().next()?;
                known(word)
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

fn http_status(info: &Map<String, Value>) -> Option<u16> {
    let (_, detail) = info.iter().next()?;
    u16::try_from(detail.get("httpStatusCode")?.as_u64()?).ok()
}
