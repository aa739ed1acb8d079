//! A schema in words: what a value can be, and the fields of an object.

use serde_json::Value;

use super::{
    html::{anchor, code, escape},
    markdown,
    source::{data_of, name_of, requires, resolve},
};

/// What a value must keep to, and how that is said.
const BOUNDS: [(&str, &str); 11] = [
    ("format", ""),
    ("minLength", "at least this long: "),
    ("maxLength", "at most this long: "),
    ("minimum", "at least "),
    ("maximum", "at most "),
    ("minItems", "at least this many: "),
    ("maxItems", "at most this many: "),
    ("pattern", "like "),
    ("default", "else "),
    ("example", "such as "),
    ("const", "always "),
];

/// Returns what a value can be. What is in an envelope is told alone.
pub(super) fn shape(document: &Value, schema: &Value) -> String {
    if let Some(data) = data_of(document, schema) {
        return format!("<code>data</code>: {}", shape(document, data));
    }
    if let Some(name) = name_of(schema) {
        return format!("<a href=\"#schema-{}\">{}</a>", anchor(name), escape(name));
    }
    for (name, between) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
        if let Some(parts) = schema[name].as_array() {
            let parts = parts.iter().map(|part| shape(document, part));
            return parts.collect::<Vec<_>>().join(between);
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        let values = values.iter().map(|value| code(&plain(value)));
        return values.collect::<Vec<_>>().join(" ");
    }
    match &schema["type"] {
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            kinds.map(|kind| one(document, kind, schema)).collect::<Vec<_>>().join(" or ")
        }
        Value::String(kind) => one(document, kind, schema),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => "anything".to_owned(),
    }
}

fn one(document: &Value, kind: &str, schema: &Value) -> String {
    match kind {
        "array" => format!("list of {}", shape(document, &schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("map to {}", shape(document, &schema["additionalProperties"]))
        }
        kind => escape(kind),
    }
}

/// Returns what else holds for a value.
pub(super) fn bounds(schema: &Value) -> String {
    let there = BOUNDS.iter().filter_map(|(name, says)| Some((says, schema.get(*name)?)));
    there.map(|(says, value)| format!(" · {says}{}", code(&plain(value)))).collect()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the fields of an object as a table, or what else it can be.
pub(super) fn fields(document: &Value, schema: &Value) -> String {
    let schema = resolve(document, schema);
    let Some(properties) = schema["properties"].as_object() else {
        return format!("<p>{}{}</p>", shape(document, schema), bounds(schema));
    };
    let rows = properties.iter().map(|(name, property)| {
        row(document, name, property, requires(schema, name), &property["description"])
    });
    format!("<table class=fields>{}</table>", rows.collect::<String>())
}

/// Returns a line of such a table.
pub(super) fn row(
    document: &Value,
    name: &str,
    schema: &Value,
    is_required: bool,
    about: &Value,
) -> String {
    let mark = if is_required { "<b title=required>*</b>" } else { "" };
    let about = about.as_str().map(markdown::render).unwrap_or_default();
    format!(
        "<tr><td>{}{mark}</td><td><span class=type>{}{}</span>{about}</td></tr>",
        code(name),
        shape(document, schema),
        bounds(schema),
    )
}
