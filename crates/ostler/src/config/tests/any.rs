//! Whatever is in a file: the table, the types and the schema agree, and nothing panics.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    super::{
        key::{KEYS, Key},
        kind::Kind,
    },
    *,
};

/// Returns values that a key takes, the extremes among them.
fn samples(key: &Key) -> Vec<Value> {
    match key.kind {
        Kind::Switch => vec![json!(true), json!(false)],
        Kind::Number { min, max } => vec![json!(min), json!(max)],
        Kind::Words => vec![json!("text")],
        Kind::Url => vec![json!("http://h:1/x"), json!("https://h/")],
        Kind::PublicUrl => vec![json!("https://ostler.example.org")],
        Kind::Conversation => {
            vec![json!("local:main"), json!("webhook:http://h/"), json!("discord:1")]
        }
        Kind::Text => vec![json!(""), json!("text")],
        Kind::Path => vec![json!("x"), json!("./a/b"), json!("/a")],
        Kind::Choice(words) => words.iter().map(|word| json!(word)).collect(),
        Kind::Choices(words) => {
            words.iter().map(|word| json!(word)).chain([json!(words)]).collect()
        }
        Kind::DurationUpTo(max) => vec![json!(max), json!("1s")],
        Kind::Duration => vec![json!("90s"), json!(5), json!(0.5), json!("7d")],
        Kind::DurationOrOff => vec![json!("90s"), json!("off")],
        Kind::Paths => vec![json!([]), json!(["/a", "b"])],
        Kind::Networks => vec![json!([]), json!(["10.0.0.0/8", "::1/128"])],
        Kind::Origins => vec![json!([]), json!(["https://h", "http://h:8080"])],
        Kind::TimeZone => vec![json!("UTC"), json!("Europe/Berlin")],
        Kind::Phone => vec![json!("+4915112345678")],
        Kind::WhatsApp => vec![json!("+4915112345678"), json!("whatsapp:+14155238886")],
        Kind::Phones => vec![json!([]), json!(["+4915112345678", "*"])],
        Kind::Sid(start) => vec![json!(format!("{start}{}", "0a".repeat(16)))],
        Kind::Sids(start) => vec![json!([]), json!([format!("{start}{}", "0".repeat(32))])],
        Kind::Id => vec![json!("1"), json!("12345678901234567890")],
        Kind::Ids => vec![json!([]), json!(["1234567890", "*"])],
        Kind::Patterns => vec![json!([]), json!(["^bot\\b", "hay|oats"])],
        Kind::Texts | Kind::Variables => vec![json!([]), json!(["A", "B"])],
        Kind::Values => vec![json!({}), json!({ "A": "b" })],
        Kind::Command => vec![json!(["x"]), json!(["./x", "", "y"])],
        Kind::Agent => vec![json!("pi"), json!("claudecode")],
        Kind::Address => vec![json!("0.0.0.0:1"), json!("[::1]:0")],
        Kind::Secret => vec![json!("x"), json!({ "file": "x" }), json!({ "command": ["x", "y"] })],
    }
}

/// Returns a file that has this key, and what else must be there then.
fn file_with(key: &str, value: &Value) -> String {
    let mut root = json!({});
    if key.starts_with("agents.") {
        root = json!({ "agents": { "own": { "dialect": "acp", "command": ["x"] } } });
    }
    if key.starts_with("hooks.") {
        let one = match key.trim_start_matches("hooks.*.") {
            "instruction" | "url" => json!({ "on": "error" }),
            "conversation" => json!({ "on": "error", "instruction": "x" }),
            "on_failure" => json!({ "on": "start", "command": ["x"] }),
            _ => json!({ "on": "error", "command": ["x"] }),
        };
        root = json!({ "hooks": { "own": one } });
    }
    if key.starts_with("inbound.") {
        let reply = json!({ "text": "x", "agent": { "kind": "codex" } });
        root = json!({ "inbound": { "reply": reply } });
    }
    let mut node = &mut root;
    for name in key.replace('*', "own").split('.') {
        if node.is_null() {
            *node = json!({});
        }
        node = node.as_object_mut().unwrap().entry(name).or_insert(Value::Null);
    }
    *node = value.clone();
    root.to_string()
}

#[test]
fn what_the_table_takes_the_types_take_as_well() {
    for key in KEYS {
        for value in samples(key) {
            let loaded = load(&file_with(key.path, &value));
            let loaded = loaded.unwrap_or_else(|said| panic!("{} = {value}: {said}", key.path));
            let path = key.path.replace('*', "own");
            let is_moved = inbound::MOVED.iter().any(|moved| moved.from == path);
            assert_eq!(loaded.is_set(&path), !is_moved, "{path}");
        }
    }
}

#[test]
fn what_is_taken_can_be_shown_and_read_again() {
    for key in KEYS.iter().filter(|key| !key.path.contains('*') && key.kind != Kind::Secret) {
        for value in samples(key) {
            let first = load(&file_with(key.path, &value)).unwrap();
            let shown = view::shown(&first).into_iter().find(|shown| shown.key == key.path);
            // A key that was moved is shown where it was moved to, a path with its folder.
            let Some(shown) = shown.filter(|_| key.kind != Kind::Path && key.kind != Kind::Command)
            else {
                continue;
            };
            let again = load(&file_with(key.path, &shown.value)).unwrap();
            assert!(view::changes(&first.config, &again.config).is_empty(), "{} {value}", key.path);
        }
    }
}

/// Whether a value is as a schema wants it; knows the words that ours is made of.
fn is_valid(schema: &Value, value: &Value) -> bool {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_kind = |name: &Value| name == kind || name == "number" && kind == "integer";
    let number = value.as_f64();
    let length = value.as_str().map(|text| text.chars().count());
    schema.as_object().unwrap().iter().all(|(word, rule)| match word.as_str() {
        "$schema" | "title" | "description" | "default" => true,
        "type" => rule.as_array().map_or_else(|| is_kind(rule), |kinds| kinds.iter().any(is_kind)),
        "enum" => rule.as_array().unwrap().contains(value),
        "anyOf" => rule.as_array().unwrap().iter().any(|schema| is_valid(schema, value)),
        "minimum" => number.is_none_or(|number| number >= rule.as_f64().unwrap()),
        "maximum" => number.is_none_or(|number| number <= rule.as_f64().unwrap()),
        "exclusiveMinimum" => number.is_none_or(|number| number > rule.as_f64().unwrap()),
        "minLength" => length.is_none_or(|length| length as u64 >= rule.as_u64().unwrap()),
        "minItems" => {
            value.as_array().is_none_or(|items| items.len() as u64 >= rule.as_u64().unwrap())
        }
        "items" => value.as_array().is_none_or(|all| all.iter().all(|item| is_valid(rule, item))),
        "required" => value.as_object().is_none_or(|map| {
            rule.as_array().unwrap().iter().all(|name| map.contains_key(name.as_str().unwrap()))
        }),
        "properties" | "patternProperties" | "additionalProperties" => value
            .as_object()
            .is_none_or(|map| map.iter().all(|(name, value)| is_entry_valid(schema, name, value))),
        other => panic!("the schema has {other}"),
    })
}

fn is_entry_valid(schema: &Value, name: &str, value: &Value) -> bool {
    let pattern = schema.pointer("/patternProperties").and_then(Value::as_object);
    let known = schema.pointer("/properties").and_then(|known| known.get(name));
    match known.or_else(|| pattern?.values().next()) {
        Some(schema) => is_valid(schema, value),
        None => {
            let rest = &schema["additionalProperties"];
            rest.as_bool().unwrap_or_else(|| is_valid(rest, value))
        }
    }
}

#[test]
fn what_the_table_takes_is_valid_by_the_schema_and_a_mistake_is_not() {
    let schema = schema::schema();
    let valid = |text: &str| is_valid(&schema, &json5::from_str(text).unwrap());
    assert!(valid(default::TEXT) && valid(&default::TEXT.replace("//:", "")));
    for key in KEYS {
        for value in samples(key).into_iter().chain([Value::Null]) {
            assert!(valid(&file_with(key.path, &value)), "{} = {value}", key.path);
        }
        assert!(!valid(&file_with(key.path, &json!([[1]]))), "{}", key.path);
        assert!(!valid(&file_with(&format!("{}x", key.path), &json!(1))), "{}x", key.path);
    }
    assert!(!valid("{ inbound: { reply: {} } }") && !valid("{ agents: { own: {} } }"));
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("Infinity".to_owned()),
        Just("-0x1F".to_owned()),
        any::<f64>().prop_map(|number| format!("{number:e}")),
        any::<u64>().prop_map(|number| number.to_string()),
        "[ -~]{0,8}".prop_map(|text| json!(text).to_string()),
        Just("'queue'".to_owned()),
        Just("'claude'".to_owned()),
        Just("'10m'".to_owned()),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let names: Vec<&str> = KEYS.iter().flat_map(|key| key.path.split('.')).collect();
        let name = prop_oneof![
            4 => proptest::sample::select(names).prop_map(|name| json!(name).to_string()),
            1 => "[a-z_]{1,6}",
        ];
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            3 => proptest::collection::vec((name, inner), 0..6).prop_map(|entries| {
                let entries = entries.into_iter().map(|(name, value)| format!("{name}: {value}"));
                format!("{{\n{}\n}}", entries.collect::<Vec<_>>().join(",\n"))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_is_in_a_file_each_error_has_a_place(text in value()) {
        if let Err(said) = load(&text) {
            for line in said.lines() {
                prop_assert!(line.starts_with("ostler.json5:"), "{text}\n{line}");
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}", dotenv in "\\PC{0,60}") {
        let files = [("ostler.json5", text.as_str()), (".env", dotenv.as_str())];
        load_files(&files, &[], Trust::Named).ok();
    }
}
