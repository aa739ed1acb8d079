//! What a dialect can ask of an agent that is an HTTP server, and what it hears
//! from one. Data only; `warm/wire.rs` does the rest.

use std::{fmt, time::Duration};

use serde_json::Value;

/// A dialect's own name for a call it made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(pub u32);

/// What is called, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpCall {
    /// How.
    pub method: Method,
    /// What, with its query.
    pub url: String,
    /// As whom.
    pub login: Option<Login>,
    /// What is sent along, as JSON.
    pub body: Option<Value>,
    /// How long until it counts as failed.
    pub limit: Duration,
}

/// The stream of events that a dialect listens to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSource {
    /// Where it is.
    pub url: String,
    /// As whom.
    pub login: Option<Login>,
    /// How long it may be silent until it counts as lost.
    pub quiet: Duration,
}

/// How a server is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads something.
    Get,
    /// Changes something.
    Post,
}

impl Method {
    /// Returns the word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// Who calls.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub user: String,
    /// The secret.
    pub password: String,
}

impl fmt::Debug for Login {
    /// Leaves the secret out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// What was heard from a server.
#[derive(Clone, Debug)]
pub enum Heard<'a> {
    /// A call was answered, or could not be made.
    Reply {
        /// Which.
        call: CallKey,
        /// The answer, or why there is none.
        reply: Result<HttpReply<'a>, &'a str>,
    },
    /// The stream told an event: its data.
    Event(&'a [u8]),
    /// The stream broke off or could not be opened. It is not opened again by
    /// itself.
    Lost {
        /// Why.
        why: &'a str,
    },
}

/// How a call was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpReply<'a> {
    /// The status.
    pub status: u16,
    /// What came along.
    pub body: &'a [u8],
}
