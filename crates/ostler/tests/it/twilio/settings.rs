//! Settings that change what is said, heard and sent, as people meet them.

use jiff::civil::DateTime;
use serde_json::json;

use super::rig::{ANN, BOB, Rig, parrot};
use crate::twilio_double::{Attached, Fault, Inbound};

#[test]
fn what_stands_before_messages_and_answers_is_there() {
    let rig = Rig::with(|_, settings| {
        parrot(settings);
        settings["inbound"]["messagePrefix"] = json!("{{SenderE164}} says: ");
        settings["inbound"]["timestampPrefix"] = json!("Europe/Berlin");
        settings["inbound"]["responsePrefix"] = json!("🐴 ");
    });
    rig.ask("hay");
    rig.twilio.say(ANN, &rig.sms, "hay");
    for whom in [&rig.ann, ANN] {
        let said = rig.wait_for_text(whom, "hay").body;
        let rest = said.strip_prefix("🐴 [").unwrap_or_else(|| panic!("{said}"));
        let (stamp, rest) = rest.split_once("] ").unwrap();
        let (time, zone) = stamp.rsplit_once(' ').unwrap();
        assert!(DateTime::strptime("%Y-%m-%d %H:%M", time).is_ok(), "{said}");
        assert!(matches!(zone, "CET" | "CEST"), "{said}");
        assert_eq!(rest, format!("{ANN} says: hay"));
    }
    // What the gateway itself says has nothing before it.
    rig.ask("/think high");
    let said = rig.wait_for_text(&rig.ann, "high").body;
    assert!(!said.starts_with('🐴'), "{said}");
}

#[test]
fn a_group_calls_it_by_patterns_as_well() {
    let rig = Rig::with(|_, settings| {
        parrot(settings);
        settings["twilio"]["group_patterns"] = json!(["^bot\\b", "(?-i)HAY!$"]);
    });
    let group = rig.group();
    for text in ["a bot is here", "bottles", "buy hay!"] {
        rig.twilio.say_in_group(&group, &rig.bob, text);
    }
    rig.twilio.say_in_group(&group, &rig.ann, "Bot, how much?");
    let told = rig.wait_for_said(&group, "how much?");
    // It stays as it was said.
    assert!(told.contains("buy hay!") && told.contains(": Bot, how much?"), "{told}");
    rig.twilio.say_in_group(&group, &rig.bob, "ostler, or HAY!");
    rig.wait_for_said(&group, "or HAY!");
    rig.twilio.say_in_group(&group, &rig.ann, "buy HAY!");
    rig.wait_for_said(&group, "buy HAY!");
    assert_eq!(rig.twilio.said_in(&group).len(), 3);
}

#[test]
fn a_group_calls_it_by_words_of_its_own_and_tells_as_much_as_it_is_to_hear() {
    let rig = Rig::with(|_, settings| {
        parrot(settings);
        settings["twilio"]["group_words"] = json!(["Grüß dich", "🐴"]);
        settings["twilio"]["group_context"] = json!(2);
    });
    let group = rig.group();
    for number in 1..=4 {
        rig.twilio.say_in_group(&group, &rig.bob, &format!("hay {number}."));
    }
    rig.twilio.say_in_group(&group, &rig.ann, "ostler, how much?");
    rig.twilio.say_in_group(&group, &rig.ann, "GRÜSS dich nicht");
    rig.twilio.say_in_group(&group, &rig.ann, "grüß dich, how are you?");
    let told = rig.wait_for_said(&group, "how are you?");
    let before = format!("\n{ANN}: ostler, how much?\n{ANN}: GRÜSS dich nicht\n");
    assert!(told.contains(&before) && !told.contains("hay"), "{told}");
    rig.twilio.say_in_group(&group, &rig.bob, "🐴 and now?");
    let told = rig.wait_for_said(&group, "and now?");
    assert!(told.contains(&format!("{BOB}: 🐴 and now?")) && !told.contains("before]"), "{told}");
    assert_eq!(rig.twilio.said_in(&group).len(), 2);
}

#[test]
fn a_group_that_is_to_be_heard_only_when_it_calls_is_not_listened_to() {
    let rig = Rig::with(|_, settings| {
        parrot(settings);
        settings["twilio"]["group_context"] = json!(0);
    });
    let group = rig.group();
    rig.twilio.say_in_group(&group, &rig.bob, "hay is short");
    rig.twilio.say_in_group(&group, &rig.ann, "ostler, hello");
    let told = rig.wait_for_said(&group, "hello");
    assert!(!told.contains("hay") && !told.contains("before]"), "{told}");
    assert_eq!(rig.store("SELECT text FROM overheard"), Vec::<String>::new());
}

#[test]
fn an_api_key_is_all_that_calls_are_made_with() {
    let rig = Rig::with(|rig, settings| {
        let (key, secret) = rig.twilio.api_key();
        settings["twilio"]["api_key"] = json!(key);
        settings["twilio"]["api_secret"] = json!(secret);
        rig.twilio.refuse_the_token();
    });
    let group = rig.twilio.group("stable", &[&rig.bob]);
    // Files are fetched with it, too, and what may have been sent is looked for.
    let file = Attached::new("text/plain", b"some hay");
    rig.twilio.plan_sends(1, Fault::DoneButCut);
    rig.twilio.hand_in(&Inbound::new(&rig.ann, &rig.own, "sim:echo=seen").with(file));
    rig.wait_for_text(&rig.ann, "You said seen.");
    rig.twilio.say_in_group(&group, &rig.bob, "ostler sim:echo=there");
    rig.wait_for_said(&group, "You said there.");
    rig.ask("sim:echo=end");
    rig.wait_for_text(&rig.ann, "You said end.");
    assert_eq!(rig.texts(&rig.ann).len(), 2);
    let asked = rig.twilio.requests();
    assert!(asked.iter().any(|it| it.path.contains("/Media/ME") && it.status == 307), "{asked:#?}");
    assert!(asked.iter().all(|it| it.status != 401), "{asked:#?}");
}
