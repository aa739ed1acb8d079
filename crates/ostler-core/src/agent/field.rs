//! Reads fields of JSON objects that may hold anything, and takes texts out of
//! them, so that long ones are not copied.

use serde_json::{Map, Value};

/// Removes a field; returns it if it is a text.
pub(crate) fn remove_text(fields: &mut Map<String, Value>, name: &str) -> Option<String> {
    match fields.remove(name)? {
        Value::String(text) => Some(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

/// Returns the fields of an object; anything else has none.
pub(crate) fn fields_of(value: Value) -> Option<Map<String, Value>> {
    if let Value::Object(fields) = value { Some(fields) } else { None }
}

/// Takes a text and leaves the field; one of another type is left as it is.
pub(crate) fn take_text(value: &mut Value, name: &str) -> Option<String> {
    match value.get_mut(name)? {
        Value::String(text) => Some(std::mem::take(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

/// Returns a field that is a whole number.
pub(crate) fn number(value: &Value, name: &str) -> Option<u64> {
    value.get(name)?.as_u64()
}

/// Returns whether a field is there and true.
pub(crate) fn is_true(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool) == Some(true)
}
