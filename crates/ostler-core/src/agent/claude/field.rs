//! Reads fields of JSON objects that may hold anything.

use serde_json::Value;

/// Returns a field that is a string and not empty.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Takes a string out of an object, so that a long one is not copied.
pub(super) fn take_text(value: &mut Value, key: &str) -> Option<String> {
    match value.get_mut(key) {
        Some(Value::String(text)) => Some(std::mem::take(text)),
        Some(_) | None => None,
    }
}

/// Takes the first of several fields that is there and not null.
pub(super) fn take_first(value: &mut Value, keys: &[&str]) -> Option<Value> {
    let is_there = |key: &&&str| value.get(**key).is_some_and(|field| !field.is_null());
    let key = keys.iter().find(is_there)?;
    value.get_mut(*key).map(Value::take)
}

/// Returns a field that is a whole number.
pub(super) fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key).and_then(Value::as_u64)
}

/// Returns whether a field is `true`.
pub(super) fn is_true(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool) == Some(true)
}
