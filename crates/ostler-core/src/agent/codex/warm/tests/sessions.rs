//! Sessions: opening, going on, changing, closing.

use super::{server::thread, *};
use crate::{
    agent::{ONLY_SESSION, Order, SessionKey, testing::exit},
    memo::{self, Totals},
    request::ProjectSettings,
};

const FIRST: TurnKey = TurnKey(0);
const SECOND: TurnKey = TurnKey(1);

fn open_failed(actions: &[Action]) -> (&str, &str) {
    let failed = actions.iter().find_map(|action| {
        let Action::OpenFailed { failure, .. } = action else { return None };
        Some(failure)
    });
    let failure = failed.expect("it could not be opened");
    (failure.kind.code(), &failure.message)
}

#[test]
fn a_thread_is_opened_as_the_permissions_say_and_its_directory_is_not_trusted() {
    for (permissions, policy, sandbox) in [
        (Permissions::Bypass, "never", "danger-full-access"),
        (Permissions::Ask, "on-request", "workspace-write"),
        (Permissions::ReadOnly, "never", "read-only"),
    ] {
        let mut talk = Talk::ready();
        let options = Options { permissions, ..options() };
        talk.open_session(ONLY_SESSION, &Open::New, &options);
        let params = talk.last_request("thread/start")["params"].clone();
        assert_eq!(
            (&params["approvalPolicy"], &params["sandbox"]),
            (&policy.into(), &sandbox.into())
        );
        assert_eq!(params["cwd"], "/workspace/ws");
        assert_eq!(
            params["config"],
            json!({
                "projects": { "/workspace/ws": { "trust_level": "untrusted" } },
                "project_root_markers": [],
            })
        );
    }
}

#[test]
fn a_trusted_directory_keeps_its_settings_and_a_system_prompt_goes_with_a_new_thread() {
    let mut talk = Talk::ready();
    let mut options = options();
    options.project_settings = ProjectSettings::Trusted;
    options.system_prompt = Some("Be brief.".into());
    options.model = Some("gpt-6-astra".into());
    talk.open_session(ONLY_SESSION, &Open::New, &options);
    let params = talk.last_request("thread/start")["params"].clone();
    assert_eq!(
        params["config"],
        json!({ "projects": { "/workspace/ws": { "trust_level": "trusted" } } })
    );
    assert_eq!(params["developerInstructions"], "Be brief.");
    assert_eq!(params["model"], "gpt-6-astra");
}

#[test]
fn a_prompt_waits_until_the_thread_is_there() {
    let mut talk = Talk::ready();
    talk.open_session(ONLY_SESSION, &Open::New, &options());
    assert!(talk.prompt(FIRST, "hi", &options()).is_empty());
    let then = talk.answer_ok("thread/start", thread(THREAD));
    assert!(matches!(&then[0], Action::Opened { id, .. } if id == THREAD));
    assert_eq!(methods(&then), ["turn/start"]);
    let params = &talk.last_request("turn/start")["params"];
    assert_eq!(params["threadId"], THREAD);
    assert_eq!(params["input"], json!([{ "type": "text", "text": "hi", "text_elements": [] }]));
    assert_eq!(params["model"], "gpt-5.5", "as the thread was opened");
    assert_eq!(params.get("effort"), None);
}

#[test]
fn a_session_that_is_gone_or_busy_says_so() {
    for (message, kind) in [
        ("no rollout found for thread id 01a1e098-d022-7071-aa4d-e968b62576d8", "session_lost"),
        (
            "thread 01a1e1a8-6d17-7cd2-ad50-f6a2ab9026d0 already has an active writer",
            "session_busy",
        ),
        ("what", "invalid_request"),
    ] {
        let mut talk = Talk::ready();
        talk.open_session(ONLY_SESSION, &resume(), &options());
        talk.prompt(FIRST, "hi", &options());
        let params = talk.last_request("thread/resume")["params"].clone();
        assert_eq!(params["threadId"], THREAD);
        assert_eq!(params["excludeTurns"], true);
        let then = talk.refuse("thread/resume", message);
        assert_eq!(open_failed(&then), (kind, message));
        assert!(talk.exit(&exit(0, "")).is_empty(), "the driver has ended the turn");
    }
}

#[test]
fn every_turn_says_what_the_agent_may_do_and_where() {
    for (permissions, policy, sandbox) in [
        (Permissions::Bypass, "never", "danger-full-access"),
        (Permissions::Ask, "on-request", "workspace-write"),
        (Permissions::ReadOnly, "never", "read-only"),
    ] {
        let options = Options { permissions, ..options() };
        let mut talk = Talk::open(&options);
        talk.prompt(FIRST, "hi", &options);
        let params = talk.last_request("turn/start")["params"].clone();
        assert_eq!(params["approvalPolicy"], policy);
        assert_eq!(params["sandboxPolicy"], server::sandbox(sandbox), "whole");
        assert_eq!(params["cwd"], "/workspace/ws");
    }
}

#[test]
fn a_thread_that_is_not_held_to_what_was_asked_gets_no_prompt() {
    let read_only = Options { permissions: Permissions::ReadOnly, ..options() };
    let bypass = Options { permissions: Permissions::Bypass, ..options() };
    for (policy, sandbox) in [
        (json!("never"), json!({ "type": "dangerFullAccess" })),
        (json!("on-request"), json!({ "type": "readOnly" })),
        (Value::Null, Value::Null),
    ] {
        let mut talk = Talk::running(&bypass, FIRST);
        talk.over("completed", Value::Null);
        talk.prompt(SECOND, "look", &read_only);
        talk.close_thread();
        let mut opened = thread(THREAD);
        opened["approvalPolicy"] = policy;
        opened["sandbox"] = sandbox;
        let then = talk.answer_ok("thread/resume", opened);
        assert_eq!(open_failed(&then).0, "denied");
        assert_eq!(methods(&then), ["thread/unsubscribe"]);
    }
}

#[test]
fn a_thread_that_is_being_closed_is_asked_for_again() {
    let words =
        format!("thread {THREAD} is closing; retry thread/resume after the thread is closed");
    let mut talk = Talk::ready();
    talk.open_session(ONLY_SESSION, &resume(), &options());
    talk.prompt(FIRST, "hi", &options());
    assert!(methods(&talk.refuse("thread/resume", &words)).is_empty());
    assert_eq!(methods(&talk.ring()), ["thread/resume"]);
    talk.refuse("thread/resume", &words);
    let closed = json!({ "threadId": THREAD });
    assert_eq!(methods(&talk.notify("thread/closed", closed)), ["thread/resume"]);
    assert!(talk.ring().is_empty(), "once is enough");
    let then = talk.answer_ok("thread/resume", thread(THREAD));
    assert_eq!(methods(&then), ["turn/start"]);
}

#[test]
fn a_thread_that_never_closes_is_busy() {
    let mut talk = Talk::ready();
    talk.open_session(ONLY_SESSION, &resume(), &options());
    let mut then = Vec::new();
    for _ in 0..=50 {
        then = talk.refuse("thread/resume", "thread x is closing; retry thread/resume");
        talk.ring();
    }
    assert_eq!(open_failed(&then).0, "session_busy");
}

#[test]
fn a_server_that_nobody_can_use_is_ended() {
    let mut talk = Talk::new();
    talk.order(Order::Start);
    talk.refuse("initialize", "no");
    let options = options();
    let open = Order::Open { session: ONLY_SESSION, open: &Open::New, options: &options };
    let then = talk.order(open);
    assert!(matches!(&then[..], [Action::OpenFailed { .. }, Action::Stop]), "{then:?}");
}

#[test]
fn another_thread_than_the_one_asked_for_is_a_lost_session() {
    let mut talk = Talk::ready();
    talk.open_session(ONLY_SESSION, &resume(), &options());
    let then = talk.answer_ok("thread/resume", thread("01a1e1a8-6d17-7cd2-ad50-f6a2ab9026d0"));
    assert_eq!(open_failed(&then).0, "session_lost");
    assert_eq!(methods(&then), ["thread/unsubscribe"]);
}

#[test]
fn closing_unloads_the_thread() {
    let mut talk = Talk::open(&options());
    let then = talk.order(Order::Close { session: ONLY_SESSION });
    assert_eq!(methods(&then), ["thread/unsubscribe"]);
    assert!(talk.notify("thread/closed", json!({ "threadId": THREAD })).is_empty());
}

#[test]
fn a_session_that_is_closed_while_it_opens_is_unloaded_when_it_is_there() {
    let mut talk = Talk::ready();
    talk.open_session(ONLY_SESSION, &Open::New, &options());
    assert!(talk.order(Order::Close { session: ONLY_SESSION }).is_empty());
    let then = talk.answer_ok("thread/start", thread(THREAD));
    assert_eq!(methods(&then), ["thread/unsubscribe"]);
    assert_eq!(then.len(), 1, "nobody is told: {then:?}");
}

#[test]
fn going_on_with_a_session_that_was_just_closed_is_not_confused_by_its_unloading() {
    let mut talk = Talk::open(&options());
    talk.order(Order::Close { session: ONLY_SESSION });
    let again = SessionKey(1);
    talk.open_session(again, &resume(), &options());
    assert!(talk.notify("thread/closed", json!({ "threadId": THREAD })).is_empty());
    let then = talk.answer_ok("thread/resume", thread(THREAD));
    assert!(matches!(&then[..], [Action::Opened { session, .. }] if *session == again));
}

#[test]
fn another_directory_or_other_permissions_open_the_thread_anew_before_the_prompt() {
    let mut talk = Talk::running(&options(), FIRST);
    talk.over("completed", Value::Null);
    let mut other = asking();
    other.cwd = "/workspace/ws2".into();
    let then = talk.prompt(SECOND, "go on", &other);
    assert_eq!(methods(&then), ["thread/unsubscribe"], "it would be given back as it is");
    assert_eq!(methods(&talk.close_thread()), ["thread/resume"]);
    let params = talk.last_request("thread/resume")["params"].clone();
    assert_eq!(params["cwd"], "/workspace/ws2");
    assert_eq!(params["sandbox"], "workspace-write");
    assert_eq!(params["config"]["projects"]["/workspace/ws2"]["trust_level"], "untrusted");
    let then = talk.answer_ok("thread/resume", thread(THREAD));
    assert_eq!(methods(&then), ["turn/start"]);
    assert!(talk.ring().is_empty(), "it did not take too long");
}

#[test]
fn a_thread_that_the_server_unloads_fails_its_turn_and_is_opened_anew() {
    let mut talk = Talk::running(&options(), FIRST);
    let then = talk.notify("thread/closed", json!({ "threadId": THREAD }));
    assert_eq!(failure_of(&then, FIRST).0, "crashed");
    let then = talk.prompt(SECOND, "again", &options());
    assert_eq!(methods(&then), ["thread/unsubscribe"]);
    let then = talk.answer_ok("thread/unsubscribe", json!({ "status": "notLoaded" }));
    assert_eq!(methods(&then), ["thread/resume"]);
}

#[test]
fn the_model_and_the_effort_of_a_turn_are_said_with_it() {
    let mut talk = Talk::open(&options());
    let mut options = options();
    options.model = Some("gpt-6-astra".into());
    options.thinking = Some(crate::request::Thinking::High);
    talk.prompt(FIRST, "hi", &options);
    let params = &talk.last_request("turn/start")["params"];
    assert_eq!((&params["model"], &params["effort"]), (&"gpt-6-astra".into(), &"high".into()));
}

#[test]
fn a_model_and_an_effort_hold_for_one_prompt_only() {
    let mut talk = Talk::running(&options(), FIRST);
    talk.over("completed", Value::Null);
    let mut other = options();
    other.model = Some("gpt-6-astra".into());
    other.thinking = Some(crate::request::Thinking::High);
    talk.prompt(SECOND, "hi", &other);
    let second = json!({ "id": "t2", "status": "completed" });
    talk.answer_ok("turn/start", json!({ "turn": { "id": "t2" } }));
    talk.notify("turn/completed", json!({ "threadId": THREAD, "turn": second }));
    assert_eq!(end_of(&talk.actions, SECOND).model.as_deref(), Some("gpt-6-astra"));
    talk.prompt(TurnKey(2), "hi", &options());
    let params = &talk.last_request("turn/start")["params"];
    assert_eq!((&params["model"], params.get("effort")), (&"gpt-5.5".into(), None));
    assert_eq!(
        params["collaborationMode"],
        json!({ "mode": "default", "settings": {
            "model": "gpt-5.5", "reasoning_effort": null, "developer_instructions": null } })
    );
}

#[test]
fn an_effort_that_the_thread_was_opened_with_is_said_again() {
    let mut talk = Talk::ready();
    talk.open_session(ONLY_SESSION, &Open::New, &options());
    let mut opened = thread(THREAD);
    opened["reasoningEffort"] = "medium".into();
    talk.answer_ok("thread/start", opened);
    talk.prompt(FIRST, "hi", &options());
    assert_eq!(talk.last_request("turn/start")["params"]["effort"], "medium");
}

#[test]
fn usage_is_what_this_turn_added_to_what_the_session_had() {
    let mut memo = Memo::of_id("codex", THREAD);
    let before =
        Totals { input_tokens: 1000, output_tokens: 20, cached_tokens: 900, cost_usd: 0.0 };
    memo.totals = Some(before);
    let mut talk = Talk::ready();
    talk.open_session(ONLY_SESSION, &Open::Resume(Box::new(memo)), &options());
    talk.answer_ok("thread/resume", thread(THREAD));
    let mut used = |turn: TurnKey, input: u64| {
        talk.prompt(turn, "hi", &options());
        talk.answer_ok("turn/start", json!({ "turn": { "id": TURN } }));
        talk.notify("turn/started", json!({ "threadId": THREAD, "turn": { "id": TURN } }));
        let total = json!({ "inputTokens": input, "outputTokens": 50, "cachedInputTokens": 1500 });
        talk.tell_turn("thread/tokenUsage/updated", json!({ "tokenUsage": { "total": total } }));
        talk.over("completed", Value::Null);
        let end = end_of(&talk.actions, turn);
        (end.usage.input_tokens, end.usage.cached_tokens, end.totals.map(|t| t.input_tokens))
    };
    assert_eq!(used(FIRST, 2200), (Some(1200), Some(600), Some(2200)));
    assert_eq!(used(SECOND, 2300), (Some(100), Some(0), Some(2300)));
}

#[test]
fn what_a_session_had_may_be_told_after_the_turn_was_asked_for() {
    let mut talk = Talk::ready();
    talk.open_session(ONLY_SESSION, &resume(), &options());
    talk.answer_ok("thread/resume", thread(THREAD));
    talk.prompt(FIRST, "hi", &options());
    let told = |turn: &str, input: u64| {
        let total = json!({ "inputTokens": input, "outputTokens": 5 });
        json!({ "threadId": THREAD, "turnId": turn, "tokenUsage": { "total": total } })
    };
    talk.notify("thread/tokenUsage/updated", told("an old one", 1000));
    talk.answer_ok("turn/start", json!({ "turn": { "id": TURN } }));
    talk.notify("thread/tokenUsage/updated", told(TURN, 1200));
    talk.over("completed", Value::Null);
    assert_eq!(end_of(&talk.actions, FIRST).usage.input_tokens, Some(200));
}

#[test]
fn usage_is_unknown_when_what_the_session_had_is() {
    let mut talk = Talk::ready();
    talk.open_session(ONLY_SESSION, &resume(), &options());
    talk.answer_ok("thread/resume", thread(THREAD));
    talk.prompt(FIRST, "hi", &options());
    talk.answer_ok("turn/start", json!({ "turn": { "id": TURN } }));
    let total = json!({ "inputTokens": 5, "outputTokens": 5 });
    talk.tell_turn("thread/tokenUsage/updated", json!({ "tokenUsage": { "total": total } }));
    talk.over("completed", Value::Null);
    let end = end_of(&talk.actions, FIRST);
    assert_eq!(end.usage.input_tokens, None);
    assert_eq!(end.totals.map(|totals| totals.input_tokens), Some(5));
}

#[test]
fn a_system_prompt_that_comes_too_late_is_told_once() {
    let mut memo = Memo::of_id("codex", THREAD);
    memo.system_hash = Some(memo::hash("the first"));
    let mut options = options();
    options.system_prompt = Some("the second".into());
    let mut talk = Talk::ready();
    talk.open_session(ONLY_SESSION, &Open::Resume(Box::new(memo)), &options);
    talk.answer_ok("thread/resume", thread(THREAD));
    let then = talk.prompt(FIRST, "hi", &options);
    assert_eq!(statuses(&then, "warning").len(), 1);
    assert_eq!(talk.last_request("thread/resume")["params"].get("developerInstructions"), None);
}
