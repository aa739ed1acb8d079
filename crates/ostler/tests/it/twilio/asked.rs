//! Permissions that are asked for by numbers.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use super::rig::{ANN, BOB, Rig, asking};
use crate::{
    support::{LIMIT, until},
    twilio_double::{Attached, Fault, Inbound, Message},
};

pub(super) fn rig() -> Rig {
    Rig::with(|_, settings| settings["agent"]["permissions"] = json!("ask"))
}

/// A rig whose agent asks what it asks in other words.
fn asking_so(sed: &str) -> Rig {
    Rig::with(|rig, settings| asking(rig, settings, sed))
}

/// Lets the agent ask for something, and returns the message that does.
pub(super) fn asked(rig: &Rig) -> Message {
    rig.ask("sim:tool");
    let asked = rig.wait_for_text(&rig.ann, "Permission to run a command");
    rig.wait_until_noted();
    asked
}

/// Asserts that nothing was allowed so far, after all that was said before.
pub(super) fn assert_waits(rig: &Rig) {
    let sent = rig.twilio.messages_to(&rig.ann);
    assert!(sent.iter().all(|it| !it.body.contains("It pretended to run")), "{sent:?}");
}

/// Changes what is asked to be a question with two answers.
const QUESTION: &str = r#"/can_use_tool/{s/"tool_name":"Bash"/"tool_name":"AskUserQuestion"/;s/"input":{[^}]*}/"input":{"questions":[{"question":"Which colour?","header":"c","multiSelect":false,"options":[{"label":"red","description":""},{"label":"blue","description":""}]}]}/}"#;

/// Asks for something else at the same time.
const TWICE: &str = r#"/can_use_tool/{p;s/"request_id":"/&x/;s/echo hi/echo two/}"#;

#[test]
fn a_number_allows_what_is_asked() {
    let rig = rig();
    let asked = asked(&rig);
    assert!(asked.body.contains("echo hi") && asked.body.contains("*1* Allow"), "{}", asked.body);
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "It pretended to run");
    assert_eq!(rig.twilio.messages_to(&rig.ann).len(), 2);
}

#[test]
fn words_decide_what_is_asked() {
    for (said, outcome) in [
        ("Yes!", "It pretended to run"),
        ("no", "It was not allowed to run"),
        ("always", "It pretended to run"),
        ("👎", "It was not allowed to run"),
    ] {
        let rig = rig();
        asked(&rig);
        rig.ask(said);
        rig.wait_for_text(&rig.ann, outcome);
    }
}

#[test]
fn what_is_allowed_for_the_session_is_not_asked_again() {
    let rig = rig();
    asked(&rig);
    rig.ask("2");
    rig.wait_for_text(&rig.ann, "It pretended to run");
    rig.ask("sim:tool sim:echo=again");
    rig.wait_for_text(&rig.ann, "You said again.");
    assert_eq!(rig.twilio.messages_to(&rig.ann).len(), 3);
}

#[test]
fn the_numbers_of_two_requests_go_on_and_a_word_needs_the_one_that_it_is_about() {
    let rig = asking_so(TWICE);
    let first = asked(&rig);
    let second = rig.wait_for_text(&rig.ann, "echo two");
    rig.wait_until_noted();
    assert!(first.body.contains("*1* Allow") && first.body.contains("*3* Deny"), "{}", first.body);
    assert!(second.body.contains("*4* Allow"), "{}", second.body);
    // Whoever replies to a message says which he means.
    rig.hand_in(|_| Inbound::new(&rig.ann, &rig.own, "no").replying_to(&second.sid));
    let heard = rig.place.path("bin/asking-claude.heard");
    until("the second is denied", || {
        fs::read_to_string(&heard).unwrap().contains("\"deny\"").then_some(())
    });
    assert_waits(&rig);
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "It pretended to run");
}

#[test]
fn a_button_decides_the_request_that_it_stands_under() {
    let mut template = String::new();
    let rig = Rig::with(|rig, settings| {
        asking(rig, settings, TWICE);
        template = rig.twilio.template("{{1}}");
        settings["twilio"]["approval_template"] = json!(template);
    });
    let first = asked(&rig);
    let second = rig.wait_for_text(&rig.ann, "echo two");
    rig.wait_until_noted();
    assert_eq!(first.content_sid.as_deref(), Some(template.as_str()));
    assert!(first.body.contains("Bash · echo hi · *1* Allow"), "{}", first.body);
    let press = |text: &str, payload: &str, under: &str| {
        rig.hand_in(|_| {
            Inbound::new(&rig.ann, &rig.own, text).pressing(text, payload).replying_to(under)
        })
    };
    press("Deny", "deny", &second.sid);
    let heard = rig.place.path("bin/asking-claude.heard");
    until("the second is denied", || {
        fs::read_to_string(&heard).unwrap().contains("\"deny\"").then_some(())
    });
    press("Allow", "allow", &first.sid);
    rig.wait_for_text(&rig.ann, "It pretended to run");
}

#[test]
fn what_would_be_changed_by_a_template_is_asked_without() {
    for command in [r"cd a\\nrm -r b", r"echo a\\tb", "echo a     b"] {
        let rig = Rig::with(|rig, settings| {
            asking(rig, settings, &format!("s/echo hi/{command}/"));
            settings["twilio"]["approval_template"] = json!(rig.twilio.template("{{1}}"));
        });
        let asked = asked(&rig);
        assert_eq!(asked.content_sid, None, "{}", asked.body);
        assert!(asked.body.contains("\n*1* Allow"), "{}", asked.body);
        rig.ask("1");
        rig.wait_for_text(&rig.ann, "It pretended to run");
    }
}

#[test]
fn what_is_asked_by_a_template_that_twilio_does_not_take_is_asked_without() {
    let rig = Rig::with(|_, settings| {
        settings["agent"]["permissions"] = json!("ask");
        settings["twilio"]["approval_template"] = json!("HX00000000000000000000000000000000");
    });
    let asked = asked(&rig);
    assert_eq!(asked.content_sid, None, "{}", asked.body);
    assert!(rig.log().contains("check twilio.approval_template"), "{}", rig.log());
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "It pretended to run");
}

#[test]
fn what_was_asked_by_a_template_of_which_nobody_heard_is_asked_once() {
    let rig = Rig::with(|rig, settings| {
        settings["agent"]["permissions"] = json!("ask");
        settings["twilio"]["approval_template"] = json!(rig.twilio.template("Ostler: {{1}}"));
    });
    // Twilio takes it, and the connection is lost before it says so.
    rig.twilio.plan_sends(1, Fault::DoneButCut);
    rig.ask("sim:tool");
    let sent = rig.wait_for("the request", &rig.ann, |sent| sent.len() == 1);
    assert!(sent[0].content_sid.is_some(), "{sent:#?}");
    rig.wait_until_noted();
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "It pretended to run");
    assert_eq!(rig.texts(&rig.ann).len(), 2, "{:#?}", rig.texts(&rig.ann));
}

#[test]
fn what_is_asked_and_does_not_arrive_for_now_is_asked_again() {
    let rig = rig();
    rig.twilio.doom(&rig.ann, 30003);
    rig.ask("sim:tool");
    until("it is known that it did not arrive", || {
        rig.log()
            .contains("a request for permission did not arrive; it is asked again")
            .then_some(())
    });
    rig.twilio.spare(&rig.ann);
    let sent = rig.wait_for("another", &rig.ann, |sent| sent.len() == 2);
    assert_eq!(sent[0].body, sent[1].body);
    rig.wait_until_noted();
    rig.hand_in(|_| Inbound::new(&rig.ann, &rig.own, "yes").replying_to(&sent[1].sid));
    rig.wait_for_text(&rig.ann, "It pretended to run");
    assert_eq!(rig.texts(&rig.ann).len(), 3);
}

#[test]
fn what_is_asked_outside_of_the_window_is_asked_when_he_writes() {
    let rig = rig();
    // The double finds out that the window is closed, whoever writes; the gateway does
    // not know.
    rig.twilio.keep_window_closed(&rig.ann, true);
    rig.ask("sim:tool");
    rig.wait_for_text(&rig.ann, "Permission to run a command");
    until("it is known that it did not arrive", || {
        rig.log()
            .contains("a request for permission did not arrive; it is asked again")
            .then_some(())
    });
    rig.twilio.keep_window_closed(&rig.ann, false);
    rig.ask("sim:echo=here");
    let is_asked = |it: &&Message| it.body.contains("Permission to run a command");
    rig.wait_for("another", &rig.ann, |sent| sent.iter().filter(is_asked).count() == 2);
    rig.wait_until_noted();
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "It pretended to run");
}

#[test]
fn what_is_asked_and_never_arrives_is_told_to_the_operator_and_not_asked_again() {
    let rig = Rig::with(|_, settings| {
        settings["agent"]["permissions"] = json!("ask");
        // It is looked several times until then whether it has arrived.
        settings["agent"]["ask_timeout"] = json!("10s");
    });
    rig.twilio.doom(&rig.ann, 63024);
    rig.ask("sim:tool");
    let told = || rig.log().matches("a message did not arrive, and is not sent again").count();
    until("the log says so", || (told() == 1).then_some(()));
    rig.twilio.spare(&rig.ann);
    rig.wait_for_text(&rig.ann, "It was not allowed to run");
    assert_eq!((rig.texts(&rig.ann).len(), told()), (2, 1));
}

#[test]
fn what_does_not_arrive_by_a_template_is_asked_again_without() {
    let rig = Rig::with(|rig, settings| {
        settings["agent"]["permissions"] = json!("ask");
        settings["twilio"]["approval_template"] = json!(rig.twilio.template("Ostler: {{1}}"));
    });
    rig.twilio.doom(&rig.ann, 63027);
    rig.ask("sim:tool");
    until("it is known that it did not arrive", || {
        rig.log().contains("a request for permission did not arrive").then_some(())
    });
    rig.twilio.spare(&rig.ann);
    let sent = rig.wait_for("a request that arrives", &rig.ann, |sent| {
        sent.iter().any(|it| it.error.is_none() && it.body.contains("*1* Allow"))
    });
    rig.wait_until_noted();
    assert!(sent[0].content_sid.is_some() && sent[1].content_sid.is_none(), "{sent:#?}");
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "It pretended to run");
}

#[test]
fn a_question_has_no_buttons_that_allow_or_deny() {
    let rig = Rig::with(|rig, settings| {
        asking(rig, settings, QUESTION);
        settings["twilio"]["approval_template"] = json!(rig.twilio.template("{{1}}"));
    });
    rig.ask("sim:tool");
    let asked = rig.wait_for_text(&rig.ann, "Which colour?");
    rig.wait_until_noted();
    assert_eq!(asked.content_sid, None);
}

#[test]
fn what_is_too_long_for_a_message_with_buttons_is_asked_without() {
    let long = "x".repeat(1200);
    let rig = Rig::with(|rig, settings| {
        asking(rig, settings, &format!("s/echo hi/echo {long}/"));
        settings["twilio"]["approval_template"] = json!(rig.twilio.template("{{1}}"));
    });
    rig.ask("sim:tool");
    let asked = rig.wait_for_text(&rig.ann, "Permission to run a command");
    rig.wait_until_noted();
    assert!(asked.body.contains(&long), "{}", asked.body);
    assert_eq!(asked.content_sid, None);
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "It pretended to run");
}

#[test]
fn a_question_is_answered_by_a_number_or_by_what_is_written() {
    for (said, answer) in [("2", "blue"), ("42", "42"), ("rather green", "rather green")] {
        let rig = asking_so(QUESTION);
        rig.ask("sim:tool");
        let asked = rig.wait_for_text(&rig.ann, "Which colour?");
        rig.wait_until_noted();
        assert!(asked.body.contains("1. red") && asked.body.contains("2. blue"), "{}", asked.body);
        rig.ask(said);
        rig.wait_for_text(&rig.ann, "It pretended to run");
        let heard = fs::read_to_string(rig.place.path("bin/asking-claude.heard")).unwrap();
        assert!(heard.contains(&format!("\"Which colour?\":\"{answer}\"")), "{heard}");
    }
}

#[test]
fn every_character_of_a_command_is_shown() {
    // Some of these mean something to WhatsApp, and would be gone.
    let command = "rm -rf *_old_* ~tmp~ $(date)";
    let rig = asking_so(&format!("s/echo hi/{command}/"));
    let asked = asked(&rig);
    assert!(asked.body.contains(command), "{}", asked.body);
}

#[test]
fn a_long_command_is_shown_in_full_over_several_messages() {
    let middle: Vec<String> = (0..600).map(|number| format!("w{number:04}")).collect();
    let command = format!("begin {} && rm -rf the-end", middle.join(" "));
    let rig = asking_so(&format!("s/echo hi/{}/", command.replace('&', r"\&")));
    rig.ask("sim:tool");
    let last = rig.wait_for_text(&rig.ann, "*1* Allow");
    rig.wait_until_noted();
    assert!(last.body.contains("Expires at"), "{}", last.body);
    let texts = rig.texts(&rig.ann);
    assert!(texts.len() > 1 && texts.last() == Some(&last.body), "{texts:#?}");
    let shown: BTreeSet<&str> = texts.iter().flat_map(|text| text.split_whitespace()).collect();
    let missing: Vec<&str> = command.split(' ').filter(|word| !shown.contains(word)).collect();
    assert_eq!(missing, [""; 0], "{texts:#?}");
    rig.ask("3");
    rig.wait_for_text(&rig.ann, "It was not allowed to run");
}

#[test]
fn a_number_that_has_expired_decides_nothing() {
    let rig = Rig::with(|_, settings| {
        settings["agent"]["permissions"] = json!("ask");
        // Also a slow machine has asked by then.
        settings["agent"]["ask_timeout"] = json!("10s");
    });
    let asked = asked(&rig);
    rig.wait_for_text(&rig.ann, "It was not allowed to run");
    // Whoever replies to it learns that; he does not mean the agent.
    rig.hand_in(|_| Inbound::new(&rig.ann, &rig.own, "1").replying_to(&asked.sid));
    rig.wait_for_text(&rig.ann, "No: ");
    assert_waits(&rig);
    assert_eq!(rig.twilio.messages_to(&rig.ann).len(), 3);
}

#[test]
fn what_was_decided_stays_so() {
    let rig = asking_so(TWICE);
    asked(&rig);
    rig.wait_for_text(&rig.ann, "echo two");
    rig.wait_until_noted();
    rig.ask("6");
    rig.ask("4");
    rig.wait_for_text(&rig.ann, "No: it was decided before");
    let heard = fs::read_to_string(rig.place.path("bin/asking-claude.heard")).unwrap();
    assert!(!heard.contains("\"allow\""), "{heard}");
}

#[test]
fn an_answer_that_is_told_twice_is_given_once() {
    let rig = rig();
    asked(&rig);
    let answer = rig.ask("1");
    rig.twilio.deliver_again(&answer);
    rig.wait_for_text(&rig.ann, "It pretended to run");
    rig.twilio.deliver_again(&answer);
    rig.ask("sim:history");
    rig.wait_for_text(&rig.ann, "so far: 2.");
    assert_eq!(rig.twilio.messages_to(&rig.ann).len(), 3);
}

#[test]
fn a_number_is_for_the_agent_where_nothing_is_asked() {
    let rig = rig();
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "Your prompt has 1 characters.");
    // What is asked elsewhere is not asked here.
    asked(&rig);
    rig.twilio.say(ANN, &rig.sms, "1");
    rig.wait_for_text(ANN, "Your prompt has 1 characters.");
    rig.twilio.say(&rig.bob, &rig.own, "1");
    rig.wait_for_text(&rig.bob, "Your prompt has 1 characters.");
    assert_waits(&rig);
}

#[test]
fn what_is_no_answer_is_for_the_agent() {
    let rig = rig();
    asked(&rig);
    rig.ask("sim:echo=later");
    // What was said is dealt with by the time that something after it is answered.
    rig.ask("/status");
    rig.wait_for_text(&rig.ann, "claude");
    assert_waits(&rig);
    rig.ask("1");
    rig.wait_for_text(&rig.ann, "It pretended to run");
    rig.wait_for_text(&rig.ann, "You said later.");
}

/// A group in which Ann has asked for something.
fn in_group(settings: impl FnOnce(&Rig, &mut Value)) -> (Rig, String) {
    let rig = Rig::with(|rig, all| {
        all["agent"]["permissions"] = json!("ask");
        settings(rig, all);
    });
    let group = rig.group();
    rig.twilio.say_in_group(&group, &rig.ann, "ostler sim:tool");
    (rig, group)
}

#[test]
fn in_a_group_only_who_asked_can_answer() {
    let (rig, group) = in_group(|_, _| {});
    rig.wait_for_said(&group, "Permission to run a command");
    rig.wait_until_noted();
    rig.twilio.say_in_group(&group, &rig.bob, "1");
    rig.wait_for_said(&group, "No: only who asked");
    rig.twilio.say_in_group(&group, &rig.ann, "1");
    rig.wait_for_said(&group, "It pretended to run");
    assert_eq!(rig.twilio.said_in(&group).len(), 3);
}

#[test]
fn in_a_group_an_owner_can_answer_for_others() {
    let (rig, group) = in_group(|_, all| all["twilio"]["owners"] = json!([BOB]));
    rig.wait_for_said(&group, "Permission to run a command");
    rig.wait_until_noted();
    rig.twilio.say_in_group(&group, &rig.bob, "ostler, yes");
    rig.wait_for_said(&group, "It pretended to run");
}

#[test]
fn in_a_group_an_answer_may_have_a_call_and_a_word_needs_one() {
    for answer in ["ostler, 1", "Ostler yes", "@ostler: allow"] {
        let (rig, group) = in_group(|_, _| {});
        rig.wait_for_said(&group, "Permission to run a command");
        rig.wait_until_noted();
        for other in ["no", "ok", "yes"] {
            rig.twilio.say_in_group(&group, &rig.ann, other);
        }
        rig.twilio.say_in_group(&group, &rig.ann, answer);
        rig.wait_for_said(&group, "It pretended to run");
        assert_eq!(rig.twilio.said_in(&group).len(), 2);
    }
}

#[test]
fn nobody_is_refused_without_end() {
    let (rig, group) = in_group(|_, all| all["twilio"]["messages_per_minute"] = json!(2));
    rig.wait_for_said(&group, "Permission to run a command");
    rig.wait_until_noted();
    for _ in 0..6 {
        rig.twilio.say_in_group(&group, &rig.bob, "1");
    }
    rig.wait_for_said(&group, "too fast");
    rig.twilio.say_in_group(&group, &rig.ann, "1");
    rig.wait_for_said(&group, "It pretended to run");
    let said = rig.twilio.said_in(&group);
    let n_refused = said.iter().filter(|(_, text)| text.contains("No: only who asked")).count();
    assert!(n_refused <= 2, "{said:#?}");
}

#[test]
fn neither_a_file_nor_a_fresh_start_answers_a_question() {
    let rig = asking_so(QUESTION);
    rig.ask("sim:tool");
    rig.wait_for_text(&rig.ann, "Which colour?");
    rig.wait_until_noted();
    let picture = Attached::new("image/png", b"\x89PNG\r\n\x1a\nhay");
    rig.hand_in(|_| Inbound::new(&rig.ann, &rig.own, "look").with(picture));
    rig.hand_in(|_| Inbound::new(&rig.ann, &rig.own, "  "));
    rig.ask("/new sim:echo=fresh");
    rig.wait_for_text(&rig.ann, "What can I do for you?");
    assert_waits(&rig);
    rig.ask("rather green");
    rig.wait_for_text(&rig.ann, "It pretended to run");
    let heard = fs::read_to_string(rig.place.path("bin/asking-claude.heard")).unwrap();
    assert!(heard.contains("\"Which colour?\":\"rather green\""), "{heard}");
    rig.wait_for_text(&rig.ann, "You said fresh.");
}

#[test]
fn in_a_group_a_question_is_not_answered_by_what_people_tell_each_other() {
    let (rig, group) = in_group(|rig, all| asking(rig, all, QUESTION));
    rig.wait_for_said(&group, "Which colour?");
    rig.wait_until_noted();
    for who in [&rig.bob, &rig.ann] {
        rig.twilio.say_in_group(&group, who, "what shall we have for dinner?");
    }
    rig.twilio.say_in_group(&group, &rig.ann, "ostler: green");
    rig.wait_for_said(&group, "It pretended to run");
    let heard = fs::read_to_string(rig.place.path("bin/asking-claude.heard")).unwrap();
    assert!(heard.contains("green") && !heard.contains("dinner"), "{heard}");
    assert_eq!(rig.twilio.said_in(&group).len(), 2);
    rig.twilio.wait_for("nothing waits", LIMIT, |world| (world.under_way() == 0).then_some(()));
}
