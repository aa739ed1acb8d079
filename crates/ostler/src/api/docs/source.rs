//! Reading the document: what a reference leads to, and what is in an envelope.

use serde_json::{Map, Value};

/// Returns the name that a reference leads to.
pub(super) fn name_of(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

/// Returns a schema, or the one that it refers to.
pub(super) fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let named = name_of(schema).and_then(|name| schemas(document)?.get(name));
    named.unwrap_or(schema)
}

/// Returns all named schemas.
pub(super) fn schemas(document: &Value) -> Option<&Map<String, Value>> {
    document.pointer("/components/schemas")?.as_object()
}

/// Returns what is in the envelope that a schema is, if it is one.
pub(super) fn data_of<'a>(document: &'a Value, schema: &'a Value) -> Option<&'a Value> {
    let properties = resolve(document, schema)["properties"].as_object()?;
    let is_envelope = properties.len() == 2 && properties.contains_key("meta");
    if is_envelope { properties.get("data") } else { None }
}

/// Returns the kind and the schema of a body or an answer.
pub(super) fn content(of: &Value) -> Option<(&str, &Value)> {
    let (sort, content) = of["content"].as_object()?.iter().next()?;
    Some((sort, &content["schema"]))
}

/// Returns whether a schema names a property as one that must be there.
pub(super) fn requires(schema: &Value, property: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|name| name == property))
}
