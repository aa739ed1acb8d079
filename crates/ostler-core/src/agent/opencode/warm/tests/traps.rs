//! The server's traps, one each.

use super::*;
use crate::{
    agent::{ONLY_SESSION, Order, SessionKey},
    request::Open,
};

#[test]
fn a_turn_is_one_prompt_and_what_answers_it() {
    let mut talk = Talk::running(&options());
    talk.text("msg_a1", "prt_1", "", false);
    talk.piece("prt_1", "Hel");
    talk.piece("prt_1", "lo");
    talk.text("msg_a1", "prt_1", "Hello", true);
    talk.complete("1", "stop");
    assert!(!has_ended(&talk.actions, FIRST), "the session is not idle");
    talk.idle();
    let end = end_of(&talk.actions, FIRST);
    assert_eq!((end.text.as_deref(), end.model.as_deref()), (Some("Hello"), Some("p/m")));
    assert_eq!(shown(&talk.actions), "Hello");
}

#[test]
fn an_idle_of_the_turn_before_does_not_end_the_next() {
    let mut talk = Talk::running(&options());
    talk.cancel(FIRST);
    talk.tell("session.error", json!({ "error": { "name": "MessageAbortedError" } }));
    talk.idle();
    assert!(!has_ended(&talk.actions, FIRST), "its message is not complete");
    talk.complete("1", "");
    talk.idle();
    assert_eq!(failure_of(&talk.actions, FIRST).0, "cancelled");
    talk.reply("/abort", 200, &json!(true));
    talk.prompt(SECOND, "again", &options());
    talk.idle();
    talk.begin("2");
    talk.idle();
    assert!(!has_ended(&talk.actions, SECOND));
    // It is looked into whether that was meant, and it was not.
    talk.reply("/message?", 200, &json!([]));
    talk.reply("/session/status", 200, &json!({ SESSION: { "type": "busy" } }));
    talk.complete("2", "stop");
    talk.idle();
    assert!(end_of(&talk.actions, SECOND).failure.is_none());
}

#[test]
fn an_abort_waits_until_the_server_works_because_it_would_be_lost_before() {
    let mut talk = Talk::sent(&options());
    talk.cancel(FIRST);
    assert_eq!(failure_of(&talk.actions, FIRST).0, "cancelled");
    assert!(talk.urls().is_empty(), "{:?}", talk.urls());
    talk.prompt(SECOND, "again", &options());
    assert!(talk.urls().is_empty(), "the next prompt waits");
    talk.begin("1");
    assert!(talk.urls()[0].contains("/abort"), "{:?}", talk.urls());
    talk.text("msg_a1", "prt_1", "not for the next turn", true);
    talk.complete("1", "");
    talk.idle();
    assert_eq!(shown(&talk.actions), "");
    // The server was told twice: when it began, and when the model began to write.
    talk.reply("/abort", 200, &json!(true));
    talk.reply("/abort", 200, &json!(true));
    assert!(talk.urls().iter().any(|url| url.contains("/prompt_async")), "{:?}", talk.urls());
    talk.begin("2");
    talk.complete("2", "stop");
    talk.reply("/prompt_async", 204, &Value::Null);
    talk.idle();
    assert!(end_of(&talk.actions, SECOND).failure.is_none());
}

#[test]
fn a_message_that_comes_between_is_aborted_again() {
    let mut talk = Talk::running(&options());
    talk.cancel(FIRST);
    talk.open_calls.clear();
    talk.assistant("msg_a2", "msg_u1", json!({}));
    assert!(talk.urls()[0].contains("/abort"));
}

#[test]
fn the_next_prompt_waits_until_every_abort_was_heard_because_a_late_one_would_end_it() {
    let mut talk = Talk::running(&options());
    talk.cancel(FIRST);
    talk.assistant("msg_a2", "msg_u1", json!({}));
    talk.assistant("msg_a2", "msg_u1", json!({ "time": { "completed": 1 } }));
    talk.idle();
    assert_eq!(failure_of(&talk.actions, FIRST).0, "cancelled");
    talk.prompt(SECOND, "again", &options());
    talk.reply("/abort", 200, &json!(true));
    assert!(!talk.urls().iter().any(|url| url.contains("/prompt_async")), "{:?}", talk.urls());
    talk.reply("/abort", 200, &json!(true));
    assert!(talk.urls()[0].contains("/prompt_async"), "{:?}", talk.urls());
}

#[test]
fn a_turn_that_left_nothing_is_looked_for_and_does_not_hang() {
    let mut talk = Talk::sent(&options());
    talk.user("msg_u1");
    talk.tell("session.status", json!({ "status": { "type": "busy" } }));
    talk.tell("session.idle", json!({}));
    talk.find_nothing();
    assert_eq!(failure_of(&talk.actions, FIRST).0, "unavailable");
}

#[test]
fn an_unknown_agent_ends_the_turn_although_the_session_never_gets_idle() {
    let mut talk = Talk::sent(&options());
    let error =
        |text: &str| json!({ "error": { "name": "UnknownError", "data": { "message": text } } });
    talk.tell("session.error", error("Agent not found: \"ostler\". Available agents: build"));
    talk.tell("session.error", error("UnknownError: UnknownError\n at <anonymous>"));
    assert!(!has_ended(&talk.actions, FIRST), "more may come");
    talk.ring();
    let (kind, message) = failure_of(&talk.actions, FIRST);
    assert_eq!(kind, "invalid_request");
    assert!(message.starts_with("Agent not found"), "{message}");
}

#[test]
fn the_second_error_of_an_unknown_model_is_part_of_its_turn() {
    let mut talk = Talk::sent(&options());
    talk.user("msg_u1");
    talk.tell("session.status", json!({ "status": { "type": "busy" } }));
    let error =
        |text: &str| json!({ "error": { "name": "UnknownError", "data": { "message": text } } });
    talk.tell("session.error", error("Model not found: p/nope."));
    talk.idle();
    talk.tell("session.error", error("ProviderModelNotFoundError: …\n at <anonymous>"));
    talk.ring();
    assert_eq!(failure_of(&talk.actions, FIRST), ("invalid_request", "Model not found: p/nope."));
}

#[test]
fn a_prompt_without_a_model_names_the_one_that_answered_last() {
    let mut talk = Talk::running(&options());
    talk.complete("1", "stop");
    talk.idle();
    talk.prompt(SECOND, "again", &options());
    let model = &talk.body("/prompt_async")["model"];
    assert_eq!(*model, json!({ "providerID": "p", "modelID": "m" }));
}

#[test]
fn a_model_without_a_provider_is_not_sent() {
    let mut talk = Talk::ready();
    let options = Options { model: Some("gpt-5.5".to_owned()), ..options() };
    talk.order(Order::Open { session: ONLY_SESSION, open: &Open::New, options: &options });
    talk.prompt(FIRST, "hi", &options);
    talk.reply("/session?", 200, &json!({ "id": SESSION, "directory": "/workspace" }));
    assert_eq!(failure_of(&talk.actions, FIRST).0, "invalid_request");
}

#[test]
fn an_abort_while_a_call_is_tried_again_leaves_no_error_and_is_a_cancel() {
    let mut talk = Talk::running(&options());
    let retry = json!({ "status": { "type": "retry", "attempt": 1, "message": "Rate limit", "next": 2000 } });
    talk.tell("session.status", retry);
    talk.cancel(FIRST);
    talk.complete("1", "");
    talk.idle();
    assert_eq!(failure_of(&talk.actions, FIRST).0, "cancelled");
}

#[test]
fn retries_are_told_and_given_up_after_a_while() {
    let mut talk = Talk::running(&options());
    talk.text("msg_a1", "prt_1", "", false);
    talk.piece("prt_1", "half of an");
    let retry = json!({ "status": { "type": "retry", "attempt": 1, "message": "Rate limit reached", "next": 2000 } });
    talk.tell("session.status", retry);
    assert_eq!(shown(&talk.actions), "", "the next attempt begins anew");
    let is_told = |action: &Action| {
        let Action::Emit { event: EventBody::Status(status), .. } = action else { return false };
        matches!(status, Status::Retry { delay_ms: Some(2000), .. })
    };
    assert!(talk.actions.iter().any(is_told));
    talk.ring();
    assert!(talk.urls()[0].contains("/abort"));
    talk.complete("1", "");
    talk.idle();
    assert_eq!(failure_of(&talk.actions, FIRST), ("rate_limited", "Rate limit reached"));
}

#[test]
fn what_the_cli_says_to_the_model_is_not_told() {
    let mut talk = Talk::running(&options());
    let part = json!({ "id": "prt_1", "messageID": "msg_a1", "type": "text", "text": "Continue", "synthetic": true, "time": { "end": 1 } });
    talk.tell("message.part.updated", json!({ "part": part }));
    let prompt = json!({ "id": "prt_0", "messageID": "msg_u1", "type": "text", "text": "hi" });
    talk.tell("message.part.updated", json!({ "part": prompt }));
    assert_eq!(shown(&talk.actions), "");
}

#[test]
fn a_failed_shortening_of_the_history_is_told_as_what_made_it_necessary() {
    let mut talk = Talk::running(&options());
    let error = json!({ "name": "ContextOverflowError", "data": { "message": "too many tokens" } });
    talk.tell("session.error", json!({ "error": error }));
    talk.complete("1", "");
    talk.user("msg_u2");
    talk.assistant("msg_a2", "msg_u2", json!({ "summary": true }));
    let failed = json!({ "name": "APIError", "data": { "message": "no", "statusCode": 500 } });
    let more = json!({ "summary": true, "error": failed, "time": { "completed": 1 } });
    talk.assistant("msg_a2", "msg_u2", more);
    talk.idle();
    assert_eq!(failure_of(&talk.actions, FIRST), ("context_too_long", "too many tokens"));
}

#[test]
fn a_session_that_is_not_there_is_lost_and_one_of_another_kind_is_not_asked_for() {
    let talk = Talk::resumed("11111111-2222-4333-8444-555555555555");
    assert!(talk.urls().is_empty());
    assert!(
        matches!(talk.actions.last(), Some(Action::OpenFailed { failure, .. }) if failure.kind.code() == "session_lost")
    );
    let mut talk = Talk::resumed("ses_nope");
    let error =
        json!({ "name": "NotFoundError", "data": { "message": "Session not found: ses_nope" } });
    talk.reply("/session/ses_nope", 404, &error);
    assert!(
        matches!(talk.actions.last(), Some(Action::OpenFailed { failure, .. }) if failure.kind.code() == "session_lost")
    );
}

#[test]
fn a_helper_asks_in_the_turn_of_its_agent_and_its_tools_name_their_call() {
    let mut talk = Talk::running(&asking());
    let child = "ses_child";
    let info = json!({ "id": child, "parentID": SESSION });
    talk.tell("session.created", json!({ "sessionID": child, "info": info }));
    let state = json!({ "status": "running", "input": {}, "metadata": { "sessionId": child } });
    let task = json!({ "id": "prt_task", "messageID": "msg_a1", "type": "tool", "tool": "task", "callID": "c1", "state": state });
    talk.tell("message.part.updated", json!({ "part": task }));
    let state = json!({ "status": "running", "input": { "command": "ls" } });
    let bash = json!({ "id": "prt_bash", "messageID": "msg_x", "type": "tool", "tool": "bash", "callID": "c2", "state": state });
    let out = talk.tell("message.part.updated", json!({ "sessionID": child, "part": bash }));
    assert!(
        matches!(&out[0], Action::Emit { parent: Some(id), .. } if id == "prt_task"),
        "{out:?}"
    );
    let request =
        json!({ "sessionID": child, "id": "per_1", "permission": "bash", "patterns": ["ls"] });
    let out = talk.tell("permission.asked", request);
    assert!(matches!(&out[0], Action::Ask { turn: FIRST, .. }), "{out:?}");
    talk.tell("session.idle", json!({ "sessionID": child }));
    assert!(!has_ended(&talk.actions, FIRST));
}

#[test]
fn a_further_text_is_part_of_the_turn_until_it_is_answered() {
    let mut talk = Talk::running(&options());
    talk.order(Order::Steer { turn: FIRST, text: "and in French" });
    talk.user("msg_u2");
    talk.complete("1", "stop");
    talk.reply("/prompt_async", 204, &Value::Null);
    assert_eq!(statuses(&talk.actions, "steered"), ["and in French"]);
    talk.assistant("msg_a2", "msg_u2", json!({}));
    talk.text("msg_a2", "prt_2", "Bonjour", true);
    talk.complete("2", "stop");
    talk.idle();
    assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some("Bonjour"));
}

#[test]
fn two_sessions_in_two_directories_do_not_hear_each_other() {
    let mut talk = Talk::running(&options());
    let other = Options { permissions: Permissions::Bypass, ..Options::new("/other place") };
    let session = SessionKey(7);
    talk.order(Order::Open { session, open: &Open::New, options: &other });
    talk.prompt_in(session, SECOND, "hi", &other);
    assert!(talk.urls()[0].ends_with("?directory=%2Fother%20place"), "{:?}", talk.urls());
    talk.reply("/session?", 200, &json!({ "id": "ses_2", "directory": "/other place" }));
    talk.complete("1", "stop");
    talk.idle();
    assert!(has_ended(&talk.actions, FIRST) && !has_ended(&talk.actions, SECOND));
}

#[test]
fn a_server_that_dies_ends_every_turn() {
    let mut talk = Talk::running(&options());
    talk.exit();
    assert_eq!(failure_of(&talk.actions, FIRST).0, "crashed");
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let mut talk = Talk::new();
    talk.order(Order::Start);
    let exit = crate::agent::testing::exit(
        1,
        "Error: Unexpected error\nFailed to start server. Is port 4096 in use?",
    );
    let out = talk.step(crate::agent::Input::Exited(&exit));
    assert!(
        matches!(&out[0], Action::OpenFailed { failure, .. } if failure.message.contains("port 4096")),
        "{out:?}"
    );
}

#[test]
fn a_prompt_that_never_arrived_is_told_after_a_moment_in_which_the_server_may_die() {
    let mut talk = Talk::ready();
    talk.order(Order::Open { session: ONLY_SESSION, open: &Open::New, options: &options() });
    talk.prompt(FIRST, "hi", &options());
    talk.reply("/session?", 200, &json!({ "id": SESSION, "directory": "/workspace" }));
    let (call, _) = talk.open_calls.remove(0);
    talk.reply_to(call, Err("connection reset"));
    assert!(!has_ended(&talk.actions, FIRST));
    talk.ring();
    let (kind, message) = failure_of(&talk.actions, FIRST);
    assert_eq!(kind, "unavailable");
    assert!(message.starts_with("POST /session/ses_"), "{message}");
}

#[test]
fn a_tool_that_prints_on_shows_that_the_turn_is_worked_on() {
    let mut talk = Talk::running(&options());
    let part = |output: &str| {
        let input = json!({ "command": "make" });
        let state =
            json!({ "status": "running", "input": input, "metadata": { "output": output } });
        json!({ "part": { "id": "prt_1", "messageID": "msg_a1", "type": "tool", "tool": "bash", "callID": "c", "state": state } })
    };
    talk.tell("message.part.updated", part("cc a.c"));
    let then = talk.tell("message.part.updated", part("cc a.c\ncc b.c"));
    assert!(matches!(then[..], [Action::Working { turn: FIRST }]), "{then:?}");
}
