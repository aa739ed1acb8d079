//! The JSON Schema of the file, made from the table of keys and the defaults.

use serde_json::{Map, Value, json};

use super::{
    key::{KEYS, REQUIRED},
    section::Config,
};

/// Which names an agent of one's own can have; `check_name` decides.
const NAMES: &str = "^[a-z][a-z0-9-]*$";

/// Makes the schema.
pub(crate) fn schema() -> Value {
    let defaults = json!(Config::default());
    let mut root = section();
    for key in KEYS {
        let mut schema = key.kind.schema();
        let pointer = format!("/{}", key.path.replace('.', "/"));
        if let (Some(default), Value::Object(schema)) =
            (defaults.pointer(&pointer).filter(|default| !default.is_null()), &mut schema)
        {
            schema.insert("default".to_owned(), default.clone());
        }
        if let Value::Object(schema) = &mut schema {
            schema.insert("description".to_owned(), json!(key.about));
        }
        place(&mut root, key.path, schema);
    }
    for (path, name) in REQUIRED {
        let section = path.split('.').try_fold(&mut root, child);
        if let Some(Value::Object(section)) = section {
            let required = section.entry("required").or_insert_with(|| json!([]));
            if let Value::Array(names) = required {
                names.push(json!(name));
            }
        }
    }
    if let Value::Object(root) = &mut root {
        root.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        root.insert("title".to_owned(), json!("The configuration file of Ostler"));
        root.insert("type".to_owned(), json!("object"));
    }
    root
}

fn section() -> Value {
    json!({ "type": ["object", "null"], "additionalProperties": false })
}

/// Returns the schema of a name in a section.
fn child<'a>(section: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    let (table, name) = table_of(name);
    section.get_mut(table)?.get_mut(name)
}

fn table_of(name: &str) -> (&'static str, &str) {
    if name == "*" { ("patternProperties", NAMES) } else { ("properties", name) }
}

/// Puts the schema of a key where it belongs, with the sections above it.
fn place(root: &mut Value, path: &str, schema: Value) {
    let mut node = root;
    for name in path.split('.') {
        let (table, name) = table_of(name);
        let Value::Object(map) = node else { return };
        let table = map.entry(table).or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(table) = table else { return };
        node = table.entry(name).or_insert_with(section);
    }
    *node = schema;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_in_the_repository_is_this_one() {
        let printed = serde_json::to_string_pretty(&schema()).unwrap();
        let kept = include_str!("../../config.schema.json");
        let mut lines = kept.lines().zip(printed.lines()).enumerate();
        let other = lines.find(|(_, (kept, printed))| kept != printed);
        assert!(
            kept.trim_end() == printed,
            "config.schema.json is another, first at {other:?}: run \
             `ostler config schema > crates/ostler/config.schema.json`, and look at the difference"
        );
    }

    #[test]
    fn what_must_be_there_is_required() {
        let schema = schema();
        let own = &schema["properties"]["agents"]["patternProperties"][NAMES];
        assert_eq!(own["required"], json!(["dialect", "command"]));
        let reply = &schema["properties"]["inbound"]["properties"]["reply"];
        assert_eq!(reply["required"], json!(["agent"]));
        assert_eq!(
            schema["properties"]["gateway"]["properties"]["max_queue_depth"]["default"],
            100
        );
    }
}
