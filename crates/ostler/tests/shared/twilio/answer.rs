//! What a request is answered with: a body, or one of Twilio's errors.

use serde_json::{Value, json};

/// The end of a request.
pub(super) type Answer = Result<Reply, Refusal>;

/// A request that was done.
#[derive(Debug)]
pub(super) enum Reply {
    Json(u16, Value),
    /// The reader is to go on elsewhere.
    Redirect(String),
}

impl Reply {
    pub(super) fn ok(body: Value) -> Answer {
        Ok(Self::Json(200, body))
    }

    pub(super) fn created(body: Value) -> Answer {
        Ok(Self::Json(201, body))
    }
}

/// A request that was refused, with the code that Twilio documents.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) code: u32,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(status: u16, code: u32, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    /// Refuses what a message was to be.
    pub(super) fn bad(code: u32, message: impl Into<String>) -> Self {
        Self::new(400, code, message)
    }

    pub(super) fn body(&self) -> Value {
        json!({
            "code": self.code,
            "message": self.message,
            "more_info": format!("https://www.twilio.com/docs/errors/{}", self.code),
            "status": self.status,
        })
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(401, 20003, "Authenticate")
    }

    pub(super) fn not_found(path: &str) -> Self {
        Self::new(404, 20404, format!("The requested resource {path} was not found"))
    }

    pub(super) fn method() -> Self {
        Self::new(405, 20004, "Method not allowed")
    }

    pub(super) fn invalid(parameter: &str) -> Self {
        Self::bad(20001, format!("Invalid parameter: {parameter}"))
    }

    pub(super) fn missing(parameter: &str) -> Self {
        Self::bad(20001, format!("Missing required parameter {parameter} in the post body"))
    }

    pub(super) fn too_many() -> Self {
        Self::new(429, 20429, "Too Many Requests")
    }

    pub(super) fn server(status: u16) -> Self {
        let message = if status == 503 { "Service Unavailable" } else { "Internal Server Error" };
        Self::new(status, if status == 503 { 20503 } else { 20500 }, message)
    }
}

/// Returns what Twilio says of a message that failed with a code.
pub(super) fn failure(code: u32) -> &'static str {
    match code {
        11200 => "HTTP retrieval failure",
        11751 => "Media Message - Media exceeds messaging provider size limit",
        12300 => "Invalid Content-Type",
        30003 => "Unreachable destination handset",
        30008 => "Unknown error",
        63015 => {
            "Channel Sandbox can only send messages to phone numbers that have joined the Sandbox"
        }
        63016 => {
            "Failed to send freeform message because you are outside the allowed window. If you \
             are using WhatsApp, please use a Message Template."
        }
        63019 => "Media failed to download",
        63021 => "Channel invalid content error",
        63024 => "Invalid message recipient",
        _ => "The message could not be delivered",
    }
}
