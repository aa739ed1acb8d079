//! WhatsApp takes nothing of one's own for somebody who has not written for a day.

use std::fs;

use serde_json::json;

use super::rig::Rig;
use crate::{
    support::until,
    twilio_double::{Fault, Message, Status},
};

/// Says something to Ann that she did not ask for.
fn unasked(rig: &Rig, text: &str) {
    let to = format!("whatsapp:{}", super::rig::ANN);
    let said = rig.place.run(&["send", "--from-agent", "--to", &to, text]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
}

/// Starts a gateway with a template.
fn with_template() -> (Rig, String) {
    let mut template = String::new();
    let rig = Rig::with(|rig, settings| {
        template = rig.twilio.template("There is something for you.");
        settings["twilio"]["window_template"] = json!(template);
    });
    (rig, template)
}

/// Asks something, and waits until the answer was read.
fn be_answered(rig: &Rig) {
    rig.ask("sim:echo=open");
    rig.wait_for("an answer that is read", &rig.ann, |sent| {
        sent.iter().any(|it| it.body.contains("You said open.") && it.status == Status::Read)
    });
}

#[test]
fn somebody_who_never_wrote_is_called_once_and_gets_all_when_he_writes() {
    let (rig, template) = with_template();
    unasked(&rig, "first hay");
    rig.wait_for_undelivered("it is sent when he writes");
    unasked(&rig, "then oats");
    until("both wait", || {
        let listed = rig.place.run(&["queue", "undelivered"]).stdout;
        (listed.matches("it is sent when he writes").count() == 2).then_some(())
    });
    let sent = rig.wait_for("the template", &rig.ann, |sent| !sent.is_empty());
    assert_eq!(sent.len(), 1, "{sent:#?}");
    assert_eq!(sent[0].content_sid.as_deref(), Some(template.as_str()));
    rig.ask("sim:echo=here");
    rig.wait_for_text(&rig.ann, "You said here.");
    let texts = rig.texts(&rig.ann);
    assert_eq!(texts.len(), 4, "{texts:#?}");
    assert_eq!((texts[1].as_str(), texts[2].as_str()), ("first hay", "then oats"));
    rig.ask("sim:echo=again");
    rig.wait_for_text(&rig.ann, "You said again.");
    assert_eq!(rig.texts(&rig.ann).len(), 5);
}

#[test]
fn a_window_that_is_found_closed_later_keeps_all_parts_of_the_answer() {
    let (rig, template) = with_template();
    let words: String = (0..600).map(|number| format!("w{number:04}-")).collect();
    be_answered(&rig);
    rig.twilio.close_window(&rig.ann);
    let long = format!("start {words} end");
    unasked(&rig, &long);
    rig.wait_for("the template", &rig.ann, |sent| {
        sent.iter().any(|message| message.content_sid.as_deref() == Some(template.as_str()))
    });
    rig.wait_for_undelivered("it is sent when he writes");
    // As many parts as had left by then fail, and that is told.
    until("all callbacks were answered", || {
        let sent = rig.twilio.messages_to(&rig.ann);
        let mut parts = sent
            .iter()
            .filter(|it| it.content_sid.is_none() && !it.body.contains("You said open."));
        let n_parts = parts.clone().count();
        let told = rig.twilio.posts();
        let told = told.iter().filter(|it| it.param("ErrorCode") == Some("63016"));
        let is_over = parts.all(|it| it.status == Status::Undelivered);
        (is_over && n_parts > 0 && told.count() == n_parts).then_some(())
    });
    rig.ask("sim:echo=here");
    rig.wait_for_text(&rig.ann, "You said here.");
    let arrived: Vec<String> = rig
        .twilio
        .messages_to(&rig.ann)
        .into_iter()
        .filter(|it| it.status != Status::Undelivered)
        .map(|it| it.body)
        .collect();
    let all = arrived.concat();
    for number in 0..600 {
        assert_eq!(all.matches(&format!("w{number:04}")).count(), 1, "w{number:04}: {arrived:#?}");
    }
    let n_called = arrived.iter().filter(|text| text.contains("something for you")).count();
    assert_eq!(n_called, 1, "{arrived:#?}");
    assert!(arrived.last().unwrap().contains("You said here."), "{arrived:#?}");
}

#[test]
fn somebody_who_has_not_written_for_a_day_is_called_before_anything_is_refused() {
    let (rig, template) = with_template();
    be_answered(&rig);
    rig.store("UPDATE contacts SET heard_at = heard_at - 24 * 60 * 60 * 1000 RETURNING place");
    rig.twilio.close_window(&rig.ann);
    unasked(&rig, "hay");
    rig.wait_for_undelivered("it is sent when he writes");
    let sent = rig.wait_for("the template", &rig.ann, |sent| sent.len() == 2);
    assert_eq!(sent[1].content_sid.as_deref(), Some(template.as_str()));
    rig.ask("sim:echo=here");
    rig.wait_for_text(&rig.ann, "You said here.");
    let texts = rig.texts(&rig.ann);
    assert_eq!((texts.len(), texts[2].as_str()), (4, "hay"), "{texts:#?}");
}

#[test]
fn a_window_that_is_found_closed_when_something_is_sent_keeps_it() {
    let (rig, template) = with_template();
    be_answered(&rig);
    rig.twilio.close_window(&rig.ann);
    rig.twilio.plan_sends(1, Fault::Refuse(400, 63016));
    unasked(&rig, "hay");
    rig.wait_for_undelivered("it is sent when he writes");
    let sent = rig.wait_for("the template", &rig.ann, |sent| sent.len() == 2);
    assert_eq!(sent[1].content_sid.as_deref(), Some(template.as_str()));
    rig.ask("sim:echo=here");
    rig.wait_for_text(&rig.ann, "You said here.");
    assert_eq!(rig.texts(&rig.ann)[2], "hay");
}

#[test]
fn a_window_that_closes_before_the_file_of_an_answer_keeps_the_file() {
    let rig = Rig::start();
    fs::write(rig.place.work().join("bill.pdf"), "%PDF-1").unwrap();
    rig.twilio.plan_sends(1, Fault::Pass);
    rig.twilio.plan_sends(1, Fault::Refuse(400, 63016));
    rig.ask("sim:echo=MEDIA:bill.pdf");
    rig.wait_for_undelivered("it is sent when he writes");
    assert_eq!(rig.texts(&rig.ann).len(), 1);
    rig.ask("sim:echo=here");
    rig.wait_for_text(&rig.ann, "You said here.");
    let sent = rig.twilio.messages_to(&rig.ann);
    assert_eq!((sent.len(), sent[1].media_urls.len()), (3, 1), "{sent:#?}");
}

#[test]
fn what_waits_though_he_has_written_leaves() {
    let mut rig = Rig::start();
    unasked(&rig, "hay");
    rig.wait_for_undelivered("it is sent when he writes");
    // As if he had written after it was looked, and before it was noted that it waits.
    rig.store(
        "INSERT INTO contacts (channel, place, heard_at)
         VALUES ('whatsapp', '+15551110001', unixepoch() * 1000)
         ON CONFLICT (channel, place) DO UPDATE SET heard_at = excluded.heard_at
         RETURNING place",
    );
    rig.twilio.open_window(&rig.ann);
    // The next look comes with the next start.
    rig.crash();
    rig.start_again();
    rig.wait_for_text(&rig.ann, "hay");
}

#[test]
fn without_a_template_the_operator_is_told_what_to_do() {
    let rig = Rig::start();
    unasked(&rig, "hay");
    rig.wait_for_undelivered("it is sent when he writes");
    assert!(rig.log().contains("twilio.window_template names a template"), "{}", rig.log());
    assert_eq!(rig.texts(&rig.ann), Vec::<String>::new());
    rig.ask("sim:echo=here");
    rig.wait_for_text(&rig.ann, "You said here.");
    let texts = rig.texts(&rig.ann);
    assert_eq!((texts.len(), texts[0].as_str()), (2, "hay"), "{texts:#?}");
}

#[test]
fn a_template_that_twilio_does_not_take_costs_nobody_the_message() {
    let rig = Rig::with(|_, settings| {
        settings["twilio"]["window_template"] = json!("HX00000000000000000000000000000000");
    });
    unasked(&rig, "hay");
    rig.wait_for_undelivered("it is sent when he writes");
    assert!(rig.log().contains("check twilio.window_template"), "{}", rig.log());
    rig.ask("sim:echo=here");
    rig.wait_for_text(&rig.ann, "You said here.");
    assert_eq!(rig.texts(&rig.ann)[0], "hay");
}

#[test]
fn a_template_that_does_not_get_through_at_first_is_sent_once() {
    let (rig, template) = with_template();
    rig.twilio.plan_sends(2, Fault::Limit(Some(1)));
    unasked(&rig, "hay");
    rig.wait_for("the template", &rig.ann, |sent| {
        sent.iter().any(|message| message.content_sid.as_deref() == Some(template.as_str()))
    });
    assert_eq!(rig.twilio.look(|world| world.faults_left()), 0);
    assert_called_once(&rig, &["hay"]);
}

#[test]
fn a_template_that_may_have_been_sent_is_not_sent_again() {
    let (rig, _) = with_template();
    rig.twilio.plan_sends(1, Fault::DoneButFailed(503));
    unasked(&rig, "hay");
    rig.wait_for_undelivered("it is sent when he writes");
    unasked(&rig, "oats");
    assert_called_once(&rig, &["hay", "oats"]);
}

/// Lets Ann write once all of this waits for that, and asserts that she was called once
/// and got each of them once.
fn assert_called_once(rig: &Rig, waiting: &[&str]) {
    until("all of it waits", || {
        let listed = rig.place.run(&["queue", "undelivered"]).stdout;
        (listed.matches("it is sent when he writes").count() == waiting.len()).then_some(())
    });
    rig.ask("sim:echo=here");
    rig.wait_for_text(&rig.ann, "You said here.");
    let texts = rig.texts(&rig.ann);
    let n_called = texts.iter().filter(|text| text.contains("something for you")).count();
    assert_eq!(n_called, 1, "{texts:#?}");
    for text in waiting {
        assert_eq!(texts.iter().filter(|it| it == text).count(), 1, "{text}: {texts:#?}");
    }
}

#[test]
fn a_template_that_does_not_arrive_is_told_to_the_operator() {
    let (rig, _) = with_template();
    rig.twilio.doom(&rig.ann, 63024);
    unasked(&rig, "hay");
    until("the log says so", || {
        let is_it = |line: &str| line.contains(" error ") && line.contains("63024");
        rig.log().lines().any(is_it).then_some(())
    });
    assert_eq!(rig.texts(&rig.ann).len(), 1);
}

#[test]
fn who_was_not_reached_by_the_template_is_called_again_while_something_waits() {
    let (mut rig, template) = with_template();
    rig.twilio.doom(&rig.ann, 63010);
    unasked(&rig, "hay");
    until("the log says so", || {
        rig.log()
            .contains("the template did not arrive; it is sent again while a message waits")
            .then_some(())
    });
    rig.twilio.spare(&rig.ann);
    // Not before an hour has passed.
    rig.crash();
    rig.store("UPDATE contacts SET called_at = called_at - 3600000");
    rig.start_again();
    let sent = rig.wait_for("another call", &rig.ann, |sent| sent.len() == 2);
    let is_call = |message: &Message| message.content_sid.as_ref() == Some(&template);
    assert!(sent.iter().all(is_call), "{sent:#?}");
    rig.ask("sim:echo=here");
    rig.wait_for_text(&rig.ann, "hay");
    rig.wait_for_text(&rig.ann, "You said here.");
    assert_eq!(rig.texts(&rig.ann).len(), 4);
}

#[test]
fn a_template_that_whatsapp_has_not_approved_is_sent_once_and_the_operator_told_of_it() {
    let rig = Rig::with(|rig, settings| {
        let template = rig.twilio.template_not_approved("There is something for you.");
        settings["twilio"]["window_template"] = json!(template);
    });
    unasked(&rig, "hay");
    let named = || {
        let is_it = |line: &str| {
            line.contains(" error ")
                && line.contains("approved twilio.window_template")
                && line.contains("63016")
        };
        rig.log().lines().filter(|line| is_it(line)).count()
    };
    until("the log names the setting", || (named() == 1).then_some(()));
    unasked(&rig, "oats");
    until("both wait", || {
        let listed = rig.place.run(&["queue", "undelivered"]).stdout;
        (listed.matches("it is sent when he writes").count() == 2).then_some(())
    });
    let sent = rig.twilio.messages_to(&rig.ann);
    assert_eq!(sent.len(), 1, "{sent:#?}");
    assert_eq!(sent[0].error, Some(63016));
    assert_called_once(&rig, &["hay", "oats"]);
    assert_eq!(named(), 1);
}

#[test]
fn that_a_request_waits_for_its_reader_is_told_once_however_often_it_is_tried() {
    let rig = Rig::with(|_, settings| {
        settings["agent"]["permissions"] = json!("ask");
        // Also a slow machine has asked by then.
        settings["agent"]["ask_timeout"] = json!("10s");
    });
    rig.twilio.plan_sends(1, Fault::Refuse(400, 63016));
    rig.ask("sim:tool");
    // Until nobody has answered it, it is tried several times.
    rig.wait_for_undelivered("it is sent when he writes");
    for told in ["nobody sees what an agent asks", "waits until its reader writes"] {
        let log = rig.log();
        assert_eq!(log.lines().filter(|line| line.contains(told)).count(), 1, "{told}: {log}");
    }
    rig.ask("sim:echo=here");
    rig.wait_for_text(&rig.ann, "You said here.");
    assert_eq!(rig.texts(&rig.ann).len(), 2);
}
