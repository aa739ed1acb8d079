//! What both forms of OpenCode's output have in common: the session, the
//! figures, what standard error says, and the end.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    fault,
    log::{self, Notice},
    patience::Patience,
};
use crate::{
    agent::{
        Action, Exit, Launch, ONLY_SESSION, ONLY_TURN, TimerKey, TurnKey,
        emit::{emit, emit_unknown, emit_warning},
        last_word::LastWord,
    },
    event::{EventBody, StopReason, Stream, Usage},
    failure::{Failure, FailureKind},
};

/// The one turn of a one-shot process.
pub(super) struct Turn {
    session: Option<String>,
    /// What the log said about a turn that could not begin.
    cause: Option<String>,
    /// The permission that was refused last.
    pub(super) rejected: Option<String>,
    pub(super) patience: Patience,
    pub(super) end: LastWord,
}

impl Turn {
    pub(super) fn new(launch: &Launch<'_>) -> Self {
        Self {
            session: None,
            cause: None,
            rejected: None,
            patience: Patience::default(),
            end: LastWord::new(ONLY_TURN, launch.options.model.clone()),
        }
    }

    pub(super) fn key(&self) -> TurnKey {
        self.end.turn
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.is_said()
    }

    /// Takes the id that the CLI tells with every line.
    pub(super) fn open(&mut self, id: String, out: &mut Vec<Action>) {
        if self.session.is_none() && !self.has_ended() && !id.is_empty() {
            self.session = Some(id.clone());
            out.push(Action::Opened { session: ONLY_SESSION, id });
        }
    }

    /// Adds what one call of the model used, and tells the sum.
    pub(super) fn spent(&mut self, usage: &Usage, out: &mut Vec<Action>) {
        self.end.usage = sum(self.end.usage, usage);
        emit(self.key(), EventBody::Usage(self.end.usage), out);
    }

    /// Takes a line of standard error.
    pub(super) fn stderr(&mut self, now: Timestamp, bytes: &[u8], out: &mut Vec<Action>) {
        match log::read(&String::from_utf8_lossy(bytes)) {
            None => emit_unknown(self.key(), Stream::Stderr, bytes, out),
            Some(Notice::Noise) => {}
            Some(Notice::Banner { model }) => {
                self.end.model = self.end.model.take().or(Some(model))
            }
            Some(Notice::Failed { message }) => self.cause = Some(message),
            Some(Notice::Rejected { text }) => {
                self.rejected = Some(text.clone());
                emit_warning(self.key(), text, out);
            }
            Some(Notice::AgentMissing { text }) => self.agent_missing(text, out),
            Some(Notice::ModelFailed { session, model, message }) => {
                let is_other = matches!((&self.session, &session), (Some(a), Some(b)) if a != b);
                if self.has_ended() || is_other {
                    return emit_unknown(self.key(), Stream::Stderr, bytes, out);
                }
                if let Some(id) = session {
                    self.open(id, out);
                }
                self.end.model = self.end.model.take().or(model);
                self.model_failed(now, message, out);
            }
        }
    }

    /// Takes a call of the model that failed.
    pub(super) fn model_failed(&mut self, now: Timestamp, message: String, out: &mut Vec<Action>) {
        self.told_to_be_tried_again(out);
        self.patience.clock.notice(&message, out);
        if let Some(failure) = self.patience.failed(now, message) {
            self.fail(failure, None, out);
            out.push(Action::Stop);
        }
    }

    /// Ends the turn when the CLI waits in silence for longer than anybody would.
    pub(super) fn rang(&mut self, timer: TimerKey, out: &mut Vec<Action>) {
        if let Some(why) = self.patience.clock.rang(timer)
            && !self.has_ended()
        {
            self.fail(fault::of_words(&why, FailureKind::Unavailable), None, out);
            out.push(Action::Stop);
        }
    }

    /// Tells that a failed call is tried again, once that is certain.
    pub(super) fn told_to_be_tried_again(&mut self, out: &mut Vec<Action>) {
        if let Some(status) = self.patience.tried_again() {
            emit(self.key(), EventBody::Status(status), out);
        }
    }

    /// The agent that runs instead has other rules than those that were asked
    /// for, maybe none. Nothing of it may happen.
    fn agent_missing(&mut self, text: String, out: &mut Vec<Action>) {
        let message = format!("stopped before anything was done: {text}");
        emit_warning(self.key(), text, out);
        self.fail(Failure::new(FailureKind::InvalidRequest, message), None, out);
        out.push(Action::Stop);
    }

    /// Ends the turn well.
    pub(super) fn complete(&mut self, text: String, reason: StopReason, out: &mut Vec<Action>) {
        self.end.complete(text, reason, out);
    }

    /// Ends the turn badly, with what there was of an answer.
    pub(super) fn fail(&mut self, failure: Failure, text: Option<String>, out: &mut Vec<Action>) {
        let reason = fault::stop_reason(&failure);
        self.end.fail(failure, reason, text, out);
    }

    /// Returns what an error on standard output means.
    pub(super) fn fault(&self, error: &Value) -> Failure {
        fault::of_error(error, self.cause.as_deref())
    }

    /// Returns what an exit means that nothing was said about.
    pub(super) fn exit_fault(&self, exit: &Exit) -> Failure {
        fault::of_exit(exit, self.cause.as_deref())
    }
}

/// Adds what one call of the model used.
pub(super) fn sum(so_far: Usage, more: &Usage) -> Usage {
    let add = |sum: Option<u64>, more: Option<u64>| match (sum, more) {
        (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
        (sum, more) => sum.or(more),
    };
    Usage {
        input_tokens: add(so_far.input_tokens, more.input_tokens),
        output_tokens: add(so_far.output_tokens, more.output_tokens),
        cached_tokens: add(so_far.cached_tokens, more.cached_tokens),
        total_tokens: add(so_far.total_tokens, more.total_tokens),
        cost_usd: match (so_far.cost_usd, more.cost_usd) {
            (Some(sum), Some(more)) => Some(sum + more),
            (sum, more) => sum.or(more),
        },
    }
}
