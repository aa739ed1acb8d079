//! A chat for tests.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

use tokio::sync::mpsc;

use super::*;

/// A chat that hands out what is posted there.
pub(crate) struct Fake {
    limits: Limits,
    posted: mpsc::UnboundedSender<Post>,
    /// How many of the next messages it refuses for good.
    n_refused: AtomicUsize,
    /// What comes of the next messages. One that may have arrived has.
    pub(crate) troubles: Mutex<VecDeque<SendError>>,
    /// Whether it does not take files.
    pub(crate) has_no_files: AtomicBool,
    /// Whether nothing that is there can be changed.
    pub(crate) is_closed: AtomicBool,
    /// What is found there when something is looked for.
    pub(crate) standing: Mutex<Vec<Stands>>,
    /// What is there, by its names.
    pub(crate) there: Mutex<Vec<(String, Post)>>,
}

impl Fake {
    pub(crate) fn new(limits: Limits) -> (Arc<Self>, mpsc::UnboundedReceiver<Post>) {
        let (posted, to) = mpsc::unbounded_channel();
        (
            Arc::new(Self {
                limits,
                posted,
                n_refused: AtomicUsize::new(0),
                troubles: Mutex::default(),
                has_no_files: AtomicBool::new(false),
                is_closed: AtomicBool::new(false),
                standing: Mutex::default(),
                there: Mutex::default(),
            }),
            to,
        )
    }

    /// Does not take the next message.
    pub(crate) fn refuse_next(&self) {
        self.n_refused.fetch_add(1, Relaxed);
    }

    /// Returns the texts that are there.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.there.lock().unwrap().iter().map(|(_, post)| post.text.clone()).collect()
    }

    /// Finds a message that can be changed.
    fn change(&self, message: &str, by: impl FnOnce(&mut Vec<(String, Post)>, usize)) -> Changing {
        if self.is_closed.load(Relaxed) {
            return Err(refused());
        }
        let mut there = self.there.lock().unwrap();
        let Some(at) = there.iter().position(|(name, _)| name == message) else {
            return Ok(Changed::Gone);
        };
        by(&mut there, at);
        Ok(Changed::Done)
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
            let has_files = !posting.post.files.is_empty();
            if self.refuses() || (has_files && self.has_no_files.load(Relaxed)) {
                return Err(refused());
            }
            let trouble = self.troubles.lock().unwrap().pop_front();
            if let Some(error) = trouble.clone().filter(|error| !error.is_unsure) {
                return Err(error);
            }
            let message = posting.nonce.to_owned();
            let mut there = self.there.lock().unwrap();
            let known = there.iter().find(|(name, _)| *name == message);
            let is_as_sent = known.is_none_or(|(_, post)| post.text == posting.post.text);
            if known.is_none() {
                self.posted.send(posting.post.clone()).unwrap();
                there.push((message.clone(), posting.post.clone()));
            }
            trouble.map_or(Ok(Stands { message, is_as_sent }), Err)
        })
    }

    fn edit<'a>(&'a self, _: &'a str, message: &'a str, post: &'a Post) -> Doing<'a, Changed> {
        Box::pin(async move {
            if !post.files.is_empty() && self.has_no_files.load(Relaxed) {
                return Err(refused());
            }
            self.change(message, |there, at| there[at].1 = post.clone())
        })
    }

    fn delete<'a>(&'a self, _: &'a str, message: &'a str) -> Doing<'a, Changed> {
        Box::pin(async move { self.change(message, |there, at| drop(there.remove(at))) })
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

/// What comes of a change.
type Changing = Result<Changed, SendError>;

fn refused() -> SendError {
    SendError::given_up("no")
}

/// What comes of a message that may have arrived.
pub(crate) fn cut() -> SendError {
    SendError { is_unsure: true, ..SendError::soon("the connection was lost") }
}

/// What a chat takes in which everything can be changed.
pub(crate) fn by_changes() -> Limits {
    let apart = Some(Duration::from_millis(1));
    Limits { edits: apart, known_again: Some(Duration::from_secs(600)), ..by_numbers() }
}
