//! Ends a process by its plan, step by step, and in the end by force.

use std::time::Duration;

use tokio::time::Instant;

use crate::{agent::StopStep, proc::Proc};

/// How long a killed tree may take to go. The keeper gives up before that.
const GRACE_AFTER_KILL: Duration = Duration::from_secs(10);

/// Where a process stands on its way out.
pub(crate) struct Stopper {
    plan: &'static [StopStep],
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    /// Nobody wants it to end.
    Running,
    /// It should end by itself until then.
    Expected(Instant),
    /// The plan's step of this number was made, and waits until then.
    Step(usize, Instant),
    /// Its tree was killed and must be gone by then.
    Killed(Instant),
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The process is waited for.
    Waiting,
    /// It was killed, and whoever should have told of its end is gone or stuck.
    Lost,
}

impl Stopper {
    pub(crate) fn new(plan: &'static [StopStep]) -> Self {
        Self { plan, state: State::Running }
    }

    /// Returns whether the process is on its way out.
    pub(crate) fn is_going(&self) -> bool {
        !matches!(self.state, State::Running)
    }

    /// Returns whether its tree was killed.
    pub(crate) fn is_killed(&self) -> bool {
        matches!(self.state, State::Killed(_))
    }

    /// Returns when [`Self::advance`] is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.state {
            State::Running => None,
            State::Expected(at) | State::Step(_, at) | State::Killed(at) => Some(at),
        }
    }

    /// Gives the process this long to end by itself.
    pub(crate) fn expect(&mut self, within: Duration) {
        self.state = State::Expected(Instant::now() + within);
    }

    /// Makes the plan's first step, unless one was made.
    pub(crate) fn begin(&mut self, proc: &mut Proc) {
        match self.state {
            State::Running | State::Expected(_) => self.step(0, proc),
            State::Step(..) | State::Killed(_) => {}
        }
    }

    /// Makes the plan's first step that does not rely on the process's good will.
    pub(crate) fn begin_with_signals(&mut self, proc: &mut Proc) {
        let is_signal = |step: &StopStep| matches!(step, StopStep::Signal { .. });
        let first = self.plan.iter().position(is_signal).unwrap_or(self.plan.len());
        match self.state {
            State::Step(number, _) if number >= first => {}
            State::Killed(_) => {}
            State::Running | State::Expected(_) | State::Step(..) => self.step(first, proc),
        }
    }

    /// Makes the next step, once it is due.
    pub(crate) fn advance(&mut self, proc: &mut Proc) -> Progress {
        match self.state {
            State::Running => {}
            State::Expected(_) => self.step(0, proc),
            State::Step(number, _) => self.step(number + 1, proc),
            State::Killed(_) => return Progress::Lost,
        }
        Progress::Waiting
    }

    /// Ends the whole tree at once.
    pub(crate) fn kill(&mut self, proc: &mut Proc) {
        proc.kill();
        self.state = State::Killed(Instant::now() + GRACE_AFTER_KILL);
    }

    fn step(&mut self, number: usize, proc: &mut Proc) {
        let wait = match self.plan.get(number) {
            Some(StopStep::CloseStdin { wait }) => {
                proc.close_stdin();
                *wait
            }
            Some(StopStep::Signal { signal, wait }) => {
                proc.signal(*signal);
                *wait
            }
            None => return self.kill(proc),
        };
        self.state = State::Step(number, Instant::now() + wait);
    }
}
