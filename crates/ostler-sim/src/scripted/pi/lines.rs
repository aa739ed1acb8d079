//! The lines of Pi's `--mode json` and `--mode rpc`, as version 0.87 prints them, with usage
//! that is the same for every pretended model call.

use serde_json::{Value, json};

use super::super::answer::Tool;
use super::super::clock;
use super::super::session::Session;

pub(super) fn session(session: &Session) -> Value {
    json!({
        "type": "session", "version": 3, "id": session.id,
        "timestamp": clock::rfc3339(clock::now_ms()), "cwd": session.cwd,
    })
}

/// A line that says nothing but its kind.
pub(super) fn of(kind: &str) -> Value {
    json!({ "type": kind })
}

pub(super) fn message(kind: &str, message: &Value) -> Value {
    json!({ "type": kind, "message": message })
}

pub(super) fn system(session: &Session) -> Value {
    json!({
        "role": "system", "content": "", "timestamp": clock::now_ms(), "toolsAdded": [],
        "sections": { "cwd": format!("<cwd>\n{}\n</cwd>", session.cwd.display()) },
    })
}

pub(super) fn user(prompt: &str) -> Value {
    json!({
        "role": "user", "content": [{ "type": "text", "text": prompt }],
        "timestamp": clock::now_ms(),
    })
}

pub(super) fn tool_execution(id: &str, tool: &Tool) -> [Value; 3] {
    let arguments = json!({ "command": tool.command });
    [
        json!({
            "type": "tool_execution_start", "toolCallId": id, "toolName": "bash",
            "args": arguments,
        }),
        json!({
            "type": "tool_execution_update", "toolCallId": id, "toolName": "bash",
            "args": arguments, "partialResult": { "content": output(tool), "details": {} },
        }),
        json!({
            "type": "tool_execution_end", "toolCallId": id, "toolName": "bash",
            "result": { "content": output(tool) }, "isError": false,
        }),
    ]
}

pub(super) fn tool_result(id: &str, tool: &Tool) -> Value {
    json!({
        "role": "toolResult", "toolCallId": id, "toolName": "bash", "content": output(tool),
        "isError": false, "timestamp": clock::now_ms(),
    })
}

pub(super) fn tool_aborted(id: &str) -> Value {
    json!({
        "type": "tool_execution_end", "toolCallId": id, "toolName": "bash",
        "result": { "content": aborted_output(), "details": {} }, "isError": true,
    })
}

pub(super) fn tool_result_aborted(id: &str) -> Value {
    json!({
        "role": "toolResult", "toolCallId": id, "toolName": "bash", "content": aborted_output(),
        "isError": true, "timestamp": clock::now_ms(),
    })
}

fn aborted_output() -> Value {
    json!([{ "type": "text", "text": "Command aborted" }])
}

/// The answer to a command, which repeats its id if it has one.
pub(super) fn response(command: &Value, success: bool) -> Value {
    let mut line = json!({ "type": "response", "command": command["type"], "success": success });
    if let (Value::Object(fields), Some(id)) = (&mut line, command.get("id")) {
        fields.insert("id".to_owned(), id.clone());
    }
    line
}

fn output(tool: &Tool) -> Value {
    json!([{ "type": "text", "text": format!("{}\n", tool.output) }])
}

pub(super) fn turn_end(message: &Value, tool_results: &[Value]) -> Value {
    json!({ "type": "turn_end", "message": message, "toolResults": tool_results })
}

pub(super) fn agent_end(messages: &[Value]) -> Value {
    json!({ "type": "agent_end", "messages": messages, "willRetry": false })
}

/// One answer of the pretended model, which is one block.
pub(super) struct Assistant<'a> {
    pub(super) model: &'a str,
    pub(super) provider: &'a str,
    pub(super) block: Block<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum Block<'a> {
    Text(&'a str),
    Tool { id: &'a str, tool: &'a Tool },
}

impl Assistant<'_> {
    pub(super) fn begun(&self) -> Value {
        self.message(json!([]), "pending")
    }

    pub(super) fn whole(&self) -> Value {
        match self.block {
            Block::Text(text) => self.message(json!([{ "type": "text", "text": text }]), "stop"),
            Block::Tool { id, tool } => self.message(json!([tool_call(id, tool)]), "toolUse"),
        }
    }

    /// What there was of it when somebody stopped it.
    pub(super) fn aborted(&self, told: &str) -> Value {
        let content = match self.block {
            Block::Text(_) if !told.is_empty() => json!([{ "type": "text", "text": told }]),
            Block::Text(_) | Block::Tool { .. } => json!([]),
        };
        let mut message = self.message(content, "aborted");
        if let Value::Object(fields) = &mut message {
            fields.insert("errorMessage".to_owned(), "This operation was aborted".into());
        }
        message
    }

    fn message(&self, content: Value, stop: &str) -> Value {
        json!({
            "role": "assistant", "content": content, "api": "openai-completions",
            "provider": self.provider, "model": self.model, "usage": usage(),
            "stopReason": stop, "timestamp": clock::now_ms(),
        })
    }

    /// What is streamed: the text, or the arguments of the tool.
    pub(super) fn content(&self) -> String {
        match self.block {
            Block::Text(text) => text.to_owned(),
            Block::Tool { tool, .. } => json!({ "command": tool.command }).to_string(),
        }
    }

    pub(super) fn start(&self) -> Value {
        update(match self.block {
            Block::Text(_) => json!({ "type": "text_start", "contentIndex": 0 }),
            Block::Tool { id, .. } => {
                json!({ "type": "toolcall_start", "contentIndex": 0, "id": id, "toolName": "bash" })
            }
        })
    }

    pub(super) fn delta(&self, piece: &str) -> Value {
        let kind = match self.block {
            Block::Text(_) => "text_delta",
            Block::Tool { .. } => "toolcall_delta",
        };
        update(json!({ "type": kind, "contentIndex": 0, "delta": piece }))
    }

    pub(super) fn end(&self) -> Value {
        update(match self.block {
            Block::Text(text) => json!({ "type": "text_end", "contentIndex": 0, "content": text }),
            Block::Tool { id, tool } => {
                json!({ "type": "toolcall_end", "contentIndex": 0, "toolCall": tool_call(id, tool) })
            }
        })
    }
}

fn update(event: Value) -> Value {
    json!({ "type": "message_update", "usage": usage(), "assistantMessageEvent": event })
}

fn tool_call(id: &str, tool: &Tool) -> Value {
    json!({
        "type": "toolCall", "id": id, "name": "bash", "arguments": { "command": tool.command },
    })
}

fn usage() -> Value {
    json!({
        "input": 200, "output": 28, "cacheRead": 900, "cacheWrite": 0, "reasoning": 8,
        "totalTokens": 1128,
        "cost": {
            "input": 0.0006, "output": 0.00042, "cacheRead": 0.00027, "cacheWrite": 0,
            "total": 0.00129,
        },
    })
}
