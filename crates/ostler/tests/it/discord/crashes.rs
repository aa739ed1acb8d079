//! Gateways that end in the middle of something, and those that go on with it.

use super::rig::Rig;
use crate::{
    discord_double::{ChangeKind, Discord, Fault},
    support::LIMIT,
};

/// Waits until this many calls had this status.
fn wait_for_calls(discord: &Discord, what: &str, status: u16, at_least: usize) {
    discord.wait_for("calls", LIMIT, |world| {
        let is_it = |(method, path, with): &&(String, String, u16)| {
            format!("{method} {path}").contains(what) && *with == status
        };
        (world.requests().iter().filter(is_it).count() >= at_least).then_some(())
    });
}

#[test]
fn a_gateway_that_is_killed_answers_once_and_in_the_same_message() {
    let mut rig = Rig::start();
    rig.ask("sim:slow=900 tell me all about it");
    // What was changed was noted before.
    rig.discord.wait_for("the start of an answer", LIMIT, |world| {
        let changes = world.changes(rig.channel);
        changes.iter().any(|change| change.kind == ChangeKind::Edited).then_some(())
    });
    rig.crash_and_start();
    rig.wait_for_text("Your prompt has");
    assert_eq!(rig.discord.messages(rig.channel).len(), 2);
    let changes = rig.discord.changes(rig.channel);
    assert!(changes.iter().all(|change| change.kind != ChangeKind::Deleted), "{changes:?}");
    assert_eq!(rig.n_sent(), 1);
}

#[test]
fn what_is_said_while_no_gateway_runs_is_answered_by_the_next() {
    let mut rig = Rig::start();
    rig.ask("sim:echo=before");
    rig.wait_for_text("You said before.");
    drop(rig.daemon.take());
    rig.discord.wait_for("the connection is gone", LIMIT, |world| {
        (world.open_connections() == 0).then_some(())
    });
    rig.ask("sim:echo=meanwhile");
    rig.crash_and_start();
    rig.wait_for_text("You said meanwhile.");
    assert_eq!(rig.n_sent(), 2, "{}", rig.log());
}

#[test]
fn an_answer_that_was_not_sent_before_a_kill_is_sent_after_it() {
    let mut rig = Rig::start();
    let path = format!("/channels/{}/messages", rig.channel);
    // Nothing gets through for as long as this gateway lives.
    rig.discord.plan(1000, &format!("POST {path}"), Fault::Fail(503));
    rig.ask("sim:echo=kept");
    wait_for_calls(&rig.discord, &path, 503, 2);
    drop(rig.daemon.take());
    rig.discord.forget_faults();
    rig.crash_and_start();
    rig.wait_for_text("You said kept.");
    rig.ask("sim:echo=next");
    rig.wait_for_text("You said next.");
    assert_eq!(rig.n_sent(), 2);
}

#[test]
fn an_answer_that_was_sent_before_a_kill_and_not_noted_is_there_once() {
    let mut rig = Rig::start();
    let path = format!("/channels/{}/messages", rig.channel);
    // It stands in the channel, and nobody is told so.
    rig.discord.plan(1, &format!("POST {path}"), Fault::Hang);
    rig.ask("sim:echo=once");
    rig.wait_for("a message", rig.channel, |said| !said.is_empty());
    rig.crash_and_start();
    rig.wait_for_text("You said once.");
    rig.ask("sim:echo=next");
    rig.wait_for_text("You said next.");
    assert_eq!(rig.n_sent(), 2);
}

#[test]
fn a_gateway_that_is_stopped_while_discord_does_not_answer_leaves_one_answer() {
    let mut rig = Rig::start();
    let path = format!("/channels/{}/messages", rig.channel);
    rig.discord.plan(1, &format!("POST {path}"), Fault::Hang);
    rig.ask("sim:slow=900 tell me all about it");
    rig.wait_for("the start of an answer", rig.channel, |said| !said.is_empty());
    assert_eq!(rig.daemon.take().unwrap().stop(), Some(0));
    rig.crash_and_start();
    let answer = rig.wait_for_text("Your prompt has");
    assert!(answer.content.ends_with("characters."), "{}", answer.content);
    rig.ask("sim:echo=next");
    rig.wait_for_text("You said next.");
    assert_eq!(rig.n_sent(), 2);
}
