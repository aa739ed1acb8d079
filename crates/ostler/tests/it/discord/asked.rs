//! Permissions that are asked for by buttons.

use serde_json::json;

use super::rig::{Rig, button};
use crate::support::{LIMIT, pairing_code};

fn rig() -> Rig {
    Rig::with(|_, settings| settings["agent"]["permissions"] = json!("ask"))
}

#[test]
fn only_who_asked_can_press_the_button_and_only_once() {
    let rig = rig();
    rig.ask("sim:tool");
    let message = rig.asked();
    assert!(message.content.contains("echo hi"), "{}", message.content);
    let allow = button(&message, "allow");
    let wrong = rig.discord.press(rig.channel, rig.bob, message.id, &allow);
    let refused = rig.refusal(wrong);
    assert!(refused.contains("only who asked"), "{refused}");
    let right = rig.discord.press(rig.channel, rig.ann, message.id, &allow);
    rig.wait_for_text("It pretended to run");
    assert!(rig.discord.interaction(right).answered);
    rig.wait_for("the buttons are gone", rig.channel, |said| {
        said.iter().all(|message| message.custom_ids().is_empty())
    });
}

#[test]
fn an_owner_can_press_the_button_of_somebody_else() {
    let rig = Rig::with(|rig, settings| {
        settings["agent"]["permissions"] = json!("ask");
        settings["discord"]["owners"] = json!([rig.bob.to_string()]);
    });
    rig.ask("sim:tool");
    let message = rig.asked();
    rig.discord.press(rig.channel, rig.bob, message.id, &button(&message, "allow"));
    rig.wait_for_text("It pretended to run");
}

#[test]
fn a_question_is_answered_by_a_choice_or_in_words_of_ones_own() {
    let rig = Rig::with(|rig, settings| {
        let ostler = env!("CARGO_BIN_EXE_ostler").replace('\'', r"'\''");
        let script = format!("#!/bin/sh\nexec '{ostler}' scripted --as opencode -- \"$@\"\n");
        let path = rig.place.program("played-opencode", &script);
        settings["agent"] = json!({ "default": "opencode", "path": path, "permissions": "ask" });
    });
    rig.ask("sim:question");
    let message = rig.asked();
    assert!(message.content.contains("Which colour?"), "{}", message.content);
    let pressed = rig.discord.press(rig.channel, rig.ann, message.id, &button(&message, "text"));
    let form = rig.discord.wait_for("a form", LIMIT, |world| world.interaction(pressed).modal);
    assert_eq!(form["custom_id"], button(&message, "text"));
    let sent = rig.discord.submit_modal(pressed, &[("text", "Piebald")]);
    rig.wait_for_text("You chose Piebald.");
    assert!(rig.discord.interaction(sent).answered);
    rig.ask("sim:question");
    let message = rig.asked();
    let choice = button(&message, "option:0");
    rig.discord.press(rig.channel, rig.ann, message.id, &choice);
    rig.wait_for("another answer", rig.channel, |said| {
        said.iter().filter(|message| message.content.contains("You chose ")).count() == 2
    });
}

#[test]
fn what_is_denied_is_not_done() {
    let rig = rig();
    rig.ask("sim:tool");
    let message = rig.asked();
    rig.discord.press(rig.channel, rig.ann, message.id, &button(&message, "deny"));
    rig.wait_for_text("It was not allowed to run");
}

#[test]
fn a_button_that_has_expired_decides_nothing() {
    let rig = Rig::with(|_, settings| {
        settings["agent"]["permissions"] = json!("ask");
        // Also a slow machine has shown it by then.
        settings["agent"]["ask_timeout"] = json!("10s");
    });
    rig.ask("sim:tool");
    let message = rig.asked();
    let allow = button(&message, "allow");
    rig.wait_for_text("It was not allowed to run");
    rig.wait_for("the buttons are gone", rig.channel, |said| {
        said.iter().all(|message| message.custom_ids().is_empty())
    });
    // Somebody's window may still show it.
    let late = rig.discord.forge(rig.channel, rig.ann, message.id, &allow);
    let refused = rig.refusal(late);
    assert!(refused.starts_with("No: "), "{refused}");
    let said = rig.discord.messages(rig.channel);
    assert!(said.iter().all(|it| !it.content.contains("It pretended to run")), "{said:?}");
}

#[test]
fn a_button_counts_only_where_it_stands() {
    let rig = rig();
    rig.ask("sim:tool");
    let message = rig.asked();
    let allow = button(&message, "allow");
    let other = rig.discord.channel(rig.guild, "barn");
    let there = rig.discord.say(other, rig.ann, "nothing to press");
    let forged = rig.discord.forge(other, rig.ann, there, &allow);
    let refused = rig.refusal(forged);
    assert!(refused.contains("not asked here"), "{refused}");
    // What is no button of ours at all is answered by nobody, and harms nothing.
    for strange in ["", "x", "perm_0:allow", ":allow", "perm_00000000000000000000000000000000:"] {
        rig.discord.forge(rig.channel, rig.ann, message.id, strange);
    }
    rig.discord.press(rig.channel, rig.ann, message.id, &allow);
    rig.wait_for_text("It pretended to run");
}

#[test]
fn a_button_that_is_told_again_is_pressed_once_and_nothing_is_said_to_that() {
    let rig = rig();
    rig.ask("sim:tool");
    let message = rig.asked();
    let pressed = rig.discord.press(rig.channel, rig.ann, message.id, &button(&message, "allow"));
    rig.discord.interact_again(pressed);
    rig.wait_for_text("It pretended to run");
    rig.discord.interact_again(pressed);
    // The others come too late for a first answer, by Discord's own rules.
    rig.discord.wait_for("the other answers", LIMIT, |world| {
        (world.interaction(pressed).refused == [40060, 40060]).then_some(())
    });
    rig.ask("sim:echo=on");
    rig.wait_for_text("You said on.");
    // Nothing is said to him about it.
    let told = rig.discord.interaction(pressed).follow_ups;
    assert!(told.is_empty(), "{told:?}");
}

#[test]
fn a_command_that_is_told_twice_is_done_once() {
    let rig = Rig::start();
    let asked = rig.slash(rig.channel, rig.ann, "ask", json!({ "prompt": "sim:history one" }));
    rig.discord.interact_again(asked);
    rig.wait_for_text("so far: 1.");
    rig.discord.interact_again(asked);
    rig.ask("sim:history two");
    rig.wait_for_text("so far: 2.");
}

#[test]
fn who_was_shut_out_cannot_press_a_button_any_more() {
    let rig = Rig::with(|_, settings| {
        settings["agent"]["permissions"] = json!("ask");
        settings["discord"]["pairing"] = json!(true);
    });
    let direct = rig.discord.direct(rig.bob);
    rig.discord.say(direct, rig.bob, "hello");
    let said = rig.wait_for("a code", direct, |said| !said.is_empty());
    let code = pairing_code(&said[0].content);
    let approved = rig.place.run(&["pairing", "approve", &code]);
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    rig.discord.say(direct, rig.bob, "sim:tool");
    let message = rig.asked_in(direct);
    let removed = rig.place.run(&["pairing", "remove", &format!("discord:{}", rig.bob)]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    let pressed = rig.discord.press(direct, rig.bob, message.id, &button(&message, "allow"));
    let refused = rig.refusal(pressed);
    assert!(refused.contains("may not talk"), "{refused}");
}
