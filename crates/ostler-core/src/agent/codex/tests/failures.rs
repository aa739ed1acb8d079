//! What counts as which failure, and when retries are given up.

use super::{
    reading::{MESSAGE, STARTED, turn},
    *,
};
use crate::{agent::TimerKey, event::StopReason, request::Format};

/// Feeds lines, then lets the timer of that number ring.
fn ring(format: Format, from: Stream, lines: &[&str], timer: u32) -> Vec<Action> {
    let mut options = Options::new("/workspace");
    options.format = format;
    let mut dialect = (SPEC.dialect)(&launch_of(&SPEC, &options, &Open::New, "hi"));
    let mut out = Vec::new();
    for line in lines {
        let input = Input::Line { from, bytes: line.as_bytes(), cut: false };
        dialect.step(at_second(0), input, &mut out);
    }
    dialect.step(at_second(0), Input::Timer(TimerKey(timer)), &mut out);
    out
}

const NOTICE: &str = r#"{"type":"error","message":"Reconnecting... waiting for network (Connection failed: error sending request)"}"#;

#[test]
fn retries_that_go_on_for_too_long_are_given_up() {
    let out = ring(Format::StreamJson, Stream::Stdout, &[STARTED, NOTICE, NOTICE], 1);
    assert_eq!(failure_of(&out), ("unavailable", "Connection failed: error sending request"));
    assert!(matches!(out.last(), Some(Action::Stop)));
}

#[test]
fn a_rate_limit_that_is_waited_for_in_silence_is_told_as_what_it_is() {
    let notice = r#"{"type":"error","message":"Reconnecting... 1/2 (unexpected status 429 Too Many Requests: slow down, url: u)"}"#;
    let out = ring(Format::StreamJson, Stream::Stdout, &[STARTED, notice], 1);
    assert_eq!(failure_of(&out).0, "rate_limited");
}

#[test]
fn plain_text_has_the_same_patience() {
    let lines = ["--------", "--------", "ERROR: Reconnecting... 1/5 (timed out)"];
    let out = ring(Format::Text, Stream::Stderr, &lines, 1);
    assert_eq!(failure_of(&out), ("unavailable", "timed out"));
}

#[test]
fn progress_between_retries_renews_the_patience() {
    let out = ring(Format::StreamJson, Stream::Stdout, &[STARTED, NOTICE, MESSAGE, NOTICE], 1);
    assert_eq!(play::n_ends(&out), 0, "the first timer no longer counts");
    let out = ring(Format::StreamJson, Stream::Stdout, &[STARTED, NOTICE, MESSAGE, NOTICE], 2);
    assert_eq!(play::n_ends(&out), 1);
}

#[test]
fn messages_are_classified_by_what_they_say() {
    let cases = [
        ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limited"),
        ("unexpected status 529 <unknown status code>: x, url: u", "overloaded"),
        ("unexpected status 503 Service Unavailable: x, url: u", "overloaded"),
        ("unexpected status 402 Payment Required: x", "quota"),
        ("Selected model is at capacity. Please try a different model.", "overloaded"),
        ("We’re currently experiencing high demand, which may cause", "unavailable"),
        ("You've hit your usage limit. Upgrade to Plus or try again at 3 PM.", "quota"),
        ("Your workspace is out of credits. Add credits to continue.", "quota"),
        ("The model `x` does not exist or you do not have access to it.", "invalid_request"),
        ("Missing environment variable: `NOPE_KEY`.", "auth"),
        ("stream disconnected before completion: idle timeout waiting for SSE", "unavailable"),
        (r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#, "context_too_long"),
        (r#"{"error":{"message":"m"}}"#, "invalid_request"),
        ("a word never heard before", "invalid_request"),
        ("internal error; agent loop died unexpectedly", "crashed"),
    ];
    for (message, kind) in cases {
        let message = serde_json::to_string(message).unwrap();
        let failed = format!(r#"{{"type":"turn.failed","error":{{"message":{message}}}}}"#);
        let actions = play_new(&turn(&[STARTED, &failed]), exit(1, ""));
        assert_eq!(failure_of(&actions).0, kind, "{message}");
        assert_eq!(end_of(&actions).stop_reason, Some(StopReason::Error));
    }
}

#[test]
fn unknown_words_count_as_passing_only_when_the_cli_tried_again() {
    let notice = r#"{"type":"error","message":"Reconnecting... 1/5 (a word never heard before)"}"#;
    let failed = r#"{"type":"turn.failed","error":{"message":"a word never heard before"}}"#;
    let actions = play_new(&turn(&[STARTED, notice, failed]), exit(1, ""));
    assert_eq!(failure_of(&actions).0, "unavailable");
    let actions = play_new(STARTED, exit(1, "a word never heard before"));
    assert_eq!(failure_of(&actions), ("crashed", "a word never heard before"));
}

#[test]
fn the_time_to_wait_is_read_from_the_words() {
    for (words, millis) in [
        ("rate limit exceeded: Please try again in 7.5s.", Some(7500)),
        ("rate limit: try again in 1h2m3s.", Some(3_723_000)),
        ("rate limit: try again in 512ms or so", Some(512)),
        ("rate limit: try again in 2 days 3 minutes", Some(172_980_000)),
        ("rate limit: try again in a while", None),
        ("rate limit: try again in 99999999999999999999999999s", None),
        ("rate limit: try again in ..", None),
        ("rate limit", None),
    ] {
        let failed = format!(r#"{{"type":"turn.failed","error":{{"message":"{words}"}}}}"#);
        let actions = play_new(&failed, exit(1, ""));
        let wait = end_of(&actions).failure.as_ref().unwrap().retry_after;
        assert_eq!(wait.map(|wait| wait.as_millis()), millis, "{words}");
    }
}

#[test]
fn death_without_a_word_is_a_crash_that_says_how() {
    let killed = Exit { code: None, signal: Some(9), stderr: String::new() };
    let actions = play_new(STARTED, killed);
    assert_eq!(failure_of(&actions), ("crashed", "the process was ended by signal 9"));
    let actions = play_new("", exit(7, ""));
    assert_eq!(failure_of(&actions), ("crashed", "the process ended with exit code 7"));
}
