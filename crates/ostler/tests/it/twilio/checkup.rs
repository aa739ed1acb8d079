//! What `ostler doctor` says of the account, and what `ostler serve` says of one that
//! cannot be used.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::rig::Rig;
use crate::{
    checkup::{Finding, check, check_well, errors, examined},
    gateway::daemon::{configure, end_of, serve},
    support::Place,
    twilio_double::Twilio,
};

/// A number that is not the sandbox's.
const SENDER: &str = "+15017122999";

/// Returns settings that say all that an account needs, for one that is asked.
fn settings(twilio: &Twilio) -> Value {
    json!({ "twilio": {
        "account_sid": twilio.account_sid(),
        "auth_token": twilio.auth_token(),
        "whatsapp_from": twilio.whatsapp_number(),
        "sms_from": twilio.sms_number(),
        "allow_from": ["+15551110001"],
        "api_url": twilio.api_url(),
    }})
}

/// Asks the doctor about an account of a double that was changed.
fn findings(change: impl FnOnce(&Twilio, &mut Value)) -> Vec<Finding> {
    let twilio = Twilio::start();
    let mut settings = settings(&twilio);
    change(&twilio, &mut settings);
    let place = Place::new();
    configure(&place, &settings);
    examined(&place, &secrets(&twilio))
}

/// Returns what nobody may be told.
fn secrets(twilio: &Twilio) -> [String; 2] {
    let (_, secret) = twilio.api_key();
    [twilio.auth_token(), secret]
}

#[test]
fn a_service_is_no_reason_not_to_look_where_messages_by_whatsapp_go() {
    // Nobody listens there any more.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let all = findings(|twilio, settings| {
        twilio.sender_has(SENDER);
        twilio.set_webhook("https://demo.twilio.com/welcome");
        let all = &mut settings["twilio"];
        all["whatsapp_from"] = json!(SENDER);
        all["messaging_service"] = json!(twilio.messaging_service());
        all["public_url"] = json!(format!("http://{gone}"));
    });
    let told = format!("messages to {SENDER} are told to https://demo.twilio.com/welcome");
    let of_numbers = |it: &str| it.contains(&told) || it.contains("to the numbers of MG");
    let n_told = errors(&all).iter().filter(|it| it.contains("are told to")).count();
    let wrong = errors(&all);
    assert!(wrong.iter().filter(|it| of_numbers(it)).count() == 2 && n_told == 2, "{all:#?}");
}

#[test]
fn it_is_looked_where_what_is_said_in_groups_is_told() {
    // Nobody listens there, which is told as well.
    let here = "http://127.0.0.1:9";
    let told = |url: &str, what: &str| {
        let all = findings(|twilio, settings| {
            if !url.is_empty() {
                twilio.set_conversation_webhook(url);
            }
            let all = &mut settings["twilio"];
            all["groups"] = json!([twilio.group("Stable", &["whatsapp:+15551110001"])]);
            all["public_url"] = json!(here);
        });
        let n_told = all.iter().filter(|it| it.message.contains(what)).count();
        assert_eq!(n_told, 1, "{what}: {all:#?}");
    };
    told("", &format!("messages in groups are told to nobody, not to {here}/twilio/groups"));
    told("https://demo.twilio.com/", "messages in groups are told to https://demo.twilio.com/,");
    told(&format!("{here}/twilio/groups"), "Twilio tells of what is said in groups");
}

#[test]
fn an_account_with_all_that_it_needs_is_well() {
    let rig = Rig::start();
    check_well(
        &examined(&rig.place, &secrets(&rig.twilio)),
        &["token", "sandbox", "SMS answers", "a gateway answers at", "clock"],
    );
    // What calls it without a signature is told of in the log, as anybody's call is.
    assert!(rig.log().contains("a call was not signed by Twilio"), "{}", rig.log());
}

#[test]
fn a_key_that_may_not_look_at_the_account_is_as_good() {
    let with_key = |twilio: &Twilio, settings: &mut Value| {
        let (key, secret) = twilio.api_key();
        let all = settings["twilio"].as_object_mut().unwrap();
        all.remove("auth_token");
        all.extend([("api_key".to_owned(), json!(key)), ("api_secret".to_owned(), json!(secret))]);
    };
    check_well(&findings(with_key), &["Twilio takes the API key"]);
    check(
        &findings(|twilio, settings| {
            with_key(twilio, settings);
            settings["twilio"]["api_secret"] = json!("wrong");
        }),
        "the API key is refused",
    );
}

#[test]
fn what_is_wrong_is_named() {
    check(&findings(|twilio, _| twilio.reject_credentials()), "does not take the login");
    check(&findings(|twilio, _| twilio.account_is("suspended")), "the account is suspended");
    let unknown = format!("AC{}", "0".repeat(32));
    check(
        &findings(|_, all| all["twilio"]["account_sid"] = json!(unknown)),
        "the account could not",
    );
    check(
        &findings(|_, all| all["twilio"]["sms_from"] = json!("+15550000000")),
        "is not a number of",
    );
    let group = format!("CH{}", "0".repeat(32));
    check(&findings(|_, all| all["twilio"]["groups"] = json!([group])), "there is no group CH0");
    check(&findings(|_, all| all["twilio"]["whatsapp_from"] = json!(SENDER)), "has no WhatsApp");
    let of_sender = |status: &'static str| {
        findings(|twilio, settings| {
            twilio.sender_has(SENDER);
            twilio.sender_is(status);
            settings["twilio"]["whatsapp_from"] = json!(SENDER);
        })
    };
    check(&of_sender("OFFLINE"), "is OFFLINE for WhatsApp");
    check_well(&of_sender("ONLINE"), &[]);
}

#[test]
fn where_messages_are_told_is_looked_at_from_both_ends() {
    // Nobody listens at the public address any more.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let called = |webhook: &str| {
        findings(|twilio, settings| {
            twilio.sender_has(SENDER);
            twilio.set_webhook(webhook);
            settings["twilio"]["whatsapp_from"] = json!(SENDER);
            settings["twilio"]["public_url"] = json!(format!("http://{gone}"));
        })
    };
    let all = called("https://demo.twilio.com/welcome");
    let wrong = errors(&all);
    assert_eq!(wrong.len(), 3, "{all:#?}");
    assert!(wrong[0].contains(SENDER) && wrong[1].contains("+15017122661"), "{all:#?}");
    assert!(wrong[2].contains("could not be reached"), "{all:#?}");
    check(&called(&format!("http://{gone}/twilio/messages")), "could not be reached");
    // The double of Twilio is somebody else.
    let all = findings(|twilio, settings| {
        twilio.set_webhook(&format!("{}/twilio/messages", twilio.api_url()));
        settings["twilio"]["public_url"] = json!(twilio.api_url());
    });
    check(&all, "which is not this gateway");
}

#[test]
fn an_account_of_which_half_is_said_keeps_the_gateway_from_starting() {
    let twilio = Twilio::start();
    let half = |change: &dyn Fn(&mut Value)| {
        let place = Place::new();
        let mut settings = settings(&twilio);
        change(&mut settings["twilio"]);
        configure(&place, &settings);
        let outcome = end_of(serve(&place));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains(&twilio.auth_token()), "{}", outcome.stderr);
        outcome.stderr
    };
    let remove = |names: &'static [&str]| {
        move |all: &mut Value| {
            let all = all.as_object_mut().unwrap();
            all.retain(|name, _| !names.contains(&name.as_str()));
        }
    };
    // Everything is named at once, with the variables that would do.
    let said = half(&remove(&["auth_token", "whatsapp_from", "sms_from"]));
    for name in ["TWILIO_AUTH_TOKEN", "TWILIO_WHATSAPP_FROM", "twilio.messaging_service"] {
        assert!(said.contains(name), "{name}: {said}");
    }
    // An account that is not named is not passed over.
    let said = half(&remove(&["account_sid"]));
    assert!(said.contains("TWILIO_ACCOUNT_SID") && !said.contains("AUTH_TOKEN"), "{said}");
    let said = half(&|all| all["receive"] = json!("webhook"));
    assert!(said.contains("twilio.public_url"), "{said}");
    let said = half(&|all| all["auth_token"] = json!({ "file": "/nowhere/token" }));
    assert!(said.contains("/nowhere/token"), "{said}");
}
