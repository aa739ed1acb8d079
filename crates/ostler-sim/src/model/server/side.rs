//! The calls that CLIs make beside those of a model.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::json_response;
use crate::model::reply::Refusal;
use crate::model::wire;

/// Answers the calls that CLIs make beside those of a model.
pub(super) fn answer(path: &str, wrong_key: Option<Refusal>) -> Response {
    if wrong_key.is_some() {
        let error = json!({ "type": "authentication_error", "message": "invalid key" });
        return json_response(
            StatusCode::UNAUTHORIZED,
            &json!({ "type": "error", "error": error }),
        );
    }
    match path {
        "/v1/messages/count_tokens" => {
            json_response(StatusCode::OK, &json!({ "input_tokens": wire::ANTHROPIC_USAGE.input }))
        }
        "/v1/models" | "/models" => json_response(StatusCode::OK, &models()),
        _ => {
            let error = json!({
                "type": "not_found_error",
                "message": format!("The simulated model has no {path}."),
            });
            json_response(StatusCode::NOT_FOUND, &json!({ "type": "error", "error": error }))
        }
    }
}

/// A list that clients of either provider can read.
fn models() -> Value {
    let models: Vec<Value> = MODELS
        .iter()
        .map(|(id, owner)| {
            json!({
                "id": id, "type": "model", "object": "model", "display_name": id,
                "owned_by": owner, "created": 1_767_225_600,
                "created_at": "2026-01-01T00:00:00Z",
            })
        })
        .collect();
    json!({
        "object": "list",
        "data": models,
        "has_more": false,
        "first_id": MODELS.first().map(|(id, _)| id),
        "last_id": MODELS.last().map(|(id, _)| id),
    })
}

const MODELS: &[(&str, &str)] = &[("claude-opus-5-5", "anthropic"), ("gpt-5.5", "openai")];
