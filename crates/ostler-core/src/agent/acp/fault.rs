//! Finds out why an agent of which nothing is known did not do what it was
//! asked: from the protocol's codes, an HTTP status in its words, or the words.

use serde_json::Value;

use crate::{
    agent::words::{Marks, kind_by_marks, one_line},
    failure::{Failure, FailureKind},
    protocol::jsonrpc::RpcError,
};

/// The protocol's codes.
const AUTH_REQUIRED: i64 = -32000;
const NOT_FOUND: i64 = -32002;
const CANCELLED: i64 = -32800;

/// Words that say more than a status beside them, in lower case.
const PHRASES: &Marks = &[
    ("maximum context length", FailureKind::ContextTooLong),
    ("context window", FailureKind::ContextTooLong),
    ("context length", FailureKind::ContextTooLong),
    ("prompt is too long", FailureKind::ContextTooLong),
    ("exceeds the maximum number of tokens", FailureKind::ContextTooLong),
    ("insufficient_quota", FailureKind::Quota),
    ("exceeded your current quota", FailureKind::Quota),
    ("insufficient balance", FailureKind::Quota),
    ("credit balance is too low", FailureKind::Quota),
    ("rate limit", FailureKind::RateLimited),
    ("too many requests", FailureKind::RateLimited),
    ("overloaded", FailureKind::Overloaded),
];

/// Words that count only where no status says more.
const PHRASES_WITHOUT_STATUS: &Marks = &[
    ("authentication", FailureKind::Auth),
    ("unauthorized", FailureKind::Auth),
    ("not logged in", FailureKind::Auth),
    ("api key", FailureKind::Auth),
    ("connection error", FailureKind::Unavailable),
    ("econnrefused", FailureKind::Unavailable),
    ("econnreset", FailureKind::Unavailable),
    ("etimedout", FailureKind::Unavailable),
    ("enotfound", FailureKind::Unavailable),
    ("fetch failed", FailureKind::Unavailable),
    ("socket hang up", FailureKind::Unavailable),
    ("failed to connect", FailureKind::Unavailable),
    ("connection refused", FailureKind::Unavailable),
    ("network", FailureKind::Unavailable),
    ("timed out", FailureKind::Unavailable),
    ("empty response", FailureKind::Unavailable),
    ("stream ended", FailureKind::Unavailable),
];

/// Words by which agents say that there is no such session.
const LOST: &[&str] = &["not found", "no such session", "does not exist", "unknown session"];

/// Finds out why a request was not carried out.
pub(super) fn of_reply(error: &RpcError) -> Failure {
    let message = words(error);
    let kind = match error.code {
        AUTH_REQUIRED => FailureKind::Auth,
        CANCELLED => FailureKind::Cancelled,
        // Some put the status of the model's provider there.
        code @ 400..=599 => {
            let status = u16::try_from(code).ok().and_then(FailureKind::of_http_status);
            of_phrases(&message).or(status).unwrap_or(FailureKind::Unavailable)
        }
        _ => of_words(&message).unwrap_or(match error.code {
            // The request was not understood, or cannot be carried out.
            -32602..=-32600 | NOT_FOUND => FailureKind::InvalidRequest,
            _ => FailureKind::Unavailable,
        }),
    };
    Failure::new(kind, message)
}

/// Returns whether an agent says that there is no such session.
pub(super) fn is_lost(error: &RpcError) -> bool {
    let message = words(error).to_lowercase();
    error.code == NOT_FOUND || LOST.iter().any(|mark| message.contains(mark))
}

/// Returns what a text tells of, as far as it is known.
pub(super) fn of_words(text: &str) -> Option<FailureKind> {
    of_phrases(text)
        .or_else(|| status(text).and_then(FailureKind::of_http_status))
        .or_else(|| kind_by_marks(PHRASES_WITHOUT_STATUS, text))
}

fn of_phrases(text: &str) -> Option<FailureKind> {
    kind_by_marks(PHRASES, text)
}

/// The words of an error. Some agents have a word of their own in front and
/// what matters beside it.
fn words(error: &RpcError) -> String {
    let data = error.data.as_ref();
    let detail = data.and_then(|data| {
        data.as_str().or_else(|| {
            ["details", "message", "error"].iter().find_map(|name| data.get(name)?.as_str())
        })
    });
    match detail.map(one_line).filter(|detail| !detail.is_empty()) {
        Some(detail) => detail,
        None if error.message.is_empty() => error
            .data
            .as_ref()
            .map_or_else(|| "an error without words".to_owned(), Value::to_string),
        None => one_line(&error.message),
    }
}

/// Finds an HTTP status: at the start of the text, or behind a word that
/// announces one.
fn status(text: &str) -> Option<u16> {
    let lower = text.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
    let number = |word: &str| {
        let status = word.parse::<u16>().ok().filter(|_| word.len() == 3)?;
        (400..600).contains(&status).then_some(status)
    };
    let first = words.next()?;
    if let Some(status) = number(first) {
        return Some(status);
    }
    let mut before = first;
    for word in words {
        if matches!(before, "http" | "status" | "code" | "error")
            && let Some(status) = number(word)
        {
            return Some(status);
        }
        before = word;
    }
    None
}
