//! What goes wrong in a turn, and its last word.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    parts::Kind,
    turn::{Follows, LiveTurn, Stop},
};
use crate::{
    agent::{
        Action, TimerKey, TurnEnd,
        opencode::{answer::ending, fault},
    },
    event::{EventBody, Status, StopReason},
    failure::{Failure, FailureKind},
};

impl LiveTurn {
    /// Returns whether something failed before the model wrote anything.
    pub(super) fn failed_early(&self) -> bool {
        self.error.is_some() && self.messages.is_empty()
    }

    /// Returns whether an end without a last message is to be waited for.
    pub(super) fn may_end(&self) -> bool {
        self.stop == Stop::Sent
            || self.error.is_some()
            || self.messages.last().is_some_and(|last| last.is_complete)
    }

    /// A call of the model failed and is made again.
    pub(super) fn retry(
        &mut self,
        now: Timestamp,
        message: String,
        attempt: Option<u64>,
        next: Option<i64>,
        out: &mut Vec<Action>,
    ) -> Follows {
        // A stream that was opened anew may tell of the same once more.
        if next.is_some() && self.last_retry.replace((attempt, next)) == Some((attempt, next)) {
            return Follows::Nothing;
        }
        if let Some(last) = self.messages.last() {
            let retracted = self.parts.retract(&last.id, true);
            retracted.into_iter().for_each(|event| self.tell(None, event, out));
        }
        let mut armed = Vec::new();
        self.patience.clock.notice(&message, &mut armed);
        let failure = self.patience.failed(now, message);
        if let Some(Status::Retry { max, text, attempt: ours, .. }) = self.patience.tried_again() {
            let attempt = attempt.and_then(|n| u32::try_from(n).ok()).or(ours);
            let wait = next.map(|next| next.saturating_sub(now.as_millisecond()).max(0));
            let delay_ms = wait.and_then(|wait| u64::try_from(wait).ok());
            let status = Status::Retry { attempt, max, delay_ms, text };
            self.tell(None, EventBody::Status(status), out);
        }
        if let Some(failure) = failure {
            return self.give_up(failure, StopReason::Error);
        }
        let timer = armed.into_iter().find_map(|action| {
            let Action::Arm { timer, after } = action else { return None };
            Some(Follows::Watch(timer, after))
        });
        timer.unwrap_or(Follows::Nothing)
    }

    /// Takes the ring of a timer of its patience.
    pub(super) fn rang(&mut self, timer: TimerKey) -> Follows {
        match self.patience.clock.rang(timer) {
            Some(why) => {
                let failure = fault::of_words(&why, FailureKind::Unavailable);
                self.give_up(failure, StopReason::Error)
            }
            None => Follows::Nothing,
        }
    }

    pub(super) fn give_up(&mut self, failure: Failure, reason: StopReason) -> Follows {
        // What the provider said before the CLI made the history shorter is why
        // all this happens.
        let overflow = self.error.take().filter(|e| e.kind == FailureKind::ContextTooLong);
        self.failure.get_or_insert((overflow.unwrap_or(failure), reason));
        Follows::Stop
    }

    /// Takes an error; the first counts, those after it tell less.
    pub(super) fn error(&mut self, error: &Value, cause: Option<&str>) {
        let failure = fault::of_error(error, cause);
        if failure.kind != FailureKind::Cancelled || self.stop == Stop::No {
            self.error.get_or_insert(failure);
        }
    }

    /// Returns the last word.
    pub(super) fn end(&mut self, out: &mut Vec<Action>) -> Box<TurnEnd> {
        let last = self.messages.last_mut();
        let error = last.and_then(|last| last.error.take());
        let last = self.messages.last();
        let text = last.and_then(|last| self.parts.text(&last.id, Kind::Answer));
        if let Some((failure, reason)) = self.failure.take() {
            return self.ended(text, Some(failure), reason);
        }
        if self.stop != Stop::No {
            let failure = Failure::new(FailureKind::Cancelled, "the turn was aborted");
            return self.ended(text, Some(failure), StopReason::Cancelled);
        }
        let finish = last.and_then(|last| last.finish.clone()).filter(|_| error.is_none());
        let is_summary = last.is_some_and(|last| last.is_summary);
        let error = match (self.error.take(), error) {
            (Some(before), _) if is_summary || finish.is_none() => Some(before),
            (_, Some(error)) => Some(fault::of_error(&error, None)),
            (_, None) => None,
        };
        let steers = self.unanswered();
        if let Some(text) = steers.filter(|_| error.is_none()) {
            self.tell(None, EventBody::Status(Status::Warning { text }), out);
        }
        match (error, finish) {
            (Some(failure), _) => {
                let reason = fault::stop_reason(&failure);
                self.ended(text, Some(failure), reason)
            }
            (None, Some(finish)) if !is_summary => match ending(&finish, self.rejected.take()) {
                Ok(reason) => self.ended(Some(text.unwrap_or_default()), None, reason),
                Err(failure) => {
                    let reason = fault::stop_reason(&failure);
                    self.ended(text, Some(failure), reason)
                }
            },
            (None, _) => self.ended(text, Some(Failure::unreadable()), StopReason::Error),
        }
    }

    /// Returns the last word of a turn whose end was told under a flat name: the
    /// answer, and no reason.
    pub(super) fn flat_end(&mut self) -> Box<TurnEnd> {
        let last = self.messages.last();
        let text = last.and_then(|last| self.parts.text(&last.id, Kind::Answer));
        let mut end = self.ended(Some(text.unwrap_or_default()), None, StopReason::EndTurn);
        end.stop_reason = None;
        end
    }

    fn unanswered(&self) -> Option<String> {
        let is_answered = self.answers_last_prompt(self.messages.last()?);
        (!is_answered).then(|| "the turn ended before a further text was answered".to_owned())
    }

    /// Returns the last word of a turn that failed.
    pub(super) fn failed(&mut self, failure: Failure) -> Box<TurnEnd> {
        let last = self.messages.last();
        let text = last.and_then(|last| self.parts.text(&last.id, Kind::Answer));
        let reason = fault::stop_reason(&failure);
        self.ended(text, Some(failure), reason)
    }

    fn ended(
        &mut self,
        text: Option<String>,
        failure: Option<Failure>,
        reason: StopReason,
    ) -> Box<TurnEnd> {
        let mut meta = Map::new();
        if !self.is_flat {
            meta.insert("model_calls".to_owned(), self.n_calls.into());
        }
        Box::new(TurnEnd {
            text,
            failure,
            usage: self.usage,
            model: self.model.clone(),
            stop_reason: Some(reason),
            meta,
            ..TurnEnd::default()
        })
    }
}
