//! What of an event is shown to people: of one that is happening here, and of
//! one that the gateway stored. The JSON that an event is written as is the
//! contract; it is read back here, and no further than it is shown.

use ostler_core::{
    event::{Event, EventBody, Status, Trigger},
    failure::FailureKind,
    permission::{Permission, PermissionKind},
};
use serde_json::Value;

/// An event, as far as people see it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown<'a> {
    pub(crate) turn: &'a str,
    /// Whether it came from a sub-agent.
    pub(crate) is_nested: bool,
    pub(crate) what: What<'a>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What<'a> {
    /// A turn began, by a prompt or by the agent itself.
    Started {
        by_agent: bool,
    },
    Output {
        text: &'a str,
        block: &'a str,
    },
    ToolUse {
        tool: &'a str,
        title: &'a str,
    },
    ToolFailed {
        tool: &'a str,
        output: &'a str,
    },
    /// A request for permission, and the id that the gateway gave it.
    Permission {
        permission: Box<Permission>,
        id: Option<&'a str>,
    },
    /// A request was decided.
    Resolved {
        request: &'a str,
        decision: &'a str,
        by: &'a str,
    },
    /// Anything else worth knowing.
    Status {
        code: &'a str,
        text: &'a str,
    },
    Complete(Complete<'a>),
    /// What people are not shown.
    Other,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Complete<'a> {
    /// The answer, or the text to show instead.
    pub(crate) text: &'a str,
    pub(crate) failure: Option<ShownFailure<'a>>,
}

/// Why a turn failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShownFailure<'a> {
    /// The word for its kind. One that this version does not know is possible.
    pub(crate) kind: &'a str,
    pub(crate) message: &'a str,
}

impl ShownFailure<'_> {
    /// Returns the kind, if it is one that this version knows.
    pub(crate) fn known_kind(&self) -> Option<FailureKind> {
        FailureKind::ALL.into_iter().find(|kind| kind.code() == self.kind)
    }
}

impl<'a> Shown<'a> {
    /// Takes it from an event.
    pub(crate) fn of(event: &'a Event) -> Self {
        let Event { turn, parent, body, .. } = event;
        Self { turn: turn.as_str(), is_nested: parent.is_some(), what: What::of(body) }
    }

    /// Reads it from an event that was stored. What is not there is empty, and
    /// what is unknown is not shown.
    pub(crate) fn read(event: &'a Value) -> Self {
        Self {
            turn: text(event, "turn"),
            is_nested: event.get("parent").is_some(),
            what: What::read(event),
        }
    }
}

impl<'a> What<'a> {
    fn of(body: &'a EventBody) -> Self {
        match body {
            EventBody::Started(started) => {
                Self::Started { by_agent: started.trigger == Trigger::Agent }
            }
            EventBody::Output { text, block } => Self::Output { text, block },
            EventBody::ToolUse { tool, title, .. } => Self::ToolUse { tool, title },
            EventBody::ToolResult(result) if result.is_error => {
                Self::ToolFailed { tool: &result.tool, output: &result.output }
            }
            EventBody::Permission(permission) => {
                Self::Permission { permission: Box::new(permission.clone()), id: None }
            }
            EventBody::Status(Status::PermissionResolved { request, decision, by }) => {
                Self::Resolved { request, decision: decision.code(), by: by.code() }
            }
            EventBody::Status(status) => {
                let (code, text) = status.code_and_text();
                Self::Status { code, text }
            }
            EventBody::Complete(report) => Self::Complete(Complete {
                text: report.response_text.as_deref().unwrap_or_default(),
                failure: report.error.as_ref().map(|failure| ShownFailure {
                    kind: failure.kind.code(),
                    message: &failure.message,
                }),
            }),
            EventBody::Thinking { .. }
            | EventBody::ToolResult(_)
            | EventBody::Usage(_)
            | EventBody::Error(_)
            | EventBody::Unknown { .. }
            | _ => Self::Other,
        }
    }

    fn read(fields: &'a Value) -> Self {
        let text = |name| text(fields, name);
        match text("type") {
            "started" => Self::Started { by_agent: text("trigger") == "agent" },
            "output" => Self::Output { text: text("text"), block: text("block") },
            "tool_use" => Self::ToolUse { tool: text("tool"), title: text("title") },
            "tool_result" if fields.get("is_error") == Some(&Value::Bool(true)) => {
                Self::ToolFailed { tool: text("tool"), output: text("output") }
            }
            "permission" => Self::Permission {
                permission: Box::new(permission(fields)),
                id: fields.get("id").and_then(Value::as_str),
            },
            "status" if text("code") == "permission_resolved" => Self::Resolved {
                request: text("request"),
                decision: text("decision"),
                by: text("by"),
            },
            "status" => Self::Status { code: text("code"), text: text("text") },
            "complete" => Self::Complete(Complete::read(fields)),
            _ => Self::Other,
        }
    }
}

impl<'a> Complete<'a> {
    /// Reads it from the fields of a `complete` event, or of a report.
    pub(crate) fn read(fields: &'a Value) -> Self {
        let failure = fields.get("error").filter(|failure| failure.is_object());
        Self {
            text: text(fields, "response_text"),
            failure: failure.map(|failure| ShownFailure {
                kind: text(failure, "kind"),
                message: text(failure, "message"),
            }),
        }
    }
}

/// Reads a request back, so that somebody can be asked.
fn permission(fields: &Value) -> Permission {
    let options = fields.get("options").and_then(Value::as_array).into_iter().flatten();
    Permission {
        request: text(fields, "request").to_owned(),
        kind: match text(fields, "kind") {
            "command" => PermissionKind::Command,
            "edit" => PermissionKind::Edit,
            "read" => PermissionKind::Read,
            "network" => PermissionKind::Network,
            "question" => PermissionKind::Question,
            _ => PermissionKind::Other,
        },
        tool: text(fields, "tool").to_owned(),
        title: text(fields, "title").to_owned(),
        input: fields.get("input").filter(|input| !input.is_null()).cloned(),
        options: options.filter_map(Value::as_str).map(str::to_owned).collect(),
        expires_at: text(fields, "expires_at").parse().ok(),
    }
}

fn text<'a>(fields: &'a Value, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
