//! What must not get lost or doubled, whatever breaks.

use super::rig::Rig;
use crate::support::LIMIT;

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
    rig.ask("sim:slow=500 tell me");
    rig.wait_for("the start of an answer", rig.channel, |said| !said.is_empty());
    rig.discord.cut();
    rig.wait_for_text("Your prompt has");
    assert_eq!(rig.n_sent(), 1);
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
fn an_answer_that_left_though_nobody_heard_so_is_not_sent_again() {
    let rig = Rig::start();
    let path = format!("POST /channels/{}/messages", rig.channel);
    rig.discord.plan(1, &path, crate::discord_double::Fault::DoneButFailed(502));
    rig.ask("sim:echo=once");
    rig.wait_for_text("You said once.");
    rig.ask("sim:echo=next");
    rig.wait_for_text("You said next.");
    assert_eq!(rig.n_sent(), 2);
}

#[test]
fn a_gateway_that_is_killed_answers_once_and_in_the_same_message() {
    let mut rig = Rig::start();
    rig.ask("sim:slow=700 tell me all about it");
    rig.wait_for("the start of an answer", rig.channel, |said| !said.is_empty());
    rig.crash_and_start();
    rig.wait_for_text("Your prompt has");
    assert_eq!(rig.discord.messages(rig.channel).len(), 2);
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
fn a_draft_of_which_nobody_heard_becomes_the_answer() {
    let rig = Rig::start();
    let path = format!("POST /channels/{}/messages", rig.channel);
    rig.discord.plan(1, &path, crate::discord_double::Fault::DoneButFailed(502));
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
