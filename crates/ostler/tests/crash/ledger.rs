//! What senders and receiver write down while it happens, and the waits for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::books::{Accepted, Balance, Delivered, StoredJob};

/// Shared by all threads of an experiment.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pages: Mutex<Pages>,
    changed: Condvar,
}

/// What is written down.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pub(crate) accepted: Vec<Accepted>,
    /// In the order of arrival.
    pub(crate) delivered: Vec<Delivered>,
    /// How often a message was sent again after a cut, and was known already.
    pub(crate) n_known: usize,
    /// How often a message was refused for now.
    pub(crate) n_refused: usize,
    replied: BTreeSet<String>,
    /// Messages without a reply, by conversation.
    open: BTreeMap<usize, usize>,
    is_over: bool,
}

impl Pages {
    /// Returns whether each of the first accepted messages has a reply.
    fn is_settled(&self, n_first: usize) -> bool {
        let mut first = self.accepted.iter().take(n_first);
        first.all(|accepted| self.replied.contains(&accepted.job))
    }
}

impl Ledger {
    pub(crate) fn accept(&self, accepted: Accepted, is_known: bool) {
        let mut pages = self.pages();
        pages.n_known += usize::from(is_known);
        // The reply can be faster than the word that the message was accepted.
        if !pages.replied.contains(&accepted.job) {
            *pages.open.entry(accepted.message.conversation).or_default() += 1;
        }
        pages.accepted.push(accepted);
        self.changed.notify_all();
    }

    pub(crate) fn refuse(&self) {
        self.pages().n_refused += 1;
    }

    pub(crate) fn deliver(&self, delivered: Delivered) {
        let mut pages = self.pages();
        let is_new = pages.replied.insert(delivered.job.clone());
        if is_new && pages.accepted.iter().any(|accepted| accepted.job == delivered.job) {
            *pages.open.entry(delivered.conversation).or_default() -= 1;
        }
        pages.delivered.push(delivered);
        self.changed.notify_all();
    }

    /// Tells the senders that what they have sent is all.
    pub(crate) fn end(&self) {
        self.pages().is_over = true;
        self.changed.notify_all();
    }

    pub(crate) fn n_accepted(&self) -> usize {
        self.pages().accepted.len()
    }

    /// Waits until a conversation has fewer messages without a reply than this;
    /// returns whether there is more to be sent.
    pub(crate) fn wait_for_room(&self, conversation: usize, limit: usize) -> bool {
        let pages = self
            .changed
            .wait_while(self.pages(), |pages| {
                !pages.is_over && pages.open.get(&conversation).copied().unwrap_or(0) >= limit
            })
            .unwrap();
        !pages.is_over
    }

    /// Waits until anything happens, or for as long as this.
    pub(crate) fn wait_for_news(&self, longest: Duration) {
        let so_far = |pages: &Pages| (pages.accepted.len(), pages.delivered.len(), pages.is_over);
        let before = so_far(&self.pages());
        self.wait(longest, |pages| so_far(pages) != before);
    }

    /// Waits until this many are accepted, or for as long as this; returns
    /// whether they are.
    pub(crate) fn wait_for_accepted(&self, n_accepted: usize, longest: Duration) -> bool {
        self.wait(longest, |pages| pages.accepted.len() >= n_accepted)
    }

    /// Waits until each of the first accepted messages has a reply, as long as
    /// any reply comes within this time; returns whether they have.
    pub(crate) fn wait_until_settled(&self, n_first: usize, longest_silence: Duration) -> bool {
        loop {
            let n_delivered = self.pages().delivered.len();
            let moved =
                |pages: &Pages| pages.is_settled(n_first) || pages.delivered.len() > n_delivered;
            if !self.wait(longest_silence, moved) {
                return false;
            }
            if self.pages().is_settled(n_first) {
                return true;
            }
        }
    }

    /// Compares what was written down with what is stored.
    pub(crate) fn balance(&self, stored: &[StoredJob]) -> Balance {
        let pages = self.pages();
        Balance::of(&pages.accepted, stored, &pages.delivered)
    }

    pub(crate) fn pages(&self) -> MutexGuard<'_, Pages> {
        // A thread that panicked with it fails the test by that, not by this.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, longest: Duration, is_it: impl Fn(&Pages) -> bool) -> bool {
        let deadline = Instant::now() + longest;
        let mut pages = self.pages();
        while !is_it(&pages) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            (pages, _) = self.changed.wait_timeout(pages, left).unwrap();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::Message;

    fn delivered(job: &str) -> Delivered {
        let job = job.to_owned();
        Delivered {
            key: format!("out of {job}"),
            job,
            conversation: 0,
            text: None,
            is_unsure: false,
        }
    }

    #[test]
    fn a_reply_that_overtakes_the_word_of_its_acceptance_leaves_nothing_open() {
        let ledger = Ledger::default();
        ledger.deliver(delivered("a"));
        ledger.deliver(delivered("a"));
        for (number, job) in [(1, "a"), (2, "b")] {
            let message = Message { conversation: 0, number };
            ledger.accept(Accepted { message, job: job.to_owned() }, false);
        }
        assert_eq!(ledger.pages().open[&0], 1);
        assert!(ledger.wait_until_settled(1, Duration::ZERO));
        assert!(!ledger.wait_until_settled(2, Duration::ZERO));
        ledger.deliver(delivered("b"));
        assert_eq!(ledger.pages().open[&0], 0);
        assert!(ledger.wait_until_settled(usize::MAX, Duration::ZERO));
    }
}
