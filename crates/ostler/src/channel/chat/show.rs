//! Answers while they come: what runs for a place in a chat is shown there, by
//! messages that change. What an answer comes to is not sent from here but from
//! the outbox, by whoever asks for the end of its show first.
//!
//! One task reads the log for all of them. Each turn has a draft, which takes its
//! events as they come, and a task that brings the chat to what the draft says now:
//! a slow chat shows less often, and holds nobody up.

mod act;
mod due;
mod pump;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time,
};
use tokio_util::sync::CancellationToken;

use self::pump::Pump;
use super::{Chats, draft::Draft};
use crate::{
    background::Background,
    gateway::policy::Policy,
    id::TurnId,
    store::{Store, events::StoredEvent, posts::Subject},
};

/// How long what is under way may take: a few calls of the chat.
const UNDER_WAY: Duration = Duration::from_secs(60);
/// How long shows may take to end when the gateway stops.
const ENDING: Duration = Duration::from_secs(5);

/// All shows. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shows {
    stages: Arc<Mutex<HashMap<Subject, Arc<Stage>>>>,
    work: Arc<Mutex<Option<Background>>>,
}

/// One answer that is shown.
struct Stage {
    turn: TurnId,
    live: Mutex<Live>,
    /// There is something new in the draft.
    news: Notify,
    stop: CancellationToken,
    /// Whether its task has ended.
    over: watch::Sender<bool>,
}

/// What is known of an answer that comes.
struct Live {
    draft: Draft,
    end: Option<End>,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Answered,
    Failed,
}

impl fmt::Debug for Shows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shows")
    }
}

impl Shows {
    /// Starts to show what runs from now on.
    pub(crate) fn start(store: Store, chats: Chats, policy: watch::Receiver<Arc<Policy>>) -> Self {
        let stages: Arc<Mutex<HashMap<_, _>>> = Arc::default();
        let shared = Arc::clone(&stages);
        let work = Background::start(|stop| {
            let pump = Pump {
                store,
                chats,
                policy,
                stages: shared,
                tasks: JoinSet::new(),
                stop,
                after: None,
                turns: HashMap::new(),
                others: HashSet::new(),
                spoken_in: Vec::new(),
            };
            pump.work()
        });
        Self { stages, work: Arc::new(Mutex::new(Some(work))) }
    }

    /// Ends the show of an answer, if there is one; returns whether nothing more will
    /// be changed by it. What there is of an answer that fails stays.
    pub(crate) async fn finish(&self, subject: &Subject, is_error: bool) -> bool {
        let stage = lock(&self.stages).get(subject).cloned();
        let Some(stage) = stage else { return true };
        if is_error {
            let mut live = lock(&stage.live);
            live.draft.event("complete", &Value::Null);
            live.end = Some(End::Failed);
        }
        stage.end().await
    }

    /// Ends all of them.
    pub(crate) async fn stop(&self) {
        let work = lock(&self.work).take();
        if let Some(work) = work {
            work.stop(ENDING).await;
        }
    }
}

impl Stage {
    /// Ends it; returns whether it ended in time.
    async fn end(&self) -> bool {
        self.stop.cancel();
        let mut over = self.over.subscribe();
        let ended = over.wait_for(|over| *over);
        time::timeout(UNDER_WAY, ended).await.is_ok()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stage {
    fn take(&self, stored: &StoredEvent) {
        let body: Value = serde_json::from_str(&stored.event.body).unwrap_or_default();
        let mut live = lock(&self.live);
        live.draft.event(&stored.event.kind, &body);
        if stored.event.kind == "complete" {
            let is_error = body.get("is_error").and_then(Value::as_bool) == Some(true);
            live.end = Some(if is_error { End::Failed } else { End::Answered });
        }
        self.news.notify_one();
    }
}

#[cfg(test)]
mod tests;
