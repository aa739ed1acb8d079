//! What counts as which failure, and when retries are given up.

use serde_json::json;

use super::{
    traps::{HEADER, SETTLED, failed, message, retry, turn},
    *,
};
use crate::event::StopReason;

#[test]
fn trap_retries_that_would_last_too_long_are_given_up() {
    let options = Options::new("/workspace");
    let mut dialect = (SPEC.dialect)(&launch_of(&SPEC, &options, &Open::New, "hi"));
    let mut out = Vec::new();
    for (second, attempt, delay) in [(0, 1, 2000), (2, 2, 4000), (6, 3, 8000)] {
        dialect.step(
            at_second(second),
            stdout_line(failed("Connection error.").as_bytes()),
            &mut out,
        );
        dialect.step(at_second(second), stdout_line(retry(attempt, delay).as_bytes()), &mut out);
    }
    assert_eq!(play::n_ends(&out), 0, "the default of three retries is waited for");
    dialect.step(at_second(14), stdout_line(retry(4, 16_000).as_bytes()), &mut out);
    assert_eq!(failure_of(&out), ("unavailable", "Connection error."));
    assert!(matches!(out.last(), Some(Action::Stop)));
}

#[test]
fn an_answer_between_retries_renews_the_patience() {
    let options = Options::new("/workspace");
    let mut dialect = (SPEC.dialect)(&launch_of(&SPEC, &options, &Open::New, "hi"));
    let mut out = Vec::new();
    let tools = message("", "toolUse", &json!({}));
    for (second, line) in [(0, retry(1, 2000)), (10, tools), (20, retry(1, 2000))] {
        dialect.step(at_second(second), stdout_line(line.as_bytes()), &mut out);
    }
    assert_eq!(play::n_ends(&out), 0);
}

#[test]
fn trap_exit_0_does_not_mean_success() {
    for (name, kind, words) in [
        ("0.87.1/json-401", "auth", "stub error 401"),
        ("0.87.1/json-429", "rate_limited", "stub error 429"),
        ("0.87.1/json-500", "unavailable", "stub error 500"),
        ("0.87.1/json-529", "overloaded", "stub error 529"),
        ("0.87.1/json-400", "invalid_request", "stub error 400"),
        ("0.87.1/json-connrefused", "unavailable", "Connection error."),
        (
            "1.5.0/json-ctx",
            "context_too_long",
            "prompt is too long: 250000 tokens > 200000 maximum",
        ),
    ] {
        let recording = recorded(name);
        assert_eq!(recording.exit.code, Some(0), "{name}");
        let actions = play::play(&SPEC, &recording);
        assert_eq!(failure_of(&actions), (kind, words), "{name}");
        assert_eq!(end_of(&actions).stop_reason, Some(StopReason::Error));
    }
}

#[test]
fn trap_an_answer_cut_at_its_length_limit_and_a_refusal_are_failures() {
    for name in ["0.87.1/json-maxtok", "1.5.0/json-maxtok"] {
        let actions = play::play(&SPEC, &recorded(name));
        assert_eq!(failure_of(&actions).0, "limit_reached");
        assert_eq!(end_of(&actions).stop_reason, Some(StopReason::MaxTokens));
    }
    let actions = play::play(&SPEC, &recorded("0.87.1/json-refusal"));
    assert_eq!(failure_of(&actions), ("refused", "The model refused to complete the request"));
    assert_eq!(end_of(&actions).stop_reason, Some(StopReason::Refusal));
}

#[test]
fn trap_a_node_that_is_too_old_or_missing_is_named_as_the_reason() {
    for name in ["0.87.1/node-20", "0.87.1/node-none"] {
        let actions = play::play(&SPEC, &recorded(name));
        let (kind, words) = failure_of(&actions);
        assert_eq!(kind, "spawn_failed");
        assert!(words.starts_with("pi needs Node 22.19 or newer in PATH: "), "{words}");
    }
}

#[test]
fn messages_are_classified_by_what_they_say() {
    let cases = [
        (r#"403 {"error":{"message":"no"}}"#, "auth"),
        (r#"401: {"code":"x","message":"no"}"#, "auth"),
        (r#"503: {"code":"server_is_overloaded","message":"no"}"#, "overloaded"),
        (r#"429 {"error":{"code":"insufficient_quota","message":"pay"}}"#, "quota"),
        ("400 Your credit balance is too low to access the API", "quota"),
        ("503 no body", "overloaded"),
        (r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#, "overloaded"),
        (
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#,
            "rate_limited",
        ),
        ("413 {\"error\":{\"type\":\"request_too_large\"}}", "context_too_long"),
        ("Your input exceeds the context window of this model", "context_too_long"),
        ("Provider finish_reason: content_filter", "refused"),
        ("fetch failed", "unavailable"),
        ("Server requested 120s retry delay (max: 60s). busy", "rate_limited"),
        ("a word never heard before", "invalid_request"),
        ("", "invalid_request"),
    ];
    for (words, kind) in cases {
        let actions = play_new(&turn(&[HEADER, &failed(words), SETTLED]), exit(0, ""));
        assert_eq!(failure_of(&actions).0, kind, "{words}");
    }
    let retried =
        turn(&[HEADER, &failed("never heard"), &retry(1, 1), &failed("never heard"), SETTLED]);
    assert_eq!(failure_of(&play_new(&retried, exit(0, ""))).0, "unavailable");
}

#[test]
fn the_words_of_a_provider_are_taken_out_of_its_answer() {
    for words in [r#"401 {"error":{"message":"no"}}"#, r#"401: {"message":"no","code":null}"#] {
        let actions = play_new(&turn(&[&failed(words), SETTLED]), exit(0, ""));
        assert_eq!(failure_of(&actions), ("auth", "no"));
    }
    let odd = play_new(&turn(&[&failed("500 {broken"), SETTLED]), exit(0, ""));
    assert_eq!(failure_of(&odd), ("unavailable", "500 {broken"));
}

#[test]
fn the_time_to_wait_is_read_from_the_words() {
    for (words, millis) in [
        ("Server requested 120s retry delay (max: 60s). busy", Some(120_000)),
        (r#"429: {"message":"Please try again in 2.5s."}"#, Some(2500)),
        ("429 try again in 512ms or so", Some(512)),
        ("429 try again in 3 minutes", Some(180_000)),
        ("429 try again in a while", None),
        ("429 try again in 9..9s", None),
        ("429 try again in 99999999999999999999999999h", None),
        ("429 slow down", None),
    ] {
        let actions = play_new(&turn(&[&failed(words), SETTLED]), exit(0, ""));
        let wait = end_of(&actions).failure.as_ref().unwrap().retry_after;
        assert_eq!(wait.map(|wait| wait.as_millis()), millis, "{words}");
    }
}

#[test]
fn death_without_a_word_is_a_crash_that_says_how() {
    let killed = Exit { code: None, signal: Some(9), stderr: String::new() };
    let actions = play_new(HEADER, killed);
    assert_eq!(failure_of(&actions), ("crashed", "the process was ended by signal 9"));
    let actions = play_new("", exit(7, "Warning: x\n\n"));
    assert_eq!(failure_of(&actions), ("crashed", "the process ended with exit code 7"));
    let trace =
        "file:///x.js:1\n  boom\n    ^\nTypeError: x is not a function\n    at y\n\nNode.js v24";
    let actions = play_new("", exit(1, trace));
    assert_eq!(failure_of(&actions), ("crashed", "TypeError: x is not a function"));
    let printed = play_new("401 unauthorized", exit(1, ""));
    assert_eq!(failure_of(&printed).0, "auth");
}
