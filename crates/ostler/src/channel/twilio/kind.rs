//! The sorts of conversations there are at Twilio, and what each can take.

use std::time::Duration;

use crate::{
    channel::{
        GROUP, SMS, WHATSAPP,
        chat::{Choices, Limits, markup::Markup, measure::Measure},
    },
    config::{Twilio, number_of},
    store::choice_numbers,
};

/// The longest text of a message.
const TEXT: usize = 1600;
/// What an address of WhatsApp begins with.
const SCHEME: &str = "whatsapp:";

/// What can be sent by WhatsApp, of what is known by its content.
const BY_WHATSAPP: &[&str] = &[
    "application/msword",
    "application/pdf",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "audio/aac",
    "audio/amr",
    "audio/mpeg",
    "audio/ogg",
    "image/jpeg",
    "image/png",
    "image/webp",
    "text/vcard",
    "video/mp4",
];
/// The same of MMS.
const BY_MMS: &[&str] = &[
    "application/pdf",
    "audio/amr",
    "audio/mp4",
    "audio/mpeg",
    "audio/ogg",
    "image/gif",
    "image/jpeg",
    "image/png",
    "text/calendar",
    "text/csv",
    "text/rtf",
    "text/vcard",
    "video/3gpp",
    "video/mp4",
    "video/quicktime",
    "video/webm",
];

/// A sort of conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    WhatsApp,
    Sms,
    /// Several people, by whatever each of them has.
    Group,
}

/// What the three have in common.
const PLAIN: Limits = Limits {
    text: TEXT,
    measure: Measure::Utf16,
    edits: None,
    typing: None,
    buttons: choice_numbers::AT_ONCE as usize,
    label: 100,
    files: 0,
    file_bytes: 0,
    image_bytes: 0,
    together_bytes: 0,
    kinds: None,
    // Most sorts of files come without a text by WhatsApp. By SMS a file that cannot be
    // sent would take the text with it.
    has_captions: false,
    choices: Choices::Numbers,
    markup: Markup::None,
    known_again: None,
};

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::WhatsApp, Self::Sms, Self::Group];

    /// Returns the channel that it is.
    pub(crate) fn channel(self) -> &'static str {
        match self {
            Self::WhatsApp => WHATSAPP,
            Self::Sms => SMS,
            Self::Group => GROUP,
        }
    }

    /// Whether it is configured.
    pub(crate) fn is_in(self, twilio: &Twilio) -> bool {
        match self {
            Self::WhatsApp => twilio.whatsapp_from.is_some(),
            Self::Sms => twilio.sms_from.is_some() || twilio.messaging_service.is_some(),
            Self::Group => true,
        }
    }

    /// Returns what it can take. Files go by links, so that Twilio has to reach them.
    pub(crate) fn limits(self, has_links: bool) -> Limits {
        let limits = match self {
            Self::WhatsApp => Limits {
                // It is shown for 25 seconds, or until there is a message.
                typing: Some(Duration::from_secs(20)),
                files: 1,
                file_bytes: 16_000_000,
                image_bytes: 5_000_000,
                together_bytes: 16_000_000,
                kinds: Some(BY_WHATSAPP),
                markup: Markup::WhatsApp,
                ..PLAIN
            },
            Self::Sms => Limits {
                files: 10,
                file_bytes: 5_000_000,
                image_bytes: 5_000_000,
                together_bytes: 5_000_000,
                kinds: Some(BY_MMS),
                ..PLAIN
            },
            Self::Group => PLAIN,
        };
        let files = if has_links { limits.files } else { 0 };
        Limits { files, ..limits }
    }

    /// Returns what Twilio calls somebody's number.
    pub(crate) fn address(self, number: &str) -> String {
        match self {
            Self::WhatsApp => format!("{SCHEME}{number}"),
            Self::Sms | Self::Group => number.to_owned(),
        }
    }

    /// Returns what sort an address of Twilio's is of, and its number.
    pub(crate) fn of(address: &str) -> (Self, &str) {
        let kind = if address.starts_with(SCHEME) { Self::WhatsApp } else { Self::Sms };
        (kind, number_of(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::NUMBERED;

    #[test]
    fn an_address_says_how_somebody_is_reached() {
        for kind in [Kind::WhatsApp, Kind::Sms] {
            assert_eq!(Kind::of(&kind.address("+14155238886")), (kind, "+14155238886"));
        }
    }

    #[test]
    fn choices_have_numbers_and_files_are_messages_of_their_own() {
        for kind in Kind::ALL {
            let limits = kind.limits(true);
            assert_eq!(limits.choices, Choices::Numbers);
            assert!(NUMBERED.contains(&kind.channel()) && !limits.has_captions);
        }
    }

    #[test]
    fn no_files_go_where_twilio_could_not_fetch_them() {
        assert!(Kind::ALL.into_iter().all(|kind| kind.limits(false).files == 0));
        assert_eq!(Kind::WhatsApp.limits(true).files, 1);
    }
}
