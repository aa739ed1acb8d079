//! How long an agent may go on trying before the turn ends with the error.
//!
//! The CLIs retry a request to their model by themselves, some for minutes and
//! some for ever, and not all of them can be told how often. So the first notice
//! of a retry starts a timer, and anything that shows progress stops it.

use std::time::Duration;

use super::{Action, TimerKey};

/// From the first retry notice, unless something else happens before. An error
/// must surface within 20 s, and the first notice itself takes a while.
const PATIENCE: Duration = Duration::from_secs(12);

/// What the CLI is trying again, and since when.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// Why, in the words of the last notice.
    reason: Option<String>,
    /// Tells an old timer from the one that counts.
    round: u32,
}

impl Patience {
    /// Takes the reason that a retry notice gives.
    pub(crate) fn notice(&mut self, reason: &str, out: &mut Vec<Action>) {
        if self.reason.is_none() {
            self.round = self.round.wrapping_add(1);
            out.push(Action::Arm { timer: TimerKey(self.round), after: PATIENCE });
        }
        self.reason = Some(reason.to_owned());
    }

    /// Something happened: the CLI got through.
    pub(crate) fn progress(&mut self) {
        self.reason = None;
    }

    /// Returns whether the CLI is trying something again.
    pub(crate) fn is_tried(&self) -> bool {
        self.reason.is_some()
    }

    /// Returns why the turn fails, if this timer says that it took too long.
    pub(crate) fn rang(&mut self, timer: TimerKey) -> Option<String> {
        if timer == TimerKey(self.round) { self.reason.take() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_timer_of_the_retries_that_go_on_counts() {
        let mut patience = Patience::default();
        let mut out = Vec::new();
        patience.notice("first", &mut out);
        patience.notice("second", &mut out);
        assert_eq!(out.len(), 1, "one timer for all notices in a row");
        patience.progress();
        assert_eq!(patience.rang(TimerKey(1)), None, "it got through");
        patience.notice("third", &mut out);
        assert_eq!(patience.rang(TimerKey(1)), None, "the old timer");
        assert_eq!(patience.rang(TimerKey(2)).as_deref(), Some("third"));
        assert_eq!(patience.rang(TimerKey(2)), None, "once");
    }
}
