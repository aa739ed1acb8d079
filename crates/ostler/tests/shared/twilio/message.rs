//! A message as it stands, where it is on its way, and what was done over the API.

use std::time::Instant;

use jiff::Timestamp;

/// A message of the Messages resource.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) sid: String,
    pub(crate) direction: &'static str,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) body: String,
    pub(crate) status: Status,
    /// Why it failed.
    pub(crate) error: Option<u32>,
    /// The ids of its media; of what is sent, after they were fetched.
    pub(crate) media: Vec<String>,
    /// The links that it was sent with.
    pub(crate) media_urls: Vec<String>,
    pub(crate) content_sid: Option<String>,
    pub(crate) messaging_service: Option<String>,
    pub(crate) status_callback: Option<String>,
    /// The webhook parameters of what a person sent.
    pub(super) params: Vec<(String, String)>,
    pub(super) created: Timestamp,
    pub(super) sent: Option<Timestamp>,
    pub(super) updated: Timestamp,
    /// Whether it may go to somebody who did not write for a day.
    pub(super) is_template: bool,
}

impl Message {
    pub(crate) fn is_outbound(&self) -> bool {
        self.direction != "inbound"
    }

    pub(crate) fn is_whatsapp(&self) -> bool {
        self.to.starts_with("whatsapp:")
    }

    /// Returns how many media it has or is to have.
    pub(super) fn n_media(&self) -> usize {
        self.media.len().max(self.media_urls.len())
    }

    /// Returns how many parts the network needs for it.
    pub(super) fn n_segments(&self) -> usize {
        if self.is_whatsapp() || self.n_media() > 0 { 1 } else { segments(&self.body) }
    }
}

/// The characters of the GSM alphabet besides letters and digits of ASCII.
const GSM: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./:;<=>?¡ÄÖÑÜ§¿äöñüà";
/// Those that take two places.
const GSM_TWICE: &str = "^{}\\[~]|€";

/// Counts the parts of an SMS.
fn segments(text: &str) -> usize {
    let width = |character: char| match character {
        _ if character.is_ascii_alphanumeric() || GSM.contains(character) => Some(1),
        _ if GSM_TWICE.contains(character) => Some(2),
        _ => None,
    };
    let (length, alone, joined) = match text.chars().map(width).sum::<Option<usize>>() {
        Some(length) => (length, 160, 153),
        None => (text.encode_utf16().count(), 70, 67),
    };
    if length <= alone { 1 } else { length.div_ceil(joined) }
}

/// Where a message is on its way, in the order of the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    Accepted,
    Queued,
    Sending,
    Sent,
    Delivered,
    Read,
    Failed,
    Undelivered,
    /// What people sent.
    Received,
}

impl Status {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Delivered => "delivered",
            Self::Read => "read",
            Self::Failed => "failed",
            Self::Undelivered => "undelivered",
            Self::Received => "received",
        }
    }
}

/// What was done over the API.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    /// The id of the message, or of the media.
    pub(crate) sid: String,
    /// Whom it is for: a number, or a Conversation.
    pub(crate) address: String,
    pub(crate) text: String,
    pub(crate) at: Instant,
}

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// A message was taken, to a number.
    Sent,
    /// A message went on its way; the text is the status.
    Status,
    /// Somebody saw the bot type; the id is of the message that it answers.
    Typed,
    /// A message was taken, into a Conversation.
    Said,
    /// Media for Conversations were uploaded.
    Uploaded,
    /// Twilio itself answered a word of the carriers', by SMS.
    Helped,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_sms_has_as_many_parts_as_its_alphabet_makes() {
        let parts = |text: &str, times: usize| segments(&text.repeat(times));
        assert_eq!(
            (parts("a", 160), parts("a", 161), parts("€", 80), parts("€", 81)),
            (1, 2, 1, 2)
        );
        assert_eq!(
            (parts("ж", 70), parts("ж", 71), parts("🐎", 35), parts("🐎", 36)),
            (1, 2, 1, 2)
        );
    }
}
