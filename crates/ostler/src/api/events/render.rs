//! Stored events as HTTP clients read them: which name each travels under, which
//! fields it has beside its own, and its frame in a stream. Pure.

use axum::body::Bytes;
use serde_json::{Map, Value, json};

use crate::{
    api::health::provider, gateway::commands::COMPLETE, id::ProjectId, store::events::StoredEvent,
};

/// How long a client that lost its stream is asked to wait, in milliseconds.
const RETRY: u32 = 1000;

/// Returns the name that an event travels under: the end of a turn is not that of
/// its command, which may take several.
fn name(kind: &str) -> &str {
    match kind {
        "complete" => "agent_complete",
        COMPLETE => "complete",
        other => other,
    }
}

/// Returns the object that clients read: the stored one, with the names that they
/// know, and what it belongs to.
pub(crate) fn object(stored: &StoredEvent) -> Value {
    let event = &stored.event;
    let mut fields: Map<String, Value> = serde_json::from_str(&event.body).unwrap_or_default();
    match event.kind.as_str() {
        "output" => {
            let line = fields.get("text").cloned().unwrap_or_default();
            fields.insert("line".to_owned(), line);
            fields.entry("stream").or_insert_with(|| json!("stdout"));
        }
        "error" => {
            let error = fields.get("message").cloned().unwrap_or_default();
            fields.insert("error".to_owned(), error);
        }
        _ => {}
    }
    let agent = fields.get("provider").or_else(|| fields.get("agent")).and_then(Value::as_str);
    if let Some(known) = agent.map(|agent| json!(provider(agent))) {
        fields.insert("provider".to_owned(), known);
    }
    let belongs = event.belongs.as_ref();
    let command = belongs.and_then(|belongs| belongs.command.as_ref());
    fields.extend([
        ("type".to_owned(), json!(name(&event.kind))),
        ("event_id".to_owned(), json!(stored.number)),
        ("project_id".to_owned(), json!(belongs.map(|belongs| belongs.project))),
        ("command_id".to_owned(), json!(command.map(|command| command.id))),
        ("stream_id".to_owned(), json!(command.map(|command| &command.stream))),
    ]);
    Value::Object(fields)
}

/// Returns an event as it stands in a stream.
pub(crate) fn frame(stored: &StoredEvent) -> Bytes {
    write(stored.number, name(&stored.event.kind), &object(stored)).into()
}

/// Returns what a stream begins with.
pub(super) fn connected(project: ProjectId, stream: Option<&str>, position: i64) -> Bytes {
    let data = json!({ "project_id": project, "stream_id": stream, "last_event_id": position });
    format!("retry: {RETRY}\n{}", write(position, "connected", &data)).into()
}

/// Returns what shows that a stream lives. Whoever resumes from its id reads
/// nothing again.
pub(super) fn heartbeat(position: i64) -> Bytes {
    write(position, "heartbeat", &json!({ "last_event_id": position })).into()
}

/// Returns what says that retention removed events before they were read.
pub(super) fn missed(removed: i64) -> Bytes {
    write(removed, "missed", &json!({ "removed_up_to": removed })).into()
}

/// Writes a frame. JSON has no line ends of its own, so that it is one line.
fn write(id: i64, name: &str, data: &Value) -> String {
    format!("id: {id}\nevent: {name}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests;
