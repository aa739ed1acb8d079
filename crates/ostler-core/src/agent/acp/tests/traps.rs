//! What agents do that one would not expect.

use super::*;
use crate::memo::Memo;

const COPILOT: &str = "Copilot";

fn modes(current: &str, ids: &[&str]) -> Value {
    let offers: Vec<Value> = ids.iter().map(|id| json!({ "id": id, "name": id })).collect();
    json!({ "modes": { "currentModeId": current, "availableModes": offers } })
}

fn read_only() -> Options {
    Options::new("/workspace")
}

fn bypassing() -> Options {
    Options { permissions: Permissions::Bypass, ..asking() }
}

#[test]
fn a_refused_login_says_what_to_do() {
    let mut talk = Talk::ready("any", json!({}));
    talk.open_session(ONLY_SESSION, &Open::New, &asking());
    let actions =
        talk.answer_error("session/new", json!({ "code": -32000, "message": "Log in first." }));
    let [Action::OpenFailed { failure, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!(failure.kind.code(), "auth");
    assert_eq!(failure.message, "Log in first. To log in: Key (Set `KEY`)");
}

#[test]
fn a_session_is_resumed_where_that_can_be_and_else_loaded_or_lost() {
    let open = Open::Resume(Box::new(Memo::of_id("own", SESSION)));
    let both = json!({ "loadSession": true, "sessionCapabilities": { "resume": {} } });
    for (can, method) in [
        (both, Some("session/resume")),
        (json!({ "loadSession": true }), Some("session/load")),
        (json!({ "sessionCapabilities": { "close": {} } }), None),
    ] {
        let mut talk = Talk::ready("any", can);
        let actions = talk.open_session(ONLY_SESSION, &open, &asking());
        assert_eq!(methods(&actions).first().map(String::as_str), method);
        let failed = actions.iter().find_map(|action| {
            let Action::OpenFailed { failure, .. } = action else { return None };
            Some(failure.kind.code())
        });
        assert_eq!(failed, method.is_none().then_some("session_lost"));
    }
}

#[test]
fn a_session_that_is_not_found_is_lost() {
    let open = Open::Resume(Box::new(Memo::of_id("own", SESSION)));
    for error in [
        json!({ "code": -32002, "message": "Resource not found: one" }),
        json!({ "code": -32603, "message": "Internal error", "data": { "details": "Session not found: one" } }),
    ] {
        let mut talk = Talk::ready("any", json!({ "loadSession": true }));
        talk.open_session(ONLY_SESSION, &open, &asking());
        let actions = talk.answer_error("session/load", error);
        let [Action::OpenFailed { failure, .. }] = actions.as_slice() else {
            panic!("{actions:?}")
        };
        assert_eq!(failure.kind.code(), "session_lost");
    }
}

#[test]
fn a_history_that_is_told_late_is_not_the_answer() {
    let open = Open::Resume(Box::new(Memo::of_id("own", SESSION)));
    let mut talk = Talk::ready("any", json!({ "loadSession": true }));
    talk.open_session(ONLY_SESSION, &open, &asking());
    talk.answer_ok("session/load", json!({}));
    let actions = talk.prompt(TURN, "hi", &asking());
    assert!(methods(&actions).is_empty(), "the prompt waits");
    talk.text("old words");
    let actions = talk.ring();
    assert_eq!(methods(&actions), ["session/prompt"]);
    talk.text("new words");
    talk.over("end_turn");
    assert_eq!(end_of_turn(&talk.actions, TURN).text.as_deref(), Some("new words"));
}

#[test]
fn the_mode_is_set_before_the_prompt_and_only_when_it_must_be() {
    let mut talk = Talk::open("any", modes("auto", &["plan", "default", "auto"]), &read_only());
    let actions = talk.prompt(TURN, "hi", &read_only());
    assert_eq!(methods(&actions), ["session/set_mode"]);
    assert_eq!(talk.last_request("session/set_mode")["params"]["modeId"], "plan");
    let actions = talk.answer_ok("session/set_mode", json!({}));
    assert_eq!(methods(&actions), ["session/prompt"]);
    talk.over("end_turn");
    let actions = talk.prompt(TurnKey(8), "hi", &read_only());
    assert_eq!(methods(&actions), ["session/prompt"]);
    talk.over("end_turn");
    // The agent has left it by itself.
    talk.tell(json!({ "sessionUpdate": "current_mode_update", "currentModeId": "auto" }));
    let actions = talk.prompt(TurnKey(9), "hi", &read_only());
    assert_eq!(methods(&actions), ["session/set_mode"]);
}

#[test]
fn a_mode_that_the_agent_has_left_is_set_again_however_it_was_told() {
    let option = |current: &str| {
        let offers = json!([{ "value": "plan" }, { "value": "auto" }]);
        json!([{ "id": "mode", "type": "select", "category": "mode", "currentValue": current,
                 "options": offers }])
    };
    let update =
        json!({ "sessionUpdate": "config_option_update", "configOptions": option("auto") });
    let notice = json!({ "v": 1, "sessionId": SESSION, "currentModeId": "auto" });
    for is_own in [false, true] {
        let told = modes("plan", &["plan", "auto"]);
        let mut talk = Talk::open("qwen-code", told, &read_only());
        talk.prompt(TURN, "hi", &read_only());
        let actions = if is_own {
            talk.notify("qwen/notify/session/mode-update", notice.clone())
        } else {
            talk.tell(update.clone())
        };
        assert!(actions.is_empty(), "{actions:?}");
        talk.over("end_turn");
        let actions = talk.prompt(TurnKey(8), "hi", &read_only());
        assert_eq!(methods(&actions), ["session/set_mode"]);
    }
    // The reply tells what is set, too.
    let mut talk = Talk::open("any", json!({ "configOptions": option("auto") }), &read_only());
    talk.prompt(TURN, "hi", &read_only());
    let kept = json!({ "configOptions": option("auto") });
    talk.answer_ok("session/set_config_option", kept);
    assert_eq!(failure_of_turn(&talk.actions, TURN).0, "denied");
}

#[test]
fn without_the_mode_that_looks_or_asks_there_is_no_turn() {
    let no = json!({ "code": -32602, "message": "no" });
    for (options, mode) in [(read_only(), "plan"), (asking(), "default")] {
        for is_answered in [true, false] {
            let told = modes("auto", &["plan", "auto", "default"]);
            let mut talk = Talk::open("any", told, &options);
            talk.prompt(TURN, "hi", &options);
            if is_answered {
                talk.answer_error("session/set_mode", no.clone());
            } else {
                talk.ring();
            }
            let (kind, message) = failure_of_turn(&talk.actions, TURN);
            assert_eq!(kind, "denied");
            assert!(
                message.contains(mode) && message.contains("--permissions bypass"),
                "{message}"
            );
            assert!(!methods(&talk.actions).contains(&"session/prompt".to_owned()));
            // It is asked for once more, whatever comes too late.
            let late = talk.last_request("session/set_mode")["id"].clone();
            let actions = talk.prompt(TurnKey(8), "hi", &options);
            assert_eq!(methods(&actions), ["session/set_mode"]);
            if !is_answered {
                let late = json!({ "jsonrpc": "2.0", "id": late, "error": no });
                assert!(talk.say(&late).is_empty());
            }
            let actions = talk.answer_ok("session/set_mode", json!({}));
            assert_eq!(methods(&actions), ["session/prompt"]);
        }
    }
}

#[test]
fn a_mode_that_was_set_for_a_cancelled_turn_is_not_that_of_the_next() {
    let mut talk = Talk::open("any", modes("plan", &["plan", "auto"]), &bypassing());
    talk.prompt(TURN, "hi", &bypassing());
    talk.cancel(TURN);
    assert!(methods(&talk.prompt(TurnKey(8), "hi", &read_only())).is_empty());
    let actions = talk.answer_ok("session/set_mode", json!({}));
    assert_eq!(methods(&actions), ["session/set_mode"]);
    assert_eq!(talk.last_request("session/set_mode")["params"]["modeId"], "plan");
}

#[test]
fn a_mode_that_is_only_convenient_is_warned_about_and_the_prompt_is_sent() {
    let mut talk = Talk::open("any", modes("plan", &["plan", "auto"]), &bypassing());
    talk.prompt(TURN, "hi", &bypassing());
    let actions = talk.answer_error("session/set_mode", json!({ "code": -32602, "message": "no" }));
    assert_eq!(statuses(&actions, "warning").len(), 1);
    assert_eq!(methods(&actions), ["session/prompt"]);
}

#[test]
fn an_agent_that_is_not_known_to_ask_is_warned_about_once() {
    for told in [json!({}), modes("auto", &["plan", "auto"])] {
        let mut talk = Talk::open("any", told, &asking());
        let actions = talk.prompt(TURN, "hi", &asking());
        assert_eq!(statuses(&actions, "warning").len(), 1);
        assert_eq!(methods(&actions), ["session/prompt"]);
        talk.over("end_turn");
        assert!(statuses(&talk.prompt(TurnKey(8), "hi", &asking()), "warning").is_empty());
    }
    let mut talk = Talk::open("any", modes("ask", &["plan", "ask"]), &asking());
    assert!(statuses(&talk.prompt(TURN, "hi", &asking()), "warning").is_empty());
}

#[test]
fn an_agent_without_a_read_only_mode_is_warned_about_once_and_may_only_read() {
    let mut talk = Talk::open("any", json!({}), &read_only());
    let actions = talk.prompt(TURN, "hi", &read_only());
    assert_eq!(statuses(&actions, "warning").len(), 1);
    let options = json!([{ "optionId": "y", "kind": "allow_once" }, { "optionId": "n", "kind": "reject_once" }]);
    for (kind, expected) in
        [("read", "y"), ("search", "y"), ("execute", "n"), ("edit", "n"), ("switch_mode", "n")]
    {
        let call = json!({ "toolCallId": kind, "title": "x", "kind": kind });
        let actions = talk.asks(json!(kind), options.clone(), call);
        assert_eq!(written(&actions)[0]["result"]["outcome"]["optionId"], expected, "{kind}");
    }
    talk.over("end_turn");
    assert!(statuses(&talk.prompt(TurnKey(8), "hi", &read_only()), "warning").is_empty());
}

#[test]
fn a_model_that_nobody_offers_is_tried_and_an_unknown_one_is_warned_about() {
    let options = Options { model: Some("m".to_owned()), ..bypassing() };
    let mut talk = Talk::open("any", json!({}), &options);
    assert_eq!(methods(&talk.prompt(TURN, "hi", &options)), ["session/set_model"]);
    let error = json!({ "code": -32601, "message": "Method not found" });
    let actions = talk.answer_error("session/set_model", error);
    assert_eq!(statuses(&actions, "warning"), ["the model m was not taken: Method not found"]);
    assert_eq!(methods(&actions), ["session/prompt"]);
}

#[test]
fn what_is_asked_in_vain_is_refused_and_only_said_where_it_is_not_usual() {
    for (name, n_warnings) in [("any", 1), ("qwen-code", 0)] {
        let mut talk = Talk::running(name, &asking());
        let params = json!({ "sessionId": SESSION });
        let actions = talk.request(json!(0), "craft/drainMidTurnQueue", params);
        assert_eq!(written(&actions)[0]["error"]["code"], -32601);
        assert_eq!(statuses(&actions, "warning").len(), n_warnings, "{name}");
    }
}

#[test]
fn copilots_failures_are_failures_although_the_turn_ended_well() {
    let mut talk = Talk::running(COPILOT, &bypassing());
    talk.text("Info: Request failed due to a transient API error. Retrying...");
    talk.text("Error: Authentication failed with provider at http://x (HTTP 401).\n  Check.");
    talk.over("end_turn");
    let (kind, message) = failure_of_turn(&talk.actions, TURN);
    assert_eq!(kind, "auth");
    assert!(message.starts_with("Authentication failed"), "{message}");
    assert_eq!(statuses(&talk.actions, "warning").len(), 1);
}

#[test]
fn a_model_that_says_error_has_answered() {
    let used = json!({ "stopReason": "end_turn", "usage": { "inputTokens": 5, "outputTokens": 1, "totalTokens": 6 } });
    let mut talk = Talk::running(COPILOT, &asking());
    talk.text("Error: that is what the log says.");
    talk.answer_ok("session/prompt", used);
    assert!(end_of_turn(&talk.actions, TURN).failure.is_none());
    // Of another agent nothing is known, and it is taken at its word.
    let mut talk = Talk::running("any", &asking());
    talk.text("Error: that is what the log says.");
    talk.over("end_turn");
    assert!(end_of_turn(&talk.actions, TURN).failure.is_none());
}

#[test]
fn a_turn_without_a_word_is_an_empty_answer_with_a_warning() {
    let mut talk = Talk::running("any", &asking());
    let actions = talk.over("end_turn");
    assert_eq!(end_of_turn(&talk.actions, TURN).text.as_deref(), Some(""));
    assert_eq!(statuses(&actions, "warning").len(), 1);
}

#[test]
fn a_call_is_told_once_it_is_known_what_it_does() {
    let mut talk = Talk::running("qwen-code", &asking());
    let call = |kind: &str, more: Value| {
        let mut update = json!({ "sessionUpdate": kind, "toolCallId": "c", "kind": "execute" });
        update.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        update
    };
    let preparing = json!({ "status": "pending", "title": "Shell", "rawInput": {}, "_meta": { "toolName": "run_shell_command" } });
    assert!(events(&talk.tell(call("tool_call", preparing))).is_empty());
    let running = json!({ "status": "in_progress", "title": "echo hi", "rawInput": { "command": "echo hi" } });
    let actions = talk.tell(call("tool_call_update", running));
    let [EventBody::ToolUse { tool, title, input, .. }] = events(&actions)[..] else {
        panic!("{actions:?}")
    };
    assert_eq!((tool.as_str(), title.as_str()), ("run_shell_command", "echo hi"));
    assert_eq!(input.as_ref().unwrap()["command"], "echo hi");
    let over = json!({ "status": "failed", "rawOutput": { "exitCode": 3, "output": "no" } });
    let actions = talk.tell(call("tool_call_update", over));
    let [EventBody::ToolResult(result)] = events(&actions)[..] else { panic!("{actions:?}") };
    assert_eq!((result.exit_code, result.is_error), (Some(3), true));
}

#[test]
fn a_call_that_goes_on_shows_that_the_turn_is_worked_on() {
    let mut talk = Talk::running("any", &asking());
    let call = |kind: &str| {
        json!({ "sessionUpdate": kind, "toolCallId": "c", "kind": "execute",
                "status": "in_progress", "title": "make", "rawInput": { "command": "make" } })
    };
    talk.tell(call("tool_call"));
    assert!(talk.tell(call("tool_call_update")).is_empty());
    assert!(matches!(talk.actions.last(), Some(Action::Working { turn: TURN })));
}

#[test]
fn an_id_that_is_used_again_is_another_call() {
    let mut talk = Talk::running("any", &asking());
    let call = |kind: &str, status: &str, command: &str| {
        json!({ "sessionUpdate": kind, "toolCallId": "c", "kind": "execute", "status": status,
                "title": command, "rawInput": { "command": command }, "rawOutput": command })
    };
    for command in ["ls", "rm -rf x"] {
        talk.tell(call("tool_call", "in_progress", command));
        talk.tell(call("tool_call_update", "completed", command));
        // It may be told of once more.
        assert!(events(&talk.tell(call("tool_call", "completed", command))).is_empty());
    }
    let options = json!([{ "optionId": "y", "kind": "allow_once" }]);
    let actions = talk.asks(json!(0), options, json!({ "toolCallId": "c", "title": "cat" }));
    assert_eq!(question(&actions).title, "cat");
    let told: Vec<(&str, &str)> = events(&talk.actions)
        .into_iter()
        .filter_map(|event| {
            if let EventBody::ToolResult(result) = event {
                return Some((result.id.as_str(), result.output.as_str()));
            }
            let EventBody::ToolUse { id, title, .. } = event else { return None };
            Some((id.as_str(), title.as_str()))
        })
        .collect();
    let expected =
        [("c", "ls"), ("c", "ls"), ("c.2", "rm -rf x"), ("c.2", "rm -rf x"), ("c.3", "cat")];
    assert_eq!(told, expected);
}

#[test]
fn whoever_is_asked_sees_the_whole_command_whatever_it_is_called() {
    let mut talk = Talk::running(COPILOT, &asking());
    let options = json!([{ "optionId": "y", "kind": "allow_once" }]);
    let mut asked = |id: u64, call: Value| {
        let actions = talk.asks(json!(id), options.clone(), call);
        let asked = actions.iter().find_map(|action| {
            let Action::Ask { permission, .. } = action else { return None };
            Some(permission.title.clone())
        });
        asked.unwrap()
    };
    let command = json!({ "command": "rm -rf build\nls" });
    let call = json!({ "toolCallId": "a", "kind": "execute", "title": "Running command", "rawInput": command });
    assert_eq!(asked(0, call), "rm -rf build\nls");
    let file = json!({ "file_path": "/w/secret.txt" });
    let call = json!({ "toolCallId": "b", "kind": "edit", "title": "Writing to secret.txt", "rawInput": file });
    assert_eq!(asked(1, call), "Writing to secret.txt: /w/secret.txt");
    let call = json!({ "toolCallId": "c", "kind": "read", "title": "Read /w/a", "locations": [{ "path": "/w/a" }] });
    assert_eq!(asked(2, call), "Read /w/a");
}

/// Returns what somebody is asked.
fn question(actions: &[Action]) -> &crate::permission::Permission {
    let asked = actions.iter().find_map(|action| {
        let Action::Ask { permission, .. } = action else { return None };
        Some(&**permission)
    });
    asked.unwrap_or_else(|| panic!("{actions:?}"))
}

#[test]
fn whoever_is_asked_sees_what_was_told_of_the_call_before() {
    let options = json!([{ "optionId": "y", "kind": "allow_once" }, { "optionId": "n", "kind": "reject_once" }]);
    let announced = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "kind": "execute",
        "title": "Shell", "rawInput": { "command": "rm -rf x" }, "_meta": { "toolName": "sh" } });
    let mut talk = Talk::running("any", &asking());
    talk.tell(announced.clone());
    let actions = talk.asks(json!(0), options.clone(), json!({ "toolCallId": "c" }));
    let asked = question(&actions);
    assert_eq!((asked.tool.as_str(), asked.title.as_str()), ("sh", "rm -rf x"));
    assert_eq!(asked.kind, crate::permission::PermissionKind::Command);
    assert_eq!(asked.input, Some(json!({ "command": "rm -rf x" })));
    // A command does not become a look at something by being called one.
    for (kind, expected) in [("execute", "n"), ("read", "y")] {
        let mut talk = Talk::running("any", &read_only());
        let mut announced = announced.clone();
        announced["kind"] = kind.into();
        talk.tell(announced);
        let call = json!({ "toolCallId": "c", "kind": "read", "title": "Read a" });
        let actions = talk.asks(json!(0), options.clone(), call);
        assert_eq!(written(&actions)[0]["result"]["outcome"]["optionId"], expected, "{kind}");
    }
}

#[test]
fn arguments_that_say_nothing_do_not_make_two_calls_the_same() {
    let options = json!([{ "optionId": "y", "kind": "allow_once" }]);
    for (empty, is_announced) in [(json!({}), true), (json!({ "cwd": "/w" }), false)] {
        let mut talk = Talk::running("any", &asking());
        let mut inputs = Vec::new();
        for text in ["rm a", "rm b"] {
            let call = |content: Value| {
                json!({ "sessionUpdate": "tool_call", "toolCallId": text, "kind": "execute",
                        "status": "pending", "title": "Shell", "rawInput": empty,
                        "content": content })
            };
            if is_announced {
                assert!(events(&talk.tell(call(json!([])))).is_empty());
            }
            let content =
                json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
            let actions = talk.asks(json!(text), options.clone(), call(content));
            // What somebody is asked about has been told.
            assert!(matches!(events(&actions)[..], [EventBody::ToolUse { .. }]), "{actions:?}");
            inputs.push(question(&actions).input.clone().unwrap());
        }
        assert!(inputs[0].to_string().contains("rm a"));
        assert_ne!(inputs[0], inputs[1]);
    }
}

#[test]
fn a_turn_that_fails_does_not_forget_what_the_session_has_used() {
    let used = json!({ "stopReason": "end_turn", "usage": { "inputTokens": 5, "outputTokens": 1, "totalTokens": 6 } });
    let mut talk = Talk::running("any", &asking());
    talk.answer_ok("session/prompt", used);
    talk.prompt(TurnKey(8), "hi", &asking());
    talk.answer_error("session/prompt", json!({ "code": -32603, "message": "no" }));
    talk.prompt(TurnKey(9), "hi", &asking());
    talk.exit(&testing::exit(1, ""));
    for turn in [8, 9] {
        let totals = end_of_turn(&talk.actions, TurnKey(turn)).totals;
        assert_eq!(totals.map(|totals| totals.input_tokens), Some(5), "{turn}");
    }
}

#[test]
fn a_session_whose_turn_is_cancelled_before_it_is_open_is_given_up() {
    for is_answered in [true, false] {
        let mut talk = Talk::ready("any", json!({ "sessionCapabilities": { "close": {} } }));
        talk.open_session(ONLY_SESSION, &Open::New, &asking());
        talk.prompt(TURN, "hi", &asking());
        let actions = talk.cancel(TURN);
        let [Action::OpenFailed { failure, .. }, Action::Arm { .. }] = actions.as_slice() else {
            panic!("{actions:?}")
        };
        assert_eq!(failure.kind.code(), "cancelled");
        if is_answered {
            let actions = talk.answer_ok("session/new", json!({ "sessionId": "late" }));
            assert_eq!(methods(&actions), ["session/close"]);
            assert_eq!(talk.last_request("session/close")["params"]["sessionId"], "late");
        }
        // One that never answers is not kept for others.
        let is_stopped = talk.ring().iter().any(|action| matches!(action, Action::Stop));
        assert_eq!(is_stopped, !is_answered);
    }
}

#[test]
fn a_prompt_that_begins_like_a_command_is_none_and_a_system_prompt_goes_before_it() {
    let text = |prompt: &str, options: &Options| super::super::prompt::text(prompt, options, false);
    assert_eq!(text("/allow-all", &asking()), "\u{200b}/allow-all");
    assert_eq!(text(" \n/allow-all", &asking()), "\u{200b} \n/allow-all");
    assert_eq!(text("and/or", &asking()), "and/or");
    let system = Options { system_prompt: Some("Be brief.".into()), ..asking() };
    assert_eq!(text("/x", &system), "Be brief.\n\n/x");
    assert_eq!(super::super::prompt::text("hi", &system, true), "hi");
}

#[test]
fn the_words_of_an_error_say_what_kind_it_is() {
    let kind = |code: i64, message: &str, detail: &str| {
        let data = (!detail.is_empty()).then(|| json!({ "details": detail }));
        let error = crate::protocol::jsonrpc::RpcError { code, message: message.to_owned(), data };
        fault::of_reply(&error).kind.code()
    };
    let internal = "Internal error";
    for (code, message, detail, expected) in [
        (-32603, internal, "401 Incorrect API key provided.", "auth"),
        (-32603, internal, "404 The model `x` does not exist", "invalid_request"),
        (-32603, internal, "400 This model's maximum context length is 200000", "context_too_long"),
        (-32603, internal, "500 The server had an error", "unavailable"),
        (-32603, internal, "Connection error.", "unavailable"),
        (-32603, internal, "You exceeded your current quota (HTTP 429)", "quota"),
        (429, "Rate limit exceeded. Try again later.", "", "rate_limited"),
        (-32000, "whatever", "", "auth"),
        (-32602, "Invalid params", "", "invalid_request"),
        (-32603, "line 500 of the file", "", "unavailable"),
    ] {
        assert_eq!(kind(code, message, detail), expected, "{message} {detail}");
    }
}

#[test]
fn a_session_that_is_not_needed_is_closed_where_the_agent_wants_to_know() {
    for (can, expected) in [(json!({ "sessionCapabilities": { "close": {} } }), 1), (json!({}), 0)]
    {
        let mut talk = Talk::ready("any", can);
        talk.open_session(ONLY_SESSION, &Open::New, &asking());
        talk.answer_ok("session/new", json!({ "sessionId": SESSION }));
        let actions = talk.order(Order::Close { session: ONLY_SESSION });
        assert_eq!(methods(&actions).len(), expected);
    }
}

#[test]
fn updates_of_unknown_sessions_are_nobodys() {
    let mut talk = Talk::running("any", &asking());
    let content = json!({ "type": "text", "text": "not yours" });
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
    let params = json!({ "sessionId": "another", "update": update });
    assert!(talk.notify("session/update", params).is_empty());
    assert!(outputs(&talk.actions).is_empty());
}
