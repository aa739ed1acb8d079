//! What chats have in common: what one can take, as data; what is posted there;
//! and what carries it. What is posted, and when, is decided by `draft` and
//! `plan`, which are pure; a chat does the network and nothing else.

pub(crate) mod carrier;
pub(crate) mod draft;
pub(crate) mod intake;
pub(crate) mod plan;
pub(crate) mod poster;
pub(crate) mod show;
pub(crate) mod split;

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use self::draft::{Detail, Long};
use super::{DISCORD, SendError};
use crate::{config, gateway::policy::Policy};

/// What a chat can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The longest text of a message, in characters.
    pub(crate) text: usize,
    /// How far apart changes of a message are; nothing if it cannot be changed.
    pub(crate) edits: Option<Duration>,
    /// How long a sign of typing lasts; nothing if there is none.
    pub(crate) typing: Option<Duration>,
    /// How many buttons a message can have.
    pub(crate) buttons: usize,
    /// The longest label of a button, in characters.
    pub(crate) label: usize,
    /// How many files a message can have, and how large one can be.
    pub(crate) files: usize,
    pub(crate) file_bytes: u64,
}

/// A message as it is to stand in a chat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Post {
    pub(crate) text: String,
    pub(crate) buttons: Vec<Button>,
    pub(crate) files: Vec<Attachment>,
}

/// A choice that a message offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Button {
    /// What comes back when it is pressed.
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) look: Look,
}

/// How a button looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Plain,
    Good,
    Bad,
}

/// A file that goes with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    /// What it is called in the chat.
    pub(crate) name: String,
    pub(crate) content: Content,
}

/// What is in a file. It was read when it was checked, so that nothing else is sent.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Bytes(Arc<[u8]>),
    Text(String),
}

impl Content {
    /// Returns how many bytes there are.
    pub(crate) fn len(&self) -> u64 {
        let bytes = match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Text(text) => text.len(),
        };
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
        }
    }
}

/// Which part of an answer a message is. Messages of an answer are numbered in the
/// order in which they stand in the chat.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Slot {
    /// A page of the text.
    Text(u32),
    /// A request for permission, by its id.
    Asked(String),
    /// What is said about the answer, such as why there is none.
    Note,
}

impl fmt::Display for Slot {
    /// Writes it as the store keeps it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(number) => write!(f, "text:{number}"),
            Self::Asked(id) => write!(f, "asked:{id}"),
            Self::Note => f.write_str("note"),
        }
    }
}

impl Slot {
    /// Reads what the store has; nothing if a newer ostler wrote it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.split_once(':') {
            Some(("text", number)) => number.parse().ok().map(Self::Text),
            Some(("asked", id)) => Some(Self::Asked(id.to_owned())),
            Some(_) => None,
            None => (text == "note").then_some(Self::Note),
        }
    }
}

impl Post {
    /// Makes one that is a text and nothing else.
    pub(crate) fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// A message on its way into a chat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting<'a> {
    pub(crate) post: &'a Post,
    /// What makes it the same message: sent again within some minutes, a chat that
    /// can tell shows it once.
    pub(crate) nonce: &'a str,
    /// The message that it answers, if the chat is to show that.
    pub(crate) answers: Option<&'a str>,
}

/// A message that stands in a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stands {
    /// What the chat calls it.
    pub(crate) message: String,
    /// Whether it has the text that was sent now. One that was sent before under the
    /// same name may have another.
    pub(crate) is_as_sent: bool,
}

/// What became of a message that was to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Done,
    /// It is not there any more.
    Gone,
}

/// What an operation of a chat comes to.
pub(crate) type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, SendError>> + Send + 'a>>;

/// What carries messages into a chat. Each operation ends within a time limit of
/// the chat's own.
pub(crate) trait Chat: Send + Sync {
    fn limits(&self) -> &Limits;

    /// Shows that somebody is at work on an answer.
    fn typing<'a>(&'a self, place: &'a str) -> Doing<'a, ()>;

    fn send<'a>(&'a self, place: &'a str, posting: Posting<'a>) -> Doing<'a, Stands>;

    fn edit<'a>(&'a self, place: &'a str, message: &'a str, post: &'a Post) -> Doing<'a, Changed>;

    fn delete<'a>(&'a self, place: &'a str, message: &'a str) -> Doing<'a, Changed>;
}

/// The chats there are.
#[derive(Clone, Default)]
pub(crate) struct Chats {
    discord: Option<Arc<dyn Chat>>,
}

impl fmt::Debug for Chats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chats").field("discord", &self.discord.is_some()).finish()
    }
}

impl Chats {
    pub(crate) fn with_discord(discord: Arc<dyn Chat>) -> Self {
        Self { discord: Some(discord) }
    }

    /// Returns the chat that a channel is.
    pub(crate) fn get(&self, channel: &str) -> Option<Arc<dyn Chat>> {
        match channel {
            DISCORD => self.discord.clone(),
            _ => None,
        }
    }

    /// Returns how much is shown of a turn there.
    pub(crate) fn detail(&self, channel: &str, policy: &Policy) -> Detail {
        match (channel, policy.discord.detail) {
            (DISCORD, config::Detail::Verbose) => Detail::Verbose,
            (DISCORD, config::Detail::Normal) => Detail::Normal,
            (_, _) => Detail::Quiet,
        }
    }

    /// Returns what becomes of long answers there.
    pub(crate) fn long(&self, channel: &str, policy: &Policy) -> Long {
        match (channel, policy.discord.long_answers) {
            (DISCORD, config::LongAnswers::File) => Long::File { over: 1 },
            (_, _) => Long::Split,
        }
    }
}
