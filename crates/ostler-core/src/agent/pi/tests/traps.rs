//! How single lines and exits are read, one known trap each.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::{
    event::{Status, StopReason, Usage},
    failure::FailureKind,
    request::{Format, PromptCommands},
};

pub(super) const HEADER: &str = r#"{"type":"session","version":3,"id":"01a1e089-4963-74e8-abb7-2fac386518c1","cwd":"/workspace"}"#;
pub(super) const SETTLED: &str = r#"{"type":"agent_settled","aborted":false}"#;

fn answer(text: &str) -> String {
    message(text, "stop", &json!({}))
}

/// The end of a message of the model.
pub(super) fn message(text: &str, stop: &str, more: &Value) -> String {
    let mut message = json!({
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
        "model": "m",
        "stopReason": stop,
        "usage": {"input": 1000, "output": 20, "cacheRead": 300, "cacheWrite": 50,
                  "cost": {"total": 0.5}},
    });
    for (key, value) in more.as_object().unwrap() {
        message[key] = value.clone();
    }
    json!({"type": "message_end", "message": message}).to_string()
}

pub(super) fn failed(words: &str) -> String {
    let zero = json!({"input": 0, "output": 0});
    message("", "error", &json!({"errorMessage": words, "usage": zero}))
}

fn delta(text: &str) -> String {
    json!({
        "type": "message_update",
        "assistantMessageEvent": {"type": "text_delta", "contentIndex": 0, "delta": text},
    })
    .to_string()
}

pub(super) fn retry(attempt: u32, delay_ms: u64) -> String {
    json!({
        "type": "auto_retry_start", "attempt": attempt, "maxAttempts": 3, "delayMs": delay_ms,
        "errorMessage": "Connection error.",
    })
    .to_string()
}

pub(super) fn turn(lines: &[&str]) -> String {
    lines.join("\n")
}

const STARTS: &str = r#"{"type":"message_start","message":{"role":"assistant","content":[]}}"#;

#[test]
fn trap_the_end_of_a_run_is_not_the_end_when_the_cli_tries_again() {
    let ended = r#"{"type":"agent_end","messages":[],"willRetry":true}"#;
    let retry = retry(1, 2000);
    let lines = turn(&[HEADER, &failed("429 {}"), ended, &retry, STARTS, &answer("Hi."), SETTLED]);
    let actions = play_new(&lines, exit(0, ""));
    let end = end_of(&actions);
    assert_eq!((end.text.as_deref(), end.failure.is_none()), (Some("Hi."), true));
    assert!(events(&actions).iter().any(|event| matches!(
        event,
        EventBody::Status(Status::Retry {
            attempt: Some(1),
            max: Some(3),
            delay_ms: Some(2000),
            ..
        })
    )));
}

#[test]
fn text_of_an_attempt_that_failed_is_withdrawn_before_the_next_one() {
    let actions = play::play(&SPEC, &recorded("0.87.1/json-cut"));
    let withdrawn: Vec<&str> = events(&actions)
        .into_iter()
        .filter_map(|event| {
            let EventBody::Status(Status::Retracted { block }) = event else { return None };
            Some(block.as_str())
        })
        .collect();
    assert_eq!(withdrawn, ["m1.0", "m2.0", "m3.0"]);
    let told: BTreeSet<_> = outputs(&actions).into_iter().map(|(block, _)| block).collect();
    assert_eq!(told, BTreeSet::from(["m1.0", "m2.0", "m3.0", "m4.0"]));
}

#[test]
fn older_versions_end_with_their_run_and_the_exit() {
    for version in ["0.73.1", "0.74.2"] {
        let actions = play::play(&SPEC, &recorded(&format!("{version}/json-tool")));
        assert_eq!(end_of(&actions).text.as_deref(), Some("Done. Tool said: hi"));
        assert!(end_of(&actions).failure.is_none());
    }
}

#[test]
fn trap_a_session_of_another_directory_is_lost_though_the_exit_is_0() {
    let mut options = Options::new("/workspace");
    for name in ["0.87.1/sess-foreign", "0.87.1/sess-foreign-yes", "1.5.0/sess-other-cwd-session"] {
        let actions = play::play_with(&SPEC, &recorded(name), &options, &resume(SESSION));
        assert_eq!(failure_of(&actions).0, "session_lost", "{name}");
        assert_eq!(opened(&actions), None);
    }
    options.format = Format::Text;
    let text = recorded("0.87.1/sess-foreign-text");
    let actions = play::play_with(&SPEC, &text, &options, &resume(SESSION));
    assert_eq!(failure_of(&actions).0, "session_lost");
    assert_eq!(opened(&actions), None);
}

#[test]
fn trap_another_session_than_the_one_asked_for_is_a_lost_session() {
    let lines = turn(&[HEADER, &answer("Hi."), SETTLED]);
    let options = Options::new("/workspace");
    let actions = play_with(&options, &resume("01a1e089"), &lines, exit(0, ""));
    assert_eq!(failure_of(&actions).0, "session_lost");
    assert_eq!(opened(&actions), None);
    assert!(has_stopped(&actions));
    let same = play_with(&options, &resume(SESSION), &lines, exit(0, ""));
    assert_eq!(opened(&same), Some(SESSION));
}

#[test]
fn trap_an_unknown_session_is_lost_in_every_way_to_say_it() {
    let options = Options::new("/workspace");
    for name in ["0.87.1/sess-unknown", "0.87.1/sess-foreign-named-folder"] {
        let actions = play::play_with(&SPEC, &recorded(name), &options, &resume(SESSION));
        assert_eq!(failure_of(&actions).0, "session_lost", "{name}");
    }
    // The CLI makes a session of an id that a template gave with another flag.
    let made =
        "Warning: No project session found with id 'x'; creating a new session with that id.";
    let lines = turn(&[HEADER, &answer("Hi."), SETTLED]);
    let lost = play_with(&options, &resume(SESSION), &lines, exit(0, made));
    assert_eq!(failure_of(&lost).0, "session_lost");
    assert!(has_stopped(&lost));
    let new = play_new(&lines, exit(0, made));
    assert!(end_of(&new).failure.is_none());
    assert!(!events(&new).iter().any(|event| matches!(event, EventBody::Unknown { .. })));
}

#[test]
fn trap_a_new_session_is_told_when_it_can_be_resumed_and_not_before() {
    let cut = play_new(&turn(&[HEADER, STARTS, &delta("Hi")]), exit(143, ""));
    assert_eq!(opened(&cut), None);
    let whole = play_new(&turn(&[HEADER, &failed("401 {}"), SETTLED]), exit(0, ""));
    assert_eq!(opened(&whole), Some(SESSION));
    let nothing = play::play(&SPEC, &recorded("0.87.1/nokey"));
    assert_eq!((opened(&nothing), failure_of(&nothing).0), (None, "auth"));

    let options = Options::new("/workspace");
    let asked = json!({"type": "message_end", "message": {"role": "user", "content": []}});
    let told = |version| {
        let launch = Launch { version, ..launch_of(&SPEC, &options, &Open::New, "hi") };
        let mut dialect = (SPEC.dialect)(&launch);
        let mut out = Vec::new();
        for line in [HEADER, &asked.to_string()] {
            dialect.step(at_second(0), stdout_line(line.as_bytes()), &mut out);
        }
        opened(&out).is_some()
    };
    assert_eq!((told(Some("1.5.0")), told(Some("0.87.1")), told(None)), (true, false, false));
}

#[test]
fn a_session_that_is_not_kept_has_no_id_to_resume() {
    let mut options = Options::new("/workspace");
    options.extra_args.push("--no-session".into());
    let lines = turn(&[HEADER, &answer("Hi."), SETTLED]);
    assert_eq!(opened(&play_with(&options, &Open::New, &lines, exit(0, ""))), None);
}

#[test]
fn trap_a_prompt_that_was_carried_out_as_a_command_has_an_empty_answer() {
    let mut options = Options::new("/workspace");
    let off = play_with(&options, &Open::New, HEADER, exit(0, ""));
    assert_eq!(failure_of(&off).0, "unreadable_output");
    options.prompt_commands = PromptCommands::On;
    let on = play_with(&options, &Open::New, HEADER, exit(0, ""));
    assert_eq!(end_of(&on).text.as_deref(), Some(""));
    assert!(end_of(&on).failure.is_none());
    let nothing = play_with(&options, &Open::New, "", exit(0, ""));
    assert_eq!(failure_of(&nothing).0, "unreadable_output");
}

#[test]
fn a_limit_of_model_calls_is_kept_here_because_the_cli_has_none() {
    let mut options = Options::new("/workspace");
    options.max_turns = Some(2);
    let tools = message("", "toolUse", &json!({}));
    let ended = r#"{"type":"turn_end"}"#;
    let lines = turn(&[HEADER, &tools, ended, &tools, ended, &answer("late"), SETTLED]);
    let actions = play_with(&options, &Open::New, &lines, exit(143, ""));
    assert_eq!(failure_of(&actions).0, "limit_reached");
    assert_eq!(end_of(&actions).stop_reason, Some(StopReason::MaxTurns));
    assert!(has_stopped(&actions));
    let lines = turn(&[HEADER, &tools, ended, &answer("in time"), ended, SETTLED]);
    let actions = play_with(&options, &Open::New, &lines, exit(0, ""));
    assert_eq!(end_of(&actions).text.as_deref(), Some("in time"));
}

#[test]
fn usage_is_the_sum_of_the_calls_and_of_what_summaries_cost() {
    let compacted = json!({
        "type": "compaction_end", "reason": "threshold",
        "result": {"summary": "s", "tokensBefore": 9, "usage": {"input": 7, "output": 3}},
    });
    let tools = message("", "toolUse", &json!({}));
    let lines =
        turn(&[HEADER, &tools, &failed("x"), &answer("Hi."), &compacted.to_string(), SETTLED]);
    let actions = play_new(&lines, exit(0, ""));
    let expected = Usage { cost_usd: Some(1.0), ..Usage::of_tokens(2707, 43, 600) };
    assert_eq!(end_of(&actions).usage, expected);
    assert!(
        events(&actions).iter().any(|e| matches!(e, EventBody::Status(Status::Compacted { .. })))
    );
    let failed = play_new(&turn(&[HEADER, &failed("401 {}"), SETTLED]), exit(0, ""));
    assert_eq!(end_of(&failed).usage, Usage::default());
}

#[test]
fn tools_run_side_by_side_and_tell_their_exit_codes() {
    let actions = play::play(&SPEC, &recorded("0.87.1/json-tools"));
    let results: Vec<_> = events(&actions)
        .into_iter()
        .filter_map(|event| {
            let EventBody::ToolResult(result) = event else { return None };
            Some((result.tool.as_str(), result.is_error, result.exit_code))
        })
        .collect();
    assert_eq!(results.len(), 4);
    assert!(results.contains(&("bash", true, Some(3))), "{results:?}");
    assert!(results.contains(&("nosuchtool", true, None)), "{results:?}");
    let newer = json!({
        "type": "tool_execution_end", "toolCallId": "t", "toolName": "bash", "isError": true,
        "result": {"content": [], "structuredContent": {"exit_code": 4, "truncated": true}},
    });
    let actions = play_new(&turn(&[&newer.to_string(), SETTLED]), exit(0, ""));
    assert!(matches!(
        events(&actions)[0],
        EventBody::ToolResult(result) if result.exit_code == Some(4) && result.truncated
    ));
    let big = play::play(&SPEC, &recorded("0.87.1/json-big-output"));
    assert!(events(&big).iter().any(|event| matches!(
        event,
        EventBody::ToolResult(result) if result.truncated
    )));
}

#[test]
fn several_texts_of_a_message_are_lines_as_the_cli_itself_prints_them() {
    let json = play::play(&SPEC, &recorded("0.87.1/json-two-texts"));
    assert_eq!(end_of(&json).text.as_deref(), Some("first\nsecond"));
    let mut options = Options::new("/workspace");
    options.format = Format::Text;
    let text = play::play_with(&SPEC, &recorded("0.87.1/text-two-texts"), &options, &Open::New);
    assert_eq!(end_of(&text).text.as_deref(), Some("first\nsecond"));
}

#[test]
fn a_text_that_comes_in_pieces_and_whole_is_told_once() {
    let whole = json!({
        "type": "message_update",
        "assistantMessageEvent": {"type": "text_end", "contentIndex": 0, "content": "Hello"},
    });
    let lines = turn(&[STARTS, &delta("Hel"), &whole.to_string(), &answer("Hello!"), SETTLED]);
    let actions = play_new(&lines, exit(0, ""));
    assert_eq!(outputs(&actions), [("m1.0", "Hel"), ("m1.0", "lo"), ("m1.0", "!")]);
    let changed = play_new(&turn(&[STARTS, &delta("Hel"), &answer("Bye"), SETTLED]), exit(0, ""));
    assert_eq!(outputs(&changed), [("m1.0", "Hel"), ("m1.0-1", "Bye")]);
    assert!(events(&changed).iter().any(|event| matches!(
        event,
        EventBody::Status(Status::Retracted { block }) if block == "m1.0"
    )));
}

#[test]
fn the_older_result_alone_is_a_success() {
    let line = r#"{"type":"result","result":" exact \n","session_id":"s-1"}"#;
    let actions = play_new(line, exit(0, ""));
    assert_eq!(opened(&actions), Some("s-1"));
    assert_eq!(end_of(&actions).text.as_deref(), Some(" exact \n"));
    assert_eq!(outputs(&actions).len(), 1);
    assert!(end_of(&actions).failure.is_none());
}

#[test]
fn banners_and_unknown_types_are_told_and_do_no_harm() {
    let odd = r#"{"type":"news_from_the_future","x":1}"#;
    let lines = turn(&["Welcome!", "", HEADER, odd, "  ", &answer("Hi."), "[1]", SETTLED]);
    let actions = play_new(&lines, exit(0, ""));
    let unknown: Vec<_> = events(&actions)
        .into_iter()
        .filter_map(|event| {
            let EventBody::Unknown { text, .. } = event else { return None };
            Some(text.as_str())
        })
        .collect();
    assert_eq!(unknown, ["Welcome!", odd, "[1]"]);
    assert_eq!(end_of(&actions).text.as_deref(), Some("Hi."));
}

#[test]
fn line_separators_and_half_emoji_inside_a_line_do_not_break_it() {
    let line = answer("a\u{2028}b\u{2029}c");
    let actions = play_new(&turn(&[&line, SETTLED]), exit(0, ""));
    assert_eq!(end_of(&actions).text.as_deref(), Some("a\u{2028}b\u{2029}c"));
    let half = answer("x").replace("\"x\"", "\"x\\ud83d\"");
    let actions = play_new(&turn(&[&half, SETTLED]), exit(0, ""));
    assert_eq!(end_of(&actions).text.as_deref(), Some("x\u{fffd}"));
}

#[test]
fn an_answer_too_long_to_keep_is_not_replaced_by_what_was_said_before_it() {
    let options = Options::new("/workspace");
    let mut dialect = (SPEC.dialect)(&launch_of(&SPEC, &options, &Open::New, "hi"));
    let mut out = Vec::new();
    let cut = Input::Line { from: Stream::Stdout, bytes: b"{\"type\":\"message_end\"", cut: true };
    dialect.step(at_second(0), stdout_line(answer("Wait.").as_bytes()), &mut out);
    dialect.step(at_second(0), cut, &mut out);
    dialect.step(at_second(0), stdout_line(SETTLED.as_bytes()), &mut out);
    assert_eq!(failure_of(&out).0, "unreadable_output");
    assert_eq!(end_of(&out).text, None);
}

#[test]
fn a_process_that_stops_in_the_middle_of_a_tool_did_not_answer() {
    let tools = message("Let me see.", "toolUse", &json!({}));
    let actions = play_new(&turn(&[HEADER, &tools]), exit(0, ""));
    assert_eq!(failure_of(&actions).0, "unreadable_output");
    let aborted = r#"{"type":"agent_settled","aborted":true}"#;
    let actions = play_new(&turn(&[HEADER, &tools, aborted]), exit(0, ""));
    assert_eq!(failure_of(&actions).0, "cancelled");
}

#[test]
fn warnings_of_the_cli_are_warnings() {
    let actions = play_new(&turn(&[HEADER, &answer("Hi."), SETTLED]), exit(0, "Warning: odd\n"));
    assert!(matches!(
        events(&actions)[0],
        EventBody::Status(Status::Warning { text }) if text == "odd"
    ));
    assert_eq!(end_of(&actions).failure.as_ref().map(|f| f.kind), None::<FailureKind>);
}

#[test]
fn cancel_stops_the_process() {
    let options = Options::new("/workspace");
    let mut dialect = (SPEC.dialect)(&launch_of(&SPEC, &options, &Open::New, "hi"));
    let mut out = Vec::new();
    let turn = crate::agent::ONLY_TURN;
    dialect.step(at_second(0), Input::Cancel { turn }, &mut out);
    assert!(matches!(out[..], [Action::Stop]));
}
