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
        Kind::Text => vec![json!(""), json!("text")],
        Kind::Path => vec![json!("x"), json!("./a/b"), json!("/a")],
        Kind::Choice(words) => words.iter().map(|word| json!(word)).collect(),
        Kind::Duration => vec![json!("90s"), json!(5), json!(0.5), json!("7d")],
        Kind::DurationOrOff => vec![json!("90s"), json!("off")],
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
