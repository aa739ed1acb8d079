//! How often somebody may write. What is known of him is forgotten when it no
//! longer matters.

use std::{
    collections::{HashMap, HashSet},
    num::NonZeroU32,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::NoOpMiddleware,
    state::keyed::DashMapStateStore,
};

/// How often those are forgotten who have not written for a while, in messages.
const SWEEP: u32 = 1024;
/// How many are remembered who were told. Beyond that somebody is told again.
const TOLD: usize = 10_000;

type Limiter<C> =
    RateLimiter<String, DashMapStateStore<String>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// So many messages a minute for each sender: all at once, and then evenly.
pub(crate) struct Pace<C: Clock = DefaultClock> {
    state: Mutex<State<C>>,
    clock: C,
}

struct State<C: Clock> {
    per_minute: NonZeroU32,
    limiter: Limiter<C>,
    /// Who wrote too often, and has been told.
    told: HashSet<String>,
    /// The last message of each sender that could go.
    last: HashMap<String, String>,
    n_counted: u32,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Go,
    /// It came too early.
    Slow {
        wait: Duration,
        /// Whether the sender is to be told: once, until he may write again.
        is_first: bool,
    },
}

impl Pace {
    /// Allows so many messages a minute, at least one.
    pub(crate) fn new(per_minute: u32) -> Self {
        Self::with_clock(per_minute, DefaultClock::default())
    }
}

impl<C: Clock + Clone> Pace<C> {
    fn with_clock(per_minute: u32, clock: C) -> Self {
        let state = Mutex::new(State::new(at_least_one(per_minute), &clock));
        Self { state, clock }
    }

    /// Takes another number. If it is one, everybody begins anew.
    pub(crate) fn change(&self, per_minute: u32) {
        let per_minute = at_least_one(per_minute);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.per_minute != per_minute {
            *state = State::new(per_minute, &self.clock);
        }
    }

    /// Counts a message that has a name, once however often it is asked about: what the
    /// store does not take is offered again.
    pub(crate) fn allow_named(&self, sender: &str, message: &str) -> Verdict {
        let is_again = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.last.get(sender).is_some_and(|last| last == message)
        };
        if is_again {
            return Verdict::Go;
        }
        let verdict = self.allow(sender);
        if verdict == Verdict::Go {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.last.len() >= TOLD {
                state.last.clear();
            }
            state.last.insert(sender.to_owned(), message.to_owned());
        }
        verdict
    }

    /// Counts a message.
    pub(crate) fn allow(&self, sender: &str) -> Verdict {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.n_counted = state.n_counted.wrapping_add(1);
        if state.n_counted.is_multiple_of(SWEEP) {
            state.limiter.retain_recent();
            state.limiter.shrink_to_fit();
        }
        match state.limiter.check_key(&sender.to_owned()) {
            Ok(()) => {
                state.told.remove(sender);
                Verdict::Go
            }
            Err(not_until) => {
                let wait = not_until.wait_time_from(self.clock.now());
                if state.told.len() >= TOLD {
                    state.told.clear();
                }
                Verdict::Slow { wait, is_first: state.told.insert(sender.to_owned()) }
            }
        }
    }
}

impl<C: Clock + Clone> State<C> {
    fn new(per_minute: NonZeroU32, clock: &C) -> Self {
        let quota = Quota::per_minute(per_minute);
        let limiter = RateLimiter::new(quota, DashMapStateStore::default(), clock.clone());
        Self { per_minute, limiter, told: HashSet::new(), last: HashMap::new(), n_counted: 0 }
    }
}

fn at_least_one(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    fn slow(seconds: u64, is_first: bool) -> Verdict {
        Verdict::Slow { wait: Duration::from_secs(seconds), is_first }
    }

    #[test]
    fn who_writes_too_often_is_told_once_until_he_may_write_again_and_others_are_not() {
        let clock = FakeRelativeClock::default();
        let pace = Pace::with_clock(3, clock.clone());
        assert!((0..3).all(|_| pace.allow("a") == Verdict::Go));
        assert_eq!(pace.allow("a"), slow(20, true));
        assert_eq!(pace.allow("a"), slow(20, false));
        assert_eq!(pace.allow("b"), Verdict::Go);
        clock.advance(Duration::from_secs(20));
        assert_eq!(pace.allow("a"), Verdict::Go);
        assert_eq!(pace.allow("a"), slow(20, true));
    }

    #[test]
    fn a_message_that_is_offered_again_is_counted_once() {
        let pace = Pace::with_clock(2, FakeRelativeClock::default());
        assert!((0..9).all(|_| pace.allow_named("a", "1") == Verdict::Go));
        assert_eq!(pace.allow_named("a", "2"), Verdict::Go);
        assert_eq!(pace.allow_named("a", "3"), slow(30, true));
        assert_eq!(pace.allow_named("a", "2"), Verdict::Go);
    }

    #[test]
    fn another_number_counts_at_once_and_the_same_one_forgets_nothing() {
        let pace = Pace::with_clock(1, FakeRelativeClock::default());
        assert_eq!(pace.allow("a"), Verdict::Go);
        pace.change(1);
        assert_eq!(pace.allow("a"), slow(60, true));
        pace.change(2);
        assert!((0..2).all(|_| pace.allow("a") == Verdict::Go));
        assert_eq!(pace.allow("a"), slow(30, true));
        pace.change(0);
        assert_eq!(pace.allow("a"), Verdict::Go);
        assert_eq!(pace.allow("a"), slow(60, true));
    }

    #[test]
    fn who_has_not_written_for_a_while_is_forgotten() {
        let clock = FakeRelativeClock::default();
        let pace = Pace::with_clock(600, clock.clone());
        for number in 0..10 * SWEEP {
            clock.advance(Duration::from_millis(200));
            assert_eq!(pace.allow(&number.to_string()), Verdict::Go);
        }
        let n_known = pace.state.lock().unwrap().limiter.len();
        assert!(n_known <= 2 * SWEEP as usize, "{n_known}");
    }

    #[test]
    fn a_crowd_that_was_told_is_not_remembered_for_ever() {
        let pace = Pace::new(1);
        for number in 0..TOLD + 10 {
            pace.allow(&number.to_string());
            pace.allow(&number.to_string());
        }
        assert!(pace.state.lock().unwrap().told.len() <= TOLD);
    }
}
