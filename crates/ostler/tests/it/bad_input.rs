//! Wrong use gets a clear message, the right exit code, and starts nothing.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::support::{Outcome, Place};

const UUID: &str = "11111111-2222-4333-8444-555555555555";

/// Asserts the exit code and what standard error says.
fn check(args: &[&str], code: i32, says: &str) -> Outcome {
    let place = Place::new();
    let outcome = place.run(args);
    assert_eq!(outcome.code, Some(code), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stderr.contains(says), "{says:?} is not in: {}", outcome.stderr);
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    outcome
}

#[test]
fn a_missing_binary_names_agent_and_path() {
    check(&["run", "--bin", "/no/such/claude", "hi"], 3, "claude: program \"/no/such/claude\"");
    check(&["run", "--agent", "codex", "hi"], 3, "codex: program `codex` was not found in PATH");
}

#[test]
fn a_missing_binary_still_ends_with_the_object_of_the_contract() {
    let place = Place::new();
    let object = place.run(&["run", "--bin", "/no/such/claude", "--output", "json", "hi"]).json();
    assert_eq!(object["error"]["kind"], "spawn_failed");
    let outcome = place.run(&["run", "--bin", "/no/such/claude", "--output", "stream-json", "hi"]);
    assert_eq!(outcome.events().last()["error"]["kind"], "spawn_failed");
}

#[test]
fn a_directory_or_a_plain_file_as_binary_is_refused() {
    let place = Place::new();
    let outcome = place.run(&["run", "--bin", place.work().to_str().unwrap(), "hi"]);
    assert_eq!(outcome.code, Some(3));
    assert!(outcome.stderr.contains("is a directory"), "{}", outcome.stderr);
    let plain = place.path("plain");
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    let outcome = place.run(&["run", "--bin", plain.to_str().unwrap(), "hi"]);
    assert_eq!(outcome.code, Some(3));
    assert!(outcome.stderr.contains("is not executable"), "{}", outcome.stderr);
}

#[test]
fn an_executable_file_that_is_no_program_is_spawn_failed() {
    let place = Place::new();
    let text = place.path("text");
    fs::write(&text, "\u{7f}just some text").unwrap();
    fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
    let outcome = place.run(&["run", "--bin", text.to_str().unwrap(), "--output", "json", "hi"]);
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    assert_eq!(outcome.json()["error"]["kind"], "spawn_failed");
}

#[test]
fn an_unknown_agent_lists_the_valid_ones() {
    check(
        &["run", "--agent", "gpt", "hi"],
        2,
        "invalid agent provider \"gpt\"; valid agents: claude, codex, gemini, opencode, pi",
    );
    let place = Place::new();
    let mut command = place.ostler(&["run", "hi"]);
    command.env("AGENT_BACKEND", "");
    let outcome = Outcome::of_input(command, None);
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome.stderr.contains("valid agents: claude, codex, gemini, opencode, pi"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_missing_working_directory_is_named() {
    check(
        &["run", "--cwd", "/no/such/dir", "hi"],
        2,
        "working directory \"/no/such/dir\" does not exist",
    );
}

#[test]
fn session_ids_that_cannot_be_are_refused() {
    for id in ["has space", "", "a\tb"] {
        check(&["run", "--session", id, "hi"], 2, "invalid session id");
    }
    check(&["run", "--session=-x", "hi"], 2, "starts with a dash");
    check(&["run", "--session", "-x", "hi"], 2, "");
    let place = Place::new();
    let program = place.script(&serde_json::json!([]));
    let bin = program.to_str().unwrap();
    let outcome =
        place.run(&["run", "--agent", "codex", "--bin", bin, "--session", "my-name", "hi"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("UUID"), "{}", outcome.stderr);
}

#[test]
fn both_session_and_continue_are_refused() {
    check(&["run", "--session", UUID, "--continue", "hi"], 2, "cannot be used with");
}

#[test]
fn an_unreadable_system_file_is_named() {
    check(&["run", "--system-file", "/no/such/file", "hi"], 2, "--system-file /no/such/file");
    check(&["run", "--system-file", "/", "hi"], 2, "--system-file /");
}

#[test]
fn a_zero_timeout_is_invalid() {
    check(&["run", "--timeout", "0", "hi"], 2, "invalid timeout");
    check(&["run", "--idle-timeout", "0s", "hi"], 2, "invalid timeout");
    check(&["run", "--max-turns", "0", "hi"], 2, "0 is not in");
}

#[test]
fn invalid_utf8_on_standard_input_is_refused() {
    let place = Place::new();
    let outcome = place.run_with_input(&["run", "-"], b"caf\xe9");
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("not valid UTF-8 (at byte 3)"), "{}", outcome.stderr);
}

#[test]
fn an_empty_prompt_and_an_unknown_flag_are_refused() {
    check(&["run", ""], 2, "prompt required");
    check(&["run", "--frobnicate", "hi"], 2, "--frobnicate");
    check(&["run", "--permissions", "yolo", "hi"], 2, "read-only");
}

#[test]
fn a_model_that_looks_like_an_option_is_refused() {
    let place = Place::new();
    let program = place.script(&serde_json::json!([]));
    let outcome = place.run(&["run", "--bin", program.to_str().unwrap(), "--model=--help", "hi"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("invalid model"), "{}", outcome.stderr);
}

#[test]
fn a_prompt_beyond_the_agents_limit_is_refused_before_it_starts() {
    let place = Place::new();
    let program = place.script(&serde_json::json!([]));
    let args = ["run", "--agent", "codex", "--bin", program.to_str().unwrap()];
    let outcome = place.run_with_input(&args, &vec![b'x'; 1_100_000]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("takes at most"), "{}", outcome.stderr);
}

#[test]
fn a_transcript_that_cannot_be_written_is_refused() {
    let place = Place::new();
    let program = place.script(&serde_json::json!([]));
    let bin = program.to_str().unwrap();
    let outcome = place.run(&["run", "--bin", bin, "--transcript", "/no/such/dir/t", "hi"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("transcript"), "{}", outcome.stderr);
}
