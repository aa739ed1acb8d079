//! Google's Gemini API.
//!
//! The path names the model and the method. A stream is always one of
//! server-sent events: no CLI asks for the older form, a JSON array.

mod refusal;

use serde_json::{Value, json};

use super::{Exchange, Wire, data, list_at, set, text_at};
use crate::model::conversation::{Aside, Conversation, Entry, Incoming, Tool};
use crate::model::pace::{Piece, chunks};
use crate::model::reply::{Answer, Block, Charge, Stop, ToolCall, ToolInput, Usage};

/// What every call to this API reports as used.
pub const USAGE: Usage =
    Usage { input: 400, cache_write: 0, cache_read: 150, output: 21, reasoning: 9 };

pub(super) const WIRE: Wire = Wire {
    serves: |path| {
        method(path).is_some_and(|(_, method)| matches!(method, PLAIN_METHOD | STREAM_METHOD))
    },
    request_id_header: "x-request-id",
    charge: Charge { output: USAGE.output + USAGE.reasoning, ..USAGE.with_cache_within() },
    read,
    plain,
    stream,
    stream_error: refusal::stream_error,
    refuse_in_stream: |_, _| None,
    refuse: refusal::refuse,
};

/// Returns the model and the method that a path names.
pub(crate) fn method(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("/v1beta/").or_else(|| path.strip_prefix("/v1/"))?;
    rest.strip_prefix("models/")?.rsplit_once(':')
}

fn read(incoming: Incoming<'_>) -> Conversation {
    let body = incoming.body;
    let (model, method) = method(incoming.path).unwrap_or_default();
    let config = body.get("generationConfig").unwrap_or(&Value::Null);
    let schema = config.get("responseJsonSchema").or_else(|| config.get("responseSchema"));
    let mut conversation = Conversation {
        model: model.to_owned(),
        stream: method == STREAM_METHOD,
        system: body.get("systemInstruction").map(parts_texts).unwrap_or_default(),
        tools: list_at(body, "tools")
            .iter()
            .flat_map(|tool| list_at(tool, "functionDeclarations"))
            .map(|function| {
                let field = "parametersJsonSchema";
                Tool::read(
                    function,
                    if function.get(field).is_some() { field } else { "parameters" },
                )
            })
            .collect(),
        aside: schema.cloned().map(Aside::Schema),
        ..Conversation::default()
    };
    for content in list_at(body, "contents") {
        // The role of the only message may be left out.
        if matches!(text_at(content, "role"), "user" | "function" | "") {
            conversation.entries.extend(entries(list_at(content, "parts")));
        }
    }
    conversation
}

/// Gemini CLI puts the content of files that a prompt refers to (`@notes.txt`)
/// between two marks behind it; nobody typed that.
fn entries(parts: &[Value]) -> Vec<Entry> {
    let mut is_file = false;
    let mut entries = Vec::new();
    for entry in parts.iter().filter_map(entry) {
        match &entry {
            Entry::User(text) if text.trim() == FILES_BEGIN => is_file = true,
            Entry::User(text) if text.trim() == FILES_END => is_file = false,
            Entry::User(_) if is_file => {}
            Entry::User(_) | Entry::ToolResult(_) => entries.push(entry),
        }
    }
    entries
}

fn entry(part: &Value) -> Option<Entry> {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        return Some(Entry::User(text.to_owned()));
    }
    let response = part.pointer("/functionResponse/response")?;
    let output = response.get("output").or_else(|| response.get("error")).unwrap_or(response);
    Some(Entry::ToolResult(output.as_str().map_or_else(|| output.to_string(), str::to_owned)))
}

fn parts_texts(content: &Value) -> Vec<String> {
    list_at(content, "parts").iter().map(|part| text_at(part, "text").to_owned()).collect()
}

/// Nothing comes of an answer that the filter stops.
fn said(answer: &Answer) -> &[Block] {
    match answer.stop {
        Stop::Filter => &[],
        Stop::End | Stop::Length | Stop::Refusal => &answer.blocks,
    }
}

fn plain(answer: &Answer, exchange: Exchange<'_>) -> Value {
    let parts = said(answer).iter().map(|block| match block {
        Block::Thinking(text) => thought(text),
        Block::Text(text) => json!({ "text": text }),
        Block::Tool(call) => function_call(call),
    });
    response(exchange, parts.collect(), Some(finish_reason(answer)))
}

fn stream(answer: &Answer, exchange: Exchange<'_>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for block in said(answer) {
        let parts: Vec<Value> = match block {
            // This API tells a thought when it is whole.
            Block::Thinking(text) => vec![thought(text)],
            Block::Text(text) => {
                chunks(text).into_iter().map(|chunk| json!({ "text": chunk })).collect()
            }
            Block::Tool(call) => vec![function_call(call)],
        };
        pieces.extend(
            parts.into_iter().map(|part| Piece::Delta(data(&response(exchange, vec![part], None)))),
        );
    }
    let last = response(exchange, Vec::new(), Some(finish_reason(answer)));
    pieces.push(Piece::Frame(data(&last)));
    pieces
}

fn response(exchange: Exchange<'_>, parts: Vec<Value>, finish_reason: Option<&str>) -> Value {
    let mut content = json!({ "role": "model" });
    if !parts.is_empty() {
        set(&mut content, "parts", Value::Array(parts));
    }
    let mut candidate = json!({ "content": content, "index": 0 });
    if let Some(reason) = finish_reason {
        set(&mut candidate, "finishReason", json!(reason));
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": usage(),
        "modelVersion": exchange.model,
        "responseId": format!("sim{:06}", exchange.number),
    })
}

fn thought(text: &str) -> Value {
    json!({ "text": text, "thought": true })
}

fn function_call(call: &ToolCall) -> Value {
    // This API has no tools that take free text.
    let arguments = match &call.input {
        ToolInput::Json(value) => value.clone(),
        ToolInput::Text(text) => json!({ "input": text }),
    };
    json!({
        "functionCall": { "name": call.name, "args": arguments },
        "thoughtSignature": SIGNATURE,
    })
}

/// A model of this API declines in plain words: there is no reason for it.
fn finish_reason(answer: &Answer) -> &'static str {
    match answer.stop {
        Stop::End | Stop::Refusal => "STOP",
        Stop::Length => "MAX_TOKENS",
        Stop::Filter => "SAFETY",
    }
}

fn usage() -> Value {
    json!({
        "promptTokenCount": USAGE.input,
        "cachedContentTokenCount": USAGE.cache_read,
        "candidatesTokenCount": USAGE.output,
        "thoughtsTokenCount": USAGE.reasoning,
        "totalTokenCount": USAGE.input + USAGE.output + USAGE.reasoning,
        "promptTokensDetails": [{ "modality": "TEXT", "tokenCount": USAGE.input }],
    })
}

const PLAIN_METHOD: &str = "generateContent";
const STREAM_METHOD: &str = "streamGenerateContent";
const FILES_BEGIN: &str = "--- Content from referenced files ---";
const FILES_END: &str = "--- End of content ---";
const SIGNATURE: &str = "c2ltdWxhdGVk";
