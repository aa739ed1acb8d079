//! `codex app-server`, played.

use serde_json::{Value, json};

use super::{Home, Talk, all};
use crate::agent::UNKNOWN;

fn start(home: &Home) -> Talk {
    let mut talk = Talk::start("codex", home, &["app-server", "-c", "a=1"]);
    call(&mut talk, "initialize", &json!({"clientInfo": {"name": "test"}}));
    talk.say(&json!({"method": "initialized"}));
    talk
}

/// Makes a request and returns its answer, without what is told before it.
fn call(talk: &mut Talk, method: &str, params: &Value) -> Value {
    talk.say(&json!({"id": method, "method": method, "params": params}));
    talk.until(|line| line.get("id") == Some(&method.into())).pop().unwrap()
}

fn thread(talk: &mut Talk, params: &Value) -> String {
    let opened = call(talk, "thread/start", params);
    opened.pointer("/result/thread/id").and_then(Value::as_str).unwrap().to_owned()
}

fn begin(talk: &mut Talk, thread: &str, text: &str) -> String {
    let input = json!([{"type": "text", "text": text}]);
    let begun = call(talk, "turn/start", &json!({"threadId": thread, "input": input}));
    begun.pointer("/result/turn/id").and_then(Value::as_str).unwrap().to_owned()
}

fn told(method: &'static str) -> impl Fn(&Value) -> bool {
    move |line| line.get("method") == Some(&method.into())
}

fn completed(talk: &mut Talk) -> Vec<Value> {
    talk.until(told("turn/completed"))
}

fn last_text(lines: &[Value]) -> &str {
    all(lines, "/params/turn/items/0/text").pop().unwrap()
}

#[test]
fn a_thread_keeps_its_prompts_and_its_usage_adds_up() {
    let home = Home::new();
    let mut talk = start(&home);
    let id = thread(&mut talk, &json!({}));
    for n_prompts in 1..4 {
        begin(&mut talk, &id, "sim:history");
        let lines = completed(&mut talk);
        assert!(last_text(&lines).contains(&format!("so far: {n_prompts}.")));
        assert_eq!(all(&lines, "/params/delta").concat(), last_text(&lines));
        let usage = lines.iter().find(|line| told("thread/tokenUsage/updated")(line)).unwrap();
        assert_eq!(usage["params"]["tokenUsage"]["total"]["inputTokens"], 1200 * n_prompts);
    }
    assert_eq!(talk.end().code(), Some(0));
    let mut talk = start(&home);
    let resumed = call(&mut talk, "thread/resume", &json!({"threadId": id}));
    assert_eq!(resumed["result"]["thread"]["id"], id.as_str());
    begin(&mut talk, &id, "sim:history");
    assert!(last_text(&completed(&mut talk)).contains("so far: 4."));
    let lost = call(&mut talk, "thread/resume", &json!({"threadId": UNKNOWN}));
    assert!(lost["error"]["message"].as_str().unwrap().starts_with("no rollout found"));
    talk.end();
}

#[test]
fn two_threads_run_side_by_side() {
    let mut talk = start(&Home::new());
    let slow = thread(&mut talk, &json!({}));
    let quick = thread(&mut talk, &json!({}));
    let turn = begin(&mut talk, &slow, "sim:slow=60000");
    begin(&mut talk, &quick, "hello");
    let first = completed(&mut talk).pop().unwrap();
    assert_eq!(first["params"]["threadId"], quick.as_str());
    call(&mut talk, "turn/interrupt", &json!({"threadId": slow, "turnId": turn}));
    let second = completed(&mut talk).pop().unwrap();
    assert_eq!(second["params"]["threadId"], slow.as_str());
    assert_eq!(second["params"]["turn"]["status"], "interrupted");
    begin(&mut talk, &slow, "sim:history");
    assert!(last_text(&completed(&mut talk)).contains("so far: 2."));
    talk.end();
}

#[test]
fn a_command_runs_when_it_is_allowed_and_not_when_it_is_declined() {
    let mut talk = start(&Home::new());
    let id = thread(&mut talk, &json!({"approvalPolicy": "on-request"}));
    for (decision, status) in [("accept", "completed"), ("decline", "declined")] {
        begin(&mut talk, &id, "sim:tool");
        let question = talk.until(told("item/commandExecution/requestApproval")).pop().unwrap();
        assert_eq!(question["params"]["command"], "/bin/bash -lc 'echo hi'");
        talk.say(&json!({"id": question["id"], "result": {"decision": decision}}));
        let lines = completed(&mut talk);
        assert!(all(&lines, "/params/item/status").contains(&status), "{lines:#?}");
    }
    begin(&mut talk, &id, "sim:tool");
    let question = talk.until(told("item/commandExecution/requestApproval")).pop().unwrap();
    talk.say(&json!({"id": question["id"], "result": {"decision": "cancel"}}));
    let end = completed(&mut talk).pop().unwrap();
    assert_eq!(end["params"]["turn"]["status"], "interrupted");
    talk.end();
}

#[test]
fn what_is_steered_is_taken_up_in_the_same_turn() {
    let mut talk = start(&Home::new());
    let id = thread(&mut talk, &json!({}));
    begin(&mut talk, &id, "sim:slow=20");
    let input = json!([{"type": "text", "text": "sim:history"}]);
    call(&mut talk, "turn/steer", &json!({"threadId": id, "input": input}));
    let lines = completed(&mut talk);
    assert!(last_text(&lines).contains("so far: 2."));
    talk.end();
}

#[test]
fn what_it_does_not_know_is_an_error_and_what_is_no_json_is_not_answered() {
    let mut talk = start(&Home::new());
    talk.say(&json!("no request"));
    let error = call(&mut talk, "no/such/method", &json!({}));
    assert_eq!(error["error"]["code"], -32600);
    let error = call(&mut talk, "turn/interrupt", &json!({"threadId": UNKNOWN}));
    assert_eq!(error["error"]["message"], "no active turn to interrupt");
    talk.end();
}
