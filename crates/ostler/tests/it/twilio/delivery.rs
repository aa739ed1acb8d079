//! What becomes of messages after Twilio took them.

use serde_json::json;

use super::rig::{ANN, Rig};
use crate::{
    support::{LIMIT, until},
    twilio_double::{Fault, Message, Purpose, Request, Status, encoded},
};

const PATH: &str = "/twilio/status";

/// Returns what Twilio says of a message.
fn form(rig: &Rig, message: &Message, status: &str, code: Option<&str>) -> Vec<(String, String)> {
    let account = rig.twilio.account_sid();
    let mut said = vec![
        ("MessageSid", message.sid.as_str()),
        ("MessageStatus", status),
        ("AccountSid", &account),
        ("From", &message.from),
        ("To", &message.to),
    ];
    said.extend(code.map(|code| ("ErrorCode", code)));
    said.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Tells what became of a message, as Twilio does.
fn tell(rig: &Rig, message: &Message, status: &str, code: Option<&str>) -> u16 {
    let said = form(rig, message, status, code);
    let signature = rig.twilio.sign(&format!("{}{PATH}", rig.url), &said);
    rig.call(PATH, Some(&signature), encoded(&said)).0
}

/// Returns what the audit says of messages that did not arrive.
fn audit(rig: &Rig) -> Vec<String> {
    rig.store("SELECT detail FROM audit WHERE action = 'reply.undelivered'")
}

/// Returns how messages to Ann stand, as the store has it.
fn deliveries(rig: &Rig) -> Vec<String> {
    rig.store("SELECT coalesce(delivery, '?') FROM posts ORDER BY posted_at")
}

/// Waits until the gateway was told that a message was read.
fn wait_until_read(rig: &Rig, message: &Message) {
    rig.twilio.wait_for("it is read", LIMIT, |world| {
        world
            .posts_of(&message.sid, Purpose::Status)
            .any(|it| it.param("MessageStatus") == Some("read"))
            .then_some(())
    });
}

#[test]
fn what_is_told_twice_late_forged_or_of_nobodys_message_changes_nothing() {
    let rig = Rig::start();
    rig.ask("sim:echo=hay");
    let answer = rig.wait_for_text(&rig.ann, "You said hay.");
    wait_until_read(&rig, &answer);
    // What is told before that is of nobody's message.
    rig.wait_until_noted();
    for status in ["sent", "delivered", "read", "queued", "strange"] {
        assert_eq!(tell(&rig, &answer, status, None), 200);
    }
    let forged = form(&rig, &answer, "undelivered", Some("30003"));
    assert_eq!(rig.call(PATH, Some("AAAA"), encoded(&forged)).0, 403);
    let mut unknown = answer.clone();
    unknown.sid = format!("SM{:032x}", 7);
    assert_eq!(tell(&rig, &unknown, "delivered", None), 200);
    assert_eq!(tell(&rig, &unknown, "undelivered", Some("30003")), 200);
    let mut strange = answer;
    "x".clone_into(&mut strange.sid);
    assert_eq!(tell(&rig, &strange, "delivered", None), 400);
    rig.ask("sim:echo=next");
    rig.wait_for_text(&rig.ann, "You said next.");
    assert_eq!(rig.texts(&rig.ann).len(), 2);
    assert_eq!(audit(&rig), Vec::<String>::new());
    assert_eq!(deliveries(&rig)[0], "read");
}

#[test]
fn the_part_that_did_not_arrive_for_now_is_sent_again_and_no_other() {
    let rig = Rig::start();
    rig.twilio.walk_to(Status::Sent);
    let words: String = (0..600).map(|number| format!("w{number:04}-")).collect();
    rig.ask(&format!("sim:echo={words}"));
    let parts = rig.wait_for("three parts", &rig.ann, |sent| sent.len() == 3);
    // Twice, and the second one as well: each of them goes once more.
    for part in &parts[..2] {
        for _ in 0..2 {
            assert_eq!(tell(&rig, part, "undelivered", Some("30003")), 200);
        }
    }
    rig.wait_for_texts(&rig.ann, 5);
    rig.ask("sim:echo=end");
    rig.wait_for_text(&rig.ann, "You said end.");
    let texts = rig.texts(&rig.ann);
    assert_eq!(texts.len(), 6, "{texts:#?}");
    assert_eq!(texts[3..5], texts[..2], "{texts:#?}");
    // What is told late of the first try is of no message any more.
    assert_eq!(tell(&rig, &parts[0], "undelivered", Some("21610")), 200);
    assert_eq!(audit(&rig), Vec::<String>::new());
}

#[test]
fn what_never_arrives_is_told_to_the_operator_and_can_be_sent_again() {
    let rig = Rig::start();
    rig.twilio.doom(&rig.ann, 63024);
    rig.ask("sim:echo=hay");
    let listed = rig.wait_for_undelivered("has no WhatsApp");
    assert_eq!(rig.texts(&rig.ann).len(), 1);
    assert!(audit(&rig).concat().contains("63024"), "{:?}", audit(&rig));
    until("the log says so", || {
        let is_it = |line: &str| line.contains(" error ") && line.contains("63024");
        rig.log().lines().any(is_it).then_some(())
    });
    rig.twilio.spare(&rig.ann);
    let id = listed.split_whitespace().find(|word| word.starts_with("out_")).unwrap().to_owned();
    let again = rig.place.run(&["queue", "undelivered", "--retry", &id]);
    assert_eq!(again.code, Some(0), "{}{}", again.stdout, again.stderr);
    let texts = rig.wait_for_texts(&rig.ann, 2);
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn a_failure_that_is_told_before_the_message_is_known_is_not_missed() {
    let rig = Rig::start();
    // The double tells of it before it answers who sent it.
    rig.twilio.plan_sends(1, Fault::Held);
    rig.twilio.doom(&rig.ann, 63024);
    rig.ask("sim:echo=hay");
    rig.twilio.wait_for("the failure", LIMIT, |world| {
        let sent = world.messages_to(&rig.ann);
        sent.iter().any(|it| it.error == Some(63024)).then_some(())
    });
    rig.twilio.answer_held();
    rig.wait_for_undelivered("has no WhatsApp");
}

#[test]
fn what_is_told_out_of_order_neither_goes_back_nor_fails_what_arrived() {
    let rig = Rig::start();
    // The double tells nothing by itself.
    rig.twilio.walk_to(Status::Queued);
    for (told, ends) in [
        (&["delivered", "sent", "sending", "queued"][..], "delivered"),
        (&["sending", "delivered", "undelivered", "failed"][..], "delivered"),
        (&["read", "delivered", "undelivered"][..], "read"),
    ] {
        rig.ask(&format!("sim:echo={}", told.join("-")));
        let answer = rig.wait_for_text(&rig.ann, &format!("You said {}.", told.join("-")));
        rig.wait_until_noted();
        for status in told {
            let code = matches!(*status, "undelivered" | "failed").then_some("30003");
            assert_eq!(tell(&rig, &answer, status, code), 200);
        }
        // Each was dealt with before it was answered.
        assert_eq!(deliveries(&rig).last().map(String::as_str), Some(ends), "{told:?}");
    }
    rig.ask("sim:echo=end");
    rig.wait_for_text(&rig.ann, "You said end.");
    assert!(!rig.log().contains("did not arrive"), "{}", rig.log());
    until("nothing is left to send", || {
        (rig.store("SELECT DISTINCT state FROM outbox") == ["sent"]).then_some(())
    });
    assert_eq!(rig.texts(&rig.ann).len(), 4);
}

#[test]
fn more_at_once_than_the_account_may_do_is_done_later_and_once() {
    let rig = Rig::with(|_, settings| settings["twilio"]["allow_from"] = json!(["*"]));
    let people: Vec<String> = (1..=5).map(|it| format!("whatsapp:+1555222000{it}")).collect();
    // One request is under way for as long as the test wants it to be.
    rig.twilio.plan_sends(1, Fault::Held);
    rig.ask("sim:echo=held");
    rig.wait_for_text(&rig.ann, "You said held.");
    rig.twilio.limit(1);
    for person in &people {
        rig.twilio.say(person, &rig.own, "sim:echo=once");
    }
    let is_refused = |it: &Request| it.path.ends_with("/Messages.json") && it.status == 429;
    rig.twilio.wait_for("messages are refused", LIMIT, |world| {
        (world.requests().iter().filter(|it| is_refused(it)).count() >= people.len()).then_some(())
    });
    rig.twilio.answer_held();
    for person in people.iter().chain([&rig.ann]) {
        rig.wait_for("the answer", person, |sent| !sent.is_empty());
        assert_eq!(rig.texts(person).len(), 1);
    }
}

#[test]
fn whoever_twilio_does_not_let_be_written_to_gets_it_when_that_has_changed() {
    let rig = Rig::with(|rig, _| {
        rig.twilio.is_sandbox();
        rig.twilio.is_trial(&[]);
    });
    for (from, to, why) in [
        (&rig.ann as &str, &rig.own, "has not joined the sandbox"),
        (ANN, &rig.sms, "a trial account sends to verified numbers only"),
    ] {
        rig.twilio.say(from, to, "sim:echo=hay");
        let listed = rig.wait_for_undelivered(why);
        let line = listed.lines().find(|line| line.contains(why)).unwrap();
        let id = line.split_whitespace().find(|word| word.starts_with("out_")).unwrap();
        if from == ANN {
            rig.twilio.is_trial(&[ANN]);
        } else {
            rig.twilio.say(from, to, "join calm-horse");
        }
        let again = rig.place.run(&["queue", "undelivered", "--retry", id]);
        assert_eq!(again.code, Some(0), "{}{}", again.stdout, again.stderr);
        rig.wait_for("it is delivered", from, |sent| {
            let arrived = |it: &Message| it.error.is_none() && it.status >= Status::Delivered;
            sent.iter().any(|it| it.body.contains("You said hay.") && arrived(it))
        });
    }
}
