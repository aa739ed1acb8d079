//! What Codex's error messages mean. It has no codes in `exec`, only words.

use std::time::Duration;

use serde_json::Value;

use crate::{
    agent::{
        Exit,
        words::{Marks, exit_words, kind_by_marks},
    },
    event::StopReason,
    failure::{Failure, FailureKind},
};

const MAX_OUTPUT_TOKENS: &str = "reason: max_output_tokens";

/// What a message holds, in lower case, and what that means. The first hit
/// counts; the messages that wrap others come last.
const MARKS: &Marks = &[
    ("no rollout found", FailureKind::SessionLost),
    ("already has an active writer", FailureKind::SessionBusy),
    ("not inside a trusted directory", FailureKind::Denied),
    (MAX_OUTPUT_TOKENS, FailureKind::LimitReached),
    ("token budget exhausted", FailureKind::LimitReached),
    ("thread limit reached", FailureKind::LimitReached),
    ("reason: content_filter", FailureKind::Refused),
    ("usage policy", FailureKind::Refused),
    ("context window", FailureKind::ContextTooLong),
    ("context_length_exceeded", FailureKind::ContextTooLong),
    ("missing environment variable", FailureKind::Auth),
    ("incorrect api key", FailureKind::Auth),
    ("invalid_api_key", FailureKind::Auth),
    ("sign in again", FailureKind::Auth),
    ("could not be refreshed", FailureKind::Auth),
    ("not logged in", FailureKind::Auth),
    ("quota", FailureKind::Quota),
    ("hit your usage limit", FailureKind::Quota),
    ("out of credits", FailureKind::Quota),
    ("spend cap", FailureKind::Quota),
    ("upgrade to plus", FailureKind::Quota),
    ("rate limit", FailureKind::RateLimited),
    ("rate_limit", FailureKind::RateLimited),
    ("at capacity", FailureKind::Overloaded),
    ("capacity is unavailable", FailureKind::Overloaded),
    ("capacity unavailable", FailureKind::Overloaded),
    ("overloaded", FailureKind::Overloaded),
    // What the CLI makes of status 500, whatever the body said.
    ("experiencing high demand", FailureKind::Unavailable),
    ("connection failed", FailureKind::Unavailable),
    ("connection refused", FailureKind::Unavailable),
    ("stream disconnected", FailureKind::Unavailable),
    ("timed out", FailureKind::Unavailable),
    ("idle timeout", FailureKind::Unavailable),
    ("agent loop died", FailureKind::Crashed),
    ("exceeds the maximum length", FailureKind::InvalidRequest),
    ("model_not_found", FailureKind::InvalidRequest),
    ("does not exist", FailureKind::InvalidRequest),
    ("is not supported", FailureKind::InvalidRequest),
    ("invalid prompt", FailureKind::InvalidRequest),
    ("invalid_request_error", FailureKind::InvalidRequest),
    ("error loading config", FailureKind::InvalidRequest),
    ("unknown feature flag", FailureKind::InvalidRequest),
    ("unexpected argument", FailureKind::InvalidRequest),
    ("no prompt provided", FailureKind::InvalidRequest),
    ("no such file or directory (os error 2)", FailureKind::InvalidRequest),
];

/// What stands before the number of an HTTP status.
const STATUS_MARKS: &[&str] = &["unexpected status ", "last status: "];

/// Makes a failure of what the CLI said; `otherwise` is the kind of words that
/// are not known.
pub(super) fn of_message(message: &str, otherwise: FailureKind) -> Failure {
    let body = ErrorBody::of(message);
    let (kind, words) = match &body {
        // Only status 400 is shown as the bare body.
        Some(body) => {
            (kind_of(&body.all).unwrap_or(FailureKind::InvalidRequest), body.message.as_str())
        }
        None => (kind_of(message).unwrap_or(otherwise), message),
    };
    Failure { retry_after: retry_after(words), ..Failure::new(kind, words) }
}

/// Makes a failure of a process that ended without a last word.
pub(super) fn of_exit(exit: &Exit, is_noise: fn(&str) -> bool) -> Failure {
    match complaint(&exit.stderr, is_noise) {
        Some(message) => {
            let mut failure = of_message(&message, FailureKind::Crashed);
            if failure.kind == FailureKind::Crashed
                && let Some(kind) = kind_of(&exit.stderr)
            {
                failure.kind = kind;
            }
            failure
        }
        None => Failure::new(FailureKind::Crashed, exit_words(exit)),
    }
}

/// Returns why the model stopped, for a turn that failed so.
pub(super) fn stop_reason(failure: &Failure) -> StopReason {
    if failure.message.contains(MAX_OUTPUT_TOKENS) {
        StopReason::MaxTokens
    } else if failure.kind == FailureKind::Refused {
        StopReason::Refusal
    } else {
        StopReason::Error
    }
}

fn kind_of(text: &str) -> Option<FailureKind> {
    let text = text.to_lowercase();
    http_status(&text).and_then(FailureKind::of_http_status).or_else(|| kind_by_marks(MARKS, &text))
}

fn http_status(text: &str) -> Option<u16> {
    STATUS_MARKS.iter().find_map(|mark| {
        let (_, rest) = text.split_once(mark)?;
        rest.get(..3)?.parse().ok()
    })
}

/// The part of standard error that says what was wrong: from the last line that
/// begins with an error to the next empty one, else the last line that is not a
/// log entry.
fn complaint(stderr: &str, is_noise: fn(&str) -> bool) -> Option<String> {
    let begins =
        |line: &&str| line.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    let lines: Vec<&str> = stderr.lines().collect();
    if let Some(at) = lines.iter().rposition(begins) {
        let paragraph: Vec<&str> =
            lines.into_iter().skip(at).take_while(|line| !line.trim().is_empty()).collect();
        return Some(without_label(&paragraph.join("\n")).to_owned());
    }
    let lines = || stderr.lines().filter(|line| !is_noise(line));
    lines().rfind(|line| !is_log_entry(line)).or_else(|| lines().next_back()).map(str::to_owned)
}

fn without_label(message: &str) -> &str {
    ["Error: ", "ERROR: ", "error: "]
        .iter()
        .find_map(|label| message.strip_prefix(label))
        .unwrap_or(message)
}

/// Log entries begin with a time: `2026-11-15T18:46:52.495266Z ERROR module: …`.
fn is_log_entry(line: &str) -> bool {
    line.split_once(' ').is_some_and(|(first, _)| {
        first.ends_with('Z') && first.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// An answer of the provider that the CLI passes on as it came.
struct ErrorBody {
    message: String,
    /// Everything that may tell what is wrong.
    all: String,
}

impl ErrorBody {
    fn of(message: &str) -> Option<Self> {
        if !message.trim_start().starts_with('{') {
            return None;
        }
        let body: Value = serde_json::from_str(message.trim()).ok()?;
        let error = body.get("error").unwrap_or(&body);
        let field = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
        let words = error.as_str().unwrap_or_else(|| field("message"));
        let all = format!("{} {} {words}", field("code"), field("type"));
        let message = if words.is_empty() { message } else { words };
        Some(Self { message: message.to_owned(), all })
    }
}

/// Reads `try again in 1h2m3.5s`, with or without spaces and whole words.
fn retry_after(message: &str) -> Option<Duration> {
    let message = message.to_lowercase();
    let (_, mut rest) = message.split_once("try again in ")?;
    let mut seconds = None;
    loop {
        rest = rest.trim_start();
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at_checked(digits)?;
        let letters = tail.trim_start();
        let end = letters.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(letters.len());
        let (unit, tail) = letters.split_at_checked(end)?;
        let (Ok(number), Some(unit)) = (number.parse::<f64>(), seconds_of(unit)) else {
            break;
        };
        seconds = Some(seconds.unwrap_or(0.0) + number * unit);
        rest = tail;
    }
    Duration::try_from_secs_f64(seconds?).ok()
}

fn seconds_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86400.0,
        _ => return None,
    })
}
