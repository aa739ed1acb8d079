//! Gateways that end in the middle of something, and those that go on with it.

use serde_json::json;

use super::rig::Rig;
use crate::{
    support::LIMIT,
    twilio_double::{ChangeKind, Fault},
};

/// Waits until so many sends were answered with a status; 0 is no answer at all.
fn wait_for_sends(rig: &Rig, status: u16, at_least: usize) {
    rig.twilio.wait_for("sends", LIMIT, |world| {
        let sends = world.requests().iter().filter(|it| {
            it.method == "POST" && it.path.ends_with("/Messages.json") && it.status == status
        });
        (sends.count() >= at_least).then_some(())
    });
}

/// Asks for one thing more, and makes sure that everybody got this many messages.
fn assert_in_all(rig: &Rig, count: usize) {
    rig.ask("sim:echo=end");
    rig.wait_for_text(&rig.ann, "You said end.");
    let texts = rig.texts(&rig.ann);
    assert_eq!(texts.len(), count, "{texts:#?}");
}

#[test]
fn an_answer_that_was_not_sent_before_a_kill_is_sent_after_it() {
    let mut rig = Rig::start();
    rig.twilio.plan_sends(1000, Fault::Fail(503));
    rig.ask("sim:echo=kept");
    wait_for_sends(&rig, 503, 2);
    rig.crash();
    rig.twilio.forget_faults();
    rig.start_again();
    rig.wait_for_text(&rig.ann, "You said kept.");
    assert_in_all(&rig, 2);
}

#[test]
fn an_answer_that_was_sent_before_a_kill_and_not_noted_is_there_once() {
    let mut rig = Rig::start();
    // Once before, so that it must not be taken for that.
    rig.ask("sim:echo=once");
    rig.wait_for_text(&rig.ann, "You said once.");
    rig.twilio.plan_sends(1, Fault::Hang);
    rig.ask("sim:echo=once");
    wait_for_sends(&rig, 0, 1);
    rig.crash();
    rig.start_again();
    assert_in_all(&rig, 3);
}

#[test]
fn what_was_said_in_a_group_before_a_kill_and_not_noted_is_there_once() {
    let mut group = String::new();
    let mut rig = Rig::with(|rig, settings| {
        group = rig.group();
        settings["twilio"]["groups"] = json!([group]);
    });
    let say = |rig: &Rig, text: &str| {
        rig.twilio.say_in_group(&group, &rig.ann, &format!("ostler sim:echo={text}"));
    };
    say(&rig, "once");
    rig.wait_for_said(&group, "You said once.");
    let path = format!("POST /v1/Conversations/{group}/Messages");
    rig.twilio.plan(1, &path, Fault::Hang);
    say(&rig, "once");
    rig.twilio
        .wait_for("it is said", LIMIT, |world| (world.said_in(&group).len() == 2).then_some(()));
    rig.crash();
    rig.start_again();
    say(&rig, "end");
    rig.wait_for_said(&group, "You said end.");
    assert_eq!(rig.twilio.said_in(&group).len(), 3, "{:#?}", rig.twilio.said_in(&group));
}

#[test]
fn an_answer_that_was_begun_before_a_kill_and_not_sent_is_sent() {
    let mut rig = Rig::start();
    rig.ask("sim:echo=once");
    rig.wait_for_text(&rig.ann, "You said once.");
    // Nobody heard, and nothing has left.
    rig.twilio.plan_sends(1000, Fault::Cut);
    rig.ask("sim:echo=once");
    wait_for_sends(&rig, 0, 1);
    rig.crash();
    rig.twilio.forget_faults();
    rig.start_again();
    rig.wait_for_texts(&rig.ann, 2);
    assert_in_all(&rig, 3);
}

#[test]
fn a_turn_that_a_kill_interrupts_is_answered_once() {
    let mut rig = Rig::start();
    rig.ask("sim:slow=1500 tell me all about it");
    rig.twilio.wait_for("it types", LIMIT, |world| {
        world.changes().iter().any(|it| it.kind == ChangeKind::Typed).then_some(())
    });
    rig.crash();
    rig.start_again();
    rig.wait_for_text(&rig.ann, "Your prompt has");
    assert_in_all(&rig, 2);
}

#[test]
fn a_long_answer_goes_on_after_its_first_part() {
    let mut rig = Rig::start();
    let words: String = (0..600).map(|number| format!("w{number:04}-")).collect();
    // The first part leaves; the second may have.
    rig.twilio.plan_sends(1, Fault::Pass);
    rig.twilio.plan_sends(1, Fault::Hang);
    rig.ask(&format!("sim:echo={words}"));
    wait_for_sends(&rig, 0, 1);
    rig.crash();
    rig.start_again();
    let texts = rig.wait_for_texts(&rig.ann, 3);
    let all = texts.concat();
    for number in 0..600 {
        assert_eq!(all.matches(&format!("w{number:04}")).count(), 1, "w{number:04}: {texts:#?}");
    }
    assert_in_all(&rig, texts.len() + 1);
}

#[test]
fn nothing_gets_lost_or_doubled_however_often_it_is_killed() {
    const KILLS: usize = 10;
    let mut rig = Rig::with(|_, settings| {
        settings["twilio"]["messages_per_minute"] = json!(1000);
    });
    let mut asked = 0;
    for kill in 0..KILLS {
        for _ in 0..3 {
            rig.ask(&format!("sim:echo=m{asked:02}"));
            asked += 1;
        }
        // At another moment each time: by how many answers there were.
        let enough = kill.min(rig.texts(&rig.ann).len() + 1);
        rig.wait_for_texts(&rig.ann, enough);
        rig.crash();
        // Nobody is there to be called.
        rig.ask(&format!("sim:echo=m{asked:02}"));
        asked += 1;
        rig.start_again();
    }
    let all = rig.wait_for("all answers", &rig.ann, |sent| {
        (0..asked).all(|number| {
            sent.iter().any(|message| message.body.contains(&format!("You said m{number:02}.")))
        })
    });
    let all: Vec<String> = all.into_iter().map(|message| message.body).collect();
    for number in 0..asked {
        let text = format!("You said m{number:02}.");
        assert_eq!(all.concat().matches(&text).count(), 1, "{text}: {all:#?}");
    }
    assert_in_all(&rig, asked + 1);
}

#[test]
fn a_gateway_that_is_stopped_while_twilio_does_not_answer_leaves_one_answer() {
    let mut rig = Rig::start();
    rig.twilio.plan_sends(1, Fault::Hang);
    rig.ask("sim:echo=once");
    wait_for_sends(&rig, 0, 1);
    assert_eq!(rig.daemon.take().unwrap().stop(), Some(0));
    rig.start_again();
    assert_in_all(&rig, 2);
}
