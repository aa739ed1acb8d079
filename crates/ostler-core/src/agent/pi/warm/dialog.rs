//! What extensions ask the user, and what they are told.
//!
//! The CLI itself asks nothing. Its extensions can put up dialogs, each of which
//! waits for its answer, and can show things, which wait for none.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::{
    request::write,
    timers::{Due, Timers},
};
use crate::{
    agent::{Action, TurnKey, emit::emit_warning, pi::field, words::one_line},
    permission::{Permission, PermissionKind, Ruling},
};

/// Who asks: the CLI does not tell which extension it is.
const TOOL: &str = "extension";

/// What extensions show and nobody answers, beside notices.
const SHOWN: [&str; 4] = ["setStatus", "setWidget", "setTitle", "set_editor_text"];

/// How a dialog is answered.
#[derive(Debug)]
enum Dialog {
    /// With one of these.
    Select(Vec<String>),
    /// With yes or no.
    Confirm,
    /// With a text.
    Text,
}

/// The dialogs of the running turn that wait for an answer.
#[derive(Debug, Default)]
pub(super) struct Dialogs {
    open: BTreeMap<String, Dialog>,
}

impl Dialogs {
    /// Reads a request of an extension; returns whether it was understood. In
    /// a turn that was told to end nobody is asked: it would wait for the answer.
    pub(super) fn hear(
        &mut self,
        line: &mut Value,
        turn: Option<TurnKey>,
        is_ending: bool,
        timers: &mut Timers,
        out: &mut Vec<Action>,
    ) -> bool {
        let Some(id) = field::take_text(line, "id") else { return false };
        let method = field::take_text(line, "method").unwrap_or_default();
        let dialog = match method.as_str() {
            "notify" => return notify(line, turn, out),
            method if SHOWN.contains(&method) => return true,
            "select" => Dialog::Select(choices(line)),
            "confirm" => Dialog::Confirm,
            "input" | "editor" => Dialog::Text,
            _ => {
                cancel(&id, out);
                return false;
            }
        };
        let Some(turn) = turn.filter(|_| !is_ending) else {
            // There is nobody who could be asked.
            cancel(&id, out);
            return true;
        };
        if self.open.contains_key(&id) {
            return false;
        }
        let timeout = field::number(line, "timeout");
        let permission = Box::new(permission(&id, &dialog, line));
        self.open.insert(id.clone(), dialog);
        out.push(Action::Ask { turn, permission });
        if let Some(timeout) = timeout {
            timers.arm(Due::Expired(id), Duration::from_millis(timeout), out);
        }
        true
    }

    /// Passes an answer on. To allow without a text says yes where that is
    /// asked; it is no answer to any other question, so that none is made up.
    pub(super) fn answer(&mut self, id: &str, ruling: &Ruling, out: &mut Vec<Action>) {
        let Some(dialog) = self.open.remove(id) else { return };
        let fields = match (dialog, ruling) {
            (Dialog::Confirm, Ruling::Allow { .. }) => Some(("confirmed", Value::Bool(true))),
            (Dialog::Select(choices), Ruling::Allow { text: Some(text) }) => {
                choice(&choices, text).map(|choice| ("value", choice.into()))
            }
            (Dialog::Text, Ruling::Allow { text: Some(text) }) => {
                Some(("value", text.as_str().into()))
            }
            (Dialog::Select(_) | Dialog::Text, Ruling::Allow { text: None })
            | (_, Ruling::Deny { .. }) => None,
        };
        match fields {
            Some((name, value)) => {
                write(&json!({"type": "extension_ui_response", "id": id, name: value}), out);
            }
            None => cancel(id, out),
        }
    }

    /// The CLI waits no longer for an answer.
    pub(super) fn expire(&mut self, id: &str, turn: TurnKey, out: &mut Vec<Action>) {
        if self.open.remove(id).is_some() {
            out.push(Action::Withdraw { turn, request: id.to_owned() });
        }
    }

    /// Nobody will answer any more.
    pub(super) fn dismiss(&mut self, out: &mut Vec<Action>) {
        for id in std::mem::take(&mut self.open).into_keys() {
            cancel(&id, out);
        }
    }
}

fn cancel(id: &str, out: &mut Vec<Action>) {
    write(&json!({"type": "extension_ui_response", "id": id, "cancelled": true}), out);
}

/// Passes on what an extension says. What is not a warning has no event of its
/// own, so that it is passed on as it is.
fn notify(line: &mut Value, turn: Option<TurnKey>, out: &mut Vec<Action>) -> bool {
    let Some(turn) = turn else { return true };
    if !matches!(field::text(line, "notifyType"), Some("warning" | "error")) {
        return false;
    }
    let text = field::take_text(line, "message").unwrap_or_default();
    emit_warning(turn, text, out);
    true
}

fn permission(id: &str, dialog: &Dialog, line: &mut Value) -> Permission {
    let title = field::take_text(line, "title").unwrap_or_default();
    let (kind, options) = match dialog {
        Dialog::Select(choices) => (PermissionKind::Question, choices.clone()),
        Dialog::Confirm => (PermissionKind::Other, Permission::decisions()),
        Dialog::Text => (PermissionKind::Question, Vec::new()),
    };
    let more = ["message", "placeholder", "prefill"];
    let more = more.map(|key| (key, field::take_kept(line, key)));
    let told: serde_json::Map<String, Value> = more
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .chain([("title".to_owned(), title.as_str().into())])
        .collect();
    let message = told.get("message").and_then(Value::as_str).unwrap_or_default();
    let title = if message.is_empty() { title } else { format!("{title}: {}", one_line(message)) };
    Permission {
        request: id.to_owned(),
        kind,
        tool: TOOL.to_owned(),
        title,
        input: Some(told.into()),
        options,
        expires_at: None,
    }
}

fn choices(line: &Value) -> Vec<String> {
    let options = line.get("options").and_then(Value::as_array);
    options.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Finds the choice that was meant.
fn choice<'a>(choices: &'a [String], text: &str) -> Option<&'a str> {
    let wanted = text.trim().to_lowercase();
    choices.iter().find(|choice| choice.trim().to_lowercase() == wanted).map(String::as_str)
}
