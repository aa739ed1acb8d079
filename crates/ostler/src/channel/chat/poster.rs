//! Brings a chat to show an answer as it should stand: carries out what `plan`
//! says, and notes each message in the store, so that whoever goes on with the
//! answer after a crash changes what is there instead of posting it again.

mod last;

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    Changed, Chat, Post, Posting, Slot, Stands,
    draft::View,
    plan::{self, Operation, Posted},
};
use crate::{
    channel::SendError,
    clock::Millis,
    store::{
        Store, StoreError,
        posts::{self, StoredPost, Subject},
    },
};

/// How often a request is sent again that did not arrive.
const RESENT: u32 = 3;

/// The messages of one answer.
pub(crate) struct Poster {
    chat: Arc<dyn Chat>,
    store: Store,
    subject: Subject,
    /// The message that is answered, if the chat is to show that.
    answers: Option<String>,
    posted: Vec<Posted>,
    /// What may have been sent, and when that was begun: nobody heard.
    unsure: HashMap<Slot, Millis>,
    /// When a part was begun last: what is posted in its place is another message.
    begun: HashMap<Slot, Millis>,
    /// How often a request was sent again that did not arrive.
    resent: HashMap<Slot, u32>,
    /// By this the time is told for which changes are held back.
    since: Instant,
}

/// Why a chat does not show what it should.
#[derive(Debug)]
pub(crate) enum Trouble {
    Store(StoreError),
    Chat(SendError),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<SendError> for Trouble {
    fn from(error: SendError) -> Self {
        Self::Chat(error)
    }
}

impl fmt::Debug for Poster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poster").field("subject", &self.subject.id).finish_non_exhaustive()
    }
}

impl Poster {
    /// Finds out what is there of an answer.
    pub(crate) async fn open(
        chat: Arc<dyn Chat>,
        store: Store,
        subject: Subject,
        answers: Option<String>,
    ) -> Result<Self, StoreError> {
        let stored =
            store.read(subject.clone(), |conn, subject| Box::pin(posts::of(conn, subject)));
        let (mut posted, mut unsure) = (Vec::new(), HashMap::new());
        for StoredPost { slot, message, posted_at } in stored.await? {
            let Some(slot) = Slot::parse(&slot) else { continue };
            match message {
                Some(message) => {
                    posted.push(Posted { slot, message, shown: None, changed_at: 0 });
                }
                None => drop(unsure.insert(slot, posted_at)),
            }
        }
        let (begun, resent) = (HashMap::new(), HashMap::new());
        let since = Instant::now();
        Ok(Self { chat, store, subject, answers, posted, unsure, begun, resent, since })
    }

    /// Returns the time by which changes are held back, in milliseconds.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns what may be there: nobody heard.
    pub(crate) fn unsure(&self) -> impl Iterator<Item = &Slot> {
        self.unsure.keys()
    }

    /// Returns the messages that are there, in their order.
    pub(crate) fn posted(&self) -> &[Posted] {
        &self.posted
    }

    /// Returns what the chat calls the last of them.
    pub(crate) fn last_message(&self) -> Option<&str> {
        self.posted.last().map(|posted| posted.message.as_str())
    }

    /// Does what there is to do now; returns when there is more, if there is. What
    /// was done before an error is noted.
    pub(crate) async fn show(&mut self, view: &View) -> Result<Option<u64>, Trouble> {
        let now = self.now();
        let plan = plan::plan(&self.posted, view, now, self.chat.limits());
        let mut is_gone = false;
        for operation in plan.operations {
            is_gone |= self.carry_out(operation, now).await? == Changed::Gone;
        }
        // What somebody took away is posted again.
        Ok(if is_gone { Some(now) } else { plan.again_at })
    }

    /// Shows of a view what is asked and still waits for an answer, and nothing else.
    pub(crate) async fn show_asked(&mut self, view: &View) -> Result<(), Trouble> {
        let now = self.now();
        let plan = plan::plan(&self.posted, view, now, self.chat.limits());
        for operation in plan.operations {
            if operation.is_about_open_request(view) {
                self.carry_out(operation, now).await?;
            }
        }
        Ok(())
    }

    /// Finds out which requests did not arrive after all, so that they are sent again,
    /// a few times.
    pub(crate) async fn look_for_lost(&mut self) -> Result<(), StoreError> {
        let stored = self
            .store
            .read(self.subject.clone(), |conn, subject| Box::pin(posts::of(conn, subject)));
        let stored: Vec<StoredPost> = stored.await?;
        let is_there = |slot: &Slot| stored.iter().any(|post| post.slot == slot.to_string());
        let lost: Vec<Slot> = self
            .posted
            .iter()
            .map(|posted| posted.slot.clone())
            .filter(|slot| slot.is_asked() && !is_there(slot))
            .filter(|slot| self.resent.get(slot).copied().unwrap_or_default() < RESENT)
            .collect();
        for slot in lost {
            self.posted.retain(|posted| posted.slot != slot);
            *self.resent.entry(slot).or_default() += 1;
        }
        Ok(())
    }

    async fn carry_out(&mut self, operation: Operation, now: u64) -> Result<Changed, Trouble> {
        match operation {
            Operation::Send { slot, post } => {
                // Only the first says what it answers.
                let answers = self.answers.clone().filter(|_| self.posted.is_empty());
                let answers = answers.as_deref();
                let Stands { message, is_as_sent } =
                    match self.sent_before(&slot, &post, answers).await? {
                        Some(stands) => stands,
                        None => self.send(&slot, &post, answers).await?,
                    };
                self.note(&slot, Some(&message), Millis::now()).await?;
                self.unsure.remove(&slot);
                // An earlier try may have left another text there, which has to be changed.
                let shown = is_as_sent.then_some(post);
                let changed = if is_as_sent { Changed::Done } else { Changed::Gone };
                self.posted.push(Posted { slot, message, shown, changed_at: now });
                Ok(changed)
            }
            Operation::Edit { slot, message, post } => {
                let changed = self.chat.edit(&self.subject.place, &message, &post).await?;
                match changed {
                    Changed::Done => {
                        if let Some(posted) = self.posted.iter_mut().find(|it| it.slot == slot) {
                            posted.shown = Some(post);
                            posted.changed_at = now;
                        }
                    }
                    Changed::Gone => self.forget(&slot).await?,
                }
                Ok(changed)
            }
            Operation::Delete { slot, message } => {
                self.chat.delete(&self.subject.place, &message).await?;
                self.forget(&slot).await?;
                Ok(Changed::Done)
            }
        }
    }

    /// Returns a message that an earlier try sent of which nobody heard, if there is
    /// one: it is none that is known as something else.
    async fn sent_before(
        &mut self,
        slot: &Slot,
        post: &Post,
        answers: Option<&str>,
    ) -> Result<Option<Stands>, Trouble> {
        let Some(since) = self.unsure.get(slot).copied() else { return Ok(None) };
        if self.is_known_again(since) {
            return Ok(None);
        }
        let nonce = self.nonce(slot, since);
        let posting = Posting { post, nonce: &nonce, answers };
        for stands in self.chat.find(&self.subject.place, posting, since).await? {
            let args = (self.subject.channel.clone(), stands.message.clone());
            let known = self.store.read(args, |conn, (channel, message)| {
                Box::pin(posts::by_message(conn, channel, message))
            });
            let known: Result<_, StoreError> = known.await;
            if known?.is_none() {
                return Ok(Some(stands));
            }
        }
        // It was looked for, and is not there.
        self.unsure.remove(slot);
        Ok(None)
    }

    /// Whether the chat still knows by its name what was begun at a time.
    fn is_known_again(&self, since: Millis) -> bool {
        let known_again = self.chat.limits().known_again;
        known_again.is_some_and(|for_long| Millis::now() < since.after(for_long))
    }

    /// Returns when a part was begun that is to be sent. One that may have been sent
    /// stays the same, for whoever sends it again; any other is new.
    fn begin(&mut self, slot: &Slot) -> Millis {
        if let Some(since) = self.unsure.get(slot) {
            return *since;
        }
        let now = Millis::now();
        let since = match self.begun.get(slot) {
            Some(last) if now <= *last => last.after(Duration::from_millis(1)),
            Some(_) | None => now,
        };
        self.begun.insert(slot.clone(), since);
        since
    }

    /// Returns the name by which a chat knows a message again.
    fn nonce(&self, slot: &Slot, since: Millis) -> String {
        format!("{}:{slot}:{}", self.subject.id, since.0)
    }

    /// Sends something. It is noted before, and for as long as it may have left: that
    /// it certainly did not leave this time says nothing of an earlier one.
    async fn send(
        &mut self,
        slot: &Slot,
        post: &Post,
        answers: Option<&str>,
    ) -> Result<Stands, Trouble> {
        let since = self.begin(slot);
        let is_first = self.unsure.insert(slot.clone(), since).is_none();
        self.note(slot, None, since).await?;
        let nonce = self.nonce(slot, since);
        let posting = Posting { post, nonce: &nonce, answers };
        let sent = self.chat.send(&self.subject.place, posting).await;
        if is_first && matches!(&sent, Err(SendError { is_unsure: false, .. })) {
            self.unsure.remove(slot);
            self.unnote(slot).await?;
        }
        Ok(sent?)
    }

    async fn note(
        &self,
        slot: &Slot,
        message: Option<&str>,
        posted_at: Millis,
    ) -> Result<(), StoreError> {
        let (slot, message) = (slot.to_string(), message.map(str::to_owned));
        let post = StoredPost { slot, message, posted_at };
        let noted = self.store.write_repeatable((self.subject.clone(), post), |conn, args| {
            Box::pin(posts::note(conn, &args.0, &args.1))
        });
        noted.await
    }

    async fn forget(&mut self, slot: &Slot) -> Result<(), StoreError> {
        self.posted.retain(|posted| posted.slot != *slot);
        self.unnote(slot).await
    }

    async fn unnote(&self, slot: &Slot) -> Result<(), StoreError> {
        let args = (self.subject.id.clone(), slot.to_string());
        let forgotten = self.store.write_repeatable(args, |conn, (subject, slot)| {
            Box::pin(posts::forget(conn, subject, slot))
        });
        forgotten.await
    }
}

#[cfg(test)]
mod tests;
