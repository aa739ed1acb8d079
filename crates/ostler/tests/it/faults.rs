//! A CLI that misbehaves: played by the scripted agent, survived by the program.

use serde_json::{Value, json};

use crate::support::{Events, Outcome, Place};

/// The lines of a short, good Codex turn.
const THREAD: &str =
    r#"{"type":"thread.started","thread_id":"01a1e088-9109-7530-b2ac-e9fa07582dea"}"#;
const ANSWER: &str =
    r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"fine"}}"#;
const DONE: &str = r#"{"type":"turn.completed","usage":{"input_tokens":5,"cached_input_tokens":1,"output_tokens":2}}"#;

fn line(text: &str) -> Value {
    json!({ "do": "line", "text": text })
}

/// Runs a Codex turn whose CLI plays these steps.
fn play(place: &Place, steps: &[Value], args: &[&str]) -> Outcome {
    let program = place.script(&Value::Array(steps.to_vec()));
    let mut all = vec!["run", "--agent", "codex", "--bin", program.to_str().unwrap()];
    all.extend(["--permissions", "bypass", "--timeout", "60s"]);
    all.extend(if args.is_empty() { &["--output", "stream-json"] } else { args });
    all.push("hi");
    place.run(&all)
}

/// Plays steps that must come out as the good answer.
fn answers(steps: &[Value]) -> Events {
    let place = Place::new();
    let outcome = play(&place, steps, &[]);
    let events = outcome.events();
    assert_eq!(outcome.code, Some(0), "{}", events.last());
    assert_eq!(events.last()["response_text"], "fine");
    assert!(place.is_swept());
    events
}

/// Plays steps that must fail, and returns the end.
fn fails(steps: &[Value], code: i32, kind: &str) -> Value {
    let place = Place::new();
    let outcome = play(&place, steps, &[]);
    let last = outcome.events().last().clone();
    assert_eq!((outcome.code, &last["error"]["kind"]), (Some(code), &kind.into()), "{last}");
    assert!(place.is_swept());
    last
}

#[test]
fn banners_blank_lines_and_unknown_events_are_kept_as_unknown() {
    let events = answers(&[
        json!({ "do": "banner", "lines": ["*** Welcome ***", ""] }),
        line(THREAD),
        line(r#"{"type":"brand.new","x":1}"#),
        line(ANSWER),
        line(DONE),
    ]);
    let unknown: Vec<_> = events.of_type("unknown").map(|e| e["text"].as_str().unwrap()).collect();
    assert_eq!(unknown, ["*** Welcome ***", r#"{"type":"brand.new","x":1}"#]);
}

#[test]
fn lines_in_pieces_and_a_last_line_without_its_end_are_read() {
    let (start, rest) = ANSWER.split_at(30);
    answers(&[
        line(THREAD),
        json!({ "do": "text", "text": start }),
        json!({ "do": "delay", "ms": 20 }),
        line(rest),
        json!({ "do": "text", "text": DONE }),
    ]);
}

#[test]
fn a_character_cut_between_two_writes_arrives_whole() {
    let place = Place::new();
    let (before, after) = ANSWER.split_once("fine").unwrap();
    let steps = [
        line(THREAD),
        json!({ "do": "text", "text": before }),
        json!({ "do": "bytes", "hex": "f0 9f" }),
        json!({ "do": "delay", "ms": 20 }),
        json!({ "do": "bytes", "hex": "90 8e" }),
        line(after),
        line(DONE),
    ];
    let events = play(&place, &steps, &[]).events();
    assert_eq!(events.last()["response_text"], "\u{1f40e}");
}

#[test]
fn garbage_is_not_an_answer_and_not_a_crash() {
    let last = fails(&[json!({ "do": "garbage", "bytes": 200_000 })], 1, "unreadable_output");
    assert_eq!(last["response_text"], "Failed to parse CLI output");
    let last = fails(&[], 1, "unreadable_output");
    assert_eq!(last["response_text"], "Failed to parse CLI output");
}

#[test]
fn a_line_of_50_mb_is_read() {
    let place = Place::new();
    let (before, after) = ANSWER.split_once("fine").unwrap();
    let huge = json!({ "do": "huge_line", "bytes": 50_000_000, "prefix": before, "suffix": after });
    let outcome = play(&place, &[line(THREAD), huge, line(DONE)], &["--output", "json"]);
    let object = outcome.json();
    assert_eq!((outcome.code, &object["truncated"]), (Some(0), &true.into()));
    assert_eq!(object["response_text"].as_str().unwrap().len(), 16 * 1024 * 1024);
}

#[test]
fn a_line_beyond_64_mib_becomes_one_unknown_and_the_turn_goes_on() {
    let events = answers(&[
        line(THREAD),
        json!({ "do": "huge_line", "bytes": 70_000_000, "prefix": "{\"type\":\"" }),
        line(ANSWER),
        line(DONE),
    ]);
    let unknown: Vec<_> = events.of_type("unknown").collect();
    assert_eq!(unknown.len(), 1);
    assert!(unknown[0]["text"].as_str().unwrap().len() < 1_000_000);
}

#[test]
fn a_flood_on_standard_error_does_not_block_the_answer() {
    let events = answers(&[
        json!({ "do": "flood", "bytes": 3_000_000, "line_bytes": 1000, "to": "stderr" }),
        line(THREAD),
        line(ANSWER),
        line(DONE),
    ]);
    assert_eq!(events.of_type("unknown").filter(|e| e["stream"] == "stderr").count(), 3000);
}

#[test]
fn a_non_zero_exit_shows_standard_error_word_for_word() {
    let last =
        fails(&[json!({ "do": "exit", "code": 7, "stderr": "boom: é\nsecond" })], 1, "crashed");
    assert_eq!(last["response_text"], "Codex CLI error (exit 7): boom: é\nsecond\n");
    assert_eq!(last["exit_code"], 7);
    let last = fails(&[json!({ "do": "exit", "code": 9 })], 1, "crashed");
    assert_eq!(last["response_text"], "Codex CLI error (exit 9): unknown error");
}

#[test]
fn a_non_zero_exit_after_the_answer_is_still_an_error() {
    let steps = [line(THREAD), line(ANSWER), line(DONE), json!({ "do": "exit", "code": 5 })];
    let last = fails(&steps, 1, "crashed");
    assert_eq!(last["response_text"], "Codex CLI error (exit 5): unknown error");
}

#[test]
fn death_by_signal_counts_as_128_and_the_signal() {
    let last = fails(&[line(THREAD), json!({ "do": "die", "signal": "KILL" })], 1, "crashed");
    assert_eq!(
        (&last["exit_code"], &last["response_text"]),
        (&137.into(), &"Codex CLI error (exit 137): unknown error".into())
    );
    assert_eq!(last["session_id"], "01a1e088-9109-7530-b2ac-e9fa07582dea");
}

#[test]
fn a_process_that_lives_on_after_its_answer_is_ended_and_that_is_no_error() {
    answers(&[line(THREAD), line(ANSWER), line(DONE), json!({ "do": "hang" })]);
}

#[test]
fn a_process_that_lives_on_and_ignores_every_signal_is_ended_too() {
    answers(&[
        json!({ "do": "ignore_signals", "signals": ["TERM", "INT"] }),
        line(THREAD),
        line(ANSWER),
        line(DONE),
        json!({ "do": "hang" }),
    ]);
}

#[test]
fn a_child_in_its_own_session_that_holds_the_output_does_not_delay_the_end() {
    let place = Place::new();
    let pid_file = place.path("pid");
    let spawn = json!({
        "do": "spawn", "kind": "own_session", "sleep_s": 600, "pid_file": pid_file, "output": "inherit",
    });
    let outcome = play(&place, &[spawn, line(THREAD), line(ANSWER), line(DONE)], &[]);
    assert_eq!(outcome.code, Some(0));
    let pid = std::fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
    assert!(!crate::support::is_live(pid), "the child outlived the turn");
}

#[test]
fn standard_input_that_nobody_reads_does_not_block() {
    let place = Place::new();
    let program = place.script(&json!([line(THREAD), line(ANSWER), line(DONE)]));
    let args = ["run", "--agent", "codex", "--bin", program.to_str().unwrap(), "--output", "json"];
    let outcome = place.run_with_input(&args, "x".repeat(900_000).as_bytes());
    assert_eq!(outcome.json()["response_text"], "fine");
}

#[test]
fn one_line_with_very_many_events_loses_none_of_them() {
    let place = Place::new();
    let text =
        json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": "x" }] } });
    let mut lines = vec![text; 20_000];
    for (line, number) in lines.iter_mut().zip(0..) {
        line["message"]["id"] = format!("msg_{number}").into();
    }
    lines.push(json!({ "type": "result", "is_error": false, "result": "done", "session_id": "s" }));
    let program = place.script(&json!([{ "do": "json", "value": lines }]));
    let args = ["run", "--bin", program.to_str().unwrap(), "--output", "stream-json", "hi"];
    let outcome = place.run(&args);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(outcome.events().of_type("output").count(), 20_000);
}

#[test]
fn an_answer_that_cannot_be_printed_is_no_success() {
    let place = Place::new();
    let program = place.script(&json!([line(THREAD), line(ANSWER), line(DONE)]));
    for output in ["text", "json"] {
        let bin = program.to_str().unwrap();
        let mut command =
            place.ostler(&["run", "--agent", "codex", "--bin", bin, "--output", output, "hi"]);
        command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
        let mut child = command.spawn().unwrap();
        let status = crate::support::until("it ends", || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(1), "{output}");
    }
}

#[test]
fn a_full_disk_in_the_run_folder_is_told_and_nothing_is_started() {
    let place = Place::new();
    let program = place.script(&json!([line(THREAD), line(ANSWER), line(DONE)]));
    let mount = place.path("full");
    std::fs::create_dir(&mount).unwrap();
    // A file system of one page: the run folder fits, the system prompt does not.
    let shell =
        format!("mount -t tmpfs -o size=4k none {mount} && exec \"$@\"", mount = mount.display());
    let mut args =
        vec!["--map-root-user", "--mount", "sh", "-c", &shell, "sh", env!("CARGO_BIN_EXE_ostler")];
    let system = "x".repeat(100_000);
    args.extend(["run", "--agent", "claude", "--bin", program.to_str().unwrap()]);
    args.extend(["--system", &system, "--output", "json", "hi"]);
    let mut command = std::process::Command::new("unshare");
    command
        .args(&args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", place.path("home"))
        .env("OSTLER_DATA_DIR", place.path("data"))
        .env("TMPDIR", &mount)
        .current_dir(place.work())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let outcome = Outcome::of_input(command, None);
    assert_eq!(outcome.code, Some(3), "{}{}", outcome.stdout, outcome.stderr);
    let object = outcome.json();
    assert_eq!(object["error"]["kind"], "spawn_failed");
    let text = object["response_text"].as_str().unwrap();
    assert!(text.contains("No space left on device"), "{text}");
}
