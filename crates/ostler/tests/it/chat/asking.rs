//! Permissions, with an agent that asks for one and does as it is told.

use std::fs;

use serde_json::{Value, json};

use super::start;
use crate::{
    support::{Place, until},
    terminal::Terminal,
};

const SESSION: &str = "01a1e1be-6077-79f0-90ef-121a325605d4";

/// Writes a Codex that asks whether it may run a command, and ends its turn
/// whatever the answer is, which it writes to the file `answer`.
fn asking(place: &Place) -> String {
    let about = |more: Value| {
        let mut about = json!({ "threadId": SESSION, "turnId": "turn-1" });
        about.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        about
    };
    let turn = |status: &str| json!({ "id": "turn-1", "items": [], "status": status });
    let asks = json!({ "id": 0, "method": "item/commandExecution/requestApproval", "params":
        about(json!({ "itemId": "call-1", "command": "rm -r everything", "cwd": "/" })) });
    let says = json!({ "method": "item/agentMessage/delta",
        "params": about(json!({ "itemId": "m", "delta": "as you wish" })) });
    let said = json!({ "method": "item/completed", "params":
        about(json!({ "item": { "type": "agentMessage", "id": "m", "text": "as you wish" } })) });
    let ended = json!({ "method": "turn/completed",
        "params": { "threadId": SESSION, "turn": turn("completed") } });
    let started = json!({ "method": "turn/started",
        "params": { "threadId": SESSION, "turn": turn("inProgress") } });
    let thread = json!({ "id": 2, "result": { "thread": { "id": SESSION }, "model": "m" } });
    let program = place.script(&json!([
        { "do": "read_line" },
        { "do": "json", "value": { "id": 1, "result": {} } },
        { "do": "read_line" },
        { "do": "read_line" },
        { "do": "json", "value": thread },
        { "do": "read_line" },
        { "do": "json", "value": { "id": 3, "result": { "turn": turn("inProgress") } } },
        { "do": "json", "value": started },
        { "do": "json", "value": asks },
        { "do": "read_line", "report": "answer" },
        { "do": "json", "value": says },
        { "do": "json", "value": said },
        { "do": "json", "value": ended },
        { "do": "read_stdin" },
    ]));
    program.to_str().unwrap().to_owned()
}

/// Returns what the agent was told.
fn told(place: &Place) -> String {
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
