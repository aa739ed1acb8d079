//! What chats have in common: what one can take, as data; what is posted there;
//! and what carries it. What is posted, and when, is decided by `draft` and
//! `plan`, which are pure; a chat does the network and nothing else.

pub(crate) mod carrier;
mod chats;
pub(crate) mod draft;
pub(crate) mod fit;
pub(crate) mod intake;
pub(crate) mod markup;
pub(crate) mod measure;
pub(crate) mod plan;
pub(crate) mod poster;
pub(crate) mod show;
pub(crate) mod split;
#[cfg(test)]
pub(crate) mod testing;

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

pub(crate) use self::chats::{Chats, Share};
use self::{markup::Markup, measure::Measure};
use super::SendError;
use crate::{clock::Millis, media};

/// What a chat can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The longest text of a message, and how that is counted.
    pub(crate) text: usize,
    pub(crate) measure: Measure,
    /// How far apart changes of a message are; nothing if it cannot be changed.
    pub(crate) edits: Option<Duration>,
    /// How long a sign of typing lasts; nothing if there is none.
    pub(crate) typing: Option<Duration>,
    /// How many buttons a message can have.
    pub(crate) buttons: usize,
    /// The longest label of a button, in characters.
    pub(crate) label: usize,
    /// How many files a message can have, and how large one can be, a picture, and all
    /// of them together.
    pub(crate) files: usize,
    pub(crate) file_bytes: u64,
    pub(crate) image_bytes: u64,
    pub(crate) together_bytes: u64,
    /// The media types of files that it takes; nothing if it takes any.
    pub(crate) kinds: Option<&'static [&'static str]>,
    /// Whether a message can have both a text and files.
    pub(crate) has_captions: bool,
    /// How choices are offered.
    pub(crate) choices: Choices,
    pub(crate) markup: Markup,
    /// For how long a message that is sent twice under one name stands there once; not
    /// at all if there is nothing.
    pub(crate) known_again: Option<Duration>,
}

impl Limits {
    /// Returns how many characters of a text fit into a message for certain, wherever
    /// they are taken from.
    pub(crate) fn room_for(&self, text: &str) -> usize {
        let widest = text.chars().map(|c| self.measure.of_char(c)).max();
        self.text / widest.unwrap_or(1)
    }
}

/// How somebody in a chat can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choices {
    /// By buttons.
    Buttons,
    /// By numbers, which he sends. They go on over all requests of a place.
    Numbers,
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

impl Attachment {
    /// Returns its media type, by what is in it.
    pub(crate) fn kind(&self) -> &'static str {
        let bytes = match &self.content {
            Content::Bytes(bytes) => bytes,
            Content::Text(text) => text.as_bytes(),
        };
        media::kind_of(bytes, &self.name)
    }
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
    /// A page of what is asked, above the request, if it takes several messages.
    Page(String, u32),
    /// What is said about the answer, such as why there is none.
    Note,
}

impl fmt::Display for Slot {
    /// Writes it as the store keeps it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(number) => write!(f, "text:{number}"),
            Self::Asked(id) => write!(f, "asked:{id}"),
            Self::Page(id, number) => write!(f, "page:{number}:{id}"),
            Self::Note => f.write_str("note"),
        }
    }
}

impl Slot {
    /// Whether it is a request for permission, or a page of one.
    pub(crate) fn is_asked(&self) -> bool {
        match self {
            Self::Asked(_) | Self::Page(..) => true,
            Self::Text(_) | Self::Note => false,
        }
    }

    /// Reads what the store has; nothing if a newer ostler wrote it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.split_once(':') {
            Some(("text", number)) => number.parse().ok().map(Self::Text),
            Some(("asked", id)) => Some(Self::Asked(id.to_owned())),
            Some(("page", of)) => {
                let (number, id) = of.split_once(':')?;
                Some(Self::Page(id.to_owned(), number.parse().ok()?))
            }
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

    /// Whether there is room for what can be left out: signs of typing, and an
    /// answer that is not whole. If there is none, answers would have to wait for it.
    fn has_room(&self) -> bool {
        true
    }

    /// Shows that somebody is at work on an answer, to a message if there is one.
    fn typing<'a>(&'a self, place: &'a str, answers: Option<&'a str>) -> Doing<'a, ()>;

    fn send<'a>(&'a self, place: &'a str, posting: Posting<'a>) -> Doing<'a, Stands>;

    fn edit<'a>(&'a self, place: &'a str, message: &'a str, post: &'a Post) -> Doing<'a, Changed>;

    fn delete<'a>(&'a self, place: &'a str, message: &'a str) -> Doing<'a, Changed>;

    /// Returns the messages that stand there since a time and are like this one, the
    /// oldest first, for when the chat does not know a message again by its name.
    fn find<'a>(
        &'a self,
        place: &'a str,
        posting: Posting<'a>,
        since: Millis,
    ) -> Doing<'a, Vec<Stands>>;
}
