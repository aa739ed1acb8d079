//! What becomes of what is said while a turn runs.

use std::{fs, io::BufRead as _, process::Stdio};

use serde_json::{Value, json};

use super::{Held, go, message, player, sort, start, text};
use crate::{
    conformance::chat::Chat,
    support::{Outcome, Place, is_live, signal, until},
};

const TYPED: &[&str] = &["one", "two!", "three"];

/// Starts a conversation whose agent waits, and says something first.
fn held(place: &Place, args: &[&str]) -> Chat {
    let program = player(place, Held::UntilGo);
    let mut chat = start(place, &[&["--cold", "--bin", &program], args].concat());
    chat.prompt("one");
    chat.wait_for(|event| event["type"] == "started");
    chat
}

fn is_aside(code: &str) -> impl Fn(&Value) -> bool + '_ {
    move |event| event["turn"].is_null() && event["code"] == code
}

fn is_error(event: &Value) -> bool {
    event["turn"].is_null() && event["type"] == "error"
}

#[test]
fn prompts_wait_in_order_and_say_so() {
    let place = Place::new();
    let mut chat = held(&place, &[]);
    for (prompt, position) in TYPED[1..].iter().zip(1..) {
        chat.prompt(prompt);
        let queued = chat.wait_for(is_aside("queued"));
        assert_eq!((&queued["seq"], &queued["position"]), (&json!(0), &json!(position)));
        assert_eq!(queued["type"], "status");
    }
    go(&place);
    chat.forget_asides();
    for prompt in TYPED {
        let answer = chat.finish();
        let length = format!("prompt has {} characters", prompt.len());
        assert!(text(&answer).contains(&length), "{prompt}: {}", text(&answer));
    }
    chat.end();
}

#[test]
fn a_hundred_prompts_wait_and_the_next_is_refused() {
    let place = Place::new();
    let mut chat = held(&place, &[]);
    for _ in 0..100 {
        chat.prompt("again");
        chat.wait_for(is_aside("queued"));
    }
    chat.prompt("one too many");
    let error = chat.wait_for(is_error);
    assert_eq!((&error["kind"], &error["retryable"]), (&json!("session_busy"), &json!(true)));
    assert!(error["message"].as_str().unwrap().contains("100 prompts are waiting"), "{error}");
    chat.forget_asides();
    chat.signal("TERM");
    assert_eq!(chat.finish().last()["error"]["kind"], "cancelled");
    assert_eq!(chat.wait(), Some(130), "what waited is forgotten");
}

#[test]
fn cancel_ends_the_turn_and_the_next_prompt_runs() {
    let place = Place::new();
    let mut chat = held(&place, &[]);
    chat.cancel();
    assert_eq!(chat.finish().last()["error"]["kind"], "cancelled");
    go(&place);
    assert_eq!(chat.ask("two").last()["is_error"], false);
    chat.end();
}

#[test]
fn cancel_with_nothing_running_is_ignored() {
    let place = Place::new();
    let program = player(&place, Held::No);
    let mut chat = start(&place, &["--cold", "--bin", &program]);
    chat.cancel();
    assert_eq!(chat.ask("hi").last()["is_error"], false);
    chat.cancel();
    assert_eq!(chat.ask("hi").last()["is_error"], false);
    chat.end();
}

#[test]
fn an_interrupting_prompt_takes_the_place_of_the_running_one() {
    let place = Place::new();
    let mut chat = held(&place, &["--when-busy", "interrupt"]);
    chat.prompt("two!");
    chat.wait_for(is_aside("queued"));
    chat.forget_asides();
    assert_eq!(chat.finish().last()["error"]["kind"], "cancelled");
    go(&place);
    let answer = chat.finish();
    assert!(text(&answer).contains("has 4 characters"), "{}", text(&answer));
    chat.end();
}

#[test]
fn a_steering_prompt_waits_where_the_turn_cannot_be_steered() {
    let place = Place::new();
    let mut chat = held(&place, &["--when-busy", "steer"]);
    chat.prompt("two!");
    let queued = chat.wait_for(is_aside("queued"));
    assert!(queued["text"].as_str().unwrap().contains("cannot be steered"), "{queued}");
    chat.send(&json!({ "type": "steer", "text": "left" }));
    let error = chat.wait_for(is_error);
    assert!(error["message"].as_str().unwrap().contains("cannot be steered"), "{error}");
    chat.forget_asides();
    go(&place);
    chat.finish();
    assert!(text(&chat.finish()).contains("has 4 characters"));
    chat.end();
}

#[test]
fn the_end_of_the_input_lets_what_runs_and_waits_finish() {
    let place = Place::new();
    let program = player(&place, Held::UntilGo);
    let input = TYPED.iter().map(|prompt| message(prompt)).collect::<String>();
    let mut command = place.ostler(&["chat", "--output", "stream-json", "--cold", "--bin"]);
    command.arg(&program).stdin(Stdio::piped());
    let place_of_go = place.path("go");
    let outcome = std::thread::scope(|scope| {
        let outcome = scope.spawn(|| Outcome::of_input(command, Some(input.into_bytes())));
        fs::write(place_of_go, "").unwrap();
        outcome.join().unwrap()
    });
    assert_eq!(outcome.code, Some(0));
    assert_eq!(sort(&outcome).1.len(), 3);
}

/// Starts an agent that leaves a process of its own behind if nobody ends it.
fn with_a_child(place: &Place) -> (std::process::Child, u32) {
    let program = place.script(&json!([
        { "do": "spawn", "kind": "own_session", "sleep_s": 600, "pid_file": "pid" },
        { "do": "line", "text": "first" },
        { "do": "wait_for", "path": "go" },
        { "do": "flood", "bytes": 1_000_000 },
        { "do": "hang" },
    ]));
    let args = ["chat", "--output", "stream-json", "--cold", "--bin"];
    let mut command = place.ostler(&args);
    let child = command.arg(program).arg("hi").stdin(Stdio::piped()).spawn().unwrap();
    let pid = until("the agent has a child", || {
        fs::read_to_string(place.path("pid")).ok()?.trim().parse().ok()
    });
    (child, pid)
}

#[test]
fn a_signal_ends_the_turn_and_everything_in_it() {
    let place = Place::new();
    let (mut child, pid) = with_a_child(&place);
    signal(child.id(), "TERM");
    let status = until("it ends", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(130));
    assert!(!is_live(pid));
}

#[test]
fn a_reader_that_goes_away_ends_the_conversation() {
    let place = Place::new();
    let (mut child, pid) = with_a_child(&place);
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("first") {
        line.clear();
        stdout.read_line(&mut line).unwrap();
    }
    drop(stdout);
    go(&place);
    let status = until("it ends", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(1));
    assert!(!is_live(pid));
}
