//! The channel whose addresses are URLs: a reply is posted there as JSON.
//!
//! Straight to the address, as `clients` says.

pub(super) mod verdict;

use std::time::Duration;

use ostler_core::failure::chain;
use reqwest::{Response, Url, header};
use serde::Serialize;
use thiserror::Error;
use tokio::time;

use self::verdict::{judge, no_answer, retry_after};
use super::{Reply, ReplyError, SendError, Sent, reply::Unreadable};
use crate::{
    clients::{Clients, read_start},
    clock::Millis,
    id::{ConversationId, JobId, OutboxId, TurnId},
    store::outbox::Sending,
};

/// The longest URL, in bytes.
const LONGEST: usize = 512;
/// How much of an answer is read, in bytes.
const READ: usize = 4096;
/// The time limits.
pub(crate) const LIMITS: Limits = Limits {
    connect: Duration::from_secs(5),
    whole: Duration::from_secs(20),
    body: Duration::from_secs(2),
};

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) connect: Duration,
    /// From the start to the head of the answer.
    pub(crate) whole: Duration,
    /// The body of a refusal, which is only good for its words.
    pub(crate) body: Duration,
}

/// A text that is not the URL of a webhook.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum UrlError {
    #[error("it is not a URL ({0}); give one such as https://example.org/replies")]
    NotAUrl(String),
    #[error("its scheme is {0}; give a URL that begins with http:// or https://")]
    Scheme(String),
    #[error("it has a user name or a password in it; put a secret into the path or the query")]
    UserInfo,
    #[error("it is longer than {LONGEST} bytes")]
    Long,
    #[error("it has a space or a control character in it; write such characters as %20")]
    Space,
}

/// Checks an address before anything is accepted for it.
pub(crate) fn check(url: &str) -> Result<(), UrlError> {
    if url.len() > LONGEST {
        return Err(UrlError::Long);
    }
    // Reading a URL would drop some of them without a word.
    if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(UrlError::Space);
    }
    let parsed = Url::parse(url).map_err(|error| UrlError::NotAUrl(error.to_string()))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(UrlError::Scheme(parsed.scheme().to_owned()));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(UrlError::UserInfo);
    }
    Ok(())
}

/// Returns the start of a URL, up to its path.
pub(crate) fn origin(url: &str) -> String {
    let parsed = Url::parse(url).ok();
    parsed.map_or_else(|| "a webhook".to_owned(), |url| url.origin().ascii_serialization())
}

/// What posts replies.
#[derive(Debug)]
pub(crate) struct Webhook {
    limits: Limits,
    clients: Clients,
}

/// What is posted. The field names are part of the contract.
#[derive(Serialize)]
struct Body<'a> {
    id: OutboxId,
    conversation: ConversationId,
    job: Option<JobId>,
    #[serde(skip_serializing_if = "<[JobId]>::is_empty")]
    with: &'a [JobId],
    turn: Option<TurnId>,
    text: Option<&'a str>,
    error: Option<&'a ReplyError>,
    is_unsure: bool,
}

impl Webhook {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, clients: Clients::new(limits.connect) }
    }

    /// Posts a reply.
    pub(super) async fn send(&self, sending: &Sending, now: Millis) -> Result<Sent, SendError> {
        let url = &sending.message.address;
        // It was checked when it came, by a program that may have had other rules.
        check(url).map_err(|error| SendError::given_up(error.to_string()))?;
        let reply = Reply::from_json(&sending.message.body).map_err(|error| match error {
            // Another gateway at the same store may be of that version.
            Unreadable::Newer(_) => SendError::soon(error.to_string()),
            Unreadable::Broken(_) => SendError::given_up(error.to_string()),
        })?;
        let client = self.clients.client(url).map_err(|error| {
            let reason = format!("could not prepare the call: {}", chain(&error.without_url()));
            SendError::soon(reason)
        })?;
        let body = Body {
            id: sending.id,
            conversation: reply.conversation,
            job: reply.job,
            with: &reply.with,
            turn: reply.turn,
            text: reply.text.as_deref(),
            error: reply.error.as_ref(),
            is_unsure: sending.is_unsure,
        };
        let call = client
            .post(url)
            .header("Idempotency-Key", sending.id.to_string())
            .json(&body)
            .timeout(self.limits.whole);
        match call.send().await {
            Ok(response) => self.answered(response, now).await,
            Err(error) => Err(no_answer(error, self.limits.whole)),
        }
    }

    async fn answered(&self, response: Response, now: Millis) -> Result<Sent, SendError> {
        let status = response.status();
        if status.is_success() {
            // It said that it has the reply; what else it says does not change that.
            return Ok(Sent { message: None });
        }
        let after = response.headers().get(header::RETRY_AFTER);
        let after = after.and_then(|after| after.to_str().ok());
        let after = after.and_then(|after| retry_after(after, now));
        let mut said = Vec::new();
        // As far as it comes.
        time::timeout(self.limits.body, read_start(response, READ, &mut said)).await.ok();
        Err(judge(status, after, &said))
    }
}

#[cfg(test)]
mod tests;
