//! One event of the server's stream, out of its JSON.
//!
//! The stream of all directories wraps each event and tells some of them a
//! second time, as `sync`. Fields that are missing or of another type than
//! expected make an event nothing.

use serde_json::{Map, Value};

use super::flat::{self, Flat};
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
    /// It names no session, but tells of a turn.
    Unnamed(Flat),
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
    /// It has these rules.
    Rules(Vec<Value>),
    /// It was made by another session for a helper.
    Child {
        /// The server's id of the other.
        of: String,
    },
    /// It was told under a flat name.
    Flat(Flat),
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
    let mut fields = match ["properties", "data"].into_iter().find(|name| event.contains_key(*name))
    {
        Some(name) => take_object(&mut event, name),
        None => event,
    };
    let session = remove_text(&mut fields, "sessionID").or_else(|| flat::session_of(&fields));
    let Some(session) = session else {
        let unnamed = what(&kind, fields);
        return match unnamed {
            Some(What::Flat(flat)) => Event::Unnamed(flat),
            _ => Event::Quiet,
        };
    };
    match what(&kind, fields) {
        Some(what) => Event::Of { session, what },
        None if QUIET.iter().any(|quiet| kind.starts_with(quiet)) => Event::Quiet,
        None => Event::Of { session, what: What::Unknown },
    }
}

fn what(kind: &str, mut fields: Map<String, Value>) -> Option<What> {
    Some(match kind {
        "message.updated" if is_record(&fields) => What::Message(object(&mut fields, "info")?),
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
        "session.updated" => {
            let info = object(&mut fields, "info")?;
            What::Rules(info.get("permission")?.as_array()?.clone())
        }
        kind => What::Flat(flat::read(kind, &fields)?),
    })
}

/// Whether it tells what a message is, and not what it says: that is told of its
/// parts.
fn is_record(fields: &Map<String, Value>) -> bool {
    fields
        .get("info")
        .is_some_and(|info| info.get("content").is_none() && info.get("text").is_none())
}

fn object(fields: &mut Map<String, Value>, name: &str) -> Option<Map<String, Value>> {
    fields_of(fields.remove(name)?)
}
