//! A message that is handed to the turn that runs.

use std::fs;

use serde_json::{Value, json};

use super::daemon::{Daemon, configure, ended, follow_until, send, serve};
use crate::support::Place;

/// Starts a gateway whose agent is a Codex that can be steered.
fn steerable(place: &Place) -> Daemon {
    configure(place, &json!({}));
    let ostler = env!("CARGO_BIN_EXE_ostler").replace('\'', r"'\''");
    let agent = place.program(
        "played-codex",
        &format!("#!/bin/sh\nexec '{ostler}' scripted --as codex -- \"$@\"\n"),
    );
    let path = place.path("ostler.json5");
    let mut all: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    all["busy"] = json!("steer");
    all["agent"]["default"] = json!("codex");
    all["agent"]["path"] = json!(agent);
    fs::write(&path, all.to_string()).unwrap();
    Daemon::start_by(place, serve(place), |_| place.path("data/daemon.sock"))
}

#[test]
fn a_message_is_taken_by_the_running_turn_and_answered_with_it() {
    let place = Place::new();
    let daemon = steerable(&place);
    let mut client = daemon.client();
    let first = send(&mut client, "main", "sim:delay=3000");
    follow_until(&mut daemon.client(), &first, |line| line["event"]["type"] == "started");
    let second = send(&mut client, "main", "to the left");
    let steered =
        follow_until(&mut daemon.client(), &first, |line| line["event"]["code"] == "steered");
    assert_eq!(steered["event"]["text"], "to the left");
    let (one, two) = (ended(&mut client, &first), ended(&mut client, &second));
    assert_eq!((&one["state"], &two["state"]), (&json!("done"), &json!("done")));
    assert_eq!(two["reason"], format!("answered with {first}"));
    assert_eq!(two["complete"], one["complete"]);
    let answer = one["complete"]["response_text"].as_str().unwrap();
    assert!(answer.contains("prompt has 11 characters"), "{answer}");
    assert_eq!(daemon.stop(), Some(0));
}
