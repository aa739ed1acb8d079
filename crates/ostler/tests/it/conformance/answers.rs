//! What comes back when all goes well.

use ostler_sim::model;
use serde_json::Value;

use super::{Facts, for_every_agent, rig::Rig};
use crate::support::Events;

for_every_agent! {
    a_text_is_streamed_and_told_once_more_at_the_end
    thinking_is_told_apart_from_the_answer
    a_tool_is_seen_at_work_and_its_output_reaches_the_answer
    a_failing_tool_does_not_fail_the_turn
    an_empty_answer_is_an_empty_answer
    a_huge_answer_arrives_whole
    json_prints_one_object_with_every_field_of_the_contract
    off_a_terminal_text_is_the_answer_and_nothing_else
    the_literal_command_line_of_json_and_bypass_works
    plain_text_of_the_cli_can_be_asked_for
    the_transcript_has_every_raw_line
}

fn a_text_is_streamed_and_told_once_more_at_the_end(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (code, events) = rig.ask("Say hello, please. sim:slow=300", &[]);
    let last = events.last();
    assert_eq!(code, Some(0), "{last}");
    assert_eq!(events.types().first(), Some(&"started"));
    assert_eq!(last["response_text"], events.text("output"));
    let n_pieces = events.of_type("output").count();
    assert_eq!(n_pieces > 1, facts.streams, "{n_pieces} pieces");
    let session = last["session_id"].as_str().unwrap();
    assert_eq!(events.statuses("session")[0]["session_id"], session);
    assert_usage(facts, last, 1);
    assert_eq!((&last["exit_code"], &last["mode"]), (&0.into(), &"one_shot".into()));
    assert_eq!((&last["stop_reason"], &last["error"]), (&"end_turn".into(), &Value::Null));
    rig.assert_clean();
}

/// Asserts that the turn's usage is that of so many model calls, and of no other turn.
pub(super) fn assert_usage(facts: &Facts, last: &Value, n_calls: u64) {
    let one = facts.usage;
    let usage = &last["usage"];
    assert_eq!(usage["input_tokens"], one.input * n_calls, "{usage}");
    assert_eq!(usage["output_tokens"], one.output * n_calls, "{usage}");
    assert_eq!(usage["cached_tokens"], one.cached * n_calls, "{usage}");
    assert_eq!(usage["total_tokens"], (one.input + one.output) * n_calls, "{usage}");
    assert_eq!(usage["cost_usd"].is_number(), facts.tells_cost, "{usage}");
}

fn thinking_is_told_apart_from_the_answer(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (code, events) = rig.ask("sim:thinking", &[]);
    assert_eq!(code, Some(0));
    assert_eq!(events.text("output"), "I have thought about it.");
    let thought = events.text("thinking");
    assert_eq!(thought.contains("wants to see me think"), facts.shows_thinking, "{thought:?}");
}

fn a_tool_is_seen_at_work_and_its_output_reaches_the_answer(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (code, events) = rig.ask("sim:tool", &[]);
    assert_eq!(code, Some(0), "{}", events.last());
    let call = only(&events, "tool_use");
    assert!(call["title"].as_str().unwrap().contains("echo hi"), "{call}");
    let result = only(&events, "tool_result");
    assert_eq!(result["id"], call["id"]);
    assert_eq!(result["tool"], call["tool"]);
    assert!(result["output"].as_str().unwrap().contains("hi"), "{result}");
    assert_eq!(result["is_error"], false);
    assert!(events.last()["response_text"].as_str().unwrap().contains("The tool said"));
    assert_usage(facts, events.last(), 2);
}

fn only<'a>(events: &'a Events, kind: &'a str) -> &'a Value {
    let mut all = events.of_type(kind);
    let first = all.next().unwrap_or_else(|| panic!("no {kind} in {:?}", events.types()));
    assert!(all.next().is_none(), "more than one {kind}");
    first
}

fn a_failing_tool_does_not_fail_the_turn(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (code, events) = rig.ask("sim:tools", &[]);
    assert_eq!(code, Some(0), "{}", events.last());
    let results: Vec<_> = events.of_type("tool_result").collect();
    let n_unknown = usize::from(facts.shows_unknown_tool);
    assert_eq!(results.len(), 2 + n_unknown, "{:?}", events.types());
    let failed: Vec<_> = results.iter().filter(|result| result["is_error"] == true).collect();
    // To a CLI that shows no exit codes a command that failed is a success.
    assert_eq!(failed.len(), usize::from(facts.shows_exit_code) + n_unknown);
    let code = failed.iter().any(|result| result["exit_code"] == 3);
    assert_eq!(code, facts.shows_exit_code, "{failed:?}");
}

fn an_empty_answer_is_an_empty_answer(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (code, events) = rig.ask("sim:empty", &[]);
    assert_eq!(code, Some(0), "{}", events.last());
    assert_eq!(events.last()["response_text"], "");
}

fn a_huge_answer_arrives_whole(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (code, events) = rig.ask("sim:huge=2000000", &[]);
    assert_eq!(code, Some(0), "{}", events.last()["error"]);
    let expected = model::huge(2_000_000);
    assert!(events.last()["response_text"] == expected, "the answer was changed");
    assert!(events.text("output") == expected, "the stream was changed");
}

fn json_prints_one_object_with_every_field_of_the_contract(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let outcome = rig.outcome("hello", &["--output", "json"]);
    let object = outcome.json();
    let keys: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = vec![
        "agent",
        "session_id",
        "response_text",
        "is_error",
        "error",
        "exit_code",
        "duration_ms",
        "model",
        "stop_reason",
        "mode",
        "usage",
    ];
    expected.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!(object["agent"], facts.agent);
    assert_eq!(object["response_text"], model::HELLO);
    assert_eq!(object["is_error"], false);
}

fn off_a_terminal_text_is_the_answer_and_nothing_else(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let outcome = rig.outcome("hello", &["--output", "text"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, format!("{}\n", model::HELLO));
    assert_eq!(outcome.stderr, "");
}

fn the_literal_command_line_of_json_and_bypass_works(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (code, events) = rig.ask("hello", &["--format", "json"]);
    assert_eq!(code, Some(0), "{}", events.last());
    assert_eq!(events.last()["response_text"], model::HELLO);
    let session = events.last()["session_id"].as_str().unwrap();
    let (code, events) = rig.ask("sim:history", &["--format", "json", "--session", session]);
    assert_eq!(code, Some(0), "{}", events.last());
    assert!(events.text("output").contains("I remember 2 prompts"));
    assert_usage(facts, events.last(), 1);
}

fn plain_text_of_the_cli_can_be_asked_for(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (code, events) = rig.ask("hello", &["--format", "text"]);
    assert_eq!(code, Some(0), "{}", events.last());
    let text = events.last()["response_text"].as_str().unwrap();
    assert_eq!(text.trim_end(), model::HELLO);
}

fn the_transcript_has_every_raw_line(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let file = rig.place.path("raw.jsonl");
    let (code, events) = rig.ask("hello", &["--transcript", file.to_str().unwrap()]);
    assert_eq!(code, Some(0));
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = text.lines().map(crate::support::parse).collect();
    assert_eq!(lines[0]["from"], "argv");
    let session = events.last()["session_id"].as_str().unwrap();
    let printed: Vec<_> = lines.iter().filter(|line| line["from"] == "stdout").collect();
    assert!(printed.iter().any(|line| line["line"].as_str().unwrap().contains(session)));
}
