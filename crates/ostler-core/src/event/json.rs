//! The JSON form of an event: one flat object, which is the outside contract of
//! `ostler run --output stream-json`, and therefore written out, not derived.

use std::path::Path;

use serde::{
    Serialize, Serializer,
    ser::{Error as _, SerializeMap},
};
use serde_json::Value;

use super::{Event, EventBody, Status};

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("seq", &self.seq)?;
        map.serialize_entry("at", &format_args!("{:.3}", self.at))?;
        map.serialize_entry("type", self.body.kind())?;
        map.serialize_entry("turn", self.turn.as_str())?;
        if let Some(parent) = &self.parent {
            map.serialize_entry("parent", parent)?;
        }
        match &self.body {
            EventBody::Started(started) => spread(&mut map, started)?,
            EventBody::Output { text, block } | EventBody::Thinking { text, block } => {
                map.serialize_entry("text", text)?;
                map.serialize_entry("block", block)?;
            }
            EventBody::ToolUse { id, tool, input, title } => {
                map.serialize_entry("id", id)?;
                map.serialize_entry("tool", tool)?;
                map.serialize_entry("input", input)?;
                map.serialize_entry("title", title)?;
            }
            EventBody::ToolResult(result) => spread(&mut map, result)?,
            EventBody::Permission(permission) => spread(&mut map, permission)?,
            EventBody::Usage(usage) => spread(&mut map, usage)?,
            EventBody::Error(failure) => spread(&mut map, failure)?,
            EventBody::Unknown { stream, text } => {
                map.serialize_entry("stream", stream)?;
                map.serialize_entry("text", text)?;
            }
            EventBody::Status(status) => status_entries(status, &mut map)?,
            EventBody::Complete(report) => report.entries(&mut map)?,
        }
        map.end()
    }
}

fn status_entries<M: SerializeMap>(status: &Status, map: &mut M) -> Result<(), M::Error> {
    let (code, text) = status.code_and_text();
    map.serialize_entry("code", code)?;
    map.serialize_entry("text", text)?;
    match status {
        Status::Session { session_id } => map.serialize_entry("session_id", session_id),
        Status::Retry { attempt, max, delay_ms, .. } => {
            map.serialize_entry("attempt", attempt)?;
            map.serialize_entry("max", max)?;
            map.serialize_entry("delay_ms", delay_ms)
        }
        Status::Retracted { block } => map.serialize_entry("block", block),
        Status::PermissionResolved { request, decision, by } => {
            map.serialize_entry("request", request)?;
            map.serialize_entry("decision", decision)?;
            map.serialize_entry("by", by)
        }
        Status::Warning { .. }
        | Status::Queued { .. }
        | Status::Steered { .. }
        | Status::Compacted { .. } => Ok(()),
    }
}

/// Writes a path that need not be UTF-8.
pub(super) fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Writes the fields of a small struct into the enclosing object.
fn spread<M: SerializeMap, T: Serialize>(map: &mut M, value: &T) -> Result<(), M::Error> {
    let Value::Object(fields) = serde_json::to_value(value).map_err(M::Error::custom)? else {
        return Err(M::Error::custom("the body of an event must be an object"));
    };
    fields.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))
}
