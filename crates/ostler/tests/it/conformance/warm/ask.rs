//! Permissions that somebody is asked for.

use super::{for_every_own_agent, for_every_warm_agent, leaders};
use crate::conformance::{Facts, rig::Rig};
use serde_json::Value;

for_every_warm_agent! {
    what_is_allowed_happens
    what_is_denied_does_not_happen_and_the_turn_goes_on
    what_nobody_answers_is_denied
    cancelling_while_a_question_is_open_resolves_it_and_the_session_goes_on
    always_is_remembered_for_the_same_command_only
    an_answer_to_nothing_is_an_error_and_nothing_else
    read_only_never_asks_and_never_writes
}

for_every_own_agent! {
    what_is_allowed_happens
    what_is_denied_does_not_happen_and_the_turn_goes_on
    what_nobody_answers_is_denied
    cancelling_while_a_question_is_open_resolves_it_and_the_session_goes_on
    always_is_remembered_for_the_same_command_only
    read_only_never_asks_and_never_writes
}

const ASK: &[&str] = &["--permissions", "ask"];

/// Returns a prompt that makes the model write a file, and the file.
fn touch(rig: &Rig, name: &str) -> (String, std::path::PathBuf) {
    let path = rig.place.path("tmp").join(name);
    (format!("sim:ask=touch {}", path.display()), path)
}

/// An agent that cannot ask says so, and only looks.
fn cannot_ask(rig: &Rig) -> bool {
    let built_in = ostler_core::agent::find(rig.facts.agent);
    if built_in.is_none_or(|spec| spec.caps.supports_approvals) {
        return false;
    }
    let mut chat = rig.chat(ASK);
    let (prompt, path) = touch(rig, "cannot-ask");
    let events = chat.ask(&prompt);
    assert!(!path.exists());
    let warnings = events.statuses("warning");
    let says = |warning: &&Value| warning["text"].as_str().unwrap().contains("read-only");
    assert!(warnings.iter().any(says), "{warnings:?}");
    assert_eq!(events.of_type("permission").count(), 0);
    chat.end();
    true
}

fn what_is_allowed_happens(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    if cannot_ask(&rig) {
        return;
    }
    let mut chat = rig.chat(ASK);
    let (prompt, path) = touch(&rig, "allowed");
    chat.prompt(&prompt);
    let asked = chat.wait_for(|event| event["type"] == "permission");
    assert_eq!(asked["kind"], "command", "{asked}");
    assert!(asked["title"].as_str().unwrap().contains("touch"), "{asked}");
    assert!(asked["expires_at"].is_string());
    assert!(!path.exists(), "it did not wait");
    chat.answer(&asked["request"], "allow");
    let events = chat.finish();
    assert_eq!(events.last()["is_error"], false, "{}", events.last());
    assert!(path.exists());
    let resolved = events.statuses("permission_resolved");
    assert_eq!(resolved.len(), 1);
    assert_eq!(
        (&resolved[0]["request"], &resolved[0]["decision"], &resolved[0]["by"]),
        (&asked["request"], &"allow".into(), &"user".into())
    );
    chat.end();
}

fn what_is_denied_does_not_happen_and_the_turn_goes_on(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    if cannot_ask(&rig) {
        return;
    }
    let mut chat = rig.chat(ASK);
    let (prompt, path) = touch(&rig, "denied");
    chat.prompt(&prompt);
    let asked = chat.wait_for(|event| event["type"] == "permission");
    chat.answer(&asked["request"], "deny");
    let events = chat.finish();
    assert_eq!(events.last()["is_error"], false, "{}", events.last());
    assert!(!path.exists());
    chat.answer_to("hello");
    chat.end();
}

fn what_nobody_answers_is_denied(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    if cannot_ask(&rig) {
        return;
    }
    let mut chat = rig.chat(&["--permissions", "ask", "--ask-timeout", "1s"]);
    let (prompt, path) = touch(&rig, "unanswered");
    let events = chat.ask(&prompt);
    assert_eq!(events.last()["is_error"], false, "{}", events.last());
    assert!(!path.exists());
    let resolved = events.statuses("permission_resolved");
    assert_eq!((&resolved[0]["decision"], &resolved[0]["by"]), (&"deny".into(), &"timeout".into()));
    chat.end();
}

fn cancelling_while_a_question_is_open_resolves_it_and_the_session_goes_on(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    if cannot_ask(&rig) {
        return;
    }
    let mut chat = rig.chat(ASK);
    chat.answer_to("hello");
    let before = leaders(&rig);
    let (prompt, path) = touch(&rig, "cancelled");
    chat.prompt(&prompt);
    chat.wait_for(|event| event["type"] == "permission");
    chat.cancel();
    let events = chat.finish();
    assert_eq!(events.last()["error"]["kind"], "cancelled");
    let resolved = events.statuses("permission_resolved");
    assert_eq!((&resolved[0]["decision"], &resolved[0]["by"]), (&"deny".into(), &"cancel".into()));
    assert!(!path.exists());
    chat.answer_to("hello");
    assert_eq!(leaders(&rig), before, "the process was replaced");
    chat.end();
}

fn always_is_remembered_for_the_same_command_only(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    if cannot_ask(&rig) {
        return;
    }
    let mut chat = rig.chat(ASK);
    let (prompt, path) = touch(&rig, "always");
    chat.prompt(&prompt);
    let asked = chat.wait_for(|event| event["type"] == "permission");
    chat.answer(&asked["request"], "allow_always");
    chat.finish();
    std::fs::remove_file(&path).unwrap();
    let events = chat.ask(&prompt);
    assert!(path.exists(), "{:?}", events.types());
    assert_eq!(events.of_type("permission").count(), 0);
    assert_eq!(events.statuses("permission_resolved")[0]["by"], "session");
    let (other, path) = touch(&rig, "other");
    chat.prompt(&other);
    let asked = chat.wait_for(|event| event["type"] == "permission");
    chat.answer(&asked["request"], "deny");
    chat.finish();
    assert!(!path.exists());
    chat.end();
}

fn an_answer_to_nothing_is_an_error_and_nothing_else(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    if cannot_ask(&rig) {
        return;
    }
    let mut chat = rig.chat(ASK);
    let (prompt, path) = touch(&rig, "nothing");
    chat.prompt(&prompt);
    let asked = chat.wait_for(|event| event["type"] == "permission");
    chat.answer(&"nonsense".into(), "allow");
    let error = chat.wait_for(|event| event["type"] == "error");
    assert_eq!((&error["seq"], &error["turn"]), (&0.into(), &Value::Null), "{error}");
    assert!(!path.exists());
    chat.forget_asides();
    chat.answer(&asked["request"], "allow");
    chat.finish();
    assert!(path.exists());
    chat.end();
}

fn read_only_never_asks_and_never_writes(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&["--permissions", "read-only"]);
    let (prompt, path) = touch(&rig, "read-only");
    let events = chat.ask(&prompt);
    assert!(!path.exists(), "{:?}", events.types());
    assert_eq!(events.of_type("permission").count(), 0);
    chat.end();
}
