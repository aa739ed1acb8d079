//! The simulated model as a client sees it: all APIs, streamed and plain,
//! errors, keys, the request log, and the choice of a behaviour for requests
//! that the real CLIs sent.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers outside of test functions fail like tests"
)]

mod api;
mod chat;
mod client;
mod gemini;
mod recorded;
mod server;

use client::Response;
use ostler_sim::model::{Options, Sim};
use serde_json::{Value, json};

/// Whether an answer is asked for as a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Stream,
    Plain,
}

const MODES: [Mode; 2] = [Mode::Stream, Mode::Plain];

async fn start() -> Sim {
    Sim::start(Options::default()).await.expect("a free port")
}

fn messages_body(prompt: &str, mode: Mode) -> Value {
    json!({
        "model": "claude-opus-5-5",
        "max_tokens": 100,
        "stream": mode == Mode::Stream,
        "tools": [{ "name": "Bash" }, { "name": "Write" }],
        "messages": [{ "role": "user", "content": prompt }],
    })
}

fn responses_body(prompt: &str, mode: Mode) -> Value {
    json!({
        "model": "gpt-5.5",
        "stream": mode == Mode::Stream,
        "tools": [
            { "type": "function", "name": "exec_command" },
            { "type": "custom", "name": "apply_patch" },
        ],
        "input": prompt,
    })
}

async fn messages(sim: &Sim, prompt: &str, mode: Mode) -> Response {
    let body = messages_body(prompt, mode).to_string();
    client::send(sim.addr(), "POST", "/v1/messages?beta=true", &[("x-api-key", "k")], &body).await
}

async fn responses(sim: &Sim, prompt: &str, mode: Mode) -> Response {
    let body = responses_body(prompt, mode).to_string();
    let headers = [("authorization", "Bearer k")];
    client::send(sim.addr(), "POST", "/v1/responses", &headers, &body).await
}

fn chat_body(prompt: &str, mode: Mode) -> Value {
    let tool = |name: &str, parameter: &str| {
        let parameters = json!({ "type": "object", "properties": { parameter: {} } });
        json!({ "type": "function", "function": { "name": name, "parameters": parameters } })
    };
    json!({
        "model": "sim-1",
        "stream": mode == Mode::Stream,
        "stream_options": { "include_usage": true },
        "tools": [tool("bash", "command"), tool("read", "path"), tool("write", "path")],
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": prompt },
        ],
    })
}

async fn chat(sim: &Sim, prompt: &str, mode: Mode) -> Response {
    let body = chat_body(prompt, mode).to_string();
    let headers = [("authorization", "Bearer k")];
    client::send(sim.addr(), "POST", "/v1/chat/completions", &headers, &body).await
}

fn gemini_body(prompt: &str) -> Value {
    json!({
        "systemInstruction": { "parts": [{ "text": "Be brief." }], "role": "user" },
        "tools": [{ "functionDeclarations": [
            { "name": "run_shell_command" }, { "name": "read_file" }, { "name": "write_file" },
        ] }],
        "contents": [{ "role": "user", "parts": [{ "text": prompt }] }],
    })
}

fn gemini_path(mode: Mode) -> &'static str {
    match mode {
        Mode::Stream => "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
        Mode::Plain => "/v1beta/models/gemini-2.5-flash:generateContent",
    }
}

async fn gemini(sim: &Sim, prompt: &str, mode: Mode) -> Response {
    let body = gemini_body(prompt).to_string();
    let headers = [("x-goog-api-key", "k")];
    client::send(sim.addr(), "POST", gemini_path(mode), &headers, &body).await
}

/// Joins the texts that a pointer finds in chunks.
fn gathered(chunks: &[Value], pointer: &str) -> String {
    chunks.iter().filter_map(|chunk| chunk.pointer(pointer)?.as_str()).collect()
}

/// Returns the types of events without repetitions in a row.
fn order(events: &[Value]) -> Vec<&str> {
    let mut order: Vec<&str> =
        events.iter().map(|event| event["type"].as_str().expect("a type")).collect();
    order.dedup();
    order
}

/// Joins a text field of all events of one type.
fn joined(events: &[Value], kind: &str, pointer: &str) -> String {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .filter_map(|event| event.pointer(pointer)?.as_str())
        .collect()
}
