//! Conversations that are looked after beside the gateway.

use serde_json::json;

use super::Serving;
use crate::support::Place;

#[test]
fn a_conversation_is_listed_shown_and_reset() {
    let serving = Serving::start();
    serving.run(&["send", "--wait", "one"]);
    let list = serving.object(&["sessions", "list", "--output", "json"]);
    let id = list["conversations"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(list["conversations"][0]["address"], "main");
    let show = serving.object(&["sessions", "show", "local:main", "--output", "json"]);
    assert_eq!(show["conversation"]["id"], id.as_str());
    assert_eq!(show["sessions"][0]["agent"], "claude");
    assert_eq!(
        (&show["turns"][0]["state"], &show["turns"][0]["error"]),
        (&json!("ended"), &json!(null))
    );
    let text = serving.run(&["sessions", "show", &id]).stdout;
    assert!(text.contains("place         local:main"), "{text}");
    let reset = serving.object(&["sessions", "reset", &id, "--output", "json"]);
    assert_eq!((&reset["outcome"], &reset["sessions"]), (&json!("reset"), &json!(1)));
    let answer = serving.run(&["send", "--wait", "sim:history"]).stdout;
    assert!(answer.contains("so far: 1"), "{answer}");
}

#[test]
fn only_an_agent_that_can_be_run_answers_in_a_conversation() {
    let serving = Serving::start();
    serving.run(&["send", "--wait", "one"]);
    for (name, code) in [("nobody", 2), ("codex", 3)] {
        let outcome = serving.run(&["sessions", "agent", "local:main", name]);
        assert_eq!(outcome.code, Some(code), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(name), "{}", outcome.stderr);
    }
    let unknown = serving.run(&["sessions", "show", "local:other"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("no conversation local:other"), "{}", unknown.stderr);
    let program = serving.place.program("codex", "#!/bin/sh\necho codex-cli 0.166.0\n");
    let mut command =
        serving.place.ostler(&["sessions", "agent", "local:main", "codex", "--output", "json"]);
    command.env("PATH", program.parent().unwrap());
    let outcome = crate::support::Outcome::of_input(command, None);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(
        (&outcome.json()["outcome"], &outcome.json()["sessions"]),
        (&json!("changed"), &json!(1))
    );
}

#[test]
fn without_a_store_there_is_nothing_to_see() {
    let place = Place::new();
    for args in
        [&["sessions", "list"][..], &["sessions", "show", "local:main"], &["queue", "undelivered"]]
    {
        let outcome = place.run(args);
        assert_eq!(outcome.code, Some(1), "{args:?}");
        assert!(outcome.stderr.contains("no store at"), "{}", outcome.stderr);
    }
    let outcome = place.run(&["sessions", "show", "main"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("cnv_"), "{}", outcome.stderr);
}
