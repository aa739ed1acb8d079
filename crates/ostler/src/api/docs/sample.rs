//! A request as one would type it: the line of `curl` for an operation.

use serde_json::{Map, Value, json};

use super::source::{content, name_of, requires, resolve};

/// Deeper than this no sample goes; a schema may be within itself.
const DEEPEST: usize = 4;

/// Returns the line that calls an operation.
pub(super) fn curl(document: &Value, method: &str, path: &str, operation: &Value) -> String {
    let mut line = String::from("curl ");
    if method != "get" {
        line.push_str(&format!("-X {} ", method.to_uppercase()));
    }
    line.push_str(&format!("\"$OSTLER{}\"", with_variables(path)));
    if !operation["security"].is_null() {
        line.push_str(" \\\n  -H \"Authorization: Bearer $KEY\"");
    }
    if let Some((_, schema)) = content(&operation["requestBody"]) {
        let body = value(document, schema, DEEPEST).to_string().replace('\'', r"'\''");
        line.push_str(&format!(" \\\n  --json '{body}'"));
    }
    line
}

/// Returns a path with variables of the shell for its parameters.
fn with_variables(path: &str) -> String {
    let parts = path.split('/').map(|part| {
        let name = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
        name.map_or_else(|| part.to_owned(), |name| format!("${}", name.to_uppercase()))
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Returns the least that fits a schema.
fn value(document: &Value, schema: &Value, deep: usize) -> Value {
    let schema = if name_of(schema).is_some() { resolve(document, schema) } else { schema };
    let given = ["example", "default", "const"].iter().find_map(|name| schema.get(*name));
    let listed = ["examples", "enum"].iter().find_map(|name| schema[*name].get(0));
    if let Some(given) = given.or(listed) {
        return given.clone();
    }
    if deep == 0 {
        return Value::Null;
    }
    if let Some(first) = ["oneOf", "anyOf", "allOf"].iter().find_map(|name| schema[*name].get(0)) {
        return value(document, first, deep - 1);
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"].get(0)?.as_str());
    match kind {
        Some("string") => json!("…"),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([value(document, &schema["items"], deep - 1)]),
        Some("object") => {
            let all = schema["properties"].as_object().into_iter().flatten();
            let asked = all.filter(|(name, _)| requires(schema, name));
            let asked = asked.map(|(name, of)| (name.clone(), value(document, of, deep - 1)));
            Value::Object(asked.collect::<Map<_, _>>())
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_key_and_the_least_that_a_body_needs() {
        let document = json!({ "components": { "schemas": { "New": {
            "type": "object", "required": ["name", "kind"],
            "properties": {
                "name": { "type": "string", "example": "it's" },
                "kind": { "enum": ["a", "b"] },
                "more": { "$ref": "#/components/schemas/New" },
            },
        } } } });
        let operation = json!({
            "security": [{ "key": ["admin"] }],
            "requestBody": { "content": { "application/json": {
                "schema": { "$ref": "#/components/schemas/New" } } } },
        });
        let line = curl(&document, "post", "/projects/{project}/x", &operation);
        assert_eq!(
            line,
            "curl -X POST \"$OSTLER/projects/$PROJECT/x\" \\\n  \
             -H \"Authorization: Bearer $KEY\" \\\n  --json '{\"kind\":\"a\",\"name\":\"it'\\''s\"}'"
        );
        assert_eq!(curl(&document, "get", "/ready", &json!({})), "curl \"$OSTLER/ready\"");
    }
}
