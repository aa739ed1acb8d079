//! Where replies go: what carries a message to its address, and what becomes of
//! one that did not get there. When to try again is up to the delivery.

pub(crate) mod access;
pub(crate) mod chat;
pub(crate) mod code;
pub(crate) mod directive;
pub(crate) mod discord;
pub(crate) mod duty;
pub(crate) mod finding;
pub(crate) mod notice;
pub(crate) mod pace;
pub(crate) mod reach;
mod reply;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod twilio;
pub(crate) mod webhook;

use std::time::Duration;

use thiserror::Error;

pub(crate) use self::reply::{Reply, ReplyError};
use self::{chat::carrier::Carrier, notice::Notices, webhook::Webhook};
use crate::{
    clock::Millis,
    store::{StoreError, outbox::Sending, webhooks::NOTICE},
};

/// The channel whose addresses are ids of channels of Discord.
pub(crate) const DISCORD: &str = "discord";

/// The channels whose addresses are telephone numbers, with a plus sign and the
/// country.
pub(crate) const WHATSAPP: &str = "whatsapp";
pub(crate) const SMS: &str = "sms";

/// The channel whose addresses are conversations of several people at Twilio.
pub(crate) const GROUP: &str = "group";

/// The channels in which choices are told by numbers.
pub(crate) const NUMBERED: [&str; 3] = [WHATSAPP, SMS, GROUP];

/// The names of the channels that a place can be in, for people.
pub(crate) const NAMES: &str = "`local`, `webhook`, `discord`, `whatsapp`, `sms` and `group`";

/// The channel whose addresses are URLs, to which replies are posted.
pub(crate) const WEBHOOK: &str = "webhook";

/// Everything that can carry a message.
#[derive(Debug)]
pub(crate) struct Channels {
    webhook: Webhook,
    notices: Option<Notices>,
    chats: Option<Carrier>,
}

/// A message that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// What the other side calls it, if it says.
    pub(crate) message: Option<String>,
}

/// A message that did not, as far as one knows.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{reason}")]
pub(crate) struct SendError {
    /// Why, in words that may be shown to anybody: the address is not in them.
    pub(crate) reason: String,
    pub(crate) next: Next,
    /// Whether it may have arrived all the same.
    pub(crate) is_unsure: bool,
}

impl SendError {
    /// Makes one of a message that certainly did not leave.
    pub(crate) fn certain(next: Next, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), next, is_unsure: false }
    }

    /// Makes one of a message that will never leave.
    pub(crate) fn given_up(reason: impl Into<String>) -> Self {
        Self::certain(Next::GiveUp, reason)
    }

    /// Makes one of a message that certainly did not leave, and may soon.
    pub(crate) fn soon(reason: impl Into<String>) -> Self {
        Self::certain(Next::Retry { after: None }, reason)
    }

    /// Makes one of a message that did not leave, for the store is away.
    pub(crate) fn away(error: StoreError) -> Self {
        Self::soon(format!("the store cannot be used: {error}"))
    }

    /// Whether the other side heard it, and will never do it.
    pub(crate) fn is_refusal(&self) -> bool {
        self.next == Next::GiveUp && !self.is_unsure
    }
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It may pass; not before this long, if the other side says so.
    Retry {
        after: Option<Duration>,
    },
    /// It passes as soon as its reader does something, and leaves then.
    Wait,
    GiveUp,
}

impl Channels {
    pub(crate) fn new() -> Self {
        Self { webhook: Webhook::new(webhook::LIMITS), notices: None, chats: None }
    }

    /// Makes some that can also call the webhooks of callers.
    pub(crate) fn with_notices(self, notices: Notices) -> Self {
        Self { notices: Some(notices), ..self }
    }

    /// Makes some that can also speak in chats.
    pub(crate) fn with_chats(self, chats: Carrier) -> Self {
        Self { chats: Some(chats), ..self }
    }

    /// Returns the channels whose messages another gateway sends at present.
    pub(crate) fn closed(&self) -> Vec<&'static str> {
        self.chats.as_ref().map(Carrier::closed).unwrap_or_default()
    }

    /// Makes some that are less patient.
    #[cfg(test)]
    pub(crate) fn with_limits(limits: webhook::Limits) -> Self {
        Self { webhook: Webhook::new(limits), notices: None, chats: None }
    }

    /// Sends a message. Ends within the time limits of its channel. Dropping the
    /// future leaves it open whether the message arrived.
    pub(crate) async fn send(&self, sending: &Sending) -> Result<Sent, SendError> {
        match (sending.message.channel.as_str(), &self.notices, &self.chats) {
            (WEBHOOK, _, _) => self.webhook.send(sending, Millis::now()).await,
            (NOTICE, Some(notices), _) => notices.send(sending, Millis::now()).await,
            (channel, _, Some(chats)) if chats.has(channel) => chats.send(sending).await,
            // Another gateway on the same store may have it, or this one may tomorrow.
            (DISCORD | WHATSAPP | SMS | GROUP, _, _) => {
                let next = Next::Retry { after: Some(Duration::from_secs(60)) };
                Err(SendError::certain(next, "the chat is not configured"))
            }
            (other, _, _) => Err(SendError::given_up(format!("there is no channel {other:?}"))),
        }
    }
}

/// Whether a text can be the id of something at Discord.
pub(crate) fn is_discord_id(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text is a telephone number with a plus sign and the country.
pub(crate) fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or_default();
    (7..=15).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0')
}

/// Whether a text can be what Twilio calls something, by how such names begin.
pub(crate) fn is_sid(text: &str, start: &str) -> bool {
    let rest = text.strip_prefix(start).unwrap_or_default();
    rest.len() == 32 && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns where a message goes in words that may be shown to anybody: a URL may
/// be all that one needs in order to write to its owner.
pub(crate) fn place(channel: &str, address: &str) -> String {
    match channel {
        WEBHOOK => webhook::origin(address),
        NOTICE => format!("the webhook {address}"),
        DISCORD => format!("the channel {address} of Discord"),
        // A number is somebody's name.
        WHATSAPP | SMS => format!("somebody by {channel}"),
        GROUP => format!("the group {address}"),
        other => format!("the channel {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_without_what_is_secret_in_it() {
        let url = "https://hooks.example:8443/services/very-secret?key=very-secret";
        assert_eq!(place(WEBHOOK, url), "https://hooks.example:8443");
        assert!(!place("else", "very-secret").contains("secret"));
    }

    #[tokio::test]
    async fn a_message_for_a_channel_that_there_is_not_is_given_up() {
        let sending = testing::sending("carrier-pigeon", "roof");
        let error = Channels::new().send(&sending).await.unwrap_err();
        assert_eq!((error.next, error.is_unsure), (Next::GiveUp, false));
        assert!(error.reason.contains("carrier-pigeon"), "{error}");
    }
}
