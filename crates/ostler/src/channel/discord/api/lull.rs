//! The pause that all calls make after Discord had no time for one. The limits of
//! each kind of call are kept by what sends them; it does not know that of all calls
//! together, and would try again at once.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{self, Instant};

/// The first pause. Each one that follows at once is twice as long.
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
    /// Waits until there is none.
    pub(super) async fn over(&self) {
        loop {
            let until = self.lock().until;
            match until {
                Some(until) if Instant::now() < until => time::sleep_until(until).await,
                Some(_) | None => return,
            }
        }
    }

    /// Begins one, because a call was refused. One that was made before the last one
    /// was over says nothing new.
    pub(super) fn begin(&self, made: Instant) {
        let mut state = self.lock();
        if state.until.is_some_and(|until| made < until) {
            return;
        }
        let pause = state.last.map_or(FIRST, |last| LONGEST.min(last * 2));
        *state = State { until: Some(Instant::now() + pause), last: Some(pause) };
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

    /// Returns how long somebody has to wait.
    async fn wait(lull: &Lull) -> Duration {
        let start = Instant::now();
        lull.over().await;
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_until_something_gets_through() {
        let lull = Lull::default();
        assert_eq!(wait(&lull).await, Duration::ZERO);
        for expected in [500, 1000, 2000, 4000, 4000] {
            lull.begin(Instant::now());
            assert_eq!(wait(&lull).await, Duration::from_millis(expected));
        }
        lull.end();
        lull.begin(Instant::now());
        assert_eq!(wait(&lull).await, FIRST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_calls_that_are_refused_at_once_make_one_pause() {
        let lull = Lull::default();
        let made = Instant::now();
        for _ in 0..100 {
            lull.begin(made);
        }
        assert_eq!(wait(&lull).await, FIRST);
    }
}
