//! Errors in the words of OpenAI, which its two APIs share.

use serde_json::{Value, json};

use super::{Exchange, Refused};
use crate::model::reply::Refusal;

/// Returns the error response. Only the words for a context that is too long
/// differ between the two APIs.
pub(super) fn refuse(refusal: Refusal, exchange: Exchange<'_>, context_too_long: &str) -> Refused {
    let model = exchange.model;
    let invalid = "invalid_request_error";
    let (status, kind, code, message): (u16, &str, Option<&str>, String) = match refusal {
        Refusal::BadRequest => (
            400,
            invalid,
            Some("invalid_value"),
            "Invalid value: the simulated model rejects this request.".to_owned(),
        ),
        Refusal::ContextTooLong => {
            (400, invalid, Some("context_length_exceeded"), context_too_long.to_owned())
        }
        Refusal::NoKey => (
            401,
            invalid,
            None,
            "You didn't provide an API key. You need to provide your API key in an Authorization \
             header using Bearer auth."
                .to_owned(),
        ),
        Refusal::WrongKey | Refusal::Unauthenticated => (
            401,
            invalid,
            Some("invalid_api_key"),
            "Incorrect API key provided. You can find your API key at \
             https://platform.openai.com/account/api-keys."
                .to_owned(),
        ),
        Refusal::Forbidden => (
            403,
            "request_forbidden",
            Some("unsupported_country_region_territory"),
            "Country, region, or territory not supported".to_owned(),
        ),
        Refusal::UnknownModel => (
            404,
            invalid,
            Some("model_not_found"),
            format!("The model `{model}` does not exist or you do not have access to it."),
        ),
        Refusal::TooLarge => {
            (413, invalid, Some("request_too_large"), "Request body is too large.".to_owned())
        }
        Refusal::RateLimited { .. } => (
            429,
            "tokens",
            Some("rate_limit_exceeded"),
            format!(
                "Rate limit reached for {model} in organization org-sim on tokens per min (TPM): \
                 Limit 30000, Used 29000, Requested 2000. Please try again in 2s."
            ),
        ),
        Refusal::Quota => (
            429,
            "insufficient_quota",
            Some("insufficient_quota"),
            "You exceeded your current quota, please check your plan and billing details."
                .to_owned(),
        ),
        Refusal::ServerError => (
            500,
            "server_error",
            None,
            "The server had an error while processing your request. Sorry about that!".to_owned(),
        ),
        Refusal::Unavailable => (
            503,
            "service_unavailable_error",
            Some("server_is_overloaded"),
            "Our servers are currently overloaded. Please try again later.".to_owned(),
        ),
        Refusal::Overloaded => (
            529,
            "server_error",
            Some("server_is_overloaded"),
            "Our servers are currently overloaded. Please try again later.".to_owned(),
        ),
    };
    Refused { status, body: error(kind, code, &message) }
}

/// Returns the body of an error.
pub(super) fn error(kind: &str, code: Option<&str>, message: &str) -> Value {
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}
