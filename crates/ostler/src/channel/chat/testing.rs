//! A chat for tests.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use tokio::sync::mpsc;

use super::*;
use crate::channel::Next;

/// A chat that hands out what is posted there.
pub(crate) struct Fake {
    limits: Limits,
    posted: mpsc::UnboundedSender<Post>,
    /// How many of the next messages it refuses for good.
    n_refused: AtomicUsize,
    /// What is found there when something is looked for.
    pub(crate) standing: Mutex<Vec<Stands>>,
}

impl Fake {
    pub(crate) fn new(limits: Limits) -> (Arc<Self>, mpsc::UnboundedReceiver<Post>) {
        let (posted, to) = mpsc::unbounded_channel();
        (
            Arc::new(Self {
                limits,
                posted,
                n_refused: AtomicUsize::new(0),
                standing: Mutex::default(),
            }),
            to,
        )
    }

    /// Does not take the next message.
    pub(crate) fn refuse_next(&self) {
        self.n_refused.fetch_add(1, Relaxed);
    }

    fn refuses(&self) -> bool {
        self.n_refused.try_update(Relaxed, Relaxed, |n| n.checked_sub(1)).is_ok()
    }
}

impl Chat for Fake {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn typing<'a>(&'a self, _: &'a str, _: Option<&'a str>) -> Doing<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn send<'a>(&'a self, _: &'a str, posting: Posting<'a>) -> Doing<'a, Stands> {
        Box::pin(async move {
            if self.refuses() {
                return Err(refused());
            }
            self.posted.send(posting.post.clone()).unwrap();
            let message = posting.nonce.to_owned();
            Ok(Stands { message, is_as_sent: true })
        })
    }

    fn edit<'a>(&'a self, _: &'a str, _: &'a str, _: &'a Post) -> Doing<'a, Changed> {
        Box::pin(async { Ok(Changed::Done) })
    }

    fn delete<'a>(&'a self, _: &'a str, _: &'a str) -> Doing<'a, Changed> {
        Box::pin(async { Ok(Changed::Done) })
    }

    fn find<'a>(&'a self, _: &'a str, _: Posting<'a>, _: Millis) -> Doing<'a, Vec<Stands>> {
        Box::pin(async { Ok(self.standing.lock().unwrap().clone()) })
    }
}

/// What a chat takes in which nothing can be changed.
pub(crate) fn by_numbers() -> Limits {
    Limits {
        text: 1600,
        edits: None,
        typing: None,
        buttons: 20,
        label: 20,
        files: 0,
        file_bytes: 0,
        image_bytes: 0,
        together_bytes: 0,
        kinds: None,
        measure: Measure::Utf16,
        has_captions: false,
        choices: Choices::Numbers,
        markup: Markup::None,
        known_again: None,
    }
}

fn refused() -> SendError {
    SendError { reason: "no".to_owned(), next: Next::GiveUp, is_unsure: false }
}
