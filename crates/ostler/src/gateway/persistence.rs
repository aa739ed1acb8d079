//! Trying a write again until the store has it. How long to wait, and when to
//! say so, decided in one place.

use std::time::Duration;

use tokio::time;

use crate::store::StoreError;

/// The first wait; it doubles up to the longest.
const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);
/// After so many errors that do not pass, something else is wrong.
const PATIENCE: u32 = 5;

/// Whoever keeps trying.
#[derive(Debug)]
pub(crate) struct Persistence {
    /// What cannot be written, for the log.
    what: &'static str,
    pause: Duration,
    is_told: bool,
    n_refused: u32,
}

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Again,
    /// The store says no, and will say so again.
    GiveUp,
}

impl Persistence {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, pause: FIRST, is_told: false, n_refused: 0 }
    }

    /// Waits after an error, and says whether to try again. A store that is away
    /// or full is waited for, however long that takes.
    pub(crate) async fn after(&mut self, error: &StoreError) -> Then {
        if !std::mem::replace(&mut self.is_told, true) {
            tracing::warn!(%error, "{} cannot be stored for now; it waits", self.what);
        }
        if !error.passes() {
            self.n_refused += 1;
            if self.n_refused >= PATIENCE {
                tracing::error!(%error, "{} cannot be stored", self.what);
                return Then::GiveUp;
            }
        }
        time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST);
        Then::Again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_away_is_waited_for_and_one_that_says_no_is_not() {
        let mut patient = Persistence::new("it");
        for _ in 0..1_000 {
            assert_eq!(patient.after(&StoreError::Unclear).await, Then::Again);
        }
        let mut refused = Persistence::new("it");
        for _ in 1..PATIENCE {
            assert_eq!(refused.after(&StoreError::Panicked).await, Then::Again);
        }
        assert_eq!(refused.after(&StoreError::Panicked).await, Then::GiveUp);
    }
}
