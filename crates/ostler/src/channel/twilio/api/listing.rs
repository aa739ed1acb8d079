//! What Twilio has: messages that came and went, and numbers.

use jiff::{Timestamp, fmt::rfc2822};
use reqwest::Url;
use serde::Deserialize;

use super::{Api, Part, form};
use crate::channel::twilio::code::Trouble;

/// How many things a page has, and how many pages are read.
const PAGE: &str = "100";
const PAGES: usize = 100;

/// A message that Twilio has.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Message {
    pub(crate) sid: String,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) direction: Option<String>,
    pub(crate) date_created: Option<String>,
    /// A number that is written as a text.
    pub(crate) num_media: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) error_code: Option<u32>,
    pub(crate) messaging_service_sid: Option<String>,
}

impl Message {
    /// Returns when it was made.
    pub(crate) fn made_at(&self) -> Option<Timestamp> {
        rfc2822::parse(self.date_created.as_deref()?).ok().map(|at| at.timestamp())
    }

    pub(crate) fn n_media(&self) -> usize {
        self.num_media.as_deref().and_then(|number| number.parse().ok()).unwrap_or_default()
    }
}

/// A message of a group.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Listed {
    pub(crate) sid: String,
    pub(crate) author: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) date_created: Option<Timestamp>,
    pub(crate) participant_sid: Option<String>,
    pub(crate) media: Option<Vec<GroupFile>>,
}

/// A file that was sent into a group.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct GroupFile {
    pub(crate) sid: Option<String>,
    pub(crate) content_type: Option<String>,
}

/// A group.
#[derive(Clone, Debug, Deserialize)]
struct Conversation {
    state: Option<String>,
    chat_service_sid: Option<String>,
}

/// Which messages are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) to: Option<&'a str>,
    pub(crate) from: Option<&'a str>,
    pub(crate) since: Timestamp,
    /// Whether Twilio chooses by the time. What is not sent yet has none by which it
    /// could.
    pub(crate) is_dated: bool,
}

#[derive(Deserialize)]
struct Page {
    messages: Vec<Message>,
    next_page_uri: Option<String>,
}

#[derive(Deserialize)]
struct Files {
    media_list: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    sid: String,
    content_type: Option<String>,
}

#[derive(Deserialize)]
struct Group {
    messages: Vec<Listed>,
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Participants {
    participants: Vec<Participant>,
    meta: Option<Meta>,
}

/// What the newer parts of Twilio say of a page.
#[derive(Deserialize)]
struct Meta {
    next_page_url: Option<String>,
}

/// Somebody in a group.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Participant {
    pub(crate) messaging_binding: Option<Binding>,
}

/// How somebody takes part in a group; a program has none.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Binding {
    pub(crate) address: Option<String>,
    /// The number to which he writes.
    pub(crate) proxy_address: Option<String>,
}

#[derive(Deserialize)]
struct Numbers {
    incoming_phone_numbers: Vec<Number>,
}

/// A number of the account's.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Number {
    pub(crate) sms_url: Option<String>,
    pub(crate) sms_method: Option<String>,
}

#[derive(Deserialize)]
struct Senders {
    senders: Vec<Sender>,
}

/// A number that has WhatsApp.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Sender {
    pub(crate) sender_id: String,
    pub(crate) status: Option<String>,
    pub(crate) webhook: Option<Hook>,
}

/// Where it is told what comes to such a number.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Hook {
    pub(crate) callback_url: Option<String>,
    pub(crate) callback_method: Option<String>,
}

/// Where it is told what is said in groups, and which of it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct GroupHook {
    pub(crate) post_webhook_url: Option<String>,
    pub(crate) method: Option<String>,
    pub(crate) filters: Option<Vec<String>>,
}

/// Where it is told what comes to the numbers of a service.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Service {
    pub(crate) inbound_request_url: Option<String>,
    pub(crate) inbound_method: Option<String>,
    /// Whether the URL of each number counts instead.
    pub(crate) use_inbound_webhook_on_number: Option<bool>,
}

impl Api {
    /// Returns messages, the newest first, and perhaps some from before. There are more
    /// than ten thousand of them only if nobody has looked for very long.
    pub(crate) async fn messages(&self, wanted: Wanted<'_>) -> Result<Vec<Message>, Trouble> {
        let since = wanted.since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut query = vec![("PageSize", PAGE)];
        query.extend(wanted.is_dated.then_some(("DateSent>", since.as_str())));
        query.extend(wanted.to.map(|to| ("To", to)));
        query.extend(wanted.from.map(|from| ("From", from)));
        let mut url = self.of_account(&format!("/Messages.json?{}", form(&query)));
        // Twilio writes moments by the second.
        let first = Timestamp::from_second(wanted.since.as_second()).unwrap_or(wanted.since);
        let mut messages = Vec::new();
        for _ in 0..PAGES {
            let page: Page = self.get(&url).await?;
            let oldest = page.messages.last().and_then(Message::made_at);
            messages.extend(page.messages);
            match page.next_page_uri.filter(|_| oldest.is_none_or(|at| first <= at)) {
                Some(next) => url = self.at(Part::Core, &next),
                None => return Ok(messages),
            }
        }
        tracing::warn!(messages = messages.len(), "Twilio has older messages that are not read");
        Ok(messages)
    }

    /// Looks whether messages may be looked at, and at none of them.
    pub(crate) async fn may_look(&self) -> Result<(), Trouble> {
        let url = self.of_account("/Messages.json?PageSize=1");
        self.get::<Page>(&url).await.map(drop)
    }

    /// Returns where the files of a message are, each with its type.
    pub(crate) async fn files(
        &self,
        message: &str,
    ) -> Result<Vec<(String, Option<String>)>, Trouble> {
        let files: Files =
            self.get(&self.of_account(&format!("/Messages/{message}/Media.json"))).await?;
        let url = |file: &str| self.of_account(&format!("/Messages/{message}/Media/{file}"));
        Ok(files.media_list.into_iter().map(|file| (url(&file.sid), file.content_type)).collect())
    }

    /// Returns the messages of a group since a time, the newest first, and perhaps some
    /// from before.
    pub(crate) async fn group(
        &self,
        group: &str,
        since: Timestamp,
    ) -> Result<Vec<Listed>, Trouble> {
        let path = format!("/v1/Conversations/{group}/Messages?Order=desc&PageSize={PAGE}");
        let mut url = self.at(Part::Conversations, &path);
        let mut messages = Vec::new();
        for _ in 0..PAGES {
            let page: Group = self.get(&url).await?;
            let oldest = page.messages.last().and_then(|message| message.date_created);
            messages.extend(page.messages);
            match self.next_of(page.meta).filter(|_| oldest.is_none_or(|at| since <= at)) {
                Some(next) => url = next,
                None => return Ok(messages),
            }
        }
        tracing::warn!(
            group,
            messages = messages.len(),
            "a group has older messages that are not read"
        );
        Ok(messages)
    }

    /// Looks whether a group may be looked at.
    pub(crate) async fn may_look_at(&self, group: &str) -> Result<(), Trouble> {
        let path = format!("/v1/Conversations/{group}/Messages?PageSize=1");
        self.get::<Group>(&self.at(Part::Conversations, &path)).await.map(drop)
    }

    /// Whether a group takes nothing any more, though people are still in it.
    pub(crate) async fn is_closed(&self, group: &str) -> Result<bool, Trouble> {
        let found = self.conversation(group).await?;
        Ok(found.state.as_deref() == Some("closed"))
    }

    /// Returns what the files of a group are kept under.
    pub(crate) async fn chat_service(&self, group: &str) -> Result<Option<String>, Trouble> {
        self.conversation(group).await.map(|found| found.chat_service_sid)
    }

    async fn conversation(&self, group: &str) -> Result<Conversation, Trouble> {
        let path = format!("/v1/Conversations/{group}");
        self.get(&self.at(Part::Conversations, &path)).await
    }

    /// Returns who is in a group.
    pub(crate) async fn participants(&self, group: &str) -> Result<Vec<Participant>, Trouble> {
        let path = format!("/v1/Conversations/{group}/Participants?PageSize={PAGE}");
        let mut url = self.at(Part::Conversations, &path);
        let mut people = Vec::new();
        for _ in 0..PAGES {
            let page: Participants = self.get(&url).await?;
            people.extend(page.participants);
            match self.next_of(page.meta) {
                Some(next) => url = next,
                None => break,
            }
        }
        Ok(people)
    }

    /// Returns where the next page is. It is asked for where everything is, for the
    /// login is nobody else's.
    fn next_of(&self, meta: Option<Meta>) -> Option<String> {
        let url = Url::parse(&meta?.next_page_url?).ok()?;
        let query = url.query().unwrap_or_default();
        Some(self.at(Part::Conversations, &format!("{}?{query}", url.path())))
    }

    /// Returns a number, if it is the account's.
    pub(crate) async fn number(&self, number: &str) -> Result<Option<Number>, Trouble> {
        let query = form(&[("PhoneNumber", number)]);
        let url = self.of_account(&format!("/IncomingPhoneNumbers.json?{query}"));
        let found: Numbers = self.get(&url).await?;
        Ok(found.incoming_phone_numbers.into_iter().next())
    }

    /// Returns the numbers that have WhatsApp.
    pub(crate) async fn senders(&self) -> Result<Vec<Sender>, Trouble> {
        let path = format!("/v2/Channels/Senders?Channel=whatsapp&PageSize={PAGE}");
        let found: Senders = self.get(&self.at(Part::Messaging, &path)).await?;
        Ok(found.senders)
    }

    /// Returns where it is told what is said in groups.
    pub(crate) async fn group_hook(&self) -> Result<GroupHook, Trouble> {
        self.get(&self.at(Part::Conversations, "/v1/Configuration/Webhooks")).await
    }

    /// Returns a service that chooses numbers.
    pub(crate) async fn service(&self, service: &str) -> Result<Service, Trouble> {
        self.get(&self.at(Part::Messaging, &format!("/v1/Services/{service}"))).await
    }
}
