//! Turns that end before they are done: cancelled, given up, or with their process.

use std::time::Duration;

use super::*;
use crate::agent::{TimerKey, testing::has_stopped};

#[test]
fn cancel_is_the_interrupt_of_the_protocol_and_its_result_the_end() {
    let mut talk = Talk::ready();
    talk.prompt(0, "hi");
    talk.begin();
    let out = talk.cancel(0);
    assert_eq!(written(&out)[0]["request"], json!({"subtype": "interrupt", "cancel_queued": true}));
    assert!(ends(&out).is_empty());
    assert!(talk.cancel(0).is_empty(), "once");
    talk.confirm("interrupt");
    let end = json!({"type": "result", "subtype": "error_during_execution", "is_error": true,
        "terminal_reason": "aborted_streaming", "num_turns": 1, "session_id": NEW_ID,
        "user_message_uuids": [talk.message_id()]});
    assert_eq!(outcomes(&talk.say(&end)), [(0, "cancelled")]);
    assert!(talk.say(&says("late")).is_empty(), "nothing of it is told any more");
    assert_eq!(written(&talk.prompt(1, "next"))[0]["type"], "user");
    assert!(talk.say(&says("later")).is_empty(), "nor is it told to the next turn");
}

#[test]
fn a_prompt_that_was_not_sent_is_cancelled_at_once() {
    let mut talk = Talk::ready();
    talk.played.options.model = Some("opus".into());
    talk.prompt(0, "hi");
    assert_eq!(outcomes(&talk.cancel(0)), [(0, "cancelled")]);
    assert!(written(&talk.confirm("set_model")).is_empty(), "it is not sent afterwards");
}

#[test]
fn a_prompt_that_the_cli_dropped_before_it_began_ends_without_a_result() {
    let mut talk = Talk::ready();
    talk.prompt(0, "hi");
    let id = talk.message_id();
    talk.cancel(0);
    assert_eq!(outcomes(&talk.say(&lifecycle(&id, "cancelled"))), [(0, "cancelled")]);
    let answer = json!({"subtype": "success", "response": {"cancelled": [id]}});
    assert!(ends(&talk.respond("interrupt", &answer)).is_empty());
    talk.prompt(1, "hi");
    let id = talk.message_id();
    talk.cancel(1);
    let answer = json!({"subtype": "success", "response": {"cancelled": [id]}});
    assert_eq!(outcomes(&talk.respond("interrupt", &answer)), [(1, "cancelled")]);
}

#[test]
fn the_next_prompt_waits_until_the_interrupt_was_taken() {
    let mut talk = Talk::ready();
    talk.prompt(0, "hi");
    talk.begin();
    talk.cancel(0);
    talk.finish("done before it was cancelled");
    assert!(written(&talk.prompt(1, "next")).is_empty());
    assert_eq!(written(&talk.confirm("interrupt"))[0]["message"]["content"], "next");
}

fn armed(actions: &[Action]) -> TimerKey {
    let armed = actions.iter().find_map(|action| {
        let Action::Arm { timer, .. } = action else { return None };
        Some(*timer)
    });
    armed.expect("a timer")
}

#[test]
fn a_process_that_does_not_answer_what_a_prompt_waits_for_is_stopped() {
    let mut talk = Talk::ready();
    talk.prompt(0, "hi");
    talk.begin();
    talk.cancel(0);
    talk.finish("done before it was cancelled");
    let out = talk.prompt(1, "next");
    assert!(written(&out).is_empty(), "it waits");
    let out = talk.step(Input::Timer(armed(&out)));
    assert!(has_stopped(&out[..1]), "before anybody gives it another prompt");
    assert_eq!(outcomes(&out), [(1, "crashed")]);
    let failure = ends(&out)[0].1.failure.as_ref().unwrap();
    assert!(failure.kind.retryable() && failure.message.contains("did not answer"));
    assert!(written(&talk.confirm("interrupt")).is_empty(), "too late");
    assert!(talk.exit(&exit(143, "")).is_empty(), "once");
}

#[test]
fn a_process_that_does_not_answer_to_a_model_is_stopped() {
    let mut talk = Talk::ready();
    talk.played.options.model = Some("opus".into());
    let out = talk.prompt(0, "hi");
    let out = talk.step(Input::Timer(armed(&out)));
    assert!(has_stopped(&out));
    assert_eq!(outcomes(&out), [(0, "crashed")]);
}

#[test]
fn a_prompt_that_waited_is_not_given_up_once_it_was_sent() {
    let mut talk = Talk::ready();
    talk.prompt(0, "hi");
    talk.begin();
    talk.cancel(0);
    talk.finish("");
    let timer = armed(&talk.prompt(1, "next"));
    talk.confirm("interrupt");
    assert!(talk.step(Input::Timer(timer)).is_empty());
    talk.begin();
    assert!(talk.step(Input::Timer(timer)).is_empty(), "nor while its turn runs");
    assert_eq!(outcomes(&talk.finish("hello")), [(1, "hello")]);
}

#[test]
fn cancelling_an_unasked_turn_leaves_the_prompt_behind_it() {
    let mut talk = Talk::ready();
    talk.say(&init(&[]));
    talk.prompt(0, "hi");
    let out = talk.cancel(TurnKey::unasked(0).0);
    assert_eq!(written(&out)[0]["request"], json!({"subtype": "interrupt"}));
}

#[test]
fn what_an_interrupted_turn_left_in_the_background_is_stopped() {
    let task =
        |subtype: &str, id: &str| json!({"type": "system", "subtype": subtype, "task_id": id});
    for (cancelled, expected) in [(true, vec!["b"]), (false, vec![])] {
        let mut talk = Talk::ready();
        talk.prompt(0, "hi");
        talk.begin();
        talk.say(&task("task_started", "a"));
        talk.say(&task("task_started", "b"));
        talk.say(&task("task_notification", "a"));
        if cancelled {
            talk.cancel(0);
        }
        let out = talk.finish("");
        let stopped: Vec<_> =
            written(&out).iter().map(|line| line["request"]["task_id"].clone()).collect();
        assert_eq!(stopped, expected);
    }
}

#[test]
fn a_wait_that_the_provider_asks_for_ends_the_turn_and_keeps_the_process() {
    let mut talk = Talk::ready();
    talk.prompt(0, "hi");
    talk.begin();
    let retry = json!({"type": "system", "subtype": "api_retry", "retry_delay_ms": 60_000,
        "error_status": 429, "error": "rate_limit"});
    let out = talk.say(&retry);
    assert_eq!(request_ids(&out, "interrupt").len(), 1);
    assert!(!has_stopped(&out));
    let mut end = result(&[&talk.message_id()], "");
    end["terminal_reason"] = json!("aborted_streaming");
    end["is_error"] = json!(true);
    let out = talk.say(&end);
    assert_eq!(outcomes(&out), [(0, "rate_limited")]);
    let failure = ends(&out)[0].1.failure.as_ref().unwrap();
    assert_eq!(failure.retry_after, Some(Duration::from_secs(60)));
    assert!(talk.step(Input::Timer(TimerKey(0))).is_empty(), "the turn is over");
}

#[test]
fn a_process_that_does_not_end_a_turn_that_was_given_up_is_stopped() {
    let mut talk = Talk::ready();
    talk.prompt(0, "hi");
    talk.begin();
    let retry = json!({"type": "system", "subtype": "api_retry", "retry_delay_ms": 60_000,
        "error_status": 529, "error": "overloaded"});
    let out = talk.say(&retry);
    assert!(has_stopped(&talk.step(Input::Timer(armed(&out)))));
    assert_eq!(outcomes(&talk.exit(&exit(143, ""))), [(0, "overloaded")]);
}

#[test]
fn the_death_of_the_process_ends_every_turn_in_it() {
    let mut talk = Talk::ready();
    talk.say(&init(&[]));
    talk.prompt(0, "hi");
    let killed = Exit { code: None, signal: Some(libc::SIGKILL), stderr: String::new() };
    let out = talk.exit(&killed);
    assert_eq!(outcomes(&out), [(TurnKey::unasked(0).0, "crashed"), (0, "crashed")]);
    let mut talk = Talk::ready();
    assert!(talk.exit(&killed).is_empty(), "nothing ran");
}
