//! The last that is done for an answer: it stands in the end, whatever cannot be
//! changed or was left behind on the way.

use super::{
    super::{
        Changed, Post, Posting, Slot, Stands,
        draft::View,
        plan::{self, Operation, Posted},
    },
    Poster, Trouble,
};
use crate::{channel::SendError, clock::Millis};

impl Poster {
    /// Shows a view that is final, whatever others take away meanwhile, and whatever of
    /// what is there cannot be changed any more.
    pub(crate) async fn finish(&mut self, view: &View) -> Result<(), Trouble> {
        /// Somebody who takes messages away faster than that does not want them.
        const ROUNDS: usize = 4;
        for _ in 0..ROUNDS {
            let now = self.now();
            let plan = plan::plan(&self.posted, view, now, self.chat.limits());
            let mut is_gone = false;
            for operation in plan.operations {
                let edited = match &operation {
                    Operation::Edit { slot, .. } => Some(slot.clone()),
                    Operation::Send { .. } | Operation::Delete { .. } => None,
                };
                if self.conclude(operation, now).await? == Changed::Done {
                    continue;
                }
                is_gone = true;
                // What was posted anew takes what stands below it along.
                if edited.is_some_and(|slot| self.posted.iter().any(|at| at.slot == slot)) {
                    break;
                }
            }
            if !is_gone {
                break;
            }
        }
        match self.clear(view).await {
            Err(Trouble::Chat(error)) if error.is_refusal() => Ok(()),
            done => done,
        }
    }

    /// Does a part of what is final. What is refused for good is no reason to lose it.
    async fn conclude(&mut self, operation: Operation, now: u64) -> Result<Changed, Trouble> {
        match (self.carry_out(operation.clone(), now).await, operation) {
            (Err(Trouble::Chat(error)), Operation::Delete { slot, .. }) if error.is_refusal() => {
                let reason = error.reason;
                tracing::info!(reason, "a part of an answer that is not meant any more stays");
                self.forget(&slot).await?;
                Ok(Changed::Done)
            }
            (Err(Trouble::Chat(error)), Operation::Edit { slot, message, post })
                if error.is_refusal() =>
            {
                self.post_anew(slot, message, post, now, error).await
            }
            (done, _) => done,
        }
    }

    /// Posts what was to change a message, and what stands below it with it: that stays
    /// in its order. The messages that were there stay.
    async fn post_anew(
        &mut self,
        slot: Slot,
        message: String,
        post: Post,
        now: u64,
        refused: SendError,
    ) -> Result<Changed, Trouble> {
        if slot.is_asked() {
            // Nobody is to be asked again.
            if let Some(posted) = self.posted.iter_mut().find(|posted| posted.slot == slot) {
                posted.shown = Some(post);
            }
            return Ok(Changed::Done);
        }
        let before = self.posted.clone();
        let mut is_above = true;
        self.posted.retain(|posted| {
            is_above &= posted.slot != slot;
            is_above || !matches!(posted.slot, Slot::Text(_))
        });
        let send = Operation::Send { slot: slot.clone(), post };
        match self.carry_out(send, now).await {
            Ok(_) => {
                let reason = refused.reason;
                tracing::info!(reason, "an answer is posted anew, as it cannot be changed");
                Ok(Changed::Gone)
            }
            // Nothing else can be there then, and what is there may be changed to less.
            Err(Trouble::Chat(error)) if error.is_refusal() => {
                self.posted = before;
                self.note(&slot, Some(&message), Millis::now()).await?;
                Err(refused.into())
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Takes away what an earlier try may have sent and a view that is final does not
    /// have. What the chat does not know by its name any more cannot be found: nobody
    /// knows what it says.
    async fn clear(&mut self, view: &View) -> Result<(), Trouble> {
        if self.chat.limits().edits.is_none() {
            return Ok(());
        }
        let is_left = |slot: &&Slot| {
            matches!(slot, Slot::Text(_)) && view.posts.iter().all(|(other, _)| other != *slot)
        };
        let left: Vec<Slot> = self.unsure.keys().filter(is_left).cloned().collect();
        for slot in left {
            if let Some(stands) = self.sent_again(&slot, &Post::of("…")).await? {
                self.chat.delete(&self.subject.place, &stands.message).await?;
            }
            self.unsure.remove(&slot);
            self.unnote(&slot).await?;
        }
        Ok(())
    }

    /// Sends something of which nobody heard once more under its name, so that the chat
    /// says which message it is, as long as it can tell.
    async fn sent_again(&self, slot: &Slot, post: &Post) -> Result<Option<Stands>, Trouble> {
        let since = self.unsure.get(slot).copied();
        let Some(since) = since.filter(|since| self.is_known_again(*since)) else {
            return Ok(None);
        };
        let nonce = self.nonce(slot, since);
        let posting = Posting { post, nonce: &nonce, answers: None };
        Ok(Some(self.chat.send(&self.subject.place, posting).await?))
    }

    /// Lets requests stand as a view has them, and leaves everything else alone.
    pub(crate) async fn settle(&mut self, view: &View) -> Result<(), Trouble> {
        if self.chat.limits().edits.is_none() {
            return Ok(());
        }
        for (slot, post) in view.posts.iter().filter(|(slot, _)| matches!(slot, Slot::Asked(_))) {
            if self.unsure.contains_key(slot) {
                self.settle_unsure(slot, post).await?;
            }
            let at = self.posted.iter().find(|at| at.slot == *slot);
            let at = at.filter(|at| at.shown.as_ref() != Some(post));
            if let Some(message) = at.map(|at| at.message.clone()) {
                let edit = Operation::Edit { slot: slot.clone(), message, post: post.clone() };
                self.carry_out(edit, self.now()).await?;
            }
        }
        Ok(())
    }

    /// Finds out whether a request was sent of which nobody heard: if so it has other
    /// words, and is settled as the others are.
    async fn settle_unsure(&mut self, slot: &Slot, post: &Post) -> Result<(), Trouble> {
        match self.sent_again(slot, post).await? {
            Some(Stands { message, is_as_sent: false }) => {
                self.note(slot, Some(&message), Millis::now()).await?;
                let slot = slot.clone();
                self.posted.push(Posted { slot, message, shown: None, changed_at: 0 });
            }
            Some(Stands { message, is_as_sent: true }) => {
                self.chat.delete(&self.subject.place, &message).await?;
                self.unnote(slot).await?;
            }
            None => self.unnote(slot).await?,
        }
        self.unsure.remove(slot);
        Ok(())
    }

    /// Says something about the answer, below it.
    pub(crate) async fn note_below(&mut self, post: Post) -> Result<(), Trouble> {
        let slot = Slot::Note;
        let noted = self.posted.iter().find(|posted| posted.slot == slot);
        let can_change = self.chat.limits().edits.is_some();
        let now = self.now();
        let send = Operation::Send { slot: slot.clone(), post: post.clone() };
        let Some(message) = noted.map(|posted| posted.message.clone()) else {
            return self.carry_out(send, now).await.map(drop);
        };
        if !can_change {
            return Ok(());
        }
        match self.conclude(Operation::Edit { slot, message, post }, now).await? {
            // Somebody took it away, unless it was posted anew.
            Changed::Gone if self.posted.iter().all(|posted| posted.slot != Slot::Note) => {
                self.carry_out(send, now).await.map(drop)
            }
            Changed::Done | Changed::Gone => Ok(()),
        }
    }
}
