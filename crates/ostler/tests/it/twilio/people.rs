//! Several people and several messages: whose conversation it is, and what becomes of
//! messages while the agent works.

use serde_json::{Value, json};

use super::rig::{BOB, Rig};
use crate::support::until;

/// Returns how many prompts there were in the sessions of Ann, of Bob, and of Ann again
/// who call the agent in a group.
fn counted_in_group(change: impl FnOnce(&mut Value)) -> Vec<u32> {
    let rig = Rig::with(|_, settings| change(settings));
    let group = rig.group();
    let mut counted = Vec::new();
    for (number, who) in [&rig.ann, &rig.bob, &rig.ann].into_iter().enumerate() {
        let text = format!("ostler sim:history sim:echo=m{number}");
        rig.twilio.say_in_group(&group, who, &text);
        let said = rig.wait_for_said(&group, &format!("You said m{number}."));
        let (_, rest) = said.split_once("so far: ").unwrap();
        counted.push(rest.split_once('.').unwrap().0.parse().unwrap());
    }
    assert_eq!(rig.twilio.said_in(&group).len(), 3);
    counted
}

#[test]
fn in_a_group_everybody_shares_a_session_unless_each_is_to_have_one() {
    assert_eq!(counted_in_group(|_| {}), [1, 2, 3]);
    let scope = |settings: &mut Value| settings["sessions"] = json!({ "scope": "per-sender" });
    assert_eq!(counted_in_group(scope), [1, 1, 2]);
}

#[test]
fn whoever_writes_alone_has_a_session_that_nobody_else_is_in() {
    let rig = Rig::start();
    rig.ask("sim:history one");
    rig.wait_for_text(&rig.ann, "so far: 1.");
    rig.twilio.say(&rig.bob, &rig.own, "sim:history one");
    rig.wait_for_text(&rig.bob, "so far: 1.");
    // By SMS he is in a conversation of its own as well.
    rig.twilio.say(BOB, &rig.sms, "sim:history one");
    rig.wait_for_text(BOB, "so far: 1.");
}

#[test]
fn messages_that_are_combined_are_answered_together_and_once() {
    let rig = Rig::with(|_, settings| {
        settings["agent"]["permissions"] = json!("ask");
        settings["busy"] = json!("combine");
    });
    rig.ask("sim:tool sim:echo=one");
    rig.wait_for_text(&rig.ann, "Permission to run a command");
    rig.wait_until_noted();
    // The agent is at work until it is allowed to go on.
    for text in ["sim:echo=two", "sim:echo=three"] {
        let sid = rig.ask(text);
        rig.twilio.deliver_again(&sid);
    }
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "You said one.");
    let both = rig.wait_for_text(&rig.ann, "You said three.").body;
    assert!(both.contains("You said two."), "{both}");
    rig.ask("sim:echo=end");
    rig.wait_for_text(&rig.ann, "You said end.");
    assert_eq!(rig.texts(&rig.ann).len(), 4, "{:#?}", rig.texts(&rig.ann));
}

#[test]
fn a_message_that_is_steered_into_a_turn_is_answered_by_it_and_once() {
    let rig = Rig::with(|rig, settings| {
        let ostler = env!("CARGO_BIN_EXE_ostler");
        let script = format!("#!/bin/sh\nexec '{ostler}' scripted --as codex -- \"$@\"\n");
        settings["agent"]["default"] = json!("codex");
        settings["agent"]["path"] = json!(rig.place.program("played-codex", &script));
        settings["agent"]["permissions"] = json!("ask");
        settings["busy"] = json!("steer");
    });
    rig.ask("sim:tool sim:echo=one");
    rig.wait_for_text(&rig.ann, "Permission to run a command");
    rig.wait_until_noted();
    let steering = rig.ask("sim:echo=two");
    until("it is in the turn", || {
        let steered = "SELECT body FROM events WHERE body LIKE '%\"steered\"%'";
        (!rig.store(steered).is_empty()).then_some(())
    });
    rig.twilio.deliver_again(&steering);
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "You said two.");
    rig.twilio.deliver_again(&steering);
    rig.ask("sim:echo=end");
    rig.wait_for_text(&rig.ann, "You said end.");
    let texts = rig.texts(&rig.ann);
    assert_eq!(texts.len(), 3, "{texts:#?}");
}
