//! When something is tried again. Facts, and arithmetic on them.

use std::time::Duration;

use crate::{
    channel::{DISCORD, NUMBERED},
    store::webhooks::NOTICE,
};

/// How often messages of a channel are tried, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tries {
    /// The wait after the first attempt; it doubles each time.
    pub(crate) first: Duration,
    /// The longest wait that is our own idea.
    pub(crate) longest: Duration,
    /// The longest that a receiver can ask for.
    pub(crate) longest_asked: Duration,
    /// How often a message is tried in all.
    pub(crate) max: i64,
    /// For how long it is tried at least, more often if need be.
    pub(crate) patience: Duration,
}

/// How fast a delivery goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Of replies, for which somebody waits: they are worth a good hour, and up to a
    /// day where the receiver asks for longer waits.
    pub(crate) replies: Tries,
    /// Of replies in chats: until somebody has seen to what is wrong with a login.
    pub(crate) chats: Tries,
    /// Of notices, which tell of what can be asked for as well.
    pub(crate) notices: Tries,
    /// How long a claim holds without a word. A claim takes thirty seconds at
    /// most, or is an error, and a call twenty.
    pub(crate) lease: Duration,
    /// The wait after the store failed; it doubles each time.
    pub(crate) first_store: Duration,
    pub(crate) longest_store: Duration,
}

impl Pace {
    pub(crate) const USUAL: Self = Self {
        replies: Tries {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(5 * 60),
            longest_asked: Duration::from_secs(60 * 60),
            max: 24,
            patience: Duration::ZERO,
        },
        chats: Tries {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(5 * 60),
            longest_asked: Duration::from_secs(60 * 60),
            max: 24,
            patience: Duration::from_secs(24 * 60 * 60),
        },
        notices: Tries {
            first: Duration::from_secs(5),
            longest: Duration::from_secs(10),
            longest_asked: Duration::from_secs(60),
            max: 3,
            patience: Duration::ZERO,
        },
        lease: Duration::from_secs(60),
        first_store: Duration::from_millis(250),
        longest_store: Duration::from_secs(15),
    };

    /// Returns the usual pace where a gateway that is silent for this long counts
    /// as gone. A reply is given more time than a job, for only what is looked at
    /// is renewed, and a second one would be sent in vain.
    pub(crate) fn with_lease(lease: Duration) -> Self {
        Self { lease: lease.max(Duration::from_secs(1)).saturating_mul(2), ..Self::USUAL }
    }

    /// Returns how messages of a channel are tried.
    pub(super) fn of(&self, channel: &str) -> &Tries {
        match channel {
            NOTICE => &self.notices,
            channel if channel == DISCORD || NUMBERED.contains(&channel) => &self.chats,
            _ => &self.replies,
        }
    }

    /// Returns how long to wait after the store failed, having failed so often before.
    pub(super) fn store_pause(&self, n_failures: u32) -> Duration {
        doubled(self.first_store, i64::from(n_failures), self.longest_store)
    }
}

impl Tries {
    /// Returns how long to wait after an attempt that failed, or nothing if it was
    /// the last of those that have gone on for so long. What the receiver asked for is
    /// respected, but not a shorter wait than our own.
    pub(super) fn retry_in(
        &self,
        attempt: i64,
        tried_for: Duration,
        asked: Option<Duration>,
    ) -> Option<Duration> {
        if attempt >= self.max && tried_for >= self.patience {
            return None;
        }
        let own = doubled(self.first, attempt.saturating_sub(1), self.longest);
        let asked = asked.unwrap_or_default().min(self.longest_asked);
        Some(own.max(asked))
    }
}

fn doubled(first: Duration, times: i64, longest: Duration) -> Duration {
    // More than this would not fit; everything is longer than the longest long before.
    let times = u32::try_from(times.clamp(0, 30)).unwrap_or(0);
    first.saturating_mul(1 << times).min(longest)
}

#[cfg(test)]
mod tests {
    use proptest::{option, prelude::*};

    use super::*;

    const PACE: Pace = Pace::USUAL;
    const REPLIES: Tries = PACE.replies;
    const NOW: Duration = Duration::ZERO;

    #[test]
    fn the_wait_doubles_up_to_the_longest_and_the_last_attempt_has_none() {
        let waits: Vec<_> = (1..=10).map(|attempt| REPLIES.retry_in(attempt, NOW, None)).collect();
        let seconds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300];
        assert_eq!(waits, seconds.map(|seconds| Some(Duration::from_secs(seconds))));
        assert_eq!(REPLIES.retry_in(REPLIES.max - 1, NOW, None), Some(Duration::from_secs(300)));
        assert_eq!(REPLIES.retry_in(REPLIES.max, NOW, None), None);
    }

    #[test]
    fn a_notice_is_tried_three_times_after_5_and_10_seconds() {
        let tries = PACE.of(NOTICE);
        let waits = [1, 2, 3].map(|attempt| tries.retry_in(attempt, NOW, None));
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(waits, [seconds(5), seconds(10), None]);
        assert_eq!(PACE.of("webhook").retry_in(3, NOW, None), seconds(4));
    }

    #[test]
    fn a_reply_in_a_chat_is_tried_for_a_day_however_often_that_is() {
        const HOUR: Duration = Duration::from_secs(60 * 60);
        for channel in ["whatsapp", "sms", "group", "discord"] {
            let tries = PACE.of(channel);
            for (asked, n_attempts) in [(None, 297), (Some(HOUR / 60), 297), (Some(3 * HOUR), 25)] {
                let (mut attempt, mut tried_for) = (1, Duration::ZERO);
                while let Some(wait) = tries.retry_in(attempt, tried_for, asked) {
                    assert!(wait <= if asked > Some(HOUR) { HOUR } else { HOUR / 12 });
                    (attempt, tried_for) = (attempt + 1, tried_for + wait);
                }
                assert!(tried_for >= 24 * HOUR && tried_for < 25 * HOUR, "{tried_for:?}");
                assert!((n_attempts - 2..=n_attempts).contains(&attempt), "{attempt}");
            }
        }
        // A gateway that was away for the day tries often enough all the same.
        assert!(PACE.of("sms").retry_in(1, 48 * HOUR, None).is_some());
        // Webhooks have their number of attempts, as they are told.
        assert_eq!(PACE.of("webhook").retry_in(24, NOW, None), None);
    }

    #[test]
    fn the_usual_lease_is_that_of_the_usual_gateway() {
        let lease = crate::config::Config::default().gateway.lease;
        assert_eq!(Pace::with_lease(lease).lease, PACE.lease);
        assert_eq!(Pace::with_lease(Duration::ZERO).lease, Duration::from_secs(2));
    }

    #[test]
    fn a_receiver_can_ask_for_more_but_not_for_days() {
        let minutes = |n: u64| Some(Duration::from_secs(n * 60));
        assert_eq!(REPLIES.retry_in(1, NOW, minutes(10)), minutes(10));
        assert_eq!(REPLIES.retry_in(1, NOW, minutes(24 * 60)), minutes(60));
        assert_eq!(REPLIES.retry_in(1, NOW, minutes(0)), Some(Duration::from_secs(1)));
        assert_eq!(REPLIES.retry_in(REPLIES.max, NOW, minutes(1)), None);
    }

    proptest! {
        #[test]
        fn a_wait_is_never_none_at_all_and_never_longer_than_allowed(
            attempt: i64, seconds: u32, asked in option::of(any::<u64>()), n_failures: u32
        ) {
            if let Some(wait) = PACE.chats.retry_in(
                attempt, Duration::from_secs(seconds.into()), asked.map(Duration::from_secs),
            ) {
                prop_assert!(wait >= REPLIES.first && wait <= REPLIES.longest_asked);
            }
            let pause = PACE.store_pause(n_failures);
            prop_assert!(pause >= PACE.first_store && pause <= PACE.longest_store);
        }
    }
}
