//! A server that tells under flat names.

use super::*;
use crate::agent::opencode::warm::{event, event::Event, flat::Flat};

/// What is read of an event of the session.
fn read(kind: &str, fields: Value) -> Option<event::What> {
    let mut fields = fields;
    fields["sessionID"] = SESSION.into();
    let data = json!({ "type": kind, "properties": fields }).to_string();
    match event::read(data.as_bytes()) {
        Event::Of { session, what } => (session == SESSION).then_some(what),
        Event::Unnamed(_) | Event::Connected | Event::Quiet | Event::Unreadable => None,
    }
}

fn text(message: Option<&str>, text: &str) -> Flat {
    Flat::Text { message: message.map(str::to_owned), text: text.to_owned() }
}

#[test]
fn every_name_is_read_in_each_of_its_shapes() {
    let call = |input| Flat::Call { id: "c1".to_owned(), tool: "bash".to_owned(), input };
    let result = |output: &str, is_error| Flat::Result {
        id: "c1".to_owned(),
        tool: "bash".to_owned(),
        output: output.to_owned(),
        is_error,
    };
    let input = json!({ "command": "ls" });
    let failed = |message: &str| Flat::Failed { message: message.to_owned() };
    for (kind, fields, flat) in [
        ("message.created", json!({ "id": "m1", "content": "Hi" }), text(Some("m1"), "Hi")),
        ("message.updated", json!({ "messageID": "m1", "text": "Hi" }), text(Some("m1"), "Hi")),
        ("message.updated", json!({ "content": "Hi" }), text(None, "Hi")),
        (
            "message.updated",
            json!({ "message": { "id": "m1", "role": "assistant", "content": "Hi" } }),
            text(Some("m1"), "Hi"),
        ),
        (
            "message.updated",
            json!({ "info": { "id": "m1", "content": "Hi" } }),
            text(Some("m1"), "Hi"),
        ),
        ("message.created", json!({ "id": "m0", "role": "user", "content": "hi" }), Flat::Nothing),
        (
            "tool.started",
            json!({ "id": "c1", "tool": "bash", "input": input }),
            call(Some(input.clone())),
        ),
        ("tool.started", json!({ "callID": "c1", "name": "bash" }), call(None)),
        (
            "tool.started",
            json!({ "tool": { "id": "c1", "name": "bash", "args": input } }),
            call(Some(input.clone())),
        ),
        (
            "tool.completed",
            json!({ "id": "c1", "tool": "bash", "output": "a" }),
            result("a", false),
        ),
        (
            "tool.completed",
            json!({ "id": "c1", "tool": "bash", "result": { "n": 1 } }),
            result("{\"n\":1}", false),
        ),
        (
            "tool.completed",
            json!({ "id": "c1", "tool": "bash", "error": "no" }),
            result("no", true),
        ),
        ("tool.completed", json!({ "id": "c1", "tool": "bash" }), result("", false)),
        ("session.completed", json!({}), Flat::Completed),
        ("error", json!({ "message": "bad" }), failed("bad")),
        ("error", json!({ "error": { "data": { "message": "bad" } } }), failed("bad")),
        ("error", json!({}), failed("opencode reported an error")),
    ] {
        match read(kind, fields.clone()) {
            Some(event::What::Flat(read)) => assert_eq!(read, flat, "{kind} {fields}"),
            other => panic!("{kind} {fields}: {other:?}"),
        }
    }
}

#[test]
fn the_same_name_with_a_record_is_read_as_today() {
    let info = json!({ "id": "m1", "role": "assistant", "parentID": "m0" });
    assert!(matches!(
        read("message.updated", json!({ "info": info })),
        Some(event::What::Message(_))
    ));
    assert!(matches!(read("tool.started", json!({ "tool": "bash" })), Some(event::What::Unknown)));
}

#[test]
fn a_whole_turn_is_told_and_nothing_is_made_up() {
    let mut talk = Talk::sent(&options());
    talk.tell("message.created", json!({ "id": "m0", "role": "user", "content": "hi" }));
    talk.tell("tool.started", json!({ "id": "c1", "tool": "bash", "input": { "command": "ls" } }));
    for _ in 0..2 {
        talk.tell("tool.completed", json!({ "id": "c1", "tool": "bash", "output": "a" }));
    }
    talk.tell("message.created", json!({ "id": "m1", "content": "Hel" }));
    talk.tell("message.updated", json!({ "id": "m1", "content": "Hello." }));
    talk.tell("session.completed", json!({}));
    let kinds: Vec<&str> = talk
        .actions
        .iter()
        .filter_map(|action| {
            let Action::Emit { event, .. } = action else { return None };
            Some(event.kind())
        })
        .collect();
    assert_eq!(kinds, ["tool_use", "tool_result", "output", "output"]);
    assert_eq!(shown(&talk.actions), "Hello.");
    let end = end_of(&talk.actions, FIRST);
    assert_eq!((end.text.as_deref(), &end.stop_reason, &end.model), (Some("Hello."), &None, &None));
    assert_eq!(end.usage, crate::event::Usage::default());
    assert!(!end.meta.contains_key("model_calls"), "{:?}", end.meta);
}

#[test]
fn texts_without_a_name_go_on_whether_they_come_whole_or_in_pieces() {
    for texts in [["Hel", "Hello."], ["Hel", "lo."]] {
        let mut talk = Talk::sent(&options());
        for text in texts {
            talk.tell("message.updated", json!({ "content": text }));
        }
        talk.tell("session.completed", json!({}));
        assert_eq!(shown(&talk.actions), "Hello.");
        assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some("Hello."));
    }
}

#[test]
fn an_end_without_a_text_is_an_empty_answer() {
    let mut talk = Talk::sent(&options());
    talk.tell("session.completed", json!({}));
    assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some(""));
}

#[test]
fn an_error_ends_the_turn_also_when_it_names_no_session() {
    let mut talk = Talk::sent(&options());
    talk.event(&json!({ "type": "error", "message": "Rate limit reached" }));
    assert_eq!(failure_of(&talk.actions, FIRST), ("rate_limited", "Rate limit reached"));
    talk.event(&json!({ "type": "error", "message": "nobody's" }));
}

#[test]
fn an_error_of_nobody_in_particular_ends_none_of_several_turns() {
    let mut talk = Talk::sent(&options());
    let other = crate::agent::SessionKey(7);
    let open = crate::request::Open::New;
    talk.order(crate::agent::Order::Open { session: other, open: &open, options: &options() });
    talk.prompt_in(other, SECOND, "hi", &options());
    talk.reply("/session?", 200, &json!({ "id": "ses_2", "directory": "/workspace" }));
    talk.event(&json!({ "type": "error", "message": "bad" }));
    assert!(!has_ended(&talk.actions, FIRST) && !has_ended(&talk.actions, SECOND));
}

#[test]
fn a_turn_that_was_cancelled_is_cancelled_whatever_is_told_then() {
    let mut talk = Talk::sent(&options());
    talk.tell("message.created", json!({ "id": "m1", "content": "Hel" }));
    talk.cancel(FIRST);
    talk.reply("/abort", 200, &json!(true));
    talk.tell("error", json!({ "message": "Aborted" }));
    assert_eq!(failure_of(&talk.actions, FIRST).0, "cancelled");
}

#[test]
fn a_session_that_is_named_one_level_deeper_is_whose_it_is() {
    let mut talk = Talk::sent(&options());
    for (name, session, text) in [
        ("message", "ses_other", "Not ours."),
        ("info", SESSION, "Hel"),
        ("message", SESSION, "Hello."),
    ] {
        let inner = json!({ "id": "m1", "session_id": session, "content": text });
        talk.event(&json!({ "type": "message.updated", "properties": { name: inner } }));
    }
    let tool = json!({ "id": "c1", "name": "bash", "sessionId": "ses_other" });
    let out = talk.event(&json!({ "type": "tool.started", "tool": tool }));
    assert!(out.is_empty(), "{out:?}");
    assert_eq!(shown(&talk.actions), "Hello.");
}
