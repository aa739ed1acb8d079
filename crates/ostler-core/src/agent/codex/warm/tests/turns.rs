//! What is told while a turn runs.

use super::*;
use crate::{
    agent::{
        ONLY_SESSION, Order,
        testing::{events, exit, outputs},
    },
    event::Stream,
};

const FIRST: TurnKey = TurnKey(0);
const SECOND: TurnKey = TurnKey(1);

fn message(id: &str, text: &str) -> Value {
    json!({ "item": { "type": "agentMessage", "id": id, "text": text } })
}

#[test]
fn a_turn_that_begins_before_our_request_is_answered_is_ours() {
    let mut talk = Talk::open(&options());
    talk.prompt(FIRST, "hi", &options());
    talk.notify("turn/started", json!({ "threadId": THREAD, "turn": { "id": TURN } }));
    talk.tell_turn("item/completed", message("m", "Hello"));
    talk.answer_ok("turn/start", json!({ "turn": { "id": TURN } }));
    talk.over("completed", Value::Null);
    let end = end_of(&talk.actions, FIRST);
    assert_eq!(end.text.as_deref(), Some("Hello"));
    assert_eq!(end.model.as_deref(), Some("gpt-5.5"));
    assert!(end.file.as_ref().is_some_and(|file| file.ends_with(format!("{THREAD}.jsonl"))));
    assert_eq!(end.meta["version"], "0.166.0");
    assert!(!talk.actions.iter().any(|action| matches!(action, Action::Unasked { .. })));
}

#[test]
fn late_lines_of_a_turn_that_is_over_do_not_reach_the_next() {
    let mut talk = Talk::running(&options(), FIRST);
    talk.over("completed", Value::Null);
    talk.prompt(SECOND, "again", &options());
    assert!(talk.tell_turn("item/completed", message("m", "late")).is_empty());
    assert!(talk.over("completed", Value::Null).is_empty());
    let other = "01a1e08f-ebac-7702-91cd-09bc4f42f90a";
    talk.notify("turn/started", json!({ "threadId": THREAD, "turn": { "id": other } }));
    assert!(talk.tell_turn("item/completed", message("m", "later")).is_empty());
    assert!(talk.over("completed", Value::Null).is_empty());
    let turn = json!({ "id": other, "status": "completed" });
    let then = talk.notify("turn/completed", json!({ "threadId": THREAD, "turn": turn }));
    assert_eq!(end_of(&then, SECOND).text.as_deref(), Some(""));
}

#[test]
fn the_answer_of_a_turn_whose_messages_were_missed_is_in_its_last_word() {
    let mut talk = Talk::running(&options(), FIRST);
    let items = json!([{ "type": "agentMessage", "id": "m", "text": "Hello" }]);
    let turn = json!({ "id": TURN, "status": "completed", "items": items });
    talk.notify("turn/completed", json!({ "threadId": THREAD, "turn": turn }));
    assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some("Hello"));
}

#[test]
fn steering_waits_for_the_turn_and_is_told_when_it_was_taken() {
    let mut talk = Talk::ready();
    talk.open_session(ONLY_SESSION, &Open::New, &options());
    talk.prompt(FIRST, "hi", &options());
    assert!(talk.order(Order::Steer { turn: FIRST, text: "early" }).is_empty());
    talk.answer_ok("thread/start", server::thread(THREAD));
    talk.answer_ok("turn/start", json!({ "turn": { "id": TURN } }));
    assert!(talk.order(Order::Steer { turn: FIRST, text: "soon" }).is_empty());
    let then = talk.notify("turn/started", json!({ "threadId": THREAD, "turn": { "id": TURN } }));
    assert_eq!(methods(&then), ["turn/steer", "turn/steer"]);
    let params = talk.last_request("turn/steer")["params"].clone();
    assert_eq!((&params["threadId"], &params["expectedTurnId"]), (&THREAD.into(), &TURN.into()));
    assert_eq!(params["input"][0]["text"], "soon");
    let then = talk.answer_ok("turn/steer", json!({ "turnId": TURN }));
    assert_eq!(statuses(&then, "steered"), ["soon"]);
}

#[test]
fn a_text_that_could_not_be_taken_into_account_is_a_warning() {
    let mut talk = Talk::running(&options(), FIRST);
    talk.order(Order::Steer { turn: FIRST, text: "more" });
    let then = talk.refuse("turn/steer", "no active turn to steer");
    assert_eq!(statuses(&then, "warning").len(), 1);
    assert!(talk.order(Order::Steer { turn: SECOND, text: "lost" }).is_empty());
}

#[test]
fn what_steering_or_a_retry_dropped_is_taken_back() {
    let mut talk = Talk::running(&options(), FIRST);
    talk.tell_turn("item/agentMessage/delta", json!({ "itemId": "a", "delta": "Dropped" }));
    let then = talk.tell_turn("item/started", message("b", ""));
    assert_eq!(statuses(&then, "retracted").len(), 1);
    talk.tell_turn("item/completed", message("b", "Kept"));
    talk.over("completed", Value::Null);
    assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some("Kept"));
    assert_eq!(outputs(&talk.actions), [("a", "Dropped"), ("b", "Kept")]);
}

#[test]
fn a_turn_that_nobody_asked_for_has_a_name_of_its_own() {
    let mut talk = Talk::open(&options());
    let then = talk.notify("turn/started", json!({ "threadId": THREAD, "turn": { "id": TURN } }));
    let [Action::Unasked { session: ONLY_SESSION, turn }] = then[..] else { panic!("{then:?}") };
    assert!(talk.prompt(FIRST, "hi", &options()).is_empty(), "it would be folded in");
    let then = talk.over("completed", Value::Null);
    end_of(&then, turn);
    assert_eq!(methods(&then), ["turn/start"], "the prompt that waited");
}

#[test]
fn two_sessions_of_one_process_do_not_hear_each_other() {
    let mut talk = Talk::running(&options(), FIRST);
    let other = "01a1e090-2a58-7fa3-bdd3-966bc46d06fc";
    let session = crate::agent::SessionKey(1);
    talk.open_session(session, &Open::New, &options());
    talk.answer_ok("thread/start", server::thread(other));
    let options = options();
    talk.order(Order::Prompt { session, turn: SECOND, prompt: "hi", options: &options });
    talk.answer_ok("turn/start", json!({ "turn": { "id": "t2" } }));
    let mut said = message("m", "for the second");
    said["threadId"] = other.into();
    said["turnId"] = "t2".into();
    let then = talk.notify("item/completed", said);
    assert!(matches!(&then[..], [Action::Emit { turn: SECOND, .. }]), "{then:?}");
    // Which of the two would a line that names none belong to?
    assert!(talk.stderr("ERROR somewhere").is_empty());
    talk.over("completed", Value::Null);
    assert_eq!(events(&talk.stderr("ERROR somewhere")).len(), 1);
}

#[test]
fn tools_are_told_as_by_exec() {
    let mut talk = Talk::running(&options(), FIRST);
    let item = |status: &str, output: Value| {
        json!({ "item": { "type": "commandExecution", "id": "c", "command": "false",
            "status": status, "aggregatedOutput": output, "exitCode": 1 } })
    };
    talk.tell_turn("item/started", item("inProgress", Value::Null));
    talk.tell_turn("item/commandExecution/outputDelta", json!({ "itemId": "c", "delta": "no" }));
    talk.tell_turn("item/completed", item("failed", "nope\n".into()));
    let told = events(&talk.actions);
    let [EventBody::ToolUse { tool, title, .. }, EventBody::ToolResult(result)] = told[..] else {
        panic!("{told:?}")
    };
    assert_eq!((tool.as_str(), title.as_str()), ("command_execution", "false"));
    assert_eq!((result.output.as_str(), result.exit_code), ("nope\n", Some(1)));
    assert!(result.is_error);
}

#[test]
fn a_plan_is_told_as_it_changes_and_at_the_end() {
    let mut talk = Talk::running(&options(), FIRST);
    for status in ["inProgress", "completed"] {
        let plan = json!([{ "step": "look", "status": status }]);
        talk.tell_turn("turn/plan/updated", json!({ "plan": plan }));
    }
    talk.over("completed", Value::Null);
    let told = events(&talk.actions);
    let [
        EventBody::ToolUse { .. },
        EventBody::ToolUse { title, .. },
        EventBody::ToolResult(result),
    ] = told[..]
    else {
        panic!("{told:?}")
    };
    assert_eq!((title.as_str(), result.output.as_str()), ("1 of 1 done", "[x] look"));
}

#[test]
fn what_is_not_known_is_passed_on_and_what_says_nothing_is_not() {
    let mut talk = Talk::running(&options(), FIRST);
    for (method, params) in [
        ("turn/reconsidered", json!({})),
        ("item/started", json!({ "item": { "type": "newThing", "id": "x" } })),
        ("item/started", json!({ "item": 3 })),
    ] {
        let then = talk.tell_turn(method, params);
        let [EventBody::Unknown { stream: Stream::Stdout, text }] = events(&then)[..] else {
            panic!("{method}: {then:?}")
        };
        assert!(text.contains(method));
    }
    for method in ["thread/status/changed", "turn/diff/updated", "thread/goal/updated"] {
        assert!(talk.tell_turn(method, json!({})).is_empty(), "{method}");
        assert!(matches!(talk.actions.last(), Some(Action::Working { turn: FIRST })), "{method}");
    }
    let then = talk.step(crate::agent::testing::stdout_line(b"not JSON"));
    assert_eq!(events(&then).len(), 1);
}

#[test]
fn warnings_come_with_the_turn_and_without_a_turn_to_nobody() {
    let mut talk = Talk::open(&options());
    let said = json!({ "threadId": THREAD, "message": "Falling back to HTTPS" });
    assert!(talk.notify("warning", said.clone()).is_empty());
    talk.prompt(FIRST, "hi", &options());
    let broken = json!({ "threadId": THREAD, "name": "db", "status": "failed", "error": "exit 1" });
    talk.notify("warning", said.clone());
    talk.notify("warning", said);
    talk.notify("mcpServer/startupStatus/updated", broken);
    assert_eq!(
        statuses(&talk.actions, "warning"),
        ["Falling back to HTTPS", "the tool server db did not start: exit 1"]
    );
}

#[test]
fn a_last_word_that_is_too_long_still_ends_the_turn() {
    let mut talk = Talk::running(&options(), FIRST);
    let start = format!("{{\"method\":\"turn/completed\",\"params\":{{\"threadId\":\"{THREAD}\"");
    let bytes = start.as_bytes();
    talk.step(crate::agent::Input::Line { from: Stream::Stdout, bytes, cut: true });
    assert_eq!(failure_of(&talk.actions, FIRST).0, "unreadable_output");
}

#[test]
fn the_end_of_the_process_ends_every_turn_with_what_it_was() {
    let mut talk = Talk::running(&options(), FIRST);
    // An old complaint about another session says nothing about this end.
    talk.stderr("ERROR no rollout found for thread id x");
    let killed =
        crate::agent::Exit { code: None, signal: Some(9), stderr: "no rollout found".into() };
    talk.exit(&killed);
    assert_eq!(failure_of(&talk.actions, FIRST), ("crashed", "the process was ended by signal 9"));
}

#[test]
fn a_process_that_never_got_to_work_says_why() {
    let mut talk = Talk::new();
    talk.order(Order::Start);
    let then = talk.exit(&exit(1, "Error: error loading config: bad key"));
    let [Action::OpenFailed { session: ONLY_SESSION, failure }] = &then[..] else {
        panic!("{then:?}")
    };
    assert_eq!(failure.kind.code(), "invalid_request");
    assert_eq!(failure.message, "error loading config: bad key");
}
