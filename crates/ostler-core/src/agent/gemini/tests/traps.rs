//! What the CLI does that would mislead a careless reader, one test a trap.

use std::time::Duration;

use super::*;
use crate::event::StopReason;

const INIT: &str = r#"{"type":"init","session_id":"s-1","model":"auto"}"#;
const HELLO: &str = r#"{"type":"message","role":"assistant","content":"Hello","delta":true}"#;
const RESULT: &str = r#"{"type":"result","status":"success","stats":{"total_tokens":10,"input_tokens":8,"cached":2}}"#;

fn call(id: &str) -> String {
    format!(r#"{{"type":"tool_use","tool_name":"glob","tool_id":"{id}","parameters":{{}}}}"#)
}

fn done(id: &str) -> String {
    format!(r#"{{"type":"tool_result","tool_id":"{id}","status":"success"}}"#)
}

#[test]
fn an_exit_code_of_0_is_no_success_without_a_result() {
    for name in ["h-sigterm-norelaunch", "h-sigint-norelaunch", "p-help-p", "x-big300-json"] {
        let actions = recorded(name);
        assert_eq!(failure_of(&actions).0, "unreadable_output", "{name}");
    }
    let actions = play_new(&format!("{INIT}\n{HELLO}\n"), exit(0, ""));
    assert_eq!(failure_of(&actions), ("unreadable_output", "Failed to parse CLI output"));
}

#[test]
fn an_exit_code_is_an_http_status_of_which_eight_bits_are_left() {
    for (code, kind) in [
        (41, "auth"),
        (42, "invalid_request"),
        (52, "invalid_request"),
        (53, "limit_reached"),
        (55, "denied"),
        (144, "invalid_request"),
        (145, "auth"),
        (147, "auth"),
        (173, "rate_limited"),
        (244, "unavailable"),
        (247, "overloaded"),
        (17, "overloaded"),
        (1, "crashed"),
        (99, "crashed"),
    ] {
        let error = r#"{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: sorry]"}}"#;
        let actions = play_new(&format!("{INIT}\n{error}\n"), exit(code, ""));
        assert_eq!(failure_of(&actions), (kind, "sorry"), "{code}");
    }
}

#[test]
fn errors_of_the_json_form_are_on_standard_error_and_the_answer_is_missing() {
    for (name, kind, message) in [
        ("e-err403-json", "auth", "Permission denied on resource."),
        (
            "e-err503-json-maxAttempts1",
            "overloaded",
            "The model is overloaded. Please try again later.",
        ),
        (
            "e-refused-json-maxAttempts1",
            "unavailable",
            "exception TypeError: fetch failed sending request",
        ),
        ("x-midfail-json", "unavailable", "terminated"),
    ] {
        let actions = recorded(name);
        assert_eq!(failure_of(&actions), (kind, message), "{name}");
        assert_eq!(unknown(&actions), [""; 0], "{name}");
    }
    assert_eq!(failure_of(&recorded("o-nokey-json")).0, "auth");
}

#[test]
fn a_session_whose_first_prompt_failed_cannot_be_resumed_and_is_not_given_back() {
    for name in ["e-err401-json", "e-err401-stream-json", "x-empty-stream-json", "x-safety-json"] {
        assert_eq!(opened(&recorded(name)), None, "{name}");
    }
    assert_eq!(failure_of(&recorded("s-resume-after-401")).0, "session_lost");
    // What was there before is there still.
    let error = r#"{"type":"result","status":"error","error":{"message":"[API Error: no]"}}"#;
    let recording = Recording {
        stdout: format!("{INIT}\n{error}\n").into_bytes(),
        stderr: Vec::new(),
        exit: exit(145, ""),
    };
    let actions = play::play_with(&SPEC, &recording, &options(), &resume("s-1"));
    assert_eq!(opened(&actions), Some("s-1"));
}

#[test]
fn a_session_is_given_back_when_its_first_prompt_was_cancelled() {
    let options = options();
    let mut dialect = (SPEC.dialect)(&launch_of(&options, &Open::New, "hi"));
    let mut out = Vec::new();
    let init = Input::Line { from: Stream::Stdout, bytes: INIT.as_bytes(), cut: false };
    dialect.step(Timestamp::UNIX_EPOCH, init, &mut out);
    assert_eq!(opened(&out), None);
    dialect.step(Timestamp::UNIX_EPOCH, Input::Cancel { turn: crate::agent::ONLY_TURN }, &mut out);
    assert_eq!(opened(&out), Some("s-1"));
    assert!(matches!(out.last(), Some(Action::Stop)));
}

#[test]
fn an_error_that_is_printed_twice_is_told_once() {
    let error = "{\n  \"session_id\": \"s\",\n  \"error\": {\n    \"type\": \"Error\",\n    \"message\": \"no\",\n    \"code\": 401\n  }\n}\n";
    let options = Options { format: Format::Json, ..options() };
    let actions = play(&options, "", exit(145, &format!("{error}[ERROR] {error}")));
    assert_eq!(failure_of(&actions), ("auth", "no"));
    assert_eq!(unknown(&actions), [""; 0]);
}

#[test]
fn a_failing_command_counts_as_a_success_and_its_code_is_not_told() {
    let actions = recorded("d-multi-stream-json");
    let results: Vec<_> = events(&actions)
        .into_iter()
        .filter_map(|event| {
            let EventBody::ToolResult(result) = event else { return None };
            Some((result.is_error, result.exit_code))
        })
        .collect();
    assert_eq!(results, [(false, None), (true, None), (false, None)]);
}

#[test]
fn a_tool_that_was_not_offered_is_a_failed_call_and_no_failed_turn() {
    let actions = recorded("m-plan-shell");
    assert!(end_of(&actions).failure.is_none());
    assert!(events(&actions).into_iter().any(|event| {
        matches!(event, EventBody::ToolResult(result) if result.is_error && result.tool == "run_shell_command")
    }));
}

#[test]
fn an_empty_answer_is_an_empty_answer_although_it_is_called_an_error() {
    for name in ["x-empty-json", "x-empty-stream-json", "x-empty-text"] {
        let actions = recorded(name);
        let end = end_of(&actions);
        assert_eq!((end.text.as_deref(), &end.failure), (Some(""), &None), "{name}");
    }
    assert_eq!(statuses(&recorded("x-empty-stream-json"), "warning").len(), 1);
}

#[test]
fn a_blocked_answer_is_refused_although_the_exit_code_is_0() {
    for name in ["x-safety-json", "x-safety-stream-json"] {
        let actions = recorded(name);
        assert_eq!(failure_of(&actions).0, "refused", "{name}");
        assert_eq!(end_of(&actions).stop_reason, Some(StopReason::Refusal));
    }
}

#[test]
fn an_answer_of_which_the_limit_left_nothing_says_so_and_one_that_was_cut_cannot() {
    let actions = recorded("x-maxtokempty-stream-json");
    assert_eq!(failure_of(&actions).0, "limit_reached");
    assert_eq!(end_of(&actions).stop_reason, Some(StopReason::MaxTokens));
    let actions = recorded("x-maxtok-stream-json");
    assert_eq!(end_of(&actions).stop_reason, Some(StopReason::EndTurn));
}

#[test]
fn a_stream_that_breaks_off_is_unavailable_whichever_way_it_is_told() {
    for name in ["x-midfail-stream-json", "x-nofinish-stream-json"] {
        let actions = recorded(name);
        assert_eq!(failure_of(&actions).0, "unavailable", "{name}");
        assert!(end_of(&actions).text.is_some(), "what there was of it: {name}");
    }
}

#[test]
fn ten_retries_are_given_up_after_the_second_failure() {
    for (name, kind) in [
        ("e-err429-stream-json-default-retries", "rate_limited"),
        ("e-err500-stream-json-default-retries", "unavailable"),
        ("e-refused-stream-json-default-retries", "unavailable"),
    ] {
        let actions = recorded(name);
        assert_eq!(failure_of(&actions).0, kind, "{name}");
        let at = |wanted: fn(&Action) -> bool| actions.iter().position(wanted).unwrap();
        let end = at(|action| matches!(action, Action::EndTurn { .. }));
        assert!(matches!(actions[end + 1], Action::Stop), "{name}");
        assert_eq!(statuses(&actions[..end], "retry").len(), 2, "{name}");
    }
}

#[test]
fn a_long_wait_before_a_retry_is_not_waited_for() {
    let notice = "Attempt 1 failed: Slow down.\nReally.. Retrying after 61234ms...\n";
    let actions = play_new(INIT, exit(0, notice));
    assert_eq!(failure_of(&actions), ("rate_limited", "Slow down."));
    let wait = end_of(&actions).failure.as_ref().unwrap().retry_after;
    assert_eq!(wait, Some(Duration::from_millis(61_234)));
    let short = notice.replace("61234", "5771");
    let actions = play_new(&format!("{INIT}\n{HELLO}\n{RESULT}\n"), exit(0, &short));
    assert_eq!(end_of(&actions).text.as_deref(), Some("Hello"));
    assert_eq!(statuses(&actions, "retry").len(), 1);
}

#[test]
fn a_used_up_quota_and_a_rate_limit_have_the_same_code_and_are_told_apart() {
    assert_eq!(failure_of(&recorded("e-quota-stream-json")).0, "quota");
    let actions = recorded("e-retryinfo-stream-json");
    assert_eq!(failure_of(&actions).0, "rate_limited");
    let wait = end_of(&actions).failure.as_ref().unwrap().retry_after;
    assert_eq!(wait, Some(Duration::from_secs(3)));
}

#[test]
fn a_prompt_that_does_not_fit_is_told_apart_from_a_wrong_request() {
    assert_eq!(failure_of(&recorded("e-context-stream-json")).0, "context_too_long");
    assert_eq!(failure_of(&recorded("e-err404-stream-json")).0, "invalid_request");
}

#[test]
fn a_lost_session_is_lost_and_gives_none() {
    for name in [
        "g-resume-unknown-json",
        "g-resume-unknown-stream-json",
        "g-resume-other-cwd",
        "s-resume-prefix",
        "s-dataloss-resume-after-other",
    ] {
        let actions = recorded(name);
        assert_eq!(failure_of(&actions).0, "session_lost", "{name}");
        assert_eq!(opened(&actions), None, "{name}");
    }
}

#[test]
fn plain_text_hides_the_error_in_an_object_and_it_is_found_all_the_same() {
    let actions = recorded("e-err401-text");
    assert_eq!(failure_of(&actions), ("auth", "stub error 401"));
    assert_eq!(failure_of(&recorded("e-err500-text")).0, "unavailable");
    assert_eq!(failure_of(&recorded("f-maxturns-text")).0, "limit_reached");
}

#[test]
fn a_base_url_beside_a_key_is_refused_with_a_hint() {
    let actions = play_new("", exit(41, "Invalid auth method selected.\n"));
    let (kind, message) = failure_of(&actions);
    assert_eq!(kind, "auth");
    assert!(message.contains("selectedType"), "{message}");
}

#[test]
fn an_untrusted_folder_is_denied() {
    let stderr = "Gemini CLI is not running in a trusted directory. To proceed, use `--skip-trust`";
    assert_eq!(failure_of(&play_new("", exit(55, stderr))).0, "denied");
}

#[test]
fn a_prompt_that_was_cut_is_not_answered() {
    let stderr = "Warning: stdin input truncated to 8388608 bytes.\n";
    let actions = play_new(&format!("{INIT}\n{HELLO}\n{RESULT}\n"), exit(0, stderr));
    assert_eq!(failure_of(&actions).0, "invalid_request");
    assert!(actions.iter().any(|action| matches!(action, Action::Stop)));
}

#[test]
fn a_detected_loop_is_a_success_with_a_warning_and_zeros_unless_nothing_was_said() {
    let warning =
        r#"{"type":"error","severity":"warning","message":"Loop detected, stopping execution"}"#;
    let zeros = r#"{"type":"result","status":"success","stats":{"total_tokens":0,"input_tokens":0,"cached":0}}"#;
    let actions = play_new(&[INIT, HELLO, warning, zeros].join("\n"), exit(0, ""));
    let end = end_of(&actions);
    assert_eq!((end.text.as_deref(), end.usage.total_tokens), (Some("Hello"), None));
    assert_eq!(end.stop_reason, Some(StopReason::Other("loop_detected".into())));
    assert_eq!(statuses(&actions, "warning"), ["Loop detected, stopping execution"]);
    let actions = play_new(&[INIT, warning, zeros].join("\n"), exit(0, ""));
    assert_eq!(failure_of(&actions), ("limit_reached", "Loop detected, stopping execution"));
}

#[test]
fn the_limit_of_model_calls_is_kept_by_counting_them() {
    let round = |n: u32| {
        [
            call(&format!("{n}a")),
            call(&format!("{n}b")),
            done(&format!("{n}b")),
            done(&format!("{n}a")),
        ]
    };
    let lines: Vec<String> = (1..=3).flat_map(round).collect();
    let stdout = format!("{INIT}\n{}\n{HELLO}\n{RESULT}\n", lines.join("\n"));
    for (max_turns, reached) in [(1, true), (3, true), (4, false)] {
        let options = Options { max_turns: Some(max_turns), ..options() };
        let actions = play(&options, &stdout, exit(0, ""));
        if reached {
            assert_eq!(failure_of(&actions).0, "limit_reached", "{max_turns}");
            assert_eq!(end_of(&actions).stop_reason, Some(StopReason::MaxTurns));
            assert!(actions.iter().any(|action| matches!(action, Action::Stop)));
        } else {
            assert_eq!(end_of(&actions).text.as_deref(), Some("Hello"));
        }
    }
}

#[test]
fn the_answer_is_the_text_after_the_last_tool_and_earlier_text_is_another_block() {
    let actions = recorded("c-textool-stream-json");
    assert_eq!(end_of(&actions).text.as_deref(), Some("Done: the tool answered."));
    let blocks: Vec<_> = events(&actions)
        .into_iter()
        .filter_map(|event| {
            let EventBody::Output { block, .. } = event else { return None };
            Some(block.as_str())
        })
        .collect();
    assert_eq!(blocks, ["b1", "b2"]);
}

#[test]
fn thoughts_are_in_the_total_alone_and_count_as_output() {
    for name in ["b-think-json", "b-think-stream-json"] {
        let usage = end_of(&recorded(name)).usage;
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(200), Some(38)), "{name}");
        assert_eq!((usage.cached_tokens, usage.total_tokens), (Some(120), Some(238)), "{name}");
    }
}

#[test]
fn the_model_is_the_one_that_answered_not_the_alias_and_not_the_router() {
    for (name, model) in [
        ("o-model-auto", "gemini-3.8-flash"),
        ("o-model-pro", "gemini-3.1-pro-preview"),
        ("o-model-any", "my-custom-model"),
    ] {
        assert_eq!(end_of(&recorded(name)).model.as_deref(), Some(model), "{name}");
    }
}

#[test]
fn banners_unknown_events_and_lines_that_are_too_long_are_passed_on() {
    let news = r#"{"type":"news","x":1}"#;
    let actions =
        play_new(&format!("Banner\n\n{INIT}\n{news}\n{HELLO}\n{RESULT}\n"), exit(0, "odd\n"));
    assert_eq!(unknown(&actions), ["odd", "Banner", news]);
    assert_eq!(end_of(&actions).text.as_deref(), Some("Hello"));

    let options = options();
    let mut dialect = (SPEC.dialect)(&launch_of(&options, &Open::New, "hi"));
    let mut out = Vec::new();
    for (line, cut) in [(INIT, false), ("{\"type\":\"mess", true), (RESULT, false)] {
        let input = Input::Line { from: Stream::Stdout, bytes: line.as_bytes(), cut };
        dialect.step(Timestamp::UNIX_EPOCH, input, &mut out);
    }
    assert_eq!(failure_of(&out).0, "unreadable_output");
}

#[test]
fn the_noise_of_every_run_is_not_passed_on() {
    for name in ["c-shell-stream-json", "b-think-json", "d-multi-text", "e-err401-stream-json"] {
        assert_eq!(unknown(&recorded(name)), [""; 0], "{name}");
    }
}

#[test]
fn leaving_plan_mode_frees_every_tool_as_was_recorded() {
    let actions = recorded("m-plan-left-by-the-model");
    let written = events(&actions).into_iter().any(|event| {
        matches!(event, EventBody::ToolResult(result)
            if result.tool == "run_shell_command" && !result.is_error)
    });
    assert!(written, "the reason for rules beside the mode");
    let actions = recorded("m-plan-with-rules");
    let freed = events(&actions)
        .into_iter()
        .any(|event| matches!(event, EventBody::ToolResult(result) if !result.is_error));
    assert!(!freed, "{}", play::transcript(&actions));
    assert_eq!(shown(&actions), "done");
}
