//! What an agent tells of a session by itself.

use serde_json::{Map, Value};

use super::call::Call;
use crate::agent::field::remove_text;

/// One notification about a session.
#[derive(Debug)]
pub(super) enum Update {
    /// A piece of the answer.
    Text(String),
    /// A piece of the agent's reasoning.
    Thought(String),
    /// A call of a tool begins or has changed.
    Call(Box<Call>),
    /// What the agent wants to do, step by step.
    Plan(Vec<Value>),
    /// Which commands there are.
    Commands,
    /// Something that says nothing about the turn.
    Quiet,
    /// Something else.
    Unknown,
}

/// What says nothing about the turn: our own words, and settings for people.
const QUIET: &[&str] = &[
    "user_message_chunk",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
];

/// Reads a notification; returns the session it is about as well.
pub(super) fn read(mut params: Map<String, Value>) -> Option<(String, Update)> {
    let session = remove_text(&mut params, "sessionId")?;
    let Some(Value::Object(mut fields)) = params.remove("update") else {
        return Some((session, Update::Unknown));
    };
    let kind = remove_text(&mut fields, "sessionUpdate").unwrap_or_default();
    let update = match kind.as_str() {
        "agent_message_chunk" => text(fields).map_or(Update::Unknown, Update::Text),
        "agent_thought_chunk" => text(fields).map_or(Update::Unknown, Update::Thought),
        "tool_call" | "tool_call_update" => {
            Call::read(fields).map_or(Update::Unknown, |call| Update::Call(Box::new(call)))
        }
        "plan" => match fields.remove("entries") {
            Some(Value::Array(entries)) => Update::Plan(entries),
            _ => Update::Unknown,
        },
        "available_commands_update" => Update::Commands,
        kind if QUIET.contains(&kind) => Update::Quiet,
        _ => Update::Unknown,
    };
    Some((session, update))
}

fn text(mut fields: Map<String, Value>) -> Option<String> {
    let Some(Value::Object(mut content)) = fields.remove("content") else { return None };
    remove_text(&mut content, "text")
}
