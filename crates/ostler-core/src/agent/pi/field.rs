//! Reads fields of JSON objects in the ways that only Pi's lines ask for, beside
//! those that all agents share.

use serde_json::Value;

pub(super) use crate::agent::field::{is_true, number, take_text};

/// Returns a text field.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// Takes a field; what is missing is null.
pub(super) fn take(value: &mut Value, key: &str) -> Value {
    value.get_mut(key).map(Value::take).unwrap_or_default()
}

/// Takes a field that says something.
pub(super) fn take_kept(value: &mut Value, key: &str) -> Option<Value> {
    value.get_mut(key).filter(|value| !value.is_null()).map(Value::take)
}

/// Returns a name as Ostler writes it: `rawStopReason` is `raw_stop_reason`.
pub(super) fn snake_case(name: &str) -> String {
    let mut result = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            result.push('_');
        }
        result.push(c.to_ascii_lowercase());
    }
    result
}

/// Returns the texts of a content: a string, or parts that have one each, which
/// the CLI itself prints one after the other on lines of their own.
pub(super) fn content_text(content: &mut Value) -> String {
    match content {
        Value::String(text) => std::mem::take(text),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter_mut().filter_map(part_text).collect();
            texts.join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn part_text(part: &mut Value) -> Option<String> {
    match text(part, "type") {
        Some("text") => take_text(part, "text"),
        // Its data is megabytes of base64 that no reader of text wants.
        Some("image") => Some("[image]".to_owned()),
        _ => None,
    }
}
