//! Reads the flat lines of an older design: `init`, `message`, `tool_use`,
//! `tool_result`, and a `result` that `outcome` reads with the others.
//!
//! Nobody recorded them, so several names are taken for each field.

use serde_json::Value;

use super::{blocks::BlockKind, field, tool, turn::Turn};
use crate::agent::Action;

impl Turn {
    /// Reads one line; returns whether it was understood.
    pub(super) fn flat(&mut self, line: &mut Value, out: &mut Vec<Action>) -> bool {
        match line.get("type").and_then(Value::as_str) {
            Some("init") => {
                self.begin(line, out);
                true
            }
            Some("message") => self.flat_message(line, out),
            Some("tool_use") => {
                self.open_by(line, out);
                let tool = take_string(line, &["tool", "name", "tool_name"]).unwrap_or_default();
                let id = take_string(line, &["id", "tool_use_id", "tool_id"]);
                let id = id.unwrap_or_else(|| format!("call-{}", self.calls.len() + 1));
                let input = field::take_first(line, &["input", "arguments", "parameters"]);
                self.last_call = Some(id.clone());
                self.tool_use(id, tool, input, None, out);
                true
            }
            Some("tool_result") => {
                self.open_by(line, out);
                self.flat_result(line, out);
                true
            }
            Some(_) | None => false,
        }
    }

    fn flat_message(&mut self, line: &mut Value, out: &mut Vec<Action>) -> bool {
        let content = ["content", "text", "message"]
            .into_iter()
            .find(|key| line.get(key).is_some_and(|value| !value.is_null()));
        let Some(key) = content else {
            return false;
        };
        self.open_by(line, out);
        if field::text(line, "role") == Some("user") {
            return true;
        }
        let mut content = line.get_mut(key).map(Value::take).unwrap_or_default();
        if content.is_object() {
            content = field::take_first(&mut content, &["content", "text"]).unwrap_or_default();
        }
        let text = tool::output_text(content);
        self.answered = true;
        self.whole("", None, BlockKind::Output, text, out);
        true
    }

    fn flat_result(&mut self, line: &mut Value, out: &mut Vec<Action>) {
        let id = take_string(line, &["tool_use_id", "id", "tool_id"]);
        let id = id.or_else(|| self.last_call.take()).unwrap_or_default();
        if let Some(tool) = take_string(line, &["tool", "name", "tool_name"]) {
            self.calls.entry(id.clone()).or_insert(tool);
        }
        let output = field::take_first(line, &["output", "content", "result"]);
        let block = serde_json::json!({
            "tool_use_id": id,
            "content": output.unwrap_or_default(),
            "is_error": field::is_true(line, "is_error"),
        });
        self.tool_result(block, None, None, out);
    }
}

fn take_string(line: &mut Value, keys: &[&str]) -> Option<String> {
    match field::take_first(line, keys) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        Some(_) | None => None,
    }
}
