//! What the gateway begins by itself: heartbeats and schedules, as an operator
//! sees to them.

use serde_json::{Value, json};

use super::daemon::{Daemon, configure, ended, send};
use crate::support::{Place, until};

/// Runs a command that prints one object and succeeds.
fn object(place: &Place, args: &[&str]) -> Value {
    let outcome = place.run(&[args, &["--output", "json"]].concat());
    assert_eq!(outcome.code, Some(0), "{args:?}: {}{}", outcome.stdout, outcome.stderr);
    outcome.json()
}

#[test]
fn a_heartbeat_is_made_now_or_it_is_said_why_not() {
    let place = Place::new();
    let outcome = place.run(&["heartbeat"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("ostler serve"), "{}", outcome.stderr);
    let daemon = Daemon::start(&place, &json!({}));
    let mut client = daemon.client();
    let skipped = object(&place, &["heartbeat"]);
    assert_eq!(
        (&skipped["type"], &skipped["reason"]),
        (&json!("skipped"), &json!("no_conversation"))
    );
    let said = send(&mut client, "main", "hello");
    ended(&mut client, &said);
    let made = object(&place, &["heartbeat", "--conversation", "local:main"]);
    assert_eq!(made["type"], "accepted");
    let job = made["job"].as_str().unwrap();
    assert_eq!(ended(&mut client, job)["state"], "done");
    let shown = object(&place, &["queue", "show", job]);
    assert_eq!(
        (&shown["kind"], &shown["payload"]["origin"]),
        (&json!("heartbeat"), &json!("heartbeat"))
    );
    assert_eq!(place.run(&["heartbeat", "--conversation", "main"]).code, Some(2));
    let elsewhere = place.run(&["heartbeat", "--conversation", "local:nowhere"]);
    let says = "skipped: there is no conversation local:nowhere";
    assert_eq!((elsewhere.code, elsewhere.stdout.trim()), (Some(0), says));
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_heartbeat_that_is_switched_on_in_the_file_begins_without_a_restart() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &json!({}));
    let mut client = daemon.client();
    let said = send(&mut client, "main", "hello");
    ended(&mut client, &said);
    configure(&place, &json!({ "heartbeat": { "every": "1s" } }));
    until("there is a heartbeat", || {
        let list = object(&place, &["queue", "list", "--state", "done"]);
        let jobs = list["jobs"].as_array().unwrap();
        jobs.iter().any(|job| job["kind"] == "heartbeat").then_some(())
    });
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn schedules_are_kept_with_a_gateway_and_without_one() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &json!({}));
    let add =
        ["schedule", "add", "--name", "news", "--cron", "0 9 * * 1-5", "--tz", "Europe/Berlin"];
    let outcome = place.run(&[&add[..], &["What is new?"]].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stdout.starts_with("news: added, next "), "{}", outcome.stdout);
    assert!(outcome.stdout.contains(" 09:00 CE"), "{}", outcome.stdout);
    let ran = object(&place, &["schedule", "run", "news"]);
    assert_eq!(ended(&mut daemon.client(), ran["job"].as_str().unwrap())["state"], "done");
    assert_eq!(daemon.stop(), Some(0));
    let list = object(&place, &["schedule", "list"]);
    let row = &list["schedules"][0];
    assert_eq!((&row["name"], &row["zone"]), (&json!("news"), &json!("Europe/Berlin")));
    assert_eq!((&row["runs"], &row["conversation"]), (&json!(1), &json!("local:main")));
    let again = place.run(&[&add[..], &["Again?"]].concat());
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("there is a schedule \"news\" already"), "{}", again.stderr);
    for (args, says) in [
        (["--cron", "0 25 * * *"], "the hour \"25\" of the cron expression is wrong"),
        (["--cron", "0 9 30 2 *"], "never comes"),
    ] {
        let wrong = place.run(&[&["schedule", "add", "--name", "x"], &args[..], &["x"]].concat());
        assert_eq!(wrong.code, Some(2));
        assert!(wrong.stderr.contains(says), "{}", wrong.stderr);
    }
    let wrong =
        place.run(&["schedule", "add", "--name", "x", "--cron", "@daily", "--tz", "berlin", "x"]);
    assert!(wrong.stderr.contains("did you mean Europe/Berlin?"), "{}", wrong.stderr);
    // What is run without a gateway is answered by the next one.
    let ran = object(&place, &["schedule", "run", "news"]);
    let daemon = Daemon::start_again(&place);
    assert_eq!(ended(&mut daemon.client(), ran["job"].as_str().unwrap())["state"], "done");
    let removed = place.run(&["schedule", "remove", "news"]);
    assert_eq!((removed.code, removed.stdout.trim()), (Some(0), "news: removed"));
    assert_eq!(place.run(&["schedule", "list"]).stdout.trim(), "no schedules");
    assert_eq!(daemon.stop(), Some(0));
}
