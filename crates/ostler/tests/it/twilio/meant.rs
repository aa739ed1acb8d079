//! What an answer is about: the request that has its number, or that it refers to, and
//! no other, and none that nobody can have read.

use serde_json::json;

use super::{
    asked::{asked, assert_waits, rig},
    rig::{Rig, asking},
};
use crate::{
    support::until,
    twilio_double::{Fault, Inbound},
};

/// Ends what runs, and asserts that nothing was allowed.
fn assert_not_allowed(rig: &Rig) {
    rig.ask("/stop");
    rig.wait_for_text(&rig.ann, "Stopped");
    assert_waits(rig);
}

#[test]
fn what_did_not_arrive_cannot_be_allowed() {
    let rig = rig();
    rig.twilio.doom(&rig.ann, 63024);
    rig.ask("sim:tool");
    until("it is known that it did not arrive", || {
        rig.log().contains("a message did not arrive, and is not sent again").then_some(())
    });
    rig.twilio.spare(&rig.ann);
    for said in ["ok", "1"] {
        rig.ask(said);
    }
    assert_not_allowed(&rig);
}

#[test]
fn what_did_not_arrive_as_a_whole_can_be_denied_and_not_allowed() {
    let long: Vec<String> = (0..600).map(|number| format!("w{number:04}")).collect();
    let sed = format!("s/echo hi/echo {}/", long.join(" "));
    let rig = Rig::with(|rig, settings| asking(rig, settings, &sed));
    rig.store(
        "CREATE TRIGGER lost AFTER UPDATE ON posts
         WHEN NEW.slot LIKE 'page:0:%' AND NEW.trouble IS NULL
         BEGIN
             UPDATE posts SET trouble = 'held back'
             WHERE subject = NEW.subject AND slot = NEW.slot;
         END",
    );
    rig.ask("sim:tool");
    rig.wait_for_text(&rig.ann, "*1* Allow");
    rig.wait_until_noted();
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "Not all of what is asked has arrived");
    rig.ask("3");
    rig.wait_for_text(&rig.ann, "It was not allowed to run");
}

#[test]
fn who_refers_to_something_else_does_not_answer_what_is_asked() {
    let rig = rig();
    let own = rig.ask("sim:echo=hay");
    let answer = rig.wait_for_text(&rig.ann, "You said hay.");
    asked(&rig);
    let unknown = "SM00000000000000000000000000000009";
    for other in [own.as_str(), answer.sid.as_str(), unknown] {
        for said in ["ok", "1"] {
            rig.hand_in(|_| Inbound::new(&rig.ann, &rig.own, said).replying_to(other));
        }
    }
    assert_not_allowed(&rig);
}

#[test]
fn who_refers_to_something_else_does_not_answer_what_is_still_on_its_way() {
    let rig = rig();
    let own = rig.ask("sim:echo=hay");
    rig.wait_for_text(&rig.ann, "You said hay.");
    rig.twilio.plan_sends(1, Fault::Held);
    rig.ask("sim:tool");
    rig.wait_for_text(&rig.ann, "Permission to run a command");
    for said in ["ok", "1"] {
        rig.hand_in(|_| Inbound::new(&rig.ann, &rig.own, said).replying_to(&own));
    }
    rig.twilio.answer_held();
    rig.wait_until_noted();
    assert_not_allowed(&rig);
    // They are for the agent, and not answers that are not taken.
    let texts = rig.texts(&rig.ann);
    assert!(texts.iter().all(|text| !text.contains("not asked here")), "{texts:?}");
}

#[test]
fn numbers_go_on_from_turn_to_turn_and_over_restarts() {
    let mut rig = rig();
    let first = asked(&rig);
    assert!(first.body.contains("*1* Allow"), "{}", first.body);
    rig.ask("3");
    rig.wait_for_text(&rig.ann, "It was not allowed to run");
    rig.crash();
    rig.start_again();
    rig.ask("sim:tool");
    let second = rig.wait_for_text(&rig.ann, "*4* Allow");
    rig.wait_until_noted();
    assert!(second.body.contains("*6* Deny"), "{}", second.body);
    // One of before is late, and is not taken for this one's.
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "No: it was decided before");
    assert_waits(&rig);
    rig.ask("4");
    rig.wait_for_text(&rig.ann, "It pretended to run");
}

#[test]
fn a_number_that_comes_too_late_is_not_for_the_agent() {
    let rig = Rig::with(|_, settings| {
        settings["agent"]["permissions"] = json!("ask");
        // Also a slow machine has asked by then.
        settings["agent"]["ask_timeout"] = json!("10s");
    });
    asked(&rig);
    rig.wait_for_text(&rig.ann, "It was not allowed to run");
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "No: ");
    assert_eq!(rig.texts(&rig.ann).len(), 3);
}

#[test]
fn a_word_where_several_things_are_asked_is_not_clear() {
    let twice = r#"/can_use_tool/{p;s/"request_id":"/&x/;s/echo hi/echo two/}"#;
    let rig = Rig::with(|rig, settings| asking(rig, settings, twice));
    asked(&rig);
    rig.wait_for_text(&rig.ann, "echo two");
    rig.wait_until_noted();
    rig.ask("ok");
    rig.wait_for_text(&rig.ann, "Send the number of a choice.");
    assert_not_allowed(&rig);
}

/// Lets a gateway ask Twilio for messages, which has a template with buttons.
fn polling() -> Rig {
    Rig::with(|rig, settings| {
        settings["agent"]["permissions"] = json!("ask");
        let twilio = settings["twilio"].as_object_mut().unwrap();
        twilio.insert("approval_template".to_owned(), json!(rig.twilio.template("{{1}}")));
        twilio.insert("receive".to_owned(), json!("polling"));
        twilio.insert("poll_every".to_owned(), json!("1s"));
    })
}

#[test]
fn whoever_asks_for_messages_offers_no_buttons_and_takes_numbers_and_words() {
    for said in ["1", "yes"] {
        let rig = polling();
        let write = |text: &str| rig.twilio.say_unheard(&Inbound::new(&rig.ann, &rig.own, text));
        rig.twilio.wait_for("a look", crate::support::LIMIT, |world| {
            world.requests().iter().any(|it| it.path.contains("DateSent")).then_some(())
        });
        write("sim:tool");
        let asked = rig.wait_for_text(&rig.ann, "Permission to run a command");
        rig.wait_until_noted();
        assert_eq!(asked.content_sid, None, "{}", asked.body);
        // It may be the button of another request.
        write("Allow");
        rig.wait_for_text(&rig.ann, "Send the number of a choice.");
        assert_waits(&rig);
        write(said);
        rig.wait_for_text(&rig.ann, "It pretended to run");
    }
}

#[test]
fn who_has_left_a_group_is_heard_in_private() {
    let rig = Rig::start();
    for change in ["left", "closed"] {
        let group = rig.group();
        rig.twilio.say_in_group(&group, &rig.ann, "ostler sim:echo=there");
        rig.wait_for_said(&group, "You said there.");
        match change {
            "left" => rig.twilio.leave(&group, &rig.ann),
            _ => rig.twilio.close_group(&group),
        }
        let known = || {
            let text = format!("sim:echo={change}");
            rig.ask(&text);
            let told = format!("You said {change}.");
            rig.texts(&rig.ann).iter().any(|text| text.contains(&told)).then_some(())
        };
        until("he is heard", known);
    }
}

#[test]
fn a_message_that_the_store_refuses_holds_nobody_up() {
    let mut rig = Rig::start();
    rig.store(
        "CREATE TRIGGER refused BEFORE INSERT ON jobs WHEN NEW.payload LIKE '%=refused%'
         BEGIN SELECT RAISE(ABORT, 'no'); END",
    );
    rig.crash();
    for word in ["refused", "taken"] {
        let text = format!("sim:echo={word}");
        rig.twilio.say_unheard(&Inbound::new(&rig.ann, &rig.own, &text));
    }
    rig.start_again();
    rig.wait_for_text(&rig.ann, "You said taken.");
    assert!(rig.log().contains("a message is passed over"), "{}", rig.log());
}

#[test]
fn what_was_not_delivered_is_not_taken_for_what_was_sent() {
    let rig = Rig::start();
    rig.twilio.doom(&rig.ann, 30003);
    // Twilio takes it, and the connection is lost before it says so.
    rig.twilio.plan_sends(1, Fault::DoneButCut);
    rig.ask("sim:echo=hay");
    rig.wait_for("the first", &rig.ann, |sent| {
        sent.first().is_some_and(|message| message.error.is_some())
    });
    rig.twilio.spare(&rig.ann);
    rig.wait_for("another", &rig.ann, |sent| sent.len() == 2);
}
