//! The simulated model as a client sees it: both APIs, streamed and plain,
//! errors, keys, the request log, and the choice of a behaviour for requests
//! that the real CLIs sent.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers outside of test functions fail like tests"
)]

mod api;
mod client;
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
