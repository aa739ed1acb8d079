//! The table of APIs that the simulated model speaks.
//!
//! A wire only translates: a request into a [`Conversation`], a reply into that
//! API's JSON or server-sent events. It decides nothing and does no I/O.

mod anthropic;
mod chat;
mod gemini;
mod openai;
mod responses;

use serde_json::Value;

use super::conversation::{Conversation, Incoming};
use super::pace::Piece;
use super::reply::{Answer, Charge, Refusal};

pub use anthropic::USAGE as ANTHROPIC_USAGE;
pub use chat::USAGE as CHAT_USAGE;
pub use gemini::USAGE as GEMINI_USAGE;
pub use responses::USAGE as RESPONSES_USAGE;

/// One API.
#[derive(Debug)]
pub(crate) struct Wire {
    /// Whether a path is that of one of its model calls.
    pub(crate) serves: fn(&str) -> bool,
    /// The response header in which the provider names the request.
    pub(crate) request_id_header: &'static str,
    /// What one call costs.
    pub(crate) charge: Charge,
    pub(crate) read: fn(Incoming<'_>) -> Conversation,
    pub(crate) plain: fn(&Answer, Exchange<'_>) -> Value,
    pub(crate) stream: fn(&Answer, Exchange<'_>) -> Vec<Piece>,
    /// The event by which a stream that has begun ends in an error.
    pub(crate) stream_error: fn(Exchange<'_>) -> String,
    /// A refusal that this API reports inside a successful stream, if it does.
    pub(crate) refuse_in_stream: fn(Refusal, Exchange<'_>) -> Option<String>,
    pub(crate) refuse: fn(Refusal, Exchange<'_>) -> Refused,
}

/// What identifies one request and its response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchange<'a> {
    /// Counts requests from one; ids are made of it.
    pub(crate) number: u64,
    pub(crate) model: &'a str,
    /// Whether a stream shall end with what it used. Only one API asks.
    pub(crate) include_usage: bool,
}

/// An error response.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Returns an error of Google's for a call that is not one of a model.
pub(crate) fn refuse_as_google(refusal: Refusal, exchange: Exchange<'_>) -> Refused {
    (gemini::WIRE.refuse)(refusal, exchange)
}

/// Returns the API that a path belongs to.
pub(crate) fn at(path: &str) -> Option<&'static Wire> {
    WIRES.iter().find(|wire| (wire.serves)(path))
}

static WIRES: &[Wire] = &[anthropic::WIRE, responses::WIRE, chat::WIRE, gemini::WIRE];

/// Returns what one answered call costs, or `None` for a path that is no model call.
pub(crate) fn charge(path: &str) -> Option<Charge> {
    let bare = path.split_once('?').map_or(path, |(bare, _)| bare);
    at(bare).map(|wire| wire.charge)
}

/// Renders one server-sent event.
fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// Renders one server-sent event that has no name.
fn data(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// Sets a field of an object.
fn set(object: &mut Value, field: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(field.to_owned(), value);
    }
}

/// Returns the field as text, or the empty text.
fn text_at<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the field's elements, or none.
fn list_at<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the texts of a content field, which is one text or a list of blocks.
fn content_texts<'a>(value: &'a Value, field: &str) -> Vec<&'a str> {
    match value.get(field) {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(blocks)) => {
            blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect()
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Vec::new()
        }
    }
}
