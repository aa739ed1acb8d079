//! Who is let in, and who is not.

use serde_json::json;

use super::rig::{ANN, BOB, Rig};
use crate::{
    support::{LIMIT, pairing_code, until},
    twilio_double::{Attached, Inbound},
};

/// The number of somebody whom nobody knows.
const EVE: &str = "+15551110009";

/// Returns what was done for somebody, by any of the ways to him.
fn done_for(rig: &Rig, number: &str) -> usize {
    let changes = rig.twilio.changes();
    changes.iter().filter(|change| change.address.ends_with(number)).count()
}

/// Lets somebody write by both ways, and returns what Twilio calls it.
fn write(rig: &Rig, number: &str, text: &str) -> [String; 2] {
    let whatsapp = format!("whatsapp:{number}");
    [rig.twilio.say(&whatsapp, &rig.own, text), rig.twilio.say(number, &rig.sms, text)]
}

#[test]
fn nobody_gets_anything_who_is_not_listed() {
    let rig = Rig::with(|_, settings| settings["twilio"]["allow_from"] = json!([BOB]));
    for text in ["hello", "/status", "stop", "1", "ostler /restart", ""] {
        for sid in write(&rig, ANN, text) {
            let told = rig.twilio.told(&sid).unwrap();
            assert_eq!(told.answered.unwrap().status, 200);
        }
    }
    let picture = Attached::new("image/png", b"\x89PNG\r\n\x1a\n");
    rig.hand_in(|message| message.with(picture));
    rig.twilio.say(&rig.bob, &rig.own, "sim:echo=me");
    rig.wait_for_text(&rig.bob, "You said me.");
    assert_eq!(done_for(&rig, ANN), 0, "{:?}", rig.twilio.changes());
    let typed = rig.twilio.requests().into_iter().filter(|it| it.path.contains("Typing"));
    assert_eq!(typed.count(), 1);
}

#[test]
fn by_default_that_is_everybody() {
    let rig = Rig::with(|_, settings| {
        settings["twilio"].as_object_mut().unwrap().remove("allow_from");
        settings["twilio"]["owners"] = json!([BOB]);
    });
    for number in [ANN, EVE] {
        write(&rig, number, "hello");
    }
    let group = rig.group();
    rig.twilio.say_in_group(&group, &rig.ann, "ostler hello");
    // Whatever they would be told has left before an owner has his answer. What he writes
    // by WhatsApp is for the group.
    rig.twilio.say(BOB, &rig.sms, "sim:echo=me");
    rig.wait_for_text(BOB, "You said me.");
    for number in [ANN, EVE] {
        assert_eq!(done_for(&rig, number), 0, "{:?}", rig.twilio.changes());
    }
    assert!(rig.twilio.said_in(&group).is_empty());
    assert!(rig.log().contains("a stranger was not let in"), "{}", rig.log());
}

#[test]
fn a_star_is_everybody() {
    let rig = Rig::with(|_, settings| settings["twilio"]["allow_from"] = json!(["*"]));
    write(&rig, EVE, "sim:echo=in");
    rig.wait_for_text(EVE, "You said in.");
    rig.wait_for_text(&format!("whatsapp:{EVE}"), "You said in.");
}

/// Returns the code that somebody was sent.
fn code(rig: &Rig, whom: &str) -> String {
    pairing_code(&rig.wait_for_text(whom, "ostler pairing approve ").body)
}

/// Runs a command about pairings, which succeeds.
fn pairing(rig: &Rig, args: &[&str]) -> String {
    let args: Vec<&str> = ["pairing"].iter().chain(args).copied().collect();
    let outcome = rig.place.run(&args);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.stdout
}

#[test]
fn a_stranger_gets_a_code_and_is_let_in_by_it() {
    let rig = Rig::with(|_, settings| settings["twilio"]["pairing"] = json!(true));
    let eve = format!("whatsapp:{EVE}");
    rig.twilio.hand_in(&Inbound::new(&eve, &rig.own, "hello").by("Eve"));
    let code = code(&rig, &eve);
    assert!(pairing(&rig, &["list"]).contains(EVE));
    pairing(&rig, &["approve", &code]);
    rig.twilio.say(&eve, &rig.own, "sim:echo=in");
    rig.wait_for_text(&eve, "You said in.");
    // Whoever has his number has not his WhatsApp.
    rig.twilio.say(EVE, &rig.sms, "sim:echo=sms");
    rig.wait_for_text(EVE, "ostler pairing approve ");
    // In a group he is who he is.
    let group = rig.twilio.group("stable", &[&eve, &rig.ann]);
    rig.twilio.say_in_group(&group, &eve, "ostler sim:echo=there");
    rig.wait_for_said(&group, "You said there.");
}

#[test]
fn who_was_rejected_gets_nothing_any_more() {
    let rig = Rig::with(|_, settings| settings["twilio"]["pairing"] = json!(true));
    let eve = format!("whatsapp:{EVE}");
    rig.twilio.say(&eve, &rig.own, "hello");
    let code = code(&rig, &eve);
    pairing(&rig, &["reject", &code]);
    rig.twilio.say(&eve, &rig.own, "please");
    rig.ask("sim:echo=me");
    rig.wait_for_text(&rig.ann, "You said me.");
    let sent = rig.twilio.messages_to(&eve);
    assert_eq!(sent.len(), 1, "{sent:?}");
}

#[test]
fn in_a_group_nobody_gets_a_code() {
    let rig = Rig::with(|_, settings| settings["twilio"]["pairing"] = json!(true));
    let eve = format!("whatsapp:{EVE}");
    let group = rig.twilio.group("stable", &[&eve, &rig.ann]);
    rig.twilio.say_in_group(&group, &eve, "ostler hello");
    rig.twilio.say_in_group(&group, &rig.ann, "ostler sim:echo=me");
    rig.wait_for_said(&group, "You said me.");
    assert_eq!(rig.twilio.said_in(&group).len(), 1);
    assert!(rig.twilio.messages_to(&eve).is_empty());
}

#[test]
fn whoever_writes_too_often_is_told_once_and_waits() {
    let rig = Rig::with(|_, settings| settings["twilio"]["messages_per_minute"] = json!(2));
    let first = rig.ask("sim:echo=one");
    rig.wait_for_text(&rig.ann, "You said one.");
    for _ in 0..3 {
        rig.twilio.deliver_again(&first);
    }
    rig.ask("sim:echo=two");
    rig.wait_for_text(&rig.ann, "You said two.");
    rig.ask("sim:echo=three");
    rig.wait_for_text(&rig.ann, "too fast");
    rig.ask("sim:echo=four");
    rig.twilio.say(&rig.bob, &rig.own, "sim:echo=bob");
    rig.wait_for_text(&rig.bob, "You said bob.");
    assert_eq!(rig.twilio.messages_to(&rig.ann).len(), 3);
}

#[test]
fn an_owner_can_have_the_gateway_started_again_and_it_goes_on_once() {
    let rig = Rig::with(|_, settings| settings["twilio"]["owners"] = json!([ANN]));
    rig.ask("sim:history one");
    rig.wait_for_text(&rig.ann, "so far: 1.");
    let asked = rig.ask("/restart");
    rig.wait_for_text(&rig.ann, "I am starting again");
    until("another beginning", || (rig.log().matches("ready").count() > 1).then_some(()));
    rig.twilio.deliver_again(&asked);
    rig.ask("sim:history two");
    rig.wait_for_text(&rig.ann, "so far: 2.");
    let sent = rig.twilio.messages_to(&rig.ann);
    let n_told = sent.iter().filter(|it| it.body.contains("I am starting again")).count();
    assert_eq!(n_told, 1, "{sent:?}");
}

#[test]
fn nobody_else_can() {
    let rig = Rig::with(|_, settings| settings["twilio"]["owners"] = json!([BOB]));
    rig.ask("/restart");
    rig.wait_for_text(&rig.ann, "Only an owner may");
    rig.ask("sim:echo=on");
    rig.wait_for_text(&rig.ann, "You said on.");
    rig.twilio.wait_for("nothing waits", LIMIT, |world| (world.under_way() == 0).then_some(()));
}
