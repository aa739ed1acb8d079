//! What comes in, what is stored of it, and why it may be refused.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    id::{ConversationId, JobId},
    queue::EnqueueError,
    store::{
        StoreError, WriteError,
        conversations::{Address, AddressError},
    },
    wishes::Wishes,
};

/// The channel of people on this machine. They read the event log; nothing is
/// sent to them.
pub(crate) const LOCAL: &str = "local";

/// The sort of job that asks an agent something.
pub(crate) const PROMPT: &str = "prompt";
/// The sort of job that begins a conversation afresh.
pub(crate) const RESET: &str = "reset";

/// A message from outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inbound {
    /// Where it came from, and where the reply goes.
    pub(crate) address: Address,
    /// Who sent it, by the name that the channel vouches for.
    pub(crate) sender: String,
    /// What the channel calls it. The same name twice is the same message.
    pub(crate) message: Option<String>,
    pub(crate) text: String,
    pub(crate) wishes: Wishes,
}

/// A message that is stored and will be dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) conversation: ConversationId,
    pub(crate) job: JobId,
    /// Whether it had been accepted before.
    pub(crate) is_again: bool,
}

/// Why a message was not accepted. Nothing of it was stored.
#[derive(Clone, Debug, Error)]
pub(crate) enum Refusal {
    #[error("prompt required")]
    Empty,
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("the id of a message cannot be used: {0}")]
    Message(AddressError),
    #[error("the address of a webhook must be an http or https URL: {0}")]
    Url(String),
    #[error("there is no channel {0:?}; messages can come from `local` and `webhook`")]
    Channel(String),
    #[error("{0}")]
    Agent(String),
    #[error("the gateway is shutting down; send it again when it is back")]
    Stopping,
    #[error(transparent)]
    Enqueue(#[from] EnqueueError),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Enqueue(error.into())
    }
}

impl WriteError for Refusal {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Enqueue(error) => error.store_error(),
            Self::Empty
            | Self::Address(_)
            | Self::Message(_)
            | Self::Url(_)
            | Self::Channel(_)
            | Self::Agent(_)
            | Self::Stopping => None,
        }
    }
}

impl Refusal {
    /// Returns the word to branch on.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Empty
            | Self::Address(_)
            | Self::Message(_)
            | Self::Url(_)
            | Self::Channel(_)
            | Self::Agent(_) => "invalid_request",
            Self::Stopping => "stopping",
            Self::Enqueue(EnqueueError::QueueFull { .. }) => "queue_full",
            Self::Enqueue(EnqueueError::Store(_)) => "store",
        }
    }
}

/// What a job is about, as it is stored with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Payload {
    /// The version of this shape.
    pub(crate) v: u32,
    pub(crate) text: String,
    pub(crate) sender: String,
    /// Where the reply goes.
    pub(crate) channel: String,
    pub(crate) address: String,
    /// Why it does not go on with the conversation's session, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fresh: Option<Fresh>,
    #[serde(default)]
    pub(crate) wishes: Wishes,
}

/// Why a prompt begins a new session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fresh {
    /// The conversation had been silent for too long.
    Idle,
    /// The sender wanted it.
    Asked,
}

/// The version of [`Payload`] that this program writes, and the newest it reads.
pub(crate) const PAYLOAD: u32 = 1;

impl Payload {
    /// Reads what was stored; the error is for people.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let payload: Self = serde_json::from_str(text)
            .map_err(|error| format!("the stored message cannot be read: {error}"))?;
        if payload.v > PAYLOAD {
            return Err("the message was stored by a newer ostler".to_owned());
        }
        Ok(payload)
    }
}
