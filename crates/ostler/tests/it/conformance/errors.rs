//! Every way to fail has its kind, its exit code, and comes within 20 seconds.

use super::{Facts, for_every_agent, rig::Rig};
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

/// Asserts the kind, and that the error came by itself and not by the timeout.
fn fails(rig: &Rig, prompt: &str, kind: &str) -> Events {
    let (code, events) = rig.ask(prompt, &["--timeout", "20s"]);
    let last = events.last();
    assert_eq!(last["error"]["kind"], kind, "{last}");
    assert_eq!((code, &last["is_error"]), (Some(1), &true.into()));
    let name = if rig.facts.agent == "claude" { "Claude" } else { "Codex" };
    let text = last["response_text"].as_str().unwrap();
    assert!(text.starts_with(&format!("{name} CLI error (exit 1): ")), "{text}");
    rig.assert_clean();
    events
}

fn a_wrong_key_is_auth(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let rig = rig.with_key("wrong-key");
    let events = fails(&rig, "hello", "auth");
    assert_eq!(events.last()["error"]["retryable"], false);
    assert!(rig.model.requests().iter().all(|request| request.status == 401));
}

fn a_rate_limit_is_rate_limited_and_retryable(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let events = fails(&rig, "sim:429", "rate_limited");
    assert_eq!(events.last()["error"]["retryable"], true);
}

fn a_rate_limit_that_lasts_is_not_waited_for(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (code, events) = rig.ask("sim:429=60", &["--timeout", "20s"]);
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
    let (code, events) = rig.ask("sim:once-500", &["--timeout", "20s"]);
    assert_eq!(code, Some(0), "{}", events.last());
    let told = events.statuses("retry").len();
    // Codex retries a request silently and tells only of broken streams.
    assert_eq!(told > 0, facts.agent == "claude", "{:?}", events.types());
    assert!(rig.model.requests().len() > 1);
}

fn a_declined_answer_is_told(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (code, events) = rig.ask("sim:refusal", &["--timeout", "20s"]);
    if facts.refusal_is_error {
        assert_eq!(events.last()["error"]["kind"], "refused", "{}", events.last());
        assert_eq!((code, &events.last()["stop_reason"]), (Some(1), &"refusal".into()));
    } else {
        assert_eq!((code, &events.last()["response_text"]), (Some(0), &"".into()));
    }
}

fn an_answer_cut_at_its_length_limit_says_so(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let events = fails(&rig, "sim:length", "limit_reached");
    assert_eq!(events.last()["stop_reason"], "max_tokens");
}

fn a_silent_model_ends_in_a_timeout(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (code, events) = rig.ask("sim:silence", &["--timeout", "3s"]);
    let last = events.last();
    assert_eq!((code, &last["error"]["kind"]), (Some(124), &"timeout".into()));
    assert_eq!(last["response_text"], "Query timed out");
    let (code, events) = rig.ask("sim:stall", &["--idle-timeout", "3s"]);
    assert_eq!((code, &events.last()["error"]["kind"]), (Some(124), &"timeout".into()));
    rig.assert_clean();
}
