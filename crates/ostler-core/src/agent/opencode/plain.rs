//! Reads what `opencode run` prints for people: the texts on standard output,
//! everything else on standard error. The session is not told.

use jiff::Timestamp;

use super::turn::Turn;
use crate::{
    agent::{
        Action, Dialect, Exit, Input, Launch,
        emit::{emit, emit_unknown},
        plain::PlainAnswer,
    },
    event::{EventBody, StopReason, Stream},
    failure::Failure,
};

/// The block that the whole answer belongs to.
const BLOCK: &str = "answer";

pub(super) struct Plain {
    turn: Turn,
    answer: PlainAnswer,
}

impl Dialect for Plain {
    fn step(&mut self, now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        match input {
            Input::Line { from: Stream::Stderr, bytes, .. } => self.turn.stderr(now, bytes, out),
            Input::Line { from: Stream::Stdout, bytes, cut } => {
                self.answer.has_lost_line |= cut;
                if cut || self.turn.has_ended() {
                    emit_unknown(self.turn.key(), Stream::Stdout, bytes, out);
                } else {
                    self.turn.told_to_be_tried_again(out);
                    self.turn.patience.answered();
                    self.text(bytes, out);
                }
            }
            Input::Cancel { .. } => out.push(Action::Stop),
            Input::Order(_) | Input::Heard(_) => {}
            Input::Timer(timer) => self.turn.rang(timer, out),
            Input::Exited(exit) => self.exited(exit, out),
        }
    }
}

impl Plain {
    pub(super) fn new(launch: &Launch<'_>) -> Self {
        Self { turn: Turn::new(launch), answer: PlainAnswer::default() }
    }

    fn text(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        let text = self.answer.add(bytes);
        emit(self.turn.key(), EventBody::Output { text, block: BLOCK.to_owned() }, out);
    }

    fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        if self.turn.has_ended() {
            return;
        }
        let answer = self.answer.take();
        if !exit.is_success() {
            let failure = self.turn.exit_fault(exit);
            self.turn.fail(failure, answer, out);
        } else if self.answer.has_lost_line {
            self.turn.fail(Failure::unreadable(), None, out);
        } else {
            self.turn.complete(answer.unwrap_or_default(), StopReason::EndTurn, out);
        }
    }
}
