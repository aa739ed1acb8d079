//! The pause that all calls make after Discord had no time for any. It lasts as long
//! as Discord says, and a little longer each time if it does not say.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{self, Instant};

/// The first pause of which Discord does not say how long it is to be. Each one that
/// follows at once is twice as long.
pub(super) const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(4);

/// When calls can be made again.
#[derive(Debug, Default)]
pub(super) struct Lull(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    until: Option<Instant>,
    /// How long the last one was, if nothing has passed since.
    last: Option<Duration>,
}

impl Lull {
    /// Whether there is one.
    pub(super) fn is_on(&self) -> bool {
        self.left().is_some()
    }

    /// Waits until there is none; returns how long it takes if that is after a time.
    pub(super) async fn over(&self, by: Instant) -> Result<(), Duration> {
        while let Some(left) = self.left() {
            let until = Instant::now() + left;
            if until > by {
                return Err(left);
            }
            time::sleep_until(until).await;
        }
        Ok(())
    }

    /// Begins one, because a call was refused, for as long as Discord says. One that
    /// was made before the last one was over says nothing new but that.
    pub(super) fn begin(&self, made: Instant, told: Option<Duration>) {
        let mut state = self.lock();
        let now = Instant::now();
        let before = state.until;
        let is_new = before.is_none_or(|until| made >= until);
        if is_new {
            let pause = state.last.map_or(FIRST, |last| LONGEST.min(last * 2));
            *state = State { until: Some(now + pause), last: Some(pause) };
        }
        if let Some(told) = told {
            let told = now + told;
            // Who is told how long does not wait longer, unless somebody else was.
            state.until = Some(if is_new { told } else { before.map_or(told, |it| it.max(told)) });
        }
    }

    fn left(&self) -> Option<Duration> {
        let until = self.lock().until?;
        let left = until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Notes that a call got through.
    pub(super) fn end(&self) {
        self.lock().last = None;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns how long somebody has to wait.
    async fn wait(lull: &Lull) -> Duration {
        let start = Instant::now();
        lull.over(start + 3600 * SECOND).await.unwrap();
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_without_an_end_grow_until_something_gets_through() {
        let lull = Lull::default();
        assert_eq!(wait(&lull).await, Duration::ZERO);
        for expected in [500, 1000, 2000, 4000, 4000] {
            lull.begin(Instant::now(), None);
            assert_eq!(wait(&lull).await, Duration::from_millis(expected));
        }
        lull.end();
        lull.begin(Instant::now(), None);
        assert_eq!(wait(&lull).await, FIRST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_as_long_as_discord_says() {
        let lull = Lull::default();
        for seconds in [7, 1, 60] {
            lull.begin(Instant::now(), Some(seconds * SECOND));
            assert_eq!(wait(&lull).await, seconds * SECOND);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_calls_that_are_refused_at_once_make_one_pause_and_the_longest_counts() {
        let lull = Lull::default();
        let made = Instant::now();
        for _ in 0..100 {
            lull.begin(made, None);
        }
        assert_eq!(wait(&lull).await, FIRST);
        let made = Instant::now();
        for seconds in [2, 3, 1] {
            lull.begin(made, Some(seconds * SECOND));
        }
        lull.begin(made, None);
        assert_eq!(wait(&lull).await, 3 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn what_would_be_too_late_does_not_wait() {
        let lull = Lull::default();
        lull.begin(Instant::now(), Some(9 * SECOND));
        assert_eq!(lull.over(Instant::now() + 8 * SECOND).await, Err(9 * SECOND));
        assert!(lull.is_on());
    }
}
