//! OpenAI's Responses API.

mod refusal;

use serde_json::{Value, json};

use super::{Exchange, Wire, content_texts, event, list_at, openai, set, text_at};
use crate::model::conversation::{Conversation, Entry, Incoming, Tool};
use crate::model::pace::{Piece, chunks};
use crate::model::reply::{Answer, Block, Stop, ToolCall, ToolInput, Usage};

/// What every call to this API reports as used.
pub const USAGE: Usage =
    Usage { input: 1200, cache_write: 0, cache_read: 1000, output: 34, reasoning: 12 };

pub(super) const WIRE: Wire = Wire {
    serves: |path| matches!(path, "/v1/responses" | "/responses"),
    request_id_header: "x-request-id",
    charge: USAGE.with_cache_within(),
    read,
    plain,
    stream,
    stream_error: refusal::stream_error,
    refuse_in_stream: refusal::in_stream,
    refuse: |refusal, exchange| openai::refuse(refusal, exchange, refusal::CONTEXT_TOO_LONG),
};

fn read(incoming: Incoming<'_>) -> Conversation {
    let body = incoming.body;
    let session = incoming
        .headers
        .get("session-id")
        .map_or_else(|| text_at(body, "prompt_cache_key").to_owned(), Clone::clone);
    let mut conversation = Conversation {
        session,
        model: text_at(body, "model").to_owned(),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        system: content_texts(body, "instructions").into_iter().map(str::to_owned).collect(),
        tools: tools(list_at(body, "tools")),
        ..Conversation::default()
    };
    if let Some(text) = body.get("input").and_then(Value::as_str) {
        conversation.entries.push(Entry::User(text.to_owned()));
    }
    for item in list_at(body, "input") {
        read_item(item, &mut conversation);
    }
    conversation
}

fn read_item(item: &Value, conversation: &mut Conversation) {
    match text_at(item, "type") {
        // The type of a message may be left out.
        "message" | "" => {
            let texts = content_texts(item, "content").into_iter().map(str::to_owned);
            match text_at(item, "role") {
                "user" => conversation.entries.extend(texts.map(Entry::User)),
                "developer" | "system" => conversation.system.extend(texts),
                _ => {}
            }
        }
        "function_call_output" | "custom_tool_call_output" => {
            conversation.entries.push(Entry::ToolResult(content_texts(item, "output").concat()));
        }
        // Codex offers the tools of its code-mode models as an item of history.
        "additional_tools" => conversation.tools.extend(tools(list_at(item, "tools"))),
        _ => {}
    }
}

fn tools(offers: &[Value]) -> Vec<Tool> {
    offers
        .iter()
        .flat_map(|offer| match text_at(offer, "type") {
            "namespace" => tools(list_at(offer, "tools")),
            _ => vec![Tool::read(offer, "parameters")],
        })
        .collect()
}

fn plain(answer: &Answer, exchange: Exchange<'_>) -> Value {
    finished(answer, exchange)
}

fn stream(answer: &Answer, exchange: Exchange<'_>) -> Vec<Piece> {
    let mut events = Events::default();
    let begun = response(exchange, "in_progress", &[]);
    events.frame("response.created", json!({ "response": begun }));
    events.frame("response.in_progress", json!({ "response": begun }));
    for (index, block) in answer.blocks.iter().enumerate() {
        let id = item_id(block, exchange, index);
        events.frame(
            "response.output_item.added",
            json!({ "output_index": index, "item": begun_item(block, exchange, index) }),
        );
        match block {
            Block::Thinking(text) => events.thinking(&id, index, text),
            Block::Text(text) => events.text(&id, index, text, answer.stop),
            Block::Tool(call) => events.tool(&id, index, call),
        }
        events.frame(
            "response.output_item.done",
            json!({ "output_index": index, "item": item(block, answer.stop, exchange, index) }),
        );
    }
    let last = match answer.stop {
        Stop::Length | Stop::Filter => "response.incomplete",
        Stop::End | Stop::Refusal => "response.completed",
    };
    events.frame(last, json!({ "response": finished(answer, exchange) }));
    events.pieces
}

/// The events of one response, numbered as they come.
#[derive(Default)]
struct Events {
    pieces: Vec<Piece>,
}

impl Events {
    fn frame(&mut self, name: &str, data: Value) {
        let text = self.render(name, data);
        self.pieces.push(Piece::Frame(text));
    }

    fn delta(&mut self, name: &str, data: Value) {
        let text = self.render(name, data);
        self.pieces.push(Piece::Delta(text));
    }

    fn render(&self, name: &str, mut data: Value) -> String {
        set(&mut data, "type", json!(name));
        set(&mut data, "sequence_number", json!(self.pieces.len()));
        event(name, &data)
    }

    fn thinking(&mut self, id: &str, index: usize, text: &str) {
        let at = |field: &str, value: Value| {
            let mut data = json!({ "item_id": id, "output_index": index, "summary_index": 0 });
            set(&mut data, field, value);
            data
        };
        let part = |text: &str| json!({ "type": "summary_text", "text": text });
        self.frame("response.reasoning_summary_part.added", at("part", part("")));
        for chunk in chunks(text) {
            self.delta("response.reasoning_summary_text.delta", at("delta", json!(chunk)));
        }
        self.frame("response.reasoning_summary_text.done", at("text", json!(text)));
        self.frame("response.reasoning_summary_part.done", at("part", part(text)));
    }

    fn text(&mut self, id: &str, index: usize, text: &str, stop: Stop) {
        // A refusal is a part of its own kind, with events of its own.
        let (kind, done_field) = match stop {
            Stop::Refusal => ("refusal", "refusal"),
            Stop::End | Stop::Length | Stop::Filter => ("output_text", "text"),
        };
        let at = |field: &str, value: Value| {
            let mut data = json!({ "item_id": id, "output_index": index, "content_index": 0 });
            set(&mut data, field, value);
            data
        };
        self.frame("response.content_part.added", at("part", content_part("", stop)));
        for chunk in chunks(text) {
            self.delta(&format!("response.{kind}.delta"), at("delta", json!(chunk)));
        }
        self.frame(&format!("response.{kind}.done"), at(done_field, json!(text)));
        self.frame("response.content_part.done", at("part", content_part(text, stop)));
    }

    fn tool(&mut self, id: &str, index: usize, call: &ToolCall) {
        let (kind, field, text) = match &call.input {
            ToolInput::Json(value) => ("function_call_arguments", "arguments", value.to_string()),
            ToolInput::Text(text) => ("custom_tool_call_input", "input", text.clone()),
        };
        for chunk in chunks(&text) {
            self.delta(
                &format!("response.{kind}.delta"),
                json!({ "item_id": id, "output_index": index, "delta": chunk }),
            );
        }
        let mut done = json!({ "item_id": id, "output_index": index });
        set(&mut done, field, json!(text));
        self.frame(&format!("response.{kind}.done"), done);
    }
}

fn finished(answer: &Answer, exchange: Exchange<'_>) -> Value {
    let output: Vec<Value> = answer
        .blocks
        .iter()
        .enumerate()
        .map(|(index, block)| item(block, answer.stop, exchange, index))
        .collect();
    let (status, reason) = match answer.stop {
        Stop::Length => ("incomplete", Some("max_output_tokens")),
        Stop::Filter => ("incomplete", Some("content_filter")),
        Stop::End | Stop::Refusal => ("completed", None),
    };
    let mut response = response(exchange, status, &output);
    if let Some(reason) = reason {
        set(&mut response, "incomplete_details", json!({ "reason": reason }));
    }
    set(&mut response, "usage", usage());
    response
}

fn response(exchange: Exchange<'_>, status: &str, output: &[Value]) -> Value {
    json!({
        "id": format!("resp_sim{:06}", exchange.number),
        "object": "response",
        "created_at": CREATED_AT,
        "status": status,
        "model": exchange.model,
        "output": output,
        "error": null,
        "incomplete_details": null,
        "usage": null,
    })
}

fn usage() -> Value {
    json!({
        "input_tokens": USAGE.input,
        "input_tokens_details": { "cached_tokens": USAGE.cache_read },
        "output_tokens": USAGE.output,
        "output_tokens_details": { "reasoning_tokens": USAGE.reasoning },
        "total_tokens": USAGE.input + USAGE.output,
    })
}

fn begun_item(block: &Block, exchange: Exchange<'_>, index: usize) -> Value {
    let id = item_id(block, exchange, index);
    match block {
        Block::Thinking(_) => json!({ "id": id, "type": "reasoning", "summary": [] }),
        Block::Text(_) => json!({
            "id": id, "type": "message", "role": "assistant", "status": "in_progress",
            "content": [],
        }),
        Block::Tool(call) => tool_item(call, &id, exchange, index, "in_progress", ""),
    }
}

fn item(block: &Block, stop: Stop, exchange: Exchange<'_>, index: usize) -> Value {
    let id = item_id(block, exchange, index);
    match block {
        Block::Thinking(text) => json!({
            "id": id, "type": "reasoning",
            "summary": [{ "type": "summary_text", "text": text }],
            "encrypted_content": "c2ltdWxhdGVk",
        }),
        Block::Text(text) => json!({
            "id": id, "type": "message", "role": "assistant",
            "status": match stop {
                Stop::Length | Stop::Filter => "incomplete",
                Stop::End | Stop::Refusal => "completed",
            },
            "content": [content_part(text, stop)],
        }),
        Block::Tool(call) => {
            let input = match &call.input {
                ToolInput::Json(value) => value.to_string(),
                ToolInput::Text(text) => text.clone(),
            };
            tool_item(call, &id, exchange, index, "completed", &input)
        }
    }
}

fn tool_item(
    call: &ToolCall,
    id: &str,
    exchange: Exchange<'_>,
    index: usize,
    status: &str,
    input: &str,
) -> Value {
    let call_id = format!("call_sim{:06}_{index}", exchange.number);
    match &call.input {
        ToolInput::Json(_) => json!({
            "id": id, "type": "function_call", "call_id": call_id, "name": call.name,
            "status": status, "arguments": input,
        }),
        ToolInput::Text(_) => json!({
            "id": id, "type": "custom_tool_call", "call_id": call_id, "name": call.name,
            "status": status, "input": input,
        }),
    }
}

fn item_id(block: &Block, exchange: Exchange<'_>, index: usize) -> String {
    let prefix = match block {
        Block::Thinking(_) => "rs",
        Block::Text(_) => "msg",
        Block::Tool(ToolCall { input: ToolInput::Json(_), .. }) => "fc",
        Block::Tool(ToolCall { input: ToolInput::Text(_), .. }) => "ctc",
    };
    format!("{prefix}_sim{:06}_{index}", exchange.number)
}

fn content_part(text: &str, stop: Stop) -> Value {
    match stop {
        Stop::Refusal => json!({ "type": "refusal", "refusal": text }),
        Stop::End | Stop::Length | Stop::Filter => {
            json!({ "type": "output_text", "text": text, "annotations": [] })
        }
    }
}

/// Nobody looks at it, so every response was made at the same second.
const CREATED_AT: u64 = 1_767_225_600;
