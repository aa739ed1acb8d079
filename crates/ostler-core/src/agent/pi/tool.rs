//! The CLI's tools: which of them a turn may use, and what their calls tell.

use serde_json::Value;

use super::{field, launch::Extensions};
use crate::{
    agent::{Launch, command_line::warn_if_refused},
    event::{EventBody, Mode, ToolResult},
    request::Permissions,
};

/// The tools that look but do not touch.
pub(super) const READ_ONLY: [&str; 4] = ["read", "grep", "find", "ls"];
/// The tools that the CLI offers when nothing is said.
const USUAL: [&str; 4] = ["read", "bash", "edit", "write"];

/// Names that other agents have for the same tools, in lower case.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("glob", "find"),
    ("list", "ls"),
    ("list_directory", "ls"),
    ("multiedit", "edit"),
    ("read_file", "read"),
    ("replace", "edit"),
    ("run_shell_command", "bash"),
    ("shell", "bash"),
    ("write_file", "write"),
];

/// The argument that says best what a call is about.
const TITLES: &[(&str, &str)] = &[
    ("bash", "command"),
    ("edit", "path"),
    ("find", "pattern"),
    ("grep", "pattern"),
    ("ls", "path"),
    ("read", "path"),
    ("write", "path"),
];
/// The longest title in characters.
const MAX_TITLE: usize = 120;
/// What the CLI puts below the output of a command that failed.
const EXIT_MARK: &str = "Command exited with code ";

/// Which tools a turn may use.
pub(super) struct Selection {
    /// The only ones, or what the CLI makes of silence.
    tools: Option<Vec<String>>,
    /// What could not be done as asked.
    pub(super) warnings: Vec<String>,
}

impl Selection {
    pub(super) fn of(launch: &Launch<'_>, extensions: Extensions) -> Self {
        let options = launch.options;
        let read_only = options.permissions != Permissions::Bypass;
        let names = |tools: &[&str]| tools.iter().map(|name| (*name).to_owned()).collect();
        let Some(asked) = &options.allowed_tools else {
            // From 1.5 on a session keeps the selection of its last turn, which
            // may have been a read-only one; a kept process can go to any session.
            let may_be_kept = launch.mode == Mode::Warm || launch.open.memo().is_some();
            let tools = match extensions {
                _ if read_only => Some(names(&READ_ONLY)),
                Extensions::Off if may_be_kept => Some(names(&USUAL)),
                Extensions::Off | Extensions::Loaded => None,
            };
            return Self { tools, warnings: Vec::new() };
        };
        let mut tools: Vec<String> = Vec::new();
        let mut warnings = Vec::new();
        for rule in asked {
            let name = rule.split_once('(').map_or(rule.as_str(), |(name, _)| name).trim();
            let tool = match (own_name(name), extensions) {
                (Some(tool), _) => tool.to_owned(),
                (None, Extensions::Loaded) => {
                    warnings.push(format!("pi has no tool {name:?}, unless an extension has"));
                    name.to_owned()
                }
                (None, Extensions::Off) => {
                    warnings.push(format!("pi has no tool {name:?}; it is ignored"));
                    continue;
                }
            };
            if read_only && !READ_ONLY.contains(&tool.as_str()) {
                warn_if_refused(&mut warnings, &[name]);
                continue;
            }
            if name != rule {
                warnings.push(format!("{rule}: pi has no rules, so the whole tool is allowed"));
            }
            if !tools.contains(&tool) {
                tools.push(tool);
            }
        }
        Self { tools: Some(tools), warnings }
    }

    /// Returns the arguments that say so.
    pub(super) fn arguments(&self) -> Vec<String> {
        match &self.tools {
            None => Vec::new(),
            Some(tools) if tools.is_empty() => vec!["--no-tools".to_owned()],
            Some(tools) => vec!["--tools".to_owned(), tools.join(",")],
        }
    }
}

/// Returns the CLI's own name of a tool. It ignores any other spelling, and with
/// nothing but those it runs without tools.
fn own_name(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let own = USUAL.iter().chain(&READ_ONLY).copied().find(|own| *own == name);
    own.or_else(|| OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, own)| *own))
}

/// Makes an event of the start of a call.
pub(super) fn call(line: &mut Value) -> Option<EventBody> {
    let id = field::take_text(line, "toolCallId")?;
    let tool = field::take_text(line, "toolName").unwrap_or_default();
    let input = field::take(line, "args");
    let title = title(&tool, &input);
    let input = (!input.is_null()).then_some(input);
    Some(EventBody::ToolUse { id, tool, input, title })
}

/// Makes an event of the end of a call.
pub(super) fn result(line: &mut Value) -> Option<EventBody> {
    let id = field::take_text(line, "toolCallId")?;
    let tool = field::take_text(line, "toolName").unwrap_or_default();
    let is_error = field::is_true(line, "isError");
    let mut result = field::take(line, "result");
    let output = field::content_text(&mut field::take(&mut result, "content"));
    let told = field::take(&mut result, "structuredContent");
    let cut = result.pointer("/details/truncation");
    Some(EventBody::ToolResult(ToolResult {
        exit_code: exit_code(&tool, is_error, &told, &output),
        truncated: field::is_true(&told, "truncated")
            || cut.is_some_and(|cut| field::is_true(cut, "truncated")),
        id,
        tool,
        output,
        is_error,
    }))
}

/// Returns the exit code of a command: newer versions tell it, older ones write
/// that of a failed command below its output.
fn exit_code(tool: &str, is_error: bool, told: &Value, output: &str) -> Option<i32> {
    if let Some(code) = told.get("exit_code").and_then(Value::as_i64) {
        return i32::try_from(code).ok();
    }
    if tool != "bash" || !is_error {
        return None;
    }
    output.lines().next_back()?.strip_prefix(EXIT_MARK)?.trim().parse().ok()
}

/// Returns one line for people.
fn title(tool: &str, input: &Value) -> String {
    let argument = TITLES
        .iter()
        .find(|(name, _)| *name == tool)
        .and_then(|(_, key)| field::text(input, key))
        .and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
    let line = argument.unwrap_or(tool).trim();
    match line.char_indices().nth(MAX_TITLE) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}
