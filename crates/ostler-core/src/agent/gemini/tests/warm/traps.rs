//! The known traps, one test each.

use super::*;
use crate::{
    agent::{ONLY_SESSION, Order, SessionKey, testing::thought_blocks},
    permission::{PermissionKind, Ruling},
    protocol::testing::methods,
    request::PromptCommands,
};

fn allow() -> Ruling {
    Ruling::Allow { text: None }
}

fn deny() -> Ruling {
    Ruling::Deny { why: "not now".to_owned() }
}

fn commands() -> Value {
    json!({ "sessionUpdate": "available_commands_update", "availableCommands": [] })
}

#[test]
fn a_session_is_not_loaded_by_the_id_that_names_its_file() {
    let talk = Talk::loaded(&options());
    assert_eq!(talk.played.session, format!(" {SESSION}"));
    assert_eq!(sessions(&talk.actions), [SESSION], "the caller knows nothing of that");
}

#[test]
fn history_that_comes_after_the_reply_is_not_an_answer() {
    let mut talk = Talk::loaded(&options());
    assert_eq!(methods(&talk.prompt(TURN, "two", &options())), Vec::<String>::new());
    talk.text("said long ago");
    assert_eq!(methods(&talk.tell(commands())), ["session/prompt"]);
    talk.text("new");
    talk.over("end_turn");
    assert_eq!(shown(&talk.actions), "new");
    assert_eq!(end_of_turn(&talk.actions, TURN).text.as_deref(), Some("new"));
}

#[test]
fn a_prompt_does_not_wait_for_ever_for_the_end_of_the_history() {
    let mut talk = Talk::loaded(&options());
    talk.prompt(TURN, "two", &options());
    assert_eq!(methods(&talk.ring()), ["session/prompt"]);
    assert!(talk.tell(commands()).is_empty(), "it is sent once");
}

#[test]
fn an_unknown_session_is_lost() {
    let mut talk = Talk::ready();
    talk.open_session(ONLY_SESSION, &resume(SESSION), &options());
    let details = format!("Invalid session identifier \"{SESSION}\".\n  Searched for sessions in");
    let error =
        json!({ "code": -32603, "message": "Internal error", "data": { "details": details } });
    let actions = talk.answer_error("session/load", error);
    let [Action::OpenFailed { failure, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!(failure.kind.code(), "session_lost");
    assert!(failure.message.starts_with("Invalid session identifier"), "{}", failure.message);
}

#[test]
fn the_code_of_an_error_is_the_providers_status() {
    let cases = [
        (429, "Resource has been exhausted (e.g. check quota).", "rate_limited"),
        (429, "You have exhausted your daily quota on this model.", "quota"),
        (500, "terminated", "unavailable"),
        (503, "The model is overloaded.", "overloaded"),
        (401, "no", "auth"),
        (400, r#"{"error":{"code":400,"message":"API key not valid.","status":"X"}}"#, "auth"),
        (400, r#"{"error":{"code":400,"message":"Bad."}}"#, "invalid_request"),
        (
            400,
            r#"{"error":{"code":400,"message":"The input token count (2) exceeds the maximum number of tokens allowed (1)."}}"#,
            "context_too_long",
        ),
        (-32602, "Session not found: x", "session_lost"),
        (-32000, "Authentication required.", "auth"),
        (-32603, "Internal error", "invalid_request"),
    ];
    for (code, message, kind) in cases {
        let mut talk = Talk::running(&options());
        talk.answer_error("session/prompt", json!({ "code": code, "message": message }));
        assert_eq!(failure(&talk.actions).0, kind, "{code} {message}");
    }
}

#[test]
fn what_the_cli_says_of_its_mode_is_not_the_answer() {
    let mut talk = Talk::running(&options());
    talk.text("[MODE_UPDATE] plan");
    talk.text("[MODE] is a word");
    talk.over("end_turn");
    assert_eq!(shown(&talk.actions), "[MODE] is a word");
}

#[test]
fn the_name_of_a_tool_stands_in_its_id_and_the_answer_after_it() {
    let mut talk = Talk::running(&options());
    talk.text("First.");
    let id = "read_file__read_file_1794770241089_0";
    let call = |kind: &str, status: &str| json!({ "sessionUpdate": kind, "toolCallId": id, "status": status, "title": "a.txt", "kind": "read", "content": [], "locations": [{ "path": "/w/a.txt" }] });
    talk.tell(call("tool_call", "in_progress"));
    talk.tell(call("tool_call_update", "completed"));
    talk.tell(call("tool_call_update", "completed"));
    talk.text("Last.");
    talk.over("end_turn");
    let told = events(&talk.actions);
    let [_, EventBody::ToolUse { tool, title, .. }, EventBody::ToolResult(result), _] =
        told.as_slice()
    else {
        panic!("{told:?}")
    };
    assert_eq!((tool.as_str(), title.as_str()), ("read_file", "a.txt"));
    assert_eq!((result.tool.as_str(), result.is_error), ("read_file", false));
    assert_eq!(outputs(&talk.actions), [("b1", "First."), ("b2", "Last.")]);
    assert_eq!(end_of_turn(&talk.actions, TURN).text.as_deref(), Some("Last."));
}

#[test]
fn a_call_that_is_asked_for_is_told_before_the_question_and_ends_when_denied() {
    let mut talk = Talk::running(&asking());
    let asked = talk.asks_to_run(0, "touch a\nls");
    let [
        Action::Emit { event: EventBody::ToolUse { title, .. }, .. },
        Action::Ask { permission, .. },
    ] = asked.as_slice()
    else {
        panic!("{asked:?}")
    };
    assert_eq!(title, "touch a …");
    assert_eq!((permission.request.as_str(), permission.kind), ("0", PermissionKind::Command));
    assert_eq!(
        (permission.tool.as_str(), permission.title.as_str()),
        ("run_shell_command", "touch a\nls")
    );
    assert_eq!(permission.input, Some(json!({ "command": "touch a\nls" })));
    let denied = talk.decide(TURN, "0", &deny());
    assert_eq!(written(&denied)[0]["result"]["outcome"]["optionId"], "cancel");
    let [_, Action::Emit { event: EventBody::ToolResult(result), .. }] = denied.as_slice() else {
        panic!("{denied:?}")
    };
    assert_eq!((result.is_error, result.output.as_str()), (true, "not now"));
}

#[test]
fn the_agent_is_told_once_and_never_always() {
    let mut talk = Talk::running(&asking());
    talk.asks_to_run(0, "touch a");
    let allowed = talk.decide(TURN, "0", &allow());
    assert_eq!(written(&allowed)[0]["result"]["outcome"]["optionId"], "proceed_once");
    assert!(talk.decide(TURN, "0", &allow()).is_empty(), "once");
}

#[test]
fn what_is_asked_all_the_same_is_decided_by_the_permissions() {
    for (permissions, option) in
        [(Permissions::Bypass, "proceed_once"), (Permissions::ReadOnly, "cancel")]
    {
        let mut talk = Talk::running(&Options { permissions, ..options() });
        let actions = talk.asks_to_run(0, "touch a");
        assert_eq!(written(&actions)[0]["result"]["outcome"]["optionId"], option);
        assert!(!actions.iter().any(|action| matches!(action, Action::Ask { .. })));
    }
}

#[test]
fn cancelling_answers_what_is_asked_first() {
    let mut talk = Talk::running(&asking());
    talk.asks_to_run(0, "touch a");
    let written = written(&talk.cancel(TURN));
    assert_eq!(written[0]["result"]["outcome"]["outcome"], "cancelled");
    assert_eq!(written[1]["method"], "session/cancel");
    let late = talk.asks_to_run(1, "touch b");
    assert_eq!(testing::written(&late)[0]["result"]["outcome"]["outcome"], "cancelled");
    talk.over("cancelled");
    assert_eq!(failure(&talk.actions).0, "cancelled");
}

#[test]
fn a_second_prompt_waits_for_the_reply_to_the_first() {
    let mut talk = Talk::running(&options());
    talk.stderr("Attempt 2 failed with status 500. Retrying with backoff... Error: no");
    assert_eq!(methods(&talk.actions).last().unwrap(), "session/cancel");
    talk.ring();
    assert_eq!(failure(&talk.actions).0, "unavailable");
    let turn = TurnKey(8);
    let next = talk.prompt(turn, "again", &options());
    assert!(next.is_empty(), "it would end the first, which has not ended");
    talk.text("late");
    assert_eq!(methods(&talk.over("cancelled")), ["session/prompt"]);
    assert_eq!(shown(&talk.actions), "");
    talk.over("end_turn");
    assert!(end_of_turn(&talk.actions, turn).failure.is_none());
}

#[test]
fn a_prompt_does_not_wait_for_ever_for_a_turn_that_was_given_up() {
    let mut talk = Talk::running(&options());
    talk.stderr("Attempt 2 failed with status 500. Retrying with backoff... Error: no");
    talk.ring();
    talk.prompt(TurnKey(8), "again", &options());
    let actions = talk.ring();
    let [Action::OpenFailed { failure, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!(failure.kind.code(), "session_busy");
}

#[test]
fn the_model_is_chosen_before_the_prompt_and_only_when_it_changes() {
    let mut talk = Talk::open(&options());
    let pro = Options { model: Some("pro".to_owned()), ..options() };
    assert_eq!(methods(&talk.prompt(TURN, "one", &pro)), ["session/set_model"]);
    assert_eq!(methods(&talk.answer_ok("session/set_model", json!({}))), ["session/prompt"]);
    talk.over("end_turn");
    assert_eq!(methods(&talk.prompt(TurnKey(8), "two", &pro)), ["session/prompt"]);
}

#[test]
fn the_system_prompt_goes_before_the_first_prompt_that_is_answered() {
    let system = Options { system_prompt: Some("Be brief.".to_owned()), ..options() };
    let sent =
        |talk: &Talk| talk.last_request("session/prompt")["params"]["prompt"][0]["text"].clone();
    let mut talk = Talk::open(&system);
    talk.prompt(TURN, "one", &system);
    assert_eq!(sent(&talk), "Be brief.\n\none");
    talk.answer_error("session/prompt", json!({ "code": 401, "message": "no" }));
    talk.prompt(TURN, "two", &system);
    assert_eq!(sent(&talk), "Be brief.\n\ntwo");
    talk.text("Yes.");
    talk.over("end_turn");
    talk.prompt(TURN, "three", &system);
    assert_eq!(sent(&talk), "three");
}

#[test]
fn nothing_in_a_prompt_is_a_command_unless_that_is_wanted() {
    let sent = |options: &Options, prompt: &str| {
        let mut talk = Talk::open(options);
        talk.prompt(TURN, prompt, options);
        let text = talk.last_request("session/prompt")["params"]["prompt"][0]["text"].take();
        text.as_str().unwrap().to_owned()
    };
    for prompt in ["/help", "$help", " \n\u{feff}/help"] {
        assert_eq!(sent(&options(), prompt), format!("\u{200b}{prompt}"));
        let wanted = Options { prompt_commands: PromptCommands::On, ..options() };
        assert_eq!(sent(&wanted, prompt), prompt);
    }
    for prompt in ["a /help", "@/etc/hostname", "-x", "#note"] {
        assert_eq!(sent(&options(), prompt), prompt);
    }
}

#[test]
fn requests_that_nobody_here_can_answer_get_an_error_at_once() {
    let mut talk = Talk::running(&options());
    let params = json!({ "sessionId": SESSION, "path": "/etc/hostname" });
    let actions = talk.request(json!(0), "fs/read_text_file", params);
    let reply = written(&actions).remove(0);
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(0), &json!(-32601)));
    assert_eq!(statuses(&actions, "warning").len(), 1);
}

#[test]
fn two_sessions_do_not_hear_each_other() {
    let mut talk = Talk::running(&options());
    let (session, turn, options) = (SessionKey(1), TurnKey(8), options());
    talk.open_session(session, &Open::New, &options);
    talk.answer_ok("session/new", json!({ "sessionId": "other" }));
    talk.order(Order::Prompt { session, turn, prompt: "hi", options: &options });
    talk.text("mine");
    talk.played.session = "other".to_owned();
    talk.text("theirs");
    talk.over("end_turn");
    assert_eq!(end_of_turn(&talk.actions, turn).text.as_deref(), Some("theirs"));
    assert!(!talk.actions.iter().any(|a| matches!(a, Action::EndTurn { turn: TURN, .. })));
}

#[test]
fn retries_are_told_and_other_noise_is_not() {
    let mut talk = Talk::running(&options());
    let lines = [
        "Ripgrep is not available. Falling back to GrepTool.",
        "Error handling request {",
        "  jsonrpc: '2.0',",
        "} { code: 500, message: 'terminated', data: undefined }",
    ];
    assert!(lines.iter().all(|line| talk.stderr(line).is_empty()));
    let actions =
        talk.stderr("Attempt 1 failed with status 500. Retrying with backoff... Error: no");
    assert_eq!(statuses(&actions, "retry").len(), 1);
    assert_eq!(actions.len(), 1, "it is waited for");
}

#[test]
fn a_cli_that_ends_before_it_begins_says_why() {
    let mut talk = Talk::new();
    talk.order(Order::Start);
    talk.stderr("Unknown argument: nonsense");
    let actions = talk.exit(&exit(1, "Unknown argument: nonsense\n"));
    let [Action::OpenFailed { failure, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!(failure.kind.code(), "invalid_request");
}

#[test]
fn a_cli_that_dies_ends_every_turn_as_crashed() {
    let mut talk = Talk::running(&options());
    talk.text("half");
    talk.exit(&Exit { code: None, signal: Some(9), stderr: String::new() });
    assert_eq!(failure(&talk.actions).0, "crashed");
    assert_eq!(end_of_turn(&talk.actions, TURN).text.as_deref(), Some("half"));
}

#[test]
fn thoughts_are_blocks_of_their_own() {
    let mut talk = Talk::running(&options());
    for text in ["**A**\none", "**B**\ntwo"] {
        let content = json!({ "type": "text", "text": text });
        talk.tell(json!({ "sessionUpdate": "agent_thought_chunk", "content": content }));
    }
    assert_eq!(thought_blocks(&talk.actions), ["t1", "t2"]);
}

#[test]
fn zeros_are_not_figures() {
    let mut talk = Talk::running(&options());
    let count = json!({ "input_tokens": 0, "output_tokens": 0 });
    let meta = json!({ "quota": { "token_count": count, "model_usage": [] } });
    talk.answer_ok("session/prompt", json!({ "stopReason": "end_turn", "_meta": meta }));
    assert_eq!(end_of_turn(&talk.actions, TURN).usage, crate::event::Usage::default());
}
