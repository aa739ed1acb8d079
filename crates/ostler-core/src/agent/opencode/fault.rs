//! What OpenCode's errors mean: names, HTTP statuses and words.

use std::time::Duration;

use serde_json::{Map, Value};

use super::log;
use crate::{
    agent::{
        Exit,
        words::{Marks, exit_words, kind_by_marks},
    },
    event::StopReason,
    failure::{Failure, FailureKind},
};

/// The names of errors that say all there is to know.
const NAMES: &[(&str, FailureKind)] = &[
    ("ProviderAuthError", FailureKind::Auth),
    ("ContextOverflowError", FailureKind::ContextTooLong),
    ("ContentFilterError", FailureKind::Refused),
    ("MessageOutputLengthError", FailureKind::LimitReached),
    ("MessageAbortedError", FailureKind::Cancelled),
    ("StructuredOutputError", FailureKind::InvalidRequest),
];

/// Words, in lower case, that say more than an HTTP status.
const PRECISE: &Marks = &[
    ("insufficient_quota", FailureKind::Quota),
    ("exceeded your current quota", FailureKind::Quota),
    ("credit balance", FailureKind::Quota),
    ("insufficient credits", FailureKind::Quota),
    ("usage limit reached", FailureKind::Quota),
    ("free usage exceeded", FailureKind::Quota),
    ("freeusagelimiterror", FailureKind::Quota),
    ("gousagelimiterror", FailureKind::Quota),
    ("context_length_exceeded", FailureKind::ContextTooLong),
    ("maximum context length", FailureKind::ContextTooLong),
    ("prompt is too long", FailureKind::ContextTooLong),
    ("content filter", FailureKind::Refused),
    ("content_filter", FailureKind::Refused),
];

/// Words, in lower case, for errors that have no status.
const MARKS: &Marks = &[
    ("session not found", FailureKind::SessionLost),
    ("no providers are available", FailureKind::Auth),
    ("api key", FailureKind::Auth),
    ("api_key", FailureKind::Auth),
    ("unauthorized", FailureKind::Auth),
    ("authentication", FailureKind::Auth),
    ("forbidden", FailureKind::Auth),
    ("payment required", FailureKind::Quota),
    ("rate limit", FailureKind::RateLimited),
    ("rate_limit", FailureKind::RateLimited),
    ("too many requests", FailureKind::RateLimited),
    ("too_many_requests", FailureKind::RateLimited),
    ("overloaded", FailureKind::Overloaded),
    ("at capacity", FailureKind::Overloaded),
    ("service unavailable", FailureKind::Overloaded),
    ("service_unavailable", FailureKind::Overloaded),
    ("resource exhausted", FailureKind::Overloaded),
    ("resource_exhausted", FailureKind::Overloaded),
    ("cannot connect", FailureKind::Unavailable),
    ("unable to connect", FailureKind::Unavailable),
    ("connection", FailureKind::Unavailable),
    ("server_error", FailureKind::Unavailable),
    ("unexpected server error", FailureKind::Crashed),
    ("server error", FailureKind::Unavailable),
    ("server had an error", FailureKind::Unavailable),
    ("bad gateway", FailureKind::Unavailable),
    ("timed out", FailureKind::Unavailable),
    ("timeout", FailureKind::Unavailable),
    ("model not found", FailureKind::InvalidRequest),
    ("agent not found", FailureKind::InvalidRequest),
    ("not valid json", FailureKind::InvalidRequest),
    ("configuration is invalid", FailureKind::InvalidRequest),
    ("failed to change directory", FailureKind::InvalidRequest),
    ("file not found", FailureKind::InvalidRequest),
    ("you must provide a message", FailureKind::InvalidRequest),
    (MISREAD, FailureKind::InvalidRequest),
    ("postinstall script was not run", FailureKind::SpawnFailed),
];

/// What the CLI says when it knows the reason but logs it only.
const SEE_LOG: &str = "Unexpected server error";
/// How its help begins, which is all it prints when it knows an argument not.
const HELP: &str = "opencode run [message..]";
const MISREAD: &str = "opencode does not know one of its arguments";

/// Makes a failure of the `error` of a line; `cause` is what the log said.
pub(super) fn of_error(error: &Value, cause: Option<&str>) -> Failure {
    let empty = Map::new();
    let data = error.get("data").and_then(Value::as_object).unwrap_or(&empty);
    let name = error.get("name").and_then(Value::as_str).unwrap_or_default();
    let said = data.get("message").and_then(Value::as_str).or_else(|| error.as_str());
    let said = match (said, cause) {
        (Some(said), Some(cause)) if said.starts_with(SEE_LOG) => Some(cause),
        (said, _) => said,
    };
    let message = match said {
        Some(said) => of_json(said).unwrap_or_else(|| said.to_owned()),
        None if name.is_empty() => error.to_string(),
        None => name.to_owned(),
    };
    let body = data.get("responseBody").and_then(Value::as_str).unwrap_or_default();
    let words = said.unwrap_or_default();
    let all = format!("{words} {body}");
    let status = data.get("statusCode").and_then(Value::as_u64).and_then(|n| u16::try_from(n).ok());
    let is_retryable = data.get("isRetryable").and_then(Value::as_bool);
    let otherwise = match is_retryable {
        Some(true) => FailureKind::Unavailable,
        Some(false) => FailureKind::InvalidRequest,
        None => FailureKind::Crashed,
    };
    let kind = find(NAMES, name)
        .or_else(|| kind_by_marks(PRECISE, &all))
        .or_else(|| status.and_then(FailureKind::of_http_status))
        .or_else(|| kind_by_marks(MARKS, words))
        .unwrap_or(otherwise);
    Failure { retry_after: retry_after(data), ..Failure::new(kind, message) }
}

/// Makes a failure of words alone.
pub(super) fn of_words(message: &str, otherwise: FailureKind) -> Failure {
    let kind = kind_by_marks(PRECISE, message).or_else(|| kind_by_marks(MARKS, message));
    Failure::new(kind.unwrap_or(otherwise), message)
}

/// Makes a failure of a process that ended badly; `cause` is what the log said.
pub(super) fn of_exit(exit: &Exit, cause: Option<&str>) -> Failure {
    if let Some(message) = complaint(&exit.stderr).as_deref().or(cause) {
        let mut failure = of_words(message, FailureKind::Crashed);
        if let (FailureKind::Crashed, Some(cause)) = (failure.kind, cause) {
            failure = of_words(cause, FailureKind::Crashed);
        }
        return failure;
    }
    Failure::new(FailureKind::Crashed, exit_words(exit))
}

/// Returns why the model stopped, for a turn that failed so.
pub(super) fn stop_reason(failure: &Failure) -> StopReason {
    if failure.kind == FailureKind::Refused {
        StopReason::Refusal
    } else if failure.kind == FailureKind::LimitReached {
        StopReason::MaxTokens
    } else {
        StopReason::Error
    }
}

fn find(table: &[(&str, FailureKind)], name: &str) -> Option<FailureKind> {
    table.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

/// Some words are an object that has the message inside.
fn of_json(text: &str) -> Option<String> {
    let value: Value = text.starts_with('{').then(|| serde_json::from_str(text).ok())??;
    Some(value.get("message")?.as_str()?.to_owned())
}

/// The part of standard error that says what was wrong: from its last label on,
/// or all of it, log entries left out.
fn complaint(stderr: &str) -> Option<String> {
    let text = log::plain(stderr);
    let lines: Vec<&str> = text.lines().filter(|line| !log::is_entry(line)).collect();
    let at = lines.iter().rposition(|line| line.starts_with("Error: ")).unwrap_or(0);
    let text = lines.get(at..).unwrap_or_default().join("\n");
    let text = text.strip_prefix("Error: ").unwrap_or(&text);
    // What stands behind it is the reason, and the label says nothing.
    let text = text.strip_prefix("Unexpected error\n").unwrap_or(text).trim();
    let text = if text.starts_with(HELP) { MISREAD } else { text };
    (!text.is_empty()).then(|| text.to_owned())
}

fn retry_after(data: &Map<String, Value>) -> Option<Duration> {
    let headers = data.get("responseHeaders")?;
    let number = |name: &str| headers.get(name)?.as_str()?.trim().parse::<f64>().ok();
    let seconds = match number("retry-after-ms") {
        Some(millis) => millis / 1000.0,
        None => number("retry-after")?,
    };
    Duration::try_from_secs_f64(seconds).ok()
}
