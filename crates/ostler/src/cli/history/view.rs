//! Messages as they are printed. The names are part of the contract.

use serde::Serialize;
use serde_json::Value;

use crate::{
    archive::{who, words},
    clock::Millis,
    id::{ConversationId, JobId, MessageId, TurnId},
    store::messages::Message,
    ui::printable,
};

/// A message.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) id: MessageId,
    pub(super) conversation: ConversationId,
    pub(super) direction: &'static str,
    pub(super) origin: String,
    pub(super) channel: String,
    pub(super) address: String,
    pub(super) sender: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) text: Option<String>,
    /// Why there is no text.
    pub(super) error: Option<Value>,
    pub(super) job: Option<JobId>,
    pub(super) turn: Option<TurnId>,
    pub(super) at: Millis,
    /// The head and the text for people.
    #[serde(skip)]
    shown: (String, String),
}

/// A page of them, in their order.
#[derive(Debug, Default, Serialize)]
pub(super) struct Page {
    pub(super) messages: Vec<Row>,
    /// What to give as `--before` for older ones; null when there are no more.
    pub(super) previous: Option<MessageId>,
    /// What to give as `--after` for newer ones; null when there are no more.
    pub(super) next: Option<MessageId>,
}

impl From<Message> for Row {
    fn from(message: Message) -> Self {
        let (text, kind) = words(&message);
        let kind = kind.map(|kind| format!("  {kind}")).unwrap_or_default();
        let Message { at, channel, address, .. } = &message;
        let head = format!("{at}  {channel}:{address}  {}{kind}", who(&message));
        let error = message.error.as_deref().and_then(|error| serde_json::from_str(error).ok());
        Self {
            shown: (head, text),
            id: message.id,
            conversation: message.conversation,
            direction: message.direction.as_str(),
            origin: message.origin,
            channel: message.channel,
            address: message.address,
            sender: message.sender,
            agent: message.agent,
            text: message.text,
            error,
            job: message.job,
            turn: message.turn,
            at: message.at,
        }
    }
}

impl Page {
    /// Returns it for people. What was said is indented, so that nobody can make a
    /// message of his own within another.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if let Some(previous) = self.previous {
            text.push_str(&format!("earlier ones with --before {previous}\n\n"));
        }
        for Row { shown: (head, said), .. } in &self.messages {
            text.push_str(&printable(head).replace('\n', "\u{fffd}"));
            text.push('\n');
            for line in printable(said).trim_end().split('\n') {
                text.push_str(&format!("    {line}\n"));
            }
            text.push('\n');
        }
        if self.messages.is_empty() {
            text.push_str("no messages\n");
        }
        if let Some(next) = self.next {
            text.push_str(&format!("more with --after {next}\n"));
        }
        text.trim_end().to_owned()
    }
}
