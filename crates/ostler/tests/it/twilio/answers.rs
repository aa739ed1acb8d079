//! What people get.

use super::rig::{ANN, Rig};
use crate::twilio_double::{ChangeKind, Purpose};

#[test]
fn who_writes_by_whatsapp_sees_it_type_and_gets_an_answer() {
    let rig = Rig::start();
    let asked = rig.ask("sim:echo=hay");
    let told = rig.twilio.told(&asked).unwrap();
    let answered = told.answered.unwrap();
    assert_eq!((answered.status, told.purpose), (200, Purpose::Incoming));
    assert!(answered.body.ends_with("<Response></Response>"), "{}", answered.body);
    let answer = rig.wait_for_text(&rig.ann, "You said hay.");
    assert_eq!(answer.from, rig.own);
    let typed = rig.twilio.changes().into_iter().find(|it| it.kind == ChangeKind::Typed).unwrap();
    assert_eq!(typed.sid, asked);
}

#[test]
fn who_writes_by_sms_is_answered_by_sms() {
    let rig = Rig::start();
    rig.twilio.say(ANN, &rig.sms, "sim:echo=oats");
    let answer = rig.wait_for_text(ANN, "You said oats.");
    assert_eq!(answer.from, rig.sms);
    // The two are conversations of their own.
    rig.ask("sim:history one");
    rig.wait_for_text(&rig.ann, "so far: 1.");
    rig.ask("sim:history two");
    rig.wait_for_text(&rig.ann, "so far: 2.");
}
