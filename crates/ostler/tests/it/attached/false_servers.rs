//! What may answer where the server should be, and settings that lead nowhere.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Instant,
};

use serde_json::Value;

use super::{PASSWORD, attached, outcome, text};
use crate::support::Place;

/// Something that listens and gives every call the same answer, or none.
struct Impostor {
    url: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Impostor {
    /// Gives this answer, the whole of it; an empty one is none at all.
    fn saying(answer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (answer, into) = (answer.to_owned(), Arc::clone(&heard));
        // Ends with the process of the test, like everything that it holds.
        thread::spawn(move || {
            let mut open: Vec<TcpStream> = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = [0; 4096];
                let n_read = stream.read(&mut request).unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..n_read]).into_owned();
                into.lock().unwrap().push(request);
                stream.write_all(answer.as_bytes()).ok();
                if answer.is_empty() {
                    open.push(stream);
                }
            }
        });
        Self { url, heard }
    }

    fn answering(status: &str, more: &str, body: &str) -> Self {
        let length = body.len();
        Self::saying(&format!(
            "HTTP/1.1 {status}\r\n{more}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ))
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

/// What `run` says of a server, as its error object, after it refused with 3.
fn refusal(url: &str) -> Value {
    let place = Place::new();
    let args = ["run", "--agent", "opencode", "--output", "json", "hello"];
    let outcome = outcome(attached(&place, url, &args));
    assert_eq!(outcome.code, Some(3), "{}{}", outcome.stdout, outcome.stderr);
    outcome.json()["error"].clone()
}

#[test]
fn whatever_answers_instead_of_the_server_is_told_with_what_to_do() {
    let stranger = Impostor::answering("200 OK", "", "<html>hello</html>");
    let locked = Impostor::answering("401 Unauthorized", "", "");
    let broken = Impostor::answering("502 Bad Gateway", "", "upstream is gone");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (url, kind, words) in [
        (&stranger.url, "invalid_request", ["GET /global/health", "200 <html>", "OPENCODE_URL"]),
        (&locked.url, "auth", ["GET /global/health", "401", "OPENCODE_PASSWORD"]),
        (&broken.url, "unavailable", ["GET /global/health", "502 upstream", "`opencode serve`"]),
        (
            &format!("http://{nobody}"),
            "unavailable",
            ["GET /global/health", "Connection refused", "`opencode serve`"],
        ),
    ] {
        let error = refusal(url);
        assert_eq!(text(&error, "kind"), kind, "{error}");
        for word in words {
            assert!(text(&error, "message").contains(word), "{word}: {error}");
        }
    }
}

#[test]
fn a_password_does_not_follow_where_a_server_leads() {
    let thief = Impostor::answering("200 OK", "", "{\"healthy\":true,\"version\":\"1.18.33\"}");
    let location = format!("location: {}/global/health\r\n", thief.url);
    let guide = Impostor::answering("307 Temporary Redirect", &location, "");
    let error = refusal(&guide.url);
    assert!(text(&error, "message").contains("307"), "{error}");
    assert!(guide.heard()[0].contains("authorization: Basic "), "{:?}", guide.heard());
    assert_eq!(thief.heard(), Vec::<String>::new());
}

#[test]
fn one_that_never_answers_costs_the_list_of_agents_two_seconds() {
    let silent = Impostor::saying("");
    let place = Place::new();
    let began = Instant::now();
    let listed = outcome(attached(&place, &silent.url, &["agents", "--output", "json"]));
    assert!(began.elapsed().as_secs() < 8, "{:?}", began.elapsed());
    let row = listed.json();
    let row = row.as_array().unwrap().iter().find(|row| row["name"] == "opencode").unwrap();
    assert_eq!((&row["installed"], &row["server"]["healthy"]), (&false.into(), &false.into()));
    assert_eq!(row["server"]["url"], silent.url);
    assert!(text(row, "problem").contains("no reply within 2s"), "{row}");
}

#[test]
fn the_lists_show_where_the_server_is_and_how_it_does() {
    let untested = "{\"healthy\":true,\"version\":\"99.0.1\"}";
    let server = Impostor::answering("200 OK", "content-type: application/json\r\n", untested);
    let place = Place::new();
    let listed = outcome(attached(&place, &server.url, &["agents", "--output", "json"])).json();
    let row = listed.as_array().unwrap().iter().find(|row| row["name"] == "opencode").unwrap();
    assert_eq!((&row["installed"], &row["path"]), (&true.into(), &Value::Null));
    assert_eq!(row["server"]["healthy"], true);
    assert!(row["server"]["latency_ms"].is_u64(), "{row}");
    assert_eq!(text(row, "version_status"), "newer");
    assert!(text(row, "problem").contains("99.0.1 was not tested"), "{row}");
    let table = outcome(attached(&place, &server.url, &["agents"])).stdout;
    assert!(table.contains(&server.url), "{table}");

    let report = outcome(attached(&place, &server.url, &["doctor", "--output", "json"])).json();
    let findings = report["findings"].as_array().unwrap().iter();
    let ours: Vec<_> = findings.filter(|finding| finding["agent"] == "opencode").collect();
    let areas: Vec<_> = ours.iter().map(|finding| text(finding, "area")).collect();
    assert_eq!(areas, ["server", "version"]);
    assert!(text(ours[0], "message").contains(&server.url));
}

#[test]
fn a_server_that_is_out_of_reach_is_an_error_of_the_doctors() {
    let place = Place::new();
    let report = outcome(attached(&place, "http://127.0.0.1:9", &["doctor", "--output", "json"]));
    assert_eq!(report.code, Some(1));
    let report = report.json();
    let is_ours = |finding: &&Value| finding["area"] == "server";
    let finding = report["findings"].as_array().unwrap().iter().find(is_ours).unwrap();
    assert_eq!(text(finding, "level"), "error");
    assert!(text(finding, "fix").contains("OPENCODE_URL"), "{finding}");
}

#[test]
fn what_would_be_done_is_shown_without_the_password_and_without_asking_anybody() {
    let place = Place::new();
    let args = ["run", "--agent", "opencode", "--dry-run", "--output", "json", "hello"];
    let plan = outcome(attached(&place, "http://127.0.0.1:9/", &args)).json();
    assert_eq!(text(&plan, "server"), "http://127.0.0.1:9");
    assert_eq!((text(&plan, "user"), text(&plan, "prompt")), ("opencode", "hello"));
    assert_eq!(plan["argv"], serde_json::json!([]));
}

#[test]
fn wrong_settings_are_errors_of_usage_that_say_what_is_right() {
    let place = Place::new();
    for (name, value, word) in [
        ("OPENCODE_ENABLED", "maybe", "true"),
        ("OPENCODE_URL", "", "http://"),
        ("OPENCODE_URL", "unix:/run/x", "https://"),
        ("OPENCODE_URL", "http://me:very-secret-word@127.0.0.1", "apart from the URL"),
        ("OPENCODE_URL", "http://127.0.0.1/?x", "begins with ?"),
    ] {
        let args = ["run", "--agent", "opencode", "hello"];
        let mut command = attached(&place, "http://127.0.0.1:9", &args);
        command.env(name, value);
        let outcome = outcome(command);
        assert_eq!(outcome.code, Some(2), "{value}");
        assert!(
            outcome.stderr.contains(name) && outcome.stderr.contains(word),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn no_child_of_any_agent_sees_the_password() {
    let place = Place::new();
    let line = serde_json::json!({ "type": "result", "result": "x" }).to_string();
    let script = format!("#!/bin/sh\nenv >&2; env > seen; echo '{line}'\n");
    let program = place.program("claude", &script);
    let bin = program.display().to_string();
    let args = ["run", "--agent", "claude", "--bin", &bin, "--permissions", "bypass", "hello"];
    let mut command = attached(&place, "http://127.0.0.1:9", &args);
    command.env("PATH", "/usr/bin:/bin");
    outcome(command);
    let seen = std::fs::read_to_string(place.work().join("seen")).unwrap();
    assert!(seen.contains("OSTLER_TURN") && !seen.contains(PASSWORD), "{seen}");
}
