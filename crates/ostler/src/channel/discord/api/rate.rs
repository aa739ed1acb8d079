//! How fast the bot calls. Discord takes so many calls of a bot in a second and
//! refuses the others, and who is refused too often is shut out. So calls are spaced
//! before they leave, in the order in which they come, and what can be left out asks
//! whether there is room for it.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{self, Instant};

/// How many calls in a second Discord takes of every bot.
pub(crate) const USUAL: u32 = 50;
/// How long an answer may have to wait for what could have been left out.
const CROWDED: Duration = Duration::from_millis(100);
/// How long nothing is let in that could be left out, after a call had to wait longer.
const CALM: Duration = Duration::from_secs(1);

/// The pace of all calls together.
#[derive(Debug)]
pub(super) struct Rate {
    schedule: Mutex<Schedule>,
}

impl Rate {
    pub(super) fn new(per_second: u32) -> Self {
        Self { schedule: Mutex::new(Schedule::new(per_second, Instant::now())) }
    }

    /// Waits until a call may leave; returns whether that is so before this time.
    pub(super) async fn pass(&self, by: Instant) -> bool {
        let Some(at) = self.lock().take(Instant::now(), by) else { return false };
        time::sleep_until(at).await;
        true
    }

    /// Whether there is room for what can be left out.
    pub(super) fn has_room(&self) -> bool {
        self.lock().has_room(Instant::now())
    }

    fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When calls leave. Pure.
#[derive(Debug)]
struct Schedule {
    /// How far calls are apart that come one after the other.
    apart: Duration,
    /// How much earlier than that calls may leave after a silence.
    ahead: Duration,
    /// When the next call leaves, if none is early.
    next: Instant,
    /// Until when only what cannot be left out is let in.
    crowded_until: Instant,
}

impl Schedule {
    /// Makes one for at most this many calls in any second: a tenth of them at once,
    /// and four fifths in the course of it. The rest is for calls that a busy machine
    /// or network lets arrive together.
    fn new(per_second: u32, now: Instant) -> Self {
        let per_second = per_second.max(1);
        let apart = Duration::from_millis(1250) / per_second;
        let at_once = (per_second / 10).max(1);
        Self { apart, ahead: apart * (at_once - 1), next: now, crowded_until: now }
    }

    /// Takes the next place; nothing if that is after a time.
    fn take(&mut self, now: Instant, by: Instant) -> Option<Instant> {
        let next = self.next.max(now);
        let at = next.checked_sub(self.ahead).map_or(now, |at| at.max(now));
        if at > by {
            return None;
        }
        self.next = next + self.apart;
        if at > now + 2 * CROWDED {
            self.crowded_until = at + CALM;
        }
        Some(at)
    }

    fn has_room(&self, now: Instant) -> bool {
        self.crowded_until <= now && self.next <= now + self.ahead + CROWDED
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn after_a_silence_some_leave_at_once_and_the_others_one_after_the_other() {
        let now = Instant::now();
        let mut schedule = Schedule::new(USUAL, now);
        let waits: Vec<_> = (0..8).map(|_| schedule.take(now, now + SECOND).unwrap()).collect();
        let ms: Vec<_> = waits.iter().map(|at| (*at - now).as_millis()).collect();
        assert_eq!(ms, [0, 0, 0, 0, 0, 25, 50, 75]);
    }

    #[test]
    fn what_can_be_left_out_is_left_out_before_others_have_to_wait_long() {
        let now = Instant::now();
        let mut schedule = Schedule::new(USUAL, now);
        let mut n_left = 0;
        while schedule.has_room(now) {
            schedule.take(now, now + SECOND).unwrap();
            n_left += 1;
        }
        assert_eq!(n_left, 9);
        let at = schedule.take(now, now + SECOND).unwrap();
        assert_eq!(at - now, Duration::from_millis(125));
        assert!(schedule.has_room(now + SECOND / 4));
    }

    #[test]
    fn as_long_as_answers_wait_for_each_other_nothing_else_is_let_in() {
        let now = Instant::now();
        let mut schedule = Schedule::new(USUAL, now);
        let last = (0..40).map(|_| schedule.take(now, now + SECOND).unwrap()).last().unwrap();
        assert!(!schedule.has_room(last + SECOND / 2));
        assert!(schedule.has_room(last + SECOND));
    }

    #[test]
    fn a_place_after_the_end_is_not_taken() {
        let now = Instant::now();
        let mut schedule = Schedule::new(1, now);
        assert_eq!(schedule.take(now, now), Some(now));
        let before = schedule.next;
        assert_eq!(schedule.take(now, now + SECOND), None);
        assert_eq!(schedule.next, before);
        assert_eq!(schedule.take(now, now + 2 * SECOND), Some(now + SECOND * 5 / 4));
    }

    proptest! {
        #[test]
        fn no_second_has_more_calls_than_discord_takes(
            per_second in 1..200_u32, pauses in prop::collection::vec(0..400_u64, 1..400)
        ) {
            let mut now = Instant::now();
            let mut schedule = Schedule::new(per_second, now);
            let mut calls = Vec::new();
            for pause in pauses {
                calls.extend(schedule.take(now, now + 3600 * SECOND));
                now += Duration::from_millis(pause / 10);
            }
            for (index, start) in calls.iter().enumerate() {
                let within = calls[index..].iter().take_while(|at| **at < *start + SECOND);
                prop_assert!(within.count() <= per_second as usize);
            }
        }
    }
}
