//! Permissions that a turn in the gateway asks for.

use std::io::{BufRead as _, BufReader};

use serde_json::json;

use super::{Serving, raw::Raw};
use crate::{
    chat::{asking, told},
    support::{Place, Running},
    terminal::Terminal,
};

fn serving() -> Serving {
    let place = Place::new();
    let program = asking(&place);
    Serving::with_program(place, "codex", &program)
}

#[test]
fn somebody_at_a_terminal_is_asked_in_place() {
    let serving = serving();
    let mut terminal = Terminal::start(&serving.place, "run --daemon --permissions ask 'tidy up'");
    terminal.wait_for("[a]llow, al[w]ays, [d]eny? ");
    terminal.enter("maybe");
    terminal.wait_for("a: allow");
    terminal.enter("a");
    terminal.wait_for("as you wish");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(told(&serving.place).contains("accept"));
}

#[test]
fn elsewhere_the_request_waits_for_whoever_answers() {
    let serving = serving();
    let args = ["run", "--daemon", "--permissions", "ask", "--output", "stream-json", "tidy up"];
    let mut run = Running::start(serving.place.ostler(&args));
    let asked = run.wait_for(|event| event["type"] == "permission");
    let id = asked["id"].as_str().unwrap();
    assert!(id.starts_with("prm_"), "{asked}");
    let deny = json!({ "type": "answer", "request": id, "decision": "deny" });
    let mut raw = Raw::connect(&serving);
    assert_eq!(raw.ask(&deny)["type"], "answered");
    assert_eq!(raw.ask(&deny)["code"], "decided");
    let (code, events) = run.finish();
    assert_eq!(code, Some(0));
    assert_eq!(events.statuses("permission_resolved")[0]["decision"], "deny");
    assert!(told(&serving.place).contains("decline"));
}

#[test]
fn who_cannot_answer_is_told_what_is_waited_for() {
    let serving = serving();
    let mut command = serving.place.ostler(&["run", "--daemon", "--permissions", "ask", "tidy up"]);
    let mut run = command.spawn().unwrap();
    let mut stderr = BufReader::new(run.stderr.take().unwrap());
    let mut told = String::new();
    while !told.contains("waiting for an answer to prm_") {
        assert_ne!(stderr.read_line(&mut told).unwrap(), 0, "{told}");
    }
    assert!(told.contains("? run a command with"), "{told}");
    let id = told.trim_end().rsplit(' ').next().unwrap();
    let allow = json!({ "type": "answer", "request": id, "decision": "allow" });
    assert_eq!(Raw::connect(&serving).ask(&allow)["type"], "answered");
    let outcome = run.wait_with_output().unwrap();
    assert_eq!(outcome.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&outcome.stdout), "as you wish\n");
}
