//! What a person sends to a number of Twilio, and the form that it is posted as.

use std::sync::Arc;

use serde_json::json;

use super::{
    media::{Content, Media},
    message::{ChangeKind, Message, Status},
    world::{World, sid},
};

/// The words by which somebody who sends SMS is no longer sent any, and is again.
const STOP: &[&str] =
    &["STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"];
const START: &[&str] = &["START", "YES", "UNSTOP"];
/// The words that Twilio answers, and with what.
const HELP: &[&str] = &["HELP", "INFO"];
const HELPED: &str = "Reply STOP to unsubscribe. Msg&Data Rates May Apply.";
/// What somebody begins with who joins WhatsApp's sandbox.
const JOIN: &str = "join ";

/// A message that a person writes.
#[derive(Clone, Debug)]
pub(crate) struct Inbound {
    from: String,
    to: String,
    body: String,
    profile: String,
    media: Vec<Attached>,
    button: Option<(String, String)>,
    reply_to: Option<String>,
    service: Option<String>,
}

impl Inbound {
    /// Makes a message. An address of WhatsApp begins with `whatsapp:`.
    pub(crate) fn new(from: &str, to: &str, body: &str) -> Self {
        Self {
            from: from.to_owned(),
            to: to.to_owned(),
            body: body.to_owned(),
            profile: "Ada".to_owned(),
            media: Vec::new(),
            button: None,
            reply_to: None,
            service: None,
        }
    }

    /// Sets the name that the person has on WhatsApp.
    pub(crate) fn by(mut self, profile: &str) -> Self {
        profile.clone_into(&mut self.profile);
        self
    }

    pub(crate) fn with(mut self, media: Attached) -> Self {
        self.media.push(media);
        self
    }

    /// Makes it the press of a quick reply.
    pub(crate) fn pressing(mut self, text: &str, payload: &str) -> Self {
        self.button = Some((text.to_owned(), payload.to_owned()));
        self
    }

    /// Makes it a reply to a message.
    pub(crate) fn replying_to(mut self, sid: &str) -> Self {
        self.reply_to = Some(sid.to_owned());
        self
    }

    /// Lets it go to a number of a Messaging Service.
    pub(crate) fn through(mut self, service: &str) -> Self {
        self.service = Some(service.to_owned());
        self
    }

    fn is_whatsapp(&self) -> bool {
        self.from.starts_with("whatsapp:")
    }
}

/// A file that a person sends.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    content_type: String,
    content: Content,
    pub(super) name: Option<String>,
}

impl Attached {
    pub(crate) fn new(content_type: &str, bytes: &[u8]) -> Self {
        let content = Content::Bytes(Arc::from(bytes));
        Self { content_type: content_type.to_owned(), content, name: None }
    }

    /// A file whose download never ends.
    pub(crate) fn endless(content_type: &str) -> Self {
        Self { content_type: content_type.to_owned(), content: Content::Endless, name: None }
    }

    /// A file whose download goes on at another address.
    pub(crate) fn elsewhere(content_type: &str, url: &str) -> Self {
        let content = Content::Elsewhere(url.to_owned());
        Self { content_type: content_type.to_owned(), content, name: None }
    }

    /// Gives it a name, which media of Conversations have.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    pub(super) fn media(&self, parent: &str) -> Media {
        let mut media = Media::new(parent, &self.content_type, self.content.clone());
        media.name = self.name.clone();
        media
    }
}

impl World {
    /// Keeps what a person wrote, and returns its id.
    pub(super) fn take_in(&mut self, inbound: &Inbound) -> String {
        let now = self.now();
        let sid = sid(if inbound.media.is_empty() { "SM" } else { "MM" });
        let media: Vec<Media> = inbound.media.iter().map(|media| media.media(&sid)).collect();
        let params = self.inbound_params(inbound, &sid, &media);
        self.messages.push(Message {
            sid: sid.clone(),
            direction: "inbound",
            from: inbound.from.clone(),
            to: inbound.to.clone(),
            body: inbound.body.clone(),
            status: Status::Received,
            error: None,
            media: media.iter().map(|media| media.sid.clone()).collect(),
            media_urls: Vec::new(),
            content_sid: None,
            messaging_service: inbound.service.clone(),
            status_callback: None,
            params,
            created: now,
            sent: Some(now),
            updated: now,
            is_template: false,
        });
        self.media.extend(media.into_iter().map(|media| (media.sid.clone(), media)));
        if inbound.is_whatsapp() {
            self.wrote.insert(inbound.from.clone(), now);
            let joined = self.sandbox.as_mut().filter(|_| inbound.body.starts_with(JOIN));
            joined.map(|joined| joined.insert(inbound.from.clone()));
        } else {
            self.mind_words(inbound);
        }
        sid
    }

    /// Minds the words of carriers, which Twilio obeys by itself.
    fn mind_words(&mut self, inbound: &Inbound) {
        let word = inbound.body.trim().to_uppercase();
        if STOP.contains(&word.as_str()) {
            self.unsubscribed.insert(inbound.from.clone());
        } else if START.contains(&word.as_str()) {
            self.unsubscribed.remove(&inbound.from);
        } else if HELP.contains(&word.as_str()) {
            // Nobody asked for it over the API, and it is listed nowhere.
            self.changed(ChangeKind::Helped, "", &inbound.from, HELPED);
        }
    }

    fn inbound_params(
        &self,
        inbound: &Inbound,
        sid: &str,
        media: &[Media],
    ) -> Vec<(String, String)> {
        let kept = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut params = vec![
            kept("SmsMessageSid", sid),
            kept("NumMedia", &media.len().to_string()),
            kept("SmsSid", sid),
            kept("SmsStatus", "received"),
            kept("Body", &inbound.body),
            kept("To", &inbound.to),
            kept("NumSegments", "1"),
            kept("MessageSid", sid),
            kept("AccountSid", &self.account),
            kept("From", &inbound.from),
            kept("ApiVersion", "2010-04-01"),
        ];
        params.extend(inbound.service.as_deref().map(|it| kept("MessagingServiceSid", it)));
        for (number, media) in media.iter().enumerate() {
            let path = format!("{}/Messages/{sid}/Media/{}", self.account_path(), media.sid);
            params.push(kept(&format!("MediaContentType{number}"), &media.content_type));
            params.push(kept(&format!("MediaUrl{number}"), &format!("{}{path}", self.base)));
        }
        if !inbound.is_whatsapp() {
            for name in ["City", "State", "Zip", "Country"] {
                params
                    .push(kept(&format!("From{name}"), if name == "Country" { "US" } else { "" }));
                params.push(kept(&format!("To{name}"), if name == "Country" { "US" } else { "" }));
            }
            return params;
        }
        let wa_id = inbound.from.trim_start_matches("whatsapp:+");
        let kind = media.first().map_or("text", |media| kind(&media.content_type));
        let context = json!({ "Context": { "ProfileName": inbound.profile, "WaId": wa_id } });
        let metadata = json!({ "type": "whatsapp", "data": { "context": context["Context"] } });
        params.extend([
            kept("ProfileName", &inbound.profile),
            kept("WaId", wa_id),
            kept("MessageType", if inbound.button.is_some() { "button" } else { kind }),
            kept("ReferralNumMedia", "0"),
            kept("ChannelMetadata", &metadata.to_string()),
        ]);
        if let Some((text, payload)) = &inbound.button {
            params.extend([kept("ButtonText", text), kept("ButtonPayload", payload)]);
        }
        if let Some(original) = inbound.reply_to.as_deref() {
            params.push(kept("OriginalRepliedMessageSid", original));
            params.push(kept("OriginalRepliedMessageSender", &inbound.to));
        }
        params
    }
}

/// Returns what WhatsApp calls a message with media.
fn kind(content_type: &str) -> &'static str {
    match content_type.split('/').next().unwrap_or("") {
        "image" => "image",
        "audio" => "audio",
        "video" => "video",
        _ => "document",
    }
}
