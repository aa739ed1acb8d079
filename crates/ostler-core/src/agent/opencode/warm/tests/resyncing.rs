//! The stream breaks off, and nothing is lost by it.

use std::{fs, path::Path};

use super::*;
use crate::{agent::Order, permission::Ruling};

/// What the server would answer about a turn that is over.
fn record(parts: Value, more: Value) -> Value {
    let mut info =
        json!({ "id": "msg_a1", "parentID": "msg_u1", "role": "assistant", "modelID": "m" });
    info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let prompt = json!([{ "type": "text", "text": "hi" }]);
    json!([
        { "info": { "id": "msg_u1", "role": "user" }, "parts": prompt },
        { "info": info, "parts": parts },
    ])
}

fn text(text: &str, is_done: bool) -> Value {
    let time = if is_done { json!({ "end": 2 }) } else { json!({}) };
    json!({ "id": "prt_1", "messageID": "msg_a1", "type": "text", "text": text, "time": time })
}

fn over(parts: Value) -> Value {
    record(parts, json!({ "finish": "stop", "time": { "completed": 1 } }))
}

/// The stream is lost and opened again.
fn cut(talk: &mut Talk) {
    talk.lose();
    let out = talk.ring();
    assert!(matches!(&out[0], Action::Listen(_)), "{out:?}");
    talk.tell("server.connected", json!({}));
}

/// The server answers that the turn is over, as often as it is asked.
fn answer_over(talk: &mut Talk, messages: &Value) {
    talk.reply("/message?", 200, messages);
    talk.reply("/session/status", 200, &json!({}));
    assert!(!has_ended(&talk.actions, FIRST), "it may have gone on before it was idle");
    talk.reply("/message?", 200, messages);
}

/// What was told of tools, in order: the call, then the result.
fn told_tools(talk: &Talk) -> Vec<&'static str> {
    let events = talk.actions.iter().filter_map(|action| {
        let Action::Emit { event, .. } = action else { return None };
        matches!(event, EventBody::ToolUse { .. } | EventBody::ToolResult(_)).then(|| event.kind())
    });
    events.collect()
}

#[test]
fn a_turn_that_ended_meanwhile_is_read_and_ends() {
    let mut talk = Talk::running(&options());
    talk.text("msg_a1", "prt_1", "", false);
    talk.piece("prt_1", "Hel");
    cut(&mut talk);
    answer_over(&mut talk, &over(json!([text("Hello.", true)])));
    assert_eq!(shown(&talk.actions), "Hello.");
    assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some("Hello."));
}

#[test]
fn pieces_after_a_gap_wait_for_the_whole_text() {
    let mut talk = Talk::running(&options());
    talk.text("msg_a1", "prt_1", "", false);
    talk.piece("prt_1", "one ");
    cut(&mut talk);
    talk.reply("/message?", 200, &record(json!([text("", false)]), json!({})));
    talk.reply("/session/status", 200, &json!({ SESSION: { "type": "busy" } }));
    talk.piece("prt_1", "three");
    assert_eq!(shown(&talk.actions), "one ");
    talk.text("msg_a1", "prt_1", "one two three", true);
    talk.complete("1", "stop");
    talk.idle();
    assert_eq!(shown(&talk.actions), "one two three");
}

#[test]
fn what_is_told_before_the_messages_are_read_is_not_lost() {
    let mut talk = Talk::running(&options());
    cut(&mut talk);
    talk.text("msg_a1", "prt_1", "Hello", true);
    talk.complete("1", "stop");
    talk.idle();
    assert!(!has_ended(&talk.actions, FIRST), "it waits");
    answer_over(&mut talk, &record(json!([]), json!({})));
    assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some("Hello"));
}

#[test]
fn a_prompt_that_was_taken_up_unseen_is_found_by_its_text() {
    let mut talk = Talk::sent(&options());
    cut(&mut talk);
    answer_over(&mut talk, &over(json!([text("Hello", true)])));
    assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some("Hello"));
}

#[test]
fn the_same_prompt_of_a_turn_before_is_not_taken_for_this_one() {
    let mut talk = Talk::sent_again();
    cut(&mut talk);
    let late = json!({ "id": "msg_u1", "role": "user", "time": { "created": 20 } });
    talk.tell("message.updated", json!({ "info": late }));
    let mut old = over(json!([text("An old answer", true)]));
    old[0]["info"]["time"] = json!({ "created": 20 });
    talk.reply("/message?", 200, &old);
    talk.reply("/session/status", 200, &json!({}));
    assert!(!has_ended(&talk.actions, FIRST), "that was another turn");
    assert_eq!(shown(&talk.actions), "");
}

#[test]
fn a_turn_that_is_not_found_is_looked_for_again_and_then_given_up() {
    let mut talk = Talk::sent(&options());
    cut(&mut talk);
    talk.find_nothing();
    assert_eq!(failure_of(&talk.actions, FIRST).0, "unavailable");
}

#[test]
fn a_request_that_was_missed_is_asked_and_one_that_is_gone_is_withdrawn() {
    let mut talk = Talk::running(&asking());
    talk.tell(
        "permission.asked",
        json!({ "id": "per_1", "permission": "bash", "patterns": ["x"] }),
    );
    cut(&mut talk);
    talk.reply("/message?", 200, &record(json!([]), json!({})));
    let missed =
        json!({ "id": "per_2", "sessionID": SESSION, "permission": "bash", "patterns": ["y"] });
    let out = talk.reply("/permission?", 200, &json!([missed]));
    assert!(matches!(&out[0], Action::Withdraw { request, .. } if request == "per_1"), "{out:?}");
    assert!(matches!(&out[1], Action::Ask { permission, .. } if permission.request == "per_2"));
    let again = talk.decide("per_1", &Ruling::Allow { text: None });
    assert!(again.is_empty(), "{again:?}");
}

#[test]
fn tools_that_are_read_are_told_once() {
    let mut talk = Talk::running(&options());
    let state = json!({ "status": "running", "input": { "command": "ls" } });
    let part = |state: Value| json!({ "id": "prt_1", "messageID": "msg_a1", "type": "tool", "tool": "bash", "callID": "c1", "state": state });
    talk.tell("message.part.updated", json!({ "part": part(state) }));
    cut(&mut talk);
    let state = json!({ "status": "completed", "input": { "command": "ls" }, "output": "a", "metadata": { "exit": 0 } });
    talk.reply("/message?", 200, &over(json!([part(state.clone())])));
    talk.tell("message.part.updated", json!({ "part": part(state) }));
    assert_eq!(told_tools(&talk), ["tool_use", "tool_result"]);
}

#[test]
fn the_waits_before_the_stream_is_opened_again_grow_and_have_an_end() {
    let mut talk = Talk::ready();
    let waits: Vec<_> = (0..12)
        .map(|_| match talk.lose().pop() {
            Some(Action::Arm { after, .. }) => after.as_millis(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(waits.first(), Some(&50));
    assert_eq!(waits.last(), Some(&1000));
    assert!(waits.is_sorted());
}

/// Feeds a recorded turn, with the stream cut before the nth event and what the
/// server then knew as the answer; returns what came of it.
fn recorded(cut_at: Option<usize>) -> (String, Option<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/opencode/1.18.33/warm-serve.jsonl");
    let lines = fs::read_to_string(path).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut lines = lines.skip_while(|line| line["note"] != "prompt CASE:bash tool");
    lines.next();
    let events: Vec<Value> = lines
        .take_while(|line| line["dir"] != "#")
        .filter(|line| line["dir"] == "sse")
        .map(|line| line["event"].clone())
        .collect();
    let mut talk = Talk::ready();
    talk.order(Order::Open {
        session: crate::agent::ONLY_SESSION,
        open: &crate::request::Open::New,
        options: &options(),
    });
    talk.prompt(FIRST, "CASE:bash tool", &options());
    talk.reply("/session?", 200, &json!({ "id": SESSION, "directory": "/workspace" }));
    talk.reply("/prompt_async", 204, &Value::Null);
    for (at, event) in events.iter().enumerate() {
        // Four events are lost.
        if cut_at == Some(at) {
            talk.lose();
        }
        if cut_at.is_some_and(|cut| (cut..cut + 4).contains(&at)) {
            continue;
        }
        if cut_at == Some(at.saturating_sub(4)) && at >= 4 {
            answer(&mut talk, &events[..at]);
        }
        talk.event(event);
    }
    if cut_at.is_some_and(|cut| cut + 4 >= events.len()) {
        answer(&mut talk, &events);
    }
    let text = end_of(&talk.actions, FIRST).text.clone();
    (shown(&talk.actions), text)
}

/// The stream is open again: the server answers from what it told so far, as it
/// keeps it. Texts that are being written it keeps empty.
fn answer(talk: &mut Talk, told: &[Value]) {
    talk.tell("server.connected", json!({}));
    let mut messages: Vec<(Value, Vec<Value>)> = Vec::new();
    let mut is_busy = false;
    for event in told {
        let properties = &event["properties"];
        if let Some(info) = properties.get("info").filter(|_| event["type"] == "message.updated") {
            match messages.iter_mut().find(|(known, _)| known["id"] == info["id"]) {
                Some((known, _)) => *known = info.clone(),
                None => messages.push((info.clone(), Vec::new())),
            }
        }
        if let Some(part) = properties.get("part")
            && let Some((_, parts)) =
                messages.iter_mut().find(|(known, _)| known["id"] == part["messageID"])
        {
            match parts.iter_mut().find(|known| known["id"] == part["id"]) {
                Some(known) => *known = part.clone(),
                None => parts.push(part.clone()),
            }
        }
        if let Some(status) = properties.get("status") {
            is_busy = status["type"] == "busy";
        }
    }
    if !talk.urls().iter().any(|url| url.contains("/message?")) {
        return;
    }
    let messages: Vec<Value> =
        messages.into_iter().map(|(info, parts)| json!({ "info": info, "parts": parts })).collect();
    talk.reply("/message?", 200, &json!(messages));
    if talk.urls().iter().any(|url| url.contains("/session/status")) {
        let status = if is_busy { json!({ SESSION: { "type": "busy" } }) } else { json!({}) };
        talk.reply("/session/status", 200, &status);
    }
    if talk.urls().iter().any(|url| url.contains("/message?")) {
        talk.reply("/message?", 200, &json!(messages));
    }
}

#[test]
fn a_cut_anywhere_in_a_recorded_turn_changes_nothing_that_a_reader_is_left_with() {
    let whole = recorded(None);
    assert!(whole.0.ends_with("(after 1 tool rounds)"), "{whole:?}");
    for cut_at in 0..44 {
        assert_eq!(recorded(Some(cut_at)), whole, "cut before event {cut_at}");
    }
}

#[test]
fn a_stream_that_is_opened_and_lost_at_once_is_opened_ever_more_slowly() {
    let mut talk = Talk::ready();
    let wait = |talk: &mut Talk| {
        let Some(Action::Arm { after, .. }) = talk.lose().pop() else { panic!("no wait") };
        talk.ring();
        talk.tell("server.connected", json!({}));
        talk.tell("server.heartbeat", json!({}));
        after.as_millis()
    };
    let waits: Vec<u128> = (0..9).map(|_| wait(&mut talk)).collect();
    assert!(waits.is_sorted() && waits.last() == Some(&1000), "{waits:?}");
    // One that tells something, or lasts, is good again.
    talk.tell("session.status", json!({ "status": { "type": "idle" }, "sessionID": "ses_x" }));
    assert_eq!((wait(&mut talk), wait(&mut talk)), (50, 100));
    talk.now += jiff::SignedDuration::from_secs(10);
    talk.tell("server.heartbeat", json!({}));
    assert_eq!(wait(&mut talk), 50);
}

fn looks(talk: &Talk) -> usize {
    let calls = talk.actions.iter().filter(|action| {
        matches!(action, Action::Call { request, .. } if request.url.contains("/message?"))
    });
    calls.count()
}

fn fails(talk: &mut Talk, words: &str) {
    let error = json!({ "name": "UnknownError", "data": { "message": words } });
    talk.tell("session.error", json!({ "error": error }));
}

#[test]
fn what_waits_until_the_messages_are_read_is_bounded_by_its_size() {
    let mut talk = Talk::running(&options());
    cut(&mut talk);
    assert_eq!(looks(&talk), 1);
    let long = "x".repeat(1024 * 1024);
    for _ in 0..15 {
        talk.piece("prt_1", &long);
    }
    assert_eq!(looks(&talk), 1);
    talk.piece("prt_1", &long);
    assert_eq!(looks(&talk), 2, "what was lost is read again");
    talk.piece("prt_1", &long);
    assert_eq!(looks(&talk), 2, "there is room again");
}

#[test]
fn an_error_is_kept_when_too_much_waits_for_the_messages() {
    for is_last in [false, true] {
        let mut talk = Talk::sent(&options());
        cut(&mut talk);
        if !is_last {
            fails(&mut talk, "Model not found: p/nope.");
            fails(&mut talk, "UnknownError: a stack trace");
        }
        let long = "x".repeat(6 * 1024 * 1024);
        for _ in 0..2 {
            talk.piece("prt_1", &long);
        }
        if is_last {
            fails(&mut talk, &format!("Model not found: p/nope.{long}"));
        } else {
            talk.piece("prt_1", &long);
        }
        assert_eq!(looks(&talk), 2);
        talk.open_calls.remove(0);
        talk.reply("/message?", 200, &json!([]));
        talk.ring();
        let (kind, words) = failure_of(&talk.actions, FIRST);
        assert_eq!(kind, "invalid_request");
        assert!(words.starts_with("Model not found: p/nope."), "{}", words.len());
    }
}

#[test]
fn an_error_that_waits_for_the_messages_is_kept_when_the_stream_is_lost_again() {
    let mut talk = Talk::sent(&options());
    cut(&mut talk);
    fails(&mut talk, "Model not found: p/nope.");
    cut(&mut talk);
    talk.open_calls.remove(0);
    talk.reply("/message?", 200, &json!([]));
    talk.ring();
    assert_eq!(failure_of(&talk.actions, FIRST), ("invalid_request", "Model not found: p/nope."));
}
