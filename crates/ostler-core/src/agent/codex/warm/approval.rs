//! What the server asks while a turn runs: approvals, questions, forms.
//!
//! Reads a request into what a person is shown, and makes the reply of what was
//! decided. The server is told *once*: each of its own ways to say *always* has
//! another scope.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use crate::{
    agent::field::remove_text,
    permission::{Permission, PermissionKind, Ruling},
};

/// A request of the server, as far as it is understood.
pub(super) struct Request {
    subject: Subject,
    /// The questions that are still to be asked, of which the first is asked now.
    questions: VecDeque<Question>,
    answers: Map<String, Value>,
}

/// Which reply is wanted.
enum Subject {
    /// Whether a command runs or a file changes.
    Decision,
    /// Which of these further permissions are granted.
    Permissions(Value),
    /// Whether something that a tool server wants may be.
    Consent,
    /// What the user says.
    Questions,
}

struct Question {
    id: String,
    text: String,
    choices: Vec<String>,
}

/// What follows from a decision.
pub(super) enum Next {
    /// The server gets this.
    Reply(Value),
    /// There is another question.
    Ask(Box<Permission>),
}

/// The call that a request is about, as it was told when it began.
#[derive(Clone, Debug, Default)]
pub(super) struct CallInfo {
    pub(super) title: String,
    pub(super) input: Option<Value>,
}

/// Reads a request that can be decided; `None` when it cannot.
pub(super) fn read(
    method: &str,
    mut params: Map<String, Value>,
    call: &CallInfo,
) -> Option<(Request, Permission)> {
    let (subject, permission) = match method {
        "item/commandExecution/requestApproval" => (Subject::Decision, command(params, call)),
        "item/fileChange/requestApproval" => (Subject::Decision, file_change(params, call)),
        "item/permissions/requestApproval" => {
            let wanted = params.remove("permissions").filter(Value::is_object)?;
            let shown = permissions(params, &wanted);
            (Subject::Permissions(wanted), shown)
        }
        "mcpServer/elicitation/request" => (Subject::Consent, consent(params)?),
        "item/tool/requestUserInput" => return questions(params),
        _ => return None,
    };
    Some((Request { subject, questions: VecDeque::new(), answers: Map::new() }, permission))
}

impl Request {
    /// Returns whether only a person can answer, whatever the agent may do.
    pub(super) fn is_question(&self) -> bool {
        matches!(self.subject, Subject::Questions)
    }

    /// Takes a decision.
    pub(super) fn decide(&mut self, ruling: &Ruling) -> Next {
        let is_allowed = matches!(ruling, Ruling::Allow { .. });
        Next::Reply(match &self.subject {
            Subject::Decision => {
                json!({ "decision": if is_allowed { "accept" } else { "decline" } })
            }
            Subject::Permissions(wanted) => {
                let granted = if is_allowed { granted(wanted) } else { json!({}) };
                json!({ "permissions": granted, "scope": "turn" })
            }
            Subject::Consent if is_allowed => {
                json!({ "action": "accept", "content": {}, "_meta": null })
            }
            Subject::Consent => json!({ "action": "decline", "content": null, "_meta": null }),
            Subject::Questions => match self.answer(ruling) {
                Some(next) => return Next::Ask(Box::new(next)),
                None => json!({ "answers": std::mem::take(&mut self.answers) }),
            },
        })
    }

    /// Notes the answer to the question that was asked; returns the next one.
    /// A question that is not answered ends the asking.
    fn answer(&mut self, ruling: &Ruling) -> Option<Permission> {
        let asked = self.questions.pop_front()?;
        let Ruling::Allow { text } = ruling else { return None };
        // Nobody's choice is not the first one.
        let texts: Vec<&String> = text.iter().collect();
        self.answers.insert(asked.id, json!({ "answers": texts }));
        self.questions.front().map(question)
    }
}

/// The server names what it does not want with `null`, and takes no `null` back.
fn granted(wanted: &Value) -> Value {
    let fields = wanted.as_object().into_iter().flatten();
    let fields = fields.filter(|(_, value)| !value.is_null());
    Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn command(mut params: Map<String, Value>, call: &CallInfo) -> Permission {
    let reason = remove_text(&mut params, "reason");
    let command = remove_text(&mut params, "command").filter(|command| !command.is_empty());
    let host = params
        .get("networkApprovalContext")
        .and_then(|context| context.get("host"))
        .and_then(Value::as_str);
    let (kind, title) = match host {
        Some(host) => (PermissionKind::Network, host.to_owned()),
        None => (PermissionKind::Command, command.clone().unwrap_or_else(|| call.title.clone())),
    };
    // What the agent says about it is not part of what is allowed: its words
    // differ from time to time.
    let mut input = Map::new();
    let is_told = command.is_some() || host.is_some();
    input.extend(command.map(|command| ("command".to_owned(), Value::String(command))));
    for name in ["kind", "cwd", "networkApprovalContext", "additionalPermissions"] {
        let value = params.remove(name).filter(|value| !value.is_null() && *value != "command");
        input.extend(value.map(|value| (name.to_owned(), value)));
    }
    // A directory alone says nothing of what would run there: allowed for good, it
    // would allow everything.
    let input = match call.input.clone() {
        _ if is_told => Some(Value::Object(input)),
        Some(Value::Object(mut known)) => {
            known.extend(input);
            Some(Value::Object(known))
        }
        known => known,
    };
    Permission::new(kind, "command_execution", with_reason(title, reason), input)
}

fn file_change(mut params: Map<String, Value>, call: &CallInfo) -> Permission {
    let reason = remove_text(&mut params, "reason");
    let mut title = call.title.clone();
    let mut input = call.input.clone();
    if let Some(root) = remove_text(&mut params, "grantRoot") {
        title = if title.is_empty() { root.clone() } else { format!("{title}, below {root}") };
        if let Some(Value::Object(input)) = &mut input {
            input.insert("grantRoot".to_owned(), Value::String(root));
        }
    }
    Permission::new(PermissionKind::Edit, "file_change", with_reason(title, reason), input)
}

fn permissions(mut params: Map<String, Value>, wanted: &Value) -> Permission {
    let reason = remove_text(&mut params, "reason");
    let input = json!({ "permissions": wanted, "cwd": params.remove("cwd") });
    let title = with_reason(granted(wanted).to_string(), reason);
    Permission::new(PermissionKind::Other, "request_permissions", title, Some(input))
}

/// A form with fields cannot be filled in from here; one without is a question
/// of yes or no.
fn consent(mut params: Map<String, Value>) -> Option<Permission> {
    let schema = params.get("requestedSchema");
    let fields = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    if fields.is_some_and(|fields| !fields.is_empty()) {
        return None;
    }
    let server = remove_text(&mut params, "serverName").unwrap_or_default();
    let message = remove_text(&mut params, "message").or_else(|| remove_text(&mut params, "title"));
    let title = with_reason(message.unwrap_or_default(), remove_text(&mut params, "url"));
    for name in ["threadId", "turnId"] {
        params.remove(name);
    }
    Some(Permission::new(PermissionKind::Other, &server, title, Some(Value::Object(params))))
}

fn questions(mut params: Map<String, Value>) -> Option<(Request, Permission)> {
    let Some(Value::Array(all)) = params.remove("questions") else { return None };
    let questions: VecDeque<Question> = all.iter().filter_map(read_question).collect();
    let first = question(questions.front()?);
    Some((Request { subject: Subject::Questions, questions, answers: Map::new() }, first))
}

fn read_question(question: &Value) -> Option<Question> {
    let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
    let choices = question.get("options").and_then(Value::as_array).into_iter().flatten();
    Some(Question {
        id: text(question, "id")?,
        text: text(question, "question").or_else(|| text(question, "header"))?,
        choices: choices.filter_map(|choice| text(choice, "label")).collect(),
    })
}

fn question(question: &Question) -> Permission {
    let shown = Permission::new(
        PermissionKind::Question,
        "request_user_input",
        question.text.clone(),
        None,
    );
    Permission { options: question.choices.clone(), ..shown }
}

fn with_reason(title: String, reason: Option<String>) -> String {
    match reason {
        Some(reason) if title.is_empty() => reason,
        Some(reason) => format!("{title} — {reason}"),
        None => title,
    }
}
