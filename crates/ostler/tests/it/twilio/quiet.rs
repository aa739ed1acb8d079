//! What must not be in the log: what people write, and what opens doors.

use serde_json::json;

use super::rig::Rig;
use crate::{
    support::{pairing_code, until},
    twilio_double::{Fault, Inbound, encoded},
};

#[test]
fn the_log_has_neither_words_of_people_nor_secrets() {
    let rig = Rig::with(|_, settings| {
        settings["gateway"]["log_level"] = json!("debug");
        settings["twilio"]["pairing"] = json!(true);
        settings["twilio"]["messages_per_minute"] = json!(1000);
    });
    // Each of them has the word in it, and each goes another way.
    rig.twilio.plan_sends(1, Fault::Fail(500));
    rig.twilio.plan_sends(1, Fault::DoneButCut);
    rig.ask("sim:echo=xyzzy");
    rig.wait_for_text(&rig.ann, "You said xyzzy.");
    rig.twilio.plan_sends(1, Fault::Refuse(400, 21211));
    rig.ask("sim:echo=xyzzy");
    rig.wait_for_undelivered("the number does not exist");
    rig.ask("/agent xyzzy");
    rig.wait_for_text(&rig.ann, "That cannot be: ");
    let stranger = "whatsapp:+15559998877";
    rig.twilio.hand_in(&Inbound::new(stranger, &rig.own, "xyzzy").by("Xyzzy"));
    let told = rig.wait_for("a code", stranger, |sent| !sent.is_empty());
    let code = pairing_code(&told[0].body);
    let forged = [("MessageSid".to_owned(), "xyzzy".to_owned())];
    assert_eq!(rig.call("/twilio/messages", Some("xyzzy"), encoded(&forged)).0, 403);
    rig.twilio.doom(&rig.ann, 63024);
    rig.ask("sim:echo=xyzzy");
    until("the log says so", || rig.log().contains("63024").then_some(()));
    let log = rig.log();
    for word in ["xyzzy", "Xyzzy", "Your prompt has", &rig.twilio.auth_token(), &code] {
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(word)).collect();
        assert!(lines.is_empty(), "{word}: {lines:#?}");
    }
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("5559998877")).collect();
    assert!(lines.len() == 1 && lines[0].contains("a stranger was not let in"), "{lines:#?}");
}
