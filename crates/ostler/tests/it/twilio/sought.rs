//! What may have been sent is looked for before it is sent again, whatever Twilio made
//! of it.

use std::time::Duration;

use serde_json::json;

use super::rig::{ANN, Rig};
use crate::twilio_double::Fault;

const HOUR: Duration = Duration::from_secs(3600);

/// A gateway whose account is otherwise than usual, with a group.
fn rig(change: impl Fn(&Rig)) -> (Rig, String) {
    let mut group = String::new();
    let rig = Rig::with(|rig, settings| {
        change(rig);
        // Whoever is in it writes to the number as if he wrote to it.
        group = rig.twilio.group("stable", &[&rig.bob]);
        settings["twilio"]["groups"] = json!([group]);
    });
    (rig, group)
}

/// Lets a connection break that brought a message, and asserts that it comes once: by
/// WhatsApp, by SMS and in a group.
fn assert_found(change: impl Fn(&Rig)) {
    let (rig, group) = rig(change);
    for (from, to) in [(&rig.ann as &str, &rig.own), (ANN, &rig.sms)] {
        rig.twilio.plan_sends(1, Fault::DoneButCut);
        rig.twilio.say(from, to, "sim:echo=once");
        rig.twilio.say(from, to, "sim:echo=next");
        rig.wait_for_text(from, "You said next.");
        let texts = rig.texts(from);
        assert_eq!(texts.len(), 2, "{texts:#?}");
        assert!(texts[0].contains("You said once."), "{texts:#?}");
    }
    let path = format!("POST /v1/Conversations/{group}/Messages");
    rig.twilio.plan(1, &path, Fault::DoneButCut);
    for text in ["once", "next"] {
        rig.twilio.say_in_group(&group, &rig.bob, &format!("ostler sim:echo={text}"));
    }
    rig.wait_for_said(&group, "You said next.");
    assert_eq!(rig.twilio.said_in(&group).len(), 2, "{:#?}", rig.twilio.said_in(&group));
    assert_eq!(rig.twilio.look(|world| world.faults_left()), 0);
}

#[test]
fn what_a_trial_account_sent_is_found_behind_the_words_of_twilios() {
    assert_found(|rig| rig.twilio.is_trial(&[ANN]));
}

#[test]
fn what_was_sent_is_found_though_the_clock_is_fast() {
    assert_found(|rig| rig.twilio.clock_is_behind(HOUR));
}

#[test]
fn what_a_trial_account_sent_is_found_though_the_clock_is_fast() {
    assert_found(|rig| {
        rig.twilio.is_trial(&[ANN]);
        rig.twilio.clock_is_behind(HOUR);
    });
}
