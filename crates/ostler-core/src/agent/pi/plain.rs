//! Reads what `pi -p` prints without `--mode json`: the answer on standard
//! output, complaints on standard error. No session id, no tools, no usage.

use jiff::Timestamp;

use super::{fault, turn::Turn};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, Launch,
        emit::{emit, emit_unknown},
        plain::PlainAnswer,
    },
    event::{EventBody, StopReason, Stream},
    failure::Failure,
    request::Open,
    template,
};

/// The block that the whole answer belongs to.
const BLOCK: &str = "answer";

pub(super) struct Plain {
    turn: Turn,
    answer: PlainAnswer,
    /// The id that a template gave to the new session.
    given: Option<String>,
}

impl Plain {
    pub(super) fn new(launch: &Launch<'_>) -> Self {
        let given = match launch.open {
            Open::New => template::new_session_id("pi", launch.options),
            Open::Resume(_) => None,
        };
        Self { turn: Turn::new(launch), answer: PlainAnswer::default(), given }
    }

    fn line(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        let text = self.answer.add(bytes);
        if !text.is_empty() {
            emit(self.turn.key(), EventBody::Output { text, block: BLOCK.to_owned() }, out);
        }
    }

    fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        if self.turn.has_ended() {
            return;
        }
        let answer = self.answer.take();
        if !exit.is_success() {
            let printed = answer.clone().unwrap_or_default();
            return self.turn.fail_with_exit(exit, &printed, answer, out);
        }
        if self.answer.has_lost_line {
            return self.turn.fail(Failure::unreadable(), None, out);
        }
        match answer {
            // Nothing at all can be an empty answer or a question that nobody answered.
            None if fault::of_silence(&exit.stderr).is_some() => {
                self.turn.fail_with_exit(exit, "", None, out);
            }
            answer => {
                self.turn.open_resumed(out);
                if let Some(id) = self.given.take() {
                    self.turn.name(id, out);
                    self.turn.open(out);
                }
                self.turn.complete(answer.unwrap_or_default(), StopReason::EndTurn, out);
            }
        }
    }
}

impl Dialect for Plain {
    fn step(&mut self, _now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        match input {
            Input::Line { from: Stream::Stderr, bytes, .. } => self.turn.stderr(bytes, out),
            Input::Line { from: Stream::Stdout, bytes, cut } => {
                self.answer.has_lost_line |= cut;
                if cut || self.turn.has_ended() {
                    emit_unknown(self.turn.key(), Stream::Stdout, bytes, out);
                } else {
                    self.line(bytes, out);
                }
            }
            Input::Cancel { .. } => out.push(Action::Stop),
            Input::Timer(_) | Input::Order(_) | Input::Heard(_) => {}
            Input::Exited(exit) => self.exited(exit, out),
        }
    }
}
