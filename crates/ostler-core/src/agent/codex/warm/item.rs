//! The server's items, brought into the shape in which `codex exec` prints them.
//!
//! Both tell the same things; the server names them in another case and tells
//! more. What a shared shape means is in the other `item`.

use serde_json::{Map, Value};

use crate::{
    agent::{
        codex::item::{self, Item, Tool},
        field::remove_text,
        words::one_line,
    },
    event::ToolResult,
};

/// Types that both have, by the server's name and that of `codex exec`.
const TYPES: &[(&str, &str)] = &[
    ("agentMessage", "agent_message"),
    ("commandExecution", "command_execution"),
    ("fileChange", "file_change"),
    ("mcpToolCall", "mcp_tool_call"),
    ("webSearch", "web_search"),
    ("collabAgentToolCall", "collab_tool_call"),
];

/// Fields of those, likewise.
const FIELDS: &[(&str, &str)] = &[
    ("aggregatedOutput", "aggregated_output"),
    ("exitCode", "exit_code"),
    ("agentsStates", "agents_states"),
];

/// Fields that tell a reader nothing.
const NOISE: &[&str] = &["startedAtMs", "completedAtMs"];

/// Types of which nothing is told: our own words, and what other items or the
/// answer tell as well.
const QUIET: &[&str] = &[
    "userMessage",
    "hookPrompt",
    "functionCallOutput",
    "plan",
    "subAgentActivity",
    "sleep",
    "enteredReviewMode",
    "exitedReviewMode",
];

/// What an item is.
pub(super) enum Read {
    /// Something that `codex exec` would tell, too.
    Item(Item),
    /// The history was made shorter.
    Compaction,
    /// Nothing to tell.
    Quiet,
    /// Nothing known.
    Unknown,
}

/// Reads an item.
pub(super) fn read(mut fields: Map<String, Value>) -> Read {
    let Some(kind) = remove_text(&mut fields, "type") else {
        return Read::Unknown;
    };
    for name in NOISE {
        fields.remove(*name);
    }
    let item = match kind.as_str() {
        "contextCompaction" => return Read::Compaction,
        "reasoning" => Some(reasoning(fields)),
        "imageView" => Some(seen_image(fields)),
        "imageGeneration" | "dynamicToolCall" => Some(other_tool(&kind, fields)),
        kind if QUIET.contains(&kind) => return Read::Quiet,
        kind => shared(kind, fields),
    };
    item.map_or(Read::Unknown, Read::Item)
}

fn shared(kind: &str, mut fields: Map<String, Value>) -> Option<Item> {
    let (_, kind) = TYPES.iter().find(|(known, _)| *known == kind)?;
    fields.insert("type".to_owned(), Value::from(*kind));
    for (ours, theirs) in FIELDS {
        if let Some(value) = fields.remove(*ours) {
            fields.insert((*theirs).to_owned(), value);
        }
    }
    if let Some(changes) = fields.get_mut("changes").and_then(Value::as_array_mut) {
        changes.iter_mut().for_each(flatten_kind);
    }
    item::read(fields)
}

/// The server tells a change's kind as an object of its own.
fn flatten_kind(change: &mut Value) {
    let kind = change.get("kind").and_then(|kind| kind.get("type")).cloned();
    if let (Some(kind), Some(known)) = (kind, change.get_mut("kind")) {
        *known = kind;
    }
}

fn reasoning(mut fields: Map<String, Value>) -> Item {
    let mut text = |name: &str| {
        let parts = fields.remove(name);
        let parts = parts.as_ref().and_then(Value::as_array).into_iter().flatten();
        parts.filter_map(Value::as_str).collect::<Vec<_>>().join("\n\n")
    };
    let (summary, content) = (text("summary"), text("content"));
    let text = if summary.is_empty() { content } else { summary };
    Item::Reasoning { id: remove_text(&mut fields, "id").unwrap_or_default(), text }
}

fn seen_image(mut fields: Map<String, Value>) -> Item {
    let id = remove_text(&mut fields, "id").unwrap_or_default();
    let path = fields.get("path").and_then(Value::as_str).unwrap_or_default();
    tool("view_image".to_owned(), id, one_line(path), false, fields)
}

fn other_tool(kind: &str, mut fields: Map<String, Value>) -> Item {
    let id = remove_text(&mut fields, "id").unwrap_or_default();
    let name = remove_text(&mut fields, "tool").unwrap_or_else(|| kind.to_owned());
    let is_error = matches!(fields.get("status").and_then(Value::as_str), Some("failed"));
    let title = fields.get("arguments").map(|value| one_line(&value.to_string()));
    tool(name, id, title.unwrap_or_default(), is_error, fields)
}

fn tool(name: String, id: String, title: String, is_error: bool, rest: Map<String, Value>) -> Item {
    let result = ToolResult { id, tool: name, is_error, ..ToolResult::default() };
    Item::Tool(Box::new(Tool { input: Some(Value::Object(rest)), title, is_plan: false, result }))
}

/// Makes the steps of a plan the list that `codex exec` prints.
pub(super) fn plan(steps: &Value) -> Option<Tool> {
    let items = steps.as_array()?.iter().map(|step| {
        let is_done = step.get("status").and_then(Value::as_str) == Some("completed");
        serde_json::json!({ "text": step.get("step"), "completed": is_done })
    });
    let items: Vec<Value> = items.collect();
    let list = serde_json::json!({ "type": "todo_list", "id": "plan", "items": items });
    let Value::Object(fields) = list else { return None };
    match item::read(fields) {
        Some(Item::Tool(tool)) => Some(*tool),
        _ => None,
    }
}
