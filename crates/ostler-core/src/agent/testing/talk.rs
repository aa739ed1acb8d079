//! A conversation between a dialect and a process that a test plays.
//!
//! Knows no wire format. What a protocol or an agent adds to it stands where
//! that is tested.

use jiff::Timestamp;
use serde_json::Value;

use super::{at_second, stdout_line};
use crate::{
    agent::{Action, Dialect, Exit, Input, Order, TimerKey},
    event::Stream,
};

/// A conversation; `P` is who is played.
pub(crate) struct Talk<P> {
    dialect: Box<dyn Dialect>,
    /// Everything that followed so far.
    pub(crate) actions: Vec<Action>,
    /// What the one who is played has to remember.
    pub(crate) played: P,
}

impl<P> Talk<P> {
    /// Begins one; nothing was said yet.
    pub(crate) fn with(dialect: Box<dyn Dialect>, played: P) -> Self {
        Self { dialect, actions: Vec::new(), played }
    }

    /// Gives an input; returns what followed from it.
    pub(crate) fn step(&mut self, input: Input<'_>) -> Vec<Action> {
        self.step_at(Timestamp::UNIX_EPOCH, input)
    }

    /// Gives an input at some second.
    pub(crate) fn step_at_second(&mut self, second: i64, input: Input<'_>) -> Vec<Action> {
        self.step_at(at_second(second), input)
    }

    fn step_at(&mut self, now: Timestamp, input: Input<'_>) -> Vec<Action> {
        let mut out = Vec::new();
        self.dialect.step(now, input, &mut out);
        self.actions.extend(out.iter().cloned());
        // That a turn is worked on is no news; it stands among all the actions.
        out.retain(|action| !matches!(action, Action::Working { .. }));
        out
    }

    pub(crate) fn order(&mut self, order: Order<'_>) -> Vec<Action> {
        self.step(Input::Order(order))
    }

    /// The process prints a message.
    pub(crate) fn say(&mut self, message: &Value) -> Vec<Action> {
        self.step(stdout_line(message.to_string().as_bytes()))
    }

    pub(crate) fn stderr(&mut self, line: &str) -> Vec<Action> {
        self.step(Input::Line { from: Stream::Stderr, bytes: line.as_bytes(), cut: false })
    }

    pub(crate) fn exit(&mut self, exit: &Exit) -> Vec<Action> {
        self.step(Input::Exited(exit))
    }

    /// The timer that was armed last rings.
    pub(crate) fn ring(&mut self) -> Vec<Action> {
        let armed = self.actions.iter().rev().find_map(|action| {
            let Action::Arm { timer, .. } = action else { return None };
            Some(*timer)
        });
        self.step(Input::Timer(armed.unwrap_or(TimerKey(0))))
    }

    /// Everything that was written to the process.
    pub(crate) fn written(&self) -> Vec<Value> {
        written(&self.actions)
    }
}

/// Returns what was written to a process that reads a message a line.
pub(crate) fn written(actions: &[Action]) -> Vec<Value> {
    let lines = actions.iter().filter_map(|action| {
        let Action::Write(bytes) = action else { return None };
        let line = bytes.strip_suffix(b"\n").expect("a whole line");
        assert!(!line.contains(&b'\n'), "one message is one line");
        Some(serde_json::from_slice(line).expect("one message"))
    });
    lines.collect()
}
