//! Conversations, which are what groups are on Twilio.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Shared,
    answer::{Answer, Refusal, Reply},
    api::{Asked, Begun},
    message::ChangeKind,
    routes::field,
    time,
    webhook::{self, Purpose},
    world::{World, sid},
};

/// The longest text.
const BODY: usize = 1600;

/// A group of people.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    pub(super) sid: String,
    pub(super) name: String,
    pub(super) participants: Vec<Participant>,
    pub(super) messages: Vec<Said>,
    pub(super) created: Timestamp,
    pub(super) is_closed: bool,
}

impl Conversation {
    /// Whether somebody is in it, and it goes on.
    pub(super) fn has_active(&self, address: &str) -> bool {
        !self.is_closed && self.participants.iter().any(|one| one.address == address)
    }
}

/// Somebody in a group.
#[derive(Clone, Debug)]
pub(super) struct Participant {
    pub(super) sid: String,
    /// A number, with `whatsapp:` before it where that is the channel.
    pub(super) address: String,
}

impl Participant {
    /// Whether it is somebody with a telephone; else a program knows him by a name.
    fn has_number(&self) -> bool {
        self.address.starts_with("whatsapp:") || self.address.starts_with('+')
    }
}

/// Something said in a group.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) sid: String,
    pub(super) index: usize,
    pub(super) author: String,
    pub(super) body: String,
    pub(super) media: Vec<String>,
    pub(super) participant: Option<String>,
    pub(super) created: Timestamp,
    pub(super) by_api: bool,
}

/// Tells the webhook of Conversations what was said.
pub(super) async fn tell(shared: &Shared, sid: &str) {
    let told = {
        let world = shared.lock();
        let url = world.conversation_webhook.clone().or_else(|| world.webhook.clone());
        url.zip(world.said_params(sid))
    };
    if let Some((url, params)) = told {
        webhook::post(shared, Purpose::Conversation, sid, &url, &params).await;
    }
}

impl World {
    fn conversation(&self, sid: &str) -> Result<&Conversation, Refusal> {
        let found = self.conversations.get(sid);
        found.ok_or_else(|| Refusal::not_found(&format!("/Conversations/{sid}")))
    }

    fn conversation_url(&self, sid: &str) -> String {
        format!("{}/v1/Conversations/{sid}", self.base)
    }

    pub(super) fn add_conversation(&mut self, name: &str, addresses: &[&str]) -> String {
        let participant =
            |address: &&str| Participant { sid: sid("MB"), address: (*address).to_owned() };
        let conversation = Conversation {
            sid: sid("CH"),
            name: name.to_owned(),
            participants: addresses.iter().map(participant).collect(),
            messages: Vec::new(),
            created: Timestamp::now(),
            is_closed: false,
        };
        let sid = conversation.sid.clone();
        self.conversations.insert(sid.clone(), conversation);
        sid
    }

    pub(super) fn add_participant(&mut self, conversation: &str, address: &str) -> String {
        let one = self.conversations.get_mut(conversation);
        let one = one.unwrap_or_else(|| panic!("no conversation {conversation}"));
        let sid = sid("MB");
        one.participants.push(Participant { sid: sid.clone(), address: address.to_owned() });
        sid
    }

    pub(super) fn remove_participant(&mut self, conversation: &str, address: &str) {
        let one = self.conversations.get_mut(conversation);
        let one = one.unwrap_or_else(|| panic!("no conversation {conversation}"));
        one.participants.retain(|one| one.address != address);
    }

    pub(super) fn close_conversation(&mut self, conversation: &str) {
        let one = self.conversations.get_mut(conversation);
        one.unwrap_or_else(|| panic!("no conversation {conversation}")).is_closed = true;
    }

    /// Returns the number that somebody writes to in a Conversation, if he is in it.
    pub(super) fn proxy_of(&self, conversation: &str, address: &str) -> Option<String> {
        let people = &self.conversations.get(conversation)?.participants;
        let is_in = people.iter().any(|one| one.address == address && one.has_number());
        is_in.then(|| self.ours_for(address))
    }

    /// Returns the number that is written to from an address.
    pub(super) fn ours_for(&self, address: &str) -> String {
        match address.starts_with("whatsapp:") {
            true => format!("whatsapp:{}", self.whatsapp),
            false => self.sms.clone(),
        }
    }

    /// Adds something said, and returns its id.
    pub(super) fn add_said(
        &mut self,
        conversation: &str,
        author: &str,
        body: &str,
        media: Vec<String>,
    ) -> String {
        let now = self.now();
        let one = self.conversations.get_mut(conversation);
        let one = one.unwrap_or_else(|| panic!("no conversation {conversation}"));
        let participant = one.participants.iter().find(|one| one.address == author);
        let said = Said {
            sid: sid("IM"),
            index: one.messages.len(),
            author: author.to_owned(),
            body: body.to_owned(),
            media,
            participant: participant.map(|one| one.sid.clone()),
            created: now,
            by_api: false,
        };
        let sid = said.sid.clone();
        one.messages.push(said);
        sid
    }

    fn said(&self, sid: &str) -> Option<(&Conversation, &Said)> {
        self.conversations.values().find_map(|one| {
            one.messages.iter().find(|said| said.sid == sid).map(|said| (one, said))
        })
    }

    /// Returns the form of `onMessageAdded`.
    fn said_params(&self, sid: &str) -> Option<Vec<(String, String)>> {
        let (conversation, said) = self.said(sid)?;
        let source = match said.author.starts_with("whatsapp:") {
            _ if said.by_api => "API",
            true => "WHATSAPP",
            false if said.author.starts_with('+') => "SMS",
            false => "SDK",
        };
        let mut params = vec![
            ("AccountSid", self.account.clone()),
            ("ChatServiceSid", self.chat_service.clone()),
            ("MessagingServiceSid", self.messaging_service.clone()),
            ("EventType", "onMessageAdded".to_owned()),
            ("ConversationSid", conversation.sid.clone()),
            ("MessageSid", said.sid.clone()),
            ("Index", said.index.to_string()),
            ("Author", said.author.clone()),
            ("Body", said.body.clone()),
            ("Attributes", "{}".to_owned()),
            ("DateCreated", time::millis(said.created)),
            ("Source", source.to_owned()),
            ("RetryCount", "0".to_owned()),
        ];
        if let Some(participant) = &said.participant {
            params.push(("ParticipantSid", participant.clone()));
        }
        if !said.media.is_empty() {
            let media = said.media.iter().filter_map(|sid| self.media.get(sid));
            let media = media.map(|media| {
                json!({
                    "Sid": media.sid,
                    "ContentType": media.content_type,
                    "Filename": media.name,
                    "Size": media.bytes().len(),
                })
            });
            params.push(("Media", Value::from_iter(media).to_string()));
        }
        Some(params.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    pub(super) fn get_conversation(&self, sid: &str) -> Answer {
        let conversation = self.conversation(sid)?;
        let url = self.conversation_url(sid);
        let created = time::iso(conversation.created);
        Reply::ok(json!({
            "sid": sid,
            "account_sid": self.account,
            "chat_service_sid": self.chat_service,
            "messaging_service_sid": self.messaging_service,
            "friendly_name": conversation.name,
            "unique_name": null,
            "attributes": "{}",
            "date_created": created,
            "date_updated": created,
            "state": if conversation.is_closed { "closed" } else { "active" },
            "timers": {},
            "bindings": {},
            "url": url,
            "links": {
                "participants": format!("{url}/Participants"),
                "messages": format!("{url}/Messages"),
                "webhooks": format!("{url}/Webhooks"),
            },
        }))
    }

    pub(super) fn list_participants(&self, sid: &str, query: &[(String, String)]) -> Answer {
        let conversation = self.conversation(sid)?;
        let all = conversation.participants.iter().map(|one| self.participant_json(sid, one));
        self.page(sid, "Participants", all.collect(), query)
    }

    pub(super) fn get_participant(&self, sid: &str, participant: &str) -> Answer {
        let all = &self.conversation(sid)?.participants;
        let found = all.iter().find(|one| one.sid == participant);
        let found = found.ok_or_else(|| Refusal::not_found(participant))?;
        Reply::ok(self.participant_json(sid, found))
    }

    /// Lists what was said: the oldest first, unless the newest is wanted first.
    pub(super) fn list_said(&self, sid: &str, query: &[(String, String)]) -> Answer {
        let said = self.conversation(sid)?.messages.iter();
        let mut said: Vec<Value> = said.map(|one| self.said_json(sid, one)).collect();
        match field(query, "Order") {
            Some("desc") => said.reverse(),
            Some("asc") | None => {}
            Some(_) => return Err(Refusal::invalid("Order")),
        }
        self.page(sid, "Messages", said, query)
    }

    fn page(&self, sid: &str, of: &str, items: Vec<Value>, query: &[(String, String)]) -> Answer {
        let number = |name: &str, usual: usize| match field(query, name) {
            None => Ok(usual),
            Some(text) => text.parse().map_err(|_| Refusal::invalid(name)),
        };
        let (size, page) = (number("PageSize", 50)?.clamp(1, 100), number("Page", 0)?);
        let link = |page: usize| {
            let order = field(query, "Order").map_or(String::new(), |it| format!("&Order={it}"));
            format!("{}/{of}?PageSize={size}&Page={page}{order}", self.conversation_url(sid))
        };
        let is_more = (page + 1) * size < items.len();
        let key = of.to_lowercase();
        let meta = json!({
            "page": page,
            "page_size": size,
            "first_page_url": link(0),
            "previous_page_url": page.checked_sub(1).map(link),
            "url": link(page),
            "next_page_url": is_more.then(|| link(page + 1)),
            "key": key,
        });
        let shown: Vec<Value> = items.into_iter().skip(page * size).take(size).collect();
        Reply::ok(json!({ key: shown, "meta": meta }))
    }

    fn participant_json(&self, conversation: &str, one: &Participant) -> Value {
        let kind = if one.address.starts_with("whatsapp:") { "whatsapp" } else { "sms" };
        let ours = self.ours_for(&one.address);
        json!({
            "sid": one.sid,
            "account_sid": self.account,
            "conversation_sid": conversation,
            "identity": (!one.has_number()).then_some(&one.address),
            "attributes": "{}",
            "messaging_binding": one.has_number().then(|| json!({
                "type": kind,
                "address": one.address,
                "proxy_address": ours,
            })),
            "role_sid": null,
            "last_read_message_index": null,
            "last_read_timestamp": null,
            "url": format!("{}/Participants/{}", self.conversation_url(conversation), one.sid),
        })
    }

    fn said_json(&self, conversation: &str, said: &Said) -> Value {
        let media = said.media.iter().filter_map(|sid| self.media.get(sid));
        let media: Vec<Value> = media
            .map(|media| {
                json!({
                    "sid": media.sid,
                    "content_type": media.content_type,
                    "filename": media.name,
                    "size": media.bytes().len(),
                    "category": "media",
                })
            })
            .collect();
        let created = time::iso(said.created);
        json!({
            "sid": said.sid,
            "account_sid": self.account,
            "conversation_sid": conversation,
            "body": (!said.body.is_empty()).then_some(&said.body),
            "media": (!media.is_empty()).then_some(media),
            "author": said.author,
            "participant_sid": said.participant,
            "attributes": "{}",
            "date_created": created,
            "date_updated": created,
            "index": said.index,
            "delivery": null,
            "content_sid": null,
            "url": format!("{}/Messages/{}", self.conversation_url(conversation), said.sid),
        })
    }

    pub(super) fn say_by_api(
        &mut self,
        conversation: &str,
        asked: &Asked,
        begun: &mut Vec<Begun>,
    ) -> Answer {
        self.conversation(conversation)?;
        let author = field(&asked.form, "Author").unwrap_or("system");
        let body = field(&asked.form, "Body").unwrap_or("");
        let media = field(&asked.form, "MediaSid");
        if media.is_some_and(|media| !self.media.contains_key(media)) {
            return Err(Refusal::bad(50510, "Invalid message media SID"));
        }
        if body.is_empty() && media.is_none() {
            return Err(Refusal::bad(50503, "Message body not provided"));
        }
        if body.encode_utf16().count() > BODY {
            return Err(Refusal::bad(50504, "Message body parameter is too long"));
        }
        let media = media.map(ToOwned::to_owned).into_iter().collect();
        let sid = self.add_said(conversation, author, body, media);
        self.changed(ChangeKind::Said, &sid, conversation, body);
        let one = self.conversations.get_mut(conversation);
        let said = one.and_then(|one| one.messages.last_mut()).unwrap();
        said.by_api = true;
        let said = said.clone();
        // What is said over the API is told to the webhook only if that was asked for.
        if asked.tells_webhook {
            begun.push(Begun::Tell(sid));
        }
        Reply::created(self.said_json(conversation, &said))
    }
}
