//! Whether a turn that failed is tried again, when, and in which session. Pure.
//!
//! This is the only place where turns are tried again. What was tried before is
//! known from the stored turns of the job, so that it is not forgotten when a
//! gateway dies; turns that died with their gateway do not count.

use std::time::Duration;

use ostler_core::failure::{Failure, FailureKind};

use super::policy::RetryRules;

/// Longer than this nobody is kept waiting for a provider's limit to pass; the
/// reply says when to ask again.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// What follows a turn that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    GiveUp,
    Again {
        /// Which retry it will be, from 1; none for a fresh start in the place
        /// of a lost session.
        number: Option<u32>,
        delay: Duration,
        session: Session,
    },
}

/// What becomes of the session when a turn is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Session {
    Keep,
    Drop,
}

/// Decides, by the failure and by how the turns before it failed.
pub(crate) fn decide(failure: &Failure, earlier: &[FailureKind], rules: RetryRules) -> Next {
    if failure.kind == FailureKind::SessionLost {
        // A second one was not the old session's fault.
        return if earlier.contains(&FailureKind::SessionLost) {
            Next::GiveUp
        } else {
            Next::Again { number: None, delay: Duration::ZERO, session: Session::Drop }
        };
    }
    if !failure.kind.retryable() {
        return Next::GiveUp;
    }
    let n_retries = earlier.iter().filter(|kind| kind.retryable()).count();
    let n_retries = u32::try_from(n_retries).unwrap_or(u32::MAX);
    if n_retries >= rules.max {
        return Next::GiveUp;
    }
    let doubled =
        rules.first_delay.saturating_mul(1_u32.checked_shl(n_retries).unwrap_or(u32::MAX));
    let delay = failure.retry_after.map_or(doubled, |after| after.max(doubled));
    if delay > LONGEST.max(doubled) {
        return Next::GiveUp;
    }
    let number = n_retries + 1;
    // What hung again and again may hang because of what the session holds.
    let is_last_hope = failure.kind == FailureKind::Timeout && number == rules.max;
    let session = if is_last_hope { Session::Drop } else { Session::Keep };
    Next::Again { number: Some(number), delay, session }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULES: RetryRules = RetryRules { max: 3, first_delay: Duration::from_secs(5) };

    fn failure(kind: FailureKind) -> Failure {
        Failure::new(kind, "no")
    }

    fn again(number: u32, seconds: u64, session: Session) -> Next {
        Next::Again { number: Some(number), delay: Duration::from_secs(seconds), session }
    }

    #[test]
    fn a_transient_failure_is_tried_again_after_5_10_and_20_seconds_and_no_more() {
        let kind = FailureKind::Overloaded;
        let decide = |n| decide(&failure(kind), &vec![kind; n], RULES);
        assert_eq!(decide(0), again(1, 5, Session::Keep));
        assert_eq!(decide(1), again(2, 10, Session::Keep));
        assert_eq!(decide(2), again(3, 20, Session::Keep));
        assert_eq!(decide(3), Next::GiveUp);
    }

    #[test]
    fn a_lost_session_gets_one_fresh_try_that_is_no_retry() {
        let lost = failure(FailureKind::SessionLost);
        let fresh = Next::Again { number: None, delay: Duration::ZERO, session: Session::Drop };
        assert_eq!(decide(&lost, &[FailureKind::Crashed; 3], RULES), fresh);
        assert_eq!(decide(&lost, &[FailureKind::SessionLost], RULES), Next::GiveUp);
        let crashed = failure(FailureKind::Crashed);
        assert_eq!(
            decide(&crashed, &[FailureKind::SessionLost], RULES),
            again(1, 5, Session::Keep)
        );
    }

    #[test]
    fn what_hangs_again_gets_a_fresh_session_at_the_last_try() {
        let hung = failure(FailureKind::Timeout);
        let kind = FailureKind::Timeout;
        assert_eq!(decide(&hung, &[kind], RULES), again(2, 10, Session::Keep));
        assert_eq!(decide(&hung, &[kind; 2], RULES), again(3, 20, Session::Drop));
    }

    #[test]
    fn a_providers_own_time_counts_unless_it_is_too_long() {
        let limited = |seconds| Failure {
            retry_after: Some(Duration::from_secs(seconds)),
            ..failure(FailureKind::RateLimited)
        };
        assert_eq!(decide(&limited(1), &[], RULES), again(1, 5, Session::Keep));
        assert_eq!(decide(&limited(90), &[], RULES), again(1, 90, Session::Keep));
        assert_eq!(decide(&limited(3_600), &[], RULES), Next::GiveUp);
    }

    proptest! {
        #[test]
        fn a_job_ends_after_a_bounded_number_of_tries(
            kinds in proptest::collection::vec(proptest::sample::select(&FailureKind::ALL[..]), 40),
            max in 0_u32..6,
        ) {
            let rules = RetryRules { max, ..RULES };
            let mut earlier = Vec::new();
            for kind in kinds {
                match decide(&failure(kind), &earlier, rules) {
                    Next::GiveUp => break,
                    Next::Again { delay, .. } => {
                        prop_assert!(kind.retryable() || kind == FailureKind::SessionLost);
                        prop_assert!(delay <= RULES.first_delay * 32);
                    }
                }
                earlier.push(kind);
            }
            prop_assert!(earlier.len() <= max as usize + 1);
        }
    }
}
