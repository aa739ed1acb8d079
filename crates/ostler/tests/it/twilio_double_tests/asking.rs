//! Who may ask what, and what is listed.

use reqwest::Method;
use serde_json::Value;

use super::rig::{ADA, BOB, Rig};
use crate::twilio_double::Inbound;

#[test]
fn credentials_that_are_wrong_are_refused_with_20003() {
    let rig = Rig::new();
    let (account, token) = (rig.twilio.account_sid(), rig.twilio.auth_token());
    let path = rig.path("/Messages.json");
    for (user, password) in [("", ""), (account.as_str(), "x"), ("AC1", token.as_str())] {
        let answer = rig.call_as(user, password, Method::GET, &path, &[]).unwrap();
        assert_eq!(answer.code(), (401, 20003));
    }
    assert_eq!(rig.get(&path).status, 200);
    rig.twilio.reject_credentials();
    assert_eq!(rig.get(&path).code(), (401, 20003));
}

#[test]
fn a_standard_key_can_do_all_but_look_at_the_account() {
    let rig = Rig::new();
    let (key, secret) = rig.twilio.api_key();
    let ask = |path: &str| rig.call_as(&key, &secret, Method::GET, path, &[]).unwrap();
    assert_eq!(ask(&rig.path("/Messages.json")).status, 200);
    assert_eq!(ask(&rig.path(".json")).code(), (401, 20003));
}

#[test]
fn another_account_and_what_is_not_there_are_not_found() {
    let rig = Rig::new();
    let none = "0".repeat(32);
    for path in [
        format!("/2010-04-01/Accounts/AC{none}/Messages.json"),
        rig.path(&format!("/Messages/SM{none}.json")),
        rig.path(&format!("/Messages/SM{none}/Media.json")),
        rig.path(&format!("/Messages/SM{none}/Media/ME{none}")),
        rig.path("/Calls.json"),
        format!("/v1/Conversations/CH{none}"),
        format!("/v1/Services/IS{none}/Media/ME{none}"),
        format!("/v2/Channels/Senders/XE{none}"),
    ] {
        assert_eq!(rig.get(&path).code(), (404, 20404), "{path}");
    }
    let answer = rig.call(Method::DELETE, &rig.path("/Messages.json"), &[]);
    assert_eq!(answer.code(), (405, 20004));
}

#[test]
fn the_account_its_number_and_its_sender_are_told() {
    let rig = Rig::new();
    rig.twilio.set_webhook("https://example.org/hook");
    let account = rig.get(&rig.path(".json")).json();
    assert_eq!(account["status"], "active");
    let sms = rig.twilio.sms_number();
    let query = format!("/IncomingPhoneNumbers.json?PhoneNumber=%2B{}", &sms[1..]);
    let numbers = rig.get(&rig.path(&query)).json();
    let number = &numbers["incoming_phone_numbers"][0];
    assert_eq!((&number["phone_number"], &number["sms_url"]), (&sms.into(), &hook()));
    let others = rig.get(&rig.path("/IncomingPhoneNumbers.json?PhoneNumber=%2B4930")).json();
    assert_eq!(others["incoming_phone_numbers"], Value::Array(Vec::new()));
    let senders = rig.get("/v2/Channels/Senders?Channel=whatsapp").json();
    let sender = &senders["senders"][0];
    assert_eq!(sender["sender_id"], format!("whatsapp:{}", rig.twilio.whatsapp_number()));
    assert_eq!(
        (&sender["status"], &sender["webhook"]["callback_url"]),
        (&"ONLINE".into(), &hook())
    );
    rig.twilio.sender_is("OFFLINE");
    let path = format!("/v2/Channels/Senders/{}", sender["sid"].as_str().unwrap());
    assert_eq!(rig.get(&path).json()["status"], "OFFLINE");
    assert_eq!(rig.get("/v2/Channels/Senders").code(), (400, 20001));
}

fn hook() -> Value {
    "https://example.org/hook".into()
}

#[test]
fn messages_are_listed_by_pages_with_the_newest_first() {
    let rig = Rig::new();
    let ours = rig.ours(BOB);
    let mut said: Vec<String> = (0..5)
        .map(|number| rig.twilio.say_unheard(&Inbound::new(BOB, &ours, &format!("{number}"))))
        .collect();
    rig.twilio.say_unheard(&Inbound::new("+15005550007", &ours, "somebody else"));
    rig.sent(BOB, &[("Body", "an answer")]);
    let query = format!("/Messages.json?From=%2B{}&PageSize=2", &BOB[1..]);
    let (mut next, mut listed, mut n_pages) = (Some(rig.path(&query)), Vec::new(), 0);
    while let Some(path) = next {
        let page = rig.get(&path).json();
        n_pages += 1;
        for message in page["messages"].as_array().unwrap() {
            assert_eq!(message["direction"], "inbound");
            listed.push(message["sid"].as_str().unwrap().to_owned());
        }
        // What comes while somebody reads does not move the pages.
        rig.twilio.say_unheard(&Inbound::new(BOB, &ours, "later"));
        next = page["next_page_uri"].as_str().map(ToOwned::to_owned);
    }
    said.reverse();
    assert_eq!((listed, n_pages), (said, 3));
    assert_eq!(rig.get(&rig.path("/Messages.json?PageSize=0")).code(), (400, 20001));
    assert_eq!(rig.get(&rig.path("/Messages.json?PageToken=PAx")).code(), (400, 20001));
}

#[test]
fn messages_are_listed_by_whom_they_are_for_and_when_they_were_sent() {
    let rig = Rig::new();
    rig.twilio.say_unheard(&Inbound::new(ADA, &rig.ours(ADA), "one"));
    let count = |query: &str| {
        let page = rig.get(&rig.path(&format!("/Messages.json?{query}"))).json();
        page["messages"].as_array().unwrap().len()
    };
    let ours = rig.ours(ADA).replace('+', "%2B");
    assert_eq!(count(&format!("To={ours}")), 1);
    assert_eq!(count("To=%2B1"), 0);
    assert_eq!(count("DateSent%3E=2020-01-01"), 1);
    assert_eq!(count("DateSent>=2020-01-01T00:00:00Z"), 1);
    assert_eq!(count("DateSent%3E=2999-01-01"), 0);
    assert_eq!(count("DateSent%3C=2020-01-01"), 0);
    assert_eq!(count("DateSent=2020-01-01"), 0);
    assert_eq!(rig.get(&rig.path("/Messages.json?DateSent=soon")).code(), (400, 20001));
}
