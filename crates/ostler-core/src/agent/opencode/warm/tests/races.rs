//! Replies that overtake each other and the stream.

use super::*;
use crate::{agent::Order, permission::Ruling};

const BUSY: &str = "busy";

fn status(kind: &str) -> Value {
    json!({ SESSION: { "type": kind } })
}

fn user(id: &str, prompt: &str) -> Value {
    let parts = json!([{ "type": "text", "text": prompt }]);
    json!({ "info": { "id": id, "role": "user" }, "parts": parts })
}

fn assistant(id: &str, finish: Option<&str>, parts: Value) -> Value {
    let mut info = json!({ "id": id, "parentID": "msg_u1", "role": "assistant", "modelID": "m" });
    if let Some(finish) = finish {
        info["finish"] = finish.into();
        info["time"] = json!({ "completed": 1 });
    }
    json!({ "info": info, "parts": parts })
}

fn text(id: &str, message: &str, text: &str) -> Value {
    let time = if text.is_empty() { json!({}) } else { json!({ "end": 2 }) };
    json!({ "id": id, "messageID": message, "type": "text", "text": text, "time": time })
}

fn reconnect(talk: &mut Talk) {
    talk.lose();
    talk.ring();
    talk.tell("server.connected", json!({}));
}

fn asks(id: &str) -> Value {
    json!({ "id": id, "sessionID": SESSION, "permission": "bash", "patterns": ["x"] })
}

fn asked(talk: &Talk) -> Vec<&str> {
    let asked = talk.actions.iter().filter_map(|action| {
        let Action::Ask { permission, .. } = action else { return None };
        Some(permission.request.as_str())
    });
    asked.collect()
}

#[test]
fn what_an_earlier_look_shows_is_not_taken_for_the_latest() {
    let mut talk = Talk::running(&options());
    reconnect(&mut talk);
    let (first, _) = talk.open_calls.pop().unwrap();
    reconnect(&mut talk);
    let old = json!([user("msg_u1", "hi"), assistant("msg_a1", None, json!([]))]);
    talk.reply_to(first, Ok((200, &old)));
    let parts = json!([text("prt_1", "msg_a1", "Hello")]);
    talk.reply("/message?", 200, &json!([user("msg_u1", "hi"), assistant("msg_a1", None, parts)]));
    assert_eq!(shown(&talk.actions), "Hello");
}

#[test]
fn a_turn_that_went_on_before_it_was_idle_is_read_once_more() {
    let mut talk = Talk::running(&options());
    reconnect(&mut talk);
    let step = |parts| assistant("msg_a1", Some("tool-calls"), parts);
    let so_far = json!([user("msg_u1", "hi"), step(json!([]))]);
    talk.reply("/message?", 200, &so_far);
    // It ended before this, and the stream is behind.
    talk.reply("/session/status", 200, &json!({}));
    let answer = assistant("msg_a2", Some("stop"), json!([text("prt_2", "msg_a2", "Done")]));
    talk.reply("/message?", 200, &json!([user("msg_u1", "hi"), step(json!([])), answer]));
    assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some("Done"));
}

#[test]
fn an_idle_that_was_told_before_the_messages_were_read_ends_nothing() {
    let mut talk = Talk::running(&options());
    reconnect(&mut talk);
    talk.idle();
    let step = assistant("msg_a1", Some("tool-calls"), json!([]));
    talk.reply("/message?", 200, &json!([user("msg_u1", "hi"), step]));
    talk.reply("/session/status", 200, &status(BUSY));
    assert!(!has_ended(&talk.actions, FIRST));
}

#[test]
fn an_answer_that_is_on_its_way_is_not_asked_for_again() {
    let mut talk = Talk::running(&asking());
    talk.tell("permission.asked", asks("per_1"));
    reconnect(&mut talk);
    talk.decide("per_1", &Ruling::Allow { text: None });
    let running = json!([user("msg_u1", "hi"), assistant("msg_a1", None, json!([]))]);
    talk.reply("/message?", 200, &running);
    talk.reply("/permission?", 200, &json!([asks("per_1")]));
    assert_eq!(asked(&talk), ["per_1"]);
    let answers = talk.urls().iter().filter(|url| url.contains("/reply")).count();
    assert_eq!(answers, 1);
}

#[test]
fn an_answer_that_was_not_heard_is_said_again_and_nobody_is_asked() {
    let mut talk = Talk::running(&asking());
    talk.tell("permission.asked", asks("per_1"));
    talk.decide("per_1", &Ruling::Allow { text: None });
    let at = talk.open_calls.iter().position(|(_, call)| call.url.contains("/reply")).unwrap();
    let (call, _) = talk.open_calls.remove(at);
    talk.reply_to(call, Err("connection reset"));
    talk.ring();
    let running = json!([user("msg_u1", "hi"), assistant("msg_a1", None, json!([]))]);
    talk.reply("/message?", 200, &running);
    talk.reply("/permission?", 200, &json!([asks("per_1")]));
    assert_eq!(talk.body("/reply")["reply"], "once");
    assert!(talk.urls().iter().any(|url| url.contains("/reply")), "{:?}", talk.urls());
    assert_eq!(asked(&talk), ["per_1"]);
}

#[test]
fn a_request_that_came_after_the_list_was_made_is_not_withdrawn() {
    let mut talk = Talk::running(&asking());
    reconnect(&mut talk);
    let running = json!([user("msg_u1", "hi"), assistant("msg_a1", None, json!([]))]);
    talk.reply("/message?", 200, &running);
    talk.tell("permission.asked", asks("per_1"));
    let out = talk.reply("/permission?", 200, &json!([]));
    assert!(out.is_empty(), "{out:?}");
}

#[test]
fn a_text_that_was_begun_anew_unseen_is_taken_back() {
    let mut talk = Talk::running(&options());
    let start = |id: &str| json!({ "id": id, "messageID": "msg_a1", "type": "step-start" });
    talk.tell("message.part.updated", json!({ "part": start("prt_0") }));
    talk.text("msg_a1", "prt_1", "", false);
    talk.piece("prt_1", "Half a te");
    reconnect(&mut talk);
    let parts = json!([
        start("prt_0"),
        text("prt_1", "msg_a1", ""),
        start("prt_2"),
        text("prt_3", "msg_a1", "All of it"),
    ]);
    let over = json!([user("msg_u1", "hi"), assistant("msg_a1", Some("stop"), parts)]);
    talk.reply("/message?", 200, &over);
    talk.reply("/session/status", 200, &json!({}));
    talk.reply("/message?", 200, &over);
    assert_eq!(shown(&talk.actions), "All of it");
    assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some("All of it"));
}

#[test]
fn a_retry_that_was_told_before_the_messages_were_read_takes_nothing_back() {
    let mut talk = Talk::running(&options());
    reconnect(&mut talk);
    let retry = json!({ "type": "retry", "attempt": 1, "message": "busy", "next": 0 });
    talk.tell("session.status", json!({ "status": retry }));
    let parts = json!([text("prt_3", "msg_a1", "")]);
    let running = json!([user("msg_u1", "hi"), assistant("msg_a1", None, parts)]);
    talk.reply("/message?", 200, &running);
    talk.text("msg_a1", "prt_3", "All of it", true);
    talk.complete("1", "stop");
    talk.idle();
    assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some("All of it"));
}

#[test]
fn the_same_retry_told_twice_counts_once() {
    let mut talk = Talk::running(&options());
    for (attempt, next) in [(1, 2000), (1, 2000), (2, 6000)] {
        let retry = json!({ "type": "retry", "attempt": attempt, "message": "busy", "next": next });
        talk.tell("session.status", json!({ "status": retry }));
    }
    let is_retry = |action: &&Action| {
        matches!(action, Action::Emit { event: EventBody::Status(Status::Retry { .. }), .. })
    };
    assert_eq!(talk.actions.iter().filter(is_retry).count(), 2);
}

#[test]
fn a_turn_of_more_messages_than_are_read_goes_on() {
    let mut talk = Talk::running(&options());
    reconnect(&mut talk);
    // Its prompt is too old to be among them.
    let parts = json!([text("prt_9", "msg_a9", "Late")]);
    talk.reply("/message?", 200, &json!([assistant("msg_a9", None, parts)]));
    assert_eq!(shown(&talk.actions), "Late");
}

#[test]
fn what_a_helper_did_meanwhile_is_read() {
    let mut talk = Talk::running(&asking());
    reconnect(&mut talk);
    let metadata = json!({ "sessionId": "ses_child" });
    let state = json!({ "status": "running", "input": {}, "metadata": metadata });
    let task = json!({ "id": "prt_t", "messageID": "msg_a1", "type": "tool", "tool": "task", "callID": "c1", "state": state });
    let running = json!([user("msg_u1", "hi"), assistant("msg_a1", None, json!([task]))]);
    talk.reply("/message?", 200, &running);
    let state = json!({ "status": "completed", "input": {}, "output": "a", "metadata": {} });
    let tool = json!({ "id": "prt_c", "messageID": "msg_c", "type": "tool", "tool": "bash", "callID": "c2", "state": state });
    let done = json!({ "info": { "id": "msg_c", "role": "assistant" }, "parts": [tool] });
    talk.reply("ses_child/message?", 200, &json!([done]));
    let results = talk.actions.iter().filter(|action| {
        matches!(action, Action::Emit { event: EventBody::ToolResult(_), parent: Some(parent), .. } if parent == "prt_t")
    });
    assert_eq!(results.count(), 1, "{:?}", talk.actions);
    let mut request = asks("per_c");
    request["sessionID"] = "ses_child".into();
    talk.reply("/permission?", 200, &json!([request]));
    assert_eq!(asked(&talk), ["per_c"]);
}

#[test]
fn a_prompt_that_was_cancelled_is_stopped_though_its_beginning_was_not_heard() {
    let mut talk = Talk::sent(&options());
    talk.cancel(FIRST);
    reconnect(&mut talk);
    talk.reply("/message?", 200, &json!([user("msg_u1", "hi")]));
    talk.reply("/session/status", 200, &status(BUSY));
    assert!(talk.urls().iter().any(|url| url.contains("/abort")), "{:?}", talk.urls());
}

#[test]
fn a_turn_that_seemed_to_be_over_is_looked_at_before_it_is_ended() {
    let mut talk = Talk::running(&options());
    let error = json!({ "name": "UnknownError", "data": { "message": "too long" } });
    talk.tell("session.error", json!({ "error": error }));
    talk.idle();
    let settle = talk.actions.iter().rev().find_map(|action| {
        let Action::Arm { timer, .. } = action else { return None };
        Some(*timer)
    });
    talk.lose();
    talk.step(crate::agent::Input::Timer(settle.unwrap()));
    assert!(!has_ended(&talk.actions, FIRST), "it may go on unheard");
    talk.order(Order::Close { session: crate::agent::ONLY_SESSION });
}

#[test]
fn a_stream_that_is_lost_again_and_again_keeps_no_turn_from_its_end() {
    let mut talk = Talk::running(&options());
    let over = assistant("msg_a1", Some("stop"), json!([text("prt_1", "msg_a1", "Hello")]));
    let over = json!([user("msg_u1", "hi"), over]);
    reconnect(&mut talk);
    talk.lose();
    talk.reply("/message?", 200, &over);
    reconnect(&mut talk);
    talk.reply("/session/status", 200, &json!({}));
    talk.lose();
    // The first is that of the second look, the other looks back.
    talk.reply("/message?", 200, &over);
    talk.reply("/message?", 200, &over);
    assert_eq!(shown(&talk.actions), "Hello");
    assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some("Hello"));
}

#[test]
fn an_answer_that_is_told_before_its_prompt_is_not_lost() {
    let mut talk = Talk::sent(&options());
    talk.assistant("msg_a1", "msg_u1", json!({}));
    talk.text("msg_a1", "prt_1", "Hello", true);
    talk.user("msg_u1");
    talk.complete("1", "stop");
    talk.idle();
    assert_eq!(shown(&talk.actions), "Hello");
    assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some("Hello"));
}

#[test]
fn an_answer_to_an_earlier_prompt_is_not_taken_for_this_one() {
    let mut talk = Talk::running(&options());
    talk.complete("1", "stop");
    talk.idle();
    talk.prompt(SECOND, "more", &options());
    talk.complete("1", "stop");
    talk.idle();
    assert!(!has_ended(&talk.actions, SECOND));
}

#[test]
fn a_message_whose_beginning_was_not_heard_is_read() {
    for is_part_heard in [false, true] {
        let mut talk = Talk::sent(&options());
        talk.user("msg_u1");
        if is_part_heard {
            talk.text("msg_a1", "prt_1", "Hello", true);
        }
        talk.complete("1", "stop");
        talk.idle();
        assert!(!has_ended(&talk.actions, FIRST));
        let over = assistant("msg_a1", Some("stop"), json!([text("prt_1", "msg_a1", "Hello")]));
        let over = json!([user("msg_u1", "hi"), over]);
        talk.reply("/message?", 200, &over);
        talk.reply("/session/status", 200, &json!({}));
        talk.reply("/message?", 200, &over);
        assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some("Hello"));
    }
}

#[test]
fn an_answer_from_before_a_session_was_resumed_is_not_taken_for_this_one() {
    let mut talk = Talk::sent_again();
    let over = json!({ "finish": "stop", "time": { "created": 20, "completed": 25 } });
    talk.assistant("msg_a0", "msg_u0", over);
    talk.text("msg_a0", "prt_0", "An old answer", true);
    talk.idle();
    assert!(!has_ended(&talk.actions, FIRST) && shown(&talk.actions).is_empty());
    talk.begin("1");
    talk.text("msg_a1", "prt_1", "Hello", true);
    talk.complete("1", "stop");
    talk.idle();
    assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some("Hello"));
}

#[test]
fn what_somebody_else_asked_between_two_turns_is_not_taken_for_the_second() {
    let mut talk = Talk::running(&options());
    talk.complete("1", "stop");
    talk.idle();
    talk.begin("8");
    talk.prompt(SECOND, "more", &options());
    talk.reply("/prompt_async", 204, &Value::Null);
    talk.complete("8", "stop");
    talk.idle();
    assert!(!has_ended(&talk.actions, SECOND));
    talk.begin("2");
    talk.complete("2", "stop");
    talk.idle();
    assert!(has_ended(&talk.actions, SECOND));
}

#[test]
fn an_answer_that_is_refused_is_said_again_after_a_pause_and_not_for_ever() {
    for (status, kind) in
        [(401, "auth"), (429, "rate_limited"), (500, "unavailable"), (503, "overloaded")]
    {
        let mut talk = Talk::running(&asking());
        talk.tell("permission.asked", asks("per_1"));
        talk.decide("per_1", &Ruling::Allow { text: None });
        let running = json!([user("msg_u1", "hi"), assistant("msg_a1", None, json!([]))]);
        for _ in 1..5 {
            let out = talk.reply("/reply", status, &json!("no"));
            assert!(matches!(out.as_slice(), [Action::Arm { .. }]), "{status}: {out:?}");
            talk.ring();
            talk.reply("/message?", 200, &running);
            talk.reply("/permission?", 200, &json!([asks("per_1")]));
            talk.open_calls.retain(|(_, call)| call.url.contains("/reply"));
        }
        talk.reply("/reply", status, &json!("no"));
        assert!(talk.urls().iter().any(|url| url.contains("/abort")), "{:?}", talk.urls());
        talk.ring();
        let (told, words) = failure_of(&talk.actions, FIRST);
        assert!(told == kind && words.contains("/permission/per_1/reply"), "{told}: {words}");
        assert_eq!(asked(&talk), ["per_1"]);
    }
}

#[test]
fn an_answer_for_which_nobody_waits_any_more_is_done_with() {
    let mut talk = Talk::running(&asking());
    talk.tell("permission.asked", asks("per_1"));
    talk.decide("per_1", &Ruling::Allow { text: None });
    let gone = json!({ "name": "NotFoundError", "data": { "message": "gone" } });
    let out = talk.reply("/reply", 404, &gone);
    assert!(out.is_empty(), "{out:?}");
}

#[test]
fn a_message_that_is_not_ours_is_looked_for_once() {
    let mut talk = Talk::running(&options());
    let looks = |talk: &Talk| {
        let calls = talk.actions.iter().filter(|action| {
            matches!(action, Action::Call { request, .. } if request.url.contains("/message?"))
        });
        calls.count()
    };
    let time = json!({ "start": 1, "end": 2, "compacted": 3 });
    let state = json!({ "status": "completed", "input": {}, "output": "", "time": time });
    let old = json!({ "id": "prt_0", "messageID": "msg_a0", "type": "tool", "tool": "bash", "callID": "c0", "state": state });
    talk.tell("message.part.updated", json!({ "part": old }));
    assert_eq!(looks(&talk), 0, "it is only forgotten");
    let running = json!([user("msg_u1", "hi"), assistant("msg_a1", None, json!([]))]);
    for n in 0..5 {
        talk.text("msg_a8", &format!("prt_{n}"), "Not ours", true);
        if n == 2 {
            talk.reply("/message?", 200, &running);
        }
    }
    assert_eq!(looks(&talk), 1);
    talk.text("msg_a9", "prt_9", "Nor this", true);
    assert_eq!(looks(&talk), 2);
}
