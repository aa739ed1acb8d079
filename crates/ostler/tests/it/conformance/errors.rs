//! Every way to fail has its kind, its exit code, and comes within 20 seconds.

use super::{CutAnswer, Facts, Refusal, for_every_agent, rig::Rig};
use crate::support::Events;

for_every_agent! {
    a_wrong_key_is_auth
    a_rate_limit_is_rate_limited_and_retryable
    a_rate_limit_that_lasts_is_not_waited_for
    a_server_error_is_unavailable
    an_overloaded_model_is_overloaded
    a_refused_connection_is_unavailable
    a_bad_request_is_invalid
    an_exhausted_account_is_quota
    a_prompt_that_does_not_fit_is_context_too_long
    a_stream_that_breaks_off_is_unavailable
    an_error_once_is_tried_again_and_told_as_a_status
    a_declined_answer_is_told
    an_answer_cut_at_its_length_limit_says_so
    a_silent_model_ends_in_a_timeout
}

/// Far above the 20 seconds within which an error surfaces on a quiet machine,
/// and far below what the CLIs would take if they were left alone.
const LONG: &str = "50s";

/// Asserts the kind, and that the error came by itself and not by the timeout.
fn fails(rig: &Rig, prompt: &str, kind: &str) -> Events {
    let (code, events) = rig.ask(prompt, &["--timeout", LONG]);
    let last = events.last();
    assert_eq!(last["error"]["kind"], kind, "{last}");
    assert_eq!((code, &last["is_error"]), (Some(1), &true.into()));
    let text = last["response_text"].as_str().unwrap();
    let exit = last["exit_code"].as_i64().unwrap();
    let title = &ostler_core::agent::find(rig.facts.agent).unwrap().title;
    // Pi ends with 0 whatever happened, and a turn that Ostler gave up has no exit of its own.
    if text.contains("CLI error") {
        assert!(text.starts_with(&format!("{title} CLI error (exit {exit}): ")), "{text}");
    } else {
        assert_eq!(last["response_text"], last["error"]["message"]);
    }
    rig.assert_clean();
    events
}

fn a_wrong_key_is_auth(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let rig = rig.with_key("wrong-key");
    let events = fails(&rig, "hello", "auth");
    assert_eq!(events.last()["error"]["retryable"], false);
    assert!(rig.model.requests().iter().all(|request| request.status >= 400));
}

fn a_rate_limit_is_rate_limited_and_retryable(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let events = fails(&rig, "sim:429", "rate_limited");
    assert_eq!(events.last()["error"]["retryable"], true);
}

fn a_rate_limit_that_lasts_is_not_waited_for(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (code, events) = rig.ask("sim:429=60", &["--timeout", LONG]);
    assert_eq!((code, &events.last()["error"]["kind"]), (Some(1), &"rate_limited".into()));
}

fn a_server_error_is_unavailable(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    fails(&rig, "sim:500", "unavailable");
}

fn an_overloaded_model_is_overloaded(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    fails(&rig, if facts.agent == "claude" { "sim:529" } else { "sim:503" }, "overloaded");
}

fn a_refused_connection_is_unavailable(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let rig = rig.unreachable();
    fails(&rig, "hello", "unavailable");
    assert!(rig.model.requests().is_empty());
}

fn a_bad_request_is_invalid(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    fails(&rig, "sim:400", "invalid_request");
    fails(&rig, "sim:404", "invalid_request");
}

fn an_exhausted_account_is_quota(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    fails(&rig, "sim:quota", "quota");
}

fn a_prompt_that_does_not_fit_is_context_too_long(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    fails(&rig, "sim:context", "context_too_long");
}

fn a_stream_that_breaks_off_is_unavailable(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    fails(&rig, "sim:cut", "unavailable");
}

fn an_error_once_is_tried_again_and_told_as_a_status(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (code, events) = rig.ask("sim:once-500", &["--timeout", LONG]);
    assert_eq!(code, Some(0), "{}", events.last());
    let told = events.statuses("retry").len();
    assert_eq!(told > 0, facts.tells_retries, "{:?}", events.types());
    assert!(rig.model.requests().len() > 1);
}

fn a_declined_answer_is_told(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (code, events) = rig.ask("sim:refusal", &["--timeout", LONG]);
    let last = events.last();
    match facts.refusal {
        Refusal::Error => {
            assert_eq!(last["error"]["kind"], "refused", "{last}");
            assert_eq!((code, &last["stop_reason"]), (Some(1), &"refusal".into()));
        }
        Refusal::EmptyAnswer => {
            assert_eq!((code, &last["response_text"]), (Some(0), &"".into()), "{last}");
        }
        Refusal::Text => {
            assert_eq!(code, Some(0), "{last}");
            assert!(last["response_text"].as_str().unwrap().contains("can't help"), "{last}");
        }
    }
}

fn an_answer_cut_at_its_length_limit_says_so(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    if facts.cut_answer == CutAnswer::Error {
        let events = fails(&rig, "sim:length", "limit_reached");
        assert_eq!(events.last()["stop_reason"], "max_tokens", "{}", events.last());
        return;
    }
    let (code, events) = rig.ask("sim:length", &[]);
    assert_eq!(code, Some(0), "{}", events.last());
    let is_told = events.last()["stop_reason"] == "max_tokens";
    assert_eq!(is_told, facts.cut_answer == CutAnswer::StopReason, "{}", events.last());
}

fn a_silent_model_ends_in_a_timeout(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (code, events) = rig.ask("sim:silence", &["--timeout", "5s"]);
    let last = events.last();
    assert_eq!((code, &last["error"]["kind"]), (Some(124), &"timeout".into()));
    assert_eq!(last["response_text"], "Query timed out");
    let (code, events) = rig.ask("sim:stall", &["--idle-timeout", "6s"]);
    assert_eq!((code, &events.last()["error"]["kind"]), (Some(124), &"timeout".into()));
    rig.assert_clean();
}
