//! `pi --mode rpc`, played.

use std::os::unix::process::ExitStatusExt;

use serde_json::{Value, json};

use super::{Home, Talk, all};

fn start(home: &Home, args: &[&str]) -> Talk {
    let mut all = vec!["--mode", "rpc", "--provider", "o", "--model", "m"];
    all.extend(args);
    Talk::start("pi", home, &all)
}

fn prompt(text: &str) -> Value {
    json!({"id": "p", "type": "prompt", "message": text})
}

fn is(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |line| line.get("type") == Some(&kind.into())
}

fn answers(command: &'static str) -> impl Fn(&Value) -> bool {
    move |line| is("response")(line) && line.get("command") == Some(&command.into())
}

fn state(talk: &mut Talk) -> Value {
    talk.say(&json!({"id": "s", "type": "get_state"}));
    talk.until(answers("get_state")).pop().unwrap().pointer("/data").cloned().unwrap()
}

fn turn(talk: &mut Talk, text: &str) -> Vec<Value> {
    talk.say(&prompt(text));
    talk.until(is("agent_settled"))
}

fn deltas(lines: &[Value]) -> String {
    all(lines, "/assistantMessageEvent/delta").concat()
}

#[test]
fn it_answers_prompt_after_prompt_in_one_session() {
    let home = Home::new();
    let mut talk = start(&home, &[]);
    let id = state(&mut talk)["sessionId"].as_str().unwrap().to_owned();
    for n_prompts in 1..4 {
        let lines = turn(&mut talk, "sim:history");
        assert_eq!((&lines[0]["id"], &lines[0]["success"]), (&json!("p"), &json!(true)));
        assert!(deltas(&lines).contains(&format!("so far: {n_prompts}.")));
    }
    assert_eq!(talk.end().code(), Some(0));
    let mut talk = start(&home, &["--session", &id]);
    assert!(deltas(&turn(&mut talk, "sim:history")).contains("so far: 4."));
    talk.end();
}

#[test]
fn an_abort_ends_the_answer_and_is_answered_after_it() {
    let mut talk = start(&Home::new(), &[]);
    talk.say(&prompt("sim:slow=60000"));
    talk.until(is("message_update"));
    talk.say(&prompt("too early"));
    let refused = talk.until(answers("prompt")).pop().unwrap();
    assert!(refused["error"].as_str().unwrap().starts_with("Agent is already processing"));
    talk.say(&json!({"id": "a", "type": "abort"}));
    let lines = talk.until(answers("abort"));
    assert!(all(&lines, "/message/stopReason").contains(&"aborted"));
    assert!(lines.iter().any(is("agent_settled")));
    assert!(deltas(&turn(&mut talk, "sim:history")).contains("so far: 2."));
    talk.end();
}

#[test]
fn what_is_steered_is_taken_up_in_the_same_run() {
    let mut talk = start(&Home::new(), &[]);
    talk.say(&prompt("sim:slow=20"));
    talk.until(is("message_update"));
    talk.say(&json!({"id": "s", "type": "steer", "message": "sim:history"}));
    let lines = talk.until(is("agent_settled"));
    assert!(lines.iter().any(is("queue_update")));
    assert!(deltas(&lines).contains("so far: 2."));
    talk.end();
}

#[test]
fn it_goes_to_another_session_by_its_file() {
    let home = Home::new();
    let mut talk = start(&home, &[]);
    turn(&mut talk, "one");
    let first = state(&mut talk);
    talk.say(&json!({"id": "n", "type": "new_session"}));
    talk.until(answers("new_session"));
    assert!(deltas(&turn(&mut talk, "sim:history")).contains("so far: 1."));
    talk.say(&json!({"type": "switch_session", "sessionPath": first["sessionFile"]}));
    talk.until(answers("switch_session"));
    assert_eq!(state(&mut talk)["sessionId"], first["sessionId"]);
    assert!(deltas(&turn(&mut talk, "sim:history")).contains("so far: 2."));
    talk.end();
}

#[test]
fn faults_come_when_a_prompt_asks_for_them() {
    let mut talk = start(&Home::new(), &[]);
    assert!(turn(&mut talk, "sim:garbage").contains(&Value::Null));
    talk.say(&prompt("sim:crash"));
    talk.until(is("message_update"));
    assert_eq!(talk.wait().signal(), Some(9));
}

#[test]
fn the_end_of_its_input_ends_it_in_the_middle_of_an_answer() {
    let mut talk = start(&Home::new(), &[]);
    talk.say(&prompt("sim:slow=60000"));
    talk.until(is("message_update"));
    assert_eq!(talk.end().code(), Some(0));
}
