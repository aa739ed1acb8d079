//! What answers come to, in a chat: ends the show of an answer, and lets the
//! messages that showed it stand as its final text.

use std::{path::PathBuf, sync::Arc};

use serde_json::json;
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
    gateway::{asking, inbound::Payload, policy::Policy},
    id::{ConversationId, JobId, PermissionId, TurnId},
    media::{self, Said},
    store::{
        Conn, Store, StoreError, conversations,
        events::{self, StoredEvent},
        jobs,
        outbox::Sending,
        permissions::{self, Resolution, StoredRequest},
        posts::Subject,
    },
};

/// How many events are read at once, and how often, to see what tools did.
const PAGE: u32 = 500;
const PAGES: u32 = 40;

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
            return Err(SendError::given_up(format!("there is no channel {:?}", message.channel)));
        };
        let reply = Reply::from_json(&message.body)
            .map_err(|error| SendError::given_up(error.to_string()))?;
        let id = reply.job.map(|job| job.to_string());
        let id = id.or_else(|| reply.turn.map(|turn| turn.to_string()));
        let id = id.unwrap_or_else(|| sending.id.to_string());
        let (channel, place) = (message.channel.clone(), message.address.clone());
        let subject = Subject { id, channel, place };
        let is_error = reply.error.is_some();
        if !self.shows.finish(&subject, is_error).await {
            return Err(SendError::soon("what was shown of the answer is still being changed"));
        }
        let answers = match reply.job {
            Some(job) => self.answered(job).await.map_err(SendError::away)?,
            None => None,
        };
        let limits = chat.limits().clone();
        let opened = Poster::open(chat, self.store.clone(), subject, answers).await;
        let mut poster = opened.map_err(SendError::away)?;
        let is_settled = self.settle(&mut poster, &limits).await.is_ok();
        match &reply.error {
            None => {
                let policy = Arc::clone(&self.policy.borrow());
                let answer = answer(&reply, &policy).await;
                let long = self.chats.long(&message.channel, &policy);
                post(&mut poster, &answer, long, &limits).await?;
                // Where nothing could be shown meanwhile.
                if limits.edits.is_none()
                    && let Some(tools) =
                        self.tools(&reply, &limits).await.map_err(SendError::away)?
                {
                    beside(poster.note_below(Post::of(tools)).await)?;
                }
            }
            // What came of the answer before stays.
            Some(error) => poster.note_below(Post::of(told(error, &limits))).await?,
        }
        // The answer did not wait for what is around it.
        if !is_settled && let Err(error) = self.settle(&mut poster, &limits).await {
            match error.next {
                Next::Wait | Next::GiveUp => {
                    let reason = error.reason;
                    tracing::info!(reason, "what was asked on the way still looks open");
                }
                Next::Retry { .. } => return Err(error),
            }
        }
        Ok(Sent { message: poster.last_message().map(str::to_owned) })
    }

    /// Takes the buttons from what was asked on the way: nobody waits for an answer
    /// any more.
    async fn settle(&self, poster: &mut Poster, limits: &Limits) -> Result<(), SendError> {
        let slots = poster.posted().iter().map(|posted| &posted.slot).chain(poster.unsure());
        let asked = slots.filter_map(|slot| match slot {
            Slot::Asked(id) => id.parse().ok(),
            Slot::Text(_) | Slot::Page(..) | Slot::Note => None,
        });
        let asked: Vec<PermissionId> = asked.collect();
        if asked.is_empty() {
            return Ok(());
        }
        let read = self.store.read(asked, |conn, asked| Box::pin(requests(conn, asked)));
        let mut draft = Draft::new(limits, Detail::Quiet);
        for request in read.await.map_err(SendError::away)? {
            recall(&mut draft, &request);
        }
        Ok(close(poster, draft).await?)
    }

    /// Returns what the tools of a turn did, if that is wanted in its conversation.
    async fn tools(&self, reply: &Reply, limits: &Limits) -> Result<Option<String>, StoreError> {
        let Some(turn) = reply.turn else { return Ok(None) };
        let args = (reply.conversation, turn, limits.clone());
        let read = self.store.read(args, |conn, (conversation, turn, limits)| {
            Box::pin(tools_of(conn, *conversation, *turn, limits))
        });
        read.await
    }

    /// Returns what the chat calls the message that a job is about.
    async fn answered(&self, job: JobId) -> Result<Option<String>, StoreError> {
        self.store.read(job, |conn, job| Box::pin(message_of(conn, *job))).await
    }
}

/// Lets what was asked stand as it is when the turn is over; without its files if the chat
/// does not take them.
async fn close(poster: &mut Poster, mut draft: Draft) -> Result<(), Trouble> {
    draft.event("complete", &json!({}));
    match poster.settle(&draft.view()).await {
        Err(Trouble::Chat(error)) if error.is_refusal() && draft.leave_files_out() => {
            let reason = error.reason;
            tracing::info!(reason, "what was asked on the way is settled without a file");
            poster.settle(&draft.view()).await
        }
        settled => settled,
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
    let body = asking::event_of(stored);
    let request = body.get("request").cloned().unwrap_or_default();
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

async fn tools_of(
    conn: &mut Conn,
    conversation: ConversationId,
    turn: TurnId,
    limits: &Limits,
) -> Result<Option<String>, StoreError> {
    let conversation = conversations::find(conn, conversation).await?;
    if conversation.and_then(|it| it.settings().verbose) != Some(true) {
        return Ok(None);
    }
    let mut draft = Draft::new(limits, Detail::Verbose);
    let mut after = 0;
    for _ in 0..PAGES {
        let page = events::read_turn(conn, turn, after, PAGE).await?;
        for StoredEvent { number, event } in &page {
            draft.event(&event.kind, &serde_json::from_str(&event.body).unwrap_or_default());
            after = *number;
        }
        if page.len() < PAGE as usize {
            break;
        }
    }
    Ok(draft.tools())
}

async fn message_of(conn: &mut Conn, job: JobId) -> Result<Option<String>, StoreError> {
    let job = jobs::find(conn, job).await?;
    let payload = job.and_then(|job| Payload::read(&job.payload).ok());
    Ok(payload.and_then(|payload| payload.message))
}

/// Takes the files that an answer names, on the side: they are read.
async fn answer(reply: &Reply, policy: &Policy) -> media::Answer {
    let prefix = policy.texts.response_prefix().to_owned();
    let text = reply.text.clone().unwrap_or_default();
    let (folder, rules) = (reply.cwd.as_ref().map(PathBuf::from), policy.media.clone());
    let said = if reply.job.is_some() { Said::InReply } else { Said::Unasked };
    let plain = media::Answer { text: text.clone(), ..media::Answer::default() };
    let taken = task::spawn_blocking(move || media::answer(&text, folder.as_deref(), &rules, said));
    let answer = taken.await.unwrap_or(plain);
    media::Answer { text: prefixed(&prefix, &answer.text), ..answer }
}

/// Puts a prefix before an answer, on a line of its own where it would change what the
/// first line is: code, a heading, a list or a quotation.
fn prefixed(prefix: &str, text: &str) -> String {
    let is_plain = !text.trim_start().starts_with(['`', '~', '#', '>', '-', '*', '+', '|']);
    let is_apart = prefix.is_empty() || prefix.ends_with('\n') || is_plain;
    let gap = if is_apart { "" } else { "\n" };
    format!("{}{gap}{text}", if is_apart { prefix } else { prefix.trim_end() })
}

/// Lets an answer stand. If the chat does not take its files, it is told without them:
/// what was to be a file comes as text. Where that is not taken either it was not for the
/// files that the chat refused, and the answer has not been sent.
async fn post(
    poster: &mut Poster,
    answer: &media::Answer,
    long: Long,
    limits: &Limits,
) -> Result<(), Trouble> {
    let posts = answer_posts(answer.clone(), long, limits);
    let has_files = posts.iter().any(|post| !post.files.is_empty());
    let view = plan::finish(poster.posted(), posts, limits);
    let refused = match poster.finish(&view).await {
        Err(Trouble::Chat(error)) if has_files && error.is_refusal() => error,
        done => return done,
    };
    tracing::warn!(reason = refused.reason, "the files of an answer are not taken by the chat");
    let limits = Limits { files: 0, ..limits.clone() };
    // What stands there and cannot be changed does not say it.
    let is_told = limits.edits.is_some() || poster.posted().is_empty();
    let view = plan::finish(poster.posted(), answer_posts(answer.clone(), long, &limits), &limits);
    poster.finish(&view).await?;
    if is_told {
        return Ok(());
    }
    let note = limits.markup.aside("The files were not sent: the chat does not take them.");
    poster.note_below(Post::of(limits.measure.start(&note, limits.text))).await
}

/// Lets pass that the chat does not take what stands beside an answer: that is there.
fn beside(noted: Result<(), Trouble>) -> Result<(), Trouble> {
    match noted {
        Err(Trouble::Chat(error)) if error.is_refusal() || error.next == Next::Wait => {
            let reason = error.reason;
            tracing::info!(reason, "what stands below an answer is not taken by the chat");
            Ok(())
        }
        noted => noted,
    }
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

impl From<Trouble> for SendError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Store(error) => Self::away(error),
            Trouble::Chat(error) => error,
        }
    }
}

#[cfg(test)]
mod tests;
