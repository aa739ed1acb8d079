//! What a request is answered with: a body, or one of Discord's errors.

use serde_json::{Value, json};

/// The end of a request.
pub(super) type Answer = Result<Reply, Refusal>;

/// A request that was done.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Option<Value>,
}

impl Reply {
    pub(super) fn ok(body: Value) -> Answer {
        Ok(Self { status: 200, body: Some(body) })
    }

    pub(super) fn created(body: Value) -> Answer {
        Ok(Self { status: 201, body: Some(body) })
    }

    pub(super) fn nothing() -> Answer {
        Ok(Self { status: 204, body: None })
    }
}

/// A request that was refused, with the code that Discord documents.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl Refusal {
    fn new(status: u16, code: u32, message: &str) -> Self {
        Self { status, body: json!({ "message": message, "code": code }) }
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(401, 0, "401: Unauthorized")
    }

    pub(super) fn not_found() -> Self {
        Self::new(404, 0, "404: Not Found")
    }

    pub(super) fn method() -> Self {
        Self::new(405, 0, "405: Method Not Allowed")
    }

    pub(super) fn server(status: u16) -> Self {
        Self::new(status, 0, &format!("{status}: Server Error"))
    }

    pub(super) fn unknown_channel() -> Self {
        Self::new(404, 10003, "Unknown Channel")
    }

    pub(super) fn unknown_guild() -> Self {
        Self::new(404, 10004, "Unknown Guild")
    }

    pub(super) fn unknown_member() -> Self {
        Self::new(404, 10007, "Unknown Member")
    }

    pub(super) fn unknown_message() -> Self {
        Self::new(404, 10008, "Unknown Message")
    }

    pub(super) fn unknown_user() -> Self {
        Self::new(404, 10013, "Unknown User")
    }

    pub(super) fn unknown_webhook() -> Self {
        Self::new(404, 10015, "Unknown Webhook")
    }

    pub(super) fn unknown_interaction() -> Self {
        Self::new(404, 10062, "Unknown interaction")
    }

    pub(super) fn unknown_command() -> Self {
        Self::new(404, 10063, "Unknown application command")
    }

    pub(super) fn old_message() -> Self {
        let message = "Maximum number of edits to messages older than 1 hour reached. \
                       Try again later.";
        let mut refusal = Self::new(429, 30046, message);
        refusal.body["retry_after"] = 900.into();
        refusal
    }

    pub(super) fn too_large() -> Self {
        Self::new(413, 40005, "Request entity too large")
    }

    pub(super) fn already_acknowledged() -> Self {
        Self::new(400, 40060, "Interaction has already been acknowledged.")
    }

    pub(super) fn missing_access() -> Self {
        Self::new(403, 50001, "Missing Access")
    }

    pub(super) fn direct_channel() -> Self {
        Self::new(400, 50003, "Cannot execute action on a DM channel")
    }

    pub(super) fn archived() -> Self {
        Self::new(400, 50083, "Thread is archived")
    }

    pub(super) fn not_the_author() -> Self {
        Self::new(403, 50005, "Cannot edit a message authored by another user")
    }

    pub(super) fn empty_message() -> Self {
        Self::new(400, 50006, "Cannot send an empty message")
    }

    pub(super) fn missing_permissions() -> Self {
        Self::new(403, 50013, "Missing Permissions")
    }

    pub(super) fn webhook_token() -> Self {
        Self::new(401, 50027, "Invalid Webhook Token")
    }

    pub(super) fn api_version() -> Self {
        Self::new(400, 50041, "Invalid API version")
    }

    pub(super) fn invalid_json() -> Self {
        Self::new(400, 50109, "The request body contains invalid JSON.")
    }

    pub(super) fn thread_exists() -> Self {
        Self::new(400, 160_004, "A thread has already been created for this message")
    }

    /// Refuses a form by what is wrong with one field, named by its path with dots.
    pub(super) fn form(field: &str, code: &str, message: &str) -> Self {
        let wrong = json!({ "_errors": [{ "code": code, "message": message }] });
        let names = field.split('.').filter(|name| !name.is_empty());
        let errors = names.rev().fold(wrong, |inner, name| json!({ name: inner }));
        let body = json!({ "message": "Invalid Form Body", "code": 50035, "errors": errors });
        Self { status: 400, body }
    }

    pub(super) fn required(field: &str) -> Self {
        Self::form(field, "BASE_TYPE_REQUIRED", "This field is required")
    }

    pub(super) fn too_long(field: &str, most: usize) -> Self {
        let message = format!("Must be {most} or fewer in length.");
        Self::form(field, "BASE_TYPE_MAX_LENGTH", &message)
    }

    pub(super) fn length(field: &str, least: usize, most: usize) -> Self {
        let message = format!("Must be between {least} and {most} in length.");
        Self::form(field, "BASE_TYPE_BAD_LENGTH", &message)
    }
}
