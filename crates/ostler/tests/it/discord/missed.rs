//! What is said while a session is over that cannot be gone on with.

use serde_json::json;

use super::rig::Rig;
use crate::{
    discord_double::Fault,
    support::{LIMIT, until},
};

/// Says something that no session is told of, and has the bot connect again.
pub(super) fn miss(rig: &Rig, say: impl FnOnce()) {
    let n_before = rig.discord.identifies();
    rig.discord.forget_sessions();
    say();
    rig.discord.cut();
    rig.discord
        .wait_for("another session", LIMIT, |world| (world.identifies() > n_before).then_some(()));
}

#[test]
fn what_is_said_where_people_talk_to_the_bot_is_answered_once() {
    let rig = Rig::start();
    let direct = rig.discord.direct(rig.ann);
    rig.ask("sim:echo=before");
    rig.wait_for_text("You said before.");
    miss(&rig, || {
        rig.discord.say(rig.channel, rig.ann, "among people");
        rig.ask("sim:echo=one");
        rig.ask("sim:echo=two");
        rig.discord.bot_says(rig.channel, &rig.mentioning("sim:echo=bot"));
    });
    rig.wait_for_text("You said one.");
    rig.wait_for_text("You said two.");
    until("the log says it", || rig.log().contains("looked for what was said").then_some(()));
    // Nothing of it is answered again, whatever else is missed.
    let path = format!("GET /channels/{}/messages", rig.channel);
    rig.discord.plan(1, &path, Fault::Fail(500));
    miss(&rig, || {
        rig.ask("sim:echo=three");
    });
    rig.wait_for_text("You said three.");
    assert_eq!(rig.n_sent(), 4);
    assert!(rig.discord.messages(direct).is_empty());
}

#[test]
fn what_is_said_in_a_direct_chat_is_answered_once() {
    let rig = Rig::with(|rig, settings| {
        settings["discord"]["users"] = json!([rig.ann.to_string()]);
    });
    let direct = rig.discord.direct(rig.ann);
    rig.discord.say(direct, rig.ann, "sim:echo=before");
    rig.wait_for_text_in(direct, "You said before.");
    miss(&rig, || {
        rig.discord.say(direct, rig.ann, "sim:echo=one");
        rig.discord.say(direct, rig.ann, "sim:echo=two");
    });
    rig.wait_for_text_in(direct, "You said two.");
    miss(&rig, || {
        rig.discord.say(direct, rig.ann, "sim:echo=three");
    });
    rig.wait_for_text_in(direct, "You said three.");
    let said = rig.said(direct);
    assert_eq!(said.len(), 4, "{said:?}");
}

#[test]
fn what_is_said_in_a_thread_or_where_one_begins_is_answered_there() {
    let rig = Rig::with(|_, settings| settings["discord"]["threads"] = json!(true));
    let answered = |thread: u64, text: &str| {
        rig.wait_for("an answer in a thread", thread, |said| {
            said.iter().any(|message| message.content.contains(text))
        });
    };
    let thread = rig.ask("sim:echo=one");
    answered(thread, "You said one.");
    let mut other = 0;
    miss(&rig, || {
        rig.discord.say(thread, rig.ann, &rig.mentioning("sim:echo=two"));
        other = rig.ask("sim:echo=three");
    });
    answered(thread, "You said two.");
    answered(other, "You said three.");
}

#[test]
fn what_is_said_while_no_gateway_runs_is_answered_although_the_session_is_over() {
    let mut rig = Rig::with(|rig, settings| {
        settings["discord"]["answer_all_in"] = json!([rig.channel.to_string()]);
    });
    let direct = rig.discord.direct(rig.ann);
    // Where the connection stands is noted with the first thing that is heard.
    rig.slash(rig.channel, rig.ann, "status", json!({}));
    until("it is noted where the connection stands", || {
        rig.log().contains("connected to Discord").then_some(())
    });
    assert_eq!(rig.daemon.take().unwrap().stop(), Some(0));
    rig.discord.forget_sessions();
    rig.discord.say(rig.channel, rig.ann, "sim:echo=meanwhile");
    rig.crash_and_start();
    rig.wait_for_text("You said meanwhile.");
    assert_eq!(rig.n_sent(), 1);
    assert!(rig.discord.changes(direct).is_empty());
}

#[test]
fn a_session_of_which_more_was_heard_than_discord_told_is_begun_anew() {
    let mut rig = Rig::start();
    rig.ask("sim:echo=before");
    rig.wait_for_text("You said before.");
    assert_eq!(rig.daemon.take().unwrap().stop(), Some(0));
    rig.discord.rewind_sessions();
    rig.ask("sim:echo=meanwhile");
    rig.crash_and_start();
    rig.wait_for_text("You said meanwhile.");
    assert_eq!((rig.discord.identifies(), rig.n_sent()), (2, 2));
}

#[test]
fn who_is_let_in_by_a_role_is_let_in_by_it_then_too() {
    let rig = Rig::with(|rig, settings| {
        let role = rig.discord.give_role(rig.guild, rig.ann);
        settings["discord"]["roles"] = json!([role.to_string()]);
        settings["discord"]["channels"] = json!([rig.channel.to_string()]);
    });
    // There is something that it was heard before.
    rig.discord.say(rig.channel, rig.bob, &rig.mentioning("sim:echo=stranger"));
    rig.ask("sim:echo=before");
    rig.wait_for_text("You said before.");
    miss(&rig, || {
        rig.discord.say(rig.channel, rig.bob, &rig.mentioning("sim:echo=stranger"));
        rig.ask("sim:echo=member");
    });
    rig.wait_for_text("You said member.");
    assert_eq!(rig.n_sent(), 2);
}

#[test]
fn a_place_that_does_not_answer_keeps_nobody_from_looking_at_the_others() {
    let rig = Rig::start();
    let barn = rig.discord.channel(rig.guild, "barn");
    rig.discord.say(barn, rig.ann, &rig.mentioning("sim:echo=before"));
    rig.wait_for_text_in(barn, "You said before.");
    rig.ask("sim:echo=before");
    rig.wait_for_text("You said before.");
    // It was spoken to last, and is looked at first.
    let path = format!("GET /channels/{}", rig.channel);
    rig.discord.plan(1000, &path, Fault::Hang);
    miss(&rig, || {
        rig.ask("sim:echo=one");
        rig.discord.say(barn, rig.ann, &rig.mentioning("sim:echo=two"));
    });
    let looked = format!("/channels/{barn}/messages?");
    rig.discord.wait_for("a look at the other place", LIMIT, |world| {
        let is_it =
            |(method, path, _): &(String, String, u16)| method == "GET" && path.contains(&looked);
        world.requests().iter().any(is_it).then_some(())
    });
    rig.discord.forget_faults();
    rig.wait_for_text("You said one.");
    rig.wait_for_text_in(barn, "You said two.");
}

#[test]
fn a_place_that_fails_time_and_again_is_looked_at_as_long_as_there_is_time() {
    let rig = Rig::start();
    rig.ask("sim:echo=before");
    rig.wait_for_text("You said before.");
    let path = format!("GET /channels/{}", rig.channel);
    rig.discord.plan(1, &path, Fault::Fail(500));
    rig.discord.plan(3, &format!("{path}/messages"), Fault::Fail(502));
    miss(&rig, || {
        rig.ask("sim:echo=missed");
    });
    rig.wait_for_text("You said missed.");
    assert_eq!(rig.discord.look(|world| world.faults_left()), 0);
}
