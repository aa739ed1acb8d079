//! Reads fields of JSON objects in the ways that only Claude's lines ask for,
//! beside those that all agents share.

use serde_json::Value;

pub(super) use crate::agent::field::{is_true, number, take_text};

/// Returns a field that is a string and not empty.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Takes the first of several fields that is there and not null.
pub(super) fn take_first(value: &mut Value, keys: &[&str]) -> Option<Value> {
    let is_there = |key: &&&str| value.get(**key).is_some_and(|field| !field.is_null());
    let key = keys.iter().find(is_there)?;
    value.get_mut(*key).map(Value::take)
}
