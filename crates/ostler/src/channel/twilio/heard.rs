//! What people wrote, read from what Twilio says of it. Pure.

use jiff::Timestamp;
use serde::Deserialize;
use thiserror::Error;

use super::kind::Kind;
use crate::{
    channel::{directive, is_number, is_sid},
    config::pattern::Pattern,
    gateway::inbound::Media,
    unruly::is_unruly,
};

/// How many files come with a message at most.
pub(super) const FILES: usize = 10;
/// The type of a file of which nothing is known.
const UNKNOWN: &str = "application/octet-stream";
/// The longest name that somebody can have, in characters.
const NAME: usize = 60;
/// What a conversation of several people tells of a new message by.
pub(super) const ADDED: &str = "onMessageAdded";
/// What a message was written with that is nobody's but a program's.
const PROGRAMS: [&str; 2] = ["API", "SDK"];

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) kind: Kind,
    /// How who wrote it takes part, also in a group.
    pub(crate) by: Kind,
    /// What Twilio calls it.
    pub(crate) message: String,
    /// Where it is answered: the number of who wrote it, or the group.
    pub(crate) place: String,
    /// The number of who wrote it.
    pub(crate) from: String,
    /// What he calls himself.
    pub(crate) name: Option<String>,
    /// The number that he wrote to.
    pub(crate) to: Option<String>,
    pub(crate) text: String,
    pub(crate) media: Vec<Media>,
    /// The message of ours that he answers, if he says so.
    pub(crate) answers: Option<String>,
    /// Whether this gateway wrote it itself.
    pub(crate) is_own: bool,
    /// When it was written, if that was not just now.
    pub(crate) at: Option<Timestamp>,
}

/// Why something is no message. It is Twilio's fault, or that of whoever calls.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum Malformed {
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("{0} cannot be used")]
    Wrong(&'static str),
}

/// What a call says, by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form<'a>(pub(crate) &'a [(String, String)]);

impl<'a> Form<'a> {
    /// Returns what is said under a name, if anything is.
    pub(crate) fn get(self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(of, _)| of == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(crate) fn need(self, name: &'static str) -> Result<&'a str, Malformed> {
        self.get(name).ok_or(Malformed::Missing(name))
    }
}

impl Heard {
    /// Reads a message of one person.
    pub(crate) fn read(form: Form<'_>) -> Result<Self, Malformed> {
        let message = form.need("MessageSid")?;
        if !is_sid(message, "SM") && !is_sid(message, "MM") {
            return Err(Malformed::Wrong("MessageSid"));
        }
        let (kind, from) = Kind::of(form.need("From")?);
        let (_, to) = Kind::of(form.need("To")?);
        if !is_number(from) {
            return Err(Malformed::Wrong("From"));
        }
        let n_media = form.get("NumMedia").map_or(Ok(0), str::parse::<usize>);
        let n_media = n_media.map_err(|_| Malformed::Wrong("NumMedia"))?.min(FILES);
        let media = (0..n_media).filter_map(|number| {
            let url = form.get(&format!("MediaUrl{number}"))?;
            Some(medium(url, form.get(&format!("MediaContentType{number}"))))
        });
        // Whoever presses a button says what is written on it.
        let text = form.get("Body").or_else(|| form.get("ButtonText")).map(str::to_owned);
        Ok(Self {
            kind,
            by: kind,
            message: message.to_owned(),
            place: from.to_owned(),
            from: from.to_owned(),
            name: form.get("ProfileName").map(harmless),
            to: Some(to.to_owned()),
            text: text.or_else(|| location(form)).unwrap_or_default(),
            media: media.collect(),
            answers: form.get("OriginalRepliedMessageSid").map(str::to_owned),
            is_own: from == to,
            at: None,
        })
    }

    /// Reads a message of a group; nothing if something else happened there. Files of
    /// groups are at a place of their own.
    pub(crate) fn read_group(form: Form<'_>, files: &str) -> Result<Option<Self>, Malformed> {
        if form.need("EventType")? != ADDED {
            return Ok(None);
        }
        let message = form.need("MessageSid")?;
        let place = form.need("ConversationSid")?;
        if !is_sid(message, "IM") {
            return Err(Malformed::Wrong("MessageSid"));
        }
        if !is_sid(place, "CH") {
            return Err(Malformed::Wrong("ConversationSid"));
        }
        let author = form.need("Author")?;
        let (by, from) = Kind::of(author);
        let is_own = form.get("Source").is_some_and(|source| PROGRAMS.contains(&source));
        let media = form.get("Media").and_then(|media| serde_json::from_str(media).ok());
        let media: Vec<File> = media.unwrap_or_default();
        let shelf = Shelf { files, service: form.get("ChatServiceSid") };
        let media = media.into_iter().take(FILES);
        let media = media.map(|file| shelf.medium(file.sid.as_deref(), file.content_type));
        Ok(Some(Self {
            kind: Kind::Group,
            by,
            message: message.to_owned(),
            place: place.to_owned(),
            from: from.to_owned(),
            name: None,
            to: None,
            text: form.get("Body").unwrap_or_default().to_owned(),
            media: media.collect(),
            answers: None,
            is_own,
            at: None,
        }))
    }

    /// Returns what somebody is called among others.
    pub(crate) fn called(&self) -> &str {
        self.name.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or(&self.from)
    }

    /// Whether one of some words is in it, or several in a row, however they are
    /// written, or one of some patterns.
    pub(crate) fn is_called_by(&self, words: &[String], patterns: &[Pattern]) -> bool {
        let text = self.text.to_lowercase();
        let mut said = text.split(|c| !is_in_word(c)).filter(|word| !word.is_empty());
        let words = words.iter().map(|word| word.trim().to_lowercase());
        let (words, phrases): (Vec<_>, Vec<_>) =
            words.partition(|word| word.chars().all(is_in_word));
        said.any(|said| words.iter().any(|word| word == said))
            || phrases.iter().any(|phrase| !phrase.is_empty() && text.contains(phrase.as_str()))
            || patterns.iter().any(|pattern| pattern.is_in(&self.text))
    }

    /// Returns what is behind one of these words that it begins with, if that is a word
    /// for the gateway; else all of it.
    pub(crate) fn without_call(&self, words: &[String]) -> &str {
        let rest = self.after_call(words).unwrap_or(&self.text);
        let is_for_gateway = rest.starts_with('/') || directive::read(rest).is_some();
        if is_for_gateway { rest } else { &self.text }
    }

    /// Returns what is behind one of these words that it begins with, if it does.
    pub(crate) fn after_call(&self, words: &[String]) -> Option<&str> {
        let text = self.text.trim_start();
        let rest = words.iter().filter_map(|word| {
            let word = word.trim();
            let (call, rest) = text.split_at_checked(word.len()).filter(|_| !word.is_empty())?;
            let is_call = call.to_lowercase() == word.to_lowercase();
            (is_call && !rest.starts_with(is_in_word)).then_some(rest)
        });
        let rest = rest.min_by_key(|rest| rest.len())?;
        Some(rest.trim_start_matches([',', ':', '!']).trim())
    }
}

/// A file that came in a group.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct File {
    sid: Option<String>,
    content_type: Option<String>,
}

/// Where the files of a group are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shelf<'a> {
    /// Where the files of all groups are.
    pub(super) files: &'a str,
    /// What Twilio keeps those of this one under, if that is known.
    pub(super) service: Option<&'a str>,
}

impl Shelf<'_> {
    /// Returns a file by its name; without a place, if that is not known.
    pub(super) fn medium(self, sid: Option<&str>, media_type: Option<String>) -> Media {
        let Self { files, service } = self;
        let service = service.filter(|service| is_sid(service, "IS"));
        let known = service.zip(sid.filter(|sid| is_sid(sid, "ME")));
        match known {
            Some((service, sid)) => Media {
                url: Some(format!("{files}/v1/Services/{service}/Media/{sid}/Content")),
                media_type,
                ..Media::default()
            },
            None => nowhere(media_type),
        }
    }
}

/// Returns a file of which it is not known where it is. The agent is told that there
/// is one.
pub(super) fn nowhere(media_type: Option<String>) -> Media {
    let media_type = media_type.unwrap_or_else(|| UNKNOWN.to_owned());
    Media { media_type: Some(media_type), ..Media::default() }
}

/// Whether a character belongs to a word by which somebody is called.
fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '@' || c == '_'
}

pub(crate) fn medium(url: &str, media_type: Option<&str>) -> Media {
    Media {
        url: Some(url.to_owned()),
        media_type: media_type.map(str::to_owned),
        ..Media::default()
    }
}

/// Returns a name that somebody gave himself, on one line and not too long.
fn harmless(name: &str) -> String {
    let clean: String = name.chars().filter(|c| !is_unruly(*c)).take(NAME).collect();
    clean.trim().to_owned()
}

/// Returns a place that was sent, in words.
fn location(form: Form<'_>) -> Option<String> {
    let (latitude, longitude) = (form.get("Latitude")?, form.get("Longitude")?);
    let names = [form.get("Label"), form.get("Address")];
    let names: Vec<&str> = names.into_iter().flatten().collect();
    let of = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    Some(format!("Location: {latitude}, {longitude}{of}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILES: &str = "https://mcs.us1.twilio.com";
    const SID: &str = "SM00000000000000000000000000000001";

    fn form(said: &[(&str, &str)]) -> Vec<(String, String)> {
        said.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn read(said: &[(&str, &str)]) -> Result<Heard, Malformed> {
        let usual = [("MessageSid", SID), ("From", "whatsapp:+15551"), ("To", "whatsapp:+15552")];
        let all: Vec<_> = said.iter().copied().chain(usual).collect();
        Heard::read(Form(&form(&all)))
    }

    #[test]
    fn a_message_is_read_with_its_files() {
        let heard = read(&[
            ("From", "whatsapp:+15551234567"),
            ("To", "whatsapp:+14155238886"),
            ("Body", "hay"),
            ("ProfileName", "Ann"),
            ("NumMedia", "2"),
            ("MediaUrl0", "https://api.twilio.com/m/0"),
            ("MediaContentType0", "image/png"),
            ("MediaUrl1", "https://api.twilio.com/m/1"),
            ("OriginalRepliedMessageSid", "SM2"),
        ])
        .unwrap();
        assert_eq!((heard.kind, heard.place.as_str()), (Kind::WhatsApp, "+15551234567"));
        assert_eq!((heard.called(), heard.text.as_str()), ("Ann", "hay"));
        assert_eq!(heard.media.len(), 2);
        assert_eq!(heard.media[0].media_type.as_deref(), Some("image/png"));
        assert_eq!(heard.answers.as_deref(), Some("SM2"));
    }

    #[test]
    fn a_place_and_a_button_are_said_in_words() {
        let from = ("From", "+15551234567");
        let place = [from, ("Latitude", "52.5"), ("Longitude", "13.4"), ("Label", "Yard")];
        let heard = read(&place).unwrap();
        assert_eq!((heard.kind, heard.text.as_str()), (Kind::Sms, "Location: 52.5, 13.4 (Yard)"));
        assert_eq!(read(&[from, ("ButtonText", "Allow")]).unwrap().text, "Allow");
    }

    #[test]
    fn what_is_no_message_says_why() {
        assert_eq!(Heard::read(Form(&[])), Err(Malformed::Missing("MessageSid")));
        let sid = [("MessageSid", "'; DROP TABLE jobs")];
        assert_eq!(Heard::read(Form(&form(&sid))), Err(Malformed::Wrong("MessageSid")));
        assert_eq!(read(&[("From", "whatsapp:ann")]), Err(Malformed::Wrong("From")));
        let media = [("From", "+15551234567"), ("NumMedia", "many")];
        assert_eq!(read(&media), Err(Malformed::Wrong("NumMedia")));
    }

    #[test]
    fn a_group_tells_of_messages_and_of_other_things() {
        let said = [
            ("EventType", "onMessageAdded"),
            ("ConversationSid", "CH00000000000000000000000000000001"),
            ("MessageSid", "IM00000000000000000000000000000001"),
            ("Author", "whatsapp:+15551234567"),
            ("Body", "hello Ostler!"),
            ("Source", "WHATSAPP"),
        ];
        let heard = Heard::read_group(Form(&form(&said)), FILES).unwrap().unwrap();
        assert_eq!((heard.kind, heard.from.as_str()), (Kind::Group, "+15551234567"));
        assert!(heard.is_called_by(&["ostler".to_owned()], &[]) && !heard.is_own);
        assert!(!heard.is_called_by(&["ost".to_owned(), "hello hostler".to_owned()], &[]));
        assert!(heard.is_called_by(&["hello ostler".to_owned()], &[]));
        let joined = [("EventType", "onParticipantAdded")];
        assert_eq!(Heard::read_group(Form(&form(&joined)), FILES), Ok(None));
    }

    #[test]
    fn a_file_of_a_group_that_is_nowhere_is_one_all_the_same() {
        let (service, sid) = (format!("IS{:032}", 1), format!("ME{:032}", 2));
        let url = |service: &str, sid: &str| {
            let shelf = Shelf { files: FILES, service: Some(service) };
            shelf.medium(Some(sid), Some("image/png".to_owned())).url
        };
        let expected = format!("{FILES}/v1/Services/{service}/Media/{sid}/Content");
        assert_eq!(url(&service, &sid), Some(expected));
        assert_eq!(url("IS/../1", &sid), None);
        assert_eq!(url(&service, "ME?"), None);
        let lost = Shelf { files: FILES, service: None }.medium(Some(&sid), None);
        assert_eq!((lost.url, lost.media_type.as_deref()), (None, Some(UNKNOWN)));
    }

    #[test]
    fn a_word_for_the_gateway_may_follow_the_call() {
        let words = ["ostler".to_owned(), "@ostler".to_owned()];
        let rest = |text: &str| {
            read(&[("Body", text), ("From", "+15551234567")])
                .unwrap()
                .without_call(&words)
                .to_owned()
        };
        assert_eq!(rest("Ostler, stop!"), "stop!");
        assert_eq!(rest(" @ostler: /new hay "), "/new hay");
        for text in ["ostler, stop the horses", "stop", "hostler /new", "ostler", "ostlers: stop"] {
            assert_eq!(rest(text), text);
        }
    }

    #[test]
    fn what_is_behind_the_call_is_what_is_said() {
        let words = ["ostler".to_owned(), "hey Ostler".to_owned(), " ".to_owned()];
        let rest = |text: &str| {
            let heard = read(&[("Body", text), ("From", "+15551234567")]).unwrap();
            heard.after_call(&words).map(str::to_owned)
        };
        for (text, behind) in
            [("Ostler, 1", "1"), ("ostler yes", "yes"), ("HEY ostler: green ", "green")]
        {
            assert_eq!(rest(text).as_deref(), Some(behind));
        }
        for text in ["ostlers 1", "yes", "ä ostler", ""] {
            assert_eq!(rest(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_said_is_read_without_harm(
            said in proptest::collection::vec(
                ("(MessageSid|From|To|Body|NumMedia|Media|EventType|Author|x)", any::<String>()),
                0..8,
            ),
        ) {
            Heard::read(Form(&said)).ok();
            Heard::read_group(Form(&said), FILES).ok();
        }
    }
}
