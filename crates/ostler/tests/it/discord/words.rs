//! What is said to the gateway instead of the agent.

use serde_json::json;

use super::rig::Rig;
use crate::support::{LIMIT, until};

/// Waits until the agent is at work.
fn wait_until_busy(rig: &Rig) {
    let n_before = rig.discord.changes(rig.channel).len();
    rig.ask("sim:hang");
    rig.discord.wait_for("typing", LIMIT, |world| {
        (world.changes(rig.channel).len() > n_before).then_some(())
    });
}

#[test]
fn a_stop_that_is_told_again_does_not_end_what_began_after_it() {
    let rig = Rig::start();
    wait_until_busy(&rig);
    let stop = rig.ask("/stop");
    rig.wait_for_text("Stopped");
    rig.ask("sim:slow=700 sim:echo=later");
    rig.wait_for("the start of an answer", rig.channel, |said| {
        said.iter().any(|message| message.content.contains("This is Ostler"))
    });
    rig.discord.deliver_again(stop);
    rig.wait_for_text("You said later.");
}

#[test]
fn what_is_said_right_after_a_stop_is_not_ended_by_it() {
    let rig = Rig::start();
    wait_until_busy(&rig);
    rig.ask("stop");
    rig.ask("sim:echo=after");
    rig.wait_for_text("You said after.");
}

#[test]
fn a_reply_to_the_bot_is_meant_for_it_and_one_to_somebody_else_is_not() {
    let rig = Rig::start();
    let asked = rig.ask("sim:history one");
    let answer = rig.wait_for_text("so far: 1.");
    rig.discord.reply(rig.channel, rig.bob, asked, "sim:history for ann");
    rig.discord.reply(rig.channel, rig.ann, answer.id, "sim:history two");
    rig.wait_for_text("so far: 2.");
    rig.ask("sim:history three");
    rig.wait_for_text("so far: 3.");
    assert_eq!(rig.n_sent(), 3);
}

#[test]
fn an_owner_can_have_the_gateway_started_again_and_it_goes_on_once() {
    let rig = Rig::with(|rig, settings| {
        settings["discord"]["owners"] = json!([rig.ann.to_string()]);
    });
    rig.ask("sim:history one");
    rig.wait_for_text("so far: 1.");
    let asked = rig.ask("/restart");
    rig.wait_for_text("I am starting again");
    rig.discord.wait_for("another connection", LIMIT, |world| (world.resumes() > 0).then_some(()));
    rig.discord.deliver_again(asked);
    rig.ask("sim:history two");
    rig.wait_for_text("so far: 2.");
    let said = rig.discord.messages(rig.channel);
    let n_told = said.iter().filter(|it| it.content.contains("I am starting again")).count();
    assert_eq!(n_told, 1, "{said:?}");
}

#[test]
fn nobody_else_can() {
    let rig = Rig::start();
    rig.ask("/restart");
    rig.wait_for_text("Only an owner may");
    rig.ask("sim:echo=on");
    rig.wait_for_text("You said on.");
    assert_eq!(rig.discord.connections(), 1);
}

#[test]
fn a_message_whose_thread_could_not_be_begun_at_first_is_answered_once() {
    let rig = Rig::with(|_, settings| settings["discord"]["threads"] = json!(true));
    rig.discord.plan(1, "/threads", crate::discord_double::Fault::Fail(500));
    let asked = rig.ask("sim:echo=one");
    rig.wait_for_text("You said one.");
    rig.discord.deliver_again(asked);
    let next = rig.ask("sim:echo=two");
    rig.wait_for("an answer in a thread", next, |said| {
        said.iter().any(|message| message.content.contains("You said two."))
    });
    assert!(rig.discord.messages(asked).is_empty());
}

#[test]
fn what_is_told_again_does_not_count_as_written_by_its_sender() {
    let rig = Rig::with(|_, settings| settings["discord"]["messages_per_minute"] = json!(2));
    let first = rig.ask("sim:echo=one");
    rig.wait_for_text("You said one.");
    for _ in 0..3 {
        rig.discord.deliver_again(first);
    }
    rig.ask("sim:echo=two");
    rig.wait_for_text("You said two.");
    rig.ask("sim:echo=three");
    rig.wait_for_text("too fast");
}

#[test]
fn who_writes_too_fast_is_told_once_what_is_not_read_and_the_log_names_each_message() {
    let rig = Rig::with(|_, settings| settings["discord"]["messages_per_minute"] = json!(1));
    rig.ask("sim:echo=one");
    rig.wait_for_text("You said one.");
    let lost: Vec<String> = (0..3).map(|_| rig.ask("sim:echo=straw").to_string()).collect();
    let told = rig.wait_for_text("too fast").content;
    assert!(told.contains("I do not read it, nor what you write in the next"), "{told}");
    until("each of them is in the log", || {
        let log = rig.log();
        let is_named = |id: &String| {
            log.lines().any(|line| line.contains("is not read") && line.contains(id.as_str()))
        };
        lost.iter().all(is_named).then_some(())
    });
    assert!(!rig.log().contains("straw"));
    assert_eq!(rig.said(rig.channel).len(), 2);
}
