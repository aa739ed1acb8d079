//! Every call that is made of the server: where it goes, and with what.

use super::*;
use crate::agent::{ONLY_SESSION, Order, http::Method, opencode::warm::WARM, testing::variable};

#[test]
fn every_call_names_its_directory_and_who_calls() {
    let mut talk = Talk::running(&Options { model: Some("p/m/x".to_owned()), ..asking() });
    talk.cancel(FIRST);
    talk.lose();
    talk.ring();
    for action in &talk.actions {
        let Action::Call { request, .. } = action else { continue };
        let login = request.login.as_ref().unwrap();
        assert_eq!((login.user.as_str(), login.password.as_str()), ("opencode", "secret"));
        assert!(!format!("{request:?}").contains("secret"), "the secret is not printed");
        let is_global = request.url.contains("/global/");
        assert_eq!(request.url.contains("directory=%2Fworkspace"), !is_global, "{}", request.url);
        let is_get = request.method == Method::Get;
        assert!(!is_get || request.body.is_none());
    }
}

#[test]
fn a_prompt_goes_with_its_model_agent_system_text_and_variant() {
    let options = Options {
        model: Some("p/m/x".to_owned()),
        system_prompt: Some("Be brief.".to_owned()),
        thinking: Some(crate::request::Thinking::High),
        ..asking()
    };
    let talk = Talk::sent(&options);
    let expected = json!({
        "parts": [{ "type": "text", "text": "hi" }],
        "model": { "providerID": "p", "modelID": "m/x" },
        "agent": "ostler",
        "system": "Be brief.",
        "variant": "high",
    });
    assert_eq!(*talk.body("/prompt_async"), expected);
    assert_eq!(*talk.body("/session?"), json!({ "title": "hi" }));
}

fn line(options: &Options) -> crate::agent::CommandLine {
    (WARM.launch)(&crate::agent::WarmLaunch {
        spec: &crate::agent::opencode::SPEC,
        options,
        open: &crate::request::Open::New,
        new_id: "a-random-word",
        version: None,
        variables: &[],
        run_dir: std::path::Path::new("/run"),
    })
    .unwrap()
}

#[test]
fn the_server_listens_on_loopback_only_and_wants_a_password() {
    let line = line(&options());
    assert_eq!(
        crate::agent::testing::argv(&line),
        ["serve", "--hostname", "127.0.0.1", "--port", "0"]
    );
    assert_eq!(variable(&line, "OPENCODE_SERVER_PASSWORD"), Some("a-random-word"));
}

#[test]
fn what_goes_with_each_prompt_is_not_in_the_line() {
    let other = Options {
        model: Some("p/m".to_owned()),
        system_prompt: Some("Be brief.".to_owned()),
        thinking: Some(crate::request::Thinking::High),
        max_turns: Some(3),
        cwd: "/other".into(),
        ..options()
    };
    let (one, two) = (line(&options()), line(&other));
    assert_eq!((one.args, one.env, one.files), (two.args, two.env, two.files));
}

#[test]
fn each_way_to_permit_has_rules_of_its_own() {
    let rules = |options: &Options| {
        let line = line(options);
        serde_json::from_str::<Value>(variable(&line, "OPENCODE_PERMISSION").unwrap()).unwrap()
    };
    let free = rules(&options());
    assert_eq!(free, json!({ "*": "allow", "question": "deny" }));
    let asks = rules(&asking());
    assert_eq!(
        (&asks["*"], &asks["bash"], &asks["edit"]),
        (&json!("ask"), &json!("ask"), &json!("ask"))
    );
    assert_eq!((&asks["grep"], &asks["question"]), (&json!("allow"), &json!("allow")));
    let reads = rules(&Options { permissions: Permissions::ReadOnly, ..options() });
    assert_eq!(
        (&reads["*"], &reads["bash"], &reads["grep"]),
        (&json!("deny"), &json!("deny"), &json!("allow"))
    );
    let tools = Some(vec!["Bash(git:*)".to_owned(), "Read".to_owned()]);
    let some = rules(&Options { allowed_tools: tools, ..asking() });
    assert_eq!(some["bash"], json!({ "*": "deny", "git *": "ask" }));
    assert_eq!((&some["edit"], &some["read"]["*"]), (&json!("deny"), &json!("allow")));
}

#[test]
fn what_the_server_refuses_names_the_call_the_status_and_the_words() {
    let mut talk = Talk::resumed(SESSION);
    talk.reply("/session/", 502, &json!("bad gateway"));
    let Some(Action::OpenFailed { failure, .. }) = talk.actions.last() else { panic!() };
    assert_eq!(failure.kind.code(), "unavailable");
    assert_eq!(
        failure.message,
        format!("GET /session/{SESSION} of opencode's server: 502 \"bad gateway\"")
    );
}

#[test]
fn a_server_that_is_not_well_yet_is_asked_again_after_a_pause() {
    for (status, health) in [(200, json!({ "healthy": false })), (503, json!("starting"))] {
        let mut talk = Talk::started();
        let out = talk.reply("/global/health", status, &health);
        assert!(matches!(out.as_slice(), [Action::Arm { .. }]), "{out:?}");
        talk.ring();
        talk.reply("/global/health", 200, &json!({ "healthy": true, "version": "1.18.33" }));
        let out = talk.tell("server.connected", json!({}));
        assert!(matches!(out.as_slice(), [Action::Ready]), "{out:?}");
    }
}

#[test]
fn that_a_version_was_not_tested_is_said_once_in_a_session() {
    let mut talk = Talk::ready_as("99.0.0");
    let open = crate::request::Open::New;
    talk.order(Order::Open { session: ONLY_SESSION, open: &open, options: &options() });
    talk.prompt(FIRST, "hi", &options());
    talk.reply("/session?", 200, &json!({ "id": SESSION, "directory": "/workspace" }));
    for (turn, n) in [(FIRST, "1"), (SECOND, "2")] {
        if turn == SECOND {
            talk.prompt(SECOND, "more", &options());
        }
        talk.reply("/prompt_async", 204, &Value::Null);
        talk.begin(n);
        talk.complete(n, "stop");
        talk.idle();
        assert!(has_ended(&talk.actions, turn));
    }
    let warnings = talk.actions.iter().filter(|action| {
        matches!(action, Action::Emit { event: EventBody::Status(Status::Warning { text }), .. } if text.contains("99.0.0"))
    });
    assert_eq!(warnings.count(), 1);
}
