//! What holds for every operation, whoever wrote it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::text;
use crate::{api::limits::is_free, key::Scope};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// What can be asked for without a key.
const OPEN: [&str; 5] = ["/docs", "/health", "/media/{token}", "/openapi.json", "/ready"];

fn document() -> Value {
    serde_json::from_str(text().unwrap()).unwrap()
}

/// Returns every operation with its method and its path.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let all = paths.flat_map(|(path, item)| {
        let item = item.as_object().unwrap().iter();
        item.map(move |(method, operation)| (method.as_str(), path.as_str(), operation))
    });
    all.collect()
}

#[test]
fn the_document_in_the_repository_is_this_one() {
    let printed = text().unwrap();
    let kept = include_str!("../../../openapi.json");
    let mut lines = kept.lines().zip(printed.lines()).enumerate();
    let other = lines.find(|(_, (kept, printed))| kept != printed);
    assert!(
        kept.trim_end() == printed,
        "openapi.json is another, first at {other:?}: run \
         `ostler openapi > crates/ostler/openapi.json`, and look at the difference"
    );
}

#[test]
fn every_operation_has_a_summary_a_tag_and_a_name_of_its_own() {
    let document = document();
    let mut names = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let place = format!("{method} {path}");
        assert!(METHODS.contains(&method), "{place}: a method that clients do not know");
        let summary = operation["summary"].as_str().unwrap_or_default();
        assert!(!summary.is_empty() && !summary.ends_with('.'), "{place}: summary {summary:?}");
        assert_eq!(operation["tags"].as_array().map(Vec::len), Some(1), "{place}: one tag");
        let name = operation["operationId"].as_str().unwrap();
        assert!(names.insert(name), "{place}: {name} is also the name of another operation");
    }
}

#[test]
fn every_operation_says_what_a_caller_without_the_right_key_is_told() {
    let document = document();
    let scopes = Scope::ALL.map(Scope::as_str);
    for (method, path, operation) in operations(&document) {
        let place = format!("{method} {path}");
        let security = operation["security"].as_array();
        assert_eq!(security.is_none(), OPEN.contains(&path), "{place}: who may call it");
        for status in ["401", "403"] {
            let is_told = !operation["responses"][status].is_null();
            assert_eq!(is_told, security.is_some(), "{place}: {status}");
        }
        for scheme in security.into_iter().flatten() {
            let wanted = scheme["key"].as_array().unwrap_or_else(|| panic!("{place}: {scheme}"));
            let known = |scope: &Value| scopes.contains(&scope.as_str().unwrap_or_default());
            assert!(wanted.iter().all(known), "{place}: {wanted:?}");
        }
    }
}

#[test]
fn every_operation_but_those_of_watchers_and_links_says_that_it_may_be_asked_too_often() {
    let document = document();
    for (method, path, operation) in operations(&document) {
        let is_told = !operation["responses"]["429"].is_null();
        assert_eq!(is_told, !is_free(path), "{method} {path}");
    }
}

#[test]
fn every_answer_says_what_it_means_and_errors_have_the_envelope() {
    let document = document();
    for (method, path, operation) in operations(&document) {
        let answers = operation["responses"].as_object().unwrap();
        let is_good = |status: &String| status.starts_with('2');
        assert!(answers.keys().any(is_good), "{method} {path}: no answer is a good one");
        for (status, answer) in answers {
            let about = answer["description"].as_str().unwrap_or_default();
            assert!(!about.is_empty(), "{method} {path}: what does {status} mean?");
            let is_error = status.starts_with(['4', '5']);
            let schema = &answer["content"]["application/json"]["schema"]["$ref"];
            // Whether it takes requests is told in one form, whatever the answer.
            if is_error && path != "/ready" {
                assert_eq!(schema, "#/components/schemas/ErrorBody", "{method} {path}: {status}");
            }
        }
    }
}

#[test]
fn every_path_parameter_is_documented_and_no_other() {
    let document = document();
    for (method, path, operation) in operations(&document) {
        let written = path.split('{').skip(1).filter_map(|part| part.split('}').next());
        let written: BTreeSet<_> = written.collect();
        let told = operation["parameters"].as_array().into_iter().flatten();
        for parameter in told.clone() {
            let about = parameter["description"].as_str().unwrap_or_default();
            assert!(!about.is_empty(), "{method} {path}: what is {}?", parameter["name"]);
        }
        let told = told.filter(|parameter| parameter["in"] == "path");
        let told: BTreeSet<_> = told.filter_map(|parameter| parameter["name"].as_str()).collect();
        assert_eq!(told, written, "{method} {path}");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = document();
    let mut left = vec![&document];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(fields) => left.extend(fields.values()),
            Value::Array(values) => left.extend(values),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        if let Some(reference) = value["$ref"].as_str() {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
        }
    }
}

#[test]
fn the_whole_says_how_keys_answers_pages_and_errors_work() {
    let document = document();
    let about = document["info"]["description"].as_str().unwrap();
    for word in ["Authorization: Bearer", "request_id", "next_cursor", "Idempotency-Key"] {
        assert!(about.contains(word), "{word}");
    }
    let codes = document["components"]["schemas"]["Code"]["enum"].as_array().unwrap();
    for code in codes {
        assert!(about.contains(&format!("| `{}` |", code.as_str().unwrap())), "{code}");
    }
    let scheme = &document["components"]["securitySchemes"]["key"];
    assert_eq!((&scheme["type"], &scheme["scheme"]), (&"http".into(), &"bearer".into()));
}
