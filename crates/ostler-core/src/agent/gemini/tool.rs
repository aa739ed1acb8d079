//! Calls of tools: their names, what is said about them, and which are still open.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    agent::{field::remove_text, words::one_line},
    event::{EventBody, ToolResult},
};

/// The argument that says most about a call, first come first served.
const TELLING: &[&str] =
    &["command", "file_path", "dir_path", "path", "pattern", "query", "prompt", "url", "title"];

/// The calls of a turn.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// The calls without a result, with the tool's name.
    open: BTreeMap<String, String>,
}

impl Tools {
    /// Takes a call; `None` when it has no name.
    pub(super) fn call(&mut self, fields: &mut Map<String, Value>) -> Option<EventBody> {
        let tool = remove_text(fields, "tool_name")?;
        let id = remove_text(fields, "tool_id").unwrap_or_default();
        let input = fields.remove("parameters").filter(|value| !value.is_null());
        self.open.insert(id.clone(), tool.clone());
        let title = input.as_ref().map(title).unwrap_or_default();
        Some(EventBody::ToolUse { id, tool, input, title })
    }

    /// Takes a result; `None` when it does not say whose.
    ///
    /// A command that fails counts as a success, and its exit code is not told.
    pub(super) fn result(&mut self, fields: &mut Map<String, Value>) -> Option<EventBody> {
        let id = remove_text(fields, "tool_id")?;
        let is_error = fields.get("status").and_then(Value::as_str) == Some("error");
        let error = fields.get("error").and_then(|error| error.get("message")?.as_str());
        let output = match (fields.get("output").and_then(Value::as_str), error) {
            (Some(output), _) => output.to_owned(),
            (None, error) => error.unwrap_or_default().to_owned(),
        };
        // Ids begin with the name of the tool.
        let told = || id.split_once("__").map(|(tool, _)| tool.to_owned());
        let tool = self.open.remove(&id).or_else(told).unwrap_or_default();
        Some(EventBody::ToolResult(ToolResult {
            id,
            tool,
            output,
            is_error,
            ..ToolResult::default()
        }))
    }

    /// Returns whether every call has its result, so that the model is asked again.
    pub(super) fn all_done(&self) -> bool {
        self.open.is_empty()
    }
}

fn title(input: &Value) -> String {
    let text = TELLING.iter().find_map(|name| input.get(name)?.as_str());
    match text {
        Some(text) => one_line(text),
        None => one_line(&input.to_string()),
    }
}
