//! The server's own record of a session, and what a turn learns from it.

use serde_json::{Map, Value};

use super::turn::{Follows, LiveTurn};
use crate::agent::{Action, field::fields_of};

/// A message with its parts.
pub(super) struct Record {
    pub(super) id: String,
    pub(super) is_user: bool,
    pub(super) info: Map<String, Value>,
    pub(super) parts: Vec<Map<String, Value>>,
}

impl Record {
    pub(super) fn read(record: Value) -> Option<Self> {
        let Value::Object(mut record) = record else { return None };
        let Some(Value::Object(info)) = record.remove("info") else { return None };
        let parts = match record.remove("parts") {
            Some(Value::Array(parts)) => parts,
            _ => Vec::new(),
        };
        let parts = parts.into_iter().filter_map(fields_of);
        let text = |name: &str| info.get(name).and_then(Value::as_str);
        Some(Self {
            id: text("id")?.to_owned(),
            is_user: text("role") == Some("user"),
            parts: parts.collect(),
            info,
        })
    }

    /// Returns the calls that were made of helpers.
    pub(super) fn helpers(&self) -> impl Iterator<Item = Map<String, Value>> {
        let is_helper =
            |part: &&Map<String, Value>| part.get("tool").and_then(Value::as_str) == Some("task");
        self.parts.iter().filter(is_helper).cloned()
    }

    fn says(&self, prompt: &str) -> bool {
        self.parts.iter().any(|part| part.get("text").and_then(Value::as_str) == Some(prompt))
    }
}

/// Tells a turn what its messages have become; the first `n_past` of them are of
/// turns before.
pub(super) fn catch_up(
    live: &mut LiveTurn,
    n_past: usize,
    messages: Vec<Record>,
    out: &mut Vec<Action>,
) -> Follows {
    let position = |id: &str| messages.iter().position(|message| message.id == id);
    let first = match live.users.first() {
        // If it is not there, so much has happened since that it is too old.
        Some(user) => Some(position(user).unwrap_or(0)),
        None => {
            let is_it = |message: &Record| message.is_user && message.says(&live.held.prompt);
            messages.iter().skip(n_past).position(is_it).map(|at| n_past + at)
        }
    };
    let mut follows = Follows::Nothing;
    let Some(first) = first else { return follows };
    for message in messages.into_iter().skip(first) {
        if message.is_user {
            if !live.users.contains(&message.id) {
                live.users.push(message.id);
            }
            continue;
        }
        // A complete message's parts are known before its end.
        let info = message.info.clone();
        let mut begun = info.clone();
        begun.remove("time");
        live.message(begun, out);
        for part in message.parts {
            let next = live.part(part, true, out);
            if next != Follows::Nothing {
                follows = next;
            }
        }
        live.message(info, out);
    }
    follows
}
