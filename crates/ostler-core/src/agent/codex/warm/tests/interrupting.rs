//! Cancelling, and what a turn leaves behind.

use super::*;
use crate::agent::{ONLY_SESSION, Order};

const FIRST: TurnKey = TurnKey(0);
const SECOND: TurnKey = TurnKey(1);
const CLEAN: &str = "thread/backgroundTerminals/clean";

fn command(status: &str) -> Value {
    json!({ "item": { "type": "commandExecution", "id": "c", "command": "sleep 9", "status": status } })
}

#[test]
fn a_cancelled_turn_is_interrupted_and_ends_when_its_commands_are_gone() {
    let mut talk = Talk::running(&options(), FIRST);
    talk.tell_turn("item/started", command("inProgress"));
    let then = talk.cancel(FIRST);
    assert_eq!(methods(&then), ["turn/interrupt"]);
    assert_eq!(
        talk.last_request("turn/interrupt")["params"],
        json!({ "threadId": THREAD, "turnId": TURN })
    );
    talk.answer_ok("turn/interrupt", json!({}));
    let then = talk.over("interrupted", Value::Null);
    assert_eq!(methods(&then), [CLEAN]);
    assert!(!then.iter().any(|action| matches!(action, Action::EndTurn { .. })), "not yet");
    let then = talk.answer_ok(CLEAN, json!({}));
    assert!(!then.iter().any(|action| matches!(action, Action::EndTurn { .. })), "nor now");
    // What the server says of the killed command belongs to the turn.
    let then = talk.tell_turn("item/completed", command("failed"));
    assert!(matches!(&then[0], Action::Emit { turn: FIRST, .. }));
    assert_eq!(failure_of(&then, FIRST), ("cancelled", "the turn was interrupted"));
    let then = talk.prompt(SECOND, "next", &options());
    assert_eq!(methods(&then), ["turn/start"]);
}

#[test]
fn a_turn_ends_when_the_cleaning_takes_too_long() {
    let mut talk = Talk::running(&options(), FIRST);
    talk.cancel(FIRST);
    talk.over("interrupted", Value::Null);
    let then = talk.ring();
    assert_eq!(failure_of(&then, FIRST).0, "cancelled");
    assert!(talk.answer_ok(CLEAN, json!({})).is_empty(), "too late to matter");
}

#[test]
fn an_interruption_waits_until_the_turn_has_begun() {
    let mut talk = Talk::open(&options());
    talk.prompt(FIRST, "hi", &options());
    assert!(methods(&talk.cancel(FIRST)).is_empty());
    talk.answer_ok("turn/start", json!({ "turn": { "id": TURN } }));
    let started = json!({ "threadId": THREAD, "turn": { "id": TURN } });
    let then = talk.notify("turn/started", started);
    assert_eq!(methods(&then), ["turn/interrupt"]);
}

#[test]
fn a_cancelled_turn_that_does_not_end_is_left_to_the_driver() {
    let mut talk = Talk::running(&options(), FIRST);
    talk.cancel(FIRST);
    assert!(talk.ring().is_empty(), "the next prompt would join it");
    assert!(talk.cancel(FIRST).is_empty(), "a second request would get no answer");
    let then = talk.order(Order::Close { session: ONLY_SESSION });
    assert_eq!(methods(&then), [CLEAN, "thread/unsubscribe"]);
    assert!(talk.over("interrupted", Value::Null).is_empty());
}

#[test]
fn a_prompt_that_was_never_sent_is_cancelled_at_once() {
    let mut talk = Talk::ready();
    talk.open_session(ONLY_SESSION, &Open::New, &options());
    talk.prompt(FIRST, "hi", &options());
    let then = talk.cancel(FIRST);
    assert_eq!(failure_of(&then, FIRST).0, "cancelled");
    let then = talk.answer_ok("thread/start", server::thread(THREAD));
    assert!(methods(&then).is_empty());
}

#[test]
fn commands_that_a_finished_turn_left_running_are_ended() {
    let mut talk = Talk::running(&options(), FIRST);
    talk.tell_turn("item/started", command("inProgress"));
    let then = talk.over("completed", Value::Null);
    assert_eq!(methods(&then), [CLEAN]);
    talk.refuse(CLEAN, "no such thread");
    let then = talk.ring();
    assert!(end_of(&then, FIRST).failure.is_none(), "its last words never came");
}

#[test]
fn a_turn_that_is_over_cannot_be_cancelled() {
    let mut talk = Talk::running(&options(), FIRST);
    talk.over("completed", Value::Null);
    assert!(talk.cancel(FIRST).is_empty());
    assert!(talk.cancel(SECOND).is_empty());
}

#[test]
fn a_turn_whose_process_ends_while_it_is_cleaned_up_keeps_its_figures() {
    let mut talk = Talk::running(&options(), FIRST);
    talk.tell_turn("item/started", command("inProgress"));
    let total = json!({ "inputTokens": 7, "outputTokens": 5 });
    talk.tell_turn("thread/tokenUsage/updated", json!({ "tokenUsage": { "total": total } }));
    talk.over("completed", Value::Null);
    let then = talk.exit(&crate::agent::testing::exit(0, ""));
    let end = end_of(&then, FIRST);
    assert_eq!(end.totals.map(|totals| totals.input_tokens), Some(7));
    assert_eq!(end.meta["version"], "0.166.0");
}
