//! What an agent tells of a session by itself.

use serde_json::{Map, Value};

use super::{call::Call, spent::Counts};
use crate::agent::field::remove_text;

/// One notification about a session.
#[derive(Debug)]
pub(super) enum Update {
    /// A piece of the answer.
    Text(String),
    /// A piece of the agent's reasoning.
    Thought(String),
    /// A call of a tool begins.
    Begun(Box<Call>),
    /// A call of a tool has changed.
    Changed(Box<Call>),
    /// What the agent wants to do, step by step.
    Plan(Vec<Value>),
    /// Which commands there are.
    Commands,
    /// The agent has changed its mode.
    Mode(String),
    /// What can be set, and what is.
    Options(Value),
    /// What the session has cost so far, in US dollars.
    Cost(f64),
    /// Something that says nothing about the turn.
    Quiet,
    /// Something else.
    Unknown,
}

/// What says nothing about the turn: our own words, and names for people.
const QUIET: &[&str] = &["user_message_chunk", "session_info_update"];

/// A notification, and what comes with it.
#[derive(Debug)]
pub(super) struct Told {
    /// The session it is about.
    pub(super) session: String,
    pub(super) update: Update,
    /// What a call of the model has used.
    pub(super) call: Option<Counts>,
}

/// Reads a notification.
pub(super) fn read(mut params: Map<String, Value>) -> Option<Told> {
    let session = remove_text(&mut params, "sessionId")?;
    let Some(Value::Object(mut fields)) = params.remove("update") else {
        return Some(Told { session, update: Update::Unknown, call: None });
    };
    let call = fields.get("_meta").and_then(|meta| Counts::read(meta.get("usage")?));
    let kind = remove_text(&mut fields, "sessionUpdate").unwrap_or_default();
    let update = match kind.as_str() {
        "agent_message_chunk" => text(fields).map_or(Update::Unknown, Update::Text),
        "agent_thought_chunk" => text(fields).map_or(Update::Unknown, Update::Thought),
        "tool_call" => {
            Call::read(fields).map_or(Update::Unknown, |call| Update::Begun(Box::new(call)))
        }
        "tool_call_update" => {
            Call::read(fields).map_or(Update::Unknown, |call| Update::Changed(Box::new(call)))
        }
        "plan" => match fields.remove("entries") {
            Some(Value::Array(entries)) => Update::Plan(entries),
            _ => Update::Unknown,
        },
        "available_commands_update" => Update::Commands,
        "current_mode_update" => {
            remove_text(&mut fields, "currentModeId").map_or(Update::Quiet, Update::Mode)
        }
        "config_option_update" => Update::Options(Value::Object(fields)),
        "usage_update" => cost(&fields).map_or(Update::Quiet, Update::Cost),
        kind if QUIET.contains(&kind) => Update::Quiet,
        _ => Update::Unknown,
    };
    Some(Told { session, update, call })
}

fn cost(fields: &Map<String, Value>) -> Option<f64> {
    let cost = fields.get("cost")?;
    let amount = cost.get("amount")?.as_f64().filter(|amount| amount.is_finite())?;
    (cost.get("currency")?.as_str()? == "USD").then_some(amount)
}

fn text(mut fields: Map<String, Value>) -> Option<String> {
    let Some(Value::Object(mut content)) = fields.remove("content") else { return None };
    remove_text(&mut content, "text")
}
