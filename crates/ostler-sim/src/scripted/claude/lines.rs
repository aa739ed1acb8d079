//! The shapes of Claude's output lines, without `session_id` and `uuid`, which
//! every line gets on its way out. The numbers are made up but add up: each
//! pretended model call costs the same.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::super::answer::Tool;
use super::super::clock;
use super::super::session::Session;

/// Pretended model calls and what they come to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spent {
    pub(super) n_calls: u64,
}

const INPUT: u64 = 100;
const CACHE_CREATION: u64 = 20;
const CACHE_READ: u64 = 30;
const OUTPUT: u64 = 7;
const MICRODOLLARS: u64 = 646;

impl Spent {
    fn cost_usd(self) -> f64 {
        (self.n_calls * MICRODOLLARS) as f64 / 1e6
    }

    fn usage(self) -> Value {
        let n = self.n_calls;
        json!({
            "input_tokens": n * INPUT,
            "cache_creation_input_tokens": n * CACHE_CREATION,
            "cache_read_input_tokens": n * CACHE_READ,
            "output_tokens": n * OUTPUT,
            "output_tokens_details": {"thinking_tokens": 0},
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": "standard",
            "cache_creation": {
                "ephemeral_1h_input_tokens": 0,
                "ephemeral_5m_input_tokens": n * CACHE_CREATION,
            },
            "inference_geo": "",
            "iterations": [],
            "speed": "standard",
        })
    }

    pub(super) fn by_model(self, model: &str) -> Value {
        let n = self.n_calls;
        let usage = json!({
            "inputTokens": n * INPUT,
            "outputTokens": n * OUTPUT,
            "cacheReadInputTokens": n * CACHE_READ,
            "cacheCreationInputTokens": n * CACHE_CREATION,
            "webSearchRequests": 0,
            "costUSD": self.cost_usd(),
            "contextWindow": 200_000,
            "maxOutputTokens": 32_000,
            "thinkingTokens": 0,
            "costBasis": "unknown",
        });
        Value::Object(Map::from_iter([(model.to_owned(), usage)]))
    }
}

pub(super) fn init(session: &Session, cwd: &Path, permission_mode: &str, version: &str) -> Value {
    json!({
        "type": "system",
        "subtype": "init",
        "cwd": cwd.to_string_lossy(),
        "tools": ["Bash"],
        "mcp_servers": [],
        "model": session.model,
        "permissionMode": permission_mode,
        "slash_commands": [],
        "apiKeySource": "none",
        "claude_code_version": version,
        "output_style": "default",
        "agents": [],
        "skills": [],
        "plugins": [],
        "capabilities": [],
        "original_cwd": session.cwd.to_string_lossy(),
        "additional_directories": [],
    })
}

pub(super) fn requesting() -> Value {
    json!({"type": "system", "subtype": "status", "status": "requesting"})
}

/// The one content of a message.
#[derive(Debug, Clone, Copy)]
pub(super) enum Block<'a> {
    Text(&'a str),
    ToolUse { id: &'a str, tool: &'a Tool },
}

impl Block<'_> {
    /// What the deltas of the block add up to.
    pub(super) fn content(self) -> String {
        match self {
            Self::Text(text) => text.to_owned(),
            Self::ToolUse { tool, .. } => input(tool).to_string(),
        }
    }

    fn whole(self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::ToolUse { id, tool } => tool_use(id, &input(tool)),
        }
    }

    fn empty(self) -> Value {
        match self {
            Self::Text(_) => json!({"type": "text", "text": ""}),
            Self::ToolUse { id, .. } => tool_use(id, &json!({})),
        }
    }

    fn delta(self, piece: &str) -> Value {
        match self {
            Self::Text(_) => json!({"type": "text_delta", "text": piece}),
            Self::ToolUse { .. } => json!({"type": "input_json_delta", "partial_json": piece}),
        }
    }

    fn stop_reason(self) -> &'static str {
        match self {
            Self::Text(_) => "end_turn",
            Self::ToolUse { .. } => "tool_use",
        }
    }
}

fn input(tool: &Tool) -> Value {
    json!({"command": tool.command, "description": tool.description})
}

fn tool_use(id: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": input})
}

pub(super) fn tool_result(id: &str, tool: &Tool) -> Value {
    let content = json!({
        "type": "tool_result", "tool_use_id": id, "content": tool.output, "is_error": false,
    });
    json!({
        "type": "user",
        "message": {"role": "user", "content": [content]},
        "parent_tool_use_id": null,
        "timestamp": clock::rfc3339(clock::now_ms()),
        "tool_use_result": {
            "stdout": tool.output,
            "stderr": "",
            "interrupted": false,
            "isImage": false,
            "noOutputExpected": false,
        },
        "tool_result_meta": [{
            "id": id,
            "permission_decision":
                {"decision": "accept", "source": "config", "reason_type": "mode"},
        }],
    })
}

/// The message that a run of lines belongs to.
pub(super) struct Message<'a> {
    pub(super) id: &'a str,
    pub(super) model: &'a str,
    pub(super) block: Block<'a>,
}

impl Message<'_> {
    pub(super) fn start(&self) -> Value {
        self.event(&json!({"type": "message_start", "message": self.message(&json!([]))}))
    }

    pub(super) fn block_start(&self) -> Value {
        let block = self.block.empty();
        self.event(&json!({"type": "content_block_start", "index": 0, "content_block": block}))
    }

    pub(super) fn delta(&self, piece: &str) -> Value {
        let delta = self.block.delta(piece);
        self.event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
    }

    pub(super) fn block_stop(&self) -> Value {
        self.event(&json!({"type": "content_block_stop", "index": 0}))
    }

    pub(super) fn message_delta(&self) -> Value {
        self.event(&json!({
            "type": "message_delta",
            "delta": {"stop_reason": self.block.stop_reason(), "stop_sequence": null},
            "usage": message_usage(OUTPUT),
        }))
    }

    pub(super) fn stop(&self) -> Value {
        self.event(&json!({"type": "message_stop"}))
    }

    pub(super) fn assistant(&self) -> Value {
        json!({
            "type": "assistant",
            "message": self.message(&json!([self.block.whole()])),
            "parent_tool_use_id": null,
            "timestamp": clock::rfc3339(clock::now_ms()),
            "request_id": "req_scripted",
        })
    }

    /// What there was of it when it was interrupted.
    pub(super) fn aborted(&self, told: &str) -> Value {
        let mut line = self.assistant();
        let content = json!([{"type": "text", "text": told}]);
        add(&mut line, "message", self.message(&content));
        add(&mut line, "aborted", true);
        line
    }

    fn message(&self, content: &Value) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": null,
            "stop_sequence": null,
            "usage": message_usage(1),
        })
    }

    fn event(&self, event: &Value) -> Value {
        json!({
            "type": "stream_event",
            "event": event,
            "parent_tool_use_id": null,
            "api_message_id": self.id,
        })
    }
}

/// Adds a field to a line, which is always an object.
pub(super) fn add(line: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = line {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Where a turn was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interrupted {
    Streaming,
    Tools,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome<'a> {
    Answered(&'a str),
    Interrupted(Interrupted),
}

/// What the model is told of the interruption.
pub(super) fn interrupted(interrupted: Interrupted) -> Value {
    let text = match interrupted {
        Interrupted::Streaming => "[Request interrupted by user]",
        Interrupted::Tools => "[Request interrupted by user for tool use]",
    };
    json!({
        "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": text}]},
        "parent_tool_use_id": null,
        "timestamp": clock::rfc3339(clock::now_ms()),
    })
}

/// What a tool that nobody allowed has to say.
pub(super) const REJECTED: &str = "The user doesn't want to proceed with this tool use.";

pub(super) fn tool_denied(id: &str, why: &str) -> Value {
    let content = json!({
        "type": "tool_result", "tool_use_id": id, "content": why, "is_error": true,
    });
    json!({
        "type": "user",
        "message": {"role": "user", "content": [content]},
        "parent_tool_use_id": null,
        "timestamp": clock::rfc3339(clock::now_ms()),
        "tool_use_result": "User rejected tool use",
        "tool_result_meta": [{"id": id, "non_execution_kind": "user-rejected"}],
    })
}

pub(super) fn can_use_tool(request_id: &str, tool_use_id: &str, tool: &Tool) -> Value {
    json!({
        "type": "control_request",
        "request_id": request_id,
        "request": {
            "subtype": "can_use_tool",
            "tool_name": "Bash",
            "display_name": "Bash",
            "input": input(tool),
            "description": tool.description,
            "permission_suggestions": [],
            "tool_use_id": tool_use_id,
        },
    })
}

pub(super) fn result(
    outcome: Outcome<'_>,
    model: &str,
    spent: Spent,
    total: Spent,
    took: Duration,
) -> Value {
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let mut line = json!({
        "type": "result",
        "num_turns": spent.n_calls,
        "duration_ms": took_ms,
        "duration_api_ms": took_ms,
        "total_cost_usd": total.cost_usd(),
        "usage": spent.usage(),
        "modelUsage": total.by_model(model),
        "permission_denials": [],
        "api_error_status": null,
        "queued_turn_count": 0,
    });
    match outcome {
        Outcome::Answered(text) => {
            add(&mut line, "subtype", "success");
            add(&mut line, "is_error", false);
            add(&mut line, "result", text);
            add(&mut line, "stop_reason", "end_turn");
            add(&mut line, "terminal_reason", "completed");
        }
        Outcome::Interrupted(interrupted) => {
            let reason = match interrupted {
                Interrupted::Streaming => "aborted_streaming",
                Interrupted::Tools => "aborted_tools",
            };
            add(&mut line, "subtype", "error_during_execution");
            add(&mut line, "is_error", true);
            add(&mut line, "stop_reason", Value::Null);
            add(&mut line, "terminal_reason", reason);
            add(&mut line, "errors", json!([]));
        }
    }
    line
}

/// What stream-json shows of a session that could not be resumed; the id in it
/// is the one that was asked for, not a usable one.
pub(super) fn startup_failure(session_id: &str, uuid: &str, error: &str) -> Value {
    let nothing = Spent { n_calls: 0 };
    json!({
        "type": "result",
        "subtype": "error_during_execution",
        "is_error": true,
        "duration_ms": 0,
        "duration_api_ms": 0,
        "num_turns": 0,
        "stop_reason": null,
        "session_id": session_id,
        "total_cost_usd": 0,
        "usage": nothing.usage(),
        "modelUsage": {},
        "permission_denials": [],
        "uuid": uuid,
        "errors": [error],
        "result_index": 0,
    })
}

pub(super) fn control_response(request_id: &str, subtype: &str, model: &str) -> Value {
    let response = match subtype {
        "initialize" => json!({"subtype": "success", "request_id": request_id, "response": {
            "commands": [], "agents": [], "models": [], "account": {}, "capabilities": [],
            "pid": std::process::id(),
        }}),
        "interrupt" => json!({"subtype": "success", "request_id": request_id, "response": {
            "still_queued": [],
        }}),
        "set_model" => json!({"subtype": "success", "request_id": request_id, "response": {
            "model": model,
        }}),
        "set_permission_mode" | "set_max_thinking_tokens" => {
            json!({"subtype": "success", "request_id": request_id, "response": {}})
        }
        other => json!({
            "subtype": "error",
            "request_id": request_id,
            "error": format!("Unsupported control request subtype: {other}"),
            "error_code": "unsupported_request",
        }),
    };
    json!({"type": "control_response", "response": response})
}

fn message_usage(output_tokens: u64) -> Value {
    json!({
        "input_tokens": INPUT,
        "cache_creation_input_tokens": CACHE_CREATION,
        "cache_read_input_tokens": CACHE_READ,
        "cache_creation": {
            "ephemeral_5m_input_tokens": CACHE_CREATION,
            "ephemeral_1h_input_tokens": 0,
        },
        "service_tier": "standard",
        "output_tokens": output_tokens,
    })
}
