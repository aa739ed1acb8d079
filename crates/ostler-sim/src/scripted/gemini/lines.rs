//! The lines of Gemini's `stream-json` and the object of its `json`, with usage
//! that is made up but adds up: each pretended model call costs the same.

use serde_json::{Value, json};

use super::super::answer::Tool;
use super::super::clock;
use super::super::session::Session;

pub(super) const SHELL: &str = "run_shell_command";

pub(super) struct Lines<'a> {
    pub(super) session: &'a Session,
}

/// What one run counts at its end.
pub(super) struct Stats {
    pub(super) n_calls: u64,
    pub(super) n_tools: u64,
    pub(super) duration_ms: u64,
}

pub(super) const INPUT: u64 = 400;
const CACHED: u64 = 150;
pub(super) const OUTPUT: u64 = 21;
const THOUGHTS: u64 = 9;

impl Lines<'_> {
    pub(super) fn init(&self) -> Value {
        json!({
            "type": "init", "timestamp": now(), "session_id": self.session.id,
            "model": self.session.model,
        })
    }

    pub(super) fn user(&self, prompt: &str) -> Value {
        json!({ "type": "message", "timestamp": now(), "role": "user", "content": prompt })
    }

    pub(super) fn assistant(&self, piece: &str) -> Value {
        json!({
            "type": "message", "timestamp": now(), "role": "assistant", "content": piece,
            "delta": true,
        })
    }

    pub(super) fn tool_use(&self, id: &str, tool: &Tool) -> Value {
        json!({
            "type": "tool_use", "timestamp": now(), "tool_name": SHELL, "tool_id": id,
            "parameters": { "command": tool.command, "description": tool.description },
        })
    }

    pub(super) fn tool_result(&self, id: &str, tool: &Tool) -> Value {
        json!({
            "type": "tool_result", "timestamp": now(), "tool_id": id, "status": "success",
            "output": tool.output,
        })
    }

    pub(super) fn result(&self, stats: &Stats) -> Value {
        let mut all = stats.tokens();
        let models = json!({ self.session.model.as_str(): all });
        if let Value::Object(fields) = &mut all {
            fields.insert("duration_ms".into(), stats.duration_ms.into());
            fields.insert("tool_calls".into(), stats.n_tools.into());
            fields.insert("models".into(), models);
        }
        json!({ "type": "result", "timestamp": now(), "status": "success", "stats": all })
    }

    pub(super) fn object(&self, text: &str, stats: &Stats) -> Value {
        let n = stats.n_calls;
        let api = json!({
            "totalRequests": n, "totalErrors": 0, "totalLatencyMs": stats.duration_ms,
        });
        let tokens = json!({
            "input": n * (INPUT - CACHED), "prompt": n * INPUT, "candidates": n * OUTPUT,
            "total": n * (INPUT + OUTPUT + THOUGHTS), "cached": n * CACHED,
            "thoughts": n * THOUGHTS, "tool": 0,
        });
        json!({
            "session_id": self.session.id,
            "response": text,
            "stats": {
                "models": { self.session.model.as_str(): { "api": api, "tokens": tokens } },
                "tools": {
                    "totalCalls": stats.n_tools, "totalSuccess": stats.n_tools, "totalFail": 0,
                },
                "files": { "totalLinesAdded": 0, "totalLinesRemoved": 0 },
            },
        })
    }
}

impl Stats {
    /// Thoughts are in the total only, as with the real CLI.
    fn tokens(&self) -> Value {
        let n = self.n_calls;
        json!({
            "total_tokens": n * (INPUT + OUTPUT + THOUGHTS), "input_tokens": n * INPUT,
            "output_tokens": n * OUTPUT, "cached": n * CACHED, "input": n * (INPUT - CACHED),
        })
    }
}

fn now() -> String {
    clock::rfc3339(clock::now_ms())
}
