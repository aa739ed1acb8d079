//! Brings a chat to what the draft of a turn says, as often as the chat allows.

use std::{sync::Arc, time::Duration};

use tokio::time::{self, Instant};

use super::{End, Stage, lock};
use crate::{
    channel::{
        Next, SendError,
        chat::{
            Chat,
            draft::View,
            poster::{Poster, Trouble, clock},
        },
    },
    store::{Store, StoreError, outbox, posts::Subject, turns},
};

/// The wait after the store or the chat failed.
const PAUSE: Duration = Duration::from_secs(2);
/// The wait before the first sign of typing: whoever asked was given one when his
/// message was taken, and an answer that comes at once needs none.
const FIRST_TYPING: Duration = Duration::from_secs(1);
/// The wait for room in the chat.
const CROWDED: Duration = Duration::from_millis(500);
/// How often it is looked whether what was said before has arrived.
const BEHIND: Duration = Duration::from_millis(100);
/// How long something that is asked waits for that.
const ASKED_BEHIND: Duration = Duration::from_secs(3);
/// How often it is looked whether what is asked has arrived.
const ASKED_AGAIN: Duration = Duration::from_secs(10);
/// How often it is looked whether a silent turn still runs.
const LOOK: Duration = Duration::from_secs(300);

/// What brings a chat to the draft of a stage.
pub(super) struct Show {
    pub(super) chat: Arc<dyn Chat>,
    pub(super) store: Store,
    pub(super) stage: Arc<Stage>,
    /// What shows an earlier try of the same answer, if it still does.
    pub(super) earlier: Option<Arc<Stage>>,
    pub(super) answers: Option<String>,
    /// How often typing is shown, if not as the chat would have it.
    pub(super) typing_every: Option<Duration>,
}

/// Says that a stage is over when it is dropped.
struct Over<'a>(&'a Stage);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over.send_replace(true);
    }
}

impl Show {
    pub(super) async fn run(self, subject: Subject) {
        let stage = Arc::clone(&self.stage);
        // Said whatever becomes of it: somebody may wait for that.
        let _over = Over(&stage);
        if let Some(earlier) = &self.earlier {
            earlier.end().await;
        }
        self.show(subject).await;
    }

    /// Shows until the turn is over or the stage is to end. What is under way then is
    /// finished: half of it would be a message that nobody knows.
    ///
    /// What is done is boxed: thousands of these wait at a time, and few of them do
    /// anything.
    async fn show(&self, subject: Subject) {
        let (channel, place) = (subject.channel.clone(), subject.place.clone());
        let Some(mut poster) = Box::pin(self.open(subject)).await else { return };
        let usual = self.chat.limits().typing;
        let typing_every = usual.map(|usual| self.typing_every.unwrap_or(usual));
        let mut typing = typing_every.map(|_| Instant::now() + FIRST_TYPING);
        // What could not be changed later would stand in the way of another try.
        let is_left = self.chat.limits().edits.is_some();
        let mut scope = Scope::All;
        let (mut again, mut ask_again) = (None, None);
        let mut behind_until = None;
        let mut look_at = Instant::now() + LOOK;
        loop {
            let due = [again, ask_again, typing].into_iter().flatten().fold(look_at, Instant::min);
            tokio::select! {
                () = self.stage.stop.cancelled() => {
                    let has_failed = lock(&self.stage.live).end == Some(End::Failed);
                    if has_failed && is_left {
                        let mut view = lock(&self.stage.live).draft.view();
                        view.is_final = true;
                        // Whoever ended this goes on all the same.
                        Box::pin(poster.finish(&view)).await.ok();
                    }
                    return;
                }
                // What is held back waits for its time, whatever else comes.
                () = self.stage.news.notified(), if again.is_none() => {}
                () = time::sleep_until(due) => {}
            }
            let now = Instant::now();
            if let Some(every) = typing_every.filter(|_| typing.is_some_and(|at| at <= now)) {
                let wait = if self.type_there(&place).await { every } else { CROWDED };
                typing = Some(now + wait);
            }
            if self.stage.stop.is_cancelled() {
                continue;
            }
            if look_at <= now {
                look_at = now + LOOK;
                if !Box::pin(self.still_runs()).await {
                    return;
                }
            }
            let (mut view, end) = {
                let live = lock(&self.stage.live);
                (live.draft.view(), live.end)
            };
            if end.is_none() && can_wait(&view) && !self.chat.has_room() {
                again = Some(now + CROWDED);
                continue;
            }
            // An answer from before stands above this one. Whoever is asked something
            // has only so long to answer it.
            let is_first = poster.posted().is_empty() && !view.posts.is_empty();
            let most = *behind_until.get_or_insert(now + ASKED_BEHIND);
            if is_first
                && (can_wait(&view) || now < most)
                && Box::pin(self.is_behind(&channel, &place)).await
            {
                again = Some(now + BEHIND);
                continue;
            }
            let is_asking = is_asking(&view);
            if is_asking && self.chat.limits().known_again.is_none() {
                // If that is not known, it is looked for the next time.
                Box::pin(poster.look_for_lost()).await.ok();
            }
            let shown = match (end, scope) {
                (None, Scope::All) => Box::pin(poster.show(&view, clock())).await,
                (None, Scope::Asked) => {
                    Box::pin(poster.show_asked(&view, clock())).await.map(|()| None)
                }
                // The answer comes in its place.
                (Some(End::Answered), _) => return,
                (Some(End::Failed), _) if !is_left => return,
                (Some(End::Failed), _) => {
                    view.is_final = true;
                    Box::pin(poster.finish(&view)).await.map(|()| None)
                }
            };
            ask_again = is_asking.then_some(now + ASKED_AGAIN);
            again = match shown {
                Ok(None) => None,
                Ok(Some(at)) => Some(now + Duration::from_millis(at.saturating_sub(clock()))),
                // A request has nothing else to stand for it, and has to be seen.
                Err(Trouble::Chat(SendError { next: Next::GiveUp, reason, .. })) => {
                    let is_new = scope == Scope::All;
                    let turn = self.stage.turn;
                    match is_new {
                        true => {
                            tracing::info!(%turn, reason, "an answer is not shown while it comes")
                        }
                        false => tracing::warn!(%turn, reason, "nobody sees what an agent asks"),
                    }
                    scope = Scope::Asked;
                    (is_asking && is_new).then_some(now)
                }
                Err(Trouble::Chat(SendError { next: Next::Retry { after }, .. })) => {
                    Some(now + after.unwrap_or(PAUSE).max(PAUSE))
                }
                Err(Trouble::Store(_)) => Some(now + PAUSE),
            };
            if end.is_some() {
                return;
            }
        }
    }

    /// Finds out what is there of the answer, as soon as the store says so; nothing if
    /// the stage is to end before.
    async fn open(&self, subject: Subject) -> Option<Poster> {
        loop {
            let (chat, store) = (Arc::clone(&self.chat), self.store.clone());
            match Poster::open(chat, store, subject.clone(), self.answers.clone()).await {
                Ok(poster) => return Some(poster),
                Err(StoreError::Closed) => return None,
                Err(_) => self.stage.stop.run_until_cancelled(time::sleep(PAUSE)).await?,
            }
        }
    }

    /// Gives a sign of typing, if there is room for it; returns whether there was. One
    /// that the chat does not take is not given again before its time. Whoever ends the
    /// show does not wait for it.
    async fn type_there(&self, place: &str) -> bool {
        if !self.chat.has_room() {
            return false;
        }
        let typing = self.chat.typing(place, self.answers.as_deref());
        let typed = self.stage.stop.run_until_cancelled(typing);
        typed.await.is_some()
    }

    /// Whether something that was said before is still on its way there.
    async fn is_behind(&self, channel: &str, place: &str) -> bool {
        let args = (channel.to_owned(), place.to_owned());
        let open = self
            .store
            .read(args, |conn, (channel, place)| Box::pin(outbox::has_open(conn, channel, place)));
        open.await.unwrap_or(true)
    }

    /// Whether somebody is still at work on the turn, as far as one can tell.
    async fn still_runs(&self) -> bool {
        let turn = self.stage.turn;
        let found = self.store.read(turn, |conn, turn| Box::pin(turns::is_running(conn, *turn)));
        found.await.unwrap_or(true)
    }
}

/// How much of an answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    All,
    /// What is asked: the chat did not take something else.
    Asked,
}

/// Whether an answer is waited for.
fn is_asking(view: &View) -> bool {
    view.posts.iter().any(|(slot, post)| slot.is_asked() && !post.buttons.is_empty())
}

/// Whether nobody is kept from anything as long as a view is not shown: the answer
/// will be. A request for permission has nothing else to stand for it.
fn can_wait(view: &View) -> bool {
    !view.posts.is_empty() && view.posts.iter().all(|(slot, _)| !slot.is_asked())
}
