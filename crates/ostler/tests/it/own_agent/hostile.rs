//! Agents that do not keep to the protocol. Each is a shell script; none of them
//! may hang a turn, or end Ostler.

use serde_json::{Value, json};

use super::configure;
use crate::support::Place;

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#;
const OPENED: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}"#;
const DONE: &str = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#;

/// Runs a turn with an agent that is this script, with a function `say`.
fn run(script: &str, more: &[&str]) -> (Option<i32>, Value, String) {
    let place = Place::new();
    let text = format!("#!/bin/sh\nsay() {{ printf '%s\\n' \"$1\"; }}\n{script}\n");
    let program = place.program("own", &text);
    configure(&place, json!([program]));
    let args = ["run", "--agent", "own", "--permissions", "bypass", "--output", "stream-json"];
    let outcome = place.run(&[&args, more, &["hi"]].concat());
    assert!(place.is_swept());
    let report = outcome.events().last().clone();
    (outcome.code, report, outcome.stdout)
}

fn chunk(session: &str, text: &str) -> String {
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
    let params = json!({ "sessionId": session, "update": update });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string()
}

#[test]
fn garbage_wrong_ids_and_foreign_sessions_do_not_disturb_a_turn() {
    let script = format!(
        "read x; say 'not json'; say '[]'; say '{{\"id\":77,\"result\":1}}'; say '{HELLO}'\n\
         read x; say '{OPENED}'; say '{OPENED}'\n\
         read x; say '{}'; say '{{\"id\":\"3\",\"result\":{{}}}}'; say '{{\"x'; say '{}'; say '{DONE}'\n\
         cat >/dev/null",
        chunk("other", "not yours"),
        chunk("s", "yours"),
    );
    let (code, report, all) = run(&script, &[]);
    assert_eq!((code, &report["response_text"]), (Some(0), &json!("yours")), "{all}");
    assert!(!all.contains("not yours"), "{all}");
}

#[test]
fn what_is_asked_and_not_known_is_refused_so_that_the_agent_goes_on() {
    let script = format!(
        "read x; say '{HELLO}'; read x; say '{OPENED}'; read x\n\
         say '{{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"fs/read_text_file\",\"params\":{{\"sessionId\":\"s\"}}}}'\n\
         read answer; case \"$answer\" in *-32601*) say '{}';; esac; say '{DONE}'; cat >/dev/null",
        chunk("s", "refused"),
    );
    let (code, report, all) = run(&script, &[]);
    assert_eq!((code, &report["response_text"]), (Some(0), &json!("refused")), "{all}");
}

#[test]
fn silence_is_bounded_at_every_step() {
    let all = [
        "exec sleep 1000".to_owned(),
        format!("read x; say '{HELLO}'; exec sleep 1000"),
        format!("read x; say '{HELLO}'; read x; say '{OPENED}'; exec sleep 1000"),
    ];
    for script in all {
        let (code, report, _) = run(&script, &["--timeout", "1500ms"]);
        assert_eq!((code, &report["error"]["kind"]), (Some(124), &json!("timeout")), "{script}");
    }
}

#[test]
fn death_at_every_step_is_a_crash_with_the_agents_words() {
    let all = [
        "echo gone >&2; exit 7".to_owned(),
        format!("read x; say '{HELLO}'; echo gone >&2; exit 7"),
        format!("read x; say '{HELLO}'; read x; say '{OPENED}'; read x; echo gone >&2; exit 7"),
        format!("read x; say '{HELLO}'; read x; say '{OPENED}'; read x; echo gone >&2; kill -9 $$"),
    ];
    for script in all {
        let (code, report, _) = run(&script, &[]);
        assert_eq!((code, &report["error"]["kind"]), (Some(1), &json!("crashed")), "{script}");
        let text = report["response_text"].as_str().unwrap();
        assert!(text.starts_with("own CLI error (exit ") && text.contains("gone"), "{text}");
    }
}

#[test]
fn an_agent_of_another_protocol_is_told_apart() {
    let hello = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":7}}"#;
    let (code, report, _) = run(&format!("read x; say '{hello}'; cat >/dev/null"), &[]);
    assert_eq!(code, Some(1));
    assert!(report["error"]["message"].as_str().unwrap().contains("does not speak version 1"));
}

#[test]
fn one_that_ignores_the_end_of_its_input_is_ended_all_the_same() {
    let script = format!(
        "read x; say '{HELLO}'; read x; say '{OPENED}'; read x; say '{}'; say '{DONE}'; exec sleep 1000",
        chunk("s", "done"),
    );
    let (code, report, all) = run(&script, &[]);
    assert_eq!((code, &report["response_text"]), (Some(0), &json!("done")), "{all}");
}
