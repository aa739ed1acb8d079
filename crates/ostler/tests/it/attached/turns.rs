//! Turns at the real server.

use std::fs;

use ostler_sim::model;

use super::{outcome, server::Server, text, warnings};
use crate::{
    conformance::{cancel::unique_seconds, chat::Chat},
    support::{Running, processes_with, until},
};

const FREE: &[&str] = &["--permissions", "bypass"];

fn free<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [FREE, args].concat()
}

#[test]
fn a_session_goes_on_in_another_program_and_after_the_server_was_started_again() {
    let Some(mut server) = Server::start() else { return };
    let first = outcome(server.run(&free(&["sim:tool"]))).events();
    let last = first.last();
    assert_eq!(text(last, "response_text"), "The tool said: hi\n");
    assert_eq!((text(last, "mode"), &last["exit_code"]), ("warm", &serde_json::Value::Null));
    assert_eq!(text(first.of_type("started").next().unwrap(), "version"), "1.18.33");
    assert_eq!(warnings(&first), "");
    let session = text(last, "session_id").to_owned();

    let mut chat = server.chat(&free(&["--session", &session]));
    let remembers = |chat: &mut Chat, number: usize| {
        let answer = chat.answer_to("sim:history");
        assert!(answer.starts_with(&format!("I remember {number} prompts")), "{answer}");
    };
    remembers(&mut chat, 2);
    remembers(&mut chat, 3);
    server.kill();
    server.start_again();
    // What it was told just before it was killed may be lost, but not the session.
    let answer = chat.answer_to("sim:history after that");
    assert!(answer.ends_with("the first was: sim:tool"), "{answer}");
    chat.end();
    assert!(server.is_running(), "it was stopped, and is not ours");

    // Nobody can be asked here: it may only look, and so can the next that is not told more.
    let args = ["--session", session.as_str(), "--env", "NAME=value", "--isolated", "sim:tool"];
    let strict = outcome(server.run(&args)).events();
    assert!(text(strict.last(), "response_text").contains("no shell tool"), "{}", strict.last());
    let told = warnings(&strict);
    for word in ["NAME", "its own home", "read-only"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let again = outcome(server.run(&free(&["--continue", "sim:tool"]))).events();
    assert_eq!(text(again.last(), "response_text"), "The tool said: hi\n");
    assert_eq!(text(again.last(), "session_id"), session);
}

#[test]
fn what_is_asked_is_answered_what_is_cancelled_ends_and_two_ostlers_do_not_disturb_each_other() {
    let Some(mut server) = Server::start() else { return };
    let mut chat = server.chat(&["--permissions", "ask"]);
    for (name, decision, happens) in [("yes", "allow", true), ("no", "deny", false)] {
        let path = server.place.path("tmp").join(name);
        chat.prompt(&format!("sim:ask=touch {}", path.display()));
        let asked = chat.wait_for(|event| event["type"] == "permission");
        assert!(text(&asked, "title").contains("touch"), "{asked}");
        chat.answer(&asked["request"], decision);
        assert_eq!(chat.finish().last()["is_error"], false);
        assert_eq!(path.exists(), happens, "{name}");
    }

    // Another one, with other rules and in the middle of something.
    let seconds = unique_seconds().to_string();
    let sleep = format!("sleep\0{seconds}");
    let prompt = format!("sim:sleep-tool={seconds}");
    let mut other = Running::start(server.run(&free(&[&prompt])));
    other.wait_for(|event| event["type"] == "tool_use");
    until("the tool runs", || (!processes_with(&sleep).is_empty()).then_some(()));
    assert_eq!(chat.answer_to("hello"), model::HELLO);
    other.signal("INT");
    let (code, events) = other.finish();
    assert_eq!((code, text(&events.last()["error"], "kind")), (Some(130), "cancelled"));
    until("the tool is gone", || processes_with(&sleep).is_empty().then_some(()));

    chat.prompt("sim:slow=60000");
    chat.wait_for(|event| event["type"] == "output");
    chat.cancel();
    assert_eq!(text(&chat.finish().last()["error"], "kind"), "cancelled");
    assert_eq!(chat.answer_to("hello"), model::HELLO);
    // The end of the program is the end of what runs in it, and not of the server.
    chat.prompt("sim:slow=60000");
    chat.wait_for(|event| event["type"] == "output");
    chat.signal("TERM");
    assert_eq!(chat.wait(), Some(130));
    assert!(server.is_running());
    let data = server.place.path("data");
    let is_told = |path: &std::path::Path| {
        fs::read_to_string(path).unwrap_or_default().contains(super::PASSWORD)
    };
    assert!(!files(&data).iter().any(|path| is_told(path)), "the password was kept");
    assert!(server.place.is_swept());
}

#[test]
fn a_server_that_dies_in_a_turn_ends_it_and_serves_the_next_when_it_is_back() {
    let Some(mut server) = Server::start() else { return };
    let mut chat = server.chat(FREE);
    assert_eq!(chat.answer_to("hello"), model::HELLO);
    chat.prompt("sim:slow=60000");
    chat.wait_for(|event| event["type"] == "output");
    server.kill();
    let events = chat.finish();
    let error = &events.last()["error"];
    assert_eq!((text(error, "kind"), &error["retryable"]), ("unavailable", &true.into()));
    assert!(text(error, "message").contains(&server.url()), "{error}");
    // Nobody is there, and that is told at once.
    let events = chat.ask("hello");
    assert_eq!(text(&events.last()["error"], "kind"), "unavailable");
    assert!(text(&events.last()["error"], "message").contains("cannot be reached"));
    server.start_again();
    assert!(chat.answer_to("sim:history").contains("the first was: hello"));
    chat.end();
}

#[test]
fn rules_that_a_session_brings_along_do_not_count_in_a_process_of_ostlers() {
    let Some(mut server) = Server::start() else { return };
    let first = outcome(server.run(&free(&["hello"]))).events();
    let session = text(first.last(), "session_id").to_owned();
    server.give_rule(&session, r#"{"permission":"*","pattern":"*","action":"allow"}"#);
    server.kill();
    let turn = |permissions: &str| {
        let mut chat =
            server.own_chat(&["--permissions", permissions, "--session", session.as_str()]);
        let answer = chat.answer_to("sim:tool");
        chat.end();
        answer
    };
    let answer = turn("read-only");
    assert!(answer.contains("no shell tool"), "{answer}");
    // Nor do those of such a turn hold one that may do everything.
    assert_eq!(turn("bypass"), "The tool said: hi\n");
    let answer = turn("read-only");
    assert!(answer.contains("no shell tool"), "{answer}");
}

/// Returns every file below a folder.
fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all
}
