//! Messages that agents and programs have for people, and what is kept of all.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::Serving;
use crate::support::{Place, until};

/// Starts a gateway that watches a folder.
fn serving() -> (Serving, PathBuf) {
    let place = Place::new();
    let program = place.script(&json!([{ "do": "agent", "name": "claude" }]));
    fs::write(place.work().join("ostler.json5"), "{ outbound: { dir: 'box' } }").unwrap();
    let folder = place.work().join("box");
    let serving = Serving::with_program(place, "claude", program.to_str().unwrap());
    until("the folder is there", || folder.is_dir().then_some(()));
    (serving, folder)
}

fn texts(page: &Value) -> Vec<&str> {
    let messages = page["messages"].as_array().unwrap();
    messages.iter().map(|message| message["text"].as_str().unwrap()).collect()
}

#[test]
fn what_an_agent_sends_reaches_the_conversation_its_history_and_the_archive() {
    let (serving, folder) = serving();
    let nobody = serving.run(&["send", "--from-agent", "anybody there?"]);
    assert_eq!(nobody.code, Some(2), "{}", nobody.stderr);
    assert_eq!(serving.run(&["send", "--wait", "hello"]).code, Some(0));
    let sent = serving.run(&["send", "--from-agent", "--id", "tea", "Tea is ready"]);
    assert!(sent.stdout.starts_with("msg_"), "{}{}", sent.stdout, sent.stderr);
    let again = serving.object(&[
        "send",
        "--from-agent",
        "--id",
        "tea",
        "--output",
        "json",
        "Tea is ready",
    ]);
    assert_eq!((&again["type"], &again["again"]), (&json!("delivered"), &json!(true)));
    assert_eq!(again["message"], sent.stdout.trim_end());
    fs::write(folder.join("new.tmp"), r#"{"text":"from the folder","from":"backup"}"#).unwrap();
    fs::rename(folder.join("new.tmp"), folder.join("new.json")).unwrap();
    let page = until("the file is sent", || {
        let page = serving.object(&["history", "--output", "json"]);
        (texts(&page).len() == 4).then_some(page)
    });
    let said = texts(&page);
    assert_eq!((said[0], said[2], said[3]), ("hello", "Tea is ready", "from the folder"));
    assert_eq!(page["messages"][3]["sender"], "backup");
    assert_eq!(page["next"], Value::Null);
    until("it is removed", || (!folder.join("new.json").exists()).then_some(()));
    let found = serving.object(&["history", "--all", "--search", "TEA", "--output", "json"]);
    assert_eq!(texts(&found), ["Tea is ready"]);
    let shown = serving.run(&["history", "local:main", "--limit", "1"]);
    assert!(shown.stdout.contains("backup\n    from the folder\n"), "{}", shown.stdout);
    assert_eq!(serving.run(&["history", "local:other"]).code, Some(1));
    let archive = serving.place.path("data/archive/local");
    let page = until("it is archived", || {
        let folder = fs::read_dir(&archive).ok()?.next()?.ok()?.path();
        let page = fs::read_to_string(fs::read_dir(folder).ok()?.next()?.ok()?.path()).ok()?;
        page.contains("> from the folder\n").then_some(page)
    });
    assert_eq!(page.matches("<!-- msg_").count(), 4, "{page}");
}

#[test]
fn options_of_a_turn_make_no_sense_for_a_message_to_people() {
    let (serving, _) = serving();
    for args in [&["--wait"][..], &["--agent", "codex"], &["--to", "pigeon:roof"], &["--id", ""]] {
        let outcome = serving.run(&[&["send", "--from-agent"], args, &["x"]].concat());
        assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.stderr);
    }
}
