//! Permissions that are asked for by buttons.

use serde_json::json;

use super::rig::Rig;
use crate::{discord_double::Message, support::LIMIT};

fn rig() -> Rig {
    Rig::with(|_, settings| settings["agent"]["permissions"] = json!("ask"))
}

fn asked(rig: &Rig) -> Message {
    let said = rig.wait_for("a request", rig.channel, |said| {
        said.iter().any(|message| !message.custom_ids().is_empty())
    });
    said.into_iter().find(|message| !message.custom_ids().is_empty()).unwrap()
}

fn button(message: &Message, choice: &str) -> String {
    let ids = message.custom_ids();
    let found = ids.iter().find(|id| id.ends_with(&format!(":{choice}")));
    found.unwrap_or_else(|| panic!("{ids:?}")).clone()
}

#[test]
fn only_who_asked_can_press_the_button_and_only_once() {
    let rig = rig();
    rig.ask("sim:tool");
    let message = asked(&rig);
    assert!(message.content.contains("echo hi"), "{}", message.content);
    let allow = button(&message, "allow");
    let wrong = rig.discord.press(rig.channel, rig.bob, message.id, &allow);
    let refused = rig.discord.wait_for("a refusal", LIMIT, |world| {
        world.interaction(wrong).follow_ups.first().map(|it| it.content.clone())
    });
    assert!(refused.contains("only who asked"), "{refused}");
    let right = rig.discord.press(rig.channel, rig.ann, message.id, &allow);
    rig.wait_for_text("It pretended to run");
    assert!(rig.discord.interaction(right).answered);
    rig.wait_for("the buttons are gone", rig.channel, |said| {
        said.iter().all(|message| message.custom_ids().is_empty())
    });
}

#[test]
fn what_is_denied_is_not_done() {
    let rig = rig();
    rig.ask("sim:tool");
    let message = asked(&rig);
    rig.discord.press(rig.channel, rig.ann, message.id, &button(&message, "deny"));
    rig.wait_for_text("It was not allowed to run");
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
    let (_, rest) = said[0].content.split_once("ostler pairing approve ").unwrap();
    let code: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
    let approved = rig.place.run(&["pairing", "approve", &code]);
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    rig.discord.say(direct, rig.bob, "sim:tool");
    let said = rig.wait_for("a request", direct, |said| {
        said.iter().any(|message| !message.custom_ids().is_empty())
    });
    let message = said.into_iter().find(|message| !message.custom_ids().is_empty()).unwrap();
    let removed = rig.place.run(&["pairing", "remove", &format!("discord:{}", rig.bob)]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    let pressed = rig.discord.press(direct, rig.bob, message.id, &button(&message, "allow"));
    let refused = rig.discord.wait_for("a refusal", LIMIT, |world| {
        world.interaction(pressed).follow_ups.first().map(|it| it.content.clone())
    });
    assert!(refused.contains("may not talk"), "{refused}");
}
