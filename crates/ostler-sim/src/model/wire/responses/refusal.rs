//! Errors that OpenAI's Responses API reports inside a stream.

use serde_json::json;

use super::response;
use crate::model::reply::Refusal;
use crate::model::wire::{Exchange, event, set};

pub(super) fn stream_error(exchange: Exchange<'_>) -> String {
    failed("server_error", "The server had an error while processing your request.", exchange)
}

/// The real API accepts a stream before it counts tokens, so a context that is
/// too long is reported inside it.
pub(super) fn in_stream(refusal: Refusal, exchange: Exchange<'_>) -> Option<String> {
    (refusal == Refusal::ContextTooLong)
        .then(|| failed("context_length_exceeded", CONTEXT_TOO_LONG, exchange))
}

fn failed(code: &str, message: &str, exchange: Exchange<'_>) -> String {
    let mut response = response(exchange, "failed", &[]);
    set(&mut response, "error", json!({ "code": code, "message": message }));
    event("response.failed", &json!({ "type": "response.failed", "response": response }))
}

pub(super) const CONTEXT_TOO_LONG: &str = "Your input exceeds the context window of this model. Please adjust \
    your input and try again.";
