//! How single lines and exits are read, one known trap each.

use super::*;
use crate::event::{StopReason, Usage};

fn start(message: &str) -> String {
    format!(r#"{{"type":"step_start","sessionID":"ses_1","part":{{"messageID":"{message}"}}}}"#)
}

fn text(message: &str, part: &str, text: &str) -> String {
    format!(
        r#"{{"type":"text","sessionID":"ses_1","part":{{"id":"{part}","messageID":"{message}","text":"{text}"}}}}"#
    )
}

fn finish(message: &str, reason: &str) -> String {
    format!(
        r#"{{"type":"step_finish","sessionID":"ses_1","part":{{"messageID":"{message}","reason":"{reason}","tokens":{{"input":200,"output":24,"reasoning":10,"cache":{{"read":1000,"write":5}}}},"cost":0.5}}}}"#
    )
}

fn tool(part: &str, call: &str, state: &str) -> String {
    format!(
        r#"{{"type":"tool_use","sessionID":"ses_1","part":{{"id":"{part}","callID":"{call}","tool":"bash","state":{state}}}}}"#
    )
}

const DONE: &str = r#"{"status":"completed","input":{"command":"ls"},"output":"x","metadata":{"exit":0},"title":"ls"}"#;

fn play_all(lines: &[String], exit: Exit) -> Vec<Action> {
    play_lines(&lines.join("\n"), exit)
}

fn kinds(actions: &[Action]) -> Vec<&'static str> {
    events(actions).into_iter().map(EventBody::kind).collect()
}

#[test]
fn trap_the_answer_is_the_text_of_the_last_message_only() {
    let actions = play_case("c-bash-json");
    assert_eq!(
        end_of(&actions).text.as_deref(),
        Some("Hello from the stub. (after 1 tool rounds)")
    );
    assert_eq!(outputs(&actions)[0], "Let me use a tool.");
    let lines = [
        start("m1"),
        text("m1", "p1", "Let me look."),
        tool("t1", "c1", DONE),
        finish("m1", "tool-calls"),
        start("m2"),
        finish("m2", "stop"),
    ];
    assert_eq!(end_of(&play_all(&lines, exit(0, ""))).text.as_deref(), Some(""));
}

#[test]
fn two_texts_of_one_message_are_both_the_answer() {
    let lines =
        [start("m1"), text("m1", "p1", "One."), text("m1", "p2", "Two."), finish("m1", "stop")];
    let actions = play_all(&lines, exit(0, ""));
    assert_eq!(end_of(&actions).text.as_deref(), Some("One.\nTwo."));
}

#[test]
fn trap_a_shortened_history_and_words_of_the_cli_are_no_answer() {
    let actions = play_case("x-compaction-json");
    assert_eq!(shown(&actions), ["Hello from the stub."]);
    assert_eq!(statuses(&actions, "compacted"), ["## Goal\nStub summary of the conversation."]);
    assert_eq!(end_of(&actions).text.as_deref(), Some("Hello from the stub."));
    let synthetic = text("m0", "p0", "Carry on.").replace("\"id\"", "\"synthetic\":true,\"id\"");
    let lines = [start("m1"), text("m1", "p1", "Hi."), finish("m1", "stop"), synthetic];
    let actions = play_all(&lines, exit(0, ""));
    assert_eq!(end_of(&actions).text.as_deref(), Some("Hi."));
    assert_eq!(outputs(&actions), ["Hi."]);
}

#[test]
fn trap_an_answer_that_breaks_off_is_asked_for_again_for_ever() {
    let actions = play_case("l-broken-off");
    assert_eq!(failure_of(&actions).0, "unavailable");
    assert!(has_stopped(&actions));
    assert_eq!(statuses(&actions, "retry").len(), 2);
    assert_eq!(statuses(&actions, "retracted").len(), 2);
    let broken = |n: u32| [start(&format!("m{n}")), finish(&format!("m{n}"), "unknown")];
    let lines: Vec<String> = (0..2).flat_map(broken).collect();
    let after = [start("m9"), text("m9", "p9", "Hi."), finish("m9", "stop")];
    let actions = play_all(&[lines, after.to_vec()].concat(), exit(0, ""));
    assert_eq!(end_of(&actions).text.as_deref(), Some("Hi."));
}

#[test]
fn tools_without_a_reason_are_no_broken_answer() {
    let round = |n: u32| {
        let (message, part) = (format!("m{n}"), format!("t{n}"));
        [start(&message), tool(&part, "c", DONE), finish(&message, "unknown")]
    };
    let mut lines: Vec<String> = (0..5).flat_map(round).collect();
    lines.extend([start("m9"), text("m9", "p9", "Hi."), finish("m9", "stop")]);
    let actions = play_all(&lines, exit(0, ""));
    assert_eq!(end_of(&actions).text.as_deref(), Some("Hi."));
    assert!(!has_stopped(&actions));
}

#[test]
fn trap_a_refused_permission_ends_the_turn_with_exit_0() {
    let actions = play_case("l-rejected");
    let (kind, message) = failure_of(&actions);
    assert_eq!(kind, "denied");
    assert!(message.contains("external_directory (/etc/*)"), "{message}");
    let rejected = r#"{"status":"error","input":{},"error":"The user rejected permission to use this specific tool call."}"#;
    let lines = [start("m1"), tool("t1", "c1", rejected), finish("m1", "tool-calls")];
    assert_eq!(failure_of(&play_all(&lines, exit(0, ""))).0, "denied");
    // A sub-agent that was refused something does not end the turn.
    assert!(end_of(&play_case("l-subagent-rejected")).failure.is_none());
}

#[test]
fn trap_the_limit_of_model_calls_is_only_advice_to_the_cli_so_they_are_counted() {
    let mut options = Options::new("/w");
    options.max_turns = Some(3);
    let stdout = std::fs::read_to_string(fixture("l-loop")).unwrap();
    let actions = play_with(&options, &stdout, exit(0, ""));
    assert_eq!(failure_of(&actions).0, "limit_reached");
    let end = end_of(&actions);
    assert_eq!(end.stop_reason, Some(StopReason::MaxTurns));
    assert_eq!(end.usage.input_tokens, Some(3600));
    assert!(has_stopped(&actions));

    let last = [start("m1"), text("m1", "p1", "Hi."), finish("m1", "stop")];
    options.max_turns = Some(1);
    let actions = play_with(&options, &last.join("\n"), exit(0, ""));
    assert!(end_of(&actions).failure.is_none());
}

#[test]
fn trap_every_call_of_the_model_has_its_own_figures_which_are_added_up() {
    let lines = [
        start("m1"),
        tool("t1", "c1", DONE),
        finish("m1", "tool-calls"),
        start("m2"),
        finish("m2", "stop"),
    ];
    let actions = play_all(&lines, exit(0, ""));
    let expected = Usage { cost_usd: Some(1.0), ..Usage::of_tokens(2410, 68, 2000) };
    assert_eq!(end_of(&actions).usage, expected);
    assert_eq!(kinds(&actions).iter().filter(|kind| **kind == "usage").count(), 2);
}

#[test]
fn no_cost_is_unknown_because_it_is_also_said_of_unknown_prices() {
    let free = finish("m1", "stop").replace("0.5", "0");
    let actions = play_all(&[start("m1"), free], exit(0, ""));
    assert_eq!(end_of(&actions).usage.cost_usd, None);
}

#[test]
fn trap_a_failing_command_and_an_unknown_tool_are_called_completed() {
    let results: Vec<_> = events(&play_case("l-invalid-tool"))
        .into_iter()
        .filter_map(|event| {
            let EventBody::ToolResult(result) = event else {
                return None;
            };
            Some((result.tool.clone(), result.is_error, result.exit_code))
        })
        .collect();
    assert_eq!(
        results,
        [
            ("nosuch".to_owned(), true, None),
            ("bash".to_owned(), true, Some(3)),
            ("bash".to_owned(), false, Some(0)),
        ]
    );
}

#[test]
fn a_call_is_told_once_and_never_under_the_id_of_another() {
    let old = DONE.replace("\"title\"", "\"time\":{\"compacted\":1},\"title\"");
    let lines = [
        start("m1"),
        tool("t1", "call_0", DONE),
        tool("t1", "call_0", DONE),
        tool("t2", "call_0", DONE),
        tool("t0", "call_9", &old),
        finish("m1", "stop"),
    ];
    let actions = play_all(&lines, exit(0, ""));
    let ids: Vec<_> = events(&actions)
        .into_iter()
        .filter_map(|event| {
            let EventBody::ToolUse { id, .. } = event else {
                return None;
            };
            Some(id.as_str())
        })
        .collect();
    assert_eq!(ids, ["call_0", "call_0-2"]);
}

#[test]
fn a_text_that_comes_twice_is_told_once() {
    let lines =
        [start("m1"), text("m1", "p1", "Hi."), text("m1", "p1", "Hi."), finish("m1", "stop")];
    let actions = play_all(&lines, exit(0, ""));
    assert_eq!(outputs(&actions), ["Hi."]);
    assert_eq!(end_of(&actions).text.as_deref(), Some("Hi."));
}

#[test]
fn half_an_emoji_in_a_tools_output_does_not_cost_the_line() {
    let half = DONE.replace("\"x\"", r#""x\ud83d""#);
    let lines =
        [start("m1"), tool("t1", "c1", &half), text("m1", "p1", "Hi."), finish("m1", "stop")];
    let actions = play_all(&lines, exit(0, ""));
    assert!(!kinds(&actions).contains(&"unknown"), "{}", play::transcript(&actions));
}

#[test]
fn errors_have_their_kind_by_name_status_and_words() {
    for (error, kind) in [
        (r#"{"name":"APIError","data":{"message":"no","statusCode":503}}"#, "overloaded"),
        (r#"{"name":"APIError","data":{"message":"no","statusCode":429}}"#, "rate_limited"),
        (
            r#"{"name":"APIError","data":{"message":"no","statusCode":429,"responseBody":"insufficient_quota"}}"#,
            "quota",
        ),
        (r#"{"name":"APIError","data":{"message":"no","isRetryable":true}}"#, "unavailable"),
        (r#"{"name":"APIError","data":{"message":"no","isRetryable":false}}"#, "invalid_request"),
        (r#"{"name":"ProviderAuthError","data":{"message":"no"}}"#, "auth"),
        (r#"{"name":"ContentFilterError","data":{"message":"no"}}"#, "refused"),
        (r#"{"name":"MessageOutputLengthError","data":{}}"#, "limit_reached"),
        (r#"{"name":"UnknownError","data":{"message":"a word never heard before"}}"#, "crashed"),
        (r#""Too Many Requests""#, "rate_limited"),
        ("5", "crashed"),
    ] {
        let line = format!(r#"{{"type":"error","sessionID":"ses_1","error":{error}}}"#);
        let actions = play_lines(&line, exit(1, ""));
        assert_eq!(failure_of(&actions).0, kind, "{error}");
        assert_eq!(sessions(&actions), ["ses_1"]);
    }
}

#[test]
fn the_time_to_wait_is_read_from_the_providers_headers() {
    for (headers, millis) in [
        (r#"{"retry-after":"7"}"#, Some(7000)),
        (r#"{"retry-after-ms":"250","retry-after":"7"}"#, Some(250)),
        (r#"{"retry-after":"Sun, 15 Nov 2026 21:41:37 GMT"}"#, None),
        (r#"{"retry-after":"-1"}"#, None),
        ("{}", None),
    ] {
        let line = format!(
            r#"{{"type":"error","error":{{"name":"APIError","data":{{"message":"m","statusCode":429,"responseHeaders":{headers}}}}}}}"#
        );
        let actions = play_lines(&line, exit(1, ""));
        let wait = end_of(&actions).failure.as_ref().unwrap().retry_after;
        assert_eq!(wait.map(|wait| wait.as_millis()), millis, "{headers}");
    }
}

#[test]
fn an_error_that_was_got_over_does_not_spoil_a_clean_exit() {
    let error = r#"{"type":"error","sessionID":"ses_1","error":{"name":"ContextOverflowError","data":{"message":"full"}}}"#;
    let lines = [error.to_owned(), start("m1"), text("m1", "p1", "Hi."), finish("m1", "stop")];
    assert!(end_of(&play_all(&lines, exit(0, ""))).failure.is_none());
    assert_eq!(failure_of(&play_all(&lines, exit(1, ""))), ("context_too_long", "full"));
    let lines = [start("m1"), error.to_owned()];
    assert_eq!(failure_of(&play_all(&lines, exit(0, ""))).0, "context_too_long");
}

#[test]
fn an_answer_cut_at_its_length_is_an_answer_that_says_so() {
    let actions = play_case("e-length-json");
    assert_eq!(end_of(&actions).stop_reason, Some(StopReason::MaxTokens));
    assert_eq!(end_of(&actions).text.as_deref(), Some("This answer is cut"));
}

#[test]
fn an_empty_answer_is_an_empty_answer_and_nothing_at_all_cannot_be_read() {
    let actions = play_case("l-refusal");
    assert_eq!(end_of(&actions).text.as_deref(), Some(""));
    for stdout in ["", "what?", &start("m1")] {
        let actions = play_lines(stdout, exit(0, ""));
        assert_eq!(failure_of(&actions), ("unreadable_output", "Failed to parse CLI output"));
    }
}

#[test]
fn the_older_result_alone_is_a_success() {
    let line = r#"{"type":"result","text":" exact \n","session_id":"s-1"}"#;
    let actions = play_lines(line, exit(0, ""));
    assert_eq!(sessions(&actions), ["s-1"]);
    assert_eq!(end_of(&actions).text.as_deref(), Some(" exact \n"));
    assert!(end_of(&actions).failure.is_none());
    assert_eq!(outputs(&actions), [" exact \n"]);
}

#[test]
fn banners_and_unknown_lines_are_told_and_passed_over() {
    let lines = [
        "Welcome!".to_owned(),
        String::new(),
        r#"{"type":"brand_new","sessionID":"ses_1"}"#.to_owned(),
        "[1]".to_owned(),
        start("m1"),
        text("m1", "p1", "Hi."),
        finish("m1", "stop"),
    ];
    let actions = play_all(&lines, exit(0, ""));
    assert_eq!(end_of(&actions).text.as_deref(), Some("Hi."));
    assert_eq!(kinds(&actions)[..3], ["unknown"; 3]);
}

#[test]
fn an_answer_too_long_to_keep_is_not_replaced_by_the_talk_before_it() {
    let mut feed = Feed::new(&Options::new("/w"));
    feed.out(0, &start("m1")).out(0, &text("m1", "p1", "Let me look."));
    let bytes = b"{\"type\":\"text\"";
    let cut = Input::Line { from: Stream::Stdout, bytes, cut: true };
    feed.dialect.step(Timestamp::UNIX_EPOCH, cut, &mut feed.out);
    feed.out(0, &finish("m1", "stop"));
    let gone = exit(0, "");
    feed.dialect.step(Timestamp::UNIX_EPOCH, Input::Exited(&gone), &mut feed.out);
    assert_eq!(failure_of(&feed.out).0, "unreadable_output");
}

#[test]
fn a_lost_session_gives_none() {
    let actions = play_case("l-unknown-session");
    assert_eq!(failure_of(&actions), ("session_lost", "Session not found"));
    assert!(sessions(&actions).is_empty());
}

#[test]
fn death_without_a_word_is_a_crash_that_says_how() {
    let killed = Exit { code: None, signal: Some(9), stderr: String::new() };
    assert_eq!(
        failure_of(&play_lines(&start("m1"), killed)),
        ("crashed", "the process was ended by signal 9")
    );
    assert_eq!(
        failure_of(&play_lines("", exit(7, ""))),
        ("crashed", "the process ended with exit code 7")
    );
}

#[test]
fn a_command_that_was_never_installed_says_what_to_do() {
    let stderr = "Error: opencode-ai's postinstall script was not run.\n\nTo fix this, run it.\n";
    assert_eq!(failure_of(&play_lines("", exit(1, stderr))).0, "spawn_failed");
}

#[test]
fn cancel_stops_the_process() {
    for format in [Format::StreamJson, Format::Text] {
        let mut feed = Feed::new(&bypass(format));
        let turn = crate::agent::ONLY_TURN;
        feed.dialect.step(Timestamp::UNIX_EPOCH, Input::Cancel { turn }, &mut feed.out);
        assert!(matches!(feed.out[..], [Action::Stop]));
    }
}
