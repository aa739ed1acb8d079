//! What comes in, what is stored of it, and why it may be refused.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    channel::{
        DISCORD, GROUP, NAMES, SMS, WEBHOOK, WHATSAPP, is_discord_id, is_number, is_sid, webhook,
    },
    id::{ConversationId, JobId, ProjectId},
    queue::EnqueueError,
    store::{
        StoreError, WriteError,
        conversations::{Address, AddressError},
        events::Belonging,
    },
    wishes::Wishes,
};

/// The channel of people on this machine. They read the event log; nothing is
/// sent to them.
pub(crate) const LOCAL: &str = "local";

/// The channel of commands that came over HTTP. Whoever gave them reads the event
/// log; nothing is sent.
pub(crate) const API: &str = "api";

/// The sort of job that asks an agent something.
pub(crate) const PROMPT: &str = "prompt";
/// The sort of job that asks an agent something for a project. Whoever gave it is
/// told by its events, so that nobody looks for replies that are missing.
pub(crate) const COMMAND: &str = "command";
/// The sort of job that begins a conversation afresh.
pub(crate) const RESET: &str = "reset";

/// The sort of job that asks an agent whether something needs attention.
pub(crate) const HEARTBEAT: &str = "heartbeat";

/// The sort of job that runs a program instead of an agent.
pub(crate) const PROGRAM: &str = "program";

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
    pub(crate) origin: Origin,
    pub(crate) details: Details,
    /// The command that it is, if it is one.
    pub(crate) belongs: Option<Belonging>,
    /// What is run instead of an agent: a program and its arguments.
    pub(crate) words: Option<Vec<String>>,
}

/// What made a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    /// Somebody said something.
    #[default]
    Person,
    /// `ostler run --daemon`: a prompt and nothing around it.
    Run,
    /// A command of a project: a prompt and nothing around it.
    Command,
    Heartbeat,
    Schedule,
    Hook,
}

impl Origin {
    /// Whether somebody said it, and not something that Ostler does by itself.
    pub(crate) fn is_spoken(self) -> bool {
        match self {
            Self::Person | Self::Run | Self::Command => true,
            Self::Heartbeat | Self::Schedule | Self::Hook => false,
        }
    }

    /// Whether nothing is put around it.
    pub(crate) fn is_bare(self) -> bool {
        match self {
            Self::Run | Self::Command => true,
            Self::Person | Self::Heartbeat | Self::Schedule | Self::Hook => false,
        }
    }

    /// Whether a conversation is as silent with it as without.
    pub(crate) fn is_aside(self) -> bool {
        match self {
            Self::Heartbeat | Self::Hook => true,
            Self::Person | Self::Run | Self::Command | Self::Schedule => false,
        }
    }
}

/// What a channel knows of a message beside its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Details {
    /// What the sender calls himself, where that is not the name he is known by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sender_name: Option<String>,
    /// His telephone number, with a plus sign and the country.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sender_number: Option<String>,
    /// To whom it was sent: the number or account of the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// The group that it was said in, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<Group>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) media: Vec<Media>,
    /// What is spoken in it, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transcript: Option<String>,
}

/// A conversation of several people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Group {
    pub(crate) subject: String,
    pub(crate) members: Vec<String>,
    /// What was said there since the agent heard something last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) before: Vec<Line>,
}

/// Something that somebody said in a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A picture, a recording or another file that came with a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Media {
    /// Where it lies on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// Where it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// Its media type, such as `image/png`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
    /// Why it could not be fetched when its turn began.
    #[serde(skip)]
    pub(crate) trouble: Option<String>,
    /// Why nobody could say what is spoken in it, if that was tried.
    #[serde(skip)]
    pub(crate) unheard: Option<String>,
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
    #[error("what is said of the message cannot be used: {0}")]
    Details(String),
    #[error("the address of a channel at Discord is its id, such as 1234567890, not {0:?}")]
    Id(String),
    #[error("an address there is a number with its country, such as +4915112345678, not {0:?}")]
    Number(String),
    #[error("the address of a group is its conversation at Twilio, such as CH0123…, not {0:?}")]
    Group(String),
    #[error("there is no channel {0:?}; there are {NAMES}")]
    Channel(String),
    #[error("{0}")]
    Agent(String),
    #[error("the message has no text")]
    NoText,
    #[error("the name of a sender cannot be used: {0}")]
    Sender(AddressError),
    #[error("nobody has said anything yet, so that there is no place to send it to; name one")]
    NobodyThere,
    #[error("the gateway is shutting down; send it again when it is back")]
    Stopping,
    #[error("there is no project {0}")]
    Project(ProjectId),
    #[error("there is no session {0:?} in this project")]
    Session(String),
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
            | Self::Details(_)
            | Self::Id(_)
            | Self::Number(_)
            | Self::Group(_)
            | Self::Channel(_)
            | Self::Agent(_)
            | Self::NoText
            | Self::Sender(_)
            | Self::NobodyThere
            | Self::Project(_)
            | Self::Session(_)
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
            | Self::Details(_)
            | Self::Id(_)
            | Self::Number(_)
            | Self::Group(_)
            | Self::Channel(_)
            | Self::Agent(_)
            | Self::NoText
            | Self::Sender(_)
            | Self::NobodyThere
            | Self::Project(_)
            | Self::Session(_) => "invalid_request",
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
    /// What the channel calls the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// When it came, in milliseconds since 1970; messages of an older ostler do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<i64>,
    #[serde(default)]
    pub(crate) origin: Origin,
    #[serde(default)]
    pub(crate) details: Details,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) belongs: Option<Belonging>,
    /// What is run instead of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) words: Option<Vec<String>>,
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

/// Returns an error unless there is such a place, as far as one can tell. Whether
/// somebody is there who can speak in it is another matter.
pub(crate) fn check_place(address: &Address) -> Result<(), Refusal> {
    match address.channel() {
        LOCAL => Ok(()),
        WEBHOOK => webhook::check(address.key()).map_err(|error| Refusal::Url(error.to_string())),
        DISCORD if is_discord_id(address.key()) => Ok(()),
        DISCORD => Err(Refusal::Id(address.key().to_owned())),
        WHATSAPP | SMS if is_number(address.key()) => Ok(()),
        WHATSAPP | SMS => Err(Refusal::Number(address.key().to_owned())),
        GROUP if is_sid(address.key(), "CH") => Ok(()),
        GROUP => Err(Refusal::Group(address.key().to_owned())),
        other => Err(Refusal::Channel(other.to_owned())),
    }
}

impl Payload {
    /// Writes it as it is stored.
    pub(crate) fn to_json(&self) -> Result<String, Refusal> {
        serde_json::to_string(self)
            .map_err(|error| Refusal::Agent(format!("the message cannot be stored: {error}")))
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_in_a_channel_that_there_is_and_the_others_are_named() {
        let check = |text: &str| check_place(&text.parse().unwrap()).map_err(|it| it.to_string());
        for place in ["local:main", "webhook:http://127.0.0.1:1/", "discord:1234567890"] {
            assert_eq!(check(place), Ok(()), "{place}");
        }
        for (place, says) in [
            ("discord:general", "is its id, such as 1234567890, not \"general\""),
            ("discord:1 2", "is its id"),
            ("webhook:x", "http or https"),
            ("api:x", "there are `local`, `webhook`, `discord`"),
        ] {
            let error = check(place).unwrap_err();
            assert!(error.contains(says), "{place}: {error}");
        }
    }
}
