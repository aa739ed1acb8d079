//! Reads what `codex exec` prints without `--json`: the answer on standard
//! output, everything else for people on standard error.

use jiff::Timestamp;

use super::{
    fault,
    turn::{Turn, is_noise, retry_notice, retry_reason},
};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, Launch,
        emit::{emit, emit_unknown},
        patience::Patience,
        plain::PlainAnswer,
    },
    event::{EventBody, Stream},
    failure::{Failure, FailureKind},
};

/// The block that the whole answer belongs to.
const BLOCK: &str = "answer";
/// What stands before and after the facts at the top of standard error.
const RULE: &str = "--------";

pub(super) struct Plain {
    turn: Turn,
    answer: PlainAnswer,
    header: Header,
    /// The last line that calls itself an error; it counts if the process fails.
    error: Option<String>,
    patience: Patience,
}

/// Facts are read from the header only: what comes after it is the prompt and
/// the conversation, where anybody could write `session id:`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Header {
    Before,
    Inside,
    After,
}

impl Dialect for Plain {
    fn step(&mut self, _now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        match input {
            Input::Line { from: Stream::Stderr, bytes, .. } => self.stderr(bytes, out),
            Input::Line { from: Stream::Stdout, bytes, cut } => {
                self.answer.has_lost_line |= cut;
                if cut || self.turn.has_ended() {
                    emit_unknown(self.turn.key(), Stream::Stdout, bytes, out);
                } else {
                    self.text(bytes, out);
                }
            }
            Input::Cancel { .. } => out.push(Action::Stop),
            Input::Order(_) | Input::Heard(_) => {}
            Input::Timer(timer) => {
                if let Some(why) = self.patience.rang(timer).filter(|_| !self.turn.has_ended()) {
                    let failure = fault::of_message(&why, FailureKind::Unavailable);
                    self.turn.fail(failure, self.answer.take(), out);
                    out.push(Action::Stop);
                }
            }
            Input::Exited(exit) => self.exited(exit, out),
        }
    }
}

impl Plain {
    pub(super) fn new(launch: &Launch<'_>) -> Self {
        Self {
            turn: Turn::new(launch),
            answer: PlainAnswer::default(),
            header: Header::Before,
            error: None,
            patience: Patience::default(),
        }
    }

    fn stderr(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        let line = String::from_utf8_lossy(bytes);
        let line = line.trim();
        let is_read = match self.header {
            Header::Before if line == RULE => {
                self.header = Header::Inside;
                true
            }
            Header::Inside if line == RULE => {
                self.header = Header::After;
                true
            }
            Header::Inside => self.fact(line, out),
            Header::After => self.complaint(line, out),
            Header::Before => self.version(line),
        };
        if !is_read && !is_noise(line) {
            emit_unknown(self.turn.key(), Stream::Stderr, bytes, out);
        }
    }

    fn fact(&mut self, line: &str, out: &mut Vec<Action>) -> bool {
        match line.split_once(": ") {
            Some(("session id", id)) => self.turn.open(id.to_owned(), out),
            Some(("model", model)) => self.turn.end.model = Some(model.to_owned()),
            Some((name, value)) => {
                let name = name.replace(' ', "_");
                self.turn.end.meta.insert(name, value.into());
            }
            None => return false,
        }
        true
    }

    fn version(&mut self, line: &str) -> bool {
        let Some(version) = line.strip_prefix("OpenAI Codex v") else {
            return false;
        };
        self.turn.end.meta.insert("version".to_owned(), version.into());
        true
    }

    fn complaint(&mut self, line: &str, out: &mut Vec<Action>) -> bool {
        let Some(message) = line.strip_prefix("ERROR: ") else {
            return false;
        };
        if let Some(notice) = retry_notice(message) {
            emit(self.turn.key(), EventBody::Status(notice), out);
            self.patience.notice(retry_reason(message), out);
            return true;
        }
        self.error = Some(message.to_owned());
        false
    }

    fn text(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        self.patience.progress();
        let text = self.answer.add(bytes);
        let block = BLOCK.to_owned();
        emit(self.turn.key(), EventBody::Output { text, block }, out);
    }

    fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        if self.turn.has_ended() {
            return;
        }
        let answer = self.answer.take();
        if !exit.is_success() {
            let error = self.error.take();
            self.turn.fail_with_exit(exit, error.as_deref(), answer, out);
        } else if self.answer.has_lost_line {
            self.turn.fail(Failure::unreadable(), None, out);
        } else {
            self.turn.complete(answer.unwrap_or_default(), None, out);
        }
    }
}
