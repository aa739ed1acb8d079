//! No process outlives its turn, whatever ended it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Place, Running, is_live, until};

/// Steps that start processes of every kind, say so, and hang.
fn family(place: &Place, ignore: &[&str]) -> Vec<Value> {
    let spawn = |kind: &str| json!({ "do": "spawn", "kind": kind, "sleep_s": 600, "pid_file": place.path(kind) });
    vec![
        json!({ "do": "ignore_signals", "signals": ignore }),
        spawn("child"),
        spawn("own_session"),
        spawn("daemon"),
        json!({ "do": "line", "text": "ready" }),
        json!({ "do": "hang" }),
    ]
}

fn pids(place: &Place) -> Vec<u32> {
    ["child", "own_session", "daemon"]
        .iter()
        .map(|kind| std::fs::read_to_string(place.path(kind)).unwrap().trim().parse().unwrap())
        .collect()
}

/// Starts a turn whose CLI has a family, and waits until all of it runs.
fn start(place: &Place, ignore: &[&str], args: &[&str]) -> (Running, Vec<u32>) {
    let program = place.script(&Value::Array(family(place, ignore)));
    let mut all = vec!["run", "--bin", program.to_str().unwrap(), "--output", "stream-json"];
    all.extend(args);
    all.push("hi");
    let mut running = Running::start(place.ostler(&all));
    running.wait_for(|event| event["text"] == "ready");
    let pids = pids(place);
    assert!(pids.iter().all(|pid| is_live(*pid)), "the family runs");
    (running, pids)
}

fn assert_gone(pids: &[u32]) {
    let left: Vec<_> = pids.iter().filter(|pid| is_live(**pid)).collect();
    assert!(left.is_empty(), "still running: {left:?}");
}

#[test]
fn after_a_cancel_nothing_is_left_when_the_end_is_told() {
    for signal in ["INT", "TERM", "HUP"] {
        let place = Place::new();
        let (running, pids) = start(&place, &[], &[]);
        running.signal(signal);
        let (code, events) = running.finish();
        assert_eq!((code, &events.last()["error"]["kind"]), (Some(130), &"cancelled".into()));
        assert_gone(&pids);
        assert!(place.is_swept());
    }
}

#[test]
fn a_second_interrupt_kills_at_once_what_ignores_the_first() {
    let place = Place::new();
    let (mut running, pids) = start(&place, &["TERM", "INT"], &[]);
    let asked = Instant::now();
    // Two signals at the same moment are one to the kernel, so it is asked until it hears.
    until("it has ended", || {
        running.signal("INT");
        (!running.is_running()).then_some(())
    });
    let (code, _) = running.finish();
    assert_eq!(code, Some(130));
    assert_gone(&pids);
    // The stop plan alone would give it five seconds to go by itself.
    assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
}

#[test]
fn signals_work_even_when_nobody_reads_what_is_printed() {
    let place = Place::new();
    let program = place.script(&json!([{ "do": "flood", "bytes": 50_000_000 }, { "do": "hang" }]));
    let args = ["run", "--bin", program.to_str().unwrap(), "--output", "stream-json", "hi"];
    // Standard output is a pipe that is never read, and full in no time.
    let mut child = place.ostler(&args).spawn().unwrap();
    let is_full = |pid: u32| {
        let state = std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
        state.contains("pipe")
    };
    let pid = child.id();
    until("the pipe is full", || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let mut tasks = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
        tasks.any(is_full).then_some(())
    });
    crate::support::signal(pid, "INT");
    crate::support::signal(pid, "TERM");
    let status = until("it ends", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(130));
}

#[test]
fn after_a_timeout_nothing_is_left_even_of_what_ignores_signals() {
    let place = Place::new();
    let (running, pids) = start(&place, &["TERM", "INT"], &["--timeout", "5s"]);
    let (code, events) = running.finish();
    assert_eq!(code, Some(124));
    assert_eq!(events.last()["response_text"], "Query timed out");
    assert_gone(&pids);
}

#[test]
fn a_silent_agent_is_ended_by_the_idle_timeout() {
    let place = Place::new();
    let (running, pids) = start(&place, &[], &["--idle-timeout", "3s"]);
    let (code, events) = running.finish();
    assert_eq!((code, &events.last()["error"]["kind"]), (Some(124), &"timeout".into()));
    let message = events.last()["error"]["message"].as_str().unwrap();
    assert!(message.contains("printed nothing"), "{message}");
    assert_gone(&pids);
}

#[test]
fn sigkill_of_ostler_takes_the_whole_family_along() {
    let place = Place::new();
    let (running, pids) = start(&place, &["TERM", "INT"], &[]);
    running.signal("KILL");
    assert_eq!(running.wait(), None);
    for pid in pids {
        until("the family is gone", || (!is_live(pid)).then_some(()));
    }
}
