//! What tools are called with and give back, in words for people.

use serde_json::Value;

use super::field;
use crate::event::ToolResult;

/// The longest title in characters.
const MAX_TITLE: usize = 120;

/// The argument that says best what a call is about.
const TITLES: &[(&str, &str)] = &[
    ("Agent", "description"),
    ("Bash", "command"),
    ("Edit", "file_path"),
    ("Glob", "pattern"),
    ("Grep", "pattern"),
    ("MultiEdit", "file_path"),
    ("NotebookEdit", "notebook_path"),
    ("Read", "file_path"),
    ("Skill", "skill"),
    ("Task", "description"),
    ("WebFetch", "url"),
    ("WebSearch", "query"),
    ("Write", "file_path"),
];

/// Returns what a call is about, whole: the command, the path.
pub(super) fn subject<'a>(tool: &str, input: &'a Value) -> Option<&'a str> {
    let (_, key) = TITLES.iter().find(|(name, _)| *name == tool)?;
    field::text(input, key)
}

/// Returns one line for people.
pub(super) fn title(tool: &str, input: &Value) -> String {
    let argument =
        subject(tool, input).and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
    let line = argument.unwrap_or(tool).trim();
    match line.char_indices().nth(MAX_TITLE) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// Makes a result of a `tool_result` block and the fields beside its message.
pub(super) fn result(
    block: &mut Value,
    details: Option<&Value>,
    id: String,
    tool: String,
) -> ToolResult {
    let is_error = field::is_true(block, "is_error");
    let output = block.get_mut("content").map(Value::take).map(output_text);
    let output = output.unwrap_or_default();
    let kept_elsewhere = details.is_some_and(|details| {
        field::text(details, "persistedOutputPath").is_some()
            || field::is_true(details, "truncated")
    });
    ToolResult {
        exit_code: exit_code(&tool, is_error, &output),
        truncated: kept_elsewhere || output.starts_with("<persisted-output>"),
        id,
        tool,
        output,
        is_error,
    }
}

/// Returns what a tool gave back as text: a string, or blocks of content.
pub(super) fn output_text(content: Value) -> String {
    match content {
        Value::String(text) => text,
        Value::Null => String::new(),
        Value::Array(blocks) => {
            let texts: Vec<_> = blocks.into_iter().map(block_text).collect();
            texts.join("\n")
        }
        other @ (Value::Bool(_) | Value::Number(_) | Value::Object(_)) => other.to_string(),
    }
}

fn block_text(mut block: Value) -> String {
    match field::text(&block, "type") {
        Some("text") => field::take_text(&mut block, "text").unwrap_or_default(),
        // Its data is megabytes of base64 that no reader of text wants.
        Some("image") => "[image]".to_owned(),
        Some(_) => block.to_string(),
        None => output_text(block),
    }
}

/// Reads the code of a failed command from the first line of its output. That
/// of a successful one is not told, and need not be 0: the CLI takes a `grep`
/// without matches for a success.
fn exit_code(tool: &str, is_error: bool, output: &str) -> Option<i32> {
    if tool != "Bash" || !is_error {
        return None;
    }
    let first = output.lines().next()?;
    first.strip_prefix("Exit code ")?.trim().parse().ok()
}
