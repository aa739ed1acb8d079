//! Rules that were stored with a session before a server of ours opens it.

use super::*;
use crate::{
    agent::{ONLY_SESSION, Order, http::Method},
    memo::Memo,
    request::Open,
};

fn reading() -> Options {
    Options { permissions: Permissions::ReadOnly, ..options() }
}

fn everything() -> Value {
    json!([{ "permission": "*", "pattern": "*", "action": "allow" }])
}

/// A turn in a session that was stored with these rules.
fn resumed(options: &Options, rules: Option<Value>) -> Talk {
    let mut talk = Talk::ready();
    let open = Open::Resume(Box::new(Memo::of_id("opencode", SESSION)));
    talk.order(Order::Open { session: ONLY_SESSION, open: &open, options });
    talk.prompt(FIRST, "hi", options);
    let mut session = json!({ "id": SESSION, "directory": "/workspace" });
    if let Some(rules) = rules {
        session["permission"] = rules;
    }
    talk.reply("/session/", 200, &session);
    talk
}

fn is_prompted(talk: &Talk) -> bool {
    talk.urls().iter().any(|url| url.contains("/prompt_async"))
}

#[test]
fn a_restricted_turn_replaces_the_rules_that_its_session_has() {
    for options in [reading(), asking()] {
        let mut talk = resumed(&options, Some(everything()));
        assert!(!is_prompted(&talk), "not before the rules");
        let (call, request) = talk.open_calls.pop().unwrap();
        assert_eq!(request.method, Method::Patch);
        let rules = request.body.unwrap()["permission"].clone();
        let bash = json!({ "permission": "bash", "pattern": "*", "action": "allow" });
        assert!(rules[0]["action"] != "allow" && !rules.as_array().unwrap().contains(&bash));
        let mut all = everything();
        all.as_array_mut().unwrap().extend(rules.as_array().unwrap().clone());
        talk.reply_to(call, Ok((200, &json!({ "id": SESSION, "permission": all }))));
        assert!(is_prompted(&talk));
        assert_eq!(talk.body("/prompt_async")["agent"], "ostler");
    }
}

#[test]
fn sub_agents_are_left_to_the_settings_of_a_server_of_ours() {
    let talk = resumed(&asking(), Some(everything()));
    let rules = talk.body(&format!("/session/{SESSION}?"))["permission"].clone();
    let refused = json!({ "permission": "task", "pattern": "*", "action": "deny" });
    assert!(!rules.as_array().unwrap().contains(&refused), "{rules}");
}

#[test]
fn a_restricted_turn_whose_session_keeps_its_rules_is_not_begun() {
    let mut talk = resumed(&reading(), Some(everything()));
    let (call, _) = talk.open_calls.pop().unwrap();
    talk.reply_to(call, Ok((200, &json!({ "id": SESSION, "permission": everything() }))));
    assert_eq!(failure_of(&talk.actions, FIRST).0, "invalid_request");
    assert!(!is_prompted(&talk));
}

#[test]
fn rules_that_a_session_gets_while_it_is_open_are_replaced_too() {
    let mut talk = Talk::running(&reading());
    talk.complete("1", "stop");
    talk.idle();
    let info = json!({ "id": SESSION, "permission": everything() });
    talk.tell("session.updated", json!({ "info": info }));
    talk.prompt(SECOND, "more", &reading());
    assert_eq!(talk.open_calls.last().unwrap().1.method, Method::Patch);
    assert!(!is_prompted(&talk));
}

#[test]
fn a_session_without_rules_is_prompted_at_once() {
    for rules in [None, Some(json!([]))] {
        assert!(is_prompted(&resumed(&reading(), rules)));
    }
}

#[test]
fn a_turn_that_may_do_everything_is_not_held_by_the_rules_of_one_before() {
    let deny = json!([{ "permission": "*", "pattern": "*", "action": "deny" }]);
    let talk = resumed(&options(), Some(deny));
    assert!(is_prompted(&talk));
    assert_eq!(talk.body("/prompt_async")["tools"], json!({ "question": false }));
    let talk = resumed(&options(), None);
    assert_eq!(talk.body("/prompt_async").get("tools"), None);
}
