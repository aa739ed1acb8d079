//! The smallest JSON value that fits a JSON Schema, for calls that demand one.
//!
//! It knows the keywords that CLIs use, not the whole of JSON Schema.

use serde_json::{Map, Value, json};

/// Returns a value that fits.
pub(crate) fn example(schema: &Value) -> Value {
    fill(schema, schema, MAX_DEPTH)
}

fn fill(schema: &Value, root: &Value, depth: usize) -> Value {
    // A schema may contain itself; what is that deep is left out.
    let Some(depth) = depth.checked_sub(1) else {
        return Value::Null;
    };
    if let Some(value) = schema.get("const").or_else(|| schema.get("default")) {
        return value.clone();
    }
    if let Some(value) = schema.get("enum").and_then(|values| values.get(0)) {
        return value.clone();
    }
    let referred = schema.get("$ref").and_then(Value::as_str);
    if let Some(target) = referred.and_then(|path| root.pointer(path.strip_prefix('#')?)) {
        return fill(target, root, depth);
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema.get(keyword).and_then(|schemas| schemas.get(0)) {
            return fill(first, root, depth);
        }
    }
    match kind(schema).as_str() {
        "object" => object(schema, root, depth),
        "array" => array(schema, root, depth),
        "string" => text(schema),
        // Where a bound is said in words only, it is more often one than nought.
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(1)),
        "boolean" => Value::Bool(false),
        _ => Value::Null,
    }
}

/// Google spells the names of types in capitals; a type may be a list of them.
fn kind(schema: &Value) -> String {
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first(),
        other => other,
    };
    match kind.and_then(Value::as_str) {
        Some(kind) => kind.to_ascii_lowercase(),
        None if schema.get("properties").is_some() => "object".to_owned(),
        None => String::new(),
    }
}

/// Only what is required, or everything when the schema does not say.
fn object(schema: &Value, root: &Value, depth: usize) -> Value {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required = schema.get("required").and_then(Value::as_array);
    let wanted = |name: &String| {
        required.is_none_or(|names| names.iter().any(|required| required.as_str() == Some(name)))
    };
    properties
        .iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, schema)| (name.clone(), fill(schema, root, depth)))
        .collect::<Map<_, _>>()
        .into()
}

fn array(schema: &Value, root: &Value, depth: usize) -> Value {
    let item = schema.get("items").unwrap_or(&Value::Null);
    let n_items = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(MAX_ITEMS);
    (0..n_items).map(|_| fill(item, root, depth)).collect()
}

fn text(schema: &Value) -> Value {
    let shortest = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0).min(MAX_LENGTH);
    let length = usize::try_from(shortest).unwrap_or(0);
    Value::String(format!("{TEXT:.<length$}"))
}

const TEXT: &str = "simulated";
const MAX_DEPTH: usize = 16;
const MAX_ITEMS: u64 = 100;
const MAX_LENGTH: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_what_is_required_and_takes_the_first_choice() {
        let schema = json!({
            "type": "object",
            "properties": {
                "reasoning": { "type": "string", "description": "why" },
                "model_choice": { "type": "string", "enum": ["flash", "pro"] },
                "score": { "type": "integer", "minimum": 5 },
                "rank": { "type": "INTEGER", "description": "1-100" },
                "note": { "type": "string" },
                "tags": { "type": "ARRAY", "minItems": 2, "items": { "$ref": "#/$defs/tag" } },
            },
            "$defs": { "tag": { "anyOf": [{ "type": "boolean" }, { "type": "null" }] } },
            "required": ["reasoning", "model_choice", "score", "rank", "tags"],
        });
        assert_eq!(
            example(&schema),
            json!({
                "reasoning": "simulated", "model_choice": "flash", "score": 5, "rank": 1,
                "tags": [false, false],
            })
        );
    }

    #[test]
    fn a_text_is_as_long_as_it_must_be() {
        let schema = json!({ "type": ["string", "null"], "minLength": 12 });
        assert_eq!(example(&schema), "simulated...");
    }

    #[test]
    fn a_schema_that_contains_itself_has_an_end() {
        let schema = json!({ "type": "object", "properties": { "next": { "$ref": "#" } } });
        assert!(example(&schema).is_object());
    }
}
