//! Finds out why Gemini failed, from its words, its codes and its exit.
//!
//! Tables first: each line is something that the CLI was seen to print, or that
//! stands in its own code. What stands in none of them is `crashed`.

use serde_json::Value;

use super::complaint::Complaints;
use crate::{
    agent::{
        Exit,
        words::{Marks, exit_words, kind_by_marks},
    },
    event::StopReason,
    failure::{Failure, FailureKind},
};

/// The names of the CLI's own errors.
const TYPES: &[(&str, FailureKind)] = &[
    ("FatalAuthenticationError", FailureKind::Auth),
    ("FatalCancellationError", FailureKind::Cancelled),
    ("FatalConfigError", FailureKind::InvalidRequest),
    ("FatalInputError", FailureKind::InvalidRequest),
    ("FatalTurnLimitedError", FailureKind::LimitReached),
    ("FatalUntrustedWorkspaceError", FailureKind::Denied),
    ("TerminalQuotaError", FailureKind::Quota),
];

/// Words that say more than the status beside them, in lower case.
const PHRASES: &Marks = &[
    ("error resuming session", FailureKind::SessionLost),
    ("invalid session identifier", FailureKind::SessionLost),
    ("no previous sessions found", FailureKind::SessionLost),
    ("session not found: ", FailureKind::SessionLost),
    ("exceeds the maximum number of tokens", FailureKind::ContextTooLong),
    ("api key not valid", FailureKind::Auth),
    ("api key is missing", FailureKind::Auth),
    ("api key expired", FailureKind::Auth),
    ("must specify the gemini_api_key", FailureKind::Auth),
    ("when using vertex ai, you must specify", FailureKind::Auth),
    (INVALID_AUTH_METHOD, FailureKind::Auth),
    ("please set an auth method", FailureKind::Auth),
    ("please re-authenticate", FailureKind::Auth),
    ("exhausted your daily quota", FailureKind::Quota),
    ("exceeded your current quota", FailureKind::Quota),
    ("reached max session turns", FailureKind::LimitReached),
    ("maximum session turns exceeded", FailureKind::LimitReached),
    (LENGTH_LIMIT, FailureKind::LimitReached),
    ("response was blocked", FailureKind::Refused),
    ("not running in a trusted directory", FailureKind::Denied),
    ("model is overloaded", FailureKind::Overloaded),
];

/// Words that count only where no status says more.
const PHRASES_WITHOUT_STATUS: &Marks = &[
    ("fetch failed", FailureKind::Unavailable),
    ("terminated", FailureKind::Unavailable),
    ("without a finish reason", FailureKind::Unavailable),
    ("invalid stream", FailureKind::Unavailable),
    ("econnrefused", FailureKind::Unavailable),
    ("econnreset", FailureKind::Unavailable),
    ("etimedout", FailureKind::Unavailable),
    ("socket hang up", FailureKind::Unavailable),
    ("is not found for api version", FailureKind::InvalidRequest),
    ("no input provided via stdin", FailureKind::InvalidRequest),
    ("unknown argument", FailureKind::InvalidRequest),
    ("not enough arguments following", FailureKind::InvalidRequest),
    ("invalid values:", FailureKind::InvalidRequest),
    ("invalid session id", FailureKind::InvalidRequest),
    ("invalid custom base url", FailureKind::InvalidRequest),
    ("already exists. use --resume", FailureKind::InvalidRequest),
    ("missing system prompt file", FailureKind::InvalidRequest),
    ("please fix the configuration file", FailureKind::InvalidRequest),
];

/// The CLI's own exit codes. Beside them it exits with an HTTP status, of which
/// eight bits are left.
const EXITS: &[(i32, FailureKind)] = &[
    (41, FailureKind::Auth),
    (42, FailureKind::InvalidRequest),
    (52, FailureKind::InvalidRequest),
    (53, FailureKind::LimitReached),
    (55, FailureKind::Denied),
    (130, FailureKind::Cancelled),
];

/// The statuses that an exit code may stand for.
const STATUSES: &[u16] =
    &[400, 401, 402, 403, 404, 408, 409, 413, 429, 500, 501, 502, 503, 504, 529];

const INVALID_AUTH_METHOD: &str = "invalid auth method selected";
const LENGTH_LIMIT: &str = "truncated because it exceeded the token limit";

/// What is added when a base URL beside a key is refused.
const AUTH_HINT: &str = "With GOOGLE_GEMINI_BASE_URL set, Gemini wants \
                         security.auth.selectedType in ~/.gemini/settings.json to be \
                         \"gemini-api-key\"; an isolated run needs nothing";

/// What the CLI said about an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// The words, without what the CLI wraps around them.
    pub(super) message: String,
    /// The CLI's name for the error.
    kind: Option<String>,
    /// The HTTP status, or the CLI's own code.
    code: Option<u16>,
}

impl Said {
    /// Takes bare words.
    pub(super) fn of_words(words: &str) -> Self {
        let words = unwrapped(words);
        match serde_json::from_str::<Value>(words) {
            // The provider's answer, passed on as it came.
            Ok(body) => match body.get("error").and_then(Self::of_error) {
                Some(said) => said,
                None => Self { message: words.to_owned(), ..Self::default() },
            },
            Err(_) => Self { message: words.to_owned(), ..Self::default() },
        }
    }

    /// Takes the object that stands in an `error` field.
    pub(super) fn of_error(error: &Value) -> Option<Self> {
        let message = error.as_str().or_else(|| error.get("message")?.as_str())?;
        let inner = Self::of_words(message);
        let code = error.get("code").and_then(Value::as_u64).and_then(|n| u16::try_from(n).ok());
        let kind = error.get("type").and_then(Value::as_str).map(str::to_owned);
        Some(Self { kind: kind.or(inner.kind), code: inner.code.or(code), ..inner })
    }

    fn by_name(&self) -> Option<FailureKind> {
        let name = self.kind.as_deref()?;
        TYPES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    fn by_code(&self) -> Option<FailureKind> {
        self.code.and_then(FailureKind::of_http_status)
    }
}

/// Makes the failure of a turn: from what the CLI said last, else from standard
/// error, with the exit as a further witness where there is one already.
pub(super) fn failure(said: Option<&Said>, heard: &Complaints, exit: Option<&Exit>) -> Failure {
    let said = said.or(heard.error.as_ref());
    let stderr = exit.map(|exit| exit.stderr.as_str()).unwrap_or_default();
    let message = match (said, &heard.dumped, &heard.complaint, exit) {
        (Some(said), ..) => said.message.clone(),
        (None, Some(words), ..) => Said::of_words(words).message,
        (None, None, Some(line), _) => line.clone(),
        (None, None, None, Some(exit)) => exit_words(exit),
        (None, None, None, None) => "Gemini did not say what went wrong".to_owned(),
    };
    let kind = said
        .and_then(Said::by_name)
        .or_else(|| heard.is_quota.then_some(FailureKind::Quota))
        .or_else(|| kind_by_marks(PHRASES, &message))
        .or_else(|| said.and_then(Said::by_code))
        .or_else(|| exit.and_then(by_exit))
        .or_else(|| heard.status.and_then(FailureKind::of_http_status))
        .or_else(|| kind_by_marks(PHRASES_WITHOUT_STATUS, &message))
        .or_else(|| kind_by_marks(PHRASES, stderr))
        .or_else(|| kind_by_marks(PHRASES_WITHOUT_STATUS, stderr))
        .unwrap_or(FailureKind::Crashed);
    // An exit with 42 says no more than that something was wrong with the request.
    let kind = match kind_by_marks(PHRASES, stderr) {
        Some(better) if kind == FailureKind::InvalidRequest && said.is_none() => better,
        _ => kind,
    };
    let retry_after = heard.retry_after.filter(|_| kind == FailureKind::RateLimited);
    let message = if message.to_lowercase().contains(INVALID_AUTH_METHOD) {
        format!("{} {AUTH_HINT}", message.trim_end())
    } else {
        message
    };
    Failure { retry_after, ..Failure::new(kind, message) }
}

/// Makes the failure of a request that a kept process refused, with this error.
pub(super) fn of_reply(error: &Value, otherwise: FailureKind) -> Failure {
    let said = Said::of_error(error);
    unless_crashed(failure(said.as_ref(), &Complaints::default(), None), otherwise)
}

/// Gives a failure that no table knows a kind: nothing has crashed while the CLI still talks.
pub(super) fn unless_crashed(failure: Failure, otherwise: FailureKind) -> Failure {
    let kind = if failure.kind == FailureKind::Crashed { otherwise } else { failure.kind };
    Failure { kind, ..failure }
}

/// Returns why the model stopped, for a turn that failed so.
pub(super) fn stop_reason(failure: &Failure) -> StopReason {
    if failure.kind == FailureKind::Refused {
        StopReason::Refusal
    } else if failure.message.contains(LENGTH_LIMIT) {
        StopReason::MaxTokens
    } else if failure.kind == FailureKind::LimitReached {
        StopReason::MaxTurns
    } else {
        StopReason::Error
    }
}

fn by_exit(exit: &Exit) -> Option<FailureKind> {
    let code = exit.code?;
    let own = EXITS.iter().find(|(known, _)| *known == code).map(|(_, kind)| *kind);
    own.or_else(|| {
        let status = STATUSES.iter().find(|status| i32::from(**status % 256) == code)?;
        FailureKind::of_http_status(*status)
    })
}

/// Strips `[API Error: …]` and the advice that may follow it.
fn unwrapped(message: &str) -> &str {
    let inner = message.strip_prefix("[API Error: ").and_then(|rest| rest.rsplit_once(']'));
    inner.map_or(message, |(words, _)| words)
}
