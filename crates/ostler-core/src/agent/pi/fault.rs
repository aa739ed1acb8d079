//! What Pi's error messages mean. It has no codes of its own: what a provider
//! answered is passed on as `401 {…}` or `401: {…}`, everything else is words.

use std::time::Duration;

use serde_json::Value;

use super::field;
use crate::{
    agent::{
        Exit,
        words::{Marks, exit_words, kind_by_marks},
    },
    failure::{Failure, FailureKind},
};

/// What a message holds, in lower case, and what that means. These count more
/// than the number of a status, and the first hit counts.
const MARKS: &Marks = &[
    ("no session found matching", FailureKind::SessionLost),
    (FOREIGN_SESSION, FailureKind::SessionLost),
    ("is not a valid pi session", FailureKind::SessionLost),
    ("session working directory does not exist", FailureKind::SessionLost),
    ("agent is already processing", FailureKind::SessionBusy),
    ("while compaction is in progress", FailureKind::SessionBusy),
    ("no api key found", FailureKind::Auth),
    ("no models available", FailureKind::Auth),
    ("no model selected", FailureKind::Auth),
    ("authentication failed", FailureKind::Auth),
    ("refused to complete the request", FailureKind::Refused),
    ("content_filter", FailureKind::Refused),
    ("prompt is too long", FailureKind::ContextTooLong),
    ("prompt too long", FailureKind::ContextTooLong),
    ("request_too_large", FailureKind::ContextTooLong),
    ("input is too long", FailureKind::ContextTooLong),
    ("context window", FailureKind::ContextTooLong),
    ("context length", FailureKind::ContextTooLong),
    ("context_length_exceeded", FailureKind::ContextTooLong),
    ("context overflow", FailureKind::ContextTooLong),
    ("exceeds the maximum number of tokens", FailureKind::ContextTooLong),
    ("insufficient_quota", FailureKind::Quota),
    ("exceeded your current quota", FailureKind::Quota),
    ("quota exceeded", FailureKind::Quota),
    ("credit balance", FailureKind::Quota),
    ("usage limit reached", FailureKind::Quota),
    ("usagelimiterror", FailureKind::Quota),
    ("out of budget", FailureKind::Quota),
    ("billing", FailureKind::Quota),
];

/// The same for messages without the number of a status.
const WEAKER_MARKS: &Marks = &[
    ("authentication_error", FailureKind::Auth),
    ("permission_error", FailureKind::Auth),
    ("invalid_api_key", FailureKind::Auth),
    ("incorrect api key", FailureKind::Auth),
    ("invalid api key", FailureKind::Auth),
    ("unauthorized", FailureKind::Auth),
    ("rate_limit", FailureKind::RateLimited),
    ("rate limit", FailureKind::RateLimited),
    ("too many requests", FailureKind::RateLimited),
    ("retry delay", FailureKind::RateLimited),
    ("resourceexhausted", FailureKind::RateLimited),
    ("overloaded", FailureKind::Overloaded),
    ("high demand", FailureKind::Overloaded),
    ("service unavailable", FailureKind::Overloaded),
    ("api_error", FailureKind::Unavailable),
    ("server error", FailureKind::Unavailable),
    ("server_error", FailureKind::Unavailable),
    ("internal error", FailureKind::Unavailable),
    ("connection", FailureKind::Unavailable),
    ("network", FailureKind::Unavailable),
    ("fetch failed", FailureKind::Unavailable),
    ("socket", FailureKind::Unavailable),
    ("getaddrinfo", FailureKind::Unavailable),
    ("timed out", FailureKind::Unavailable),
    ("timeout", FailureKind::Unavailable),
    ("terminated", FailureKind::Unavailable),
    ("stream ended", FailureKind::Unavailable),
    ("ended without", FailureKind::Unavailable),
    ("not_found_error", FailureKind::InvalidRequest),
    ("invalid_request_error", FailureKind::InvalidRequest),
    ("unknown option", FailureKind::InvalidRequest),
    ("unknown provider", FailureKind::InvalidRequest),
    ("invalid mode", FailureKind::InvalidRequest),
    ("session id must be", FailureKind::InvalidRequest),
    ("requires a model", FailureKind::InvalidRequest),
    ("requires --model", FailureKind::InvalidRequest),
    ("use --list-models", FailureKind::InvalidRequest),
    ("failed to load extension", FailureKind::InvalidRequest),
    ("file not found", FailureKind::InvalidRequest),
];

/// Words of a Node that is too old for the CLI, or not there.
const NODE_MARKS: &[&str] =
    &["does not provide an export named", "'node': no such file", "env: node: no such file"];
const NODE_HINT: &str = "pi needs Node 22.19 or newer in PATH";

/// How the CLI asks whether to copy the session of another directory. It takes
/// the end of its input for a no and exits 0 without any output.
const FOREIGN_SESSION: &str = "session found in different project";

/// What stands before the time for which a provider wants to be left alone:
/// `Server requested 120s retry delay`, `Please try again in 2.5s`.
const DELAY_MARKS: &[&str] = &["server requested ", "try again in "];

/// Makes a failure of what the CLI said; `otherwise` is the kind of words that
/// are not known.
pub(super) fn of_message(message: &str, otherwise: FailureKind) -> Failure {
    let kind = kind_of(message).unwrap_or(otherwise);
    let words = words_of(message);
    let words =
        if words.is_empty() { "the request failed without a word".to_owned() } else { words };
    Failure { retry_after: retry_after(message), ..Failure::new(kind, words) }
}

/// Makes a failure of a process that ended badly without a last word.
pub(super) fn of_exit(exit: &Exit, printed: &str) -> Failure {
    let lower = exit.stderr.to_lowercase();
    let complaint = complaint(&exit.stderr).or_else(|| complaint(printed));
    if NODE_MARKS.iter().any(|mark| lower.contains(mark)) {
        let message = format!("{NODE_HINT}: {}", complaint.unwrap_or_default());
        return Failure::new(FailureKind::SpawnFailed, message);
    }
    let Some(complaint) = complaint else {
        return Failure::new(FailureKind::Crashed, exit_words(exit));
    };
    let mut failure = of_message(complaint, FailureKind::Crashed);
    if failure.kind == FailureKind::Crashed
        && let Some(kind) = kind_of(&exit.stderr).or_else(|| kind_of(printed))
    {
        failure.kind = kind;
    }
    failure
}

/// Makes a failure of a process that ended well and answered nothing, if its
/// complaints tell why.
pub(super) fn of_silence(stderr: &str) -> Option<Failure> {
    let line = stderr.lines().find(|line| line.to_lowercase().contains(FOREIGN_SESSION))?;
    Some(Failure::new(FailureKind::SessionLost, line.trim()))
}

fn kind_of(text: &str) -> Option<FailureKind> {
    let status = status_and_rest(text).0;
    kind_by_marks(MARKS, text)
        .or_else(|| status.and_then(FailureKind::of_http_status))
        .or_else(|| kind_by_marks(WEAKER_MARKS, text))
}

/// Splits the number of an HTTP status from the front of a message.
fn status_and_rest(message: &str) -> (Option<u16>, &str) {
    match message.trim_start().split_once(' ') {
        Some((number, rest)) => match number.trim_end_matches(':').parse() {
            Ok(status @ 400..=599) => (Some(status), rest),
            Ok(_) | Err(_) => (None, message),
        },
        None => (None, message),
    }
}

/// Returns the words in a provider's answer, or the message as it is.
fn words_of(message: &str) -> String {
    let (_, rest) = status_and_rest(message);
    let body: Option<Value> = serde_json::from_str(rest.trim()).ok();
    let words = body.as_ref().and_then(|body| {
        let error = body.get("error").unwrap_or(body);
        error.as_str().or_else(|| field::text(error, "message"))
    });
    words.filter(|words| !words.is_empty()).unwrap_or(message).to_owned()
}

/// The line that says what was wrong: the last one that calls itself an error,
/// else the first one that is not a warning.
fn complaint(text: &str) -> Option<&str> {
    let error = text.lines().rfind(|line| {
        let name = line.split_once(": ").map(|(name, _)| name);
        name.is_some_and(|name| name.ends_with("Error") && !name.contains(' '))
    });
    let mut others =
        text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("Warning: "));
    let line = error.or_else(|| others.next())?;
    Some(line.strip_prefix("Error: ").unwrap_or(line).trim())
}

/// Reads a number of seconds, minutes or the like.
fn retry_after(message: &str) -> Option<Duration> {
    let lower = message.to_lowercase();
    let (_, rest) = DELAY_MARKS.iter().find_map(|mark| lower.split_once(mark))?;
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let (number, unit) = rest.split_at_checked(rest.find(|c| !is_number(c))?)?;
    let unit: String = unit.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    let seconds = match unit.as_str() {
        "ms" => 0.001,
        "s" | "second" | "seconds" => 1.0,
        "m" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}
