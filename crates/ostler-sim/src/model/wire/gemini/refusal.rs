//! Errors in the words of Google's Gemini API.

use serde_json::{Value, json};

use crate::model::reply::Refusal;
use crate::model::wire::{Exchange, Refused, set};

/// The error stands in the stream as it is, not as an event.
pub(super) fn stream_error(_: Exchange<'_>) -> String {
    error(503, "UNAVAILABLE", OVERLOADED, Vec::new()).to_string()
}

pub(crate) fn refuse(refusal: Refusal, exchange: Exchange<'_>) -> Refused {
    let model = exchange.model;
    let (status, kind, message): (u16, &str, String) = match refusal {
        Refusal::BadRequest => (
            400,
            "INVALID_ARGUMENT",
            "Invalid JSON payload received. The simulated model rejects this request.".to_owned(),
        ),
        Refusal::ContextTooLong => (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1212345) exceeds the maximum number of tokens allowed \
             (1048576)."
                .to_owned(),
        ),
        // A wrong key is a wrong argument here, not a lack of credentials.
        Refusal::WrongKey => {
            (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.".to_owned())
        }
        Refusal::Unauthenticated => (
            401,
            "UNAUTHENTICATED",
            "Request had invalid authentication credentials. Expected OAuth 2 access token, login \
             cookie or other valid authentication credential."
                .to_owned(),
        ),
        Refusal::NoKey => (
            403,
            "PERMISSION_DENIED",
            "Method doesn't allow unregistered callers (callers without established identity). \
             Please use API Key or other form of API consumer identity to call this API."
                .to_owned(),
        ),
        Refusal::Forbidden => {
            (403, "PERMISSION_DENIED", "The caller does not have permission".to_owned())
        }
        Refusal::UnknownModel => (
            404,
            "NOT_FOUND",
            format!(
                "models/{model} is not found for API version v1beta, or is not supported for \
                 generateContent. Call ListModels to see the list of available models and their \
                 supported methods."
            ),
        ),
        Refusal::TooLarge => (
            413,
            "INVALID_ARGUMENT",
            "Request payload size exceeds the limit: 20971520 bytes.".to_owned(),
        ),
        Refusal::RateLimited { .. } => (
            429,
            "RESOURCE_EXHAUSTED",
            "Resource has been exhausted (e.g. check quota).".to_owned(),
        ),
        Refusal::Quota => (
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details."
                .to_owned(),
        ),
        Refusal::ServerError => (500, "INTERNAL", "An internal error has occurred.".to_owned()),
        Refusal::Unavailable => (503, "UNAVAILABLE", OVERLOADED.to_owned()),
        Refusal::Overloaded => (529, "UNAVAILABLE", OVERLOADED.to_owned()),
    };
    Refused { status, body: error(status, kind, &message, details(refusal, model)) }
}

/// What Google tells programs beside the message for people.
fn details(refusal: Refusal, model: &str) -> Vec<Value> {
    match refusal {
        Refusal::WrongKey => vec![json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "API_KEY_INVALID",
            "domain": "googleapis.com",
            "metadata": { "service": "generativelanguage.googleapis.com" },
        })],
        Refusal::RateLimited { retry_after_s: Some(seconds) } => vec![json!({
            "@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": format!("{seconds}s"),
        })],
        Refusal::Quota => vec![json!({
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{
                "quotaMetric":
                    "generativelanguage.googleapis.com/generate_content_free_tier_requests",
                "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
                "quotaDimensions": { "location": "global", "model": model },
                "quotaValue": "50",
            }],
        })],
        Refusal::BadRequest
        | Refusal::NoKey
        | Refusal::Unauthenticated
        | Refusal::Forbidden
        | Refusal::UnknownModel
        | Refusal::TooLarge
        | Refusal::RateLimited { retry_after_s: None }
        | Refusal::ServerError
        | Refusal::Unavailable
        | Refusal::Overloaded
        | Refusal::ContextTooLong => Vec::new(),
    }
}

fn error(status: u16, kind: &str, message: &str, details: Vec<Value>) -> Value {
    let mut error = json!({ "code": status, "message": message, "status": kind });
    if !details.is_empty() {
        set(&mut error, "details", Value::Array(details));
    }
    json!({ "error": error })
}

const OVERLOADED: &str = "The model is overloaded. Please try again later.";
