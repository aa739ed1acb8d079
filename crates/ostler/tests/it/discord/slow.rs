//! Places that are slow, and others that do not wait for them.

use std::time::Duration;

use serde_json::json;

use super::rig::{Rig, button};
use crate::{discord_double::Message, support::LIMIT};

fn has(said: &[Message], text: &str) -> bool {
    said.iter().any(|message| message.content.contains(text))
}

#[test]
fn commands_and_buttons_are_answered_in_time_whatever_a_message_waits_for() {
    let rig = Rig::with(|_, settings| {
        settings["agent"]["permissions"] = json!("ask");
        settings["discord"]["threads"] = json!(true);
    });
    // Less than the message waits for.
    rig.discord.patience(Duration::from_secs(10));
    let barn = rig.discord.channel(rig.guild, "barn");
    let thread = rig.discord.say(barn, rig.ann, &rig.mentioning("sim:tool"));
    let asked = rig.asked_in(thread);
    rig.hold();
    let commands = [
        rig.slash(rig.channel, rig.ann, "status", json!({})),
        rig.slash(rig.channel, rig.ann, "ask", json!({ "prompt": "sim:echo=next" })),
        rig.slash(barn, rig.ann, "status", json!({})),
    ];
    let pressed = rig.discord.press(thread, rig.ann, asked.id, &button(&asked, "allow"));
    for interaction in commands.into_iter().chain([pressed]) {
        rig.discord.wait_for("an answer in time", LIMIT, |world| {
            let state = world.interaction(interaction);
            assert!(!state.failed, "{state:?}");
            state.answered.then_some(())
        });
    }
    rig.wait_for("what was allowed", thread, |said| has(said, "It pretended to run"));
    // What was asked for after the message is done after it.
    assert_eq!(rig.discord.interaction(commands[0]).content, None);
    assert!(rig.told(commands[2]).contains("answers, with"));
}

#[test]
fn a_thread_that_cannot_be_begun_holds_up_no_other_place() {
    let rig = Rig::with(|_, settings| settings["discord"]["threads"] = json!(true));
    rig.hold();
    let barn = rig.discord.channel(rig.guild, "barn");
    let thread = rig.discord.say(barn, rig.bob, &rig.mentioning("sim:echo=quick"));
    rig.wait_for("an answer in the barn", thread, |said| has(said, "You said quick."));
    assert!(!has(&rig.discord.messages(rig.channel), "You said slow."));
}

#[test]
fn a_message_that_waited_for_its_thread_is_told_again_after_a_crash() {
    let mut rig = Rig::with(|_, settings| settings["discord"]["threads"] = json!(true));
    rig.hold();
    // Others that come after it are dealt with, and noted.
    let barn = rig.discord.channel(rig.guild, "barn");
    let thread = rig.discord.say(barn, rig.bob, &rig.mentioning("sim:echo=quick"));
    rig.wait_for("an answer in the barn", thread, |said| has(said, "You said quick."));
    rig.crash_and_start();
    let slow = rig.discord.messages(rig.channel)[0].id;
    rig.wait_for("an answer to the first", slow, |said| has(said, "You said slow."));
    let again = rig.discord.say(barn, rig.bob, &rig.mentioning("sim:echo=again"));
    rig.wait_for("another answer", again, |said| has(said, "You said again."));
    for (thread, text) in [(slow, "You said slow."), (thread, "You said quick.")] {
        let said = rig.discord.messages(thread);
        assert_eq!(said.iter().filter(|it| it.content.contains(text)).count(), 1, "{said:?}");
    }
}

#[test]
fn what_was_said_long_before_it_is_told_does_not_count_as_written_too_fast() {
    let rig = Rig::behind(Duration::from_secs(7200), |_, settings| {
        settings["discord"]["messages_per_minute"] = json!(1);
    });
    for number in 0..3 {
        rig.ask(&format!("sim:echo=m{number}"));
        rig.wait_for_text(&format!("You said m{number}."));
    }
}

#[test]
fn an_answer_in_an_old_message_that_cannot_be_changed_any_more_is_sent_anew() {
    let rig = Rig::behind(Duration::from_secs(7200), |rig, _| rig.discord.old_edits(0));
    rig.ask("sim:slow=600 tell me all about it");
    let answer = rig.wait_for_text("characters.");
    assert!(answer.content.contains("This is Ostler"), "{}", answer.content);
    let said = rig.wait_for("one answer", rig.channel, |said| said.len() == 1);
    assert!(said[0].content.ends_with("characters."), "{said:?}");
    assert!(rig.n_sent() > 1 && rig.discord.limited() > 0);
}
