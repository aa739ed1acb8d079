//! Events under flat names, as another kind of server tells them: texts, tools,
//! the end, an error.
//!
//! Such a server tells less: no prompts, no parts, no figures. What it does not
//! tell stays unknown. Names of fields differ from one to the next, so each may
//! have several.

use serde_json::{Map, Value};

use super::{server::Server, turn::Stop};
use crate::{
    agent::{
        Action, SessionKey,
        field::remove_text,
        opencode::{fault, tool::title_of},
    },
    event::{EventBody, ToolResult},
    failure::FailureKind,
};

/// What was told.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Flat {
    /// A text, as it is now.
    Text {
        /// The message; absent if it has no name.
        message: Option<String>,
        text: String,
    },
    /// A tool is called.
    Call { id: String, tool: String, input: Option<Value> },
    /// It came back.
    Result { id: String, tool: String, output: String, is_error: bool },
    /// The turn is over.
    Completed,
    /// It failed.
    Failed { message: String },
    /// Something that is known already.
    Nothing,
}

const IDS: &[&str] = &["id", "messageID", "messageId", "message_id"];
const CALLS: &[&str] = &["id", "callID", "callId", "call_id", "toolCallId"];
const TEXTS: &[&str] = &["content", "text"];
const TOOLS: &[&str] = &["tool", "name", "toolName", "tool_name"];
const INPUTS: &[&str] = &["input", "args", "arguments"];
const OUTPUTS: &[&str] = &["output", "result", "content"];
const SESSIONS: &[&str] = &["sessionID", "sessionId", "session_id"];

/// Where some put what an event is about, one level deeper.
const INNER: &[&str] = &["message", "info", "part", "tool"];

/// Reads an event by its name; nothing if it is none of these.
pub(super) fn read(kind: &str, fields: &Map<String, Value>) -> Option<Flat> {
    let mut fields = fields.clone();
    for name in INNER {
        if let Some(Value::Object(inner)) = fields.get(*name).cloned() {
            fields.remove(*name);
            fields.extend(inner);
        }
    }
    Some(match kind {
        "message.created" | "message.updated" => {
            if fields.get("role").and_then(Value::as_str) == Some("user") {
                return Some(Flat::Nothing);
            }
            let text = text_of(&fields, TEXTS)?;
            Flat::Text { message: text_of(&fields, IDS), text }
        }
        "tool.started" => Flat::Call {
            id: text_of(&fields, CALLS)?,
            tool: text_of(&fields, TOOLS).unwrap_or_default(),
            input: INPUTS.iter().find_map(|name| fields.remove(*name)),
        },
        "tool.completed" => {
            let error = fields.get("error").filter(|error| !error.is_null()).map(words);
            let is_error = error.is_some()
                || fields.get("is_error").and_then(Value::as_bool) == Some(true)
                || fields.get("status").and_then(Value::as_str) == Some("error");
            let output = OUTPUTS.iter().find_map(|name| fields.get(*name)).map(words);
            Flat::Result {
                id: text_of(&fields, CALLS)?,
                tool: text_of(&fields, TOOLS).unwrap_or_default(),
                output: error.or(output).unwrap_or_default(),
                is_error,
            }
        }
        "session.completed" => Flat::Completed,
        "error" => {
            let message =
                fields.get("error").map(words).or_else(|| remove_text(&mut fields, "message"));
            Flat::Failed {
                message: message.unwrap_or_else(|| "opencode reported an error".to_owned()),
            }
        }
        _ => return None,
    })
}

/// Returns the session that an event names.
pub(super) fn session_of(fields: &Map<String, Value>) -> Option<String> {
    let inner = || INNER.iter().find_map(|name| text_of(fields.get(*name)?.as_object()?, SESSIONS));
    text_of(fields, SESSIONS).or_else(inner)
}

fn text_of(fields: &Map<String, Value>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| fields.get(*name)?.as_str()).map(str::to_owned)
}

/// Returns a text, or the message in it, or the value as it is written.
fn words(value: &Value) -> String {
    let inner = value.get("message").or_else(|| value.pointer("/data/message"));
    let value = inner.unwrap_or(value);
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Server {
    /// Takes what was told under flat names.
    pub(super) fn flat(&mut self, key: SessionKey, flat: Flat, out: &mut Vec<Action>) {
        let Some(live) = self.turn_of(key) else { return };
        live.is_flat = true;
        let is_stopped = live.stop != Stop::No;
        match flat {
            Flat::Text { message, text } => live.flat_text(message, text, out),
            Flat::Call { id, tool, input } => {
                let title = title_of(input.as_ref());
                if live.told.insert(format!("call {id}")) {
                    live.tell(None, EventBody::ToolUse { id, tool, input, title }, out);
                }
            }
            Flat::Result { id, tool, output, is_error } => {
                if live.told.insert(format!("result {id}")) {
                    let result = ToolResult { id, tool, output, is_error, ..ToolResult::default() };
                    live.tell(None, EventBody::ToolResult(result), out);
                }
            }
            Flat::Completed | Flat::Failed { .. } if is_stopped => self.conclude(key, out),
            Flat::Completed => {
                let end = live.flat_end();
                self.conclude_with(key, Some(end), out);
            }
            Flat::Failed { message } => {
                let end = live.failed(fault::of_words(&message, FailureKind::Crashed));
                self.conclude_with(key, Some(end), out);
            }
            Flat::Nothing => {}
        }
    }

    /// Takes what names no session, if it is clear whose it is.
    pub(super) fn unnamed(&mut self, flat: Flat, out: &mut Vec<Action>) {
        let mut live = self.sessions.iter().filter(|(_, session)| session.turn.is_some());
        if let (Some((key, _)), None) = (live.next(), live.next()) {
            let key = SessionKey(*key);
            self.flat(key, flat, out);
        }
    }
}
