//! Why a turn failed: a closed list of kinds to branch on, and texts to read.
//!
//! The three fixed texts that callers rely on are made here and nowhere else.

use std::time::Duration;

use serde::{Serialize, Serializer, ser::SerializeMap};

/// What went wrong, as far as anybody would act differently on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The turn, or the agent's silence, lasted too long.
    Timeout,
    /// The process could not be started.
    SpawnFailed,
    /// The process ended without saying why in words that we know.
    Crashed,
    /// The provider asks to slow down.
    RateLimited,
    /// The provider has no capacity (503, 529).
    Overloaded,
    /// The provider cannot be reached or broke off.
    Unavailable,
    /// Somebody else uses the session.
    SessionBusy,
    /// No or wrong credentials.
    Auth,
    /// The account's means are used up.
    Quota,
    /// The request is wrong (400, 404, 413, unknown model).
    InvalidRequest,
    /// The conversation no longer fits the model.
    ContextTooLong,
    /// The session to resume does not exist.
    SessionLost,
    /// A limit of turns or budget was reached.
    LimitReached,
    /// The model refused for safety.
    Refused,
    /// A missing permission ended the turn.
    Denied,
    /// Somebody stopped it.
    Cancelled,
    /// The process printed nothing that can be read.
    UnreadableOutput,
    /// Ostler's own fault.
    Internal,
}

impl FailureKind {
    /// Every kind, the retryable ones first.
    pub const ALL: [Self; 18] = [
        Self::Timeout,
        Self::SpawnFailed,
        Self::Crashed,
        Self::RateLimited,
        Self::Overloaded,
        Self::Unavailable,
        Self::SessionBusy,
        Self::Auth,
        Self::Quota,
        Self::InvalidRequest,
        Self::ContextTooLong,
        Self::SessionLost,
        Self::LimitReached,
        Self::Refused,
        Self::Denied,
        Self::Cancelled,
        Self::UnreadableOutput,
        Self::Internal,
    ];

    /// Returns the word that is printed and stored.
    #[must_use]
    pub fn code(self) -> &'static str {
        self.facts().0
    }

    /// Returns whether the same request may succeed later.
    #[must_use]
    pub fn retryable(self) -> bool {
        self.facts().1 == Retry::Helps
    }

    fn facts(self) -> (&'static str, Retry) {
        match self {
            Self::Timeout => ("timeout", Retry::Helps),
            Self::SpawnFailed => ("spawn_failed", Retry::Helps),
            Self::Crashed => ("crashed", Retry::Helps),
            Self::RateLimited => ("rate_limited", Retry::Helps),
            Self::Overloaded => ("overloaded", Retry::Helps),
            Self::Unavailable => ("unavailable", Retry::Helps),
            Self::SessionBusy => ("session_busy", Retry::Helps),
            Self::Auth => ("auth", Retry::Useless),
            Self::Quota => ("quota", Retry::Useless),
            Self::InvalidRequest => ("invalid_request", Retry::Useless),
            Self::ContextTooLong => ("context_too_long", Retry::Useless),
            Self::SessionLost => ("session_lost", Retry::Useless),
            Self::LimitReached => ("limit_reached", Retry::Useless),
            Self::Refused => ("refused", Retry::Useless),
            Self::Denied => ("denied", Retry::Useless),
            Self::Cancelled => ("cancelled", Retry::Useless),
            Self::UnreadableOutput => ("unreadable_output", Retry::Useless),
            Self::Internal => ("internal", Retry::Useless),
        }
    }

    /// Returns the kind that an HTTP status of a model provider stands for.
    #[must_use]
    pub fn of_http_status(status: u16) -> Option<Self> {
        Some(match status {
            401 | 403 => Self::Auth,
            402 => Self::Quota,
            429 => Self::RateLimited,
            503 | 529 => Self::Overloaded,
            400..=499 => Self::InvalidRequest,
            500..=599 => Self::Unavailable,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Retry {
    Helps,
    Useless,
}

/// Why a turn failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What to branch on.
    pub kind: FailureKind,
    /// The agent's own words where it said any.
    pub message: String,
    /// When a retry makes sense, if the other side said so.
    pub retry_after: Option<Duration>,
    /// The text for the caller where the contract fixes one; else the message serves.
    pub fixed_text: Option<String>,
}

impl Failure {
    /// Makes a failure with a message and no fixed text.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, fixed_text: None }
    }

    /// Makes the failure of a turn that ran out of time.
    pub fn timed_out(message: impl Into<String>) -> Self {
        Self {
            fixed_text: Some("Query timed out".to_owned()),
            ..Self::new(FailureKind::Timeout, message)
        }
    }

    /// Makes the failure of a process that ended well but printed nothing readable.
    #[must_use]
    pub fn unreadable() -> Self {
        let text = "Failed to parse CLI output";
        Self { fixed_text: Some(text.to_owned()), ..Self::new(FailureKind::UnreadableOutput, text) }
    }

    /// Adds the fixed text of a non-zero exit.
    #[must_use]
    pub fn with_exit(mut self, name: &str, code: i32, stderr: &str) -> Self {
        self.fixed_text = Some(exit_text(name, code, stderr));
        self
    }

    /// Returns what a caller should show instead of an answer.
    #[must_use]
    pub fn response_text(&self) -> &str {
        self.fixed_text.as_deref().unwrap_or(&self.message)
    }
}

/// Returns the fixed text of a non-zero exit: the first 500 characters of
/// standard error, verbatim, or `unknown error` when it is empty.
#[must_use]
pub fn exit_text(name: &str, code: i32, stderr: &str) -> String {
    let end = stderr.char_indices().nth(500).map_or(stderr.len(), |(at, _)| at);
    let shown = match stderr.get(..end) {
        Some("") | None => "unknown error",
        Some(start) => start,
    };
    format!("{name} CLI error (exit {code}): {shown}")
}

/// Returns an error with all its causes, in one line.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("kind", self.kind.code())?;
        map.serialize_entry("message", &self.message)?;
        map.serialize_entry("retryable", &self.kind.retryable())?;
        let retry_after_ms = self.retry_after.map(|wait| u64::try_from(wait.as_millis()));
        map.serialize_entry("retry_after_ms", &retry_after_ms.and_then(Result::ok))?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_code() {
        let codes: std::collections::BTreeSet<_> =
            FailureKind::ALL.into_iter().map(FailureKind::code).collect();
        assert_eq!(codes.len(), FailureKind::ALL.len());
    }

    #[test]
    fn the_retryable_kinds_are_the_first_seven() {
        let retryable: Vec<_> = FailureKind::ALL
            .into_iter()
            .filter(|kind| kind.retryable())
            .map(FailureKind::code)
            .collect();
        assert_eq!(
            retryable,
            [
                "timeout",
                "spawn_failed",
                "crashed",
                "rate_limited",
                "overloaded",
                "unavailable",
                "session_busy"
            ]
        );
    }

    #[test]
    fn an_exit_shows_the_first_500_characters_of_stderr_and_never_half_a_character() {
        let stderr = "é".repeat(700);
        let text = exit_text("Claude", 3, &stderr);
        assert_eq!(text, format!("Claude CLI error (exit 3): {}", "é".repeat(500)));
        assert_eq!(exit_text("Codex", 1, ""), "Codex CLI error (exit 1): unknown error");
        assert_eq!(exit_text("Codex", 1, " "), "Codex CLI error (exit 1):  ");
    }
}
