//! The shapes of what `codex app-server` tells.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::super::answer::Tool;
use super::super::super::clock;
use super::super::super::session::Session;

const INPUT: u64 = 1200;
const CACHED: u64 = 1000;
const OUTPUT: u64 = 34;
const REASONING: u64 = 12;

pub(super) fn notification(method: &str, params: Value) -> Value {
    json!({ "method": method, "params": params, "emittedAtMs": clock::now_ms() })
}

/// Says whose turn it is about.
pub(super) fn name(params: &mut Value, thread: &str, turn: &str) {
    if let Value::Object(fields) = params {
        fields.insert("threadId".to_owned(), thread.into());
        fields.insert("turnId".to_owned(), turn.into());
    }
}

/// The text of what a turn is begun or steered with.
pub(super) fn prompt(params: &Value) -> String {
    let parts = params.get("input").and_then(Value::as_array);
    let texts = parts.into_iter().flatten().filter_map(|part| part.get("text")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

pub(super) fn opened(session: &Session, path: &Path) -> Value {
    json!({
        "thread": {
            "id": session.id, "sessionId": session.id, "path": path, "preview": "",
            "ephemeral": false, "status": { "type": "idle" }, "cwd": session.cwd, "turns": [],
        },
        "model": session.model, "modelProvider": "scripted", "cwd": session.cwd,
    })
}

pub(super) fn status(thread: &str, kind: &str) -> Value {
    let mut status = json!({ "type": kind });
    if let (Value::Object(fields), "active") = (&mut status, kind) {
        fields.insert("activeFlags".to_owned(), json!([]));
    }
    json!({ "threadId": thread, "status": status })
}

pub(super) fn turn(id: &str, status: &str, items: &Value, took_ms: Option<u64>) -> Value {
    json!({
        "id": id, "rootTurnId": id, "items": items, "itemsView": "summary", "status": status,
        "error": null, "durationMs": took_ms,
    })
}

pub(super) fn user_message(id: &str, prompt: &str) -> Value {
    json!({
        "type": "userMessage", "id": id,
        "content": [{ "type": "text", "text": prompt, "text_elements": [] }],
    })
}

pub(super) fn agent_message(id: &str, text: &str) -> Value {
    json!({ "type": "agentMessage", "id": id, "text": text, "phase": null })
}

pub(super) fn token_usage(n_calls: u64) -> Value {
    let of = |n: u64| {
        json!({
            "totalTokens": n * (INPUT + OUTPUT), "inputTokens": n * INPUT,
            "cachedInputTokens": n * CACHED, "cacheWriteInputTokens": 0,
            "outputTokens": n * OUTPUT, "reasoningOutputTokens": n * REASONING,
        })
    };
    json!({ "total": of(n_calls), "last": of(1), "modelContextWindow": 272_000 })
}

/// A command that is only told of.
pub(super) struct Command {
    pub(super) id: String,
    pub(super) tool: Tool,
    pub(super) cwd: PathBuf,
}

impl Command {
    pub(super) fn started(&self) -> Value {
        self.item("inProgress", None)
    }

    pub(super) fn completed(&self) -> Value {
        self.item("completed", Some((format!("{}\n", self.tool.output), 0)))
    }

    pub(super) fn declined(&self) -> Value {
        self.item("declined", None)
    }

    pub(super) fn question(&self) -> Value {
        json!({
            "kind": "command", "itemId": self.id, "reason": self.tool.description,
            "command": self.line(), "cwd": self.cwd, "commandActions": [],
            "availableDecisions": ["accept", "cancel"],
        })
    }

    fn item(&self, status: &str, ended: Option<(String, i32)>) -> Value {
        let (output, exit_code) = ended.unzip();
        json!({
            "type": "commandExecution", "id": self.id, "command": self.line(), "cwd": self.cwd,
            "status": status, "commandActions": [], "aggregatedOutput": output,
            "exitCode": exit_code, "durationMs": exit_code.map(|_| 0),
        })
    }

    fn line(&self) -> String {
        format!("/bin/bash -lc '{}'", self.tool.command)
    }
}
