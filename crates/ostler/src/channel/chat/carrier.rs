//! What answers come to, in a chat: ends the show of an answer, and lets the
//! messages that showed it stand as its final text.

use std::{path::PathBuf, sync::Arc};

use serde_json::{Value, json};
use tokio::{sync::watch, task};

use super::{
    Chats, Limits, Post, Slot,
    draft::{self, Detail, Draft, Long},
    plan,
    poster::{Poster, Trouble},
    show::Shows,
};
use crate::{
    channel::{Next, Reply, ReplyError, SendError, Sent},
    gateway::{inbound::Payload, policy::Policy},
    id::{JobId, PermissionId},
    media::{self, Said},
    store::{
        Conn, Store, StoreError, jobs,
        outbox::Sending,
        permissions::{self, Resolution, StoredRequest},
        posts::Subject,
    },
};

/// Sends what is in the outbox for chats.
#[derive(Clone, Debug)]
pub(crate) struct Carrier {
    store: Store,
    chats: Chats,
    shows: Shows,
    policy: watch::Receiver<Arc<Policy>>,
}

impl Carrier {
    pub(crate) fn new(
        store: Store,
        chats: Chats,
        shows: Shows,
        policy: watch::Receiver<Arc<Policy>>,
    ) -> Self {
        Self { store, chats, shows, policy }
    }

    /// Whether a channel is one of these chats.
    pub(crate) fn has(&self, channel: &str) -> bool {
        self.chats.get(channel).is_some()
    }

    /// Returns the channels in which another gateway speaks.
    pub(crate) fn closed(&self) -> Vec<&'static str> {
        self.chats.closed()
    }

    /// Sends a message. Sent again, it changes what is there already.
    pub(crate) async fn send(&self, sending: &Sending) -> Result<Sent, SendError> {
        let message = &sending.message;
        let Some(chat) = self.chats.get(&message.channel) else {
            return Err(given_up(format!("there is no channel {:?}", message.channel)));
        };
        let reply = Reply::from_json(&message.body).map_err(|error| given_up(error.to_string()))?;
        let id = reply.job.map(|job| job.to_string());
        let id = id.or_else(|| reply.turn.map(|turn| turn.to_string()));
        let id = id.unwrap_or_else(|| sending.id.to_string());
        let (channel, place) = (message.channel.clone(), message.address.clone());
        let subject = Subject { id, channel, place };
        let is_error = reply.error.is_some();
        if !self.shows.finish(&subject, is_error).await {
            return Err(SendError {
                reason: "what was shown of the answer is still being changed".to_owned(),
                next: Next::Retry { after: None },
                is_unsure: false,
            });
        }
        let answers = match reply.job {
            Some(job) => self.answered(job).await.map_err(away)?,
            None => None,
        };
        let limits = chat.limits().clone();
        let opened = Poster::open(chat, self.store.clone(), subject, answers).await;
        let mut poster = opened.map_err(away)?;
        self.settle(&mut poster, &limits).await?;
        let done = match &reply.error {
            None => {
                let policy = Arc::clone(&self.policy.borrow());
                let answer = answer(&reply, &policy).await;
                let long = self.chats.long(&message.channel, &policy);
                let posts = answer_posts(answer, long, &limits);
                let view = plan::finish(poster.posted(), posts, &limits);
                poster.finish(&view).await
            }
            // What came of the answer before stays.
            Some(error) => poster.note_below(Post::of(told(error, &limits))).await,
        };
        match done {
            Ok(()) => Ok(Sent { message: poster.last_message().map(str::to_owned) }),
            Err(Trouble::Store(error)) => Err(away(error)),
            Err(Trouble::Chat(error)) => Err(error),
        }
    }

    /// Takes the buttons from what was asked on the way: nobody waits for an answer
    /// any more.
    async fn settle(&self, poster: &mut Poster, limits: &Limits) -> Result<(), SendError> {
        let asked = poster.posted().iter().filter_map(|posted| match &posted.slot {
            Slot::Asked(id) => id.parse().ok(),
            Slot::Text(_) | Slot::Page(..) | Slot::Note => None,
        });
        let asked: Vec<PermissionId> = asked.collect();
        if asked.is_empty() {
            return Ok(());
        }
        let read = self.store.read(asked, |conn, asked| Box::pin(requests(conn, asked)));
        let mut draft = Draft::new(limits, Detail::Quiet);
        for request in read.await.map_err(away)? {
            recall(&mut draft, &request);
        }
        draft.event("complete", &json!({}));
        match poster.settle(&draft.view()).await {
            Ok(()) => Ok(()),
            Err(Trouble::Store(error)) => Err(away(error)),
            Err(Trouble::Chat(error)) => Err(error),
        }
    }

    /// Returns what the chat calls the message that a job is about.
    async fn answered(&self, job: JobId) -> Result<Option<String>, StoreError> {
        self.store.read(job, |conn, job| Box::pin(message_of(conn, *job))).await
    }
}

async fn requests(conn: &mut Conn, ids: &[PermissionId]) -> Result<Vec<StoredRequest>, StoreError> {
    let mut found = Vec::new();
    for id in ids {
        found.extend(permissions::find(conn, *id).await?);
    }
    Ok(found)
}

/// Lets a draft hear again what was asked, and what was decided.
fn recall(draft: &mut Draft, stored: &StoredRequest) {
    let mut body: Value = serde_json::from_str(&stored.request.body).unwrap_or_default();
    let request = body.get("request").cloned().unwrap_or_default();
    if let Some(fields) = body.as_object_mut() {
        fields.insert("id".to_owned(), json!(stored.id));
    }
    draft.event("permission", &body);
    if let Some(Resolution { decision, by, .. }) = &stored.resolution {
        let known = ["user", "session", "timeout", "cancel", "agent"];
        let by = match by.as_deref() {
            None => "timeout",
            Some(by) => known.into_iter().find(|known| *known == by).unwrap_or("user"),
        };
        let status = json!({
            "code": "permission_resolved", "request": request, "decision": decision.decision,
            "by": by,
        });
        draft.event("status", &status);
    }
}

async fn message_of(conn: &mut Conn, job: JobId) -> Result<Option<String>, StoreError> {
    let job = jobs::find(conn, job).await?;
    let payload = job.and_then(|job| Payload::read(&job.payload).ok());
    Ok(payload.and_then(|payload| payload.message))
}

/// Takes the files that an answer names, on the side: they are read.
async fn answer(reply: &Reply, policy: &Policy) -> media::Answer {
    let prefix = policy.texts.response_prefix();
    let text = format!("{prefix}{}", reply.text.as_deref().unwrap_or_default());
    let (folder, rules) = (reply.cwd.as_ref().map(PathBuf::from), policy.media.clone());
    let said = if reply.job.is_some() { Said::InReply } else { Said::Unasked };
    let plain = media::Answer { text: text.clone(), ..media::Answer::default() };
    let taken = task::spawn_blocking(move || media::answer(&text, folder.as_deref(), &rules, said));
    taken.await.unwrap_or(plain)
}

fn answer_posts(answer: media::Answer, long: Long, limits: &Limits) -> Vec<Post> {
    let media::Answer { mut text, attachments, mut notes } = answer;
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for file in attachments {
        match limits.refusal(&file) {
            None => taken.push(file),
            Some(why) => refused.push(format!("{} was not sent: {why}.", file.name)),
        }
    }
    notes.extend(refused);
    for note in notes {
        text.push_str("\n\n");
        text.push_str(&limits.markup.aside(&note));
    }
    draft::reply(&text, taken, long, limits)
}

/// Returns what people are told of an error, as far as one message can have it.
fn told(error: &ReplyError, limits: &Limits) -> String {
    match error.kind.as_str() {
        "cancelled" => "⏹ Stopped.".to_owned(),
        _ => {
            let text = format!("⚠️ {}", error.message);
            limits.measure.start(&text, limits.text).to_owned()
        }
    }
}

/// The store is away; nothing has left by that.
fn away(error: StoreError) -> SendError {
    SendError {
        reason: format!("the store cannot be used: {error}"),
        next: Next::Retry { after: None },
        is_unsure: false,
    }
}

fn given_up(reason: String) -> SendError {
    SendError { reason, next: Next::GiveUp, is_unsure: false }
}
