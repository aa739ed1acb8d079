//! Turn after turn in one process.

use ostler_sim::model::{self, GEMINI_USAGE};

use super::{for_every_own_agent, for_every_warm_agent, leaders, until_all_gone};
use crate::{
    conformance::{
        Facts, answers,
        rig::Rig,
        settings::{assert_no_trap_worked, has_text, set_traps},
    },
    support::Model,
};
use serde_json::Value;

for_every_warm_agent! {
    a_text_is_streamed_in_pieces_and_told_once_more_at_the_end
    thinking_is_told_apart_from_the_answer
    a_tool_is_seen_at_work_and_its_output_reaches_the_answer
    a_failing_tool_does_not_fail_the_turn
    a_second_turn_remembers_and_counts_only_itself
    ten_turns_run_in_one_process
    a_session_goes_from_cold_to_warm_and_back
    an_unknown_session_is_lost_and_nothing_else_is_started
    two_conversations_at_once_do_not_wait_for_each_other
    a_cold_turn_waits_for_a_session_that_is_open_elsewhere
    a_huge_answer_arrives_whole
    an_empty_answer_is_an_empty_answer
    the_system_prompt_and_the_model_reach_the_provider
    settings_of_a_repository_start_nothing_and_redirect_nothing
}

for_every_own_agent! {
    a_text_is_streamed_in_pieces_and_told_once_more_at_the_end
    thinking_is_told_apart_from_the_answer
    a_tool_is_seen_at_work_and_its_output_reaches_the_answer
    a_second_turn_remembers_and_counts_only_itself
    ten_turns_run_in_one_process
    a_session_goes_from_cold_to_warm_and_back
    an_unknown_session_is_lost_and_nothing_else_is_started
    two_conversations_at_once_do_not_wait_for_each_other
    a_huge_answer_arrives_whole
}

/// Asserts that the turn's usage is that of so many model calls, as far as an
/// agent that is kept running tells it.
fn assert_usage(facts: &Facts, last: &Value, n_calls: u64) {
    if facts.kept.tells_cached && facts.kept.counts_thoughts {
        return answers::assert_usage(facts, last, n_calls);
    }
    let (one, usage) = (facts.usage, &last["usage"]);
    let unseen = if facts.kept.counts_thoughts { 0 } else { GEMINI_USAGE.reasoning };
    let output = (one.output - unseen) * n_calls;
    assert_eq!(usage["input_tokens"], one.input * n_calls, "{usage}");
    assert_eq!(usage["output_tokens"], output, "{usage}");
    assert_eq!(usage["cached_tokens"], Value::Null, "{usage}");
    assert_eq!(usage["total_tokens"], one.input * n_calls + output, "{usage}");
    assert_eq!(usage["cost_usd"].is_number(), facts.tells_cost, "{usage}");
}

fn a_text_is_streamed_in_pieces_and_told_once_more_at_the_end(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    let events = chat.ask("Say hello, please. sim:slow=300");
    let last = events.last();
    assert_eq!(last["is_error"], false, "{last}");
    assert_eq!(events.types().first(), Some(&"started"));
    assert_eq!(last["response_text"], events.text("output"));
    assert!(events.of_type("output").count() > 1, "{:?}", events.types());
    let session = last["session_id"].as_str().unwrap();
    assert_eq!(events.statuses("session")[0]["session_id"], session);
    assert_usage(facts, last, 1);
    assert_eq!((&last["exit_code"], &last["mode"]), (&serde_json::Value::Null, &"warm".into()));
    assert_eq!(last["stop_reason"], "end_turn");
    chat.end();
    until_all_gone(&rig);
    rig.assert_clean();
}

fn thinking_is_told_apart_from_the_answer(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    let events = chat.ask("sim:thinking");
    assert_eq!(events.text("output"), "I have thought about it.", "{}", events.last());
    let thought = events.text("thinking");
    assert!(thought.contains("wants to see me think"), "{thought:?}");
    chat.end();
}

fn a_tool_is_seen_at_work_and_its_output_reaches_the_answer(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    for _ in 0..2 {
        let events = chat.ask("sim:tool");
        assert_eq!(events.last()["is_error"], false, "{}", events.last());
        let calls: Vec<_> = events.of_type("tool_use").collect();
        let results: Vec<_> = events.of_type("tool_result").collect();
        assert_eq!((calls.len(), results.len()), (1, 1), "{:?}", events.types());
        assert!(calls[0]["title"].as_str().unwrap().contains("echo hi"), "{}", calls[0]);
        assert_eq!((&results[0]["id"], &results[0]["tool"]), (&calls[0]["id"], &calls[0]["tool"]));
        let shows_output = results[0]["output"].as_str().unwrap().contains("hi");
        assert_eq!(shows_output, facts.kept.shows_output, "{}", results[0]);
        assert_eq!(results[0]["is_error"], false);
        assert!(events.last()["response_text"].as_str().unwrap().contains("The tool said"));
        assert_usage(facts, events.last(), 2);
    }
    chat.end();
}

fn a_failing_tool_does_not_fail_the_turn(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    let events = chat.ask("sim:tools");
    assert_eq!(events.last()["is_error"], false, "{}", events.last());
    let failed: Vec<_> =
        events.of_type("tool_result").filter(|result| result["is_error"] == true).collect();
    if !facts.kept.shows_failures {
        assert_eq!(failed.len(), 0, "{failed:?}");
        return chat.end();
    }
    assert_eq!(failed.len(), 1 + usize::from(facts.shows_unknown_tool), "{:?}", events.types());
    assert!(failed.iter().any(|result| result["exit_code"] == 3), "{failed:?}");
    chat.end();
}

fn a_second_turn_remembers_and_counts_only_itself(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    let first = chat.ask("My name is Ada.");
    for n_prompts in 2..=3 {
        let next = chat.ask("sim:history");
        let last = next.last();
        assert_eq!(last["session_id"], first.last()["session_id"]);
        let text = last["response_text"].as_str().unwrap();
        assert!(text.starts_with(&format!("I remember {n_prompts} prompts")), "{text}");
        assert_usage(facts, last, 1);
        let cost = |events: &crate::support::Events| {
            events.last()["usage"]["cost_usd"].as_f64().unwrap_or_default()
        };
        assert!((cost(&first) - cost(&next)).abs() < 1e-9, "{last}");
    }
    chat.end();
}

fn ten_turns_run_in_one_process(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    chat.answer_to("hello");
    let first = leaders(&rig);
    assert!(!first.is_empty());
    for _ in 0..9 {
        assert_eq!(chat.answer_to("hello"), model::HELLO);
    }
    assert_eq!(leaders(&rig), first);
    chat.end();
    until_all_gone(&rig);
}

fn a_session_goes_from_cold_to_warm_and_back(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (_, first) = rig.ask("one", &[]);
    let session = first.last()["session_id"].as_str().unwrap().to_owned();
    let mut chat = rig.chat(&["--session", &session]);
    let warm = chat.ask("sim:history");
    let text = warm.last()["response_text"].as_str().unwrap();
    assert!(text.starts_with("I remember 2 prompts"), "{}", warm.last());
    assert_eq!(warm.last()["session_id"], session);
    assert_eq!(warm.of_type("started").next().unwrap()["resumed"], true);
    assert_usage(facts, warm.last(), 1);
    chat.end();
    let (code, cold) = rig.ask("sim:history", &["--session", &session]);
    assert_eq!(code, Some(0), "{}", cold.last());
    let text = cold.last()["response_text"].as_str().unwrap();
    assert!(text.starts_with("I remember 3 prompts"), "{text}");
    answers::assert_usage(facts, cold.last(), 1);
}

fn an_unknown_session_is_lost_and_nothing_else_is_started(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let unknown = "11111111-2222-4333-8444-555555555555";
    let mut chat = rig.chat(&["--session", unknown]);
    let events = chat.ask("hello");
    let last = events.last();
    assert_eq!(last["error"]["kind"], "session_lost", "{last}");
    assert_eq!(last["session_id"], serde_json::Value::Null);
    assert!(rig.model.requests().is_empty(), "the model was asked");
    chat.end();
}

fn two_conversations_at_once_do_not_wait_for_each_other(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut slow = rig.chat(&[]);
    slow.prompt("sim:slow=60000");
    slow.wait_for(|event| event["type"] == "output");
    let mut quick = rig.chat(&[]);
    assert_eq!(quick.answer_to("hello"), model::HELLO);
    quick.end();
    slow.cancel();
    assert_eq!(slow.finish().last()["error"]["kind"], "cancelled");
    slow.end();
}

fn a_cold_turn_waits_for_a_session_that_is_open_elsewhere(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    let first = chat.ask("one");
    let session = first.last()["session_id"].as_str().unwrap().to_owned();
    let (code, events) = rig.ask("two", &["--session", &session, "--timeout", "1s"]);
    assert_eq!((code, &events.last()["error"]["kind"]), (Some(1), &"session_busy".into()));
    chat.end();
    let (code, events) = rig.ask("sim:history", &["--session", &session]);
    assert_eq!(code, Some(0), "{}", events.last());
    assert!(events.text("output").contains("I remember 2 prompts"), "{}", events.last());
}

fn a_huge_answer_arrives_whole(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    let events = chat.ask("sim:huge=2000000");
    let expected = model::huge(2_000_000);
    assert!(events.last()["response_text"] == expected, "{}", events.last()["error"]);
    assert!(events.text("output") == expected, "the stream was changed");
    assert_eq!(chat.answer_to("hello"), model::HELLO);
    chat.end();
}

fn an_empty_answer_is_an_empty_answer(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&[]);
    assert_eq!(chat.answer_to("sim:empty"), "");
    assert_eq!(chat.answer_to("hello"), model::HELLO);
    chat.end();
}

fn the_system_prompt_and_the_model_reach_the_provider(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let word = format!("ostler-system-{}", std::process::id());
    let mut chat = rig.chat(&["--system", &word, "--model", facts.other_model]);
    chat.answer_to("hello");
    let asked = rig.model.requests();
    let asked = asked.last().unwrap();
    assert!(has_text(&asked.body, &word), "{}", asked.body);
    // Gemini's API has it in the path.
    let name = facts.other_model.rsplit('/').next().unwrap();
    assert!(asked.body["model"] == name || asked.path.contains(name), "{}", asked.path);
    chat.end();
}

fn settings_of_a_repository_start_nothing_and_redirect_nothing(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let thief = Model::start();
    set_traps(&rig, &thief.url());
    let mut chat = rig.chat(&[]);
    chat.answer_to("hello");
    assert_no_trap_worked(&rig, &thief);
    chat.end();
}
