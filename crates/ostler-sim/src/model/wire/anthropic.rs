//! Anthropic's Messages API.

use serde_json::{Value, json};

use super::{Exchange, Refused, Wire, content_texts, event, list_at, set, text_at};
use crate::model::conversation::{Conversation, Entry, Incoming, Tool};
use crate::model::pace::{Piece, chunks};
use crate::model::reply::{Answer, Block, Refusal, Stop, ToolCall, ToolInput, Usage};

/// What every call to this API reports as used.
pub const USAGE: Usage =
    Usage { input: 100, cache_write: 20, cache_read: 30, output: 7, reasoning: 0 };

pub(super) const WIRE: Wire = Wire {
    serves: |path| matches!(path, "/v1/messages" | "/messages"),
    request_id_header: "request-id",
    charge: USAGE.with_cache_apart(),
    read,
    plain,
    stream,
    stream_error,
    refuse_in_stream: |_, _| None,
    refuse,
};

fn read(incoming: Incoming<'_>) -> Conversation {
    let body = incoming.body;
    let mut conversation = Conversation {
        session: incoming.headers.get("x-claude-code-session-id").cloned().unwrap_or_default(),
        model: text_at(body, "model").to_owned(),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        system: content_texts(body, "system").into_iter().map(str::to_owned).collect(),
        tools: list_at(body, "tools").iter().map(|tool| Tool::read(tool, "input_schema")).collect(),
        ..Conversation::default()
    };
    for message in list_at(body, "messages") {
        match text_at(message, "role") {
            "user" => conversation.entries.extend(user_entries(message)),
            "system" => {
                for text in content_texts(message, "content") {
                    match steered(text) {
                        Some(prompt) => conversation.entries.push(Entry::User(prompt.to_owned())),
                        None => conversation.system.push(text.to_owned()),
                    }
                }
            }
            _ => {}
        }
    }
    conversation
}

/// Returns the prompt that a user sent while a tool ran; Claude passes it on
/// inside a system message.
fn steered(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("The user sent a new message while you were working:\n")?;
    Some(
        rest.rsplit_once("\n\nThis is how Claude Code surfaces").map_or(rest, |(prompt, _)| prompt),
    )
}

fn user_entries(message: &Value) -> Vec<Entry> {
    if let Some(text) = message.get("content").and_then(Value::as_str) {
        return vec![Entry::User(text.to_owned())];
    }
    list_at(message, "content")
        .iter()
        .filter_map(|block| match text_at(block, "type") {
            "text" => Some(Entry::User(text_at(block, "text").to_owned())),
            "tool_result" => Some(Entry::ToolResult(content_texts(block, "content").concat())),
            _ => None,
        })
        .collect()
}

fn plain(answer: &Answer, exchange: Exchange<'_>) -> Value {
    let content: Vec<Value> = answer
        .blocks
        .iter()
        .enumerate()
        .map(|(index, block)| match block {
            Block::Thinking(text) => {
                json!({ "type": "thinking", "thinking": text, "signature": SIGNATURE })
            }
            Block::Text(text) => json!({ "type": "text", "text": text }),
            Block::Tool(call) => tool_use(call, exchange, index, input(call)),
        })
        .collect();
    let mut message = message(exchange, USAGE.output);
    set(&mut message, "content", Value::Array(content));
    set(&mut message, "stop_reason", json!(stop_reason(answer)));
    message
}

fn stream(answer: &Answer, exchange: Exchange<'_>) -> Vec<Piece> {
    let mut pieces = vec![
        frame(json!({ "type": "message_start", "message": message(exchange, 1) })),
        frame(json!({ "type": "ping" })),
    ];
    for (index, block) in answer.blocks.iter().enumerate() {
        let start = match block {
            Block::Thinking(_) => json!({ "type": "thinking", "thinking": "", "signature": "" }),
            Block::Text(_) => json!({ "type": "text", "text": "" }),
            Block::Tool(call) => tool_use(call, exchange, index, json!({})),
        };
        pieces.push(frame(
            json!({ "type": "content_block_start", "index": index, "content_block": start }),
        ));
        pieces.extend(deltas(block).into_iter().map(|delta| {
            let data = json!({ "type": "content_block_delta", "index": index, "delta": delta });
            Piece::Delta(sse(&data))
        }));
        pieces.push(frame(json!({ "type": "content_block_stop", "index": index })));
    }
    pieces.push(frame(json!({
        "type": "message_delta",
        "delta": { "stop_reason": stop_reason(answer), "stop_sequence": null },
        "usage": usage(USAGE.output),
    })));
    pieces.push(frame(json!({ "type": "message_stop" })));
    pieces
}

fn deltas(block: &Block) -> Vec<Value> {
    match block {
        Block::Thinking(text) => chunks(text)
            .into_iter()
            .map(|chunk| json!({ "type": "thinking_delta", "thinking": chunk }))
            .chain([json!({ "type": "signature_delta", "signature": SIGNATURE })])
            .collect(),
        Block::Text(text) => chunks(text)
            .into_iter()
            .map(|chunk| json!({ "type": "text_delta", "text": chunk }))
            .collect(),
        Block::Tool(call) => chunks(&input(call).to_string())
            .into_iter()
            .map(|chunk| json!({ "type": "input_json_delta", "partial_json": chunk }))
            .collect(),
    }
}

fn stream_error(exchange: Exchange<'_>) -> String {
    sse(&error("overloaded_error", "Overloaded", exchange))
}

fn refuse(refusal: Refusal, exchange: Exchange<'_>) -> Refused {
    let model = exchange.model;
    let (status, kind, message): (u16, &str, String) = match refusal {
        Refusal::BadRequest => (
            400,
            "invalid_request_error",
            "messages.0.content: the simulated model rejects this request".to_owned(),
        ),
        Refusal::Quota => (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & \
             Billing to upgrade or purchase credits."
                .to_owned(),
        ),
        Refusal::ContextTooLong => (
            400,
            "invalid_request_error",
            "prompt is too long: 212345 tokens > 200000 maximum".to_owned(),
        ),
        Refusal::NoKey => (401, "authentication_error", "x-api-key header is required".to_owned()),
        Refusal::WrongKey | Refusal::Unauthenticated => {
            (401, "authentication_error", "invalid x-api-key".to_owned())
        }
        Refusal::Forbidden => (
            403,
            "permission_error",
            "Your API key does not have permission to use the specified resource.".to_owned(),
        ),
        Refusal::UnknownModel => (404, "not_found_error", format!("model: {model}")),
        Refusal::TooLarge => {
            (413, "request_too_large", "Request exceeds the maximum size".to_owned())
        }
        Refusal::RateLimited { .. } => (
            429,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 30,000 input tokens per \
             minute."
                .to_owned(),
        ),
        Refusal::ServerError => (500, "api_error", "Internal server error".to_owned()),
        Refusal::Unavailable => (503, "api_error", "Service unavailable".to_owned()),
        Refusal::Overloaded => (529, "overloaded_error", "Overloaded".to_owned()),
    };
    Refused { status, body: error(kind, &message, exchange) }
}

fn error(kind: &str, message: &str, exchange: Exchange<'_>) -> Value {
    json!({
        "type": "error",
        "error": { "type": kind, "message": message },
        "request_id": format!("req_sim{:06}", exchange.number),
    })
}

fn stop_reason(answer: &Answer) -> &'static str {
    match answer.stop {
        Stop::End if answer.has_tool_calls() => "tool_use",
        Stop::End => "end_turn",
        Stop::Length => "max_tokens",
        Stop::Refusal | Stop::Filter => "refusal",
    }
}

/// The message as it is known before it has any content.
fn message(exchange: Exchange<'_>, n_output: u64) -> Value {
    json!({
        "id": format!("msg_sim{:06}", exchange.number),
        "type": "message",
        "role": "assistant",
        "model": exchange.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(n_output),
    })
}

fn usage(n_output: u64) -> Value {
    json!({
        "input_tokens": USAGE.input,
        "cache_creation_input_tokens": USAGE.cache_write,
        "cache_read_input_tokens": USAGE.cache_read,
        "output_tokens": n_output,
        "service_tier": "standard",
    })
}

fn tool_use(call: &ToolCall, exchange: Exchange<'_>, index: usize, input: Value) -> Value {
    let id = format!("toolu_sim{:06}_{index}", exchange.number);
    json!({ "type": "tool_use", "id": id, "name": call.name, "input": input })
}

/// This API has no tools that take free text.
fn input(call: &ToolCall) -> Value {
    match &call.input {
        ToolInput::Json(value) => value.clone(),
        ToolInput::Text(text) => json!({ "input": text }),
    }
}

fn frame(data: Value) -> Piece {
    Piece::Frame(sse(&data))
}

fn sse(data: &Value) -> String {
    event(text_at(data, "type"), data)
}

const SIGNATURE: &str = "c2ltdWxhdGVk";
