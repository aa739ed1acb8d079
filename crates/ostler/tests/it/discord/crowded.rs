//! Much at once, of which some hangs: nothing else waits for it.

use std::time::Duration;

use serde_json::json;

use super::rig::{Rig, button};
use crate::{
    discord_double::{Fault, Message},
    support::LIMIT,
};

/// How long an interaction waits here for its answer: less than what hangs takes to be
/// given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until everything hangs that is to.
fn until_hanging(rig: &Rig) {
    rig.discord
        .wait_for("calls that hang", LIMIT, |world| (world.faults_left() == 0).then_some(()));
}

fn until_answered(rig: &Rig, interactions: &[u64]) {
    rig.discord.wait_for("answers in time", LIMIT, |world| {
        let states = interactions.iter().map(|id| world.interaction(*id));
        let failed = states.clone().find(|state| state.failed);
        assert!(failed.is_none(), "{failed:?}");
        states.into_iter().all(|state| state.answered).then_some(())
    });
}

#[test]
fn a_button_is_answered_in_time_whatever_else_discord_does_not_answer() {
    let rig = Rig::with(|_, settings| settings["agent"]["permissions"] = json!("ask"));
    rig.ask("sim:tool");
    let asked = rig.asked();
    // What the commands are is asked for at each connection.
    rig.discord.plan(1, "GET /applications/@me", Fault::Hang);
    rig.discord.cut();
    until_hanging(&rig);
    rig.discord.wait_until_ready(LIMIT);
    rig.discord.patience(PATIENCE);
    let pressed = rig.discord.press(rig.channel, rig.ann, asked.id, &button(&asked, "allow"));
    until_answered(&rig, &[pressed]);
    rig.wait_for_text("It pretended to run");
}

#[test]
fn fifty_commands_at_once_are_answered_in_time_although_some_answers_hang() {
    let rig = Rig::with(|_, settings| {
        settings["discord"]["messages_per_minute"] = json!(1000);
    });
    rig.slash(rig.channel, rig.ann, "help", json!({}));
    rig.discord.plan(5, "POST /interactions/", Fault::Hang);
    rig.discord.patience(PATIENCE);
    let commands: Vec<u64> =
        (0..50).map(|_| rig.slash(rig.channel, rig.ann, "help", json!({}))).collect();
    until_answered(&rig, &commands);
}

#[test]
fn many_places_that_wait_for_discord_hold_up_no_other() {
    const MANY: usize = 220;
    let rig = Rig::with(|_, settings| {
        settings["discord"]["threads"] = json!(true);
        settings["discord"]["messages_per_minute"] = json!(1000);
        // All of them hang before the first is given up.
        settings["discord"]["requests_per_second"] = json!(1000);
    });
    rig.discord.relax();
    let barn = rig.discord.channel(rig.guild, "barn");
    let fields: Vec<u64> =
        (0..MANY).map(|n| rig.discord.channel(rig.guild, &format!("field-{n}"))).collect();
    for field in fields {
        rig.discord.plan(1, &format!("POST /channels/{field}/messages/"), Fault::Hang);
        rig.discord.say(field, rig.ann, &rig.mentioning("sim:echo=field"));
    }
    until_hanging(&rig);
    let thread = rig.discord.say(barn, rig.bob, &rig.mentioning("sim:echo=barn"));
    rig.wait_for("an answer in the barn", thread, |said: &[Message]| {
        said.iter().any(|message| message.content.contains("You said barn."))
    });
    assert!(!rig.log().contains("no thread could be begun"));
}
