//! What must not get lost or doubled, whatever breaks.

use std::time::{Duration, Instant};

use serde_json::json;

use super::rig::Rig;
use crate::{
    discord_double::{Discord, Fault, Message},
    support::{LIMIT, until},
};

#[test]
fn a_message_that_comes_twice_is_answered_once() {
    let rig = Rig::start();
    let first = rig.ask("sim:echo=one");
    rig.discord.deliver_again(first);
    rig.wait_for_text("You said one.");
    rig.discord.deliver_again(first);
    rig.ask("sim:echo=two");
    rig.wait_for_text("You said two.");
    assert_eq!(rig.n_sent(), 2);
}

#[test]
fn a_message_that_its_author_changes_is_answered_as_it_was_and_once() {
    let rig = Rig::start();
    let first = rig.ask("sim:echo=one");
    rig.wait_for_text("You said one.");
    rig.discord.edit_by_user(first, &rig.mentioning("sim:echo=another"));
    rig.ask("sim:echo=two");
    rig.wait_for_text("You said two.");
    assert_eq!(rig.n_sent(), 2);
}

#[test]
fn what_is_said_while_the_connection_is_cut_is_answered_after_it() {
    let rig = Rig::start();
    for number in 0..5 {
        rig.discord.cut();
        rig.ask(&format!("sim:echo=m{number}"));
        rig.wait_for_text(&format!("You said m{number}."));
    }
    assert_eq!(rig.n_sent(), 5);
    assert!(rig.discord.resumes() >= 5);
}

#[test]
fn a_cut_in_the_middle_of_an_answer_does_not_show() {
    let rig = Rig::start();
    rig.ask("sim:slow=1000 tell me");
    rig.wait_for("the start of an answer", rig.channel, |said| !said.is_empty());
    rig.discord.cut();
    rig.discord.wait_for("another connection", LIMIT, |world| (world.resumes() > 0).then_some(()));
    rig.wait_for_text("Your prompt has");
    assert_eq!(rig.n_sent(), 1);
    rig.ask("sim:echo=next");
    rig.wait_for_text("You said next.");
    assert_eq!(rig.n_sent(), 2);
}

#[test]
fn refusals_to_go_faster_delay_the_answer_and_nothing_else() {
    let rig = Rig::start();
    rig.discord.limit_next(5, 0.3, false);
    rig.ask("sim:slow=200 sim:echo=late");
    rig.wait_for_text("You said late.");
    assert_eq!(rig.n_sent(), 1);
}

#[test]
fn a_storm_of_refusals_for_everything_passes() {
    let rig = Rig::start();
    rig.discord.limit_next(8, 0.4, true);
    rig.ask("sim:slow=200 sim:echo=late");
    rig.wait_for_text("You said late.");
    assert!(rig.discord.limited() >= 8, "{}", rig.discord.limited());
    assert_eq!((rig.n_sent(), rig.discord.hurried()), (1, 0));
}

#[test]
fn a_limit_of_everything_is_kept_for_as_long_as_discord_says() {
    let rig = Rig::start();
    let barn = rig.discord.channel(rig.guild, "barn");
    // Nothing else is under way.
    rig.discord
        .wait_for("the commands", LIMIT, |world| (!world.commands().is_empty()).then_some(()));
    rig.discord.limit_next(1, 8.0, true);
    let start = Instant::now();
    rig.ask("sim:slow=200 sim:echo=late");
    rig.discord.say(barn, rig.bob, &rig.mentioning("sim:echo=later"));
    rig.discord.wait_for("a refusal", LIMIT, |world| (world.limited() > 0).then_some(()));
    // Buttons and commands are answered meanwhile.
    let help = rig.slash(rig.channel, rig.ann, "help", json!({}));
    rig.discord.wait_for("an answer to a command", LIMIT, |world| {
        world.interaction(help).answered.then_some(())
    });
    assert_eq!(rig.n_sent(), 0);
    rig.wait_for_text("You said late.");
    rig.wait_for("an answer in the barn", barn, |said| {
        said.iter().any(|message| message.content.contains("You said later."))
    });
    assert!(start.elapsed() >= Duration::from_secs(8), "{:?}", start.elapsed());
    assert_eq!((rig.n_sent(), rig.discord.hurried()), (1, 0));
}

#[test]
fn a_limit_of_a_channel_is_kept_for_as_long_as_discord_says_and_holds_up_no_other() {
    let rig = Rig::start();
    let barn = rig.discord.channel(rig.guild, "barn");
    let path = format!("POST /channels/{}/messages", rig.channel);
    rig.discord.plan(1, &path, Fault::Limit { retry_after: 4.0, global: false });
    rig.ask("sim:echo=late");
    rig.discord.wait_for("a refusal", LIMIT, |world| (world.limited() > 0).then_some(()));
    rig.discord.say(barn, rig.bob, &rig.mentioning("sim:echo=soon"));
    rig.wait_for("an answer in the barn", barn, |said| {
        said.iter().any(|message| message.content.contains("You said soon."))
    });
    rig.wait_for_text("You said late.");
    assert_eq!((rig.n_sent(), rig.discord.limited(), rig.discord.hurried()), (1, 1, 0));
}

#[test]
fn sessions_that_discord_ends_are_begun_anew() {
    // No heartbeat is late on a slow machine.
    let rig = Rig::with(|rig, _| rig.discord.heartbeat(Duration::from_secs(300)));
    type End = fn(&Discord);
    let ends: [(End, bool); 5] = [
        (|discord| discord.ask_reconnect(), true),
        (|discord| discord.invalidate(true), true),
        (|discord| discord.invalidate(false), false),
        (|discord| discord.close(4000), true),
        (|discord| discord.close(4009), false),
    ];
    for (number, (end, is_gone_on_with)) in ends.iter().enumerate() {
        let before = (rig.discord.resumes(), rig.discord.identifies());
        let n_begun = before.0 + before.1;
        end(&rig.discord);
        rig.discord.wait_for("another connection", LIMIT, |world| {
            (world.resumes() + world.identifies() > n_begun).then_some(())
        });
        rig.discord.wait_until_ready(LIMIT);
        rig.ask(&format!("sim:echo=m{number}"));
        rig.wait_for_text(&format!("You said m{number}."));
        // Only what could not be gone on with is begun.
        let (n_resumed, n_begun) =
            (rig.discord.resumes() - before.0, rig.discord.identifies() - before.1);
        let is_begun = n_begun > 0;
        assert_eq!(is_begun, !is_gone_on_with, "{number}: {n_resumed} resumed, {n_begun} begun");
        assert!(n_resumed > 0 || is_begun);
    }
    assert_eq!(rig.n_sent(), 5);
}

#[test]
fn a_connection_that_breaks_down_is_said_so_and_begun_again() {
    let rig = Rig::with(|rig, _| rig.discord.resume_at("not a URL"));
    rig.ask("sim:echo=before");
    rig.wait_for_text("You said before.");
    rig.discord.cut();
    until("the log says it", || rig.log().contains("broke down").then_some(()));
    let line = rig.log().lines().find(|line| line.contains("broke down")).unwrap().to_owned();
    assert!(line.contains(" error "), "{line}");
    rig.ask("sim:echo=after");
    rig.wait_for_text("You said after.");
    assert_eq!((rig.discord.identifies(), rig.n_sent()), (2, 2));
}

#[test]
fn a_message_in_a_thread_is_answered_though_discord_does_not_say_at_first_where_it_is() {
    let mut rig = Rig::with(|rig, settings| {
        settings["discord"]["guilds"] = json!([]);
        settings["discord"]["channels"] = json!([rig.channel.to_string()]);
        settings["discord"]["threads"] = json!(true);
    });
    let thread = rig.ask("sim:echo=one");
    let is_said = |said: &[Message], text: &str| said.iter().any(|it| it.content.contains(text));
    rig.wait_for("an answer", thread, |said| is_said(said, "You said one."));
    // After a resume it is not told again which threads there are.
    rig.crash_and_start();
    rig.discord.wait_until_ready(LIMIT);
    rig.discord.plan(5, &format!("GET /channels/{thread}"), Fault::Fail(500));
    rig.discord.say(thread, rig.ann, &rig.mentioning("sim:echo=two"));
    rig.wait_for("another answer", thread, |said| is_said(said, "You said two."));
}

#[test]
fn an_answer_that_the_bot_may_not_send_is_given_up_and_said_so() {
    let rig = Rig::start();
    rig.discord.deny(rig.channel, 1 << 11);
    rig.ask("sim:echo=one");
    until("it is given up", || {
        let listed = rig.place.run(&["queue", "undelivered"]).stdout;
        listed.contains("lacks a permission in the channel").then_some(())
    });
    rig.discord.deny(rig.channel, 0);
    rig.ask("sim:echo=two");
    rig.wait_for_text("You said two.");
    assert_eq!(rig.n_sent(), 1);
}

#[test]
fn a_bot_that_may_not_read_messages_is_told_what_to_do() {
    let rig = Rig::unready(|rig, _| rig.discord.forbid_content());
    until("the log says it", || rig.log().contains("Message Content Intent").then_some(()));
    let line = rig.log().lines().find(|line| line.contains("Message Content")).unwrap().to_owned();
    assert!(line.contains(" error ") && line.contains("developer portal"), "{line}");
    assert_eq!(rig.discord.identifies(), 1);
}

#[test]
fn many_who_talk_at_once_are_all_answered_within_what_discord_allows() {
    const TALKS: usize = 24;
    let start = Instant::now();
    let rig = Rig::with(|_, settings| settings["discord"]["requests_per_second"] = json!(10));
    let channels: Vec<u64> = (0..TALKS)
        .map(|number| rig.discord.channel(rig.guild, &format!("stall-{number}")))
        .collect();
    for channel in &channels {
        let user = rig.discord.user("guest");
        rig.discord.say(*channel, user, &rig.mentioning("sim:slow=300 tell me all about it"));
    }
    for channel in &channels {
        let said = rig.wait_for("an answer", *channel, |said| {
            said.last().is_some_and(|message| message.content.ends_with("characters."))
        });
        assert_eq!(said.len(), 1, "{said:?}");
    }
    assert_eq!(rig.discord.limited(), 0);
    // Some may arrive together on a machine that is busy, but not more of them.
    let (n_requests, took) = (rig.discord.requests().len(), start.elapsed().as_secs_f64());
    let most = took * 10.0 + 1.0;
    assert!((n_requests as f64) <= most, "{n_requests} requests in {took} seconds");
}

#[test]
fn an_answer_that_left_though_nobody_heard_so_is_not_sent_again() {
    let rig = Rig::start();
    let path = format!("POST /channels/{}/messages", rig.channel);
    rig.discord.plan(1, &path, Fault::DoneButFailed(502));
    rig.ask("sim:echo=once");
    rig.wait_for_text("You said once.");
    rig.ask("sim:echo=next");
    rig.wait_for_text("You said next.");
    assert_eq!(rig.n_sent(), 2);
}

#[test]
fn a_draft_of_which_nobody_heard_becomes_the_answer() {
    let rig = Rig::start();
    let path = format!("POST /channels/{}/messages", rig.channel);
    rig.discord.plan(1, &path, Fault::DoneButFailed(502));
    rig.ask("sim:slow=600 tell me all about it");
    let answer = rig.wait_for_text("Your prompt has");
    assert!(answer.content.ends_with("characters."), "{}", answer.content);
    assert_eq!(rig.n_sent(), 1);
}

#[test]
fn a_file_that_is_too_large_for_discord_does_not_cost_the_answer() {
    let rig = Rig::start();
    let large = std::fs::File::create(rig.place.work().join("large.bin")).unwrap();
    large.set_len(12_000_000).unwrap();
    rig.ask("sim:echo=MEDIA:large.bin");
    let answer = rig.wait_for_text("was not sent");
    assert!(answer.content.contains("large.bin"), "{}", answer.content);
}

#[test]
fn what_there_is_of_an_answer_stays_when_it_is_stopped() {
    let rig = Rig::start();
    rig.ask("sim:tool sim:slow=2000 tell me all about it");
    rig.wait_for("the start of an answer", rig.channel, |said| {
        said.iter().any(|message| message.content.contains("This is Ostler"))
    });
    rig.ask("stop");
    rig.wait_for_text("⏹ Stopped.");
    let said = rig.wait_for("a clean draft", rig.channel, |said| {
        said.iter().all(|message| !message.content.contains("🔧"))
    });
    assert!(said[0].content.contains("This is Ostler"), "{said:?}");
}
