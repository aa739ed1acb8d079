//! All that there is at one moment: numbers, messages, media, groups, what was asked
//! and posted, and what is planned to go wrong.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::{
    content::Template,
    conversation::Conversation,
    fault::Faults,
    media::{Fetch, Media},
    message::{Change, ChangeKind, Message, Status},
    webhook::{Post, Purpose},
};

/// The world of one double.
pub(crate) struct World {
    pub(super) base: String,
    pub(super) account: String,
    pub(super) token: String,
    pub(super) api_key: (String, String),
    pub(super) whatsapp: String,
    pub(super) sms: String,
    pub(super) sender: String,
    pub(super) phone_number: String,
    pub(super) messaging_service: String,
    pub(super) chat_service: String,
    pub(super) webhook: Option<String>,
    pub(super) conversation_webhook: Option<String>,

    /// All messages, the oldest first.
    pub(super) messages: Vec<Message>,
    pub(super) media: BTreeMap<String, Media>,
    pub(super) conversations: BTreeMap<String, Conversation>,
    pub(super) templates: BTreeMap<String, Template>,
    /// When people wrote last on WhatsApp.
    pub(super) wrote: BTreeMap<String, Timestamp>,
    /// Who counts as not having written, whatever he writes.
    pub(super) closed: BTreeSet<String>,
    pub(super) unsubscribed: BTreeSet<String>,
    /// The beginnings of numbers that must not be written to.
    pub(super) forbidden: BTreeSet<String>,
    /// Of a trial account the numbers that are verified.
    pub(super) trial: Option<BTreeSet<String>>,
    /// Of WhatsApp's sandbox the people who have joined it.
    pub(super) sandbox: Option<BTreeSet<String>>,
    pub(super) sender_status: &'static str,
    pub(super) account_status: &'static str,

    pub(super) changes: Vec<Change>,
    pub(super) posts: Vec<Post>,
    pub(super) fetches: Vec<Fetch>,
    pub(super) requests: Vec<Request>,
    pub(super) faults: Faults,
    /// The status that messages come to, if nothing fails.
    pub(super) walk_to: Status,
    /// The error that the next messages to a number end with.
    pub(super) doomed: BTreeMap<String, u32>,
    /// How many files are still to get lost on their way to Twilio.
    pub(super) lost_files: usize,
    pub(super) token_rejected: bool,
    /// Whether calls are made with the API key alone.
    pub(super) is_key_only: bool,
    /// How far the clock of Twilio's is behind this machine's.
    pub(super) behind: SignedDuration,
    /// How many requests may be under way at once, and how many are.
    pub(super) concurrency: Option<usize>,
    pub(super) under_way: usize,
    /// Whom no messages are taken for at the moment.
    pub(super) limited_to: BTreeSet<String>,
}

/// A request to the API, and how it ended.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path with the query.
    pub(crate) path: String,
    pub(crate) form: Vec<(String, String)>,
    /// The status of the answer; 0 where there was none.
    pub(crate) status: u16,
    pub(crate) at: Instant,
}

impl World {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self {
            base: format!("http://{address}"),
            account: sid("AC"),
            token: Uuid::new_v4().simple().to_string(),
            api_key: (sid("SK"), Uuid::new_v4().simple().to_string()),
            whatsapp: "+14155238886".to_owned(),
            sms: "+15017122661".to_owned(),
            sender: sid("XE"),
            phone_number: sid("PN"),
            messaging_service: sid("MG"),
            chat_service: sid("IS"),
            webhook: None,
            conversation_webhook: None,
            messages: Vec::new(),
            media: BTreeMap::new(),
            conversations: BTreeMap::new(),
            templates: BTreeMap::new(),
            wrote: BTreeMap::new(),
            closed: BTreeSet::new(),
            unsubscribed: BTreeSet::new(),
            forbidden: BTreeSet::new(),
            trial: None,
            sandbox: None,
            sender_status: "ONLINE",
            account_status: "active",
            changes: Vec::new(),
            posts: Vec::new(),
            fetches: Vec::new(),
            requests: Vec::new(),
            faults: Faults::default(),
            walk_to: Status::Read,
            doomed: BTreeMap::new(),
            lost_files: 0,
            token_rejected: false,
            is_key_only: false,
            behind: SignedDuration::ZERO,
            concurrency: None,
            under_way: 0,
            limited_to: BTreeSet::new(),
        }
    }

    /// Returns what time it is by Twilio's clock.
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::now() - self.behind
    }

    pub(super) fn changed(&mut self, kind: ChangeKind, sid: &str, address: &str, text: &str) {
        self.changes.push(Change {
            kind,
            sid: sid.to_owned(),
            address: address.to_owned(),
            text: text.to_owned(),
            at: Instant::now(),
        });
    }

    pub(crate) fn message(&self, sid: &str) -> Option<&Message> {
        self.messages.iter().find(|message| message.sid == sid)
    }

    pub(super) fn message_mut(&mut self, sid: &str) -> Option<&mut Message> {
        self.messages.iter_mut().find(|message| message.sid == sid)
    }

    /// Returns what was sent to an address, the oldest first. An address of WhatsApp
    /// begins with `whatsapp:`.
    pub(crate) fn messages_to(&self, address: &str) -> Vec<&Message> {
        let sent = self.messages.iter().filter(|message| message.is_outbound());
        sent.filter(|message| message.to == address).collect()
    }

    /// Returns what was sent into a Conversation over the API, the oldest first: the
    /// author and the text.
    pub(crate) fn said_in(&self, conversation: &str) -> Vec<(String, String)> {
        let found = self.conversations.get(conversation);
        let sent = found.into_iter().flat_map(|one| &one.messages).filter(|said| said.by_api);
        sent.map(|said| (said.author.clone(), said.body.clone())).collect()
    }

    /// Returns what was done over the API, in its order.
    pub(crate) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns every webhook and status callback that was posted, in order.
    pub(crate) fn posts(&self) -> &[Post] {
        &self.posts
    }

    /// Returns what was posted of a message for a purpose.
    pub(crate) fn posts_of<'a>(
        &'a self,
        sid: &'a str,
        purpose: Purpose,
    ) -> impl Iterator<Item = &'a Post> {
        self.posts.iter().filter(move |post| post.sid == sid && post.purpose == purpose)
    }

    pub(crate) fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// Returns how many requests were answered with 429.
    pub(crate) fn limited(&self) -> usize {
        self.requests.iter().filter(|request| request.status == 429).count()
    }

    /// Returns how many requests have not been answered yet.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Returns how many planned faults have not happened yet.
    pub(crate) fn faults_left(&self) -> usize {
        self.faults.len()
    }

    /// Returns every attempt to fetch media that a message has links to.
    pub(crate) fn media_fetches(&self) -> &[Fetch] {
        &self.fetches
    }

    /// Says what happened, for a test that waited in vain.
    pub(super) fn report(&self) -> String {
        let mut report = String::new();
        let skipped = self.requests.len().saturating_sub(20);
        for request in self.requests.iter().skip(skipped) {
            let Request { method, path, status, .. } = request;
            report.push_str(&format!("{status} {method} {path}\n"));
        }
        for post in self.posts.iter().rev().take(10).rev() {
            let Post { purpose, url, answered, .. } = post;
            report.push_str(&format!("{purpose:?} to {url}: {answered:?}\n"));
        }
        for message in self.messages.iter().rev().take(10).rev() {
            let Message { from, to, body, status, error, .. } = message;
            report.push_str(&format!("{from} to {to}, {status:?} {error:?}: {body:?}\n"));
        }
        report
    }
}

/// Makes an id as Twilio makes them: of a kind, and not in any order.
pub(super) fn sid(kind: &str) -> String {
    format!("{kind}{}", Uuid::new_v4().simple())
}
