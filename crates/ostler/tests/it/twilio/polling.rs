//! Gateways that Twilio cannot call: they ask for what was written.

use std::{fs, time::Duration};

use serde_json::{Value, json};

use super::rig::{ANN, Rig, parrot};
use crate::{
    support::LIMIT,
    twilio_double::{Attached, Fault, Inbound, Request, Twilio},
};

/// Starts a gateway that asks for messages; before that, what is to be there already.
fn polling(before: impl FnOnce(&Rig)) -> Rig {
    polling_in(|rig, _| before(rig))
}

/// The same, with other settings.
fn polling_in(before: impl FnOnce(&Rig, &mut Value)) -> Rig {
    let rig = Rig::with(|rig, settings| {
        before(rig, settings);
        let twilio = settings["twilio"].as_object_mut().unwrap();
        twilio.remove("public_url");
        twilio.insert("receive".to_owned(), json!("polling"));
        twilio.insert("poll_every".to_owned(), json!("1s"));
        twilio.insert("messages_per_minute".to_owned(), json!(1000));
    });
    wait_for_looks(&rig.twilio, 1);
    rig
}

/// Waits until Twilio was asked for messages so many times more.
fn wait_for_looks(twilio: &Twilio, more: usize) {
    let is_look =
        |it: &&Request| it.method == "GET" && it.path.contains("DateSent") && it.status == 200;
    let before = twilio.requests().iter().filter(is_look).count();
    twilio.wait_for("looks", LIMIT, |world| {
        let now = world.requests().iter().filter(is_look).count();
        (now >= before + 2 * more).then_some(())
    });
}

/// Lets Ann write without a word to the gateway.
fn write(rig: &Rig, text: &str) -> String {
    rig.twilio.say_unheard(&Inbound::new(&rig.ann, &rig.own, text))
}

#[test]
fn what_was_written_is_found_and_answered_once_and_in_order() {
    let rig = polling(|rig| {
        let before = write(rig, "sim:echo=before-the-first-start");
        rig.twilio.backdate(&before, Duration::from_secs(60));
    });
    for number in 0..5 {
        write(&rig, &format!("sim:echo=m{number}"));
    }
    rig.wait_for_text(&rig.ann, "You said m4.");
    rig.twilio.say_unheard(&Inbound::new(ANN, &rig.sms, "sim:echo=oats"));
    rig.wait_for_text(ANN, "You said oats.");
    wait_for_looks(&rig.twilio, 2);
    let texts = rig.texts(&rig.ann);
    assert_eq!(texts.len(), 5, "{texts:#?}");
    for (number, text) in texts.iter().enumerate() {
        assert!(text.contains(&format!("You said m{number}.")), "{texts:#?}");
    }
    assert_eq!(rig.texts(ANN).len(), 1);
}

#[test]
fn what_was_written_while_none_ran_is_found_by_the_next() {
    let mut rig = polling(|_| {});
    write(&rig, "sim:echo=one");
    rig.wait_for_text(&rig.ann, "You said one.");
    rig.crash();
    write(&rig, "sim:echo=two");
    rig.start_again();
    rig.wait_for_text(&rig.ann, "You said two.");
    wait_for_looks(&rig.twilio, 2);
    assert_eq!(rig.texts(&rig.ann).len(), 2);
}

#[test]
fn a_gateway_that_found_nobody_at_its_first_start_misses_nothing() {
    let mut rig = polling(|rig| rig.twilio.plan(2, "GET ", Fault::Fail(503)));
    rig.crash();
    write(&rig, "sim:echo=kept");
    rig.start_again();
    rig.wait_for_text(&rig.ann, "You said kept.");
}

#[test]
fn a_clock_that_is_fast_loses_nothing_at_the_first_start() {
    let rig = polling(|rig| rig.twilio.clock_is_behind(Duration::from_secs(3600)));
    write(&rig, "sim:echo=heard");
    rig.wait_for_text(&rig.ann, "You said heard.");
}

#[test]
fn a_clock_that_is_slow_answers_nothing_from_before_the_first_start() {
    let rig = polling(|rig| {
        rig.twilio.clock_is_ahead(Duration::from_secs(600));
        let before = write(rig, "sim:echo=before-the-first-start");
        rig.twilio.backdate(&before, Duration::from_secs(60));
    });
    write(&rig, "sim:echo=heard");
    rig.wait_for_text(&rig.ann, "You said heard.");
    wait_for_looks(&rig.twilio, 2);
    assert_eq!(rig.texts(&rig.ann).len(), 1);
}

#[test]
fn more_than_a_page_is_read_through_refusals_to_go_faster() {
    const COUNT: usize = 130;
    let mut rig = polling(|_| {});
    rig.crash();
    // The rest of what fills pages is from somebody who gets nothing.
    for number in 0..COUNT {
        let text = format!("stranger {number}");
        rig.twilio.say_unheard(&Inbound::new("whatsapp:+15559990000", &rig.own, &text));
    }
    let first = write(&rig, "sim:echo=first");
    for number in 0..COUNT {
        let text = format!("stranger {number}");
        rig.twilio.say_unheard(&Inbound::new("whatsapp:+15559990000", &rig.own, &text));
    }
    rig.twilio.plan(2, "GET ", Fault::Limit(Some(1)));
    rig.start_again();
    rig.wait_for_text(&rig.ann, "You said first.");
    assert!(rig.twilio.message(&first).is_some());
    assert_eq!(rig.twilio.look(|world| world.faults_left()), 0);
    assert_eq!(rig.twilio.messages_to("whatsapp:+15559990000").len(), 0);
}

#[test]
fn what_is_said_in_a_group_is_found_there_and_nowhere_else() {
    let mut group = String::new();
    let rig = polling_in(|rig, settings| {
        group = rig.group();
        settings["twilio"]["groups"] = json!([group]);
    });
    rig.twilio.say_in_group_unheard(&group, &rig.ann, "ostler sim:echo=there", &[]);
    rig.wait_for_said(&group, "You said there.");
    wait_for_looks(&rig.twilio, 2);
    assert_eq!(rig.texts(&rig.ann), Vec::<String>::new());
    assert_eq!(rig.twilio.said_in(&group).len(), 1);
}

#[test]
fn what_a_program_says_in_a_group_is_not_answered() {
    let mut group = String::new();
    let rig = polling_in(|rig, settings| {
        group = rig.twilio.group("stable", &[&rig.ann, "browser"]);
        settings["twilio"]["groups"] = json!([group]);
        settings["twilio"]["allow_from"] = json!(["*"]);
    });
    rig.twilio.say_in_group_unheard(&group, "browser", "ostler sim:echo=program", &[]);
    rig.twilio.say_in_group_unheard(&group, &rig.ann, "ostler sim:echo=there", &[]);
    rig.wait_for_said(&group, "You said there.");
    assert_eq!(rig.twilio.said_in(&group).len(), 1);
}

#[test]
fn more_than_a_page_of_a_group_is_read_in_its_order() {
    const COUNT: usize = 130;
    let mut group = String::new();
    let mut rig = polling_in(|rig, settings| {
        parrot(settings);
        group = rig.group();
        settings["twilio"]["groups"] = json!([group]);
    });
    rig.crash();
    rig.twilio.say_in_group_unheard(&group, &rig.ann, "ostler, the first", &[]);
    for number in 0..COUNT {
        rig.twilio.say_in_group_unheard(&group, &rig.bob, &format!("hay {number:03}."), &[]);
    }
    rig.twilio.say_in_group_unheard(&group, &rig.ann, "ostler, the last", &[]);
    rig.start_again();
    rig.wait_for_said(&group, "the first");
    rig.wait_for_said(&group, "ostler, the last");
    wait_for_looks(&rig.twilio, 2);
    let said: Vec<String> = rig.twilio.said_in(&group).into_iter().map(|(_, it)| it).collect();
    let said = said.join("\n");
    let places: Vec<_> =
        (COUNT - 50..COUNT).map(|it| said.find(&format!("hay {it:03}."))).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{said}");
    assert_eq!(said.matches("the first").count(), 1, "{said}");
}

#[test]
fn a_group_that_nobody_may_look_at_holds_nobody_up() {
    let mut groups = [String::new(), String::new()];
    let rig = polling_in(|rig, settings| {
        groups = [rig.group(), rig.twilio.group("yard", &[&rig.bob])];
        settings["twilio"]["groups"] = json!(groups);
        rig.twilio.plan(
            1000,
            &format!("GET /v1/Conversations/{}", groups[0]),
            Fault::Refuse(403, 20403),
        );
    });
    rig.twilio.say_in_group_unheard(&groups[1], &rig.bob, "ostler sim:echo=there", &[]);
    rig.wait_for_said(&groups[1], "You said there.");
    write(&rig, "sim:echo=private");
    rig.wait_for_text(&rig.ann, "You said private.");
    wait_for_looks(&rig.twilio, 2);
    assert_eq!(rig.log().matches("a group is not looked at").count(), 1, "{}", rig.log());
}

#[test]
fn files_come_with_what_is_found() {
    let rig = polling(|_| {});
    let file = Attached::new("text/plain", b"some hay");
    rig.twilio.say_unheard(&Inbound::new(&rig.ann, &rig.own, "sim:echo=seen").with(file));
    rig.wait_for_text(&rig.ann, "You said seen.");
    let is_file = |it: &Request| it.path.contains("/Media/") && it.status < 400;
    assert!(rig.twilio.requests().iter().any(is_file), "{:#?}", rig.twilio.requests());
}

#[test]
fn a_file_that_is_found_in_a_group_is_there_for_the_agent() {
    let mut group = String::new();
    let rig = polling_in(|rig, settings| {
        parrot(settings);
        group = rig.group();
        settings["twilio"]["groups"] = json!([group]);
    });
    let picture = Attached::new("image/png", b"\x89PNG\r\n\x1a\nhay").named("hay.png");
    rig.twilio.say_in_group_unheard(&group, &rig.ann, "ostler, look", &[picture]);
    let told = rig.wait_for_said(&group, "look");
    let (_, rest) = told.split_once("[Attached: image/png, ").expect(&told);
    let (path, _) = rest.split_once(']').unwrap();
    assert_eq!(fs::read(path).unwrap(), b"\x89PNG\r\n\x1a\nhay");
}

#[test]
fn files_that_are_not_to_be_had_are_told_of() {
    let rig = polling_in(|rig, settings| {
        parrot(settings);
        rig.twilio.plan(1, "/Media.json", Fault::Refuse(403, 20403));
    });
    let file = Attached::new("text/plain", b"some hay");
    rig.twilio.say_unheard(&Inbound::new(&rig.ann, &rig.own, "look").with(file));
    let told = rig.wait_for_text(&rig.ann, "look").body;
    assert!(
        told.contains("[Attached: application/octet-stream, which is not kept here]"),
        "{told}"
    );
}

#[test]
fn what_a_service_takes_is_found_whatever_its_number() {
    let rig = Rig::with(|rig, settings| {
        let twilio = settings["twilio"].as_object_mut().unwrap();
        for key in ["public_url", "sms_from", "whatsapp_from"] {
            twilio.remove(key);
        }
        twilio.insert("messaging_service".to_owned(), json!(rig.twilio.messaging_service()));
        twilio.insert("poll_every".to_owned(), json!("1s"));
    });
    wait_for_looks(&rig.twilio, 1);
    let service = rig.twilio.messaging_service();
    rig.twilio.say_unheard(&Inbound::new(ANN, "+15550009999", "sim:echo=elsewhere"));
    rig.twilio.say_unheard(&Inbound::new(ANN, "+15550009999", "sim:echo=oats").through(&service));
    rig.wait_for_text(ANN, "You said oats.");
    wait_for_looks(&rig.twilio, 2);
    assert_eq!(rig.texts(ANN).len(), 1);
}

#[test]
fn what_did_not_arrive_is_found_out_without_a_call() {
    let rig = polling(|_| {});
    rig.twilio.doom(&rig.ann, 63024);
    write(&rig, "sim:echo=hay");
    rig.wait_for_undelivered("has no WhatsApp");
    assert_eq!(rig.texts(&rig.ann).len(), 1);
}
