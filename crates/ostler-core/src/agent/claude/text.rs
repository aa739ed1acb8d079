//! Reads plain text output: what is printed is the answer.

use jiff::Timestamp;

use super::{
    failure::{self, Evidence},
    turn::complaint,
};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, Launch, ONLY_SESSION, ONLY_TURN,
        emit::{emit, emit_unknown},
        last_word::LastWord,
        plain::PlainAnswer,
    },
    event::{EventBody, StopReason, Stream},
    failure::Failure,
    request::Open,
    template,
};

/// The name of the one block that all lines belong to.
const BLOCK: &str = "b1";

/// Reads one process that prints plain text.
pub(super) struct PlainText {
    /// The session as far as it is known: plain text does not tell its id.
    session: Option<String>,
    answer: PlainAnswer,
    end: LastWord,
}

impl PlainText {
    pub(super) fn new(launch: &Launch<'_>) -> Self {
        let session = match launch.open {
            Open::Resume(memo) => Some(memo.id.clone()),
            // A template names the new session itself.
            Open::New => template::new_session_id("claude", launch.options),
        };
        Self { session, answer: PlainAnswer::default(), end: LastWord::new(ONLY_TURN, None) }
    }

    fn line(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        let text = self.answer.add(bytes);
        if !text.is_empty() {
            emit(self.end.turn, EventBody::Output { text, block: BLOCK.to_owned() }, out);
        }
    }

    fn exited(&mut self, now: Timestamp, exit: &Exit, out: &mut Vec<Action>) {
        if self.end.is_said() {
            return;
        }
        let answer = self.answer.take().unwrap_or_default();
        if exit.is_success() {
            if let Some(id) = self.session.take() {
                out.push(Action::Opened { session: ONLY_SESSION, id });
            }
            if self.answer.has_lost_line {
                self.end.fail(Failure::unreadable(), StopReason::Error, None, out);
            } else {
                self.end.complete(answer, StopReason::EndTurn, out);
            }
        } else {
            // Errors of the provider are printed where the answer would be.
            let failure = failure::of_exit(exit, Evidence::default(), &answer, now);
            self.end.fail(failure, StopReason::Error, None, out);
        }
    }
}

impl Dialect for PlainText {
    fn step(&mut self, now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        match input {
            Input::Line { from: Stream::Stderr, bytes, .. } => complaint(self.end.turn, bytes, out),
            Input::Line { from: Stream::Stdout, bytes, cut: true } => {
                self.answer.has_lost_line = true;
                emit_unknown(self.end.turn, Stream::Stdout, bytes, out);
            }
            Input::Line { bytes, .. } if !self.end.is_said() => self.line(bytes, out),
            Input::Line { bytes, .. } => emit_unknown(self.end.turn, Stream::Stdout, bytes, out),
            Input::Cancel { .. } => out.push(Action::Stop),
            Input::Timer(_) | Input::Order(_) | Input::Heard(_) => {}
            Input::Exited(exit) => self.exited(now, exit, out),
        }
    }
}
