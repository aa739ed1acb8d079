//! A server that somebody else runs: found, restricted, lost and left.

use super::*;
use crate::{
    agent::{
        AttachSpec, ONLY_SESSION, Order, TimerKey,
        http::{HttpReply, Login, Method, ServerAddress, ServerError},
        opencode::warm::WARM,
    },
    failure::FailureKind,
    request::{Format, Open, ProjectSettings},
};

fn address() -> ServerAddress {
    let login = Login { user: "opencode".to_owned(), password: "secret".to_owned() };
    ServerAddress::new("http://127.0.0.1:4096/", Some(login)).unwrap()
}

fn spec() -> &'static AttachSpec {
    WARM.attach.as_ref().unwrap()
}

fn judge(reply: Result<(u16, &str), &str>) -> Result<String, ServerError> {
    let reply = reply.map(|(status, body)| HttpReply { status, body: body.as_bytes() });
    (spec().judge)(&address(), reply)
}

/// Begins a conversation in which the server was found.
pub(super) fn found() -> Talk {
    let mut talk = Talk::with((spec().dialect)(&address()));
    talk.order(Order::Start);
    talk.reply("/global/health", 200, &json!({ "healthy": true, "version": "1.18.33" }));
    talk.tell("server.connected", json!({}));
    talk
}

/// Begins one with a new session that has its first prompt.
fn prompted(options: &Options) -> Talk {
    let mut talk = found();
    talk.order(Order::Open { session: ONLY_SESSION, open: &Open::New, options });
    talk.prompt(FIRST, "hi", options);
    talk
}

/// The server makes the session, with the rules that it was given.
fn make_session(talk: &mut Talk) {
    let rules = talk.body("/session?")["permission"].clone();
    let session = json!({ "id": SESSION, "directory": "/workspace", "permission": rules });
    talk.reply("/session?", 200, &session);
}

/// Begins one with a turn in which the model begins to write.
fn running(options: &Options) -> Talk {
    let mut talk = prompted(options);
    make_session(&mut talk);
    talk.reply("/prompt_async", 204, &Value::Null);
    talk.begin("1");
    talk
}

fn is_called(talk: &Talk, path: &str) -> bool {
    talk.urls().iter().any(|url| url.contains(path))
}

fn stops(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::Stop))
}

fn rules(talk: &Talk, path: &str) -> Vec<(String, String, String)> {
    let rules = talk.body(path)["permission"].as_array().unwrap().clone();
    let text = |rule: &Value, name: &str| rule[name].as_str().unwrap().to_owned();
    let rule =
        |rule: &Value| (text(rule, "permission"), text(rule, "pattern"), text(rule, "action"));
    rules.iter().map(rule).collect()
}

fn has(rules: &[(String, String, String)], wanted: (&str, &str, &str)) -> bool {
    let (permission, pattern, action) = wanted;
    rules
        .iter()
        .any(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str()) == (permission, pattern, action))
}

#[test]
fn it_is_called_at_its_address_as_who_the_operator_says() {
    let mut talk = Talk::with((spec().dialect)(&address()));
    let out = talk.order(Order::Start);
    let Some(Action::Call { request, .. }) = out.first() else { panic!("{out:?}") };
    assert_eq!(request.url, "http://127.0.0.1:4096/global/health");
    assert_eq!(request.login.as_ref().unwrap().password, "secret");
    assert!(out.iter().any(|action| matches!(action, Action::Listen(_))), "{out:?}");
    let open = ServerAddress::new("http://127.0.0.1:1", None).unwrap();
    let mut talk = Talk::with((spec().dialect)(&open));
    let out = talk.order(Order::Start);
    let Some(Action::Call { request, .. }) = out.first() else { panic!("{out:?}") };
    assert!(request.login.is_none());
}

#[test]
fn a_turn_that_may_do_everything_leaves_the_rules_to_the_server_and_asks_no_questions() {
    let mut talk = prompted(&options());
    let expected = json!([{ "permission": "question", "pattern": "*", "action": "deny" }]);
    assert_eq!(talk.body("/session?")["permission"], expected);
    make_session(&mut talk);
    assert_eq!(talk.body("/prompt_async")["tools"], json!({ "question": false }));
    assert_eq!(talk.body("/prompt_async").get("agent"), None);
}

#[test]
fn a_turn_that_may_not_is_restricted_by_its_session() {
    let mut talk = prompted(&Options { permissions: Permissions::ReadOnly, ..options() });
    let strict = rules(&talk, "/session?");
    assert_eq!(strict.first().unwrap(), &("*".into(), "*".into(), "deny".into()));
    assert!(has(&strict, ("bash", "*", "deny")) && has(&strict, ("grep", "*", "allow")));
    assert!(has(&strict, ("read", "*.env", "deny")), "{strict:?}");
    make_session(&mut talk);
    let body = talk.body("/prompt_async");
    assert_eq!((body.get("agent"), body.get("tools")), (None, None), "ours is not there");
}

#[test]
fn sub_agents_are_refused_where_the_rules_would_not_reach_them() {
    let talk = prompted(&asking());
    let asks = rules(&talk, "/session?");
    assert!(has(&asks, ("bash", "*", "ask")) && has(&asks, ("task", "*", "deny")), "{asks:?}");
    let warns = |options: &Options| {
        (spec().warnings)(options).iter().any(|text| text.contains("sub-agents"))
    };
    assert!(warns(&asking()));
    assert!(!warns(&options()));
    assert!(!warns(&Options { permissions: Permissions::ReadOnly, ..options() }));
}

#[test]
fn a_session_with_other_rules_gets_those_of_the_turn_before_the_prompt() {
    let strict = Options { permissions: Permissions::ReadOnly, ..options() };
    let mut talk = running(&options());
    talk.complete("1", "stop");
    talk.idle();
    talk.prompt(SECOND, "more", &strict);
    assert!(!is_called(&talk, "/prompt_async"), "not before the rules");
    let (call, request) = talk.open_calls.last().unwrap().clone();
    assert_eq!(request.method, Method::Patch);
    assert!(request.url.contains(&format!("/session/{SESSION}?directory=")), "{}", request.url);
    let rules = request.body.unwrap()["permission"].clone();
    talk.open_calls.clear();
    talk.reply_to(call, Ok((200, &json!({ "id": SESSION, "permission": rules }))));
    talk.reply("/prompt_async", 204, &Value::Null);
    // Once they are there they are not said again.
    talk.begin("2");
    talk.complete("2", "stop");
    talk.idle();
    talk.prompt(TurnKey(3), "more", &strict);
    assert!(is_called(&talk, "/prompt_async"));
}

#[test]
fn a_turn_whose_rules_are_not_taken_is_not_begun() {
    let strict = Options { permissions: Permissions::ReadOnly, ..options() };
    for (status, reply, kind) in [
        (200, json!({ "id": SESSION, "permission": [] }), "invalid_request"),
        (500, json!("down"), "unavailable"),
    ] {
        let mut talk = running(&options());
        talk.complete("1", "stop");
        talk.idle();
        talk.prompt(SECOND, "more", &strict);
        let (call, _) = talk.open_calls.pop().unwrap();
        talk.reply_to(call, Ok((status, &reply)));
        assert_eq!(failure_of(&talk.actions, SECOND).0, kind);
        assert!(!is_called(&talk, "/prompt_async"));
        // The session is as good as before.
        talk.prompt(TurnKey(3), "again", &options());
        assert!(is_called(&talk, "/prompt_async"));
    }
}

#[test]
fn a_resumed_session_keeps_the_rules_that_it_has() {
    let strict = Options { permissions: Permissions::ReadOnly, ..options() };
    let first = prompted(&strict);
    let rules = first.body("/session?")["permission"].clone();
    let mut talk = found();
    let memo = crate::memo::Memo::of_id("opencode", SESSION);
    let open = Open::Resume(Box::new(memo));
    talk.order(Order::Open { session: ONLY_SESSION, open: &open, options: &strict });
    talk.prompt(FIRST, "hi", &strict);
    let session = json!({ "id": SESSION, "directory": "/workspace", "permission": rules });
    talk.reply("/session/", 200, &session);
    assert!(is_called(&talk, "/prompt_async"), "{:?}", talk.urls());
}

#[test]
fn what_only_a_process_can_be_told_is_warned_about_by_name_and_not_by_value() {
    let options = Options {
        env: vec![("TOKEN".to_owned(), Some("very-secret".to_owned()))],
        extra_args: vec!["--pure".to_owned()],
        home: Some("/elsewhere".into()),
        project_settings: ProjectSettings::Trusted,
        format: Format::Text,
        ..options()
    };
    let warnings = (spec().warnings)(&options).join("\n");
    for word in ["TOKEN", "arguments", "its own home", "settings in the directory", "format"] {
        assert!(warnings.contains(word), "{word}: {warnings}");
    }
    assert!(!warnings.contains("very-secret"), "{warnings}");
    assert!((spec().warnings)(&super::options()).is_empty());
}

#[test]
fn whatever_answers_instead_of_it_is_told_with_what_to_do() {
    assert_eq!(judge(Ok((200, r#"{"healthy":true,"version":"9.9"}"#))), Ok("9.9".to_owned()));
    for (reply, kind, words) in [
        (Err("connection refused"), FailureKind::Unavailable, "`opencode serve` runs there"),
        (Err("no reply within 2s"), FailureKind::Unavailable, "not stuck"),
        (Ok((401, "")), FailureKind::Auth, "OPENCODE_PASSWORD"),
        (Ok((200, "<!doctype html>")), FailureKind::InvalidRequest, "OPENCODE_URL"),
        (Ok((200, "{}")), FailureKind::InvalidRequest, "OPENCODE_URL"),
        (Ok((404, "nothing here")), FailureKind::InvalidRequest, "404 nothing here"),
        (Ok((302, "")), FailureKind::Unavailable, "302"),
        (Ok((200, r#"{"healthy":false}"#)), FailureKind::Unavailable, "is not well"),
    ] {
        let error = judge(reply).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        let text = error.to_string();
        assert!(text.contains(words) && text.contains("GET /global/health"), "{text}");
        assert!(text.contains("http://127.0.0.1:4096") && !text.contains("secret"), "{text}");
    }
}

#[test]
fn a_server_that_is_not_well_at_first_fails_every_session() {
    let mut talk = Talk::with((spec().dialect)(&address()));
    talk.order(Order::Start);
    let out = talk.reply("/global/health", 401, &json!(""));
    let [Action::OpenFailed { failure, .. }, Action::Stop] = out.as_slice() else {
        panic!("{out:?}")
    };
    assert_eq!(failure.kind, FailureKind::Auth);
}

/// The timer after which the server counts as lost, rings.
fn wait_in_vain(talk: &mut Talk) -> Vec<Action> {
    let long = |action: &Action| {
        let Action::Arm { timer, after } = action else { return None };
        (after.as_secs() == 15).then_some(*timer)
    };
    let timer: TimerKey = talk.actions.iter().rev().find_map(long).unwrap();
    talk.step(crate::agent::Input::Timer(timer))
}

#[test]
fn a_server_that_stays_away_ends_the_turns_as_unavailable() {
    let mut talk = running(&options());
    for _ in 0..4 {
        talk.lose();
        talk.ring();
    }
    let out = wait_in_vain(&mut talk);
    let (kind, words) = failure_of(&talk.actions, FIRST);
    assert!(kind == "unavailable" && words.contains("GET /global/event: cut"), "{words}");
    assert!(stops(&out), "the next one looks for it anew");
}

#[test]
fn one_that_is_back_in_time_is_read_again_and_nothing_ends() {
    let mut talk = running(&options());
    talk.lose();
    talk.ring();
    talk.tell("server.connected", json!({}));
    assert!(is_called(&talk, "/message?"));
    let out = wait_in_vain(&mut talk);
    assert!(out.is_empty(), "{out:?}");
}

#[test]
fn a_prompt_waits_until_the_server_is_heard_again_and_looks_for_it_at_once() {
    let mut talk = running(&options());
    talk.complete("1", "stop");
    talk.idle();
    talk.lose();
    let out = talk.prompt(SECOND, "more", &options());
    assert!(matches!(out.as_slice(), [Action::Listen(_)]), "{out:?}");
    talk.tell("server.connected", json!({}));
    assert!(is_called(&talk, "/prompt_async"));
    // The wait that was planned before does not cut the stream again.
    assert!(talk.ring().is_empty());
}

#[test]
fn leaving_aborts_what_runs_and_waits_until_that_was_heard() {
    let mut talk = running(&options());
    let out = talk.order(Order::Leave);
    assert!(is_called(&talk, "/abort") && !stops(&out));
    talk.reply("/abort", 200, &json!(true));
    let error = json!({ "error": { "name": "MessageAbortedError", "data": {} }, "time": { "completed": 1 } });
    talk.assistant("msg_a1", "msg_u1", error);
    let out = talk.idle();
    assert!(stops(&talk.actions), "{out:?}");
}

#[test]
fn leaving_waits_for_a_prompt_that_was_cancelled_before_it_was_taken_up() {
    let mut talk = prompted(&options());
    make_session(&mut talk);
    talk.reply("/prompt_async", 204, &Value::Null);
    talk.cancel(FIRST);
    assert!(!stops(&talk.order(Order::Leave)), "it would run on for nobody");
    talk.begin("1");
    while is_called(&talk, "/abort") {
        talk.reply("/abort", 200, &json!(true));
    }
    talk.complete("1", "stop");
    talk.idle();
    assert!(stops(&talk.actions));
}

#[test]
fn leaving_with_nothing_under_way_is_done_at_once() {
    assert!(stops(&found().order(Order::Leave)));
}

#[test]
fn what_somebody_else_is_asked_in_a_parked_session_is_left_to_them() {
    let mut talk = running(&asking());
    talk.complete("1", "stop");
    talk.idle();
    let of = |id: &str, message: &str| json!({ "id": id, "permission": "bash", "patterns": ["x"], "questions": [{ "question": "Which?" }], "tool": { "messageID": message, "callID": "c" } });
    for kind in ["permission.asked", "question.asked"] {
        let out = talk.tell(kind, of("req_8", "msg_a8"));
        assert!(out.is_empty(), "{kind}: {out:?}");
        let out = talk.tell(kind, json!({ "id": "req_9" }));
        assert!(out.is_empty(), "{kind}: {out:?}");
    }
    // A late one of our own is not left open.
    talk.tell("permission.asked", of("per_1", "msg_a1"));
    assert_eq!(talk.body("/permission/per_1/reply")["reply"], "reject");
    talk.tell("question.asked", of("que_1", "msg_a1"));
    assert!(is_called(&talk, "/question/que_1/reject"));
}

#[test]
fn what_a_cancelled_turn_asks_is_denied_there_too() {
    let mut talk = prompted(&asking());
    make_session(&mut talk);
    talk.reply("/prompt_async", 204, &Value::Null);
    talk.cancel(FIRST);
    talk.tell("permission.asked", json!({ "id": "per_1", "permission": "bash" }));
    assert_eq!(talk.body("/permission/per_1/reply")["reply"], "reject");
}

/// Begins one with a session whose restricted turn is over.
fn restricted() -> (Talk, Options) {
    let strict = Options { permissions: Permissions::ReadOnly, ..options() };
    let mut talk = running(&strict);
    talk.complete("1", "stop");
    talk.idle();
    (talk, strict)
}

#[test]
fn rules_that_somebody_else_replaced_are_said_again() {
    let (mut talk, strict) = restricted();
    let same = talk.body("/session?")["permission"].clone();
    talk.tell("session.updated", json!({ "info": { "id": SESSION, "permission": same } }));
    let allow = json!([{ "permission": "*", "pattern": "*", "action": "allow" }]);
    for (turn, rules, is_said) in [(SECOND, same, false), (TurnKey(3), allow, true)] {
        talk.tell("session.updated", json!({ "info": { "id": SESSION, "permission": rules } }));
        talk.open_calls.clear();
        talk.prompt(turn, "more", &strict);
        let method = talk.open_calls.last().unwrap().1.method;
        assert_eq!(method == Method::Patch, is_said, "{:?}", talk.urls());
        if !is_said {
            talk.reply("/prompt_async", 204, &Value::Null);
            talk.begin("2");
            talk.complete("2", "stop");
            talk.idle();
        }
    }
}

#[test]
fn rules_are_said_again_when_nobody_heard_whether_they_were_replaced() {
    let (mut talk, strict) = restricted();
    talk.lose();
    talk.ring();
    talk.tell("server.connected", json!({}));
    talk.prompt(SECOND, "more", &strict);
    assert_eq!(talk.open_calls.last().unwrap().1.method, Method::Patch);
    assert!(!is_called(&talk, "/prompt_async"));
}

#[test]
fn a_prompt_does_not_overtake_the_rules_of_one_that_was_cancelled() {
    for status in [200, 500] {
        let mut talk = running(&options());
        talk.complete("1", "stop");
        talk.idle();
        let strict = Options { permissions: Permissions::ReadOnly, ..options() };
        talk.prompt(SECOND, "more", &strict);
        let (call, _) = talk.open_calls.pop().unwrap();
        talk.cancel(SECOND);
        talk.prompt(TurnKey(3), "again", &options());
        assert!(!is_called(&talk, "/prompt_async"), "the rules would come after it");
        talk.reply_to(call, Ok((status, &json!({ "id": SESSION, "permission": [] }))));
        assert!(is_called(&talk, "/prompt_async") && !has_ended(&talk.actions, TurnKey(3)));
    }
}
