//! What a server says of its health.

use serde_json::Value;

/// Where it says that.
pub(super) const HEALTH: &str = "/global/health";

/// How a server is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// It is well, and of this version.
    Well { version: String },
    /// It says that it is not well.
    Unwell,
    /// It does not say, so it is something else. Any unknown path of the server
    /// is answered as well.
    Unsaid,
}

impl Health {
    pub(super) fn read(reply: &Value) -> Self {
        match reply.get("healthy").and_then(Value::as_bool) {
            Some(true) => {
                let version = reply.get("version").and_then(Value::as_str);
                Self::Well { version: version.unwrap_or_default().to_owned() }
            }
            Some(false) => Self::Unwell,
            None => Self::Unsaid,
        }
    }
}
