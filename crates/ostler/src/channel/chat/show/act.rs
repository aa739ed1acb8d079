//! Brings a chat to what the draft of a turn says, as often as the chat allows.

use std::{future, sync::Arc, time::Duration};

use tokio::time::{self, Instant};

use super::{End, Stage, due::Due, lock};
use crate::{
    channel::{
        Next, SendError,
        chat::{
            Chat, Doing,
            draft::Glance,
            poster::{Poster, Trouble},
        },
    },
    store::{Store, StoreError, outbox, posts::Subject, turns},
};

/// The wait after the store or the chat failed.
const PAUSE: Duration = Duration::from_secs(2);
/// The wait for room in the chat.
const CROWDED: Duration = Duration::from_millis(500);

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
        let place = subject.place.clone();
        let Some(mut poster) = Box::pin(self.open(subject.clone())).await else { return };
        let usual = self.chat.limits().typing;
        let typing_every = usual.map(|usual| self.typing_every.unwrap_or(usual));
        let mut due = Due::new(Instant::now(), typing_every.is_some());
        let mut shown = Shown::default();
        let mut typing: Option<Doing<'_, ()>> = None;
        loop {
            tokio::select! {
                () = self.stage.stop.cancelled() => {
                    Box::pin(self.leave(&mut poster)).await;
                    return;
                }
                () = self.stage.news.notified(), if due.is_free() => {}
                // It hurries nobody: what is shown does not wait for it.
                () = under_way(&mut typing) => {
                    typing = None;
                    continue;
                }
                () = time::sleep_until(due.next()) => {}
            }
            if self.stage.stop.is_cancelled() {
                continue;
            }
            let now = Instant::now();
            if let Some(every) = typing_every.filter(|_| due.types(now)) {
                let has_room = self.chat.has_room();
                due.type_at(now + if has_room { every } else { CROWDED });
                if has_room && typing.is_none() {
                    typing = Some(self.chat.typing(&place, self.answers.as_deref()));
                }
            }
            if due.looks(now) && !Box::pin(self.still_runs()).await {
                return;
            }
            let (glance, end) = {
                let live = lock(&self.stage.live);
                (live.draft.glance(), live.end)
            };
            match end {
                // The answer comes in its place.
                Some(End::Answered) => return,
                Some(End::Failed) => {
                    Box::pin(self.leave(&mut poster)).await;
                    return;
                }
                None => {}
            }
            if due.release(now) && self.is_to_do(&shown, &glance, &due, now) {
                Box::pin(self.bring(&subject, &mut poster, &mut due, &mut shown, glance)).await;
            }
        }
    }

    /// Whether there is something to do in the chat. Where nothing can be changed, that
    /// is what is asked and nothing else.
    fn is_to_do(&self, shown: &Shown, glance: &Glance, due: &Due, now: Instant) -> bool {
        let is_new = shown.version != Some(self.version(glance));
        let can_show = self.can_change() || glance.has_asked;
        can_show && glance.has_begun && (is_new || due.asks(now))
    }

    /// Returns what changes with what can be shown.
    fn version(&self, glance: &Glance) -> u64 {
        if self.can_change() { glance.changes } else { glance.asked }
    }

    fn can_change(&self) -> bool {
        self.chat.limits().edits.is_some()
    }

    /// Brings the chat to the draft, if nothing is to be waited for.
    async fn bring(
        &self,
        subject: &Subject,
        poster: &mut Poster,
        due: &mut Due,
        shown: &mut Shown,
        glance: Glance,
    ) {
        let now = Instant::now();
        if !glance.has_asked && !self.chat.has_room() {
            return due.hold(now + CROWDED);
        }
        // An answer from before stands above this one. Whoever is asked something
        // has only so long to answer it.
        if poster.posted().is_empty()
            && due.waits_behind(now, !glance.has_asked)
            && self.is_behind(&subject.channel, &subject.place).await
        {
            return due.hold_behind(now);
        }
        // What is known again by its name is told to have arrived or not.
        if glance.is_asking && self.chat.limits().known_again.is_none() {
            // If that is not known, it is looked for the next time.
            poster.look_for_lost().await.ok();
            due.ask_again(now, shown.asked != Some(glance.asked));
        } else {
            due.ask_no_more();
        }
        shown.asked = Some(glance.asked);
        let view = lock(&self.stage.live).draft.view();
        let done = match shown.scope {
            Scope::All => poster.show(&view).await,
            Scope::Asked => poster.show_asked(&view).await.map(|()| None),
        };
        shown.version = None;
        let now = Instant::now();
        match done {
            Ok(None) => {
                shown.version = Some(self.version(&glance));
                if let Some(apart) = self.chat.limits().edits {
                    due.hold(now + apart);
                }
            }
            Ok(Some(at)) => {
                due.hold(now + Duration::from_millis(at.saturating_sub(poster.now())));
            }
            Err(Trouble::Chat(SendError { next: Next::Wait | Next::GiveUp, reason, .. })) => {
                self.refused(shown, &glance, &reason);
            }
            Err(Trouble::Chat(SendError { next: Next::Retry { after }, .. })) => {
                due.hold(now + after.unwrap_or(PAUSE).max(PAUSE));
            }
            Err(Trouble::Store(_)) => due.hold(now + PAUSE),
        }
    }

    /// Sees to what the chat does not take. A request has nothing else to stand for it,
    /// and has to be seen: without its file first, and then without everything else.
    fn refused(&self, shown: &mut Shown, glance: &Glance, reason: &str) {
        let turn = self.stage.turn;
        let had_files = lock(&self.stage.live).draft.leave_files_out();
        match shown.scope {
            _ if had_files => {
                tracing::warn!(%turn, reason, "what an agent asks is shown without a file");
            }
            Scope::All => {
                tracing::info!(%turn, reason, "an answer is not shown while it comes");
                shown.scope = Scope::Asked;
            }
            Scope::Asked => {
                // It is tried again while it is open.
                if shown.refused.replace(glance.asked) != Some(glance.asked) {
                    tracing::warn!(%turn, reason, "nobody sees what an agent asks");
                }
                shown.version = Some(self.version(glance));
            }
        }
        if had_files || glance.is_asking {
            self.stage.news.notify_one();
        } else {
            shown.version = Some(self.version(glance));
        }
    }

    /// Lets what there is of an answer that failed stand, where it can be changed: else
    /// it would stand in the way of another try.
    async fn leave(&self, poster: &mut Poster) {
        let view = {
            let live = lock(&self.stage.live);
            (live.end == Some(End::Failed)).then(|| live.draft.view())
        };
        if let Some(mut view) = view.filter(|_| self.can_change()) {
            view.is_final = true;
            // Whoever ended this goes on all the same.
            poster.finish(&view).await.ok();
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

/// Waits for a sign of typing that is on its way. One that the chat does not take is
/// not given again before its time.
async fn under_way(typing: &mut Option<Doing<'_, ()>>) {
    match typing {
        Some(typing) => drop(typing.await),
        None => future::pending().await,
    }
}

/// What a chat shows.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    scope: Scope,
    /// Of which draft all is shown, if it is.
    version: Option<u64>,
    /// Up to which request was asked.
    asked: Option<u64>,
    /// Up to which the operator was told that the chat takes none.
    refused: Option<u64>,
}

/// How much of an answer is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Scope {
    #[default]
    All,
    /// What is asked: the chat did not take something else.
    Asked,
}
