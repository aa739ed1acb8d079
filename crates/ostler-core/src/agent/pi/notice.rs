//! Reads what the CLI tells beside the conversation: that it tries again, and
//! that it made its history shorter.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{fault, field, message::Message, reader::Reader};
use crate::{
    agent::{Action, emit::emit},
    event::{EventBody, Status, StopReason},
    failure::FailureKind,
};

/// How long after its first error the CLI may still try again.
///
/// Its retries can be bounded only in the user's own settings. By default it
/// waits 2, 4 and 8 seconds; anything slower would not end within 20.
const PATIENCE: SignedDuration = SignedDuration::from_secs(15);

impl Reader {
    pub(super) fn retry(
        &mut self,
        now: Timestamp,
        line: &mut Value,
        out: &mut Vec<Action>,
    ) -> bool {
        // A run that is tried again was not the last one.
        self.has_run = false;
        let small = |key| field::number(line, key).and_then(|n| u32::try_from(n).ok());
        let (attempt, max) = (small("attempt"), small("maxAttempts"));
        let delay_ms = field::number(line, "delayMs");
        let text = field::take_text(line, "errorMessage").unwrap_or_default();
        if self.last.as_ref().is_some_and(Message::may_be_void) {
            self.blocks.retract(&mut |event| emit(self.turn.key(), event, out));
        }
        let failure = fault::of_message(&text, FailureKind::Unavailable);
        let notice = Status::Retry { attempt, max, delay_ms, text: failure.message.clone() };
        emit(self.turn.key(), EventBody::Status(notice), out);
        let since = *self.retrying_since.get_or_insert(now);
        let delay = i64::try_from(delay_ms.unwrap_or(0)).unwrap_or(i64::MAX);
        let waited = now.duration_since(since);
        if waited.saturating_add(SignedDuration::from_millis(delay)) > PATIENCE {
            self.halt(failure, StopReason::Error, None, out);
        }
        true
    }

    pub(super) fn compacted(&mut self, line: &mut Value, out: &mut Vec<Action>) -> bool {
        let result = field::take(line, "result");
        self.spent.add(result.get("usage").unwrap_or(&Value::Null));
        self.tell_usage(out);
        let status = match field::take_text(line, "errorMessage") {
            Some(text) => Status::Warning { text },
            None if result.is_null() => return true,
            None => {
                let reason = field::take_text(line, "reason").unwrap_or_default();
                let before = field::number(&result, "tokensBefore").unwrap_or(0);
                Status::Compacted { text: format!("{reason}: {before} tokens were summarized") }
            }
        };
        emit(self.turn.key(), EventBody::Status(status), out);
        true
    }
}
