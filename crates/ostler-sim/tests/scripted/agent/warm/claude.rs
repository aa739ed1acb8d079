//! Claude over `--input-format stream-json`, played.

use std::os::unix::process::ExitStatusExt;

use serde_json::{Value, json};

use super::{Home, Talk, all};
use crate::send;

fn start(home: &Home, args: &[&str]) -> Talk {
    let mut all = vec!["-p", "--input-format", "stream-json", "--output-format", "stream-json"];
    all.extend(["--verbose", "--include-partial-messages"]);
    all.extend(args);
    Talk::start("claude", home, &all)
}

fn prompt(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": text}, "uuid": "u-1"})
}

fn control(subtype: &str) -> Value {
    json!({"type": "control_request", "request_id": "c-1", "request": {"subtype": subtype}})
}

fn is(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |line| line.get("type") == Some(&kind.into())
}

fn is_delta(line: &Value) -> bool {
    line.pointer("/event/type") == Some(&"content_block_delta".into())
}

/// Asks for a tool and returns the question.
fn asked(talk: &mut Talk) -> Value {
    talk.say(&prompt("sim:tool"));
    talk.until(is("control_request")).pop().unwrap()
}

fn answer(question: &Value, response: &Value) -> Value {
    let id = question.get("request_id");
    json!({"type": "control_response", "response": {
        "subtype": "success", "request_id": id, "response": response,
    }})
}

#[test]
fn an_interrupt_ends_the_turn_and_the_next_prompt_is_answered() {
    let mut talk = start(&Home::new(), &[]);
    talk.say(&prompt("sim:slow=60000"));
    talk.until(is_delta);
    talk.say(&control("interrupt"));
    let lines = talk.until(is("result"));
    assert_eq!(lines[0]["response"]["subtype"], "success");
    let result = lines.last().unwrap();
    assert_eq!(result["terminal_reason"], "aborted_streaming");
    assert_eq!((&result["is_error"], &result["user_message_uuid"]), (&json!(true), &json!("u-1")));
    talk.say(&prompt("sim:history"));
    let lines = talk.until(is("result"));
    assert!(lines.last().unwrap()["result"].as_str().unwrap().contains("so far: 2."));
    talk.end();
}

#[test]
fn a_prompt_that_comes_too_early_waits_for_its_turn() {
    let mut talk = start(&Home::new(), &[]);
    talk.say(&prompt("sim:slow=20"));
    talk.until(is_delta);
    talk.say(&prompt("sim:history"));
    let first = talk.until(is("result")).pop().unwrap();
    assert!(!first["result"].as_str().unwrap().contains("so far"));
    let second = talk.until(is("result")).pop().unwrap();
    assert!(second["result"].as_str().unwrap().contains("so far: 2."));
    talk.end();
}

#[test]
fn a_tool_runs_when_it_is_allowed_and_not_when_it_is_denied() {
    let mut talk = start(&Home::new(), &["--permission-prompt-tool", "stdio"]);
    let question = asked(&mut talk);
    assert_eq!(question["request"]["input"]["command"], "echo hi");
    talk.say(&answer(&question, &json!({"behavior": "allow"})));
    let allowed = talk.until(is("result")).pop().unwrap();
    assert!(allowed["result"].as_str().unwrap().contains("pretended"));
    let question = asked(&mut talk);
    talk.say(&answer(&question, &json!({"behavior": "deny", "message": "not now"})));
    let lines = talk.until(is("result"));
    assert!(all(&lines, "/message/content/0/content").contains(&"not now"));
    assert!(lines.last().unwrap()["result"].as_str().unwrap().contains("not allowed"));
    talk.end();
}

#[test]
fn an_interrupt_takes_an_open_question_back() {
    let mut talk = start(&Home::new(), &["--permission-prompt-tool", "stdio"]);
    let question = asked(&mut talk);
    talk.say(&control("interrupt"));
    let lines = talk.until(is("result"));
    assert_eq!(lines[0]["type"], "control_cancel_request");
    assert_eq!(lines[0]["request_id"], question["request_id"]);
    assert_eq!(lines.last().unwrap()["terminal_reason"], "aborted_tools");
    talk.end();
}

#[test]
fn the_model_can_be_changed_between_prompts() {
    let mut talk = start(&Home::new(), &[]);
    let mut request = control("set_model");
    request["request"]["model"] = "other".into();
    talk.say(&request);
    talk.until(is("control_response"));
    talk.say(&prompt("hello"));
    let lines = talk.until(is("result"));
    assert_eq!(lines.iter().find(|line| line["subtype"] == "init").unwrap()["model"], "other");
    talk.end();
}

#[test]
fn one_that_hangs_and_ignores_a_signal_dies_only_by_force() {
    let mut talk = start(&Home::new(), &[]);
    talk.say(&prompt("sim:ignore-term sim:hang sim:garbage"));
    talk.until(Value::is_null);
    let pid = talk.child.id();
    send("TERM", pid);
    talk.say(&control("interrupt"));
    assert_eq!(talk.child.try_wait().unwrap(), None);
    send("KILL", pid);
    assert_eq!(talk.wait().signal(), Some(9));
}
