//! What goes wrong with a kept process if nobody thinks of it, one test each.

use super::{
    super::traps::{failed, message, retry},
    *,
};
use crate::request::{Permissions, PromptCommands};

const SETTLED: &str = r#"{"type":"agent_settled"}"#;
const STARTS: &str = r#"{"type":"agent_start"}"#;
const RUN_ENDS: &str = r#"{"type":"agent_end","messages":[],"willRetry":false}"#;

fn answer(text: &str) -> String {
    message(text, "stop", &json!({}))
}

fn dialog(method: &str, more: &Value) -> Value {
    let mut line = json!({"type": "extension_ui_request", "id": "d1", "method": method});
    for (name, value) in more.as_object().unwrap() {
        line[name] = value.clone();
    }
    line
}

fn with_commands() -> Started<'static> {
    let mut started = Started::default();
    started.options.permissions = Permissions::Bypass;
    started.options.prompt_commands = PromptCommands::On;
    started
}

fn timer_of(actions: &[Action]) -> TimerKey {
    let armed = actions.iter().find_map(|action| {
        let Action::Arm { timer, .. } = action else { return None };
        Some(*timer)
    });
    armed.expect("a timer")
}

#[test]
fn nothing_is_told_ready_before_the_cli_answers() {
    let mut process = Process::new(&Started::default());
    assert_eq!(commands(&process.order(Order::Start)), ["get_state"]);
    let early = r#"{"type":"thinking_level_changed","level":"low"}"#;
    assert!(process.text_lines(&[early, "garbage", "{"]).is_empty());
    let actions = process.reply("get_state", &state(SESSION));
    assert!(matches!(actions.as_slice(), [Action::Ready]));
}

#[test]
fn many_turns_run_in_one_process_and_each_has_its_own_answer_and_usage() {
    let mut process = Process::open();
    for turn in 0..10 {
        assert_eq!(commands(&process.prompt(turn, "hi")), ["prompt"]);
        process.reply("prompt", &Value::Null);
        let text = format!("answer {turn}");
        let actions = process.text_lines(&[STARTS, &answer(&text), RUN_ENDS, SETTLED]);
        let ends = ends(&actions);
        assert_eq!(ends.len(), 1);
        let (key, end) = ends[0];
        assert_eq!((key, end.text.as_deref()), (TurnKey(turn), Some(text.as_str())));
        assert_eq!(end.usage.input_tokens, Some(1350), "of this turn alone");
        assert_eq!(end.file.as_deref(), Some(format!("/sessions/x_{SESSION}.jsonl").as_ref()));
    }
    assert_eq!(sessions(&process.actions), [SESSION], "told once");
}

#[test]
fn trap_a_new_session_is_told_when_it_can_be_resumed_and_not_before() {
    let mut process = Process::working();
    assert!(sessions(&process.actions).is_empty());
    process.text_lines(&[&answer("Hi.")]);
    assert_eq!(sessions(&process.actions), [SESSION]);
}

#[test]
fn a_resumed_session_is_told_at_once_and_another_one_is_lost() {
    let started = Started { open: resume(SESSION), ..Started::default() };
    let mut process = Process::ready(&started, SESSION);
    assert_eq!(sessions(&process.order_open(&resume(SESSION))), [SESSION]);
    let mut process = Process::ready(&started, "another");
    let actions = process.order_open(&resume(SESSION));
    assert_eq!(open_failures(&actions)[0].1, "session_lost");
}

#[test]
fn a_cli_that_cannot_tell_its_state_at_the_start_is_told_with_its_words() {
    for (words, kind) in
        [("no such thing", "spawn_failed"), ("No API key found for anthropic.", "auth")]
    {
        let mut process = Process::new(&Started::default());
        process.order(Order::Start);
        let actions = process.refuse("get_state", words);
        assert_eq!(open_failures(&actions), [(ONLY_SESSION, kind, words)]);
        assert!(has_stopped(&actions));
    }
    let mut process = Process::new(&Started::default());
    process.order(Order::Start);
    let actions = process.reply("get_state", &json!({}));
    assert_eq!(open_failures(&actions)[0].1, "unreadable_output");
}

#[test]
fn an_unknown_session_is_lost_though_the_process_is_gone_before_it_is_ready() {
    let started = Started { open: resume("nope"), ..Started::default() };
    let mut process = Process::new(&started);
    process.order(Order::Start);
    let actions = process.exit(&exit(1, "No session found matching 'nope'\n"));
    let expected = (ONLY_SESSION, "session_lost", "No session found matching 'nope'");
    assert_eq!(open_failures(&actions), [expected]);
}

#[test]
fn a_session_of_another_directory_is_lost_though_the_exit_is_0() {
    let started = Started { open: resume(SESSION), ..Started::default() };
    let mut process = Process::new(&started);
    process.order(Order::Start);
    let asks = "Session found in different project: /other\nFork this session? [y/N] Aborted.\n";
    assert_eq!(open_failures(&process.exit(&exit(0, asks)))[0].1, "session_lost");
}

#[test]
fn a_spare_goes_to_the_file_of_a_session_and_prompts_wait_until_it_is_there() {
    let mut process = Process::ready(&Started::default(), "fresh");
    let mut memo = Memo::of_id("pi", SESSION);
    memo.file = Some("/sessions/x.jsonl".into());
    let actions = process.order_open(&Open::Resume(Box::new(memo)));
    assert_eq!(written(&actions)[0]["sessionPath"], "/sessions/x.jsonl");
    assert!(process.prompt(0, "hi").is_empty(), "it waits");
    assert_eq!(
        commands(&process.reply("switch_session", &json!({"cancelled": false}))),
        ["get_state"]
    );
    let actions = process.reply("get_state", &state(SESSION));
    assert_eq!(sessions(&actions), [SESSION]);
    assert_eq!(commands(&actions), ["prompt"]);
}

#[test]
fn trap_a_session_would_take_a_spare_along_to_its_own_directory() {
    let mut process = Process::ready(&Started::default(), "fresh");
    let mut memo = Memo::of_id("pi", SESSION);
    memo.file = Some("/sessions/x.jsonl".into());
    memo.cwd = Some("/elsewhere".into());
    let actions = process.order_open(&Open::Resume(Box::new(memo)));
    assert_eq!(open_failures(&actions)[0].1, "session_lost");
    assert!(written(&actions).is_empty());
}

#[test]
fn trap_a_prompt_that_was_handled_never_settles() {
    let mut process = Process::ready(&with_commands(), SESSION);
    process.order_open(&Open::New);
    process.prompt(0, "/mcp");
    let actions = process.reply("prompt", &json!({"disposition": "handled"}));
    let end = end_of(&actions);
    assert_eq!((end.text.as_deref(), end.failure.is_none()), (Some(""), true));
    assert_eq!(sessions(&actions), [SESSION], "the next prompt comes to this process");
    assert_eq!(commands(&process.prompt(1, "hi")), ["prompt"]);
}

#[test]
fn trap_before_0_99_a_handled_prompt_is_only_known_by_what_the_cli_is_doing() {
    let mut process = Process::ready(&with_commands(), SESSION);
    process.order_open(&Open::New);
    process.prompt(0, "/mcp");
    assert_eq!(commands(&process.reply("prompt", &Value::Null)), ["get_state"]);
    let actions = process.reply("get_state", &json!({"isStreaming": false}));
    assert_eq!(end_of(&actions).text.as_deref(), Some(""));
    process.prompt(1, "hi");
    process.reply("prompt", &Value::Null);
    process.text_lines(&[STARTS]);
    assert!(process.reply("get_state", &json!({"isStreaming": false})).is_empty());
    let actions = process.text_lines(&[&answer("Hi."), SETTLED]);
    assert_eq!(end_of(&actions).text.as_deref(), Some("Hi."));
}

#[test]
fn a_prompt_is_not_handled_because_the_cli_cannot_tell_what_it_is_doing() {
    let mut process = Process::ready(&with_commands(), SESSION);
    process.order_open(&Open::New);
    process.prompt(0, "/mcp");
    process.reply("prompt", &Value::Null);
    assert!(process.refuse("get_state", "no").is_empty());
    let actions = process.text_lines(&[STARTS, &answer("Hi."), SETTLED]);
    assert_eq!(end_of(&actions).text.as_deref(), Some("Hi."));
}

#[test]
fn a_slash_in_the_first_place_is_kept_from_being_a_command() {
    let mut process = Process::open();
    let actions = process.prompt(0, "/llama start");
    assert_eq!(written(&actions)[0]["message"], " /llama start");
    let mut process = Process::open();
    assert_eq!(written(&process.prompt(0, "@/etc/passwd"))[0]["message"], "@/etc/passwd");
    let mut process = Process::ready(&with_commands(), SESSION);
    process.order_open(&Open::New);
    assert_eq!(written(&process.prompt(0, "/llama"))[0]["message"], "/llama");
}

#[test]
fn a_prompt_that_is_not_taken_fails_in_the_words_of_the_cli() {
    for (words, kind) in [
        ("No API key found for anthropic.", "auth"),
        ("Agent is already processing. Specify streamingBehavior", "session_busy"),
        ("something new", "invalid_request"),
    ] {
        let mut process = Process::open();
        process.prompt(0, "hi");
        assert_eq!(failure_of(&process.refuse("prompt", words)), (kind, words));
        assert_eq!(commands(&process.prompt(1, "hi")), ["prompt"], "the session is usable");
    }
}

#[test]
fn the_end_of_a_run_is_not_the_end_of_the_turn() {
    let mut process = Process::working();
    let ends = r#"{"type":"agent_end","messages":[],"willRetry":true}"#;
    let retry = retry(1, 2000);
    let actions = process.text_lines(&[&failed("429 {}"), ends, &retry, STARTS, &answer("Hi.")]);
    assert!(ends_none(&actions));
    let actions = process.text_lines(&[RUN_ENDS, SETTLED]);
    assert_eq!(end_of(&actions).text.as_deref(), Some("Hi."));
}

fn ends_none(actions: &[Action]) -> bool {
    ends(actions).is_empty()
}

#[test]
fn trap_older_versions_say_nothing_when_they_are_done() {
    let started = Started { version: Some("0.74.2"), ..Started::default() };
    let mut process = Process::ready(&started, SESSION);
    process.order_open(&Open::New);
    process.prompt(0, "hi");
    process.reply("prompt", &Value::Null);
    let run_ends = r#"{"type":"agent_end","messages":[]}"#;
    let first = timer_of(&process.text_lines(&[STARTS, &failed("429 {}"), run_ends]));
    let actions = process.text_lines(&[&retry(1, 2000)]);
    assert!(ends_none(&actions) && process.step(Input::Timer(first)).is_empty(), "it goes on");
    let actions = process.text_lines(&[STARTS, &answer("Hi."), run_ends]);
    let second = timer_of(&actions);
    assert!(ends_none(&actions));
    assert_eq!(end_of(&process.step(Input::Timer(second))).text.as_deref(), Some("Hi."));
}

#[test]
fn a_version_that_once_settled_is_waited_for() {
    let started = Started { version: None, ..Started::default() };
    let mut process = Process::ready(&started, SESSION);
    process.order_open(&Open::New);
    process.prompt(0, "hi");
    process.reply("prompt", &Value::Null);
    timer_of(&process.text_lines(&[STARTS, &answer("Hi."), RUN_ENDS]));
    process.text_lines(&[SETTLED]);
    process.prompt(1, "hi");
    process.reply("prompt", &Value::Null);
    let actions = process.text_lines(&[STARTS, &answer("Hi."), RUN_ENDS]);
    assert!(!actions.iter().any(|action| matches!(action, Action::Arm { .. })));
}

#[test]
fn a_cancelled_turn_ends_when_the_cli_is_quiet_and_the_next_prompt_works() {
    let mut process = Process::working();
    assert_eq!(commands(&process.cancel(0)), ["clear_queue", "abort"]);
    let broken = message("", "error", &json!({"errorMessage": "This operation was aborted"}));
    let actions = process.text_lines(&[&broken, RUN_ENDS, SETTLED]);
    assert_eq!(failure_of(&actions).0, "cancelled", "an error that is the cancel");
    assert_eq!(commands(&process.prompt(1, "hi")), ["prompt"]);
    assert!(process.reply("abort", &Value::Null).is_empty(), "late, and not of this turn");
    process.reply("prompt", &Value::Null);
    let actions = process.text_lines(&[STARTS, &answer("Hi."), SETTLED]);
    assert_eq!(ends(&actions)[0].1.text.as_deref(), Some("Hi."));
}

#[test]
fn trap_an_abort_before_the_run_does_nothing_and_is_said_again() {
    let mut process = Process::open();
    process.prompt(0, "hi");
    process.cancel(0);
    assert!(process.reply("abort", &Value::Null).is_empty(), "there was no run to end");
    process.reply("prompt", &Value::Null);
    assert_eq!(commands(&process.text_lines(&[STARTS])), ["clear_queue", "abort"]);
    assert_eq!(failure_of(&process.text_lines(&[SETTLED])).0, "cancelled");
}

#[test]
fn a_prompt_that_waits_is_cancelled_at_once_and_never_sent() {
    let mut process = Process::ready(&Started::default(), "fresh");
    let mut memo = Memo::of_id("pi", SESSION);
    memo.file = Some("/sessions/x.jsonl".into());
    process.order_open(&Open::Resume(Box::new(memo)));
    process.prompt(0, "hi");
    assert_eq!(failure_of(&process.cancel(0)).0, "cancelled");
    process.reply("switch_session", &json!({}));
    assert!(commands(&process.reply("get_state", &state(SESSION))).is_empty());
}

#[test]
fn steering_is_told_when_it_is_taken_and_a_refusal_is_a_warning() {
    let mut process = Process::working();
    let steer =
        |process: &mut Process| process.order(Order::Steer { turn: TurnKey(0), text: "left" });
    assert_eq!(written(&steer(&mut process))[0]["message"], "left");
    let actions = process.reply("steer", &json!({"disposition": "queued"}));
    let told = |event: &&EventBody| matches!(event, EventBody::Status(Status::Steered { text }) if text == "left");
    assert!(events(&actions).iter().any(told));
    steer(&mut process);
    let actions = process.refuse("steer", "no");
    assert_eq!(crate::agent::testing::statuses(&actions, "warning"), ["not steered: no"]);
}

#[test]
fn a_slash_in_a_text_for_a_running_turn_is_kept_from_being_a_command() {
    let steer = |process: &mut Process, text: &str| {
        written(&process.order(Order::Steer { turn: TurnKey(0), text }))[0]["message"].clone()
    };
    let mut process = Process::working();
    assert_eq!(steer(&mut process, "/llama start"), " /llama start");
    let actions = process.reply("steer", &Value::Null);
    let told = |event: &&EventBody| matches!(event, EventBody::Status(Status::Steered { text }) if text == "/llama start");
    assert!(events(&actions).iter().any(told), "in the words that were given");
    let mut process = Process::ready(&with_commands(), SESSION);
    process.order_open(&Open::New);
    process.prompt(0, "hi");
    assert_eq!(steer(&mut process, "/llama start"), "/llama start");
}

#[test]
fn trap_steering_that_came_too_late_is_not_put_before_the_next_prompt() {
    let mut process = Process::working();
    process.order(Order::Steer { turn: TurnKey(0), text: "left" });
    process.text_lines(&[&answer("Hi."), SETTLED]);
    assert!(process.prompt(1, "hi").is_empty(), "it waits for what is under way");
    let actions = process.reply("steer", &Value::Null);
    assert_eq!(commands(&actions), ["clear_queue", "prompt"]);
}

#[test]
fn a_choice_of_an_extension_is_a_question_with_its_choices() {
    let select = dialog("select", &json!({"title": "Allow?", "options": ["Yes", "No"]}));
    let cases: [(Ruling, Value); 5] = [
        (Ruling::Allow { text: Some("No".into()) }, json!({"value": "No"})),
        (Ruling::Allow { text: Some("yes".into()) }, json!({"value": "Yes"})),
        (Ruling::Allow { text: None }, json!({"cancelled": true})),
        (Ruling::Allow { text: Some("maybe".into()) }, json!({"cancelled": true})),
        (Ruling::Deny { why: "no".into() }, json!({"cancelled": true})),
    ];
    for (ruling, expected) in cases {
        let mut process = Process::working();
        let actions = process.say(&select);
        let [Action::Ask { permission, .. }] = actions.as_slice() else { panic!("{actions:?}") };
        assert_eq!((permission.title.as_str(), permission.request.as_str()), ("Allow?", "d1"));
        assert_eq!(permission.options, ["Yes", "No"]);
        let order = Order::Answer { turn: TurnKey(0), request: "d1", ruling: &ruling };
        let answer = written(&process.order(order)).remove(0);
        assert_eq!(
            (&answer["type"], &answer["id"]),
            (&json!("extension_ui_response"), &json!("d1"))
        );
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(answer[name], *value, "{ruling:?}");
        }
    }
}

#[test]
fn a_yes_or_no_of_an_extension_is_a_decision_and_a_text_is_a_question() {
    let mut process = Process::working();
    let actions = process.say(&dialog("confirm", &json!({"title": "Clear", "message": "all?"})));
    let [Action::Ask { permission, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!((permission.title.as_str(), permission.options.len()), ("Clear: all?", 3));
    let allow = Ruling::Allow { text: None };
    let order = Order::Answer { turn: TurnKey(0), request: "d1", ruling: &allow };
    assert_eq!(written(&process.order(order))[0]["confirmed"], true);
    process.say(&dialog("input", &json!({"title": "Name?"})));
    let text = Ruling::Allow { text: Some("Ada".into()) };
    let order = Order::Answer { turn: TurnKey(0), request: "d1", ruling: &text };
    assert_eq!(written(&process.order(order))[0]["value"], "Ada");
}

#[test]
fn to_allow_a_question_without_a_text_is_no_answer_to_it() {
    for (method, expected) in [
        ("select", json!({"cancelled": true})),
        ("input", json!({"cancelled": true})),
        ("editor", json!({"cancelled": true})),
        ("confirm", json!({"confirmed": true})),
    ] {
        let mut process = Process::working();
        process.say(&dialog(method, &json!({"title": "?", "options": ["Allow", "Yes", "OK"]})));
        let allow = Ruling::Allow { text: None };
        let order = Order::Answer { turn: TurnKey(0), request: "d1", ruling: &allow };
        let mut answer = written(&process.order(order)).remove(0);
        let fields = answer.as_object_mut().unwrap();
        fields.retain(|name, _| name != "type" && name != "id");
        assert_eq!(answer, expected, "{method}");
    }
}

#[test]
fn trap_a_dialog_of_a_cancelled_turn_would_keep_it_from_ending() {
    let mut process = Process::working();
    process.cancel(0);
    let actions = process.say(&dialog("confirm", &json!({"title": "?"})));
    assert_eq!(written(&actions)[0]["cancelled"], true);
    assert!(!actions.iter().any(|action| matches!(action, Action::Ask { .. })), "nobody is asked");
}

#[test]
fn trap_what_nobody_can_answer_is_answered_at_once() {
    let mut process = Process::open();
    let actions = process.say(&dialog("confirm", &json!({"title": "?"})));
    assert_eq!(written(&actions)[0]["cancelled"], true, "outside of a turn");
    let mut process = Process::working();
    let actions = process.say(&dialog("teleport", &json!({})));
    assert_eq!(written(&actions)[0]["cancelled"], true, "of an unknown kind");
    process.say(&dialog("confirm", &json!({"title": "?"})));
    let actions = process.text_lines(&[&answer("Hi."), SETTLED]);
    assert_eq!(written(&actions)[0]["cancelled"], true, "when its turn has ended");
    for shown in ["notify", "setStatus", "setWidget", "setTitle", "set_editor_text"] {
        assert!(written(&process.say(&dialog(shown, &json!({})))).is_empty(), "{shown}");
    }
}

#[test]
fn a_dialog_that_the_cli_gives_up_is_withdrawn() {
    let mut process = Process::working();
    let actions = process.say(&dialog("confirm", &json!({"title": "?", "timeout": 1000})));
    let actions = process.step(Input::Timer(timer_of(&actions)));
    assert!(matches!(actions.as_slice(), [Action::Withdraw { request, .. }] if request == "d1"));
}

#[test]
fn a_limit_of_model_calls_aborts_the_run_and_keeps_the_process() {
    let mut process = Process::open();
    process.played.options.max_turns = Some(1);
    process.prompt(0, "hi");
    process.reply("prompt", &Value::Null);
    let turn_ends = r#"{"type":"turn_end"}"#;
    let actions = process.text_lines(&[STARTS, &message("", "toolUse", &json!({})), turn_ends]);
    assert_eq!(commands(&actions), ["clear_queue", "abort"]);
    assert!(ends_none(&actions));
    let actions = process.text_lines(&[RUN_ENDS, SETTLED]);
    assert_eq!(failure_of(&actions).0, "limit_reached");
    assert!(!has_stopped(&process.actions));
}

#[test]
fn retries_that_take_too_long_are_aborted_and_the_turn_fails_with_their_reason() {
    let mut process = Process::working();
    process.step(stdout_line(retry(1, 2000).as_bytes()));
    let actions = process.step_at_second(10, stdout_line(retry(2, 60_000).as_bytes()));
    assert_eq!(commands(&actions), ["clear_queue", "abort"]);
    let timer = timer_of(&actions);
    let mut other = Process::working();
    other.step(stdout_line(retry(1, 60_000).as_bytes()));
    let actions = process.text_lines(&[SETTLED]);
    assert_eq!(failure_of(&actions), ("unavailable", "Connection error."));
    assert!(process.step(Input::Timer(timer)).is_empty(), "nothing is due any more");
    let rang = other.step(Input::Timer(TimerKey(1)));
    assert_eq!(failure_of(&rang).0, "unavailable");
    assert!(has_stopped(&rang), "it did not hear");
}

#[test]
fn the_death_of_the_process_is_told_with_what_it_said_in_this_turn() {
    let mut process = Process::open();
    let stderr = |bytes| Input::Line { from: Stream::Stderr, bytes, cut: false };
    process.step(stderr(b"rate limit exceeded, long ago"));
    process.prompt(0, "hi");
    process.reply("prompt", &Value::Null);
    let whole = "rate limit exceeded, long ago\nTypeError: x is not a function\n";
    process.step(stderr(b"TypeError: x is not a function"));
    let actions = process.exit(&exit(1, whole));
    assert_eq!(failure_of(&actions), ("crashed", "TypeError: x is not a function"));
    assert!(process.exit(&exit(1, whole)).is_empty(), "once");
}

#[test]
fn a_run_that_nobody_asked_for_is_a_turn_of_its_own() {
    let mut process = Process::open();
    let actions = process.text_lines(&[STARTS, &answer("By the way."), SETTLED]);
    let turn = TurnKey::unasked(0);
    assert!(matches!(actions.first(), Some(Action::Unasked { turn: told, .. }) if *told == turn));
    assert_eq!(ends(&actions)[0].0, turn);
    assert_eq!(ends(&actions)[0].1.text.as_deref(), Some("By the way."));
}

#[test]
fn warnings_from_before_the_first_turn_are_told_in_it() {
    let mut process = Process::open();
    let warning = b"Warning: Model \"x\" not found for provider \"p\". Using custom model id.";
    process.step(Input::Line { from: Stream::Stderr, bytes: warning, cut: false });
    let made = b"Warning: No project session found with id 'x'; creating a new session";
    process.step(Input::Line { from: Stream::Stderr, bytes: made, cut: false });
    let actions = process.prompt(0, "hi");
    let told = crate::agent::testing::statuses(&actions, "warning");
    assert_eq!(told, ["Model \"x\" not found for provider \"p\". Using custom model id."]);
}

#[test]
fn the_long_repetition_at_the_end_of_a_run_may_be_cut() {
    let mut process = Process::working();
    process.text_lines(&[&answer("Hi.")]);
    let bytes = br#"{"type":"agent_end","messages":["#;
    process.step(Input::Line { from: Stream::Stdout, bytes, cut: true });
    let actions = process.text_lines(&[SETTLED]);
    assert_eq!(end_of(&actions).text.as_deref(), Some("Hi."));
}

#[test]
fn garbage_in_a_turn_is_told_and_outside_of_one_it_is_not() {
    let mut process = Process::open();
    assert!(process.text_lines(&["garbage", "{", "[]", r#"{"type":"news"}"#]).is_empty());
    process.prompt(0, "hi");
    let actions = process.text_lines(&["garbage", "{", r#"{"type":"news"}"#]);
    assert_eq!(events(&actions).len(), 3);
    assert!(
        actions
            .iter()
            .all(|action| matches!(action, Action::Emit { event: EventBody::Unknown { .. }, .. }))
    );
}
