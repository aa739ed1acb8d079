//! `gemini --acp`, played.

use serde_json::{Value, json};

use super::{Home, Talk, all};
use crate::agent::UNKNOWN;

const CWD: &str = "/somewhere";

fn start(home: &Home, args: &[&str]) -> Talk {
    let mut talk = Talk::start("gemini", home, &[&["--acp"], args].concat());
    let about = call(&mut talk, "initialize", &json!({"protocolVersion": 1}));
    assert_eq!(about.pointer("/result/protocolVersion"), Some(&1.into()));
    assert_eq!(about.pointer("/result/agentCapabilities/loadSession"), Some(&true.into()));
    talk
}

/// Makes a request and returns its answer, without what is told before it.
fn call(talk: &mut Talk, method: &str, params: &Value) -> Value {
    talk.say(&json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}));
    talk.until(|line| line.get("id") == Some(&method.into())).pop().unwrap()
}

fn new_session(talk: &mut Talk) -> String {
    let opened = call(talk, "session/new", &json!({"cwd": CWD, "mcpServers": []}));
    talk.until(updates("available_commands_update"));
    opened.pointer("/result/sessionId").and_then(Value::as_str).unwrap().to_owned()
}

/// Sends a prompt whose answer has this id.
fn prompt(talk: &mut Talk, session: &str, id: u64, text: &str) {
    let parts = json!([{"type": "text", "text": text}]);
    let params = json!({"sessionId": session, "prompt": parts});
    talk.say(&json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params}));
}

fn answers(id: u64) -> impl Fn(&Value) -> bool {
    move |line| line.get("id") == Some(&id.into()) && line.get("method").is_none()
}

fn updates(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |line| line.pointer("/params/update/sessionUpdate") == Some(&kind.into())
}

fn asks(line: &Value) -> bool {
    line.get("method") == Some(&"session/request_permission".into())
}

fn said(lines: &[Value]) -> String {
    all(lines, "/params/update/content/text").concat()
}

fn stop_reason(lines: &[Value]) -> &Value {
    lines.last().unwrap().pointer("/result/stopReason").unwrap()
}

#[test]
fn a_session_keeps_its_prompts_and_is_told_again_when_it_is_loaded() {
    let home = Home::new();
    let mut talk = start(&home, &["--model", "g"]);
    let id = new_session(&mut talk);
    for n_prompts in 1..4 {
        prompt(&mut talk, &id, n_prompts, "sim:history");
        let lines = talk.until(answers(n_prompts));
        assert!(said(&lines).contains(&format!("so far: {n_prompts}.")), "{lines:#?}");
        assert_eq!(stop_reason(&lines), "end_turn");
        let quota = &lines.last().unwrap()["result"]["_meta"]["quota"];
        assert_eq!(quota["model_usage"][0]["model"], "g");
        assert_eq!(quota["token_count"]["input_tokens"], 400, "of this turn only");
    }
    assert_eq!(talk.end().code(), Some(0));
    let mut talk = start(&home, &[]);
    // A blank before the id is dropped when the session is looked for.
    let padded = format!(" {id}");
    let load = |id: &str| json!({"sessionId": id, "cwd": CWD, "mcpServers": []});
    assert!(call(&mut talk, "session/load", &load(&padded))["result"]["modes"].is_object());
    let told = talk.until(updates("available_commands_update"));
    assert_eq!(told.iter().filter(|line| updates("user_message_chunk")(line)).count(), 3);
    assert!(said(&told).contains("so far: 3."), "{told:#?}");
    prompt(&mut talk, &padded, 9, "sim:history");
    let lines = talk.until(answers(9));
    assert!(said(&lines).contains("so far: 4."), "{lines:#?}");
    assert_eq!(lines[0]["params"]["sessionId"], padded.as_str());
    let lost = call(&mut talk, "session/load", &load(UNKNOWN));
    assert_eq!(lost["error"]["code"], -32603);
    let elsewhere = json!({"sessionId": id, "cwd": "/elsewhere", "mcpServers": []});
    assert_eq!(call(&mut talk, "session/load", &elsewhere)["error"]["code"], -32603);
    talk.end();
}

#[test]
fn two_sessions_run_side_by_side_and_a_cancel_ends_one() {
    let mut talk = start(&Home::new(), &[]);
    let (slow, quick) = (new_session(&mut talk), new_session(&mut talk));
    prompt(&mut talk, &slow, 1, "sim:slow=60000");
    prompt(&mut talk, &quick, 2, "hello");
    assert_eq!(stop_reason(&talk.until(answers(2))), "end_turn");
    talk.say(&json!({"method": "session/cancel", "params": {"sessionId": slow}}));
    assert_eq!(stop_reason(&talk.until(answers(1))), "cancelled");
    talk.end();
}

#[test]
fn a_second_prompt_in_a_session_ends_the_first() {
    let mut talk = start(&Home::new(), &[]);
    let id = new_session(&mut talk);
    prompt(&mut talk, &id, 1, "sim:slow=60000");
    prompt(&mut talk, &id, 2, "hello");
    assert_eq!(stop_reason(&talk.until(answers(1))), "cancelled");
    assert_eq!(stop_reason(&talk.until(answers(2))), "end_turn");
    talk.end();
}

#[test]
fn a_command_runs_when_it_is_allowed_and_is_not_told_of_again_when_not() {
    let mut talk = start(&Home::new(), &[]);
    let id = new_session(&mut talk);
    for (n, option, n_updates) in [(1, "proceed_once", 1), (2, "cancel", 0)] {
        prompt(&mut talk, &id, n, "sim:tool");
        let question = talk.until(asks).pop().unwrap();
        assert_eq!(question["id"], n - 1, "the agent counts for itself");
        assert_eq!(question["params"]["toolCall"]["title"], "echo hi");
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        talk.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": outcome}));
        let lines = talk.until(answers(n));
        let told = lines.iter().filter(|line| updates("tool_call_update")(line)).count();
        assert_eq!(told, n_updates, "{lines:#?}");
        assert_eq!(said(&lines).contains("was not allowed"), option == "cancel");
    }
    talk.end();
}

#[test]
fn a_turn_that_waits_for_an_answer_is_cancelled_by_it() {
    let mut talk = start(&Home::new(), &[]);
    let id = new_session(&mut talk);
    prompt(&mut talk, &id, 1, "sim:tool");
    let question = talk.until(asks).pop().unwrap();
    talk.say(&json!({"method": "session/cancel", "params": {"sessionId": id}}));
    let outcome = json!({"outcome": {"outcome": "cancelled"}});
    talk.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": outcome}));
    assert_eq!(stop_reason(&talk.until(answers(1))), "cancelled");
    talk.end();
}

#[test]
fn nobody_is_asked_where_the_rules_or_the_mode_say_so() {
    let home = Home::new();
    let rules = home.0.path().join("policy.toml");
    std::fs::write(&rules, "decision = \"allow\"").unwrap();
    for args in [["--policy", rules.to_str().unwrap()], ["--approval-mode", "yolo"]] {
        let mut talk = start(&home, &args);
        let id = new_session(&mut talk);
        prompt(&mut talk, &id, 1, "sim:tool");
        let lines = talk.until(answers(1));
        assert!(!lines.iter().any(asks), "{lines:#?}");
        let call = lines.iter().find(|line| updates("tool_call")(line)).unwrap();
        assert_eq!(call["params"]["update"]["status"], "in_progress");
        talk.end();
    }
}

#[test]
fn a_model_and_a_mode_can_be_chosen_and_the_mode_is_said_aloud() {
    let mut talk = start(&Home::new(), &[]);
    let id = new_session(&mut talk);
    call(&mut talk, "session/set_model", &json!({"sessionId": id, "modelId": "other"}));
    call(&mut talk, "session/set_mode", &json!({"sessionId": id, "modeId": "yolo"}));
    prompt(&mut talk, &id, 1, "sim:tool");
    let lines = talk.until(answers(1));
    assert!(said(&lines).starts_with("[MODE_UPDATE] yolo"), "{lines:#?}");
    let usage = lines.last().unwrap().pointer("/result/_meta/quota/model_usage/0/model");
    assert_eq!(usage, Some(&"other".into()));
    talk.end();
}

#[test]
fn it_ends_with_its_input_but_not_before_its_turn() {
    let mut talk = start(&Home::new(), &[]);
    let id = new_session(&mut talk);
    prompt(&mut talk, &id, 1, "sim:slow=20");
    talk.stdin = None;
    assert_eq!(stop_reason(&talk.until(answers(1))), "end_turn");
    assert_eq!(talk.wait().code(), Some(0));
}

#[test]
fn what_it_does_not_know_is_an_error_and_what_is_no_json_is_not_answered() {
    let mut talk = start(&Home::new(), &[]);
    talk.say(&json!("no request"));
    assert_eq!(call(&mut talk, "session/list", &json!({}))["error"]["code"], -32601);
    let nobody = json!({"sessionId": UNKNOWN, "prompt": []});
    assert_eq!(call(&mut talk, "session/prompt", &nobody)["error"]["code"], -32602);
    talk.say(&json!({"method": "session/cancel", "params": {"sessionId": UNKNOWN}}));
    assert_eq!(talk.end().code(), Some(0));
}
