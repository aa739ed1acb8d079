//! The shapes of what the server tells of a turn.

use serde_json::{Value, json};

use super::super::super::answer::Tool;
use super::super::super::clock;

/// A prompt as a message.
pub(super) fn user(session: &str, id: &str) -> Value {
    let now = clock::now_ms();
    json!({
        "id": id, "role": "user", "sessionID": session, "time": { "created": now },
        "agent": "build", "model": { "providerID": "scripted", "modelID": "scripted" },
    })
}

/// A message of the pretended model's.
pub(super) fn assistant(session: &str, id: &str, parent: &str) -> Value {
    json!({
        "id": id, "parentID": parent, "role": "assistant", "mode": "build", "agent": "build",
        "modelID": "scripted", "providerID": "scripted", "sessionID": session, "cost": 0,
        "time": { "created": clock::now_ms() },
    })
}

/// The same, complete.
pub(super) fn completed(mut message: Value, finish: Option<&str>, error: Option<&Value>) -> Value {
    if let Value::Object(fields) = &mut message {
        let now = clock::now_ms();
        fields.insert("time".to_owned(), json!({ "created": now, "completed": now }));
        if let Some(finish) = finish {
            fields.insert("finish".to_owned(), finish.into());
        }
        if let Some(error) = error {
            fields.insert("error".to_owned(), error.clone());
        }
    }
    message
}

pub(super) fn text(text: &str, is_done: bool) -> Value {
    let now = clock::now_ms();
    let time = if is_done { json!({ "start": now, "end": now }) } else { json!({ "start": now }) };
    json!({ "type": "text", "text": text, "time": time })
}

/// The numbers are made up, but the same for every pretended model call.
pub(super) fn step_finish(reason: &str) -> Value {
    json!({
        "type": "step-finish", "reason": reason, "cost": 0.00129,
        "tokens": {
            "total": 1128, "input": 200, "output": 20, "reasoning": 8,
            "cache": { "write": 0, "read": 900 },
        },
    })
}

/// How far a call of a tool has come.
pub(super) enum Stage<'a> {
    Pending,
    Running,
    Completed,
    Failed(&'a str),
}

pub(super) fn tool(call: &str, tool: Tool, stage: &Stage<'_>) -> Value {
    let now = clock::now_ms();
    let input = json!({ "command": tool.command, "description": tool.description });
    let output = format!("{}\n", tool.output);
    let time = json!({ "start": now, "end": now });
    let state = match stage {
        Stage::Pending => json!({ "status": "pending", "input": {}, "raw": "" }),
        Stage::Running => {
            json!({ "status": "running", "input": input, "time": { "start": now } })
        }
        Stage::Completed => json!({
            "status": "completed", "input": input, "output": output, "title": tool.command,
            "metadata": { "output": output, "exit": 0, "truncated": false }, "time": time,
        }),
        Stage::Failed(why) => {
            json!({ "status": "error", "input": input, "error": why, "time": time })
        }
    };
    json!({ "type": "tool", "tool": "bash", "callID": call, "state": state })
}

/// What is listed of a request for permission.
pub(super) fn permission(session: &str, id: &str, at: (&str, &str), tool: Tool) -> Value {
    let (message, call) = at;
    json!({
        "id": id, "sessionID": session, "permission": "bash", "patterns": [tool.command],
        "metadata": { "command": tool.command }, "always": [tool.command],
        "tool": { "messageID": message, "callID": call },
    })
}

/// What is listed of a question.
pub(super) fn question(session: &str, id: &str) -> Value {
    let options = json!([
        { "label": "Blue", "description": "like the sky" },
        { "label": "Green", "description": "like the grass" },
    ]);
    let question = json!({ "question": "Which colour?", "header": "Colour", "options": options });
    json!({ "id": id, "sessionID": session, "questions": [question] })
}

pub(super) fn status(session: &str, kind: &str) -> Value {
    json!({ "sessionID": session, "status": { "type": kind } })
}

/// What is told of a call of the model that failed.
pub(super) fn api_error() -> Value {
    let text = "The scripted model was asked to fail.";
    json!({ "name": "APIError", "data": { "message": text, "statusCode": 400, "isRetryable": false } })
}

pub(super) fn aborted() -> Value {
    json!({ "name": "MessageAbortedError", "data": { "message": "Aborted" } })
}
