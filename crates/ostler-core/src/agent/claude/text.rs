//! Reads plain text output: what is printed is the answer.

use jiff::Timestamp;

use super::{
    dialect::complaint,
    failure::{self, Evidence},
};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, Launch, ONLY_SESSION, ONLY_TURN, TurnEnd,
        emit::{emit, emit_unknown},
    },
    event::{EventBody, StopReason, Stream},
    request::Open,
    template,
};

/// The answer is kept up to here; beyond it the events still carry all of it.
const MAX_ANSWER_BYTES: usize = 17 * 1024 * 1024;

/// The name of the one block that all lines belong to.
const BLOCK: &str = "b1";

/// Reads one process that prints plain text.
pub(super) struct PlainText {
    /// The session as far as it is known: plain text does not tell its id.
    session: Option<String>,
    answer: Option<String>,
    ended: bool,
}

impl PlainText {
    pub(super) fn new(launch: &Launch<'_>) -> Self {
        let session = match launch.open {
            Open::Resume(memo) => Some(memo.id.clone()),
            // A template names the new session itself.
            Open::New => template::new_session_id("claude", launch.options),
        };
        Self { session, answer: None, ended: false }
    }

    fn line(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        let line = String::from_utf8_lossy(bytes);
        // The line break at the very end is not the answer's.
        let text = match self.answer {
            None => line.into_owned(),
            Some(_) => format!("\n{line}"),
        };
        let answer = self.answer.get_or_insert_default();
        if answer.len() <= MAX_ANSWER_BYTES {
            answer.push_str(&text);
        }
        if !text.is_empty() {
            emit(ONLY_TURN, EventBody::Output { text, block: BLOCK.to_owned() }, out);
        }
    }

    fn exited(&mut self, now: Timestamp, exit: &Exit, out: &mut Vec<Action>) {
        if self.ended {
            return;
        }
        self.ended = true;
        let answer = self.answer.take().unwrap_or_default();
        let mut end = TurnEnd::default();
        if exit.is_success() {
            if let Some(id) = self.session.take() {
                out.push(Action::Opened { session: ONLY_SESSION, id });
            }
            end.text = Some(answer);
            end.stop_reason = Some(StopReason::EndTurn);
        } else {
            // Errors of the provider are printed where the answer would be.
            end.failure = Some(failure::of_exit(exit, Evidence::default(), &answer, now));
            end.stop_reason = Some(StopReason::Error);
        }
        out.push(Action::EndTurn { turn: ONLY_TURN, end: Box::new(end) });
    }
}

impl Dialect for PlainText {
    fn step(&mut self, now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        match input {
            Input::Line { from: Stream::Stderr, bytes, .. } => complaint(ONLY_TURN, bytes, out),
            Input::Line { from: Stream::Stdout, bytes, cut: true } => {
                emit_unknown(ONLY_TURN, Stream::Stdout, bytes, out)
            }
            Input::Line { bytes, .. } if !self.ended => self.line(bytes, out),
            Input::Line { bytes, .. } => emit_unknown(ONLY_TURN, Stream::Stdout, bytes, out),
            Input::Cancel { .. } => out.push(Action::Stop),
            Input::Timer(_) => {}
            Input::Exited(exit) => self.exited(now, exit, out),
        }
    }
}
