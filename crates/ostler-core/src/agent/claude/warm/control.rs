//! The control protocol's messages: ours, and how the CLI's are answered.
//!
//! A line that is not JSON would end the process, so every one is made here.

use serde_json::{Value, json};

use crate::agent::{Action, TurnKey};

/// What we want of the CLI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// To say that it is there.
    Initialize,
    /// To go on with another model, for the sake of this turn.
    SetModel { turn: TurnKey, model: String },
    /// To end the running turn, and with `queued` what waits behind it.
    Interrupt { queued: bool },
    /// To end something that runs in the background.
    StopTask(String),
}

impl Wish {
    fn request(&self) -> Value {
        match self {
            Self::Initialize => json!({"subtype": "initialize"}),
            Self::SetModel { model, .. } => json!({"subtype": "set_model", "model": model}),
            Self::Interrupt { queued: true } => {
                json!({"subtype": "interrupt", "cancel_queued": true})
            }
            Self::Interrupt { queued: false } => json!({"subtype": "interrupt"}),
            Self::StopTask(task) => json!({"subtype": "stop_task", "task_id": task}),
        }
    }
}

/// Our requests that the CLI has not answered.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    n_made: u32,
    open: Vec<(String, Wish)>,
}

impl Wishes {
    /// Asks for something.
    pub(super) fn ask(&mut self, wish: Wish, out: &mut Vec<Action>) {
        self.n_made = self.n_made.wrapping_add(1);
        let id = format!("ostler-{}", self.n_made);
        let line = json!({"type": "control_request", "request_id": id, "request": wish.request()});
        write(&line, out);
        self.open.push((id, wish));
    }

    /// Finds what an answer is about; the CLI answers once.
    pub(super) fn answered(&mut self, answer: &Value) -> Option<Wish> {
        let id = answer.get("request_id").and_then(Value::as_str)?;
        let at = self.open.iter().position(|(known, _)| known == id)?;
        Some(self.open.remove(at).1)
    }

    /// Returns whether the CLI owes an answer.
    pub(super) fn any_open(&self) -> bool {
        !self.open.is_empty()
    }
}

fn reply(request: &str, response: Value, out: &mut Vec<Action>) {
    let response = json!({"subtype": "success", "request_id": request, "response": response});
    write(&json!({"type": "control_response", "response": response}), out);
}

/// Lets a tool run with this input.
pub(super) fn allow(request: &str, input: Value, out: &mut Vec<Action>) {
    reply(request, json!({"behavior": "allow", "updatedInput": input}), out);
}

/// Forbids a tool; the model reads why, and the turn goes on.
pub(super) fn deny(request: &str, why: &str, out: &mut Vec<Action>) {
    reply(request, json!({"behavior": "deny", "message": why}), out);
}

/// Answers a request that is not understood, so that the CLI does not wait.
pub(super) fn refuse(request: &str, subtype: &str, out: &mut Vec<Action>) {
    let error = format!("not supported: {subtype}");
    let response = json!({"subtype": "error", "request_id": request, "error": error});
    write(&json!({"type": "control_response", "response": response}), out);
}

fn write(line: &Value, out: &mut Vec<Action>) {
    out.push(Action::Write(format!("{line}\n").into_bytes()));
}
