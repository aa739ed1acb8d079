use ostler_core::{
    EventBody, TurnReport,
    agent::AgentName,
    event::{Mode, Status, Stream, ToolResult},
};
use ostler_sim::model::Charge;

use super::{
    super::seen::{Call, Seen},
    *,
};

const PROMPT: &str = "What does it say?";
const CHARGE: Charge = Charge { input: 100, cached: 40, output: 7 };

const FIRST: Expected<'_> = Expected {
    prompt: PROMPT,
    answer: "horses",
    tool_output: Some("horses of an inn"),
    session: None,
    min_pieces: 2,
};
const SECOND: Expected<'_> =
    Expected { tool_output: None, session: Some("s1"), answer: "2 prompts", ..FIRST };

fn output(text: &str, block: &str) -> EventBody {
    EventBody::Output { text: text.to_owned(), block: block.to_owned() }
}

fn tool_result(id: &str) -> EventBody {
    EventBody::ToolResult(ToolResult {
        id: id.to_owned(),
        output: "the horses of an inn\n".to_owned(),
        ..ToolResult::default()
    })
}

fn report(answer: &str) -> TurnReport {
    TurnReport {
        agent: AgentName::new("any"),
        session_id: Some("s1".to_owned()),
        response_text: Some(answer.to_owned()),
        error: None,
        exit_code: Some(0),
        duration_ms: 1,
        model: None,
        stop_reason: None,
        mode: Mode::OneShot,
        usage: Usage::of_tokens(200, 14, 80),
        truncated: false,
        memo: None,
        meta: serde_json::Map::new(),
    }
}

fn call() -> Call {
    Call { prompt: Some(format!("Be kind.\n\n{PROMPT}")), charge: Some(CHARGE) }
}

/// The events of a turn as it must be; the answer is the text after the tool.
fn events() -> Vec<EventBody> {
    vec![
        output("I am going to read.", "1"),
        EventBody::ToolUse {
            id: "t1".to_owned(),
            tool: "read".to_owned(),
            input: None,
            title: String::new(),
        },
        tool_result("t1"),
        output("It says: ", "2"),
        output("horses.", "2"),
    ]
}

fn turn(events: Vec<EventBody>, report: TurnReport) -> Seen {
    let mut seen = Seen::default();
    events.into_iter().for_each(|event| seen.add(event));
    seen.add(EventBody::Complete(Box::new(report)));
    seen.calls = vec![call(), call()];
    seen
}

fn good() -> Seen {
    turn(events(), report("It says: horses."))
}

fn told(expected: &Expected<'_>, seen: &Seen) -> Vec<String> {
    compare(expected, seen).into_iter().map(|difference| difference.what).collect()
}

#[test]
fn a_turn_as_it_must_be_has_no_differences() {
    assert_eq!(compare(&FIRST, &good()), []);
    let second = turn(
        vec![output("I remember ", "1"), output("2 prompts", "1")],
        report("I remember 2 prompts"),
    );
    assert_eq!(compare(&SECOND, &second), []);
}

#[test]
fn events_that_no_longer_come_are_named() {
    let without = |kind: &str| {
        let left = events().into_iter().filter(|event| event.kind() != kind).collect();
        told(&FIRST, &turn(left, report("It says: horses.")))
    };
    assert_eq!(without("tool_use"), ["no tool_use event"]);
    assert_eq!(without("tool_result"), ["no tool_result event"]);
    assert_eq!(without("output"), ["no output event"]);
}

#[test]
fn a_result_must_belong_to_a_call_and_hold_the_output() {
    let mut changed = events();
    changed[2] = tool_result("t2");
    let found = told(&FIRST, &turn(changed, report("It says: horses.")));
    assert_eq!(found, ["tool_result with an id that no tool_use has"]);
    let mut changed = events();
    changed[2] = EventBody::ToolResult(ToolResult { id: "t1".to_owned(), ..ToolResult::default() });
    let found = told(&FIRST, &turn(changed, report("It says: horses.")));
    assert_eq!(found, ["tool_result without the tool's output: \"\""]);
}

#[test]
fn the_answer_must_be_what_was_said_and_what_was_streamed() {
    let found = told(&FIRST, &turn(events(), report("It says: cows.")));
    assert!(found[0].starts_with("the answer is not what the model said"), "{found:?}");
    assert!(found[1].starts_with("the streamed text is not the answer"), "{found:?}");
    assert_eq!(told(&FIRST, &turn(events(), report(""))), ["no answer"]);
    let found = told(&SECOND, &turn(events(), report("It says: horses.")));
    assert!(found[0].starts_with("the resumed session has forgotten"), "{found:?}");
}

#[test]
fn withdrawn_text_is_no_part_of_the_stream() {
    let mut changed = vec![output("It sa", "0")];
    changed.push(EventBody::Status(Status::Retracted { block: "0".to_owned() }));
    changed.extend(events());
    assert_eq!(told(&FIRST, &turn(changed, report("It says: horses."))), [] as [&str; 0]);
}

#[test]
fn text_that_comes_all_at_once_is_a_warning_where_it_was_streamed() {
    let whole = vec![output("I remember 2 prompts", "1")];
    let found = compare(&SECOND, &turn(whole, report("I remember 2 prompts")));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].level, Level::Warning);
    assert!(found[0].what.contains("no longer comes in pieces"), "{found:?}");
}

#[test]
fn a_session_that_is_missing_or_another_is_told() {
    let mut seen = good();
    seen.report.as_mut().unwrap().session_id = None;
    assert_eq!(told(&FIRST, &seen), ["no session id"]);
    let mut second = turn(
        vec![output("I remember ", "1"), output("2 prompts", "1")],
        report("I remember 2 prompts"),
    );
    second.report.as_mut().unwrap().session_id = Some("s2".to_owned());
    assert_eq!(told(&SECOND, &second), ["it did not resume: session s2 instead of s1"]);
}

#[test]
fn usage_is_that_of_the_answered_calls() {
    let mut seen = good();
    seen.report.as_mut().unwrap().usage =
        Usage { cached_tokens: None, ..Usage::of_tokens(100, 14, 0) };
    let found = told(&FIRST, &seen);
    let expected = [
        "input_tokens is 100 where the model said 200",
        "cached_tokens is nothing where the model said 80",
        "total_tokens is 114 where the model said 214",
    ];
    assert_eq!(found, expected);
    let mut retried = good();
    retried.calls.push(Call { charge: None, ..call() });
    assert_eq!(told(&FIRST, &retried), [] as [&str; 0], "what was not answered costs nothing");
}

#[test]
fn an_answer_from_elsewhere_is_found() {
    let mut seen = good();
    seen.calls.clear();
    let found = told(&FIRST, &seen);
    assert!(found[0].starts_with("it answered without asking the simulated model"), "{found:?}");
    let mut quoted = good();
    for call in &mut quoted.calls {
        call.prompt = Some(format!("\"{PROMPT}\""));
    }
    let found = told(&FIRST, &quoted);
    assert_eq!(found, [format!("the prompt reached the model changed: \"{PROMPT}\"")]);
}

#[test]
fn unknown_lines_are_shown_once_a_kind_and_are_warnings() {
    let unknown = |text: String| EventBody::Unknown { stream: Stream::Stdout, text };
    let mut changed = events();
    for number in 0..3 {
        changed.push(unknown(format!("{{\"type\":\"a_brand_new_event\",\"number\":{number}}}")));
    }
    changed.push(unknown("x".repeat(500)));
    changed.push(EventBody::Unknown { stream: Stream::Stderr, text: "noise".to_owned() });
    let found = compare(&FIRST, &turn(changed, report("It says: horses.")));
    assert!(found.iter().all(|difference| difference.level == Level::Warning));
    let expected = "unknown line (3 like it): {\"type\":\"a_brand_new_event\",\"number\":0}";
    assert_eq!(found[0].what, expected);
    assert_eq!(found[1].what, format!("unknown line: {}…", "x".repeat(200)));
    assert_eq!(found.len(), 2);
}

#[test]
fn a_failed_turn_says_why_and_nothing_of_its_effects() {
    let fail = |failure: Failure, n_calls: usize| {
        let mut seen = turn(Vec::new(), report(""));
        seen.calls.truncate(n_calls);
        seen.report.as_mut().unwrap().error = Some(failure);
        let found = told(&FIRST, &seen);
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap()
    };
    let exit =
        |stderr| Failure::new(FailureKind::Crashed, "exit code 1").with_exit("Claude", 1, stderr);
    assert_eq!(
        fail(exit("error: unknown option '--verbose'"), 0),
        "a flag was refused: Claude CLI error (exit 1): error: unknown option '--verbose'"
    );
    assert_eq!(
        fail(exit("out of luck"), 0),
        "it ended before it asked the model (crashed): Claude CLI error (exit 1): out of luck"
    );
    assert!(fail(exit("out of luck"), 1).starts_with("the turn failed (crashed)"));
    assert_eq!(
        fail(Failure::timed_out("no answer within 1s"), 0),
        "no end in time and never asked the model (no answer within 1s)"
    );
    assert_eq!(
        fail(Failure::timed_out("no answer within 1s"), 1),
        "no end in time (no answer within 1s)"
    );
}

#[test]
fn what_was_said_on_standard_error_is_told_with_a_failure() {
    let complaint = EventBody::Unknown { stream: Stream::Stderr, text: "no disk".to_owned() };
    let mut seen = turn(vec![complaint], report(""));
    seen.report.as_mut().unwrap().error = Some(Failure::unreadable());
    let found = told(&FIRST, &seen);
    assert!(found[0].ends_with("(on standard error: no disk)"), "{found:?}");
}

#[test]
fn a_turn_without_an_end_is_told() {
    assert_eq!(told(&FIRST, &Seen::default()), ["the turn has no end"]);
}
