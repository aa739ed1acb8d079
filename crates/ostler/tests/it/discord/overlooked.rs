//! What was missed, and is found although much stands in its way.

use std::time::Duration;

use serde_json::{Value, json};

use super::{missed::miss, rig::Rig};
use crate::{
    discord_double::Fault,
    support::{LIMIT, until},
};

fn start(change: impl FnOnce(&Rig, &mut Value)) -> Rig {
    let rig = Rig::with(change);
    rig.ask("sim:echo=before");
    rig.wait_for_text("You said before.");
    rig
}

#[test]
fn a_word_for_the_bot_is_found_behind_a_thousand_that_are_not() {
    let rig = start(|rig, _| rig.discord.relax());
    miss(&rig, || {
        for number in 0..1200 {
            rig.discord.say(rig.channel, rig.bob, &format!("among people {number}"));
        }
        rig.ask("sim:echo=last");
    });
    rig.wait_for_text("You said last.");
}

#[test]
fn where_more_was_said_than_is_looked_for_the_log_says_so() {
    let rig = start(|rig, _| rig.discord.relax());
    miss(&rig, || {
        rig.ask("sim:echo=first");
        for number in 0..5100 {
            rig.discord.say(rig.channel, rig.bob, &format!("among people {number}"));
        }
    });
    rig.wait_for_text("You said first.");
    until("the log says it", || {
        rig.log().contains("more was said meanwhile at a place").then_some(())
    });
}

#[test]
fn a_command_is_answered_during_a_look_however_much_people_say_to_each_other() {
    let rig = start(|rig, _| rig.discord.relax());
    // Less than the look takes.
    rig.discord.patience(Duration::from_secs(20));
    rig.discord.plan(1000, &format!("GET /channels/{}", rig.channel), Fault::Hang);
    miss(&rig, || {
        rig.ask("sim:echo=missed");
    });
    for number in 0..1100 {
        rig.discord.say(rig.channel, rig.bob, &format!("among people {number}"));
    }
    let help = rig.slash(rig.channel, rig.ann, "help", json!({}));
    rig.discord.wait_for("an answer in time", LIMIT, |world| {
        let state = world.interaction(help);
        assert!(!state.failed, "{state:?}");
        state.answered.then_some(())
    });
    assert!(!rig.log().contains("looked for what was said"), "{}", rig.log());
    rig.discord.forget_faults();
    rig.wait_for_text("You said missed.");
}

#[test]
fn whose_roles_discord_does_not_say_at_once_is_no_stranger() {
    let rig = start(|rig, settings| {
        let role = rig.discord.give_role(rig.guild, rig.ann);
        settings["discord"]["roles"] = json!([role.to_string()]);
    });
    let path = format!("GET /guilds/{}/members/{}", rig.guild, rig.ann);
    miss(&rig, || {
        rig.discord.plan(4, &path, Fault::Fail(500));
        rig.ask("sim:echo=member");
    });
    rig.wait_for_text("You said member.");
    assert_eq!(rig.discord.look(|world| world.faults_left()), 0);
    let log = rig.log();
    assert!(log.contains("Discord does not say whose a message is"), "{log}");
}

#[test]
fn nobody_is_looked_up_who_does_not_talk_to_the_bot() {
    let rig = start(|rig, settings| {
        let role = rig.discord.give_role(rig.guild, rig.ann);
        settings["discord"]["roles"] = json!([role.to_string()]);
    });
    miss(&rig, || {
        rig.discord.say(rig.channel, rig.bob, "among people");
        rig.ask("sim:echo=member");
    });
    rig.wait_for_text("You said member.");
    let bob = format!("/guilds/{}/members/{}", rig.guild, rig.bob);
    let asked = rig.discord.requests();
    assert!(asked.iter().all(|(_, path, _)| !path.contains(&bob)), "{asked:?}");
}

#[test]
fn what_is_missed_is_found_whatever_belongs_to_one_conversation() {
    for scope in ["per-sender", "per-group", "global"] {
        let rig = start(|rig, settings| {
            settings["sessions"] = json!({ "scope": scope });
            settings["discord"]["users"] = json!([rig.ann.to_string()]);
        });
        let direct = rig.discord.direct(rig.ann);
        let answered = |text: &str| {
            rig.wait_for(text, direct, |said| said.iter().any(|it| it.content.contains(text)));
        };
        rig.discord.say(direct, rig.ann, "sim:echo=known");
        answered("You said known.");
        miss(&rig, || {
            rig.ask("sim:echo=missed");
            rig.discord.say(direct, rig.ann, "sim:echo=private");
        });
        rig.wait_for_text("You said missed.");
        answered("You said private.");
    }
}
