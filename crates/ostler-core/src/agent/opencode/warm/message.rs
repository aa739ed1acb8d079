//! The model's messages in a turn: their texts, their steps and what they used.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    parts::{Kind, Known},
    turn::{Follows, LiveTurn},
};
use crate::{
    agent::{
        Action,
        field::remove_text,
        opencode::{message::usage, turn::sum},
    },
    event::{EventBody, Status, StopReason},
    failure::{Failure, FailureKind},
};

/// A message of the model's.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) id: String,
    parent: String,
    pub(super) is_summary: bool,
    pub(super) is_complete: bool,
    has_tools: bool,
    /// The calls of the model that were begun for it.
    steps: BTreeSet<String>,
    pub(super) finish: Option<String>,
    pub(super) error: Option<Value>,
}

impl Message {
    /// Whether the answer was cut off on its way: the CLI then asks again.
    fn is_broken(&self) -> bool {
        self.finish.as_deref() == Some("unknown") && !self.has_tools
    }
}

impl LiveTurn {
    /// Returns whether the last message answers the last prompt and is complete.
    pub(super) fn is_over(&self) -> bool {
        self.n_steers == 0
            && self
                .messages
                .last()
                .is_some_and(|last| last.is_complete && self.answers_last_prompt(last))
    }

    /// Returns whether a message answers what the user said last.
    pub(super) fn answers_last_prompt(&self, message: &Message) -> bool {
        self.users.last().is_none_or(|user| *user == message.parent)
    }

    /// Takes what is known of a message; returns whether the model began one.
    pub(super) fn message(&mut self, mut info: Map<String, Value>, out: &mut Vec<Action>) -> bool {
        let id = remove_text(&mut info, "id").unwrap_or_default();
        let parent = remove_text(&mut info, "parentID").unwrap_or_default();
        if id.is_empty() || !self.users.contains(&parent) {
            return false;
        }
        let is_new = !self.messages.iter().any(|known| known.id == id);
        let is_summary = info.get("summary").and_then(Value::as_bool) == Some(true);
        if is_new {
            self.begin(Message { id: id.clone(), parent, is_summary, ..Message::default() }, out);
        }
        let provider = remove_text(&mut info, "providerID").unwrap_or_default();
        if let Some(model) = remove_text(&mut info, "modelID").filter(|_| !is_summary) {
            let is_bare = provider.is_empty();
            self.model = Some(if is_bare { model } else { format!("{provider}/{model}") });
        }
        let Some(known) = self.messages.iter_mut().find(|known| known.id == id) else {
            return is_new;
        };
        let is_complete =
            info.get("time").and_then(|time| time.get("completed")).is_some_and(|at| !at.is_null());
        let is_done_now = is_complete && !known.is_complete;
        // What is told after something was read may be older.
        known.is_complete |= is_complete;
        known.finish = remove_text(&mut info, "finish").or(known.finish.take());
        known.error = info.remove("error").filter(|error| !error.is_null()).or(known.error.take());
        if is_done_now && is_summary && known.error.is_none() && known.finish.is_some() {
            let text = self.parts.text(&id, Kind::Hidden).unwrap_or_default();
            self.tell(None, EventBody::Status(Status::Compacted { text }), out);
        }
        is_new
    }

    fn begin(&mut self, message: Message, out: &mut Vec<Action>) {
        if let Some(last) = self.messages.last().filter(|last| last.is_broken()) {
            let retracted = self.parts.retract(&last.id, false);
            retracted.into_iter().for_each(|event| self.tell(None, event, out));
            let again = self.patience.asked_again();
            self.tell(None, EventBody::Status(again), out);
        }
        if !message.is_summary {
            // It goes on, so what failed before was got over.
            self.error = None;
        }
        self.messages.push(message);
    }

    /// Takes what is known of a part of a message. One that was read may have
    /// changed before, unnoticed.
    pub(super) fn part(
        &mut self,
        mut part: Map<String, Value>,
        is_read: bool,
        out: &mut Vec<Action>,
    ) -> Follows {
        let message = message_of(&part).to_owned();
        let Some(owner) = self.messages.iter_mut().find(|known| known.id == message) else {
            return Follows::Nothing;
        };
        let is_summary = owner.is_summary;
        match part.get("type").and_then(Value::as_str).unwrap_or_default() {
            kind @ ("text" | "reasoning") => {
                let kind = match kind {
                    _ if is_summary || is_for_model(&part) => Kind::Hidden,
                    "text" => Kind::Answer,
                    _ => Kind::Thought,
                };
                self.text(part, message, kind, is_read, out);
            }
            "tool" => {
                owner.has_tools = true;
                self.tool(None, part, out);
            }
            "step-start" => {
                let id = remove_text(&mut part, "id").unwrap_or_default();
                if owner.steps.insert(id) && owner.steps.len() > 1 {
                    // The model was asked again, and that it failed may not have
                    // been heard.
                    let retracted = self.parts.retract(&message, true);
                    retracted.into_iter().for_each(|event| self.tell(None, event, out));
                }
            }
            "step-finish" => return self.step_finish(&message, &part, out),
            _ => {}
        }
        Follows::Nothing
    }

    fn text(
        &mut self,
        mut part: Map<String, Value>,
        message: String,
        kind: Kind,
        is_read: bool,
        out: &mut Vec<Action>,
    ) {
        let is_done = part.get("time").is_some_and(|time| time.get("end").is_some());
        let id = remove_text(&mut part, "id").unwrap_or_default();
        let text = remove_text(&mut part, "text").unwrap_or_default();
        if is_done {
            self.patience.answered();
        }
        let known = Known { id, message, kind, text, is_done, is_read };
        let events = self.parts.known(known);
        events.into_iter().for_each(|event| self.tell(None, event, out));
    }

    /// Takes a piece of a text.
    pub(super) fn piece(&mut self, part: &str, text: String, out: &mut Vec<Action>) {
        if let Some(event) = self.parts.piece(part, text) {
            self.tell(None, event, out);
        }
    }

    /// Takes a text that was told under a flat name. One that has none goes on
    /// with the one before.
    pub(super) fn flat_text(&mut self, id: Option<String>, text: String, out: &mut Vec<Action>) {
        let (id, text) = match id {
            Some(id) => (id, text),
            None => (String::new(), self.parts.continued("", text)),
        };
        if !self.messages.iter().any(|known| known.id == id) {
            let parent = self.users.last().cloned().unwrap_or_default();
            self.messages.push(Message { id: id.clone(), parent, ..Message::default() });
        }
        let known = Known {
            message: id.clone(),
            id,
            kind: Kind::Answer,
            text,
            is_done: false,
            is_read: false,
        };
        let events = self.parts.known(known);
        events.into_iter().for_each(|event| self.tell(None, event, out));
    }

    fn step_finish(
        &mut self,
        message: &str,
        part: &Map<String, Value>,
        out: &mut Vec<Action>,
    ) -> Follows {
        let id = part.get("id").and_then(Value::as_str).unwrap_or_default();
        if !self.told.insert(format!("step {id}")) {
            return Follows::Nothing;
        }
        self.n_calls = self.n_calls.saturating_add(1);
        self.spent(part, out);
        let Some(owner) = self.messages.iter_mut().find(|known| known.id == message) else {
            return Follows::Nothing;
        };
        let reason = part.get("reason").and_then(Value::as_str).unwrap_or_default();
        owner.finish = Some(reason.to_owned());
        if owner.is_broken() {
            return match self.patience.broke_off() {
                Some(failure) => self.give_up(failure, StopReason::Error),
                None => Follows::Nothing,
            };
        }
        self.patience.finished();
        let goes_on = matches!(reason, "tool-calls" | "unknown");
        if goes_on && self.held.max_turns.is_some_and(|max| self.n_calls >= max) {
            let text = format!("stopped after {} calls of the model", self.n_calls);
            let failure = Failure::new(FailureKind::LimitReached, text);
            return self.give_up(failure, StopReason::MaxTurns);
        }
        Follows::Nothing
    }

    /// Adds what a call of the model used, also one of a helper's.
    pub(super) fn spent(&mut self, part: &Map<String, Value>, out: &mut Vec<Action>) {
        if let Some(usage) = usage(part) {
            self.usage = sum(self.usage, &usage);
            self.tell(None, EventBody::Usage(self.usage), out);
        }
    }

    /// Returns whether a helper's call of the model was not counted yet.
    pub(super) fn is_news(&mut self, part: &Map<String, Value>) -> bool {
        let id = part.get("id").and_then(Value::as_str).unwrap_or_default();
        self.told.insert(format!("step {id}"))
    }
}

/// Returns the message that a part is of.
pub(super) fn message_of(part: &Map<String, Value>) -> &str {
    part.get("messageID").and_then(Value::as_str).unwrap_or_default()
}

/// Whether a text is meant for the model alone.
fn is_for_model(part: &Map<String, Value>) -> bool {
    let is = |name: &str| part.get(name).and_then(Value::as_bool) == Some(true);
    is("synthetic") || is("ignored")
}
