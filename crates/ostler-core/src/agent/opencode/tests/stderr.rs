//! What standard error says, and how long failing calls are put up with.

use super::*;
use crate::agent::opencode::log::{self, Notice};

pub(super) const FAILED: &str = r#"timestamp=2026-11-15T21:40:03.950Z level=ERROR run=0d3e9bee message="stream error" providerID=stub modelID=stub-1 session.id=ses_1 small=false agent=build mode=primary error.error="AI_APICallError: The \"server\" had an error""#;

const START: &str = r#"{"type":"step_start","sessionID":"ses_1","part":{"messageID":"m1"}}"#;
const TEXT: &str =
    r#"{"type":"text","sessionID":"ses_1","part":{"id":"p1","messageID":"m1","text":"Hi."}}"#;

#[test]
fn a_log_entry_is_read_with_its_quotes_and_without_its_class_and_cause() {
    assert_eq!(
        log::read(FAILED),
        Some(Notice::ModelFailed {
            session: Some("ses_1".into()),
            model: Some("stub/stub-1".into()),
            message: "The \"server\" had an error".into(),
        })
    );
    let failed = "timestamp=x level=ERROR message=failed ref=err_1 error=\"ProviderModelNotFoundError: Model not found: a/b. (cause: Error: x)\" cause=\"long\\n story\"";
    assert_eq!(log::read(failed), Some(Notice::Failed { message: "Model not found: a/b.".into() }));
    for line in ["timestamp=x", "timestamp=x level=WARN", "hi", "! who knows", "timestamp=\"x"] {
        assert_eq!(log::read(line), None, "{line}");
    }
}

#[test]
fn calls_for_a_title_and_repeated_words_are_noise() {
    let title = FAILED.replace("small=false agent=build", "small=true agent=title");
    let process = r#"timestamp=x level=ERROR message=process error="Payment required""#;
    for line in [title.as_str(), process, "", "\u{1b}[0m"] {
        assert_eq!(log::read(line), Some(Notice::Noise), "{line}");
    }
}

#[test]
fn trap_retries_go_on_in_silence_for_80_seconds_and_are_given_up_after_three() {
    let mut feed = Feed::new(&Options::new("/w"));
    feed.err(0, FAILED).err(2, FAILED);
    assert_eq!(play::n_ends(&feed.out), 0);
    assert_eq!(sessions(&feed.out), ["ses_1"]);
    assert_eq!(statuses(&feed.out, "retry").len(), 1);
    feed.err(7, FAILED);
    assert_eq!(failure_of(&feed.out), ("unavailable", "The \"server\" had an error"));
    assert!(has_stopped(&feed.out));
    assert_eq!(end_of(&feed.out).model.as_deref(), Some("stub/stub-1"));
}

#[test]
fn an_answer_renews_the_patience() {
    let mut feed = Feed::new(&Options::new("/w"));
    feed.err(0, FAILED).out(2, START).out(3, TEXT).err(8, FAILED).err(10, FAILED);
    assert_eq!(play::n_ends(&feed.out), 0);
    assert_eq!(statuses(&feed.out, "retry").len(), 2);
}

#[test]
fn a_stream_that_begins_again_without_a_word_counts_as_a_failure() {
    let mut feed = Feed::new(&Options::new("/w"));
    feed.out(0, START).out(2, START);
    assert_eq!(statuses(&feed.out, "retry").len(), 1);
    assert_eq!(play::n_ends(&feed.out), 0);
    feed.out(7, START);
    assert_eq!(failure_of(&feed.out).0, "unavailable");
    assert!(has_stopped(&feed.out));
}

#[test]
fn a_failure_that_the_log_told_is_not_counted_again_when_its_stream_begins_again() {
    let mut feed = Feed::new(&Options::new("/w"));
    feed.out(0, START).err(1, FAILED).out(3, START);
    assert_eq!(statuses(&feed.out, "retry"), ["The \"server\" had an error"]);
}

#[test]
fn an_empty_account_is_not_asked_a_third_time() {
    let empty = FAILED.replace("The \\\"server\\\" had an error", "insufficient_quota");
    let mut feed = Feed::new(&Options::new("/w"));
    feed.err(0, &empty);
    assert_eq!(play::n_ends(&feed.out), 0);
    feed.err(2, &empty);
    assert_eq!(failure_of(&feed.out).0, "quota");
}

#[test]
fn a_sub_agents_failing_calls_are_its_own_affair() {
    let other = FAILED.replace("ses_1", "ses_2");
    let mut feed = Feed::new(&Options::new("/w"));
    feed.out(0, START).err(0, &other).err(9, &other).err(20, &other);
    assert_eq!(play::n_ends(&feed.out), 0);
    assert_eq!(sessions(&feed.out), ["ses_1"]);
}

#[test]
fn patience_ends_in_the_text_form_too() {
    let mut feed = Feed::new(&bypass(Format::Text));
    feed.err(0, FAILED).err(2, FAILED).err(7, FAILED);
    assert_eq!(failure_of(&feed.out).0, "unavailable");
}

#[test]
fn trap_an_agent_that_is_missing_must_not_be_replaced_by_one_that_may_do_everything() {
    for form in [Format::StreamJson, Format::Text] {
        let mut feed = Feed::new(&Options { format: form, ..Options::new("/w") });
        let line = "\u{1b}[93m\u{1b}[1m! \u{1b}[0m agent \"ostler\" not found. Falling back to default agent";
        feed.err(0, line);
        assert_eq!(failure_of(&feed.out).0, "invalid_request");
        assert!(has_stopped(&feed.out));
    }
}

#[test]
fn trap_an_opaque_error_has_its_reason_in_the_log() {
    assert_eq!(
        failure_of(&play_case("l-unknown-model")),
        ("invalid_request", "Model not found: stub/nope.")
    );
    assert_eq!(failure_of(&play_case("l-no-providers")), ("auth", "No providers are available"));
    assert_eq!(failure_of(&play_case("e-unknown-model-json")).0, "crashed");
}

#[test]
fn trap_two_first_starts_at_once_break_the_database_which_is_worth_another_try() {
    let actions = play_case("x-parallel-fresh-3");
    let failure = end_of(&actions).failure.as_ref().unwrap();
    assert!(failure.kind.retryable() && failure.message.starts_with("Failed query"));
}
