//! Messages that are sent to conversations.

use std::io::Read as _;

use serde_json::Value;

use super::Serving;
use crate::support::{Running, until};

#[test]
fn a_message_is_taken_at_once_and_answered_later() {
    let serving = Serving::start();
    let outcome = serving.run(&["send", "--id", "m1", "hello"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let job = outcome.stdout.trim_end();
    assert!(job.starts_with("job_"), "{job}");
    let again = serving.object(&["send", "--id", "m1", "--output", "json", "hello"]);
    assert_eq!((again["job"].as_str(), &again["again"]), (Some(job), &Value::Bool(true)));
    assert_eq!(again["type"], "accepted");
    until("it is answered", || (serving.job(job)["state"] == "done").then_some(()));
}

#[test]
fn a_conversation_goes_on_and_is_another_ones_nothing() {
    let serving = Serving::start();
    let wait = |args: &[&str]| {
        let mut all = vec!["send", "--wait"];
        all.extend(args);
        let outcome = serving.run(&all);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
        outcome.stdout
    };
    assert!(wait(&["one"]).contains("scripted agent"));
    assert!(wait(&["sim:history"]).contains("so far: 2"));
    assert!(wait(&["--to", "local:main", "sim:history"]).contains("so far: 3"));
    assert!(wait(&["--conversation", "other", "sim:history"]).contains("so far: 1"));
    assert_eq!(wait(&["/new"]), "");
    assert!(wait(&["sim:history"]).contains("so far: 1"));
    let object = serving.object(&["send", "--wait", "--output", "json", "sim:history"]);
    assert_eq!((&object["agent"], &object["is_error"]), (&"claude".into(), &false.into()));
}

#[test]
fn what_is_sent_wrongly_is_refused() {
    let serving = Serving::start();
    for (args, says) in [
        (&["--to", "main", "x"][..], "local:main"),
        (&["--to", "pigeon:x", "x"], "there is no channel"),
        (&["--to", "webhook:nowhere", "x"], "URL"),
        (&["--to", "local:a", "--conversation", "b", "x"], "cannot be used with"),
        (&["--conversation", "a\u{1b}", "x"], "control characters"),
        (&["--agent", "nobody", "x"], "nobody"),
        (&["--cwd", "nowhere", "x"], "nowhere"),
        (&[" "], "prompt required"),
        (&["--id", "", "x"], "`id`"),
    ] {
        let mut all = vec!["send"];
        all.extend(args);
        let outcome = serving.run(&all);
        assert_eq!(outcome.code, Some(2), "{args:?}: {}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains(says), "{args:?}: {}", outcome.stderr);
    }
}

#[test]
fn who_stops_waiting_does_not_stop_the_turn() {
    let serving = Serving::start();
    let args = ["send", "--wait", "--output", "stream-json", "sim:hang"];
    let mut wait = Running::start(serving.place.ostler(&args));
    wait.wait_for(|event| event["type"] == "started");
    wait.signal("INT");
    assert_eq!(wait.wait(), Some(130));
    let jobs = serving.object(&["queue", "list", "--output", "json"]);
    assert_eq!(jobs["jobs"][0]["state"], "running");
    let job = jobs["jobs"][0]["id"].as_str().unwrap();
    assert_eq!(serving.run(&["queue", "cancel", job]).code, Some(0));
    until("it is cancelled", || (serving.job(job)["state"] == "cancelled").then_some(()));
}

#[test]
fn who_waits_for_a_message_that_is_cancelled_is_told() {
    let serving = Serving::start();
    let first = serving.run(&["send", "sim:hang"]);
    let mut command = serving.place.ostler(&["send", "--wait", "--id", "second", "after it"]);
    command.stdout(std::process::Stdio::piped());
    let mut second = command.spawn().unwrap();
    let waiting = ["queue", "list", "--state", "waiting", "--output", "json"];
    let job =
        until("it waits", || serving.object(&waiting)["jobs"][0]["id"].as_str().map(str::to_owned));
    assert_eq!(serving.run(&["queue", "cancel", &job]).code, Some(0));
    let status = until("it has ended", || second.try_wait().unwrap());
    let mut stderr = String::new();
    second.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("cancelled by the operator"), "{stderr}");
    serving.run(&["queue", "cancel", first.stdout.trim_end()]);
}
