//! What must not get lost or doubled, whatever Twilio answers.

use std::collections::BTreeSet;

use serde_json::json;

use super::rig::{ANN, Rig};
use crate::{
    support::{LIMIT, until},
    twilio_double::{ChangeKind, Fault, Request},
};

/// Asks something whose answer meets a fault, and something after it: both are
/// answered once, and in their order.
fn assert_survives(requests: usize, fault: Fault) {
    let rig = Rig::start();
    rig.twilio.plan_sends(requests, fault);
    rig.ask("sim:echo=once");
    rig.ask("sim:echo=next");
    rig.wait_for_text(&rig.ann, "You said next.");
    let texts = rig.texts(&rig.ann);
    assert_eq!(texts.len(), 2, "{fault:?}: {texts:#?}");
    assert!(texts[0].contains("You said once."), "{fault:?}: {texts:#?}");
    assert_eq!(rig.twilio.look(|world| world.faults_left()), 0);
}

#[test]
fn refusals_to_go_faster_delay_the_answer_and_nothing_else() {
    assert_survives(2, Fault::Limit(Some(1)));
    assert_survives(1, Fault::Limit(None));
}

#[test]
fn what_fails_at_twilio_is_sent_again() {
    assert_survives(2, Fault::Fail(500));
    assert_survives(2, Fault::Fail(503));
    assert_survives(2, Fault::Cut);
}

#[test]
fn what_was_sent_though_twilio_said_otherwise_is_not_sent_again() {
    assert_survives(1, Fault::DoneButFailed(502));
    assert_survives(1, Fault::DoneButFailed(500));
    assert_survives(1, Fault::DoneButCut);
}

#[test]
fn what_is_answered_late_is_not_sent_again() {
    let rig = Rig::start();
    rig.twilio.plan_sends(1, Fault::Held);
    rig.ask("sim:echo=once");
    rig.wait_for_text(&rig.ann, "You said once.");
    rig.ask("sim:echo=next");
    rig.twilio.answer_held();
    rig.wait_for_text(&rig.ann, "You said next.");
    assert_eq!(rig.texts(&rig.ann).len(), 2);
}

#[test]
fn what_was_sent_and_never_answered_is_not_sent_again() {
    assert_survives(1, Fault::Hang);
}

#[test]
fn an_answer_that_has_to_wait_holds_up_nobody_else() {
    let rig = Rig::start();
    // For as long as the test wants nothing goes to her, however often it is tried.
    rig.twilio.limit_to(&rig.ann, true);
    rig.ask("sim:echo=late");
    rig.twilio.wait_for("it is refused", LIMIT, |world| (world.limited() > 0).then_some(()));
    rig.twilio.say(&rig.bob, &rig.own, "sim:echo=soon");
    rig.wait_for_text(&rig.bob, "You said soon.");
    assert_eq!(rig.texts(&rig.ann), Vec::<String>::new());
    rig.twilio.limit_to(&rig.ann, false);
    rig.wait_for_text(&rig.ann, "You said late.");
}

#[test]
fn answers_of_the_same_words_are_told_apart() {
    let rig = Rig::start();
    for number in 1..=3 {
        rig.twilio.plan_sends(1, Fault::DoneButFailed(502));
        rig.ask("sim:echo=same");
        let sent = rig.wait_for("an answer", &rig.ann, |sent| sent.len() >= number);
        assert_eq!(sent.len(), number);
        // From here on the gateway knows which one it is.
        rig.wait_until_noted();
    }
    // The last one does not leave at first, and must not be taken for one of those.
    rig.twilio.plan_sends(1, Fault::Fail(500));
    rig.ask("sim:echo=same");
    rig.wait_for("the last answer", &rig.ann, |sent| sent.len() == 4);
    rig.ask("sim:echo=end");
    rig.wait_for_text(&rig.ann, "You said end.");
    let texts = rig.texts(&rig.ann);
    let n_same = texts.iter().filter(|text| text.contains("You said same.")).count();
    assert_eq!((n_same, texts.len()), (4, 5), "{texts:#?}");
    rig.wait_until_noted();
    let sent: BTreeSet<String> =
        rig.twilio.messages_to(&rig.ann).into_iter().map(|message| message.sid).collect();
    let noted: BTreeSet<String> = rig.store("SELECT message FROM posts").into_iter().collect();
    assert_eq!(noted, sent);
}

#[test]
fn a_request_of_which_nobody_heard_is_asked_once() {
    let rig = Rig::with(|_, settings| settings["agent"]["permissions"] = json!("ask"));
    rig.twilio.plan_sends(1, Fault::DoneButFailed(502));
    rig.ask("sim:tool");
    rig.wait_for_text(&rig.ann, "Permission to run a command");
    rig.twilio.wait_for("it is looked for", LIMIT, |world| {
        let is_it = |it: &&Request| {
            it.method == "GET"
                && it.path.contains("Messages.json")
                && it.path.contains("To=whatsapp%3A%2B1555")
        };
        (world.requests().iter().filter(is_it).count() >= 1).then_some(())
    });
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "It pretended to run");
    let texts = rig.texts(&rig.ann);
    assert_eq!(texts.len(), 2, "{texts:#?}");
}

#[test]
fn an_answer_that_is_looked_for_in_vain_waits_until_it_can_be() {
    let rig = Rig::start();
    rig.twilio.plan_sends(1, Fault::DoneButCut);
    rig.twilio.plan(2, "GET /2010-04-01/", Fault::Limit(Some(1)));
    rig.ask("sim:echo=once");
    rig.ask("sim:echo=next");
    rig.wait_for_text(&rig.ann, "You said next.");
    assert_eq!(rig.texts(&rig.ann).len(), 2, "{:#?}", rig.texts(&rig.ann));
}

#[test]
fn a_service_that_chooses_the_number_sends_once_too() {
    let rig = Rig::with(|rig, settings| {
        settings["twilio"]["messaging_service"] = json!(rig.twilio.messaging_service());
        settings["twilio"].as_object_mut().unwrap().remove("sms_from");
    });
    rig.twilio.plan_sends(1, Fault::DoneButCut);
    rig.twilio.say(ANN, &rig.sms, "sim:echo=oats");
    rig.twilio.say(ANN, &rig.sms, "sim:echo=next");
    rig.wait_for_text(ANN, "You said next.");
    let sent = rig.twilio.messages_to(ANN);
    assert_eq!(sent.len(), 2, "{sent:#?}");
    assert!(sent.iter().all(|message| message.messaging_service.is_some()));
}

#[test]
fn what_twilio_refuses_for_good_is_given_up_and_said_so() {
    let rig = Rig::start();
    for (code, words) in [(21211, "the number does not exist"), (21610, "has sent STOP")] {
        rig.twilio.plan_sends(1, Fault::Refuse(400, code));
        rig.ask("sim:echo=refused");
        rig.wait_for_undelivered(words);
        until("the log says so", || {
            rig.log()
                .lines()
                .any(|line| line.contains("given up") && line.contains(words))
                .then_some(())
        });
    }
    rig.ask("sim:echo=next");
    rig.wait_for_text(&rig.ann, "You said next.");
    assert_eq!(rig.texts(&rig.ann).len(), 1);
}

#[test]
fn credentials_that_are_not_taken_are_said_with_what_to_do() {
    let rig = Rig::start();
    rig.twilio.reject_credentials();
    rig.ask("sim:echo=kept");
    until("the log says it", || {
        let is_it = |line: &str| line.contains("does not take the login; check twilio.account_sid");
        rig.log().lines().any(is_it).then_some(())
    });
    assert_eq!(rig.twilio.messages_to(&rig.ann).len(), 0);
}

#[test]
fn of_a_turn_that_fails_or_is_stopped_nothing_is_sent_but_why() {
    let rig = Rig::start();
    rig.ask("sim:tool sim:slow=5000 tell me all about it");
    rig.twilio.wait_for("it types", LIMIT, |world| {
        world.changes().iter().any(|it| it.kind == ChangeKind::Typed).then_some(())
    });
    rig.ask("stop");
    rig.wait_for_text(&rig.ann, "⏹ Stopped.");
    rig.ask("sim:crash");
    rig.wait_for_text(&rig.ann, "⚠️");
    rig.ask("sim:echo=end");
    rig.wait_for_text(&rig.ann, "You said end.");
    let texts = rig.texts(&rig.ann);
    let [one, two, failed, answered] = &texts[..] else { panic!("{texts:#?}") };
    // What stops it is answered, and what was stopped, in one order or the other.
    let mut stopped = [one.as_str(), two];
    stopped.sort();
    assert_eq!(stopped, ["Stopped.", "⏹ Stopped."]);
    assert!(failed.starts_with("⚠️") && !failed.contains("This is Ostler"), "{texts:#?}");
    assert!(answered.contains("You said end."), "{texts:#?}");
}

#[test]
fn who_is_refused_is_told_once_and_not_answered_later() {
    let rig = Rig::with(|_, settings| {
        settings["gateway"]["max_queue_depth"] = json!(1);
        settings["agent"]["permissions"] = json!("ask");
    });
    // The agent is at work until somebody lets it go on.
    rig.ask("sim:tool sim:echo=one");
    rig.wait_for_text(&rig.ann, "Permission to run a command");
    rig.wait_until_noted();
    rig.ask("sim:echo=two");
    let refused = rig.ask("sim:echo=three");
    rig.wait_for_text(&rig.ann, "⚠️");
    rig.twilio.deliver_again(&refused);
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "You said two.");
    rig.twilio.deliver_again(&refused);
    rig.ask("sim:echo=four");
    rig.wait_for_text(&rig.ann, "You said four.");
    let texts = rig.texts(&rig.ann);
    let count = |what: &str| texts.iter().filter(|text| text.contains(what)).count();
    assert_eq!((count("⚠️"), count("You said three.")), (1, 0), "{texts:?}");
}
