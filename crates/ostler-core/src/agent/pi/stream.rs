//! Reads the messages of the model, as they are written and when they are done.

use serde_json::Value;

use super::{
    blocks::BlockKind,
    field,
    message::{Ending, Message},
    reader::Reader,
};
use crate::{
    agent::{Action, emit::emit},
    event::{EventBody, StopReason},
    failure::{Failure, FailureKind},
};

impl Reader {
    pub(super) fn message_start(&mut self, line: &Value, out: &mut Vec<Action>) -> bool {
        match role(line) {
            Some("assistant") => {
                if self.last.as_ref().is_some_and(Message::may_be_void) {
                    self.blocks.retract(&mut |event| emit(self.turn.key(), event, out));
                }
                self.blocks.start();
                true
            }
            Some(role) => is_known_role(role),
            None => false,
        }
    }

    pub(super) fn message_update(&mut self, line: &mut Value, out: &mut Vec<Action>) -> bool {
        let mut event = field::take(line, "assistantMessageEvent");
        let kind = match field::text(&event, "type") {
            Some("text_start" | "text_delta" | "text_end") => BlockKind::Output,
            Some("thinking_start" | "thinking_delta" | "thinking_end") => BlockKind::Thinking,
            // A call is told when it is made, with all its arguments.
            Some("toolcall_start" | "toolcall_delta" | "toolcall_end" | "start" | "done") => {
                return true;
            }
            Some(_) | None => return false,
        };
        let index = field::number(&event, "contentIndex").unwrap_or(0);
        let tell = &mut |event| emit(self.turn.key(), event, out);
        if let Some(text) = field::take_text(&mut event, "delta") {
            self.blocks.piece(index, kind, text, tell);
        } else if let Some(text) = field::text(&event, "content") {
            self.blocks.whole(index, kind, text, tell);
        }
        true
    }

    pub(super) fn message_end(&mut self, line: &mut Value, out: &mut Vec<Action>) -> bool {
        match role(line) {
            Some("assistant") => {}
            Some("user") => {
                self.turn.asked(out);
                return true;
            }
            Some(role) => return is_known_role(role),
            None => return false,
        }
        let mut message = field::take(line, "message");
        let content = message.get("content").unwrap_or(&Value::Null);
        self.blocks.end(content, &mut |event| emit(self.turn.key(), event, out));
        self.turn.open(out);
        if let Some(model) = field::take_text(&mut message, "model") {
            self.turn.end.model = Some(model);
        }
        for key in ["provider", "api", "thinkingLevel", "rawStopReason"] {
            let value = field::take_kept(&mut message, key);
            self.turn.end.meta.extend(value.map(|value| (field::snake_case(key), value)));
        }
        self.spent.add(message.get("usage").unwrap_or(&Value::Null));
        self.tell_usage(out);
        let read = Message::read(&mut message);
        if !matches!(read.ending, Ending::Failed(_) | Ending::Aborted) {
            self.n_calls += 1;
            self.retrying_since = None;
        }
        self.last = Some(read);
        self.has_lost_line = false;
        true
    }

    pub(super) fn tell_usage(&mut self, out: &mut Vec<Action>) {
        if let Some(usage) = self.spent.usage()
            && usage != self.turn.end.usage
        {
            self.turn.end.usage = usage;
            emit(self.turn.key(), EventBody::Usage(usage), out);
        }
    }

    /// The results of a message's tools are in, and the model would be called again.
    pub(super) fn turn_end(&mut self, out: &mut Vec<Action>) -> bool {
        let wants_more = self.last.as_ref().is_some_and(|message| message.ending == Ending::Tools);
        if let Some(max) = self.max_calls.filter(|max| wants_more && self.n_calls >= *max) {
            let message = format!("the turn reached its limit of {max} model calls");
            let failure = Failure::new(FailureKind::LimitReached, message);
            let text = self.last.take().map(|message| message.text);
            self.halt(failure, StopReason::MaxTurns, text, out);
        }
        true
    }
}

fn role(line: &Value) -> Option<&str> {
    field::text(line.get("message")?, "role")
}

/// The other messages of a conversation: what was asked, and results that the
/// tools' own lines tell.
fn is_known_role(role: &str) -> bool {
    ["user", "system", "toolResult"].contains(&role)
}
