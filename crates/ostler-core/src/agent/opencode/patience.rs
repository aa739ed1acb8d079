//! How long failing calls of the model are put up with.
//!
//! OpenCode tries a failed call again five times, with pauses of 2, 4, 8, 16
//! and 30 seconds and up to a quarter more, or as long as the provider says. No
//! setting changes that, and standard output shows nothing of it. A stream that
//! ends without a reason it takes for a step of its own and makes the next call
//! at once, for ever.

use jiff::{SignedDuration, Timestamp};

use crate::{
    event::Status,
    failure::{Failure, FailureKind},
};

use super::fault;

/// How long after the first failure another one ends the turn. The third comes
/// after six to eight seconds, the fourth would after eighteen.
const PATIENCE: SignedDuration = SignedDuration::from_secs(5);
/// How often the CLI tries again.
const MAX_RETRIES: u32 = 5;
/// How many answers in a row may break off.
const MAX_BROKEN: u32 = 3;

/// What is known of calls that failed and of none that went well since.
#[derive(Debug, Default)]
pub(super) struct Patience {
    since: Option<Timestamp>,
    n_failures: u32,
    /// Why the last call failed, until it is seen to be tried again.
    untold: Option<String>,
    n_broken: u32,
    /// Rings when the provider's own wish to wait is too long.
    pub(super) clock: crate::agent::patience::Patience,
}

impl Patience {
    /// Takes a failed call; returns a failure when it was one too many.
    pub(super) fn failed(&mut self, now: Timestamp, message: String) -> Option<Failure> {
        let since = *self.since.get_or_insert(now);
        self.n_failures += 1;
        let failure = fault::of_words(&message, FailureKind::Unavailable);
        // Who has no means left has none a moment later either.
        let is_hopeless = failure.kind == FailureKind::Quota && self.n_failures > 1;
        let is_too_long = now.duration_since(since) >= PATIENCE;
        self.untold = Some(message);
        (is_hopeless || is_too_long).then_some(failure)
    }

    /// Takes note of a failure that shows only in what came after it.
    pub(super) fn failing_since(&mut self, at: Timestamp) {
        self.since.get_or_insert(at);
    }

    /// Returns what to tell once a failed call is seen to be tried again.
    pub(super) fn tried_again(&mut self) -> Option<Status> {
        let text = self.untold.take()?;
        Some(Status::Retry {
            attempt: Some(self.n_failures),
            max: Some(MAX_RETRIES),
            delay_ms: None,
            text,
        })
    }

    /// Returns whether a failed call is not known to be tried again yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.untold.is_some()
    }

    /// Takes an answer that broke off; returns a failure when it was one too many.
    pub(super) fn broke_off(&mut self) -> Option<Failure> {
        self.n_broken += 1;
        let message = "the model's answers break off before their end";
        (self.n_broken >= MAX_BROKEN).then(|| Failure::new(FailureKind::Unavailable, message))
    }

    /// Returns what to tell of an answer that broke off and is asked for again.
    pub(super) fn asked_again(&self) -> Status {
        Status::Retry {
            attempt: Some(self.n_broken),
            max: None,
            delay_ms: None,
            text: "the model's answer broke off before its end".to_owned(),
        }
    }

    /// Takes note that the model answers.
    pub(super) fn answered(&mut self) {
        self.clock.progress();
        self.since = None;
        self.n_failures = 0;
    }

    /// Takes note that an answer came to its end.
    pub(super) fn finished(&mut self) {
        self.answered();
        self.n_broken = 0;
    }
}
