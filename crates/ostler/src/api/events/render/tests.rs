//! Recorded events, and what clients read of them.

use serde_json::{Value, json};

use super::*;
use crate::{
    clock::Millis,
    id::CommandId,
    store::events::{Belonging, CommandRef, NewEvent},
};

const PROJECT: &str = "prj_01890a5d000070008000000000000001";
const COMMAND: &str = "cmd_01890a5d000070008000000000000002";

fn stored(kind: &str, body: &str) -> StoredEvent {
    let id: CommandId = COMMAND.parse().unwrap();
    let command = CommandRef { id, stream: "build".to_owned() };
    let belongs = Belonging { project: PROJECT.parse().unwrap(), command: Some(command) };
    let event = NewEvent {
        conversation: None,
        belongs: Some(belongs),
        turn: None,
        seq: 0,
        at: Millis(0),
        kind: kind.to_owned(),
        body: body.to_owned(),
    };
    StoredEvent { number: 7, event }
}

/// Renders an event as it is stored; returns its name and object, which has all that
/// every object has.
#[track_caller]
fn rendered(body: &str) -> (String, Value) {
    let kind: Value = serde_json::from_str(body).unwrap();
    let kind = kind["type"].as_str().unwrap().to_owned();
    let frame = frame(&stored(&kind, body));
    let text = std::str::from_utf8(&frame).unwrap();
    let lines: Vec<_> = text.split('\n').collect();
    let [id, event, data, "", ""] = lines[..] else { panic!("{text}") };
    assert_eq!(id, "id: 7");
    let name = event.strip_prefix("event: ").unwrap().to_owned();
    let mut data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    let fields = data.as_object_mut().unwrap();
    assert_eq!(fields.remove("project_id"), Some(json!(PROJECT)));
    assert_eq!(fields.remove("command_id"), Some(json!(COMMAND)));
    assert_eq!(fields.remove("stream_id"), Some(json!("build")));
    assert_eq!(fields.remove("event_id"), Some(json!(7)));
    assert_eq!(fields.remove("type"), Some(json!(name)));
    (name, data)
}

#[test]
fn output_is_a_line_of_a_stream() {
    let body = r#"{"seq":2,"at":"2026-11-16T10:00:00.000Z","type":"output",
        "turn":"trn_1","text":"a\nb \u2028","block":"0"}"#;
    let (name, data) = rendered(body);
    assert_eq!(name, "output");
    let expected = json!({
        "seq": 2, "at": "2026-11-16T10:00:00.000Z", "turn": "trn_1",
        "text": "a\nb \u{2028}", "block": "0", "line": "a\nb \u{2028}", "stream": "stdout",
    });
    assert_eq!(data, expected);
    let body = r#"{"type":"output","text":"x","stream":"stderr"}"#;
    assert_eq!(rendered(body).1, json!({ "text": "x", "line": "x", "stream": "stderr" }));
}

#[test]
fn an_error_has_its_message_under_the_name_that_clients_know() {
    let body = r#"{"seq":3,"type":"error","turn":"trn_1","kind":"crashed",
        "message":"it broke","retryable":true,"retry_after_ms":null}"#;
    let (name, data) = rendered(body);
    assert_eq!(name, "error");
    let expected = json!({
        "seq": 3, "turn": "trn_1", "kind": "crashed", "message": "it broke",
        "error": "it broke", "retryable": true, "retry_after_ms": null,
    });
    assert_eq!(data, expected);
}

#[test]
fn tools_travel_as_they_are() {
    let body =
        r#"{"type":"tool_use","id":"t1","tool":"Bash","input":{"command":"ls"},"title":"ls"}"#;
    let expected =
        json!({ "id": "t1", "tool": "Bash", "input": { "command": "ls" }, "title": "ls" });
    assert_eq!(rendered(body), ("tool_use".to_owned(), expected));
    let body = r#"{"type":"tool_result","id":"t1","tool":"Bash","output":"a","is_error":false}"#;
    let expected = json!({ "id": "t1", "tool": "Bash", "output": "a", "is_error": false });
    assert_eq!(rendered(body), ("tool_result".to_owned(), expected));
}

#[test]
fn the_end_of_a_turn_is_not_the_end_of_its_command() {
    let body = r#"{"seq":9,"type":"complete","turn":"trn_1","agent":"claude","session_id":"s",
        "response_text":"done","is_error":false,"error":null,"exit_code":0,"duration_ms":4}"#;
    let (name, data) = rendered(body);
    assert_eq!(name, "agent_complete");
    assert_eq!((&data["agent"], &data["provider"]), (&json!("claude"), &json!("claudecode")));
    let body = r#"{"seq":0,"at":"2026-11-16T10:00:00.000Z","type":"command_complete","turn":null,
        "kind":"prompt","state":"completed","exit_code":0,"duration_ms":412,"session_id":"s",
        "provider":"claude","model":null,"stop_reason":"end_turn","response_text":"done",
        "is_error":false,"error":null,"usage":{"total_tokens":3}}"#;
    let (name, data) = rendered(body);
    assert_eq!(name, "complete");
    let expected = json!({
        "seq": 0, "at": "2026-11-16T10:00:00.000Z", "turn": null, "kind": "prompt",
        "state": "completed", "exit_code": 0, "duration_ms": 412, "session_id": "s",
        "provider": "claudecode", "model": null, "stop_reason": "end_turn",
        "response_text": "done", "is_error": false, "error": null, "usage": { "total_tokens": 3 },
    });
    assert_eq!(data, expected);
}

#[test]
fn the_others_travel_under_their_own_names() {
    for (kind, body) in [
        ("started", r#"{"type":"started","agent":"pi","mode":"warm","provider":"pi"}"#),
        ("thinking", r#"{"type":"thinking","text":"hm","block":"1"}"#),
        ("permission", r#"{"type":"permission","request":"r","id":"prm_1","options":["allow"]}"#),
        ("usage", r#"{"type":"usage","input_tokens":1}"#),
        ("unknown", r#"{"type":"unknown","stream":"stderr","text":"?"}"#),
        ("status", r#"{"type":"status","code":"retry","text":"again","attempt":1}"#),
        ("of_a_later_version", r#"{"type":"of_a_later_version","x":[1]}"#),
    ] {
        let (name, data) = rendered(body);
        assert_eq!(name, kind);
        let mut own: Value = serde_json::from_str(body).unwrap();
        own.as_object_mut().unwrap().remove("type");
        assert_eq!(data, own);
    }
}

#[test]
fn an_event_that_cannot_be_read_is_still_one() {
    let frame = frame(&stored("output", "not JSON"));
    let text = std::str::from_utf8(&frame).unwrap();
    assert!(text.starts_with("id: 7\nevent: output\ndata: {"), "{text}");
}

#[test]
fn what_a_stream_says_of_itself_can_be_resumed_from() {
    let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    let project: ProjectId = PROJECT.parse().unwrap();
    assert_eq!(
        text(connected(project, None, 4)),
        format!(
            "retry: 1000\nid: 4\nevent: connected\ndata: {{\"last_event_id\":4,\
             \"project_id\":\"{PROJECT}\",\"stream_id\":null}}\n\n"
        )
    );
    assert_eq!(text(heartbeat(5)), "id: 5\nevent: heartbeat\ndata: {\"last_event_id\":5}\n\n");
    assert_eq!(text(missed(6)), "id: 6\nevent: missed\ndata: {\"removed_up_to\":6}\n\n");
}
