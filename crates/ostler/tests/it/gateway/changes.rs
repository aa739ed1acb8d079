//! A configuration that changes while the gateway runs.

use std::fs;

use serde_json::{Value, json};

use super::daemon::{Daemon, ended, send};
use crate::support::{Place, until};

/// Changes a key of the file, in place of what is there.
fn change(place: &Place, change: impl FnOnce(&mut Value)) {
    let path = place.path("ostler.json5");
    let mut all: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut all);
    let new = place.path("new.json5");
    fs::write(&new, all.to_string()).unwrap();
    fs::rename(new, path).unwrap();
}

fn logged(daemon: &Daemon, text: &str) {
    until(&format!("it logs {text:?}"), || daemon.log().contains(text).then_some(()));
}

#[test]
fn what_can_be_changed_counts_from_the_next_turn_on_and_the_rest_is_told() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &json!({}));
    let mut client = daemon.client();
    let model = |line: &Value| line["complete"]["session_id"].clone();
    let first = send(&mut client, "main", "hello");
    let session = model(&ended(&mut client, &first));
    change(&place, |all| {
        all["sessions"] = json!({ "reset_words": ["once more"] });
        all["gateway"]["log_level"] = json!("debug");
    });
    logged(&daemon, "sessions.reset_words");
    logged(&daemon, "needs a restart");
    let same = send(&mut client, "main", "/new is no word any more");
    assert_eq!(model(&ended(&mut client, &same)), session);
    let other = send(&mut client, "main", "once more with feeling");
    assert_ne!(model(&ended(&mut client, &other)), session);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_file_that_is_wrong_or_names_an_agent_that_is_not_there_changes_nothing() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &json!({}));
    let mut client = daemon.client();
    change(&place, |all| all["bussy"] = json!("queue"));
    logged(&daemon, "bussy");
    change(&place, |all| {
        all.as_object_mut().unwrap().remove("bussy");
        all["agent"]["default"] = json!("codex");
        all["agent"].as_object_mut().unwrap().remove("path");
    });
    logged(&daemon, "codex");
    let job = send(&mut client, "main", "hello");
    let end = ended(&mut client, &job);
    assert_eq!((&end["state"], &end["complete"]["agent"]), (&json!("done"), &json!("claude")));
    assert_eq!(daemon.stop(), Some(0));
}
