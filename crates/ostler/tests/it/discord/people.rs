//! Several people who talk in one channel.

use serde_json::json;

use super::rig::Rig;
use crate::discord_double::Message;

/// Says something as Bob, in the channel where Ann asks.
fn say_as_bob(rig: &Rig, text: &str) -> u64 {
    rig.discord.say(rig.channel, rig.bob, &rig.mentioning(text))
}

/// Asks for one thing more, and returns what was said before that was answered. All
/// of it is whole.
fn said_before_the_end(rig: &Rig) -> Vec<Message> {
    rig.ask("sim:echo=end");
    rig.wait_for_text("You said end.");
    let mut said = rig.said(rig.channel);
    for message in &said {
        assert!(message.content.ends_with("characters."), "{said:?}");
    }
    said.retain(|message| !message.content.contains("You said end."));
    said
}

#[test]
fn by_default_a_channel_is_one_conversation_of_all_its_people() {
    let rig = Rig::start();
    rig.ask("sim:history one");
    rig.wait_for_text("so far: 1.");
    say_as_bob(&rig, "sim:history two");
    rig.wait_for_text("so far: 2.");
}

#[test]
fn two_people_in_a_channel_have_sessions_of_their_own_if_that_is_wanted() {
    let rig = Rig::with(|_, settings| settings["sessions"] = json!({ "scope": "per-sender" }));
    let firsts = |said: &[Message]| {
        said.iter().filter(|message| message.content.contains("so far: 1.")).count()
    };
    rig.ask("sim:history one");
    rig.wait_for("an answer to Ann", rig.channel, |said| firsts(said) == 1);
    let of_bob = say_as_bob(&rig, "sim:history two");
    let said = rig.wait_for("an answer to Bob", rig.channel, |said| firsts(said) == 2);
    assert_eq!(said[1].reply_to, Some(of_bob));
    rig.ask("sim:history three");
    rig.wait_for_text("so far: 2.");
}

#[test]
fn what_several_say_meanwhile_is_combined_and_answered_once_if_that_is_wanted() {
    let mut rig = Rig::with(|rig, settings| {
        settings["agent"]["path"] = json!(rig.patient_agent());
    });
    rig.configure(|settings| settings["busy"] = json!("combine"));
    rig.ask("sim:echo=m0");
    rig.wait_for_agent();
    rig.ask("sim:echo=m1");
    say_as_bob(&rig, "sim:echo=m2");
    rig.ask("sim:echo=m3");
    let status = rig.slash(rig.channel, rig.bob, "status", json!({}));
    assert!(rig.told(status).contains("3 messages wait"));
    rig.release_agent();
    rig.wait_for_text("You said m3.");
    let said = said_before_the_end(&rig);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].content.contains("You said m0."), "{said:?}");
    for text in ["You said m1.", "You said m2.", "You said m3."] {
        assert_eq!(said[1].content.matches(text).count(), 1, "{text}: {said:?}");
    }
}

#[test]
fn what_is_said_to_a_running_turn_is_answered_with_it_if_that_is_wanted() {
    let mut rig = Rig::with(|rig, settings| {
        let ostler = env!("CARGO_BIN_EXE_ostler").replace('\'', r"'\''");
        let script = format!("#!/bin/sh\nexec '{ostler}' scripted --as codex -- \"$@\"\n");
        settings["agent"]["default"] = json!("codex");
        settings["agent"]["path"] = json!(rig.place.program("played-codex", &script));
    });
    rig.configure(|settings| settings["busy"] = json!("steer"));
    rig.ask("sim:delay=5000 sim:echo=first");
    say_as_bob(&rig, "sim:echo=left");
    rig.wait_for_text("You said left.");
    let said = said_before_the_end(&rig);
    let n_said = |text: &str| said.iter().filter(|it| it.content.contains(text)).count();
    // A turn that cannot be steered yet is answered by itself.
    assert_eq!(n_said("You said left."), 1, "{said:?}");
    assert_eq!(n_said("You said first."), said.len() - 1, "{said:?}");
    assert!(said.len() <= 2, "{said:?}");
}
