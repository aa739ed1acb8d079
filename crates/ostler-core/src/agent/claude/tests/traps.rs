//! What the CLI does that would mislead a careless reader, one test a trap.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::{agent::play, memo::Totals};

#[test]
fn a_provider_error_is_a_failure_although_its_subtype_is_success() {
    for (name, kind) in [
        ("e401-json-retries1", "auth"),
        ("e403-json", "auth"),
        ("e404-json", "invalid_request"),
        ("e413-json", "invalid_request"),
        ("e429-streamjson-retries2", "rate_limited"),
        ("e500-streamjson-retries2", "unavailable"),
        ("e529-json-retries2", "overloaded"),
        ("nokey", "auth"),
        ("partial-credit", "quota"),
        ("partial-context-too-long", "context_too_long"),
        ("partial-connection-refused", "unavailable"),
        ("partial-refusal", "refused"),
        ("partial-max-turns", "limit_reached"),
        ("budget-json", "limit_reached"),
    ] {
        let actions = play::play(&SPEC, &recording(&format!("2.1.325/{name}")));
        assert_eq!(failure_kind(&actions), Some(kind), "{name}");
        assert_eq!(end_of(&actions).text, None, "{name}");
    }
}

#[test]
fn the_words_of_a_provider_error_are_not_shown_as_an_answer() {
    let actions = play::play(&SPEC, &recording("2.1.325/e401-streamjson-retries1"));
    assert_eq!(shown(&actions), "");
    let failure = end_of(&actions).failure.as_ref().unwrap();
    assert_eq!(failure.message, "Failed to authenticate. API Error: 401 stub says 401");
}

#[test]
fn a_retry_notice_does_not_end_the_turn() {
    let actions = play::play(&SPEC, &recording("2.1.325/once500-streamjson"));
    assert_eq!(failure_kind(&actions), None);
    let is_retry = |event: &&EventBody| matches!(event, EventBody::Status(Status::Retry { .. }));
    assert_eq!(events(&actions).into_iter().filter(is_retry).count(), 1);
}

#[test]
fn a_lost_session_gives_no_session_although_its_result_names_one() {
    for name in [
        "2.1.325/resume-unknown-streamjson",
        "2.1.325/resume-unknown-json",
        "2.1.325/resume-notuuid-json",
        "2.1.197/unknown",
        "2.1.197/resume-other-cwd",
    ] {
        let actions = play::play_with(
            &SPEC,
            &recording(name),
            &options(),
            &resume("11111111-2222-4333-8444-555555555555"),
        );
        assert_eq!(failure_kind(&actions), Some("session_lost"), "{name}");
        assert!(sessions(&actions).is_empty(), "{name}");
    }
}

#[test]
fn a_failed_turn_still_tells_its_session() {
    for name in ["e401-json-retries1", "e500-streamjson-retries2"] {
        let actions = play::play(&SPEC, &recording(&format!("2.1.325/{name}")));
        assert_eq!(sessions(&actions).len(), 1, "{name}");
    }
}

#[test]
fn root_with_every_permission_is_denied_with_a_hint() {
    for name in ["root-nosandbox-stream", "startup-failure-result"] {
        let actions = play::play(&SPEC, &recording(&format!("2.1.325/{name}")));
        assert_eq!(failure_kind(&actions), Some("denied"), "{name}");
        let failure = end_of(&actions).failure.as_ref().unwrap();
        assert!(failure.message.contains("IS_SANDBOX=1"), "{name}");
        assert!(sessions(&actions).is_empty(), "{name}");
    }
}

#[test]
fn text_that_came_in_pieces_is_not_told_again() {
    let actions = play::play(&SPEC, &recording("2.1.325/text-streamjson-partial"));
    assert_eq!(shown(&actions), "Hello from the stub.");
}

#[test]
fn text_of_a_broken_connection_is_withdrawn() {
    for name in ["cut-streamjson-partial", "midError-streamjson-partial"] {
        let actions = play::play(&SPEC, &recording(&format!("2.1.325/{name}")));
        assert_eq!(shown(&actions), "Hello from the stub.", "{name}");
    }
}

#[test]
fn text_of_a_broken_connection_is_withdrawn_also_when_the_cli_does_not_say_so() {
    let all = recording("2.1.325/cut-streamjson-partial").stdout;
    let text = String::from_utf8(all).unwrap();
    let silent: Vec<&str> =
        text.lines().filter(|line| !line.contains("abandoned_blocks")).collect();
    let actions = read_text(&silent.join("\n"));
    assert_eq!(shown(&actions), "Hello from the stub.");
}

#[test]
fn messages_that_share_an_id_are_told_apart() {
    let all = recording("2.1.325/partial-tool").stdout;
    let text = String::from_utf8(all).unwrap();
    let same = text.replace("msg_0002", "msg_0001");
    assert_eq!(shown(&read_text(&same)), "Let me look.Hello from the stub.");
}

#[test]
fn cost_and_usage_are_those_of_this_turn_although_the_totals_grow() {
    let resumed = |name: &str, totals: Option<Totals>| {
        let memo = Memo { totals, ..Memo::of_id("claude", "an-id") };
        let open = Open::Resume(Box::new(memo));
        let actions = play::play_with(&SPEC, &recording(name), &options(), &open);
        end_of(&actions).clone()
    };
    let spent = |cost_usd| Some(Totals { cost_usd, ..Totals::default() });
    let streamed = resumed("2.1.325/usage-resume-1", None);
    assert_eq!(streamed.usage.cost_usd, Some(0.000_646_000_000_000_000_1));
    assert_eq!(streamed.usage.input_tokens, Some(150));
    assert_eq!(streamed.totals.unwrap().cost_usd, 0.001_292_000_000_000_000_2);
    let known = resumed("2.1.325/concurrent-resume-1", spent(0.000_646));
    assert_eq!(known.usage.cost_usd, Some(0.000_646));
    let unknown = resumed("2.1.325/concurrent-resume-1", None);
    assert_eq!(unknown.usage.cost_usd, None);
    let reset = resumed("2.1.325/concurrent-resume-1", spent(9.0));
    assert_eq!(reset.usage.cost_usd, None);
    assert_eq!(reset.totals.unwrap().cost_usd, 9.0);
    let old_version = resumed("2.1.197/text-json", spent(9.0));
    assert_eq!(old_version.usage.cost_usd, Some(0.000_815_000_000_000_000_1));
}

#[test]
fn a_background_task_does_not_keep_the_turn_open_or_answer_in_its_place() {
    for name in ["2.1.325/bgshort-streamjson", "2.1.197/bgshort"] {
        let actions = play::play(&SPEC, &recording(name));
        assert_eq!(end_of(&actions).text.as_deref(), Some("All done."), "{name}");
        let after =
            actions.iter().skip_while(|action| !matches!(action, Action::EndTurn { .. })).skip(1);
        assert_eq!(after.count(), 0, "{name}");
    }
}

#[test]
fn an_unasked_result_counts_only_when_no_other_comes() {
    let unasked = json!({"type": "result", "is_error": false, "result": "late", "num_turns": 1,
        "session_id": "s", "origin": {"kind": "task-notification"}})
    .to_string();
    let asked = json!({"type": "result", "is_error": false, "result": "mine", "num_turns": 1,
        "session_id": "s"})
    .to_string();
    let both = read_text(&format!("{unasked}\n{asked}"));
    assert_eq!(end_of(&both).text.as_deref(), Some("mine"));
    assert_eq!(end_of(&read_text(&unasked)).text.as_deref(), Some("late"));
}

#[test]
fn an_interrupt_is_cancelled_although_the_exit_code_is_0() {
    for name in ["sigint-slow-streamjson", "sigint-bash-streamjson", "sigint-slow-json"] {
        let actions = play::play(&SPEC, &recording(&format!("2.1.325/{name}")));
        assert_eq!(failure_kind(&actions), Some("cancelled"), "{name}");
    }
}

#[test]
fn a_wait_that_the_provider_asks_for_surfaces_at_once_with_its_length() {
    let actions = play::play(&SPEC, &recording("2.1.325/partial-429-retry-after"));
    let failure = end_of(&actions).failure.as_ref().unwrap();
    assert_eq!(failure.kind.code(), "rate_limited");
    assert_eq!(failure.retry_after, Some(Duration::from_secs(60)));
    assert!(matches!(actions.last(), Some(Action::Stop)));
}

#[test]
fn an_operator_who_sets_the_retries_gets_all_of_them() {
    let options =
        Options { env: vec![("CLAUDE_CODE_MAX_RETRIES".into(), Some("10".into()))], ..options() };
    let recording = recording("2.1.325/partial-429-retry-after");
    let actions = play::play_with(&SPEC, &recording, &options, &Open::New);
    assert_eq!(failure_kind(&actions), Some("crashed"));
    assert!(!actions.iter().any(|action| matches!(action, Action::Stop)));
}

#[test]
fn a_used_up_subscription_tells_when_it_is_renewed() {
    let limit = json!({"type": "rate_limit_event",
        "rate_limit_info": {"status": "rejected", "resetsAt": 3600, "rateLimitType": "five_hour"}});
    let result = json!({"type": "result", "is_error": true, "api_error_status": 429,
        "result": "You've hit your limit", "num_turns": 1, "session_id": "s"});
    let actions = read_text(&format!("{limit}\n{result}"));
    let failure = end_of(&actions).failure.as_ref().unwrap();
    assert_eq!(failure.retry_after, Some(Duration::from_secs(3600)));
    let old = json!({"type": "result", "is_error": true, "num_turns": 1,
        "result": "Claude AI usage limit reached|7200"});
    let actions = read_text(&old.to_string());
    let failure = end_of(&actions).failure.as_ref().unwrap();
    assert_eq!(failure.kind.code(), "rate_limited");
    assert_eq!(failure.retry_after, Some(Duration::from_secs(7200)));
}

#[test]
fn an_array_an_object_and_lines_say_the_same() {
    for name in ["text-json", "text-json-verbose", "text-streamjson-partial", "text-text"] {
        let format = match name {
            "text-text" => Format::Text,
            _ => Format::Json,
        };
        let recording = recording(&format!("2.1.325/{name}"));
        let actions = play::play_with(&SPEC, &recording, &with_format(format), &Open::New);
        assert_eq!(end_of(&actions).text.as_deref(), Some("Hello from the stub."), "{name}");
    }
}

#[test]
fn an_empty_answer_is_an_empty_answer() {
    let actions = play::play(&SPEC, &recording("2.1.325/empty-answer-streamjson"));
    assert_eq!(failure_kind(&actions), None);
    assert_eq!(end_of(&actions).text.as_deref(), Some(""));
}

#[test]
fn the_text_keeps_its_white_space() {
    let result =
        json!({"type": "result", "is_error": false, "result": " \n a \n\n", "num_turns": 1});
    assert_eq!(end_of(&read_text(&result.to_string())).text.as_deref(), Some(" \n a \n\n"));
    let options = with_format(Format::Text);
    let lines: [&[u8]; 3] = [b"  a ", b"", b" b"];
    let actions = read(&options, &Open::New, lines, &exit(0, ""));
    assert_eq!(end_of(&actions).text.as_deref(), Some("  a \n\n b"));
    assert_eq!(shown(&actions), "  a \n\n b");
}

#[test]
fn output_that_cannot_be_read_is_an_error_and_every_line_of_it_is_passed_on() {
    let actions = read_text("banner\n\nnot json {\n{\"type\":\"assist");
    let failure = end_of(&actions).failure.as_ref().unwrap();
    assert_eq!(failure.response_text(), "Failed to parse CLI output");
    let mut texts = Vec::new();
    for event in events(&actions) {
        if let EventBody::Unknown { text, .. } = event {
            texts.push(text.as_str());
        }
    }
    assert_eq!(texts, ["banner", "not json {", "{\"type\":\"assist"]);
}

#[test]
fn a_line_that_was_too_long_is_passed_on_by_its_start() {
    let (options, open) = (options(), Open::New);
    let mut dialect = (SPEC.dialect)(&a_launch(&options, &open, "hi"));
    let mut out = Vec::new();
    let input = Input::Line { from: Stream::Stdout, bytes: b"{\"type\":\"result\"}", cut: true };
    dialect.step(Timestamp::UNIX_EPOCH, input, &mut out);
    assert_eq!(play::transcript(&out), "unknown Stdout \"{\\\"type\\\":\\\"result\\\"}\"\n");
}

#[test]
fn plain_text_of_which_a_line_was_lost_is_no_answer() {
    let (options, open) = (with_format(Format::Text), resume("an-id"));
    let mut dialect = (SPEC.dialect)(&a_launch(&options, &open, "hi"));
    let mut out = Vec::new();
    let now = Timestamp::UNIX_EPOCH;
    dialect.step(now, stdout_line(b"the start"), &mut out);
    let lost = Input::Line { from: Stream::Stdout, bytes: b"very lo", cut: true };
    dialect.step(now, lost, &mut out);
    dialect.step(now, Input::Exited(&exit(0, "")), &mut out);
    assert_eq!(failure_kind(&out), Some("unreadable_output"));
    assert_eq!(end_of(&out).text, None);
    assert_eq!(sessions(&out), ["an-id"]);
}

#[test]
fn the_final_word_ends_the_turn_before_the_process_ends() {
    let (options, open) = (options(), Open::New);
    let mut dialect = (SPEC.dialect)(&a_launch(&options, &open, "hi"));
    let mut out = Vec::new();
    let line = json!({"type": "result", "is_error": false, "result": "x", "session_id": "s"});
    let line = line.to_string();
    let input = Input::Line { from: Stream::Stdout, bytes: line.as_bytes(), cut: false };
    dialect.step(Timestamp::UNIX_EPOCH, input, &mut out);
    assert_eq!(end_of(&out).text.as_deref(), Some("x"));
    dialect.step(Timestamp::UNIX_EPOCH, Input::Exited(&exit(0, "")), &mut out);
    assert_eq!(play::n_ends(&out), 1);
}

#[test]
fn cancel_stops_the_process() {
    for format in [Format::StreamJson, Format::Text] {
        let (options, open) = (with_format(format), Open::New);
        let mut dialect = (SPEC.dialect)(&a_launch(&options, &open, "hi"));
        let mut out = Vec::new();
        let turn = crate::agent::ONLY_TURN;
        dialect.step(Timestamp::UNIX_EPOCH, Input::Cancel { turn }, &mut out);
        assert!(matches!(out[..], [Action::Stop]));
    }
}

#[test]
fn a_session_that_goes_on_under_another_id_is_told_with_a_warning() {
    let init = json!({"type": "system", "subtype": "init", "session_id": "new"}).to_string();
    let lines = [init.as_bytes()];
    let actions = read(&options(), &resume("old"), lines, &exit(0, ""));
    assert_eq!(sessions(&actions), ["new"]);
    let warning = events(&actions)[0];
    assert!(matches!(warning, EventBody::Status(Status::Warning { .. })), "{warning:?}");
}

#[test]
fn a_cleared_conversation_goes_on_in_a_session_of_its_own() {
    let actions = read_text(
        "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"a\"}\n\
         {\"type\":\"conversation_reset\",\"new_conversation_id\":\"b\"}\n\
         {\"type\":\"result\",\"is_error\":false,\"result\":\"\",\"session_id\":\"b\"}",
    );
    assert_eq!(sessions(&actions), ["a", "b"]);
}

#[test]
fn what_a_sub_agent_says_carries_its_call() {
    let actions = play::play(&SPEC, &recording("2.1.325/agent-streamjson"));
    let mut parents = Vec::new();
    for action in &actions {
        if let Action::Emit {
            parent: Some(parent), event: EventBody::Output { text, .. }, ..
        } = action
        {
            parents.push((parent.as_str(), text.as_str()));
        }
    }
    assert_eq!(parents, [("toolu_stub01230", "Hello from the stub.")]);
}

#[test]
fn standard_error_names_the_failure_of_a_start() {
    let stderr = "Warning: something\nError: Session ID x is already in use.\nat main";
    let actions = read(&options(), &Open::New, [], &exit(1, stderr));
    let failure = end_of(&actions).failure.as_ref().unwrap();
    assert_eq!(failure.kind.code(), "invalid_request");
    assert_eq!(failure.message, "Error: Session ID x is already in use.");
}

#[test]
fn standard_output_classifies_a_failure_that_standard_error_does_not_name() {
    let options = with_format(Format::Text);
    let lines: [&[u8]; 1] = ["Not logged in · Please run /login".as_bytes()];
    let actions = read(&options, &Open::New, lines, &exit(1, "some noise"));
    assert_eq!(failure_kind(&actions), Some("auth"));
    let lines: [&[u8]; 1] = [b"API Error: 401 Failed to authenticate."];
    let actions = read(&super::options(), &Open::New, lines, &exit(1, ""));
    assert_eq!(failure_kind(&actions), Some("auth"));
}

#[test]
fn plain_text_tells_the_session_only_when_it_was_resumed() {
    let options = with_format(Format::Text);
    let lines: [&[u8]; 1] = [b"hi"];
    let fresh = read(&options, &Open::New, lines, &exit(0, ""));
    assert!(sessions(&fresh).is_empty());
    let resumed = read(&options, &resume("an-id"), lines, &exit(0, ""));
    assert_eq!(sessions(&resumed), ["an-id"]);
}

#[test]
fn the_meta_of_a_turn_names_the_version() {
    let actions = play::play(&SPEC, &recording("2.1.325/text-streamjson-partial"));
    let meta = &end_of(&actions).meta;
    assert_eq!(meta["version"], "2.1.325");
    assert_eq!(meta["num_turns"], 1);
    assert_eq!(meta["terminal_reason"], "completed");
}
