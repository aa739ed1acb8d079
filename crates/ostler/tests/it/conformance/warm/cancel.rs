//! Stopping a turn of an agent that goes on afterwards.

use ostler_sim::model;

use super::{for_every_own_agent, for_every_warm_agent, leaders, processes, until_all_gone};
use crate::{
    conformance::{
        Facts,
        cancel::{LIMITS, unique_seconds},
        rig::Rig,
    },
    support::{processes_with, signal, until},
};

for_every_warm_agent! {
    cancel_in_the_middle_of_a_text_leaves_the_session_usable
    cancel_in_the_middle_of_a_tool_leaves_it_dead_and_the_session_usable
    cancelling_the_very_first_moment_is_harmless
    a_timeout_in_the_middle_of_a_tool_leaves_nothing_of_it
    a_process_that_dies_in_a_turn_fails_it_at_once_and_is_replaced
    a_process_that_dies_between_turns_is_replaced
    sigkill_of_ostler_in_the_middle_of_a_tool_leaves_nothing_running
    a_signal_ends_the_turn_and_the_conversation
}

for_every_own_agent! {
    cancel_in_the_middle_of_a_text_leaves_the_session_usable
    cancelling_the_very_first_moment_is_harmless
    a_process_that_dies_in_a_turn_fails_it_at_once_and_is_replaced
    a_process_that_dies_between_turns_is_replaced
    a_signal_ends_the_turn_and_the_conversation
}

fn cancel_in_the_middle_of_a_text_leaves_the_session_usable(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    chat.answer_to("hello");
    let before = leaders(&rig);
    for _ in 0..2 {
        chat.prompt("sim:slow=60000");
        chat.wait_for(|event| event["type"] == "output");
        chat.cancel();
        let events = chat.finish();
        let last = events.last();
        assert_eq!(
            (&last["error"]["kind"], &last["stop_reason"]),
            (&"cancelled".into(), &"cancelled".into())
        );
        assert_eq!(chat.answer_to("hello"), model::HELLO);
    }
    assert_eq!(leaders(&rig), before, "the process was replaced");
    assert_remembered(&chat.answer_to("sim:history"), "hello");
    chat.end();
}

fn cancel_in_the_middle_of_a_tool_leaves_it_dead_and_the_session_usable(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    chat.answer_to("hello");
    let before = leaders(&rig);
    let seconds = unique_seconds().to_string();
    chat.prompt(&format!("sim:sleep-tool={seconds}"));
    chat.wait_for(|event| event["type"] == "tool_use");
    let sleep = format!("sleep\0{seconds}");
    until("the tool runs", || (!processes_with(&sleep).is_empty()).then_some(()));
    chat.cancel();
    assert_eq!(chat.finish().last()["error"]["kind"], "cancelled");
    until("the tool is gone", || processes_with(&sleep).is_empty().then_some(()));
    assert_eq!(chat.answer_to("hello"), model::HELLO);
    assert_eq!(leaders(&rig), before, "the process was replaced, or something is left");
    chat.end();
    until_all_gone(&rig);
}

fn cancelling_the_very_first_moment_is_harmless(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    chat.prompt("sim:slow=60000");
    chat.cancel();
    assert_eq!(chat.finish().last()["error"]["kind"], "cancelled");
    assert_eq!(chat.answer_to("hello"), model::HELLO);
    chat.end();
}

fn a_timeout_in_the_middle_of_a_tool_leaves_nothing_of_it(facts: &'static Facts) {
    for limit in LIMITS {
        let Some(rig) = Rig::new(facts) else { return };
        let mut chat = rig.chat(&["--timeout", limit]);
        if chat.ask("hello").last()["error"]["kind"] == "timeout" {
            // It did not even start in time.
            continue;
        }
        let seconds = unique_seconds().to_string();
        let events = chat.ask(&format!("sim:sleep-tool={seconds}"));
        let last = events.last();
        assert_eq!(
            (&last["error"]["kind"], &last["response_text"]),
            (&"timeout".into(), &"Query timed out".into())
        );
        let sleep = format!("sleep\0{seconds}");
        until("the tool is gone", || processes_with(&sleep).is_empty().then_some(()));
        if events.of_type("tool_use").count() == 0 {
            continue;
        }
        assert_eq!(chat.answer_to("hello"), model::HELLO);
        return chat.end();
    }
    panic!("the tool never ran");
}

fn kill_all(pids: &[u32]) {
    for pid in pids {
        signal(*pid, "KILL");
    }
}

fn a_process_that_dies_in_a_turn_fails_it_at_once_and_is_replaced(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    chat.answer_to("My name is Ada.");
    chat.prompt("sim:slow=60000");
    chat.wait_for(|event| event["type"] == "output");
    kill_all(&leaders(&rig));
    let events = chat.finish();
    let last = events.last();
    assert_eq!(last["error"]["kind"], "crashed", "{last}");
    assert_eq!(last["error"]["retryable"], true);
    let built_in = ostler_core::agent::find(facts.agent);
    let title = built_in.map_or(facts.agent, |spec| &*spec.title);
    let text = last["response_text"].as_str().unwrap();
    assert!(text.starts_with(&format!("{title} CLI error (exit 137): ")), "{text}");
    assert_remembered(&chat.answer_to("sim:history"), "My name is Ada.");
    chat.end();
}

/// Asserts that the model had this as the first prompt; some agents put the time before it.
fn assert_remembered(text: &str, first: &str) {
    let (_, told) = text.split_once("the first was: ").unwrap_or_else(|| panic!("{text}"));
    assert!(told.ends_with(first), "{text}");
}

fn a_process_that_dies_between_turns_is_replaced(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    chat.answer_to("My name is Ada.");
    kill_all(&leaders(&rig));
    until("they are gone", || processes(&rig).is_empty().then_some(()));
    // Its keeper has told by now, or is about to: a turn that comes between
    // fails as one whose process died in it, and may be tried again.
    let first = chat.ask("sim:history");
    let again = if first.last()["is_error"] == true {
        assert_eq!(first.last()["error"]["kind"], "crashed", "{}", first.last());
        chat.ask("sim:history")
    } else {
        first
    };
    let text = again.last()["response_text"].as_str().unwrap().to_owned();
    assert_remembered(&text, "My name is Ada.");
    chat.end();
}

fn sigkill_of_ostler_in_the_middle_of_a_tool_leaves_nothing_running(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    let seconds = unique_seconds().to_string();
    chat.prompt(&format!("sim:sleep-tool={seconds}"));
    chat.wait_for(|event| event["type"] == "tool_use");
    let sleep = format!("sleep\0{seconds}");
    until("the tool runs", || (!processes_with(&sleep).is_empty()).then_some(()));
    chat.signal("KILL");
    assert_eq!(chat.wait(), None);
    until("the tool is gone", || processes_with(&sleep).is_empty().then_some(()));
    until_all_gone(&rig);
}

fn a_signal_ends_the_turn_and_the_conversation(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    chat.prompt("sim:slow=60000");
    chat.wait_for(|event| event["type"] == "output");
    chat.signal("INT");
    assert_eq!(chat.finish().last()["error"]["kind"], "cancelled");
    assert_eq!(chat.wait(), Some(130));
    until_all_gone(&rig);
    rig.assert_clean();
}
