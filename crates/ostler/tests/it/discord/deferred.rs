//! Slash commands that are done later than Discord waits, or after a crash.

use serde_json::{Value, json};

use super::rig::Rig;
use crate::{discord_double::InteractionState, support::LIMIT};

/// Gives a command that is put off, and returns how it was.
fn put_off(rig: &Rig, command: &str, options: Value) -> (u64, InteractionState) {
    let slash = rig.slash(rig.channel, rig.ann, command, options);
    let state = rig.discord.wait_for("an answer that is put off", LIMIT, |world| {
        let state = world.interaction(slash);
        assert!(!state.failed, "{state:?}");
        state.answered.then_some(state)
    });
    (slash, state)
}

#[test]
fn what_is_asked_is_shown_when_it_is_stored_and_not_before() {
    let rig = Rig::with(|_, settings| settings["discord"]["threads"] = json!(true));
    rig.hold();
    let (slash, state) = put_off(&rig, "ask", json!({ "prompt": "sim:echo=next" }));
    assert_eq!((state.kind, state.content, state.ephemeral), (Some(5), None, false));
    assert_eq!(rig.told(slash), "> sim:echo=next");
    rig.wait_for_text("You said next.");
}

#[test]
fn a_command_that_was_put_off_before_a_crash_is_answered_after_it() {
    let mut rig = Rig::with(|_, settings| settings["discord"]["threads"] = json!(true));
    rig.hold();
    let (ask, _) = put_off(&rig, "ask", json!({ "prompt": "sim:echo=next" }));
    let (model, _) = put_off(&rig, "model", json!({ "name": "sonnet" }));
    rig.crash_and_start();
    assert_eq!(rig.told(ask), "> sim:echo=next");
    assert_eq!(rig.told(model), "The model is sonnet from the next message on.");
    rig.wait_for_text("You said next.");
}

#[test]
fn a_command_that_is_told_twice_keeps_its_answer() {
    let rig = Rig::start();
    for (command, options, told) in [
        ("ask", json!({ "prompt": "sim:echo=one" }), "> sim:echo=one"),
        ("stop", json!({}), "Nothing runs here."),
    ] {
        let slash = rig.slash(rig.channel, rig.ann, command, options);
        assert_eq!(rig.told(slash), told);
        rig.wait_for_text("You said one.");
        rig.discord.interact_again(slash);
        rig.discord.wait_for("a second answer", LIMIT, |world| {
            (!world.interaction(slash).refused.is_empty()).then_some(())
        });
        let another = rig.slash(rig.channel, rig.ann, "help", json!({}));
        rig.told(another);
        assert_eq!(rig.told(slash), told);
    }
}

#[test]
fn whoever_is_not_taken_is_told_so_by_the_answer_to_his_command() {
    let rig = Rig::with(|_, settings| settings["gateway"] = json!({ "max_queue_depth": 1 }));
    for _ in 0..3 {
        rig.slash(rig.channel, rig.ann, "ask", json!({ "prompt": "sim:hang" }));
    }
    let refused = rig.slash(rig.channel, rig.ann, "ask", json!({ "prompt": "sim:echo=more" }));
    let told = rig.told(refused);
    assert!(told.starts_with("⚠️"), "{told}");
    assert!(rig.discord.interaction(refused).ephemeral);
}

#[test]
fn what_is_too_long_to_be_a_name_is_answered_all_the_same() {
    let rig = Rig::start();
    let slash = rig.slash(rig.channel, rig.ann, "model", json!({ "name": "m".repeat(6000) }));
    assert_eq!(rig.told(slash), "That is no name of a model.");
}
