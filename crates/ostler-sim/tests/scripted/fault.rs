//! Scripts that misbehave.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;

use serde_json::json;

use super::{Scene, send, stat, touch};

#[test]
fn an_exit_code_comes_with_or_without_a_word_on_stderr() {
    let silent = Scene::new(json!([{"do": "exit", "code": 42}])).play();
    assert_eq!((silent.code(), silent.stderr()), (Some(42), ""));
    let loud = Scene::new(json!([{"do": "exit", "code": 1, "stderr": "Error: no"}])).play();
    assert_eq!((loud.code(), loud.stderr()), (Some(1), "Error: no\n"));
}

#[test]
fn a_script_dies_by_the_signal_it_names() {
    for (name, number) in [("TERM", 15), ("KILL", 9), ("SIGSEGV", 11), ("ABRT", 6), ("PIPE", 13)] {
        let played = Scene::new(json!([
            {"do": "ignore_signals", "signals": ["TERM", "INT"]},
            {"do": "text", "text": "half a li"},
            {"do": "die", "signal": name},
        ]))
        .play();
        assert_eq!((played.code(), played.signal()), (None, Some(number)), "{name}");
        assert_eq!(played.stdout(), "half a li");
    }
}

#[test]
fn an_ignored_signal_changes_nothing() {
    let scene = Scene::new(json!([
        {"do": "ignore_signals", "signals": ["TERM", "INT"]},
        {"do": "line", "text": "ready"},
        {"do": "read_stdin"},
        {"do": "exit", "code": 7},
    ]));
    let mut child = scene.start();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    send("TERM", child.id());
    send("INT", child.id());
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

#[test]
fn a_signal_can_be_answered_with_words_and_an_exit_code() {
    let scene = Scene::new(json!([
        {"do": "on_signal", "signal": "TERM", "print": "bye\n", "after_ms": 1, "exit": 143},
        {"do": "line", "text": "ready"},
        {"do": "hang"},
    ]));
    let mut child = scene.start();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    send("TERM", child.id());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "bye\n");
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn a_hanging_script_dies_by_a_signal_it_did_not_mention() {
    let scene = Scene::new(json!([{"do": "line", "text": "ready"}, {"do": "hang"}]));
    let mut child = scene.start();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    send("INT", child.id());
    assert_eq!(child.wait().unwrap().signal(), Some(2));
}

#[test]
fn a_closed_stdout_ends_while_the_script_goes_on() {
    let scene = Scene::new(json!([
        {"do": "line", "text": "last words"},
        {"do": "close", "stream": "stdout"},
        {"do": "line", "text": "unheard"},
        {"do": "wait_for", "path": "go"},
        {"do": "exit", "code": 5},
    ]));
    let mut child = scene.start();
    let mut all = String::new();
    child.stdout.take().unwrap().read_to_string(&mut all).unwrap();
    assert_eq!(all, "last words\n");
    assert_eq!(child.try_wait().unwrap(), None);
    touch(&scene.path("go"));
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn a_reader_that_goes_away_ends_a_flood() {
    let scene = Scene::new(json!([{"do": "flood", "bytes": 1_000_000_000_u64}]));
    let mut child = scene.start();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(74));
}

#[test]
fn a_plain_child_stays_in_the_group_and_outlives_the_script() {
    let scene = Scene::new(json!([
        {"do": "spawn", "kind": "child", "sleep_s": 600, "pid_file": "pid", "output": "null"},
    ]));
    // The pipes end although the child lives on, for it holds neither.
    assert_eq!(scene.play().code(), Some(0));
    let pid = scene.pid("pid");
    let [group, session] = [stat(pid)[2].clone(), stat(pid)[3].clone()];
    let own = stat(std::process::id());
    send("KILL", pid);
    assert_eq!([group, session], [own[2].clone(), own[3].clone()]);
}

#[test]
fn a_child_in_its_own_session_holds_stdout() {
    let scene = Scene::new(json!([
        {"do": "spawn", "kind": "own_session", "sleep_s": 600, "pid_file": "pid"},
        {"do": "line", "text": "done"},
    ]));
    let mut child = scene.start();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(child.wait().unwrap().success());
    let pid = scene.pid("pid");
    let session = stat(pid)[3].clone();
    let held = std::fs::read_link(format!("/proc/{pid}/fd/1")).unwrap();
    send("KILL", pid);
    assert_eq!(session, pid.to_string());
    assert!(held.to_string_lossy().starts_with("pipe:"), "{held:?}");
    // Only now, with its last holder gone, does the pipe end.
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "done\n");
}

#[test]
fn a_daemon_has_another_parent_and_no_environment() {
    let scene = Scene::new(json!([
        {"do": "spawn", "kind": "daemon", "sleep_s": 600, "pid_file": "pid", "output": "null"},
        {"do": "report", "path": "call.json"},
    ]));
    let mut command = scene.command();
    command.env("OSTLER_MARK", "x");
    assert_eq!(super::play(command, "").code(), Some(0));
    assert_eq!(scene.json("call.json")["env"]["OSTLER_MARK"], "x");
    let pid = scene.pid("pid");
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let [parent, session] = [stat(pid)[1].clone(), stat(pid)[3].clone()];
    send("KILL", pid);
    assert_eq!(environment, b"");
    assert_ne!(parent, scene.json("call.json")["pid"].to_string());
    assert_ne!(session, stat(std::process::id())[3]);
}
