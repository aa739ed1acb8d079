//! Every way to fail has its kind, and the conversation goes on after it.

use ostler_sim::model;

use super::{for_every_own_agent, for_every_warm_agent};
use crate::conformance::{Facts, rig::Rig};

for_every_warm_agent! {
    errors_of_the_provider_have_their_kinds_and_the_session_goes_on
    a_prompt_that_is_too_long_is_told_as_such_and_the_session_goes_on
    a_wrong_key_is_auth
    a_refused_connection_is_unavailable
    a_stream_that_breaks_off_is_unavailable
    a_silent_model_ends_in_a_timeout_and_the_session_goes_on
}

for_every_own_agent! {
    a_wrong_key_is_auth
}

/// As for a turn with a process of its own.
const LONG: &str = "50s";

fn fails(rig: &Rig, prompts: &[(&str, &str)], goes_on: bool) {
    let mut chat = rig.chat(&["--timeout", LONG]);
    for (prompt, kind) in prompts {
        let events = chat.ask(prompt);
        let last = events.last();
        assert_eq!(last["error"]["kind"], *kind, "{prompt}: {last}");
        assert_eq!(last["response_text"], last["error"]["message"]);
    }
    if goes_on {
        assert_eq!(chat.answer_to("hello"), model::HELLO);
    }
    chat.end();
}

fn errors_of_the_provider_have_their_kinds_and_the_session_goes_on(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let overloaded = if facts.agent == "claude" { "sim:529" } else { "sim:503" };
    let prompts = [
        ("sim:429", "rate_limited"),
        ("sim:500", "unavailable"),
        (overloaded, "overloaded"),
        ("sim:400", "invalid_request"),
        ("sim:quota", "quota"),
    ];
    fails(&rig, &prompts, true);
}

/// In a conversation of its own: an agent that shortens its history first shows
/// the model the prompts before, which would mean something to it.
fn a_prompt_that_is_too_long_is_told_as_such_and_the_session_goes_on(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&["--timeout", LONG]);
    chat.answer_to("hello");
    let events = chat.ask("sim:context");
    let last = events.last();
    assert_eq!(last["error"]["kind"], "context_too_long", "{last}");
    assert_eq!(!events.statuses("compacted").is_empty(), facts.kept.shortens_history, "{last}");
    assert_eq!(chat.answer_to("hello"), model::HELLO);
    chat.end();
}

fn a_wrong_key_is_auth(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    fails(&rig.with_key("wrong-key"), &[("hello", "auth")], false);
}

fn a_refused_connection_is_unavailable(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    fails(&rig.unreachable(), &[("hello", "unavailable")], false);
}

fn a_stream_that_breaks_off_is_unavailable(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    fails(&rig, &[("sim:cut", "unavailable")], true);
}

fn a_silent_model_ends_in_a_timeout_and_the_session_goes_on(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&["--timeout", "30s", "--idle-timeout", "5s"]);
    let events = chat.ask("sim:silence");
    let last = events.last();
    assert_eq!(
        (&last["error"]["kind"], &last["response_text"]),
        (&"timeout".into(), &"Query timed out".into())
    );
    assert_eq!(chat.answer_to("hello"), model::HELLO);
    chat.end();
}
