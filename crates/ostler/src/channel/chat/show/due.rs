//! When what is due in a show. Pure: the times are told.

use std::time::Duration;

use tokio::time::Instant;

/// The wait before the first sign of typing: whoever asked was given one when his
/// message was taken, and an answer that comes at once needs none.
const FIRST_TYPING: Duration = Duration::from_secs(1);
/// How often it is looked whether a silent turn still runs.
const LOOK: Duration = Duration::from_secs(300);
/// How long something that is asked waits for what was said before.
const ASKED_BEHIND: Duration = Duration::from_secs(3);
/// How often it is looked whether that has arrived: less and less often.
const BEHIND: Wait = Wait { least: Duration::from_millis(100), most: Duration::from_secs(3) };
/// How often it is looked whether what is asked has arrived.
const ASKED: Wait = Wait { least: Duration::from_secs(1), most: Duration::from_secs(10) };

/// How long to wait for something, at first and after a while.
#[derive(Clone, Copy, Debug)]
struct Wait {
    least: Duration,
    most: Duration,
}

impl Wait {
    /// Returns the wait after one.
    fn after(self, last: Option<Duration>) -> Duration {
        last.map_or(self.least, |last| last.saturating_mul(2).min(self.most))
    }
}

/// What a show waits for.
#[derive(Clone, Debug)]
pub(super) struct Due {
    look: Instant,
    typing: Option<Instant>,
    /// Until when nothing is shown.
    held: Option<Instant>,
    /// When it is looked whether what is asked has arrived, and the wait for it.
    asked: Option<(Instant, Duration)>,
    /// Until when what is asked waits for what was said before, and the last wait.
    behind: Option<(Instant, Duration)>,
}

impl Due {
    pub(super) fn new(now: Instant, has_typing: bool) -> Self {
        Self {
            look: now + LOOK,
            typing: has_typing.then(|| now + FIRST_TYPING),
            held: None,
            asked: None,
            behind: None,
        }
    }

    /// Returns when the next of all this is due.
    pub(super) fn next(&self) -> Instant {
        // What is asked is looked at where something may be shown.
        let asked = self.asked.map(|(at, _)| at).filter(|_| self.is_free());
        [self.typing, self.held, asked].into_iter().flatten().fold(self.look, Instant::min)
    }

    /// Whether what is new may be shown at once. What is held back waits for its time.
    pub(super) fn is_free(&self) -> bool {
        self.held.is_none()
    }

    /// Ends a wait whose time has come; returns whether something may be shown.
    pub(super) fn release(&mut self, now: Instant) -> bool {
        self.held = self.held.filter(|at| now < *at);
        self.is_free()
    }

    /// Shows nothing until a time.
    pub(super) fn hold(&mut self, until: Instant) {
        self.held = Some(until);
    }

    /// Whether it is to be looked whether the turn still runs; if so, not again soon.
    pub(super) fn looks(&mut self, now: Instant) -> bool {
        let is_due = self.look <= now;
        if is_due {
            self.look = now + LOOK;
        }
        is_due
    }

    /// Whether a sign of typing is due.
    pub(super) fn types(&self, now: Instant) -> bool {
        self.typing.is_some_and(|at| at <= now)
    }

    /// Gives the next sign of typing at a time.
    pub(super) fn type_at(&mut self, at: Instant) {
        self.typing = Some(at);
    }

    /// Whether what was said before is waited for, by something that can wait or that
    /// is asked.
    pub(super) fn waits_behind(&mut self, now: Instant, can_wait: bool) -> bool {
        let (until, _) = *self.behind.get_or_insert((now + ASKED_BEHIND, Duration::ZERO));
        can_wait || now < until
    }

    /// Waits for what was said before.
    pub(super) fn hold_behind(&mut self, now: Instant) {
        let (until, last) = self.behind.unwrap_or((now + ASKED_BEHIND, Duration::ZERO));
        let wait = BEHIND.after(Some(last).filter(|last| !last.is_zero()));
        self.behind = Some((until, wait));
        self.held = Some(now + wait);
    }

    /// Whether it is to be looked whether what is asked has arrived.
    pub(super) fn asks(&self, now: Instant) -> bool {
        self.asked.is_some_and(|(at, _)| at <= now)
    }

    /// Looks later whether what is asked has arrived: soon, if it is new.
    pub(super) fn ask_again(&mut self, now: Instant, is_new: bool) {
        let last = self.asked.map(|(_, wait)| wait).filter(|_| !is_new);
        let wait = ASKED.after(last);
        self.asked = Some((now + wait, wait));
    }

    /// Nothing is asked any more.
    pub(super) fn ask_no_more(&mut self) {
        self.asked = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_next_is_what_comes_first() {
        let now = Instant::now();
        assert_eq!(Due::new(now, false).next(), now + LOOK);
        let mut due = Due::new(now, true);
        assert_eq!(due.next(), now + FIRST_TYPING);
        due.hold(now + SECOND / 2);
        assert_eq!(due.next(), now + SECOND / 2);
    }

    #[test]
    fn what_is_held_back_is_free_at_its_time_and_not_before() {
        let now = Instant::now();
        let mut due = Due::new(now, false);
        due.hold(now + SECOND);
        assert!(!due.release(now) && !due.is_free());
        assert!(due.release(now + SECOND) && due.is_free());
    }

    #[test]
    fn it_is_looked_less_and_less_often_for_what_was_said_before() {
        let now = Instant::now();
        let mut due = Due::new(now, false);
        let mut waits = Vec::new();
        for _ in 0..7 {
            due.hold_behind(now);
            waits.push(due.next().duration_since(now).as_millis());
        }
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3000, 3000]);
    }

    #[test]
    fn what_is_asked_waits_only_so_long_for_what_was_said_before() {
        let now = Instant::now();
        let mut due = Due::new(now, false);
        assert!(due.waits_behind(now, false));
        assert!(!due.waits_behind(now + ASKED_BEHIND, false));
        assert!(due.waits_behind(now + ASKED_BEHIND, true));
    }

    #[test]
    fn it_is_looked_soon_for_what_is_asked_anew() {
        let now = Instant::now();
        let mut due = Due::new(now, false);
        for (is_new, wait) in [(true, 1), (false, 2), (false, 4), (true, 1)] {
            due.ask_again(now, is_new);
            assert!(!due.asks(now) && due.asks(now + SECOND * wait));
            assert_eq!(due.next(), now + SECOND * wait);
        }
        due.hold(now + SECOND * 9);
        assert_eq!(due.next(), now + SECOND * 9);
        due.ask_no_more();
        assert!(!due.asks(now + LOOK));
    }
}
