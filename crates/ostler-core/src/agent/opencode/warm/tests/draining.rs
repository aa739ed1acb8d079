//! Prompts that were cancelled before the server took them up.

use super::*;
use crate::{
    agent::{ONLY_SESSION, Order, SessionKey},
    memo::Memo,
    request::Open,
};

const NEXT: SessionKey = SessionKey(1);

/// Begins a conversation with a prompt that was cancelled before it was taken up.
fn cancelled() -> Talk {
    let mut talk = Talk::sent(&options());
    talk.cancel(FIRST);
    assert!(talk.urls().is_empty(), "{:?}", talk.urls());
    talk
}

fn is_called(talk: &Talk, path: &str) -> bool {
    talk.urls().iter().any(|url| url.contains(path))
}

fn answer_aborts(talk: &mut Talk) {
    while is_called(talk, "/abort") {
        talk.reply("/abort", 200, &json!(true));
    }
}

/// The same session is opened again, and prompted.
fn reopen(talk: &mut Talk) {
    let open = Open::Resume(Box::new(Memo::of_id("opencode", SESSION)));
    talk.order(Order::Open { session: NEXT, open: &open, options: &options() });
    talk.prompt_in(NEXT, SECOND, "again", &options());
    let session = json!({ "id": SESSION, "directory": "/workspace" });
    talk.reply(&format!("/session/{SESSION}?"), 200, &session);
}

#[test]
fn a_prompt_that_is_not_taken_up_in_time_is_aborted_before_the_next_one_is_sent() {
    let mut talk = cancelled();
    talk.prompt(SECOND, "again", &options());
    talk.ring();
    assert!(is_called(&talk, "/abort") && !is_called(&talk, "/prompt_async"), "{:?}", talk.urls());
    answer_aborts(&mut talk);
    assert!(is_called(&talk, "/prompt_async"));
}

#[test]
fn a_prompt_that_is_not_found_after_the_stream_was_lost_is_aborted_too() {
    let mut talk = cancelled();
    talk.prompt(SECOND, "again", &options());
    talk.lose();
    talk.ring();
    talk.tell("server.connected", json!({}));
    for _ in 0..11 {
        talk.reply("/message?", 200, &json!([]));
        talk.reply("/session/status", 200, &json!({}));
        talk.ring();
    }
    assert!(is_called(&talk, "/abort") && !is_called(&talk, "/prompt_async"), "{:?}", talk.urls());
    answer_aborts(&mut talk);
    assert!(is_called(&talk, "/prompt_async"));
}

#[test]
fn closing_a_session_does_not_let_go_of_a_prompt_that_nobody_wants() {
    let mut talk = cancelled();
    talk.order(Order::Close { session: ONLY_SESSION });
    talk.begin("1");
    assert!(is_called(&talk, "/abort"), "it would run for nobody");
    talk.tell("permission.asked", json!({ "id": "per_1", "permission": "bash" }));
    assert_eq!(talk.body("/permission/per_1/reply")["reply"], "reject");
    answer_aborts(&mut talk);
    talk.complete("1", "");
    talk.idle();
    answer_aborts(&mut talk);
    let out = talk.tell("permission.asked", json!({ "id": "per_2", "permission": "bash" }));
    assert!(out.is_empty(), "the session is forgotten: {out:?}");
}

#[test]
fn a_closed_session_is_let_go_of_in_time_though_its_prompt_is_never_taken_up() {
    let mut talk = cancelled();
    talk.order(Order::Close { session: ONLY_SESSION });
    talk.ring();
    assert!(is_called(&talk, "/abort"), "{:?}", talk.urls());
    answer_aborts(&mut talk);
    let out = talk.tell("permission.asked", json!({ "id": "per_1", "permission": "bash" }));
    assert!(out.is_empty(), "the session is forgotten: {out:?}");
}

#[test]
fn a_session_that_is_opened_again_waits_for_a_prompt_that_nobody_wants() {
    let mut talk = cancelled();
    talk.order(Order::Close { session: ONLY_SESSION });
    reopen(&mut talk);
    assert!(!is_called(&talk, "/prompt_async"), "{:?}", talk.urls());
    talk.begin("1");
    talk.text("msg_a1", "prt_1", "Not for the next turn", true);
    talk.complete("1", "");
    talk.idle();
    assert!(!is_called(&talk, "/prompt_async"), "a late abort would end it");
    answer_aborts(&mut talk);
    talk.reply("/prompt_async", 204, &Value::Null);
    // What is told late of the first is not taken for the second.
    talk.complete("1", "");
    talk.idle();
    assert!(!has_ended(&talk.actions, SECOND) && shown(&talk.actions).is_empty());
    talk.begin("2");
    talk.text("msg_a2", "prt_2", "Hello", true);
    talk.complete("2", "stop");
    talk.idle();
    assert_eq!(end_of(&talk.actions, SECOND).text.as_deref(), Some("Hello"));
}

#[test]
fn closing_a_session_whose_turn_does_not_end_aborts_it_and_forgets_it() {
    let mut talk = Talk::running(&asking());
    talk.cancel(FIRST);
    talk.open_calls.clear();
    talk.order(Order::Close { session: ONLY_SESSION });
    assert!(is_called(&talk, "/abort"), "{:?}", talk.urls());
    answer_aborts(&mut talk);
    talk.complete("1", "");
    talk.idle();
    assert!(!has_ended(&talk.actions, FIRST), "nobody waits for it");
}
