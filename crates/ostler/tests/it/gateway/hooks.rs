//! Hooks of a gateway as a program: around its start and its stop, and changed
//! while it runs.

use std::fs;

use serde_json::{Value, json};

use super::daemon::{Daemon, configure, end_of, ended, send, serve};
use crate::support::{Place, until};

/// Makes a command that adds what it is told to a file.
fn noting(place: &Place) -> Value {
    json!(["sh", "-c", format!("cat >> {}", place.path("told").display())])
}

/// Returns the events that were told of, in order.
fn told(place: &Place) -> Vec<String> {
    let text = fs::read_to_string(place.path("told")).unwrap_or_default();
    let event = |line: &str| {
        let told: Value = serde_json::from_str(line).unwrap();
        told["event"].as_str().unwrap().to_owned()
    };
    text.lines().map(event).collect()
}

#[test]
fn everything_from_the_start_to_the_stop_is_told() {
    let place = Place::new();
    let all = ["start", "stop", "before_turn", "after_turn", "error", "session_reset"];
    let hooks = json!({
        "log": { "on": all, "command": noting(&place) },
        "night": { "on": "stop", "instruction": "good night", "conversation": "local:main" },
    });
    let daemon = Daemon::start(&place, &json!({ "hooks": hooks }));
    let mut client = daemon.client();
    let job = send(&mut client, "main", "hello");
    assert_eq!(ended(&mut client, &job)["state"], "done");
    until("the end of the turn is told", || {
        told(&place).contains(&all[3].to_owned()).then_some(())
    });
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(
        told(&place),
        ["start", "before_turn", "after_turn", "stop", "before_turn", "after_turn"]
    );
}

#[test]
fn a_gateway_whose_start_hook_fails_does_not_start() {
    let place = Place::new();
    let check = json!({ "on": "start", "command": ["sh", "-c", "echo why >&2; exit 3"],
                        "on_failure": "fail" });
    configure(&place, &json!({ "hooks": { "check": check } }));
    let outcome = end_of(serve(&place));
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    for part in ["the hook check did not let it", "exit code 3", "why"] {
        assert!(outcome.stderr.contains(part), "{part:?} is not in {}", outcome.stderr);
    }
    // It left nothing that stands in the way of the next.
    assert_eq!(Daemon::start(&place, &json!({})).stop(), Some(0));
}

#[test]
fn a_hook_that_is_new_in_the_file_counts_from_the_next_turn_on() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &json!({}));
    let mut client = daemon.client();
    let first = send(&mut client, "main", "hello");
    ended(&mut client, &first);
    configure(
        &place,
        &json!({ "hooks": { "log": { "on": "before_turn", "command": noting(&place) } } }),
    );
    until("the hook is known", || daemon.log().contains("hooks.log.command").then_some(()));
    let second = send(&mut client, "main", "hello");
    assert_eq!(ended(&mut client, &second)["state"], "done");
    assert_eq!(told(&place), ["before_turn"]);
    assert_eq!(daemon.stop(), Some(0));
}
