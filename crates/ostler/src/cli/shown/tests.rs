//! Stored events are shown like those that happen.

use ostler_core::{
    agent::AgentName,
    event::{Mode, Started, StopReason, ToolResult, TurnId, TurnReport, Usage},
    failure::Failure,
    permission::{DecidedBy, Decision},
};
use serde_json::json;

use super::*;

fn report(error: Option<Failure>) -> EventBody {
    let text = error.as_ref().map_or("Done.", |failure| failure.response_text()).to_owned();
    EventBody::Complete(Box::new(TurnReport {
        agent: AgentName::new("codex"),
        session_id: None,
        response_text: Some(text),
        error,
        exit_code: None,
        duration_ms: 1,
        model: None,
        stop_reason: Some(StopReason::EndTurn),
        mode: Mode::Warm,
        usage: Usage::default(),
        truncated: false,
        memo: None,
        meta: serde_json::Map::new(),
    }))
}

fn started(trigger: Trigger) -> EventBody {
    EventBody::Started(Started {
        agent: AgentName::new("codex"),
        version: None,
        mode: Mode::Warm,
        session_id: None,
        model: None,
        cwd: "/".into(),
        resumed: false,
        attempt: 1,
        trigger,
    })
}

fn tool_result(is_error: bool) -> EventBody {
    let result =
        ToolResult { tool: "Bash".into(), output: "no".into(), is_error, ..ToolResult::default() };
    EventBody::ToolResult(result)
}

fn asks(kind: PermissionKind) -> EventBody {
    let input = Some(json!({ "command": "rm a" }));
    let mut asks = Permission::new(kind, "Bash", "rm a".into(), input).named("r1");
    asks.expires_at = Some("2026-01-02T03:04:05Z".parse().unwrap());
    EventBody::Permission(asks)
}

fn every_sort() -> Vec<EventBody> {
    let text = || "a\nb".to_owned();
    let resolved =
        |by| Status::PermissionResolved { request: "r1".into(), decision: Decision::Deny, by };
    let mut bodies = vec![
        started(Trigger::Prompt),
        started(Trigger::Agent),
        EventBody::Output { text: text(), block: "1".into() },
        EventBody::Thinking { text: text(), block: "1".into() },
        EventBody::ToolUse { id: "t".into(), tool: "Bash".into(), input: None, title: text() },
        tool_result(true),
        tool_result(false),
        EventBody::Usage(Usage::of_tokens(1, 2, 3)),
        EventBody::Error(Failure::new(FailureKind::Auth, "no key")),
        report(None),
        report(Some(Failure::timed_out("after 10 s"))),
        report(Some(Failure::new(FailureKind::Auth, "no key"))),
    ];
    let kinds = [
        PermissionKind::Command,
        PermissionKind::Edit,
        PermissionKind::Read,
        PermissionKind::Network,
        PermissionKind::Question,
        PermissionKind::Other,
    ];
    bodies.extend(kinds.map(asks));
    let deciders = [
        DecidedBy::User,
        DecidedBy::Session,
        DecidedBy::Timeout,
        DecidedBy::Cancel,
        DecidedBy::Agent,
    ];
    let statuses = [
        Status::Session { session_id: "s".into() },
        Status::Retry { attempt: None, max: None, delay_ms: None, text: text() },
        Status::Warning { text: text() },
        Status::Retracted { block: "1".into() },
        Status::Queued { text: text() },
        Status::Steered { text: text() },
        Status::Compacted { text: text() },
    ];
    bodies.extend(deciders.map(resolved).map(EventBody::Status));
    bodies.extend(statuses.map(EventBody::Status));
    bodies
}

#[test]
fn a_stored_event_is_shown_like_the_one_that_happened() {
    for parent in [None, Some("tool".to_owned())] {
        for body in every_sort() {
            let at = jiff::Timestamp::UNIX_EPOCH;
            let event = Event { seq: 1, at, turn: TurnId::new(), parent: parent.clone(), body };
            let stored = serde_json::to_value(&event).unwrap();
            assert_eq!(Shown::read(&stored), Shown::of(&event), "{stored}");
        }
    }
}

#[test]
fn the_id_of_a_stored_request_is_read_beside_the_agents_own() {
    let stored = json!({ "type": "permission", "request": "r1", "id": "prm_1" });
    let What::Permission { permission, id } = Shown::read(&stored).what else { panic!() };
    assert_eq!((permission.request.as_str(), id), ("r1", Some("prm_1")));
}

#[test]
fn what_is_unknown_or_of_another_type_is_not_shown_and_breaks_nothing() {
    for stored in [
        json!(null),
        json!([]),
        json!({ "type": 7 }),
        json!({ "type": "of tomorrow", "turn": [] }),
        json!({ "type": "tool_result", "is_error": "yes" }),
    ] {
        assert_eq!(Shown::read(&stored).what, What::Other, "{stored}");
    }
    let odd = json!({ "type": "permission", "kind": 1, "options": [1, "a"], "expires_at": {} });
    let What::Permission { permission, .. } = Shown::read(&odd).what else { panic!() };
    assert_eq!((permission.kind, permission.options.len()), (PermissionKind::Other, 1));
    let failed = json!({ "type": "complete", "error": { "kind": "of_tomorrow" } });
    let What::Complete(complete) = Shown::read(&failed).what else { panic!() };
    assert_eq!(complete.failure.unwrap().known_kind(), None);
}
