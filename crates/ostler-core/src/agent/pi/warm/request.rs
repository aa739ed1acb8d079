//! What is asked of the CLI, and which answer belongs to what.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::agent::{Action, TurnKey, pi::field};

/// Why something was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Whether the CLI is up, and in which session.
    Ready,
    /// That it goes to another session.
    Move,
    /// In which session it is now.
    Arrived,
    /// A prompt.
    Prompt(TurnKey),
    /// Whether it works on a prompt that it took.
    Works(TurnKey),
    /// A text for a turn that runs.
    Steer(TurnKey, String),
    /// That a turn ends.
    Abort(TurnKey),
    /// That what is queued is forgotten.
    Forget,
}

/// What the CLI answered.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) data: Value,
    /// Why not, if it did not do it.
    pub(super) error: Option<String>,
}

/// What was asked and is not answered yet.
#[derive(Debug, Default)]
pub(super) struct Requests {
    n_sent: u64,
    open: BTreeMap<u64, Purpose>,
}

impl Requests {
    /// Asks what the CLI is doing.
    pub(super) fn ask_state(&mut self, purpose: Purpose, out: &mut Vec<Action>) {
        self.send("get_state", json!({}), purpose, out);
    }

    /// Asks for anything.
    pub(super) fn send(
        &mut self,
        command: &str,
        mut fields: Value,
        purpose: Purpose,
        out: &mut Vec<Action>,
    ) {
        self.n_sent = self.n_sent.saturating_add(1);
        if let Value::Object(fields) = &mut fields {
            fields.insert("id".to_owned(), self.n_sent.to_string().into());
            fields.insert("type".to_owned(), command.into());
        }
        self.open.insert(self.n_sent, purpose);
        write(&fields, out);
    }

    /// Finds out what an answer belongs to.
    pub(super) fn take(&mut self, line: &mut Value) -> Option<(Purpose, Response)> {
        let purpose = self.open.remove(&field::text(line, "id")?.parse().ok()?)?;
        let has_worked = field::is_true(line, "success");
        let error = (!has_worked).then(|| field::take_text(line, "error").unwrap_or_default());
        Some((purpose, Response { data: field::take(line, "data"), error }))
    }

    /// Returns whether a text is on its way that the CLI may queue.
    pub(super) fn has_steering(&self) -> bool {
        self.open.values().any(|purpose| matches!(purpose, Purpose::Steer(..)))
    }
}

/// Writes one line.
pub(super) fn write(line: &Value, out: &mut Vec<Action>) {
    let mut bytes = line.to_string().into_bytes();
    bytes.push(b'\n');
    out.push(Action::Write(bytes));
}
