//! Permissions, with an agent that asks for one and does as it is told.

use std::fs;

use serde_json::{Value, json};

use super::start;
use crate::{
    support::{Place, until},
    terminal::Terminal,
};

const SESSION: &str = "01a1e1be-6077-79f0-90ef-121a325605d4";

/// Returns what a server says about a turn.
fn about(turn: &str, method: &str, more: &Value) -> Value {
    let mut params = json!({ "threadId": SESSION, "turnId": turn });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "method": method, "params": params })
}

fn began(turn: &str) -> Value {
    let turn = json!({ "id": turn, "items": [], "status": "inProgress" });
    json!({ "method": "turn/started", "params": { "threadId": SESSION, "turn": turn } })
}

/// Returns what a server says when a turn answers and ends.
fn answers(turn: &str, text: &str) -> [Value; 3] {
    let item = json!({ "type": "agentMessage", "id": "m", "text": text });
    let ended = json!({ "id": turn, "items": [], "status": "completed" });
    [
        about(turn, "item/agentMessage/delta", &json!({ "itemId": "m", "delta": text })),
        about(turn, "item/completed", &json!({ "item": item })),
        json!({ "method": "turn/completed", "params": { "threadId": SESSION, "turn": ended } }),
    ]
}

/// Writes a Codex that asks for something in its first turn, writes the answer
/// to the file `answer`, and ends the turn whatever that is.
fn codex(place: &Place, asks: &Value, then: &[Value]) -> String {
    let print = |value: &Value| json!({ "do": "json", "value": value });
    let read = || json!({ "do": "read_line" });
    let turn = json!({ "id": "one", "items": [], "status": "inProgress" });
    let thread = json!({
        "thread": { "id": SESSION }, "model": "m",
        "approvalPolicy": "on-request", "sandbox": { "type": "workspaceWrite" },
    });
    let mut steps = vec![
        read(),
        print(&json!({ "id": 1, "result": {} })),
        read(),
        read(),
        print(&json!({ "id": 2, "result": thread })),
        read(),
        print(&json!({ "id": 3, "result": { "turn": turn } })),
        print(&began("one")),
        print(asks),
        json!({ "do": "read_line", "report": "answer" }),
    ];
    steps.extend(answers("one", "as you wish").iter().map(print));
    steps.extend_from_slice(then);
    steps.push(json!({ "do": "read_stdin" }));
    place.script(&steps.into()).to_str().unwrap().to_owned()
}

/// Writes one that asks whether it may run a command.
pub(crate) fn asking(place: &Place) -> String {
    asking_then(place, &[])
}

/// Writes one that, once the file `go` is there, begins a turn of its own.
fn going_on(place: &Place) -> String {
    let print = |value: &Value| json!({ "do": "json", "value": value });
    let mut then = vec![json!({ "do": "wait_for", "path": "go" }), print(&began("two"))];
    then.extend(answers("two", "by the way").iter().map(print));
    asking_then(place, &then)
}

fn asking_then(place: &Place, then: &[Value]) -> String {
    let method = "item/commandExecution/requestApproval";
    let what = json!({ "itemId": "call-1", "command": "rm -r everything", "cwd": "/" });
    let mut asks = about("one", method, &what);
    asks["id"] = 0.into();
    codex(place, &asks, then)
}

/// Writes one that asks which colour it is to be.
fn curious(place: &Place) -> String {
    let choices = json!([{ "label": "red" }, { "label": "blue" }]);
    let question = json!({ "id": "colour", "question": "Which colour?", "options": choices });
    let what = json!({ "itemId": "call-1", "questions": [question] });
    let mut asks = about("one", "item/tool/requestUserInput", &what);
    asks["id"] = 0.into();
    codex(place, &asks, &[])
}

/// Returns what the agent was told.
pub(crate) fn told(place: &Place) -> String {
    until("the agent has its answer", || fs::read_to_string(place.path("answer")).ok())
}

#[test]
fn after_the_end_of_the_input_nobody_is_waited_for() {
    let place = Place::new();
    let program = asking(&place);
    let outcome = super::say(
        &place,
        &["--agent", "codex", "--permissions", "ask", "--bin", &program],
        super::message("hi").as_bytes(),
    );
    let (_, turns) = super::sort(&outcome);
    let resolved = turns[0].statuses("permission_resolved");
    assert_eq!(resolved[0]["decision"], "deny", "{}", outcome.stdout);
    assert_eq!(turns[0].last()["response_text"], "as you wish");
    assert!(told(&place).contains("decline"), "{}", told(&place));
}

#[test]
fn an_answer_reaches_the_agent() {
    let place = Place::new();
    let program = asking(&place);
    let args = ["--agent", "codex", "--permissions", "ask", "--bin", &program];
    let mut chat = start(&place, &args);
    chat.prompt("hi");
    let asked = chat.wait_for(|event| event["type"] == "permission");
    assert_eq!((&asked["kind"], &asked["options"][1]), (&"command".into(), &"allow_always".into()));
    chat.answer(&asked["request"], "allow");
    assert_eq!(chat.finish().last()["is_error"], false);
    chat.answer(&asked["request"], "allow");
    let error = chat.wait_for(|event| event["type"] == "error");
    assert!(error["turn"].is_null(), "{error}");
    assert!(told(&place).contains("accept"), "{}", told(&place));
    chat.end();
}

#[test]
fn at_a_terminal_a_person_is_asked_in_place() {
    for command in ["chat", "run"] {
        for (reply, decision) in [("a", "accept"), ("d", "decline")] {
            let place = Place::new();
            let program = asking(&place);
            let line = format!("{command} --agent codex --permissions ask --bin {program} hi");
            let mut terminal = Terminal::start(&place, &line);
            let shown = terminal.wait_for("[d]eny? ");
            assert!(shown.contains("rm -r everything"), "{shown}");
            terminal.enter("what?");
            terminal.wait_for("a: allow");
            terminal.wait_for("[d]eny? ");
            terminal.enter(reply);
            terminal.wait_for("as you wish");
            if command == "chat" {
                terminal.wait_for("> ");
                terminal.press("\u{4}");
            }
            assert_eq!(terminal.end().0, Some(0));
            assert!(told(&place).contains(decision), "{command}: {}", told(&place));
        }
    }
}

#[test]
fn a_question_is_answered_with_a_choice_or_a_text() {
    for (reply, answer) in [("2", "blue"), ("rather green", "rather green")] {
        let place = Place::new();
        let line = format!("run --agent codex --permissions ask --bin {} hi", curious(&place));
        let mut terminal = Terminal::start(&place, &line);
        let shown = terminal.wait_for("your answer: ");
        assert!(shown.contains("? Which colour?\r\n    1. red\r\n    2. blue\r\n"), "{shown:?}");
        terminal.enter(reply);
        terminal.wait_for("as you wish");
        assert_eq!(terminal.end().0, Some(0));
        assert!(told(&place).contains(answer), "{}", told(&place));
    }
}

#[test]
fn a_turn_that_nobody_asked_for_is_told_and_the_conversation_goes_on() {
    let place = Place::new();
    let program = going_on(&place);
    let mut chat = start(&place, &["--agent", "codex", "--permissions", "ask", "--bin", &program]);
    chat.prompt("hi");
    let asked = chat.wait_for(|event| event["type"] == "permission");
    chat.answer(&asked["request"], "deny");
    let prompted = chat.finish();
    super::go(&place);
    let events = chat.finish();
    assert_eq!(events.of_type("started").next().unwrap()["trigger"], "agent");
    let (last, before) = (events.last(), prompted.last());
    assert_eq!(last["response_text"], "by the way");
    assert_eq!(last["session_id"], before["session_id"]);
    assert_ne!(last["turn"], before["turn"]);
    chat.end();
}

#[test]
fn at_a_terminal_it_is_shown_above_the_line_that_is_being_edited() {
    let place = Place::new();
    let program = going_on(&place);
    let line = format!("chat --agent codex --permissions ask --bin {program} hi");
    let mut terminal = Terminal::start(&place, &line);
    terminal.wait_for("[d]eny? ");
    terminal.enter("d");
    terminal.wait_for("as you wish");
    terminal.wait_for("> ");
    terminal.press("/he");
    super::go(&place);
    terminal.wait_for("by the way\r\n");
    terminal.wait_for("> /he");
    terminal.enter("lp");
    terminal.wait_for("/agent NAME");
    terminal.wait_for("> ");
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn run_asks_nobody_where_nobody_is() {
    let place = Place::new();
    let program = super::player(&place, super::Held::No);
    let args = ["run", "--agent", "codex", "--permissions", "ask", "--bin", &program];
    let outcome = place.run(&[&args[..], &["--output", "stream-json", "hi"]].concat());
    let events = outcome.events();
    assert_eq!(events.last()["mode"], "one_shot");
    let warnings = events.statuses("warning");
    assert!(warnings[0]["text"].as_str().unwrap().contains("read-only"), "{warnings:?}");
}
