//! A prompt on its way to the CLI: held back until nothing is in its way, then
//! recognised by its id in what the CLI prints.

use serde_json::Value;
use uuid::Uuid;

use super::super::{field, prompt::user_message};
use crate::{agent::TurnKey, request::Options};

/// The ids of one process's messages. They are derived, so that the same inputs
/// give the same actions, from an id that no other process has.
#[derive(Debug)]
pub(super) struct MessageIds {
    process: u128,
    n_made: u32,
}

impl MessageIds {
    pub(super) fn new(process: &str) -> Self {
        Self { process: Uuid::parse_str(process).unwrap_or_default().as_u128(), n_made: 0 }
    }

    fn next(&mut self) -> String {
        self.n_made = self.n_made.wrapping_add(1);
        // Only bits that are random in every UUID change.
        Uuid::from_u128(self.process ^ u128::from(self.n_made)).to_string()
    }
}

/// A prompt whose turn has not ended.
#[derive(Debug)]
pub(super) struct Prompted {
    pub(super) turn: TurnKey,
    /// The model that is to answer; any, if absent.
    pub(super) model: Option<String>,
    id: String,
    /// What is to be written, until it was.
    message: Option<Vec<u8>>,
}

impl Prompted {
    pub(super) fn new(
        turn: TurnKey,
        prompt: &str,
        options: &Options,
        ids: &mut MessageIds,
    ) -> Self {
        let id = ids.next();
        let message = Some(user_message(prompt, options, Some(&id)));
        Self { turn, model: options.model.clone(), id, message }
    }

    /// Returns the message, once.
    pub(super) fn send(&mut self) -> Option<Vec<u8>> {
        self.message.take()
    }

    /// Returns whether the CLI has the message.
    pub(super) fn is_sent(&self) -> bool {
        self.message.is_none()
    }

    /// Returns whether an id is that of the message.
    pub(super) fn is(&self, id: &str) -> bool {
        self.is_sent() && self.id == id
    }

    /// Returns whether a line names the message among those that it is about.
    pub(super) fn is_in(&self, line: &Value) -> bool {
        message_ids(line).any(|id| self.is(id))
    }
}

/// Returns the ids of the messages that a line is about.
pub(super) fn message_ids(line: &Value) -> impl Iterator<Item = &str> {
    let several = line.get("user_message_uuids").and_then(Value::as_array);
    let several = several.into_iter().flatten().filter_map(Value::as_str);
    several.chain(field::text(line, "user_message_uuid"))
}
