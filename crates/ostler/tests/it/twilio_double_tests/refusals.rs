//! Messages that are not taken.

use super::rig::{ADA, BOB, Rig};
use crate::twilio_double::ChangeKind;

/// Returns the code that a message is refused with, which is not kept.
fn refused(rig: &Rig, form: &[(&str, &str)]) -> u64 {
    let n_sent = || {
        let changes = rig.twilio.changes();
        changes.iter().filter(|change| change.kind == ChangeKind::Sent).count()
    };
    let before = n_sent();
    let (status, code) = rig.send(form).code();
    assert_eq!(status, 400);
    assert_eq!(n_sent(), before, "a message that was refused is not sent");
    code
}

#[test]
fn a_message_with_something_wrong_is_refused_with_its_code() {
    let rig = Rig::new();
    let (sms, whatsapp) = (rig.ours(BOB), rig.ours(ADA));
    let (sms, whatsapp) = (sms.as_str(), whatsapp.as_str());
    let check =
        |code: u64, form: &[(&str, &str)]| assert_eq!(refused(&rig, form), code, "{form:?}");
    check(21604, &[("From", sms), ("Body", "x")]);
    check(21603, &[("To", BOB), ("Body", "x")]);
    check(21602, &[("To", BOB), ("From", sms)]);
    check(21602, &[("To", BOB), ("From", sms), ("Body", "")]);
    for to in ["123", "+0123456789", "+1 500 555", "bob", "+1234567890123456"] {
        check(21211, &[("To", to), ("From", sms), ("Body", "x")]);
    }
    check(21211, &[("To", "whatsapp:123"), ("From", whatsapp), ("Body", "x")]);
    check(21212, &[("To", BOB), ("From", "nobody"), ("Body", "x")]);
    check(21606, &[("To", BOB), ("From", "+15005550001"), ("Body", "x")]);
    check(63007, &[("To", ADA), ("From", "whatsapp:+15005550001"), ("Body", "x")]);
    check(21910, &[("To", ADA), ("From", sms), ("Body", "x")]);
    check(21910, &[("To", BOB), ("From", whatsapp), ("Body", "x")]);
    check(21266, &[("To", sms), ("From", sms), ("Body", "x")]);
    check(21701, &[("To", BOB), ("MessagingServiceSid", "MG1"), ("Body", "x")]);
    check(21609, &[("To", BOB), ("From", sms), ("Body", "x"), ("StatusCallback", "/here")]);
    let callback = ("StatusCallback", "https://my_host.example.org/");
    check(21609, &[("To", BOB), ("From", sms), ("Body", "x"), callback]);
    check(63031, &[("To", whatsapp), ("From", whatsapp), ("Body", "x")]);
    check(21654, &[("To", BOB), ("From", sms), ("Body", "x"), ("ContentVariables", "{}")]);
    check(21620, &[("To", BOB), ("From", sms), ("MediaUrl", "ftp://example.org/a")]);
    check(21655, &[("To", ADA), ("From", whatsapp), ("ContentSid", "HX1")]);
}

#[test]
fn a_message_to_somebody_who_must_not_be_written_to_is_refused() {
    let rig = Rig::new();
    rig.twilio.unsubscribe(BOB);
    rig.twilio.forbid("+49");
    let (sms, whatsapp) = (rig.ours(BOB), rig.ours(ADA));
    assert_eq!(refused(&rig, &[("To", BOB), ("From", &sms), ("Body", "x")]), 21610);
    assert_eq!(refused(&rig, &[("To", ADA), ("From", &whatsapp), ("Body", "x")]), 21408);
}

#[test]
fn a_sender_that_is_not_online_is_not_found() {
    let rig = Rig::new();
    rig.twilio.sender_is("OFFLINE");
    assert_eq!(refused(&rig, &[("To", ADA), ("From", &rig.ours(ADA)), ("Body", "x")]), 63007);
}

#[test]
fn a_body_has_at_most_1600_units() {
    let rig = Rig::new();
    let from = rig.ours(BOB);
    for (character, most) in [("a", 1600), ("ß", 1600), ("🐎", 800)] {
        let long = character.repeat(most + 1);
        assert_eq!(refused(&rig, &[("To", BOB), ("From", &from), ("Body", &long)]), 21617);
    }
    rig.sent(BOB, &[("Body", &"🐎".repeat(800))]);
}

#[test]
fn no_more_media_are_taken_than_the_channel_has_room_for() {
    let rig = Rig::new();
    let (sms, whatsapp) = (rig.ours(BOB), rig.ours(ADA));
    let link = rig.server.file("/a.png", "image/png", b"png");
    let form = |to: &'static str, count: usize| {
        let from = if to == BOB { sms.as_str() } else { whatsapp.as_str() };
        let media = std::iter::repeat_n(("MediaUrl", link.as_str()), count);
        [("To", to), ("From", from)].into_iter().chain(media).collect::<Vec<_>>()
    };
    assert_eq!(refused(&rig, &form(BOB, 11)), 21623);
    assert_eq!(refused(&rig, &form(ADA, 2)), 21623);
    assert_eq!(rig.send(&form(BOB, 10)).status, 201);
}

#[test]
fn a_template_is_filled_in_only_with_texts() {
    let rig = Rig::new();
    let template = rig.twilio.template("Hello {{1}}, {{name}}");
    let from = rig.ours(ADA);
    for variables in ["x", "[]", "{\"1\": 2}", "{\"1\": \"\"}"] {
        let form = [("To", ADA), ("From", &from), ("ContentSid", &template)];
        let form: Vec<_> = form.into_iter().chain([("ContentVariables", variables)]).collect();
        assert_eq!(refused(&rig, &form), 21656);
    }
    let variables = "{\"1\": \"Ada\", \"name\": \"you\"}";
    rig.sent(ADA, &[("ContentSid", &template), ("ContentVariables", variables)]);
    assert_eq!(rig.twilio.messages_to(ADA)[0].body, "Hello Ada, you");
}

#[test]
fn a_trial_account_writes_to_verified_numbers_and_says_what_it_is() {
    let rig = Rig::new();
    rig.twilio.is_trial(&[]);
    let from = rig.ours(BOB);
    let form = [("To", BOB), ("From", from.as_str()), ("Body", "x")];
    assert_eq!(refused(&rig, &form), 21608);
    rig.twilio.is_trial(&[BOB]);
    rig.sent(BOB, &[("Body", "x")]);
    let body = rig.twilio.messages_to(BOB)[0].body.clone();
    assert_eq!(body, "Sent from your Twilio trial account - x");
}

#[test]
fn the_words_of_the_carriers_say_who_is_sent_anything() {
    let rig = Rig::new();
    let ours = rig.ours(BOB);
    let from = ours.as_str();
    let form = [("To", BOB), ("From", from), ("Body", "x")];
    for stop in ["STOP", "stopall", "Unsubscribe", "cancel", "end", " QUIT ", "REVOKE", "optout"] {
        rig.twilio.say(BOB, from, stop);
        assert_eq!(refused(&rig, &form), 21610, "{stop}");
        rig.twilio.say(BOB, from, "START");
        rig.sent(BOB, &[("Body", "x")]);
    }
    for word in ["please stop", "HELP"] {
        rig.twilio.say(BOB, from, word);
        rig.sent(BOB, &[("Body", "x")]);
    }
    let helped = rig.twilio.changes().into_iter().filter(|it| it.kind == ChangeKind::Helped);
    assert_eq!(helped.map(|it| it.address).collect::<Vec<_>>(), [BOB]);
}
