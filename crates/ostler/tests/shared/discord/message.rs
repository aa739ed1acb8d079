//! A message as it stands, its attachments, and what was done to it.

use std::{sync::Arc, time::Instant};

use serde_json::Value;

/// The flag of a message that only one user can see.
const EPHEMERAL: u64 = 1 << 6;
/// The flag of an answer that is still to come.
const LOADING: u64 = 1 << 7;

/// A message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) id: u64,
    pub(crate) channel: u64,
    pub(crate) author: u64,
    /// The name of a webhook, which then is the author too.
    pub(crate) webhook: Option<String>,
    pub(crate) content: String,
    /// The components and embeds, as they were sent.
    pub(crate) components: Vec<Value>,
    pub(crate) embeds: Vec<Value>,
    pub(crate) attachments: Vec<Attachment>,
    /// The message that this replies to.
    pub(crate) reply_to: Option<u64>,
    pub(crate) edited: bool,
    pub(crate) flags: u64,
    pub(crate) nonce: Option<Value>,
    pub(crate) allowed_mentions: Option<Value>,
    /// The interaction that this answers or follows.
    pub(crate) interaction: Option<u64>,
    /// The reactions of the bot.
    pub(crate) reactions: Vec<String>,
    pub(super) edited_at: Option<u64>,
}

impl Message {
    pub(super) fn new(id: u64, channel: u64, author: u64, content: &str) -> Self {
        Self {
            id,
            channel,
            author,
            webhook: None,
            content: content.to_owned(),
            components: Vec::new(),
            embeds: Vec::new(),
            attachments: Vec::new(),
            reply_to: None,
            edited: false,
            flags: 0,
            nonce: None,
            allowed_mentions: None,
            interaction: None,
            reactions: Vec::new(),
            edited_at: None,
        }
    }

    /// Returns whether only one user can see it.
    pub(crate) fn is_ephemeral(&self) -> bool {
        self.flags & EPHEMERAL != 0
    }

    /// Returns whether it is an answer that was promised and has not come.
    pub(crate) fn is_loading(&self) -> bool {
        self.flags & LOADING != 0
    }

    pub(super) fn set_loading(&mut self) {
        self.flags |= LOADING;
    }

    pub(super) fn set_loaded(&mut self) {
        self.flags &= !LOADING;
    }

    /// Returns the component with this custom id.
    pub(crate) fn component(&self, custom_id: &str) -> Option<&Value> {
        find(&self.components, custom_id)
    }

    /// Returns the custom ids of all components, in their order.
    pub(crate) fn custom_ids(&self) -> Vec<String> {
        let mut found = Vec::new();
        collect(&self.components, &mut found);
        found
    }
}

fn find<'a>(components: &'a [Value], custom_id: &str) -> Option<&'a Value> {
    components.iter().find_map(|component| {
        if component["custom_id"] == custom_id {
            return Some(component);
        }
        let inner = component["components"].as_array().and_then(|inner| find(inner, custom_id));
        inner.or_else(|| {
            let accessory = &component["accessory"];
            (accessory["custom_id"] == custom_id).then_some(accessory)
        })
    })
}

fn collect(components: &[Value], found: &mut Vec<String>) {
    for component in components {
        found.extend(component["custom_id"].as_str().map(ToOwned::to_owned));
        found.extend(component["accessory"]["custom_id"].as_str().map(ToOwned::to_owned));
        if let Some(inner) = component["components"].as_array() {
            collect(inner, found);
        }
    }
}

/// A file with a message.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// The size that is told, which a fault may make another than the real one.
    pub(crate) size: u64,
    pub(crate) content: Content,
}

impl Attachment {
    /// Returns the bytes; of endless ones, none.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Bytes(bytes) => bytes,
            Content::Endless => &[],
        }
    }

    /// Returns the type by the name, as Discord guesses it.
    pub(super) fn content_type(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("png") => "image/png",
            Some("jpg" | "jpeg") => "image/jpeg",
            Some("gif") => "image/gif",
            Some("webp") => "image/webp",
            Some("json") => "application/json; charset=utf-8",
            Some("txt" | "md" | "log" | "diff" | "patch" | "rs") => "text/plain; charset=utf-8",
            Some("pdf") => "application/pdf",
            Some("zip") => "application/zip",
            _ => "application/octet-stream",
        }
    }
}

/// What a download of an attachment gives.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Bytes(Arc<[u8]>),
    /// Zeros for as long as they are read.
    Endless,
}

/// Something that the bot did in a channel.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    /// The message; of typing, zero.
    pub(crate) message: u64,
    /// The content after it; of what was deleted, the content before.
    pub(crate) content: String,
    pub(crate) at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Sent,
    Edited,
    Deleted,
    Typing,
}
