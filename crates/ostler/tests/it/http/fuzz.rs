//! A schema fuzzer reads the OpenAPI document and tries what it allows, and what it
//! does not: every answer is documented, has the documented form, and none is a
//! failure of the gateway.
//!
//! Streams are tried in projects that there are not: others do not end, and the
//! fuzzer waits for the end of each answer. They have tests of their own.

use std::{
    ffi::OsString,
    fmt::Write as _,
    fs,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use super::served::{PATIENCE, Served, admin, roots};
use crate::support::{Outcome, Place, until};

/// What must hold for every answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance";
/// How many requests of its own invention it makes for an operation.
const EXAMPLES: &str = "10";
const SEED: &str = "8474";
/// The longest that it may take for all of it. The test has a time limit of its own,
/// in `.config/nextest.toml`.
const FUZZED: Duration = Duration::from_secs(250);

/// An operation that is not tried with the others, and why.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Apart {
    /// It never ends.
    Stream,
    /// The others would find nothing afterwards.
    Destructive,
}

/// A fuzzer and what it is set upon.
struct Fuzzer<'a> {
    program: OsString,
    place: &'a Place,
    url: String,
    key: &'a str,
}

impl Fuzzer<'_> {
    /// Tries some operations, with these parameters of paths.
    fn run(&self, filters: &[String], known: &[(&str, String)]) {
        let settings_file = self.place.path("schemathesis.toml");
        fs::write(&settings_file, settings(known)).unwrap();
        let mut command = Command::new(&self.program);
        command
            .args(["--config-file", settings_file.to_str().unwrap(), "run"])
            .arg(&self.url)
            .args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--workers", "1"])
            .args(["--max-examples", EXAMPLES, "--seed", SEED, "--suppress-health-check", "all"])
            .args(["--request-timeout", &PATIENCE.as_secs().to_string(), "--no-color"])
            .args(["--header", &format!("Authorization: Bearer {}", self.key)])
            .args(["--warnings", "off", "--continue-on-failure", "--generation-database", "none"])
            .args(["--generation-with-security-parameters", "false"])
            .args(filters)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.place.path("home"))
            .env("PYTHONUTF8", "1")
            .current_dir(self.place.work())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let outcome = Outcome::within(FUZZED, command, None);
        eprintln!("{}", outcome.stdout);
        assert_eq!(outcome.code, Some(0), "the report is above; {}", outcome.stderr);
    }
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
    let url = format!("{}/openapi.json", served.url());
    let fuzzer = Fuzzer { program, place: &place, url, key: &key };
    // With ids of things that there are, so that the requests come far.
    let known = Known::make(&place, &served, &key, "fuzzed");
    let without = apart.iter().flat_map(|(id, _)| exclude(id));
    fuzzer.run(&without.collect::<Vec<_>>(), &known.parameters());
    served.must_live();
    let told = known.look(&served, &key, "/commands");
    let n_commands = told["data"].as_array().unwrap().len();
    assert!(n_commands > 2, "no request came far: {told}");
    until("the agent has got its answer", || {
        let told = known.look(&served, &key, &format!("/commands/{}", known.asking));
        told["data"]["ended_at"].is_string().then_some(())
    });
    // What is deleted, first with what there is, and what never ends without.
    let doomed = Known::make(&place, &served, &key, "doomed");
    let only = |wanted: &[Apart]| -> Vec<_> {
        let wanted = apart.iter().filter(|(_, why)| wanted.contains(why));
        wanted.flat_map(|(id, _)| include(id)).collect()
    };
    fuzzer.run(&only(&[Apart::Destructive]), &doomed.parameters());
    for path in [format!("/projects/{}", doomed.project), format!("/webhooks/{}", doomed.webhook)] {
        let (status, told) = served.call("GET", &path, &key, &Value::Null);
        assert_eq!(status, 404, "it is still there: {told}");
    }
    let path = format!("/keys/{}", doomed.key);
    let (_, told) = served.call("GET", &path, &key, &Value::Null);
    assert_eq!(told["data"]["state"], "revoked", "{told}");
    fuzzer.run(&only(&[Apart::Destructive, Apart::Stream]), &[]);
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

/// Things that there are.
struct Known {
    project: String,
    command: String,
    /// A command whose agent waits for an answer.
    asking: String,
    permission: String,
    turn: String,
    webhook: String,
    key: String,
}

impl Known {
    /// Makes a project, and one of everything in it.
    fn make(place: &Place, served: &Served, key: &str, name: &str) -> Self {
        let folder = roots(place).join(name);
        fs::create_dir_all(&folder).unwrap();
        let make = |path: &str, body: Value, wanted: u16| {
            let (status, made) = served.call("POST", path, key, &body);
            assert_eq!(status, wanted, "{path}: {made}");
            made["data"].clone()
        };
        let project = make("/projects", json!({ "name": name, "directory": folder }), 201);
        let project = text(&project["id"]);
        let path = format!("/projects/{project}");
        let hello = json!({ "prompt": "Say hello" });
        let command = text(&make(&format!("{path}/prompt?wait=60s"), hello, 200)["id"]);
        let (_, turns) = served.call("GET", &format!("{path}/turns"), key, &Value::Null);
        let turn = text(&turns["data"][0]["id"]);
        let tests = json!({ "prompt": "Run the tests", "permissions": "ask" });
        let asking = text(&make(&format!("{path}/prompt"), tests, 202)["command_id"]);
        let permission = until("the agent asks", || {
            let path = format!("{path}/permissions");
            let (_, asked) = served.call("GET", &path, key, &Value::Null);
            asked["data"][0]["id"].as_str().map(str::to_owned)
        });
        let body = json!({
            "url": "https://example.org/", "events": ["command.failed"], "project_id": project,
        });
        let webhook = text(&make("/webhooks", body, 201)["id"]);
        let body = json!({ "name": name, "scopes": ["projects:read"] });
        let key = text(&make("/keys", body, 201)["id"]);
        Self { project, command, asking, permission, turn, webhook, key }
    }

    /// Returns the parameters of paths that lead to them.
    fn parameters(&self) -> [(&'static str, String); 7] {
        let Self { project, command, permission, turn, webhook, key, .. } = self;
        let agent = "claudecode".to_owned();
        [
            ("project", project.clone()),
            ("command", command.clone()),
            ("permission", permission.clone()),
            ("turn", turn.clone()),
            ("webhook", webhook.clone()),
            ("key", key.clone()),
            ("agent", agent),
        ]
    }

    /// Reads something of the project, which must be there.
    fn look(&self, served: &Served, key: &str, path: &str) -> Value {
        let path = format!("/projects/{}{path}", self.project);
        let (status, told) = served.call("GET", &path, key, &Value::Null);
        assert_eq!(status, 200, "the key is good to the end: {told}");
        told
    }
}

fn text(of: &Value) -> String {
    of.as_str().unwrap_or_else(|| panic!("{of}")).to_owned()
}

/// Returns the settings of the fuzzer: what to give for parameters. Nobody waits for
/// the end of what it asks for, which may take minutes.
fn settings(known: &[(&str, String)]) -> String {
    let mut text = String::from("[parameters]\n\"query.wait\" = \"1s\"\n");
    for (name, value) in known {
        writeln!(text, "\"path.{name}\" = \"{value}\"").unwrap();
    }
    text
}
