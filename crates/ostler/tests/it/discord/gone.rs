//! What is taken away in the middle of something: messages, channels, tokens.

use serde_json::json;

use super::rig::Rig;
use crate::{
    discord_double::Fault,
    support::{LIMIT, until},
};

#[test]
fn an_answer_whose_message_somebody_deletes_is_sent_anew_once() {
    let rig = Rig::start();
    rig.ask("sim:slow=500 tell me all about it");
    let said = rig.wait_for("the start of an answer", rig.channel, |said| !said.is_empty());
    rig.discord.delete_by_user(said[0].id);
    let answer = rig.wait_for_answer(rig.channel);
    assert!(answer.content.starts_with("This is Ostler"), "{}", answer.content);
    rig.ask("sim:echo=next");
    rig.wait_for_text("You said next.");
    let said = rig.said(rig.channel);
    assert_eq!((said.len(), rig.n_sent()), (2, 3), "{said:?}");
}

#[test]
fn an_answer_whose_channel_is_deleted_is_given_up_with_a_reason_and_nothing_else() {
    let rig = Rig::start();
    let barn = rig.discord.channel(rig.guild, "barn");
    rig.discord.say(barn, rig.bob, &rig.mentioning("sim:slow=500 tell me all about it"));
    rig.wait_for("the start of an answer", barn, |said| !said.is_empty());
    rig.discord.delete_channel(barn);
    until("it is given up", || {
        let listed = rig.place.run(&["queue", "undelivered"]).stdout;
        listed.contains("there is no such channel").then_some(())
    });
    rig.ask("sim:echo=on");
    rig.wait_for_text("You said on.");
    assert_eq!((rig.n_sent(), rig.discord.connections()), (1, 1));
}

#[test]
fn a_command_whose_token_expires_before_its_answer_harms_nobody() {
    let rig = Rig::start();
    rig.discord.plan(1, "PATCH /webhooks/", Fault::Limit { retry_after: 4.0, global: false });
    let status = rig.slash(rig.channel, rig.ann, "status", json!({}));
    rig.discord.wait_for("a refusal", LIMIT, |world| (world.limited() > 0).then_some(()));
    rig.discord.expire(status);
    let is_told = "the answer to a slash command could not be told";
    until("the log says it", || rig.log().contains(is_told).then_some(()));
    let state = rig.discord.interaction(status);
    assert!(state.answered && state.content.is_none(), "{state:?}");
    assert_eq!(rig.discord.hurried(), 0);
    let next = rig.slash(rig.channel, rig.ann, "status", json!({}));
    assert!(rig.told(next).contains("claude answers"));
}
