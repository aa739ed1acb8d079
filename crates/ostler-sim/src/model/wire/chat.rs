//! OpenAI's Chat Completions API, as the many servers speak it that copy it.
//!
//! Reasoning travels as `reasoning_content`, which OpenAI itself does not have:
//! the CLIs that use this API use it with other providers too, and read it.

use serde_json::{Value, json};

use super::{Exchange, Wire, content_texts, data, list_at, openai, set, text_at};
use crate::model::conversation::{Aside, Conversation, Entry, Incoming, Tool};
use crate::model::pace::{Piece, chunks};
use crate::model::reply::{Answer, Block, Stop, ToolCall, ToolInput, Usage};

/// What every call to this API reports as used.
pub const USAGE: Usage =
    Usage { input: 1100, cache_write: 0, cache_read: 900, output: 28, reasoning: 8 };

pub(super) const WIRE: Wire = Wire {
    serves: |path| matches!(path, "/v1/chat/completions" | "/chat/completions"),
    request_id_header: "x-request-id",
    charge: USAGE.with_cache_within(),
    read,
    plain,
    stream,
    stream_error,
    refuse_in_stream: |_, _| None,
    refuse: |refusal, exchange| openai::refuse(refusal, exchange, CONTEXT_TOO_LONG),
};

fn read(incoming: Incoming<'_>) -> Conversation {
    let body = incoming.body;
    let session = SESSION_HEADERS.iter().find_map(|name| incoming.headers.get(*name));
    let mut conversation = Conversation {
        session: session.cloned().unwrap_or_default(),
        model: text_at(body, "model").to_owned(),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        include_usage: body
            .pointer("/stream_options/include_usage")
            .and_then(Value::as_bool)
            .unwrap_or(false),
        tools: list_at(body, "tools")
            .iter()
            .filter_map(|tool| tool.get("function"))
            .map(|function| Tool::read(function, "parameters"))
            .collect(),
        aside: body.pointer("/response_format/json_schema/schema").cloned().map(Aside::Schema),
        ..Conversation::default()
    };
    for message in list_at(body, "messages") {
        let texts = content_texts(message, "content").into_iter();
        match text_at(message, "role") {
            "user" => conversation.entries.extend(texts.map(str::to_owned).map(Entry::User)),
            "system" | "developer" => conversation.system.extend(texts.map(str::to_owned)),
            "tool" => conversation.entries.push(Entry::ToolResult(texts.collect())),
            _ => {}
        }
    }
    let asks_for = |task: &str| conversation.system.iter().any(|text| text.starts_with(task));
    if asks_for(TITLE_MAKER) {
        conversation.aside = Some(Aside::Title);
    } else if asks_for(SUMMARISER) {
        for entry in &mut conversation.entries {
            if let Entry::User(text) = entry
                && let Some(prompt) = newest_quoted(text)
            {
                *entry = Entry::User(prompt.to_owned());
            }
        }
    }
    conversation
}

/// Returns the newest prompt of a conversation that stands in one text. What it
/// asks for goes for its summary too, so that a context that is too long does
/// not become short enough and too long again without end.
fn newest_quoted(text: &str) -> Option<&str> {
    let (_, rest) = text.rsplit_once("[User]: ")?;
    Some(rest.split_once("\n</conversation>").map_or(rest, |(prompt, _)| prompt))
}

fn plain(answer: &Answer, exchange: Exchange<'_>) -> Value {
    let said = Said::new(answer, exchange);
    let mut message = json!({ "role": "assistant", "content": null, "refusal": null });
    set(&mut message, text_field(answer), said.text.map_or(Value::Null, Value::String));
    if let Some(thinking) = said.thinking {
        set(&mut message, "reasoning_content", Value::String(thinking));
    }
    if !said.tool_calls.is_empty() {
        set(&mut message, "tool_calls", Value::Array(said.tool_calls));
    }
    json!({
        "id": id(exchange),
        "object": "chat.completion",
        "created": CREATED,
        "model": exchange.model,
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": finish_reason(answer),
        }],
        "usage": usage(),
        "system_fingerprint": FINGERPRINT,
    })
}

/// The parts of an answer as a message holds them: at most one of each.
struct Said {
    thinking: Option<String>,
    text: Option<String>,
    tool_calls: Vec<Value>,
}

impl Said {
    fn new(answer: &Answer, exchange: Exchange<'_>) -> Self {
        let mut said = Self { thinking: None, text: None, tool_calls: Vec::new() };
        for block in &answer.blocks {
            match block {
                Block::Thinking(text) => said.thinking.get_or_insert_default().push_str(text),
                Block::Text(text) => said.text.get_or_insert_default().push_str(text),
                Block::Tool(call) => {
                    let index = said.tool_calls.len();
                    said.tool_calls.push(tool_call(call, exchange, index, &arguments(call)));
                }
            }
        }
        said
    }
}

fn stream(answer: &Answer, exchange: Exchange<'_>) -> Vec<Piece> {
    let first = json!({ "role": "assistant", "content": "", "refusal": null });
    let mut pieces = vec![Piece::Frame(chunk(exchange, &first, None))];
    let mut n_calls = 0;
    for block in &answer.blocks {
        match block {
            Block::Thinking(text) => pieces.extend(deltas("reasoning_content", text, exchange)),
            Block::Text(text) => pieces.extend(deltas(text_field(answer), text, exchange)),
            Block::Tool(call) => {
                pieces.extend(tool_deltas(call, n_calls, exchange));
                n_calls += 1;
            }
        }
    }
    pieces.push(Piece::Frame(chunk(exchange, &json!({}), Some(finish_reason(answer)))));
    if exchange.include_usage {
        let mut last = begun(exchange);
        set(&mut last, "usage", usage());
        pieces.push(Piece::Frame(data(&last)));
    }
    pieces.push(Piece::Frame(DONE.to_owned()));
    pieces
}

fn deltas(field: &str, text: &str, exchange: Exchange<'_>) -> Vec<Piece> {
    let delta = |text: &str| {
        let mut delta = json!({});
        set(&mut delta, field, json!(text));
        Piece::Delta(chunk(exchange, &delta, None))
    };
    chunks(text).into_iter().map(delta).collect()
}

/// The first piece names the call; those after it only carry arguments.
fn tool_deltas(call: &ToolCall, index: usize, exchange: Exchange<'_>) -> Vec<Piece> {
    let mut first = tool_call(call, exchange, index, "");
    set(&mut first, "index", json!(index));
    let arguments = arguments(call);
    let rest = chunks(&arguments)
        .into_iter()
        .map(|part| json!({ "index": index, "function": { "arguments": part } }));
    std::iter::once(first)
        .chain(rest)
        .map(|call| Piece::Delta(chunk(exchange, &json!({ "tool_calls": [call] }), None)))
        .collect()
}

fn chunk(exchange: Exchange<'_>, delta: &Value, finish_reason: Option<&str>) -> String {
    let mut chunk = begun(exchange);
    let choice =
        json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason });
    set(&mut chunk, "choices", json!([choice]));
    data(&chunk)
}

/// A chunk without any choice.
fn begun(exchange: Exchange<'_>) -> Value {
    let mut chunk = json!({
        "id": id(exchange),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": exchange.model,
        "system_fingerprint": FINGERPRINT,
        "choices": [],
    });
    if exchange.include_usage {
        set(&mut chunk, "usage", Value::Null);
    }
    chunk
}

fn stream_error(_: Exchange<'_>) -> String {
    let message = "The server had an error while processing your request. Sorry about that!";
    data(&openai::error("server_error", None, message))
}

fn text_field(answer: &Answer) -> &'static str {
    match answer.stop {
        Stop::Refusal => "refusal",
        Stop::End | Stop::Length | Stop::Filter => "content",
    }
}

fn finish_reason(answer: &Answer) -> &'static str {
    match answer.stop {
        Stop::End if answer.has_tool_calls() => "tool_calls",
        Stop::End | Stop::Refusal => "stop",
        Stop::Length => "length",
        Stop::Filter => "content_filter",
    }
}

fn tool_call(call: &ToolCall, exchange: Exchange<'_>, index: usize, arguments: &str) -> Value {
    json!({
        "id": format!("call_sim{:06}_{index}", exchange.number),
        "type": "function",
        "function": { "name": call.name, "arguments": arguments },
    })
}

/// No CLI offers a tool that takes free text over this API.
fn arguments(call: &ToolCall) -> String {
    match &call.input {
        ToolInput::Json(value) => value.to_string(),
        ToolInput::Text(text) => json!({ "input": text }).to_string(),
    }
}

fn usage() -> Value {
    json!({
        "prompt_tokens": USAGE.input,
        "completion_tokens": USAGE.output,
        "total_tokens": USAGE.input + USAGE.output,
        "prompt_tokens_details": { "cached_tokens": USAGE.cache_read },
        "completion_tokens_details": { "reasoning_tokens": USAGE.reasoning },
    })
}

fn id(exchange: Exchange<'_>) -> String {
    format!("chatcmpl-sim{:06}", exchange.number)
}

/// How OpenCode's and Pi's requests for a summary begin.
const SUMMARISER: &str = "You are a context summarization ";
/// How OpenCode's request for a title begins.
const TITLE_MAKER: &str = "You are a title generator.";
/// Where CLIs name the conversation.
const SESSION_HEADERS: &[&str] = &["x-session-id", "session-id", "x-session-affinity"];
const DONE: &str = "data: [DONE]\n\n";
const FINGERPRINT: &str = "fp_sim";
/// Nobody looks at it, so every answer was made at the same second.
const CREATED: u64 = 1_767_225_600;
const CONTEXT_TOO_LONG: &str = "This model's maximum context length is 200000 tokens. However, \
    your messages resulted in 212345 tokens. Please reduce the length of the messages.";
