//! What `ostler chat` promises, with the scripted agent as the CLI.

mod asking;
mod busy;
mod client;
mod person;
mod server;
mod wrong;

pub(crate) use self::asking::{asking, told};

use std::fs;

use serde_json::{Value, json};

use crate::{
    conformance::chat::Chat,
    support::{Events, Outcome, Place, parse},
};

/// Writes an agent that plays Claude, and waits for the file `go` if told to.
fn player(place: &Place, held: Held) -> String {
    player_of("claude", place, held)
}

fn player_of(name: &str, place: &Place, held: Held) -> String {
    let play = json!({ "do": "agent", "name": name });
    let steps = match held {
        Held::No => json!([play]),
        Held::UntilGo => json!([{ "do": "wait_for", "path": "go" }, play]),
    };
    place.script(&steps).to_str().unwrap().to_owned()
}

#[derive(Clone, Copy)]
enum Held {
    No,
    UntilGo,
}

/// Lets the held agent go on.
fn go(place: &Place) {
    fs::write(place.path("go"), "").unwrap();
}

fn message(text: &str) -> String {
    format!("{}\n", json!({ "type": "prompt", "text": text }))
}

/// Says all of this and then nothing more.
fn say(place: &Place, args: &[&str], input: &[u8]) -> Outcome {
    let all = [&["chat", "--output", "stream-json"], args].concat();
    place.run_with_input(&all, input)
}

/// Starts a conversation that goes on.
fn start(place: &Place, args: &[&str]) -> Chat {
    Chat::start(place.ostler(&[&["chat", "--output", "stream-json"], args].concat()))
}

/// Separates what was said outside of turns from the turns, in their order.
fn sort(outcome: &Outcome) -> (Vec<Value>, Vec<Events>) {
    let (mut asides, mut turns): (Vec<Value>, Vec<Vec<Value>>) = (Vec::new(), Vec::new());
    for event in outcome.stdout.lines().map(parse) {
        if event["turn"].is_null() {
            assert_eq!(event["seq"], 0, "{event}");
            event["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
            asides.push(event);
        } else if event["seq"] == 1 {
            turns.push(vec![event]);
        } else {
            turns.last_mut().expect("a turn begins with number 1").push(event);
        }
    }
    (asides, turns.into_iter().map(Events::check).collect())
}

fn text(events: &Events) -> &str {
    events.last()["response_text"].as_str().unwrap()
}

#[test]
fn every_prompt_goes_on_where_the_one_before_ended() {
    let place = Place::new();
    let program = player(&place, Held::No);
    let input = ["one", "sim:history", "sim:history"].map(message).concat();
    let outcome = say(&place, &["--cold", "--bin", &program], input.as_bytes());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let (_, turns) = sort(&outcome);
    assert_eq!(turns.len(), 3, "the end of the input ends nothing that was accepted");
    assert!(text(&turns[1]).contains("so far: 2"), "{}", text(&turns[1]));
    assert!(text(&turns[2]).contains("so far: 3"), "{}", text(&turns[2]));
    let sessions: Vec<_> = turns.iter().map(|turn| &turn.last()["session_id"]).collect();
    assert!(sessions.iter().all(|session| *session == sessions[0] && session.is_string()));
    assert!(place.is_swept());
}

#[test]
fn cold_turns_have_a_process_each_and_no_warning() {
    let place = Place::new();
    let program = player(&place, Held::No);
    let args = ["--cold", "--permissions", "read-only", "--bin", &program];
    let (_, turns) = sort(&say(&place, &args, message("hi").as_bytes()));
    assert_eq!(turns[0].last()["mode"], "one_shot");
    assert!(turns[0].statuses("warning").is_empty());
}

#[test]
fn the_first_prompt_may_be_an_argument_and_a_session_may_go_on() {
    let place = Place::new();
    let program = player(&place, Held::No);
    let first = say(&place, &["--cold", "--bin", &program, "hello"], b"");
    let (_, turns) = sort(&first);
    let session = turns[0].last()["session_id"].as_str().unwrap();
    for args in [["--session", session].as_slice(), &["--continue"]] {
        let args = [args, &["--cold", "--bin", &program]].concat();
        let (_, turns) = sort(&say(&place, &args, message("sim:history").as_bytes()));
        assert!(text(&turns[0]).contains("so far: "), "{}", text(&turns[0]));
        assert_eq!(turns[0].last()["session_id"], session);
    }
}

#[test]
fn the_raw_lines_of_each_turn_are_kept_apart() {
    let place = Place::new();
    let program = player(&place, Held::No);
    let file = place.path("raw");
    let args = ["--cold", "--bin", &program, "--transcript", file.to_str().unwrap()];
    say(&place, &args, ["one", "two"].map(message).concat().as_bytes());
    for name in ["raw", "raw.2"] {
        assert!(fs::read_to_string(place.path(name)).unwrap().contains("result"), "{name}");
    }
}

#[test]
fn in_a_pipe_every_line_is_a_prompt_and_only_answers_are_printed() {
    let place = Place::new();
    let program = player(&place, Held::No);
    let args = ["chat", "--cold", "--bin", &program];
    let outcome = place.run_with_input(&args, b"one\n\nsim:history\n");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let lines: Vec<_> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", outcome.stdout);
    assert!(lines[1].contains("so far: 2"), "{}", lines[1]);
}

#[test]
fn as_json_every_turn_is_one_object() {
    let place = Place::new();
    let program = player(&place, Held::No);
    let args = ["chat", "--cold", "--bin", &program, "--output", "json"];
    let outcome = place.run_with_input(&args, b"one\ntwo\nsim:history");
    let objects: Vec<_> = outcome.stdout.lines().map(parse).collect();
    assert_eq!(objects.len(), 3, "{}", outcome.stdout);
    assert!(objects[2]["response_text"].as_str().unwrap().contains("so far: 3"));
    assert_eq!(objects[0]["session_id"], objects[2]["session_id"]);
}

#[test]
fn hundreds_of_lines_in_a_pipe_wait_for_their_turn() {
    let place = Place::new();
    let program = player(&place, Held::No);
    let args = ["chat", "--cold", "--bin", &program, "--output", "json"];
    let outcome = place.run_with_input(&args, "hi\n".repeat(120).as_bytes());
    assert_eq!(outcome.stdout.lines().count(), 120, "{}", outcome.stderr);
}

#[test]
fn where_nobody_can_be_asked_the_agent_may_only_look() {
    let place = Place::new();
    let program = player(&place, Held::No);
    let args = ["chat", "--permissions", "ask", "--agent", "pi", "--bin", &program];
    let outcome = place.run_with_input(&args, b"");
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.stderr.contains("nobody can be asked here"), "{}", outcome.stderr);
}
