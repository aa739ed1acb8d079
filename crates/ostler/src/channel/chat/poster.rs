//! Brings a chat to show an answer as it should stand: carries out what `plan`
//! says, and notes each message in the store, so that whoever goes on with the
//! answer after a crash changes what is there instead of posting it again.

use std::{collections::HashMap, fmt, sync::Arc};

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
    /// How often a part was taken away: what is posted in its place is another message.
    taken: HashMap<Slot, u32>,
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
        Ok(Self { chat, store, subject, answers, posted, unsure, taken: HashMap::new() })
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
    pub(crate) async fn show(&mut self, view: &View, now: u64) -> Result<Option<u64>, Trouble> {
        let plan = plan::plan(&self.posted, view, now, self.chat.limits());
        let mut is_gone = false;
        for operation in plan.operations {
            is_gone |= self.carry_out(operation, now).await? == Changed::Gone;
        }
        // What somebody took away is posted again.
        Ok(if is_gone { Some(now) } else { plan.again_at })
    }

    /// Shows of a view what is asked and still waits for an answer, and nothing else.
    pub(crate) async fn show_asked(&mut self, view: &View, now: u64) -> Result<(), Trouble> {
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
            .filter(|slot| self.taken.get(slot).copied().unwrap_or_default() < RESENT)
            .collect();
        for slot in lost {
            self.posted.retain(|posted| posted.slot != slot);
            *self.taken.entry(slot).or_default() += 1;
        }
        Ok(())
    }

    /// Shows a view that is final, whatever others take away meanwhile.
    pub(crate) async fn finish(&mut self, view: &View) -> Result<(), Trouble> {
        /// Somebody who takes messages away faster than that does not want them.
        const ROUNDS: usize = 4;
        for _ in 0..ROUNDS {
            if self.show(view, clock()).await?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Lets requests stand as a view has them, and leaves everything else alone.
    pub(crate) async fn settle(&mut self, view: &View) -> Result<(), Trouble> {
        if self.chat.limits().edits.is_none() {
            return Ok(());
        }
        for (slot, post) in &view.posts {
            let at = self.posted.iter().find(|at| at.slot == *slot);
            let message =
                at.filter(|at| at.shown.as_ref() != Some(post)).map(|at| at.message.clone());
            if let (Slot::Asked(_), Some(message)) = (slot, message) {
                let edit = Operation::Edit { slot: slot.clone(), message, post: post.clone() };
                self.carry_out(edit, clock()).await?;
            }
        }
        Ok(())
    }

    /// Says something about the answer, below it.
    pub(crate) async fn note_below(&mut self, post: Post) -> Result<(), Trouble> {
        let slot = Slot::Note;
        let noted = self.posted.iter().find(|posted| posted.slot == slot);
        let can_change = self.chat.limits().edits.is_some();
        let operation = match noted.map(|posted| posted.message.clone()) {
            Some(_) if !can_change => return Ok(()),
            Some(message) => Operation::Edit { slot, message, post },
            None => Operation::Send { slot, post },
        };
        self.carry_out(operation, clock()).await.map(drop)
    }

    async fn carry_out(&mut self, operation: Operation, now: u64) -> Result<Changed, Trouble> {
        match operation {
            Operation::Send { slot, post } => {
                let n_taken = self.taken.get(&slot).copied().unwrap_or_default();
                let nonce = format!("{}:{slot}:{n_taken}", self.subject.id);
                // Only the first says what it answers.
                let answers = self.answers.clone().filter(|_| self.posted.is_empty());
                let posting = Posting { post: &post, nonce: &nonce, answers: answers.as_deref() };
                let Stands { message, is_as_sent } = match self.sent_before(&slot, posting).await? {
                    Some(stands) => stands,
                    None => self.send(&slot, posting).await?,
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
        posting: Posting<'_>,
    ) -> Result<Option<Stands>, Trouble> {
        let Some(since) = self.unsure.get(slot).copied() else { return Ok(None) };
        let known_again = self.chat.limits().known_again;
        if known_again.is_some_and(|for_long| Millis::now() < since.after(for_long)) {
            return Ok(None);
        }
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

    /// Sends something. It is noted before, and for as long as it may have left.
    async fn send(&mut self, slot: &Slot, posting: Posting<'_>) -> Result<Stands, Trouble> {
        let since = *self.unsure.entry(slot.clone()).or_insert_with(Millis::now);
        self.note(slot, None, since).await?;
        let sent = self.chat.send(&self.subject.place, posting).await;
        if matches!(&sent, Err(SendError { is_unsure: false, .. })) {
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
        *self.taken.entry(slot.clone()).or_default() += 1;
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

/// Returns the time by which changes are held back.
pub(crate) fn clock() -> u64 {
    u64::try_from(Millis::now().0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        channel::{
            SMS,
            chat::{
                Limits,
                testing::{Fake, by_numbers},
            },
        },
        store::testing::on_both,
    };

    const LONG_AGO: Duration = Duration::from_secs(600);

    fn subject() -> Subject {
        Subject { id: "job".to_owned(), channel: SMS.to_owned(), place: "+1".to_owned() }
    }

    /// Notes that a message was about to be sent when its gateway was killed.
    async fn note_begun(store: &Store, slot: &Slot, posted_at: Millis) {
        let post = StoredPost { slot: slot.to_string(), message: None, posted_at };
        let args = (subject(), post);
        store.must(args, |conn, (subject, post)| Box::pin(posts::note(conn, subject, post))).await;
    }

    fn view() -> View {
        View { posts: vec![(Slot::Text(0), Post::of("an answer"))], is_final: true }
    }

    on_both! {
        async fn what_may_have_been_sent_too_long_ago_to_be_known_again_is_looked_for(store: Store) {
            let known_again = Some(Duration::from_secs(60));
            let (fake, mut posted) = Fake::new(Limits { known_again, ..by_numbers() });
            let stands = Stands { message: "there".to_owned(), is_as_sent: true };
            fake.standing.lock().unwrap().push(stands);
            note_begun(&store, &Slot::Text(0), Millis::now().before(LONG_AGO)).await;
            let mut poster = Poster::open(fake, store, subject(), None).await.unwrap();
            poster.finish(&view()).await.unwrap();
            assert_eq!(poster.last_message(), Some("there"));
            assert!(posted.try_recv().is_err());
        }

        async fn what_is_known_again_by_its_name_is_sent_again_and_not_looked_for(store: Store) {
            let known_again = Some(LONG_AGO);
            let (fake, mut posted) = Fake::new(Limits { known_again, ..by_numbers() });
            let stands = Stands { message: "another".to_owned(), is_as_sent: true };
            fake.standing.lock().unwrap().push(stands);
            note_begun(&store, &Slot::Text(0), Millis::now()).await;
            let mut poster = Poster::open(fake, store, subject(), None).await.unwrap();
            poster.finish(&view()).await.unwrap();
            assert_eq!(poster.last_message(), Some("job:text:0:0"));
            assert_eq!(posted.try_recv().unwrap(), Post::of("an answer"));
        }
    }
}
