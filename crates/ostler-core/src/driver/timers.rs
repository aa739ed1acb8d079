//! What a dialect wants to be reminded of.

use std::time::Duration;

use tokio::time::Instant;

use crate::agent::TimerKey;

/// The timers that a dialect armed and that have not rung.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    armed: Vec<(Instant, TimerKey)>,
}

impl Timers {
    /// Arms a timer, or moves it. One beyond all time never rings.
    pub(crate) fn arm(&mut self, timer: TimerKey, after: Duration) {
        self.armed.retain(|(_, armed)| *armed != timer);
        self.armed.extend(Instant::now().checked_add(after).map(|at| (at, timer)));
    }

    /// Returns when the next one rings.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.armed.iter().map(|(at, _)| *at).min()
    }

    /// Takes one that has rung.
    pub(crate) fn take(&mut self, now: Instant) -> Option<TimerKey> {
        let rang = self.armed.iter().position(|(at, _)| *at <= now)?;
        Some(self.armed.swap_remove(rang).1)
    }
}
