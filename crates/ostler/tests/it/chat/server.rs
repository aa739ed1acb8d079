//! An agent that is an HTTP server: every call that is made of it, what becomes
//! of those that fail, and what it tells. The scripted agent plays it.

use serde_json::Value;

use super::{Held, player_of, start};
use crate::{
    conformance::chat::Chat,
    support::{Events, Place, processes_with},
};

const TEXT: &str = "This is Ostler's scripted agent playing opencode; no model was asked.";

/// Starts a conversation with the played server.
fn talk(place: &Place, more: &[&str]) -> Chat {
    let program = player_of("opencode", place, Held::No);
    let mut args = vec!["--agent", "opencode", "--bin", &program];
    for (name, value) in [("--timeout", "60s"), ("--permissions", "bypass")] {
        if !more.contains(&name) {
            args.extend([name, value]);
        }
    }
    args.extend(more);
    start(place, &args)
}

/// The start of what is answered to each prompt of a conversation.
fn says(events: &Events) -> &str {
    events.last()["response_text"].as_str().unwrap_or_default()
}

fn error_of(events: &Events) -> (&str, &str) {
    let error = &events.last()["error"];
    (error["kind"].as_str().unwrap_or_default(), error["message"].as_str().unwrap_or_default())
}

#[test]
fn turns_run_in_one_server_and_their_session_is_known() {
    let place = Place::new();
    let mut chat = talk(&place, &[]);
    let first = chat.ask("hello");
    assert!(says(&first).starts_with(TEXT), "{}", first.last());
    assert_eq!(first.text("output"), says(&first));
    assert!(first.of_type("output").count() > 1, "{:?}", first.types());
    assert_eq!(first.last()["usage"]["total_tokens"], 1128, "{}", first.last());
    let tool = chat.ask("sim:tool sim:history");
    assert!(says(&tool).contains("Prompts in this session so far: 2"), "{}", tool.last());
    assert_eq!((tool.of_type("tool_use").count(), tool.of_type("tool_result").count()), (1, 1));
    assert_eq!(tool.last()["session_id"], first.last()["session_id"]);
    chat.end();
    let left = processes_with(&place.path("agent").display().to_string());
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_session_is_found_by_the_next_server_or_lost() {
    let place = Place::new();
    let mut chat = talk(&place, &[]);
    let session = chat.ask("hello").last()["session_id"].as_str().unwrap().to_owned();
    chat.end();
    let mut chat = talk(&place, &["--session", &session]);
    let events = chat.ask("sim:history");
    assert!(says(&events).contains("so far: 2"), "{}", events.last());
    chat.end();
    for unknown in ["ses_00000000000000000000000000", "nonsense"] {
        let mut chat = talk(&place, &["--session", unknown]);
        assert_eq!(error_of(&chat.ask("hello")).0, "session_lost", "{unknown}");
        chat.end();
    }
}

#[test]
fn a_call_that_fails_is_named_with_its_status_and_the_start_of_the_reply() {
    let place = Place::new();
    let mut chat = talk(&place, &[]);
    let session = chat.ask("hello").last()["session_id"].as_str().unwrap().to_owned();
    let call = format!("POST /session/{session}/prompt_async of opencode's server");
    for (status, kind, rest) in [
        (400, "invalid_request", "Missing key"),
        (401, "auth", ""),
        (404, "session_lost", "Session not found"),
        (418, "invalid_request", "as the prompt asked"),
        (500, "unavailable", "Unexpected server error"),
        (503, "overloaded", "as the prompt asked"),
    ] {
        let events = chat.ask(&format!("sim:http={status}"));
        let (told, message) = error_of(&events);
        assert!(message.starts_with(format!("{call}: {status} {rest}").trim_end()), "{message}");
        assert_eq!(told, kind, "{status}: {message}");
    }
    assert!(says(&chat.ask("sim:history")).starts_with(TEXT), "it goes on");
    chat.end();
}

#[test]
fn permissions_and_questions_are_asked_and_answered() {
    let place = Place::new();
    let mut chat = talk(&place, &["--permissions", "ask"]);
    for (decision, says_so) in [("allow", "pretended to run"), ("deny", "not allowed to run")] {
        chat.prompt("sim:tool");
        let asked = chat.wait_for(|event| event["type"] == "permission");
        assert_eq!((&asked["kind"], &asked["title"]), (&"command".into(), &"echo hi".into()));
        chat.answer(&asked["request"], decision);
        let events = chat.finish();
        assert!(says(&events).contains(says_so), "{}", events.last());
        assert_eq!(events.of_type("permission").count(), 1);
    }
    chat.prompt("sim:question");
    let asked = chat.wait_for(|event| event["type"] == "permission");
    assert_eq!((&asked["kind"], &asked["title"]), (&"question".into(), &"Which colour?".into()));
    let answer = serde_json::json!({
        "type": "answer", "request": asked["request"], "decision": "allow", "text": "Green",
    });
    chat.send(&answer);
    let events = chat.finish();
    assert!(says(&events).ends_with("You chose Green."), "{}", events.last());
    chat.end();
}

#[test]
fn a_cancelled_turn_is_aborted_and_the_session_goes_on() {
    let place = Place::new();
    let mut chat = talk(&place, &[]);
    for prompt in ["sim:slow=60000", "sim:never-idle", "sim:tool sim:slow=60000"] {
        chat.prompt(prompt);
        chat.wait_for(|event| event["type"] == "output");
        chat.cancel();
        assert_eq!(error_of(&chat.finish()).0, "cancelled", "{prompt}");
        assert!(says(&chat.ask("hello")).starts_with(TEXT));
    }
    chat.end();
}

#[test]
fn a_stream_that_breaks_off_loses_nothing() {
    let place = Place::new();
    let mut chat = talk(&place, &[]);
    for prompt in ["sim:cut", "sim:cut sim:tool", "sim:cut sim:slow=20"] {
        let events = chat.ask(prompt);
        assert!(says(&events).starts_with(TEXT), "{}", events.last());
        assert_eq!(events.text("output"), says(&events), "{:?}", events.types());
        assert_eq!(events.of_type("tool_use").count(), events.of_type("tool_result").count());
    }
    chat.end();
}

#[test]
fn what_a_server_does_wrong_harms_no_turn() {
    let place = Place::new();
    let mut chat = talk(&place, &[]);
    for prompt in ["sim:double-idle", "sim:no-session", "sim:garbage", "sim:delay=200", "hello"] {
        let events = chat.ask(prompt);
        assert!(says(&events).starts_with(TEXT), "{prompt}: {}", events.last());
        assert_eq!(events.text("output"), says(&events), "{prompt}");
    }
    let failed = chat.ask("sim:error");
    assert_eq!(error_of(&failed), ("invalid_request", "The scripted model was asked to fail."));
    let after = chat.ask("hello");
    assert!(says(&after).starts_with(TEXT), "the second idle ends nothing: {}", after.last());
    chat.end();
}

#[test]
fn a_turn_that_is_never_said_to_be_over_runs_into_its_time_limit() {
    let place = Place::new();
    let mut chat = talk(&place, &["--timeout", "5s"]);
    assert_eq!(error_of(&chat.ask("sim:never-idle")).0, "timeout");
    assert!(says(&chat.ask("hello")).starts_with(TEXT));
    chat.end();
}

#[test]
fn a_server_that_dies_or_hangs_fails_the_turn_and_is_replaced() {
    let place = Place::new();
    let mut chat = talk(&place, &["--timeout", "8s"]);
    let session = chat.ask("hello").last()["session_id"].clone();
    for (prompt, kind) in [("sim:crash", "crashed"), ("sim:hang", "timeout")] {
        assert_eq!(error_of(&chat.ask(prompt)).0, kind, "{prompt}");
        let after = chat.ask("sim:history");
        assert!(says(&after).starts_with(TEXT), "{}", after.last());
        assert_eq!(after.last()["session_id"], session);
    }
    chat.end();
}

#[test]
fn flat_names_come_to_the_same_turn_without_what_they_do_not_tell() {
    let place = Place::new();
    let flat = ["--agent-arg=--scripted-events", "--agent-arg=flat"];
    let mut chat = talk(&place, &flat);
    let events = chat.ask("sim:tool");
    let last = events.last();
    assert!(says(&events).starts_with(TEXT), "{last}");
    assert_eq!(events.text("output"), says(&events));
    let result = events.of_type("tool_result").next().unwrap();
    assert_eq!((&result["output"], &result["is_error"]), (&"hi\n".into(), &false.into()));
    assert_eq!(events.of_type("tool_use").next().unwrap()["title"], "echo hi");
    assert_eq!(events.of_type("usage").count(), 0);
    assert_eq!((&last["stop_reason"], &last["model"]), (&Value::Null, &Value::Null), "{last}");
    let failed = chat.ask("sim:error");
    assert_eq!(error_of(&failed).1, "The scripted model was asked to fail.");
    chat.prompt("sim:slow=60000");
    chat.wait_for(|event| event["type"] == "output");
    chat.cancel();
    assert_eq!(error_of(&chat.finish()).0, "cancelled");
    assert!(says(&chat.ask("hello")).starts_with(TEXT));
    chat.end();
}
