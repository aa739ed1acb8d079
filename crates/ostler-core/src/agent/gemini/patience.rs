//! When the CLI is not waited for any longer.

use std::time::Duration;

use super::{
    complaint::{Complaints, Heard},
    fault::{self, unless_crashed},
    turn::Turn,
};
use crate::{
    agent::Action,
    event::Usage,
    failure::{Failure, FailureKind},
};

/// How often a request may fail before the CLI is stopped. In the user's own
/// home it tries ten times, which takes more than three minutes.
const MAX_FAILED_ATTEMPTS: u32 = 2;
/// How long it may wait before it tries again.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(12);

/// Ends a turn that would take the CLI minutes to end, or would go on with half
/// a prompt.
pub(super) fn give_up(
    heard: &Heard,
    turn: &mut Turn,
    complaints: &Complaints,
    out: &mut Vec<Action>,
) {
    if let Some(failure) = why_give_up(heard, complaints)
        && !turn.has_ended()
    {
        turn.confirm(out);
        turn.fail(failure, Usage::default(), out);
        out.push(Action::Stop);
    }
}

/// Returns why the CLI is not waited for any longer.
pub(super) fn why_give_up(heard: &Heard, complaints: &Complaints) -> Option<Failure> {
    Some(match heard {
        Heard::Retry { attempt, delay }
            if *attempt >= MAX_FAILED_ATTEMPTS || delay.is_some_and(|d| d > MAX_RETRY_DELAY) =>
        {
            // Only who asks to slow down says for how long.
            let otherwise = match delay {
                Some(_) => FailureKind::RateLimited,
                None => FailureKind::Unavailable,
            };
            let failure = unless_crashed(fault::failure(None, complaints, None), otherwise);
            Failure { retry_after: failure.retry_after.or(*delay), ..failure }
        }
        Heard::PromptCut => {
            let text = "the prompt is longer than the 8 MiB that Gemini takes";
            Failure::new(FailureKind::InvalidRequest, text)
        }
        Heard::Retry { .. } | Heard::Nothing => return None,
    })
}
