//! What is waited for by the clock.

use std::{collections::BTreeMap, time::Duration};

use crate::agent::{Action, TimerKey};

/// What is due when a timer rings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A run has ended, and nothing came after it.
    Settled,
    /// The CLI did not abort what it was told to.
    Unheard,
    /// The CLI waits no longer for the answer to this question.
    Expired(String),
}

/// The timers that still mean something.
#[derive(Debug, Default)]
pub(super) struct Timers {
    n_armed: u32,
    due: BTreeMap<u32, Due>,
}

impl Timers {
    /// Makes something due after a while, and only then.
    pub(super) fn arm(&mut self, due: Due, after: Duration, out: &mut Vec<Action>) {
        self.forget(&due);
        self.n_armed = self.n_armed.wrapping_add(1);
        self.due.insert(self.n_armed, due);
        out.push(Action::Arm { timer: TimerKey(self.n_armed), after });
    }

    /// Returns what is due, unless it was forgotten.
    pub(super) fn take(&mut self, timer: TimerKey) -> Option<Due> {
        self.due.remove(&timer.0)
    }

    /// Lets something not become due.
    pub(super) fn forget(&mut self, due: &Due) {
        self.due.retain(|_, known| known != due);
    }

    /// Lets nothing become due.
    pub(super) fn clear(&mut self) {
        self.due.clear();
    }
}
