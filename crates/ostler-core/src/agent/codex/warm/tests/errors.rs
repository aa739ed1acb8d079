//! Errors: which end a turn, which do not, and of what kind they are.

use super::*;

const FIRST: TurnKey = TurnKey(0);
const SECOND: TurnKey = TurnKey(1);

fn error(message: &str, info: Value) -> Value {
    json!({ "message": message, "codexErrorInfo": info, "additionalDetails": null })
}

fn retry(talk: &mut Talk) -> Vec<Action> {
    let mut error = error("Reconnecting... 2/5", json!({ "responseStreamDisconnected": {} }));
    error["additionalDetails"] = "Connection failed: error sending request".into();
    talk.tell_turn("error", json!({ "error": error, "willRetry": true }))
}

#[test]
fn codes_count_and_words_where_there_are_none() {
    let http = |name: &str, status: Value| json!({ name: { "httpStatusCode": status } });
    for (message, info, kind) in [
        ("x", json!("contextWindowExceeded"), "context_too_long"),
        ("x", json!("usageLimitExceeded"), "quota"),
        ("x", json!("rateLimitExceeded"), "rate_limited"),
        ("x", json!("serverOverloaded"), "overloaded"),
        ("x", json!("modelNotFound"), "invalid_request"),
        ("x", json!("cyberPolicy"), "refused"),
        ("x", json!("tooManyDenials"), "denied"),
        ("x", json!("unauthorized"), "auth"),
        ("x", json!("internalServerError"), "unavailable"),
        ("x", http("httpConnectionFailed", json!(401)), "auth"),
        ("x", http("httpConnectionFailed", Value::Null), "unavailable"),
        ("x", http("responseTooManyFailedAttempts", json!(429)), "rate_limited"),
        ("x", json!({ "somethingNew": 1 }), "invalid_request"),
        ("stream disconnected before completion", json!("other"), "unavailable"),
        (
            "Incomplete response returned, reason: max_output_tokens",
            json!("other"),
            "limit_reached",
        ),
        ("x", Value::Null, "invalid_request"),
    ] {
        let mut talk = Talk::running(&options(), FIRST);
        talk.over("failed", error(message, info.clone()));
        assert_eq!(failure_of(&talk.actions, FIRST), (kind, message), "{info}");
    }
}

#[test]
fn an_error_that_comes_before_the_end_is_not_told_twice() {
    let mut talk = Talk::running(&options(), FIRST);
    let error = error("quota", json!("usageLimitExceeded"));
    assert!(talk.tell_turn("error", json!({ "error": error, "willRetry": false })).is_empty());
    let then = talk.over("failed", Value::Null);
    assert_eq!(failure_of(&then, FIRST), ("quota", "quota"));
    assert_eq!(then.len(), 1);
}

#[test]
fn a_retry_notice_does_not_end_the_turn_and_progress_ends_the_waiting() {
    let mut talk = Talk::running(&options(), FIRST);
    let then = retry(&mut talk);
    assert_eq!(
        statuses(&then, "retry"),
        ["Reconnecting... 2/5 (Connection failed: error sending request)"]
    );
    assert!(then.iter().any(|action| matches!(action, Action::Arm { .. })));
    let again = retry(&mut talk);
    assert!(!again.iter().any(|action| matches!(action, Action::Arm { .. })), "one timer");
    talk.tell_turn("item/agentMessage/delta", json!({ "itemId": "m", "delta": "Hi" }));
    assert!(talk.ring().is_empty());
}

#[test]
fn retries_without_progress_end_the_turn_with_their_reason() {
    let mut talk = Talk::running(&options(), FIRST);
    retry(&mut talk);
    let then = talk.ring();
    assert_eq!(methods(&then), ["turn/interrupt"]);
    talk.over("interrupted", Value::Null);
    talk.answer_ok("thread/backgroundTerminals/clean", json!({}));
    assert_eq!(
        failure_of(&talk.actions, FIRST),
        ("unavailable", "Connection failed: error sending request")
    );
    assert_eq!(methods(&talk.prompt(SECOND, "again", &options())), ["turn/start"]);
}

#[test]
fn a_turn_that_does_not_even_end_then_leaves_its_thread_behind() {
    let mut talk = Talk::running(&options(), FIRST);
    retry(&mut talk);
    talk.ring();
    talk.ring();
    assert_eq!(failure_of(&talk.actions, FIRST).0, "unavailable");
    let then = talk.prompt(SECOND, "again", &options());
    assert_eq!(methods(&then), ["thread/unsubscribe"]);
    // It goes on with the old turn, so it does not close the thread.
    talk.answer_ok("thread/unsubscribe", json!({ "status": "unsubscribed" }));
    assert_eq!(methods(&talk.ring()), ["thread/resume"]);
    let mut busy = server::thread(THREAD);
    busy["thread"]["status"] = json!({ "type": "active", "activeFlags": [] });
    let then = talk.answer_ok("thread/resume", busy);
    assert_eq!(methods(&then), ["thread/unsubscribe"], "the prompt would join the old turn");
    let failed = then.iter().find_map(|action| {
        let Action::OpenFailed { failure, .. } = action else { return None };
        Some(failure.kind.code())
    });
    assert_eq!(failed, Some("session_busy"));
}

#[test]
fn a_turn_that_cannot_be_begun_fails_with_the_servers_words() {
    let mut talk = Talk::open(&options());
    talk.prompt(FIRST, "hi", &options());
    let words = "Input exceeds the maximum length of 1048576 characters.";
    talk.refuse("turn/start", words);
    assert_eq!(failure_of(&talk.actions, FIRST), ("invalid_request", words));
    assert_eq!(methods(&talk.prompt(SECOND, "short", &options())), ["turn/start"]);
}
