//! Tool calls, which OpenCode tells of when they are over.

use serde_json::{Map, Value};

use super::message::take_object;
use crate::{
    agent::{field::remove_text, words::one_line},
    event::{EventBody, ToolResult},
};

/// What stands in for a tool that does not exist or was called wrongly.
const INVALID: &str = "invalid";
/// The fields of a call that tell the most about it, the best first.
const TITLES: &[&str] =
    &["command", "filePath", "path", "pattern", "query", "url", "description", "name", "error"];
/// How the CLI says that it refused a permission.
const REJECTED: &str = "The user rejected permission";

/// A call and what came of it.
#[derive(Debug)]
pub(super) struct Tool {
    /// The CLI's id of the record, unique in a session.
    pub(super) part: String,
    /// Whether it is an old call whose record was made shorter just now.
    pub(super) is_old: bool,
    /// Whether a permission that nobody gave ended it, and the turn with it.
    pub(super) is_rejected: bool,
    /// Its arguments, once they are whole.
    pub(super) input: Option<Value>,
    /// One line for people.
    pub(super) title: String,
    result: ToolResult,
}

impl Tool {
    /// Reads the record of a call.
    pub(super) fn read(mut part: Map<String, Value>) -> Self {
        let mut state = take_object(&mut part, "state");
        let mut input = state.remove("input").filter(|input| !input.is_null());
        let mut tool = remove_text(&mut part, "tool").unwrap_or_default();
        let is_invalid = tool == INVALID;
        if is_invalid && let Some(Value::Object(fields)) = &mut input {
            tool = remove_text(fields, "tool").unwrap_or(tool);
        }
        let metadata = take_object(&mut state, "metadata");
        let exit_code = metadata.get("exit").and_then(Value::as_i64);
        let exit_code = exit_code.and_then(|code| i32::try_from(code).ok());
        let has_failed = state.get("status").and_then(Value::as_str) == Some("error");
        let name = if has_failed { "error" } else { "output" };
        let output = remove_text(&mut state, name).unwrap_or_default();
        let title =
            remove_text(&mut state, "title").filter(|title| !title.is_empty() && !is_invalid);
        Self {
            part: remove_text(&mut part, "id").unwrap_or_default(),
            is_old: state.get("time").is_some_and(|time| time.get("compacted").is_some()),
            is_rejected: has_failed && output.starts_with(REJECTED),
            title: one_line(&title.unwrap_or_else(|| title_of(input.as_ref()))),
            result: ToolResult {
                id: remove_text(&mut part, "callID").unwrap_or_default(),
                tool,
                is_error: has_failed || is_invalid || exit_code.is_some_and(|code| code != 0),
                output,
                exit_code,
                truncated: metadata.get("truncated").and_then(Value::as_bool) == Some(true),
            },
            input,
        }
    }

    /// Returns its name.
    pub(super) fn name(&self) -> &str {
        &self.result.tool
    }

    /// Returns the id of the call, which some providers use more than once.
    pub(super) fn call(&self) -> &str {
        &self.result.id
    }

    /// Returns why it failed, or what it printed.
    pub(super) fn output(&self) -> &str {
        &self.result.output
    }

    /// Returns the call and its result under an id of our choice.
    pub(super) fn events(mut self, id: String) -> [EventBody; 2] {
        let input = self.input.take();
        [self.begun(id.clone(), input), self.ended(id)]
    }

    /// Returns the call under an id of our choice.
    pub(super) fn begun(&self, id: String, input: Option<Value>) -> EventBody {
        let (tool, title) = (self.result.tool.clone(), self.title.clone());
        EventBody::ToolUse { id, tool, input, title }
    }

    /// Returns its result under an id of our choice.
    pub(super) fn ended(self, id: String) -> EventBody {
        EventBody::ToolResult(ToolResult { id, ..self.result })
    }
}

pub(super) fn title_of(input: Option<&Value>) -> String {
    let Some(input) = input else {
        return String::new();
    };
    let field = TITLES.iter().find_map(|name| input.get(name).and_then(Value::as_str));
    field.map_or_else(|| input.to_string(), str::to_owned)
}
