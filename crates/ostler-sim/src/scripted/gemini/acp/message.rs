//! The shapes of what `gemini --acp` tells.

use serde_json::{Value, json};

use super::super::VERSION;
use super::super::lines::{INPUT, OUTPUT};

/// What a request is answered with, and what is told of a session after that.
pub(super) struct Reply {
    /// A prompt is answered when its turn is over.
    pub(super) result: Option<Value>,
    pub(super) session: String,
    pub(super) then: Vec<Value>,
}

impl Reply {
    pub(super) fn new(result: Value) -> Self {
        Self { result: Some(result), session: String::new(), then: Vec::new() }
    }
}

/// Why a request failed.
pub(super) struct Refusal {
    code: i64,
    message: String,
    data: Value,
}

impl Refusal {
    pub(super) fn no_session(id: &str) -> Self {
        Self { code: -32602, message: format!("Session not found: {id}"), data: Value::Null }
    }

    pub(super) fn no_method(method: &str) -> Self {
        let message = format!("\"Method not found\": {method}");
        Self { code: -32601, message, data: json!({ "method": method }) }
    }

    pub(super) fn not_found(id: &str) -> Self {
        let details = format!(
            "Invalid session identifier \"{id}\".\n  Use --list-sessions to see available \
             sessions, then use --resume {{number}}, --resume {{uuid}}, or --resume latest."
        );
        let data = json!({ "details": details });
        Self { code: -32603, message: "Internal error".to_owned(), data }
    }
}

pub(super) fn reply(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

pub(super) fn refusal(id: &Value, refusal: &Refusal) -> Value {
    let mut error = json!({ "code": refusal.code, "message": refusal.message });
    if let (Value::Object(fields), false) = (&mut error, refusal.data.is_null()) {
        fields.insert("data".to_owned(), refusal.data.clone());
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

pub(super) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub(super) fn update(session: &str, update: Value) -> Value {
    let params = json!({ "sessionId": session, "update": update });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })
}

/// A piece of what somebody says.
pub(super) fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}

pub(super) fn commands() -> Value {
    let about = json!({ "name": "about", "description": "Show version and environment info" });
    json!({ "sessionUpdate": "available_commands_update", "availableCommands": [about] })
}

pub(super) fn introduction() -> Value {
    json!({
        "protocolVersion": 1,
        "authMethods": [{
            "id": "gemini-api-key", "name": "Gemini API key",
            "description": "Use an API key with Gemini Developer API",
        }],
        "agentInfo": { "name": "gemini-cli", "title": "Gemini CLI", "version": VERSION },
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true },
            "mcpCapabilities": { "http": true, "sse": true },
        },
    })
}

/// What is told of a session that was opened.
pub(super) fn opened(model: &str, mode: &str) -> Value {
    let modes = ["default", "autoEdit", "yolo", "plan"];
    let modes: Vec<Value> = modes.iter().map(|id| json!({ "id": id, "name": id })).collect();
    json!({
        "modes": { "availableModes": modes, "currentModeId": mode },
        "models": {
            "availableModels": [{ "modelId": model, "name": model }], "currentModelId": model,
        },
    })
}

/// How a turn ends that ran to its end, with what it pretends to have used.
pub(super) fn ended(model: &str, n_calls: u64) -> Value {
    let count = json!({ "input_tokens": n_calls * INPUT, "output_tokens": n_calls * OUTPUT });
    let of_model = json!({ "model": model, "token_count": count });
    let quota = json!({ "token_count": count, "model_usage": [of_model] });
    json!({ "stopReason": "end_turn", "_meta": { "quota": quota } })
}

/// The text of a prompt.
pub(super) fn prompt(params: &Value) -> String {
    let parts = params.get("prompt").and_then(Value::as_array);
    let texts = parts.into_iter().flatten().filter_map(|part| part.get("text")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

pub(super) fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
