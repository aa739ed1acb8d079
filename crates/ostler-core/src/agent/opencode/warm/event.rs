//! One event of the server's stream, out of its JSON.
//!
//! The stream of all directories wraps each event and tells some of them a
//! second time, as `sync`. Fields that are missing or of another type than
//! expected make an event nothing.

use serde_json::{Map, Value};

use crate::agent::{
    field::{fields_of, remove_text},
    opencode::message::take_object,
};

/// What an event says.
#[derive(Debug)]
pub(super) enum Event {
    /// The stream is open.
    Connected,
    /// It belongs to a session.
    Of {
        /// The server's id of it.
        session: String,
        /// What happened there.
        what: What,
    },
    /// It tells nothing about any turn.
    Quiet,
    /// It cannot be read.
    Unreadable,
}

/// What happened in a session.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// A message began or changed.
    Message(Map<String, Value>),
    /// A part of a message began or changed.
    Part(Map<String, Value>),
    /// A text grew.
    Delta {
        /// The part.
        part: String,
        /// By what.
        text: String,
    },
    /// It works.
    Busy,
    /// A call of the model failed and is made again.
    Retry {
        /// Which retry.
        attempt: Option<u64>,
        /// Why.
        message: String,
        /// When, in milliseconds since 1970.
        next: Option<i64>,
    },
    /// It does not work.
    Idle,
    /// Something failed.
    Failed(Value),
    /// A permission is asked for.
    Asked(Map<String, Value>),
    /// There are questions.
    Questions(Map<String, Value>),
    /// A request needs no answer any more.
    Answered {
        /// The request.
        request: String,
    },
    /// It was made by another session for a helper.
    Child {
        /// The server's id of the other.
        of: String,
    },
    /// It is not known.
    Unknown,
}

/// Events of a session that tell nothing about its turn, by how they begin.
const QUIET: &[&str] = &[
    "session.created",
    "session.updated",
    "session.deleted",
    "session.diff",
    "session.compacted",
    "session.next.",
    "message.removed",
    "message.part.removed",
    "todo.",
    "command.",
];

/// Reads an event.
pub(super) fn read(data: &[u8]) -> Event {
    let Ok(Value::Object(mut event)) = serde_json::from_slice(data) else {
        return Event::Unreadable;
    };
    if let Some(Value::Object(payload)) = event.remove("payload") {
        event = payload;
    }
    let kind = remove_text(&mut event, "type").unwrap_or_default();
    if kind == "server.connected" {
        return Event::Connected;
    }
    let mut fields = take_object(&mut event, "properties");
    let Some(session) = remove_text(&mut fields, "sessionID") else {
        return Event::Quiet;
    };
    match what(&kind, fields) {
        Some(what) => Event::Of { session, what },
        None if QUIET.iter().any(|quiet| kind.starts_with(quiet)) => Event::Quiet,
        None => Event::Of { session, what: What::Unknown },
    }
}

fn what(kind: &str, mut fields: Map<String, Value>) -> Option<What> {
    Some(match kind {
        "message.updated" => What::Message(object(&mut fields, "info")?),
        "message.part.updated" => What::Part(object(&mut fields, "part")?),
        "message.part.delta" => {
            let part = remove_text(&mut fields, "partID")?;
            let text = remove_text(&mut fields, "delta")?;
            if remove_text(&mut fields, "field")? != "text" {
                return None;
            }
            What::Delta { part, text }
        }
        "session.status" => {
            let mut status = object(&mut fields, "status")?;
            match status.get("type")?.as_str()? {
                "busy" => What::Busy,
                "idle" => What::Idle,
                "retry" => What::Retry {
                    attempt: status.get("attempt").and_then(Value::as_u64),
                    next: status.get("next").and_then(Value::as_i64),
                    message: remove_text(&mut status, "message").unwrap_or_default(),
                },
                _ => return None,
            }
        }
        "session.idle" => What::Idle,
        "session.error" => What::Failed(fields.remove("error")?),
        "permission.asked" => What::Asked(fields),
        "question.asked" => What::Questions(fields),
        "permission.replied" | "question.replied" | "question.rejected" => {
            What::Answered { request: remove_text(&mut fields, "requestID")? }
        }
        "session.created" => {
            let mut info = object(&mut fields, "info")?;
            What::Child { of: remove_text(&mut info, "parentID")? }
        }
        _ => return None,
    })
}

fn object(fields: &mut Map<String, Value>, name: &str) -> Option<Map<String, Value>> {
    fields_of(fields.remove(name)?)
}
