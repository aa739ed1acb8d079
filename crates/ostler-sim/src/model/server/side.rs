//! The calls that CLIs make beside those of a model.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::{json_response, status};
use crate::model::reply::Refusal;
use crate::model::wire::{self, Exchange, Refused};

/// Answers the calls that CLIs make beside those of a model.
pub(super) fn answer(path: &str, wrong_key: Option<Refusal>, exchange: Exchange<'_>) -> Response {
    match path.strip_prefix(GOOGLE) {
        Some(rest) => google(rest, wrong_key, exchange),
        None => others(path, wrong_key),
    }
}

fn others(path: &str, wrong_key: Option<Refusal>) -> Response {
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

fn google(rest: &str, wrong_key: Option<Refusal>, exchange: Exchange<'_>) -> Response {
    let refuse = |refusal| {
        let Refused { status: code, body } = wire::refuse_as_google(refusal, exchange);
        json_response(status(code), &body)
    };
    if let Some(refusal) = wrong_key {
        return refuse(refusal);
    }
    let model = |name: &str| {
        json!({
            "name": format!("models/{name}"), "displayName": name, "version": "001",
            "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        })
    };
    let known = MODELS.iter().filter(|(_, owner)| *owner == "google").map(|(id, _)| *id);
    match rest.strip_prefix("models") {
        Some("") => {
            let models: Vec<Value> = known.map(model).collect();
            json_response(StatusCode::OK, &json!({ "models": models }))
        }
        Some(rest) if rest.ends_with(":countTokens") => {
            json_response(StatusCode::OK, &json!({ "totalTokens": wire::GEMINI_USAGE.input }))
        }
        Some(rest) => match rest.strip_prefix('/') {
            Some(name) if !name.contains(':') => json_response(StatusCode::OK, &model(name)),
            Some(_) | None => refuse(Refusal::UnknownModel),
        },
        None => refuse(Refusal::UnknownModel),
    }
}

/// A list that clients of either of the other providers can read.
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

const GOOGLE: &str = "/v1beta/";
const MODELS: &[(&str, &str)] = &[
    ("claude-opus-5-5", "anthropic"),
    ("gpt-5.5", "openai"),
    ("sim-1", "ostler"),
    ("gemini-2.5-flash", "google"),
];
