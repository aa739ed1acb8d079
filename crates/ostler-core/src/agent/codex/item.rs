//! The items that a turn of Codex consists of: messages, thoughts, tool calls.
//!
//! Reads one item out of its JSON. Fields that are missing or of another type
//! than expected are empty; an item of an unknown type is nothing.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::{
    agent::{field::remove_text, words::one_line},
    event::{EventBody, ToolResult},
};

/// One item.
pub(super) enum Item {
    /// Something said: commentary or the answer.
    Message { id: String, text: String },
    /// Something thought.
    Reasoning { id: String, text: String },
    /// Something that does not end the turn, in spite of its name.
    Error { message: String },
    /// Something done.
    Tool(Box<Tool>),
}

/// A call of a tool, and what came of it once it is complete.
pub(super) struct Tool {
    pub(super) input: Option<Value>,
    pub(super) title: String,
    /// Whether the input changes while the call goes on.
    pub(super) is_plan: bool,
    pub(super) result: ToolResult,
}

/// How far an item has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Started,
    Updated,
    Completed,
}

impl Tool {
    /// Returns what to tell of the call at this stage. The call itself comes
    /// first even when the CLI tells no more than its end.
    pub(super) fn events(self, stage: Stage, is_first: bool) -> Vec<EventBody> {
        let Self { input, title, is_plan, result } = self;
        let call =
            EventBody::ToolUse { id: result.id.clone(), tool: result.tool.clone(), input, title };
        match stage {
            Stage::Started => vec![call],
            Stage::Updated if is_plan => vec![call],
            Stage::Updated => vec![],
            Stage::Completed if is_first => vec![call, EventBody::ToolResult(result)],
            Stage::Completed => vec![EventBody::ToolResult(result)],
        }
    }
}

/// Reads an item; `None` when its type is not known.
pub(super) fn read(mut fields: Map<String, Value>) -> Option<Item> {
    let kind = remove_text(&mut fields, "type")?;
    let id = remove_text(&mut fields, "id").unwrap_or_default();
    let item = match kind.as_str() {
        "agent_message" => {
            Item::Message { id, text: remove_text(&mut fields, "text").unwrap_or_default() }
        }
        "reasoning" => {
            Item::Reasoning { id, text: remove_text(&mut fields, "text").unwrap_or_default() }
        }
        "error" => Item::Error { message: remove_text(&mut fields, "message").unwrap_or_default() },
        "command_execution" => Item::tool(command(fields), id, kind),
        "file_change" => Item::tool(file_change(fields), id, kind),
        "mcp_tool_call" => {
            let name = mcp_name(&fields).unwrap_or(kind);
            Item::tool(mcp_call(fields), id, name)
        }
        "web_search" => Item::tool(web_search(fields), id, kind),
        "todo_list" => Item::tool(todo_list(fields), id, kind),
        "collab_tool_call" => Item::tool(collaboration(fields), id, kind),
        _ => return None,
    };
    Some(item)
}

impl Item {
    fn tool(mut tool: Tool, id: String, name: String) -> Self {
        tool.result.id = id;
        tool.result.tool = name;
        Self::Tool(Box::new(tool))
    }
}

fn command(mut fields: Map<String, Value>) -> Tool {
    let command = remove_text(&mut fields, "command").unwrap_or_default();
    let exit_code =
        fields.get("exit_code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    Tool {
        title: one_line(&command),
        is_plan: false,
        result: ToolResult {
            output: remove_text(&mut fields, "aggregated_output").unwrap_or_default(),
            is_error: has_failed(&fields) || exit_code.is_some_and(|code| code != 0),
            exit_code,
            ..ToolResult::default()
        },
        input: Some(object("command", Value::String(command))),
    }
}

fn file_change(mut fields: Map<String, Value>) -> Tool {
    let is_error = has_failed(&fields);
    let changes = fields.remove("changes").unwrap_or(Value::Null);
    let mut output = String::new();
    for change in changes.as_array().into_iter().flatten() {
        let word = |name: &str| change.get(name).and_then(Value::as_str).unwrap_or_default();
        let separator = if output.is_empty() { "" } else { "\n" };
        // Writing to a string cannot fail.
        write!(output, "{separator}{} {}", word("kind"), word("path")).ok();
    }
    Tool {
        title: output.replace('\n', ", "),
        is_plan: false,
        result: ToolResult { output, is_error, ..ToolResult::default() },
        input: Some(object("changes", changes)),
    }
}

fn mcp_name(fields: &Map<String, Value>) -> Option<String> {
    let server = fields.get("server")?.as_str()?;
    let tool = fields.get("tool")?.as_str()?;
    Some(format!("{server}.{tool}"))
}

fn mcp_call(mut fields: Map<String, Value>) -> Tool {
    let error = fields.get("error").and_then(|error| {
        let message = error.get("message").unwrap_or(error);
        let text = message.as_str().map(str::to_owned);
        text.or_else(|| (!message.is_null()).then(|| message.to_string()))
    });
    let is_error = error.is_some() || has_failed(&fields);
    let output = error.unwrap_or_else(|| mcp_output(fields.get("result")));
    let input = fields.remove("arguments").filter(|value| !value.is_null());
    Tool {
        title: input.as_ref().map(|value| one_line(&value.to_string())).unwrap_or_default(),
        is_plan: false,
        result: ToolResult { output, is_error, ..ToolResult::default() },
        input,
    }
}

/// The texts of a result; what is not text as JSON.
fn mcp_output(result: Option<&Value>) -> String {
    let Some(result) = result.filter(|value| !value.is_null()) else {
        return String::new();
    };
    let Some(content) = result.get("content").and_then(Value::as_array) else {
        return result.to_string();
    };
    let parts: Vec<String> = content
        .iter()
        .map(|part| match part.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => part.to_string(),
        })
        .collect();
    parts.join("\n")
}

fn web_search(mut fields: Map<String, Value>) -> Tool {
    let query = remove_text(&mut fields, "query").unwrap_or_default();
    Tool {
        title: one_line(&query),
        is_plan: false,
        result: ToolResult { is_error: has_failed(&fields), ..ToolResult::default() },
        input: Some(object("query", Value::String(query))),
    }
}

fn todo_list(mut fields: Map<String, Value>) -> Tool {
    let items = fields.remove("items").unwrap_or(Value::Null);
    let mut output = String::new();
    let (mut n_done, mut n_all) = (0, 0);
    for item in items.as_array().into_iter().flatten() {
        let is_done = item.get("completed").and_then(Value::as_bool) == Some(true);
        let text = item.get("text").and_then(Value::as_str).unwrap_or_default();
        let separator = if output.is_empty() { "" } else { "\n" };
        let mark = if is_done { 'x' } else { ' ' };
        // Writing to a string cannot fail.
        write!(output, "{separator}[{mark}] {text}").ok();
        n_all += 1;
        n_done += u32::from(is_done);
    }
    Tool {
        title: format!("{n_done} of {n_all} done"),
        is_plan: true,
        result: ToolResult { output, ..ToolResult::default() },
        input: Some(object("items", items)),
    }
}

fn collaboration(mut fields: Map<String, Value>) -> Tool {
    let is_error = has_failed(&fields);
    fields.remove("status");
    let states = fields.remove("agents_states").filter(|value| !value.is_null());
    let title = ["tool", "prompt"]
        .into_iter()
        .filter_map(|name| fields.get(name).and_then(Value::as_str))
        .collect::<Vec<_>>()
        .join(": ");
    Tool {
        title: one_line(&title),
        is_plan: false,
        result: ToolResult {
            output: states.map(|value| value.to_string()).unwrap_or_default(),
            is_error,
            ..ToolResult::default()
        },
        input: Some(Value::Object(fields)),
    }
}

fn has_failed(fields: &Map<String, Value>) -> bool {
    matches!(fields.get("status").and_then(Value::as_str), Some("failed" | "declined"))
}

/// The text of an older message: a string, or parts that have one each.
pub(super) fn content_text(content: Value) -> Option<String> {
    if let Value::String(text) = content {
        return Some(text);
    }
    let parts = content.as_array()?.iter();
    Some(parts.filter_map(|part| part.get("text")?.as_str()).collect())
}

fn object(name: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), value)]))
}
