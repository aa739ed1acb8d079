//! A call of a tool, as the agent tells it: once whole, then in changes.

use serde_json::{Map, Value};

use crate::{agent::field::remove_text, permission::PermissionKind};

/// What one message says about a call. What it leaves out has not changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    /// The agent's id.
    pub(crate) id: String,
    /// One line for people; for a command the whole of it.
    pub(crate) title: Option<String>,
    /// What sort of tool it is, in the protocol's words.
    pub(crate) kind: Option<String>,
    /// The tool's own name, where the agent tells it.
    pub(crate) tool_name: Option<String>,
    /// The tool's arguments, where the agent tells them.
    pub(crate) raw_input: Option<Value>,
    /// The files that it is about.
    pub(crate) locations: Vec<Value>,
    /// What there is to see of it.
    pub(crate) content: Vec<Value>,
    raw_output: Option<Value>,
    stage: Option<Stage>,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Running,
    Completed,
    Failed,
}

impl Call {
    /// Reads one; `None` when it has no id.
    pub(super) fn read(mut fields: Map<String, Value>) -> Option<Self> {
        let list = |value: Option<Value>| match value {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let stage = match fields.get("status").and_then(Value::as_str) {
            Some("completed") => Some(Stage::Completed),
            Some("failed") => Some(Stage::Failed),
            Some("pending" | "in_progress") => Some(Stage::Running),
            _ => None,
        };
        let named = fields.get("_meta").and_then(|meta| meta.get("toolName")?.as_str());
        Some(Self {
            tool_name: named.filter(|name| !name.is_empty()).map(str::to_owned),
            id: remove_text(&mut fields, "toolCallId")?,
            title: remove_text(&mut fields, "title").filter(|title| !title.is_empty()),
            kind: remove_text(&mut fields, "kind"),
            raw_input: fields.remove("rawInput").filter(|value| !value.is_null()),
            locations: list(fields.remove("locations")),
            content: list(fields.remove("content")),
            raw_output: fields.remove("rawOutput").filter(|value| !value.is_null()),
            stage,
        })
    }

    /// Returns whether only the tool is known so far, perhaps with the directory,
    /// and what it is to do is not.
    pub(super) fn is_preparing(&self) -> bool {
        let says_nothing = self.raw_input.is_some() && self.arguments().is_none();
        says_nothing && self.stage == Some(Stage::Running)
    }

    /// Returns its arguments, where they say more than in which directory it is.
    pub(crate) fn arguments(&self) -> Option<&Value> {
        let says_something = |input: &&Value| match input {
            Value::Object(fields) => fields.keys().any(|key| key != "cwd"),
            Value::Array(items) => !items.is_empty(),
            Value::String(text) => !text.is_empty(),
            Value::Null => false,
            Value::Bool(_) | Value::Number(_) => true,
        };
        self.raw_input.as_ref().filter(says_something)
    }

    /// Returns what is known of it together with what is told now.
    pub(super) fn with(self, now: &Self) -> Self {
        let is_empty = |list: &[Value]| list.is_empty();
        Self {
            id: self.id,
            title: now.title.clone().or(self.title),
            kind: now.kind.clone().or(self.kind),
            tool_name: now.tool_name.clone().or(self.tool_name),
            raw_input: now.arguments().cloned().or(self.raw_input),
            locations: if is_empty(&now.locations) {
                self.locations
            } else {
                now.locations.clone()
            },
            content: if is_empty(&now.content) { self.content } else { now.content.clone() },
            raw_output: now.raw_output.clone().or(self.raw_output),
            stage: now.stage.or(self.stage),
        }
    }

    /// Returns the exit code of a command, where it is told.
    pub(super) fn exit_code(&self) -> Option<i32> {
        let output = self.raw_output.as_ref()?;
        let code = |value: &Value| {
            let code = ["exitCode", "exit_code", "exit"].iter().find_map(|name| value.get(name))?;
            i32::try_from(code.as_i64()?).ok()
        };
        let parts = output.get("contents").and_then(Value::as_array);
        let within = || output.get("metadata").and_then(code);
        code(output).or_else(within).or_else(|| parts?.iter().find_map(code))
    }

    /// Returns how far it is, if that is told.
    pub(super) fn stage(&self) -> Option<Stage> {
        self.stage
    }

    /// Returns what it is about.
    pub(super) fn permission_kind(&self) -> PermissionKind {
        match self.kind.as_deref() {
            Some("execute") => PermissionKind::Command,
            Some("edit" | "delete" | "move") => PermissionKind::Edit,
            Some("read" | "search") => PermissionKind::Read,
            Some("fetch") => PermissionKind::Network,
            _ => PermissionKind::Other,
        }
    }

    /// Returns the texts in its content.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|item| item.get("content")?.get("text")?.as_str())
    }

    /// Returns the changes in its content.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &Value> {
        self.content.iter().filter(|item| Self::is_change(item))
    }

    /// Returns whether a piece of content is a change of a file.
    pub(crate) fn is_change(item: &Value) -> bool {
        item.get("type").and_then(Value::as_str) == Some("diff")
    }

    /// Returns what the tool gave back, as far as it is told. Of a change that is
    /// the file: what it holds now was told by the call.
    pub(super) fn output(&self) -> String {
        let changed = self.changes().filter_map(|change| change.get("path")?.as_str());
        let told: Vec<&str> = self.texts().chain(changed).collect();
        match &self.raw_output {
            Some(Value::String(text)) if told.is_empty() => text.clone(),
            Some(value) if told.is_empty() => value.to_string(),
            _ => told.join("\n"),
        }
    }
}
