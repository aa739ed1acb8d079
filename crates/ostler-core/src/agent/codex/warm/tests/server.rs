//! The server that a test plays: what it can be made to say.

use std::sync::LazyLock;

use super::*;
use crate::{
    agent::{
        Dialect,
        codex::{SPEC, warm::WARM},
        testing::{recorded_lines, warm_launch_of},
    },
    protocol::{jsonrpc::Form, testing::Side},
};

const NOTIFICATIONS: &[&str] = &[
    "turn/started",
    "turn/completed",
    "item/started",
    "item/completed",
    "item/agentMessage/delta",
    "item/reasoning/summaryTextDelta",
    "thread/tokenUsage/updated",
    "thread/closed",
    "thread/started",
    "turn/plan/updated",
    "error",
    "warning",
    "brand/new",
];

const REQUESTS: &[&str] = &[
    "item/commandExecution/requestApproval",
    "item/fileChange/requestApproval",
    "item/permissions/requestApproval",
    "item/tool/requestUserInput",
    "mcpServer/elicitation/request",
    "brand/new",
];

/// The notifications and requests that the real server sent.
static RECORDED: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let mut lines = recorded_lines("codex", "server->client");
    lines.retain(|line| line.get("method").is_some());
    assert!(lines.len() > 100);
    lines
});

/// The server.
pub(super) struct Codex;

impl Side for Codex {
    const FORM: Form = Form::Bare;
    const FIELDS: &'static [&'static str] = &[
        "threadId",
        "turnId",
        "turn",
        "id",
        "item",
        "type",
        "itemId",
        "delta",
        "status",
        "error",
        "message",
        "codexErrorInfo",
        "willRetry",
        "tokenUsage",
        "total",
        "inputTokens",
        "plan",
        "params",
        "result",
        "thread",
        "method",
    ];
    const STDERR: &'static [&'static str] = &["", "Error: something"];
    const NAMES: [&'static str; 2] = ["/params/threadId", "/thread/id"];

    fn dialect() -> Box<dyn Dialect> {
        (WARM.dialect)(&warm_launch_of(&SPEC, &options(), &Open::New))
    }

    fn recorded() -> &'static [Value] {
        &RECORDED
    }

    fn resumed(number: u32) -> Open {
        let id = thread_name(u64::from(number) + 1000);
        Open::Resume(Box::new(Memo::of_id("codex", id)))
    }

    fn options(choice: usize) -> Options {
        if choice.is_multiple_of(2) { asking() } else { options() }
    }

    fn result(asked: &Value, choice: usize) -> Value {
        let named = asked["params"]["threadId"].as_str().unwrap_or_default();
        match asked["method"].as_str().unwrap() {
            "thread/start" => thread(&thread_name(asked["id"].as_u64().unwrap())),
            "thread/resume" => thread(named),
            "thread/unsubscribe" if !choice.is_multiple_of(3) => {
                json!({ "status": "unsubscribed" })
            }
            "turn/start" => json!({ "turn": { "id": turn_name(named) } }),
            _ => json!({}),
        }
    }

    /// Adds to a thread that it is held to what was asked for.
    fn complete(mut result: Value, asked: &Value) -> Value {
        if result["thread"].is_object() && result.get("sandbox").is_none() {
            let params = &asked["params"];
            result["approvalPolicy"] = params["approvalPolicy"].clone();
            result["sandbox"] = sandbox(params["sandbox"].as_str().unwrap());
        }
        result
    }

    fn request(session: &str, choice: usize, value: Value) -> (&'static str, Value) {
        let questions = json!([{ "id": "q", "question": "?" }, { "id": "r", "question": "?" }]);
        let params = json!({ "threadId": session, "turnId": turn_name(session),
            "command": value, "questions": questions, "permissions": {} });
        (REQUESTS[choice % REQUESTS.len()], params)
    }

    fn notification(session: &str, choice: usize, value: Value) -> (&'static str, Value) {
        let turn = turn_name(session);
        let status = ["completed", "failed", "interrupted", "odd", "completed"][choice % 5];
        let body = json!({ "id": turn, "status": status, "error": value });
        let params = json!({ "threadId": session, "turnId": turn, "turn": body, "item": value,
            "itemId": "m", "delta": "x", "error": value, "willRetry": choice.is_multiple_of(3),
            "plan": value, "tokenUsage": { "total": value } });
        (NOTIFICATIONS[choice % NOTIFICATIONS.len()], params)
    }

    fn address(message: &mut Value, session: &str) {
        let params = &mut message["params"];
        params["threadId"] = session.into();
        params["turnId"] = turn_name(session).into();
        if params["turn"].is_object() {
            params["turn"]["id"] = turn_name(session).into();
        }
    }

    fn resolution(id: &Value) -> Option<(&'static str, Value)> {
        Some(("serverRequest/resolved", json!({ "requestId": id })))
    }
}

/// A thread as the server tells it.
pub(super) fn thread(id: &str) -> Value {
    let path = format!("/home/user/.codex/sessions/{id}.jsonl");
    json!({ "thread": { "id": id, "path": path }, "model": "gpt-5.5" })
}

/// A sandbox as the server tells it.
pub(super) fn sandbox(asked: &str) -> Value {
    match asked {
        "danger-full-access" => json!({ "type": "dangerFullAccess" }),
        "workspace-write" => json!({ "type": "workspaceWrite", "writableRoots": ["/extra"] }),
        "read-only" => json!({ "type": "readOnly", "networkAccess": false }),
        other => panic!("what is {other}?"),
    }
}

fn thread_name(number: u64) -> String {
    format!("01a1e08f-eb0e-76c1-b501-{number:012}")
}

/// Turns of one thread share a name here, so that late lines hit the next one.
fn turn_name(thread: &str) -> String {
    format!("turn of {thread}")
}
