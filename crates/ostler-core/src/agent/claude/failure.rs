//! Finds out why Claude failed, from what it says in fields and in words.
//!
//! Tables first: each line is something that the CLI was seen to print, or that
//! its own schema of messages lists. What stands in none of them is `crashed`.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::field;
use crate::{
    agent::{
        Exit,
        words::{Marks, exit_words, kind_by_marks},
    },
    failure::{Failure, FailureKind},
};

/// Words that say more than the status beside them: a used-up account is a 400.
const PHRASES: &Marks = &[
    ("cannot be used with root/sudo", FailureKind::Denied),
    ("no conversation found with session id", FailureKind::SessionLost),
    ("does not match any session title", FailureKind::SessionLost),
    ("credit balance is too low", FailureKind::Quota),
    ("prompt is too long", FailureKind::ContextTooLong),
    ("exceed context limit", FailureKind::ContextTooLong),
    ("not logged in", FailureKind::Auth),
    ("please run /login", FailureKind::Auth),
    ("invalid api key", FailureKind::Auth),
    ("failed to authenticate", FailureKind::Auth),
    ("usage limit reached", FailureKind::RateLimited),
    ("hit your limit", FailureKind::RateLimited),
];

/// Words of a start that failed and of plain text output, where no field helps.
const PHRASES_WITHOUT_FIELDS: &Marks = &[
    ("issue with the selected model", FailureKind::InvalidRequest),
    ("(429)", FailureKind::RateLimited),
    ("api error: 529", FailureKind::Overloaded),
    ("api error: 503", FailureKind::Overloaded),
    ("api error: 5", FailureKind::Unavailable),
    ("api error: 4", FailureKind::InvalidRequest),
    ("connection refused", FailureKind::Unavailable),
    ("unable to connect", FailureKind::Unavailable),
    ("reached max turns", FailureKind::LimitReached),
    ("reached maximum number of turns", FailureKind::LimitReached),
    ("reached maximum budget", FailureKind::LimitReached),
    ("safeguards flagged", FailureKind::Refused),
    ("error: unknown option", FailureKind::InvalidRequest),
    ("error: option '", FailureKind::InvalidRequest),
    ("input must be provided", FailureKind::InvalidRequest),
    ("input contained only whitespace", FailureKind::InvalidRequest),
    ("stdin input exceeds", FailureKind::InvalidRequest),
    ("invalid session id", FailureKind::InvalidRequest),
    ("is already in use", FailureKind::InvalidRequest),
    ("--session-id can only be used", FailureKind::InvalidRequest),
    ("requires --print", FailureKind::InvalidRequest),
    ("requires --verbose", FailureKind::InvalidRequest),
    ("native binary not installed", FailureKind::SpawnFailed),
];

/// The CLI's own words for kinds of errors, in whichever field they stand; of
/// several the one that stands first here counts.
const WORDS: &[(&str, FailureKind)] = &[
    ("bypass_root", FailureKind::Denied),
    ("session_held_by_background", FailureKind::SessionBusy),
    ("error_max_turns", FailureKind::LimitReached),
    ("error_max_budget_usd", FailureKind::LimitReached),
    ("max_turns", FailureKind::LimitReached),
    ("budget_exhausted", FailureKind::LimitReached),
    ("max_output_tokens", FailureKind::LimitReached),
    ("aborted_streaming", FailureKind::Cancelled),
    ("aborted_tools", FailureKind::Cancelled),
    ("blocking_limit", FailureKind::ContextTooLong),
    ("prompt_too_long", FailureKind::ContextTooLong),
    ("refusal", FailureKind::Refused),
    ("safety_monitor_blocked", FailureKind::Refused),
    ("hook_denied", FailureKind::Denied),
    ("usage_limit_reached", FailureKind::RateLimited),
    ("model_requires_usage_credits", FailureKind::Quota),
    ("long_context_credits_required", FailureKind::Quota),
    ("billing_error", FailureKind::Quota),
    ("account_on_hold", FailureKind::Quota),
    ("authentication_failed", FailureKind::Auth),
    ("authentication_error", FailureKind::Auth),
    ("permission_error", FailureKind::Auth),
    ("oauth_org_not_allowed", FailureKind::Auth),
    ("verification_required", FailureKind::Auth),
    ("cloud_credential_error", FailureKind::Auth),
    ("provider_credentials", FailureKind::Auth),
    ("stored_login_refused", FailureKind::Auth),
    ("api_key_auth_disabled", FailureKind::Auth),
    ("org_disabled_credential", FailureKind::Auth),
    ("invalid_credential_header", FailureKind::Auth),
    ("gateway_signin_required", FailureKind::Auth),
    ("gateway_session_expired", FailureKind::Auth),
    ("rate_limit", FailureKind::RateLimited),
    ("rate_limit_error", FailureKind::RateLimited),
    ("overloaded", FailureKind::Overloaded),
    ("overloaded_error", FailureKind::Overloaded),
    ("invalid_request", FailureKind::InvalidRequest),
    ("invalid_request_error", FailureKind::InvalidRequest),
    ("model_not_found", FailureKind::InvalidRequest),
    ("not_found_error", FailureKind::InvalidRequest),
    ("request_too_large", FailureKind::InvalidRequest),
    ("config_file_invalid", FailureKind::InvalidRequest),
    ("server_error", FailureKind::Unavailable),
    ("connection_failed", FailureKind::Unavailable),
    ("no_response", FailureKind::Unavailable),
    ("stream_idle_timeout", FailureKind::Unavailable),
    ("network_edge_blocked", FailureKind::Unavailable),
    // Also the type of a plain 500, which is the same kind.
    ("api_error", FailureKind::Unavailable),
];

/// How lines on standard error begin that warn and do not complain.
pub(super) const WARNINGS: &[&str] = &[
    // Names a model that the CLI has no prices for; it is used all the same.
    "[claude-code:unrecognized_model]",
    "Warning:",
];

/// What is added to the CLI's words when it refuses to run as root.
const ROOT_HINT: &str = "Choose other permissions, run as another user, or set IS_SANDBOX=1, \
                         but only inside a sandbox.";

/// What the CLI told about an error, from all the places where it tells it.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// The HTTP status of the model's provider.
    pub(super) status: Option<u16>,
    /// The CLI's words for it.
    pub(super) words: Vec<String>,
    /// The text for people.
    pub(super) message: String,
    /// When a limit ends, in seconds since 1970.
    pub(super) resets_at: Option<i64>,
}

impl Evidence {
    /// Gathers the fields of an error, which a result and a message share.
    pub(super) fn gather(&mut self, line: &Value) {
        let status = field::number(line, "api_error_status");
        if let Some(status) = status.and_then(|status| u16::try_from(status).ok()) {
            self.status = Some(status);
        }
        for key in [
            "startup_failure_reason",
            "api_error",
            "error",
            "subtype",
            "api_error_type",
            "stop_reason",
            "terminal_reason",
        ] {
            self.words.extend(field::text(line, key).map(str::to_owned));
        }
        let limit = line.pointer("/api_error_params/rate_limit_info");
        self.resets_at = limit.and_then(resets_at).or(self.resets_at);
    }

    /// Makes the failure.
    pub(super) fn conclude(self, now: Timestamp) -> Failure {
        let kind = self.kind();
        let retry_after = (kind == FailureKind::RateLimited)
            .then(|| self.resets_at.or_else(|| trailing_epoch(&self.message)))
            .flatten()
            .and_then(|at| u64::try_from(at.checked_sub(now.as_second())?).ok())
            .map(Duration::from_secs);
        let message = if kind == FailureKind::Denied && self.message.contains("root/sudo") {
            format!("{}. {ROOT_HINT}", self.message.trim_end_matches('.'))
        } else {
            self.message
        };
        Failure { retry_after, ..Failure::new(kind, message) }
    }

    fn kind(&self) -> FailureKind {
        let by_word = || {
            let said = |word: &str| self.words.iter().any(|said| said == word);
            let known = WORDS.iter().find(|(word, _)| said(word));
            known.map(|(_, kind)| *kind)
        };
        kind_by_marks(PHRASES, &self.message)
            .or_else(|| self.status.and_then(FailureKind::of_http_status))
            .or_else(by_word)
            .or_else(|| kind_by_marks(PHRASES_WITHOUT_FIELDS, &self.message))
            .unwrap_or(FailureKind::Crashed)
    }
}

/// Makes the failure of a process that ended without a last word: from what it
/// had said about an error, else from standard error, else from what it printed
/// in place of an answer.
pub(super) fn of_exit(exit: &Exit, evidence: Evidence, printed: &str, now: Timestamp) -> Failure {
    let complaint = complaint(&exit.stderr);
    let heard = [
        (evidence.message.as_str(), evidence.message.as_str()),
        (&exit.stderr, complaint),
        (printed, printed.trim()),
    ];
    let of = |message: &str| Evidence { message: message.to_owned(), ..evidence.clone() };
    let known =
        heard.iter().find(|(all, _)| !all.is_empty() && of(all).kind() != FailureKind::Crashed);
    let said = known.or_else(|| heard.iter().find(|(_, words)| !words.is_empty()));
    match said {
        Some((all, words)) => Failure { kind: of(all).kind(), ..of(words).conclude(now) },
        None => Failure::new(of("").kind(), exit_words(exit)),
    }
}

/// Returns the line of standard error that says what went wrong.
fn complaint(stderr: &str) -> &str {
    let mut lines = stderr
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !WARNINGS.iter().any(|start| line.starts_with(start)));
    let says_error = |line: &&str| line.starts_with("Error") || line.starts_with("error");
    let error = lines.clone().find(says_error);
    error.or_else(|| lines.next()).unwrap_or_default()
}

/// Reads when a limit ends from the CLI's record of it.
pub(super) fn resets_at(limit: &Value) -> Option<i64> {
    limit.get("resetsAt").and_then(Value::as_i64)
}

/// Older versions print `Claude AI usage limit reached|1790000000`.
fn trailing_epoch(message: &str) -> Option<i64> {
    message.rsplit_once('|')?.1.trim().parse().ok()
}
