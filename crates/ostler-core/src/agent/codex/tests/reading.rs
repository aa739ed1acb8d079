//! How single lines and exits are read, one known trap each.

use super::*;
use crate::{
    event::{Status, Usage},
    failure::FailureKind,
    memo::Totals,
    request::Format,
};

pub(super) const STARTED: &str =
    r#"{"type":"thread.started","thread_id":"01a1e088-9109-7530-b2ac-e9fa07582dea"}"#;
pub(super) const MESSAGE: &str =
    r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Hi."}}"#;
const COMPLETED: &str = r#"{"type":"turn.completed","usage":{"input_tokens":2400,"cached_input_tokens":2000,"output_tokens":68,"reasoning_output_tokens":24}}"#;

pub(super) fn turn(lines: &[&str]) -> String {
    lines.join("\n")
}

#[test]
fn trap_a_retry_notice_does_not_end_the_turn() {
    let notice = r#"{"type":"error","message":"Reconnecting... 1/5 (unexpected status 401 Unauthorized: no)"}"#;
    let lines = turn(&[STARTED, notice, MESSAGE, COMPLETED]);
    let actions = play_new(&lines, exit(0, ""));
    assert!(end_of(&actions).failure.is_none());
    assert!(matches!(
        events(&actions)[0],
        EventBody::Status(Status::Retry { attempt: Some(1), max: Some(5), .. })
    ));
}

#[test]
fn trap_usage_accumulates_over_resumed_turns_and_is_told_for_this_turn() {
    let lines = turn(&[STARTED, MESSAGE, COMPLETED]);
    let new = play_new(&lines, exit(0, ""));
    assert_eq!(end_of(&new).usage, Usage::of_tokens(2400, 68, 2000));

    let unknown = play_in(&resume(SESSION), &lines, exit(0, ""));
    assert_eq!(end_of(&unknown).usage, Usage::default());

    let before = |input_tokens| {
        Open::Resume(Box::new(Memo {
            totals: Some(Totals {
                input_tokens,
                output_tokens: 34,
                cached_tokens: 1000,
                cost_usd: 0.0,
            }),
            ..Memo::of_id("codex", SESSION)
        }))
    };
    let known = play_in(&before(1200), &lines, exit(0, ""));
    assert_eq!(end_of(&known).usage, Usage::of_tokens(1200, 34, 1000));
    assert_eq!(end_of(&known).totals.unwrap().input_tokens, 2400);

    let shrunk = play_in(&before(9999), &lines, exit(0, ""));
    assert_eq!(end_of(&shrunk).usage, Usage::default());
}

#[test]
fn trap_another_session_than_the_one_asked_for_is_a_lost_session() {
    let lines = turn(&[STARTED, MESSAGE, COMPLETED]);
    let other = resume("0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee");
    let actions = play_in(&other, &lines, exit(0, ""));
    assert_eq!(failure_of(&actions).0, "session_lost");
    assert_eq!(opened(&actions), None);
    assert!(actions.iter().any(|action| matches!(action, Action::Stop)));

    let same = play_in(&resume(&SESSION.to_uppercase()), &lines, exit(0, ""));
    assert_eq!(opened(&same), Some(SESSION));
}

#[test]
fn trap_the_answer_is_the_last_message_though_a_todo_list_comes_later() {
    let first = MESSAGE.replace("Hi.", "I will look first.");
    let second = MESSAGE.replace("item_0", "item_2");
    let plan = r#"{"type":"item.completed","item":{"id":"item_1","type":"todo_list","items":[{"text":"a","completed":true},{"text":"b","completed":false}]}}"#;
    let lines = turn(&[STARTED, &first, &second, plan, COMPLETED]);
    let actions = play_new(&lines, exit(0, ""));
    assert_eq!(end_of(&actions).text.as_deref(), Some("Hi."));
    let blocks: Vec<_> = outputs(&actions).iter().map(|(block, _)| *block).collect();
    assert_eq!(blocks, ["item_0", "item_2"]);
    assert!(events(&actions).iter().any(|event| matches!(
        event,
        EventBody::ToolResult(result) if result.output == "[x] a\n[ ] b"
    )));
}

#[test]
fn an_error_that_was_not_the_end_is_a_warning_and_told_once() {
    let odd = r#"{"type":"error","message":"something odd"}"#;
    let lines = turn(&[STARTED, odd, odd, MESSAGE, COMPLETED]);
    let actions = play_new(&lines, exit(0, ""));
    let warnings = events(&actions)
        .into_iter()
        .filter(|event| matches!(event, EventBody::Status(Status::Warning { .. })))
        .count();
    assert_eq!(warnings, 1);
    assert!(end_of(&actions).failure.is_none());
}

#[test]
fn an_error_before_an_exit_without_a_last_word_is_the_reason() {
    let error = r#"{"type":"error","message":"Quota exceeded. Check your plan."}"#;
    let actions = play_new(&turn(&[STARTED, error]), exit(1, ""));
    assert_eq!(failure_of(&actions), ("quota", "Quota exceeded. Check your plan."));
}

#[test]
fn an_error_body_on_stdout_counts_for_the_kind_and_is_still_told() {
    let body = r#"{"error":{"message":"bad key","type":"x","code":"invalid_api_key"}}"#;
    let actions = play_new(body, exit(1, ""));
    assert_eq!(failure_of(&actions), ("auth", "bad key"));
    assert!(matches!(events(&actions)[0], EventBody::Unknown { .. }));
}

#[test]
fn the_older_message_alone_is_a_success() {
    let line = r#"{"type":"message","role":"assistant","content":" exact \n","session_id":"s-1"}"#;
    let actions = play_new(line, exit(0, ""));
    assert_eq!(opened(&actions), Some("s-1"));
    assert_eq!(end_of(&actions).text.as_deref(), Some(" exact \n"));
    assert!(end_of(&actions).failure.is_none());
}

#[test]
fn banners_and_blank_lines_are_passed_over_and_the_banner_is_told() {
    let lines = turn(&["Welcome!", "", STARTED, "  ", MESSAGE, "[1]", COMPLETED]);
    let actions = play_new(&lines, exit(0, ""));
    let unknown: Vec<_> = events(&actions)
        .into_iter()
        .filter_map(|event| {
            let EventBody::Unknown { text, .. } = event else {
                return None;
            };
            Some(text.as_str())
        })
        .collect();
    assert_eq!(unknown, ["Welcome!", "[1]"]);
    assert_eq!(end_of(&actions).text.as_deref(), Some("Hi."));
}

#[test]
fn nothing_readable_with_exit_0_cannot_be_parsed_but_an_empty_answer_is_one() {
    let garbage = play_new("what?", exit(0, ""));
    let failure = end_of(&garbage).failure.as_ref().unwrap();
    assert_eq!(failure.kind, FailureKind::UnreadableOutput);
    assert_eq!(failure.response_text(), "Failed to parse CLI output");

    let empty = play_new(&turn(&[STARTED, COMPLETED]), exit(0, ""));
    assert_eq!(end_of(&empty).text.as_deref(), Some(""));
    assert!(end_of(&empty).failure.is_none());
}

#[test]
fn an_answer_too_long_to_keep_is_not_replaced_by_the_commentary_before_it() {
    let options = Options::new("/workspace");
    let mut dialect = (SPEC.dialect)(&launch_of(&SPEC, &options, &Open::New, "hi"));
    let mut out = Vec::new();
    let cut =
        Input::Line { from: Stream::Stdout, bytes: b"{\"type\":\"item.completed\"", cut: true };
    dialect.step(at_second(0), stdout_line(MESSAGE.as_bytes()), &mut out);
    dialect.step(at_second(0), cut, &mut out);
    dialect.step(at_second(0), stdout_line(COMPLETED.as_bytes()), &mut out);
    assert_eq!(failure_of(&out).0, "unreadable_output");
    assert_eq!(end_of(&out).text, None);
}

#[test]
fn a_huge_answer_is_one_line_and_arrives_whole() {
    let long = "é".repeat(300_000);
    let lines = turn(&[STARTED, &MESSAGE.replace("Hi.", &long), COMPLETED]);
    let actions = play_new(&lines, exit(0, ""));
    assert_eq!(end_of(&actions).text.as_ref(), Some(&long));
}

#[test]
fn the_text_form_gives_the_answer_exactly_and_finds_the_session_in_the_header_only() {
    let stderr = "OpenAI Codex v0.166.0\n--------\nmodel: gpt-5.5\n\
                  session id: 01a1e088-9109-7530-b2ac-e9fa07582dea\n--------\nuser\n\
                  session id: 0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee\n";
    let recording = Recording {
        stdout: b"two\nlines\n\n\n".to_vec(),
        stderr: stderr.as_bytes().to_vec(),
        exit: exit(0, stderr),
    };
    let mut options = Options::new("/workspace");
    options.format = Format::Text;
    let actions = play::play_with(&SPEC, &recording, &options, &Open::New);
    assert_eq!(opened(&actions), Some(SESSION));
    let end = end_of(&actions);
    assert_eq!(end.text.as_deref(), Some("two\nlines\n\n"));
    assert_eq!(end.model.as_deref(), Some("gpt-5.5"));
    assert_eq!(end.meta["version"], "0.166.0");
    let streamed: String = outputs(&actions).iter().map(|(_, text)| *text).collect();
    assert_eq!(streamed, "two\nlines\n\n");
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
