//! Reads plain text output: what is printed is the answer.

use jiff::Timestamp;

use super::{complaint::Complaints, fault, patience::give_up, turn::Turn};
use crate::{
    agent::{Action, Dialect, Exit, Input, Launch, emit::emit_unknown},
    event::{Stream, Usage},
};

/// Reads one process that prints plain text.
pub(super) struct Plain {
    turn: Turn,
    complaints: Complaints,
    is_first: bool,
}

impl Dialect for Plain {
    fn step(&mut self, _now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        match input {
            Input::Line { from: Stream::Stderr, bytes, .. } => {
                let heard = self.complaints.line(bytes, out);
                give_up(&heard, &mut self.turn, &self.complaints, out);
            }
            Input::Line { from: Stream::Stdout, bytes, cut } => self.stdout(bytes, cut, out),
            Input::Cancel { .. } => out.push(Action::Stop),
            Input::Timer(_) | Input::Order(_) | Input::Heard(_) => {}
            Input::Exited(exit) => self.exited(exit, out),
        }
    }
}

impl Plain {
    pub(super) fn new(launch: &Launch<'_>) -> Self {
        Self { turn: Turn::new(launch), complaints: Complaints::default(), is_first: true }
    }

    fn stdout(&mut self, bytes: &[u8], cut: bool, out: &mut Vec<Action>) {
        if cut || self.turn.has_ended() {
            self.turn.has_lost_line |= cut;
            return emit_unknown(self.turn.key(), Stream::Stdout, bytes, out);
        }
        let line = String::from_utf8_lossy(bytes);
        // The line break at the very end is not the answer's.
        let is_first = std::mem::replace(&mut self.is_first, false);
        let text = if is_first { line.into_owned() } else { format!("\n{line}") };
        self.turn.text(text, out);
    }

    fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        self.complaints.finish(out);
        if self.turn.has_ended() {
            return;
        }
        if !exit.is_success() {
            let failure = fault::failure(None, &self.complaints, Some(exit));
            return self.turn.fail(failure, Usage::default(), out);
        }
        // The CLI does not tell the id of a new session in this form.
        if let Some(id) = self.turn.resumed.take() {
            self.turn.session(id, out);
            self.turn.confirm(out);
        }
        self.turn.complete(Usage::default(), out);
    }
}
