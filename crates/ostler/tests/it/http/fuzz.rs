//! A schema fuzzer reads the OpenAPI document and tries what it allows, and what it
//! does not: every answer is documented, has the documented form, and none is a
//! failure of the gateway.
//!
//! Streams are left out: they do not end, and the fuzzer waits for the end of each
//! answer. They have tests of their own.

use std::{
    fmt::Write as _,
    fs,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::served::{PATIENCE, Served, admin, roots};
use crate::support::{Outcome, Place};

/// What must hold for every answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance";
/// How many requests of its own invention it makes for an operation.
const EXAMPLES: &str = "10";
const SEED: &str = "8474";

/// An operation that is not tried with the others, and why.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Apart {
    /// It never ends.
    Stream,
    /// The others would find nothing afterwards.
    Destructive,
}

#[test]
fn no_request_gets_an_answer_that_is_not_documented() {
    let Some(program) = std::env::var_os("OSTLER_TEST_SCHEMATHESIS") else {
        let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!is_ci, "OSTLER_TEST_SCHEMATHESIS does not say where the fuzzer is");
        eprintln!("skipped: OSTLER_TEST_SCHEMATHESIS does not say where the fuzzer is");
        return;
    };
    let place = Place::new();
    let mut served = Served::start(&place);
    let key = admin(&place);
    let (_, document) = served.call("GET", "/openapi.json", "", &Value::Null);
    let apart = apart(&document);
    let known = known(&place, &served, &key);
    let url = format!("{}/openapi.json", served.url());
    let fuzz = |filters: &[String], known: &[(&str, String)]| {
        fs::write(place.path("schemathesis.toml"), settings(known)).unwrap();
        let mut command = Command::new(&program);
        command
            .args(["--config-file", place.path("schemathesis.toml").to_str().unwrap(), "run"])
            .arg(&url)
            .args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--workers", "1"])
            .args(["--max-examples", EXAMPLES, "--seed", SEED, "--suppress-health-check", "all"])
            .args(["--request-timeout", &PATIENCE.as_secs().to_string(), "--no-color"])
            .args(["--header", &format!("Authorization: Bearer {key}")])
            .args(["--warnings", "off", "--continue-on-failure", "--generation-database", "none"])
            .args(["--generation-with-security-parameters", "false"])
            .args(filters)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", place.path("home"))
            .env("PYTHONUTF8", "1")
            .current_dir(place.work())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let outcome = Outcome::of_input(command, None);
        eprintln!("{}", outcome.stdout);
        assert_eq!(outcome.code, Some(0), "the report is above; {}", outcome.stderr);
    };
    // With ids of things that there are, so that the requests come far.
    let without = apart.iter().flat_map(|(id, _)| exclude(id));
    fuzz(&without.collect::<Vec<_>>(), &known);
    served.must_live();
    let commands = format!("/projects/{}/commands", known[0].1);
    let (status, told) = served.call("GET", &commands, &key, &Value::Null);
    assert_eq!(status, 200, "the key is good to the end: {told}");
    let n_commands = told["data"].as_array().unwrap().len();
    assert!(n_commands > 1, "no request came far: {told}");
    // What is left, with ids of things that there are not.
    let destructive = apart.iter().filter(|(_, why)| *why == Apart::Destructive);
    let only: Vec<_> = destructive.flat_map(|(id, _)| include(id)).collect();
    if !only.is_empty() {
        fuzz(&only, &[]);
    }
    served.must_live();
    served.stop();
}

fn exclude(id: &str) -> [String; 2] {
    ["--exclude-operation-id".to_owned(), id.to_owned()]
}

fn include(id: &str) -> [String; 2] {
    ["--include-operation-id".to_owned(), id.to_owned()]
}

/// Returns the operations that are not tried with the others.
fn apart(document: &Value) -> Vec<(String, Apart)> {
    let mut apart = Vec::new();
    for item in document["paths"].as_object().unwrap().values() {
        for (method, operation) in item.as_object().unwrap() {
            let is_stream =
                operation["responses"]["200"]["content"]["text/event-stream"].is_object();
            let why = match method.as_str() {
                _ if is_stream => Apart::Stream,
                "delete" => Apart::Destructive,
                _ => continue,
            };
            apart.push((operation["operationId"].as_str().unwrap().to_owned(), why));
        }
    }
    apart
}

/// Makes a project and a command in it, where there are such things, and returns
/// the parameters of paths that lead to them.
fn known(place: &Place, served: &Served, key: &str) -> Vec<(&'static str, String)> {
    let folder = roots(place).join("fuzzed");
    fs::create_dir_all(&folder).unwrap();
    let body = json!({ "name": "fuzzed", "directory": folder });
    let (status, project) = served.call("POST", "/projects", key, &body);
    assert_eq!(status, 201, "{project}");
    let id = |of: &Value| of.as_str().unwrap_or_else(|| panic!("{of}")).to_owned();
    let project = id(&project["data"]["id"]);
    let prompt = format!("/projects/{project}/prompt?wait=20s");
    let (status, command) = served.call("POST", &prompt, key, &json!({ "prompt": "Say hello" }));
    assert_eq!(status, 200, "{command}");
    let command = id(&command["data"]["id"]);
    let (_, turns) = served.call("GET", &format!("/projects/{project}/turns"), key, &Value::Null);
    let turn = id(&turns["data"][0]["id"]);
    let agent = "claudecode".to_owned();
    vec![("project", project), ("command", command), ("turn", turn), ("agent", agent)]
}

/// Returns the settings of the fuzzer: what to give for parameters.
fn settings(known: &[(&str, String)]) -> String {
    let mut text = String::from("[parameters]\n");
    for (name, value) in known {
        writeln!(text, "\"path.{name}\" = \"{value}\"").unwrap();
    }
    text
}
