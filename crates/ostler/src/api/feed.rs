//! Events for those who listen: one task reads the log once for all of them, and
//! keeps the newest in memory. It reads only while somebody listens.
//!
//! A listener is a position in the log. What comes next is taken from memory if it
//! is there, else from the store; so one who is slow loses nothing and holds nothing
//! up, and costs nothing but his position. What listeners are sent is in `events`.

mod ring;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use axum::body::Bytes;
use tokio::{
    sync::{Semaphore, watch},
    time::{self, Instant, Sleep},
};

use self::ring::{CHUNK, Cursor, Entry, Look, Ring};
use super::events::render;
use crate::{
    background::Background,
    clock::Millis,
    id::{KeyId, ProjectId},
    store::{
        Store, StoreError, Topic,
        events::{self, AtMost, Portion, Selection},
        keys, projects,
    },
};

/// What the task reads at once.
const READ: AtMost = AtMost { events: 500, bytes: 1024 * 1024 };
/// What somebody who is behind is read at once.
const PAGE: AtMost = AtMost { events: 64, bytes: CHUNK };
/// How many of those who are behind are read for at once. The others wait, so that
/// the rest of the gateway need not.
const READERS: usize = 2;
/// How long to wait after the store could not be read.
const PAUSE: Duration = Duration::from_secs(1);
/// How long it counts that a key and a project are good, among those who look at
/// the same time.
pub(super) const FRESH: Duration = Duration::from_millis(250);

/// Where listeners come to. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    store: Store,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    /// There for as long as somebody listens.
    live: Weak<Live>,
}

/// What listeners share.
#[derive(Debug)]
struct Live {
    store: Store,
    tide: watch::Sender<Tide>,
    readers: Semaphore,
    passes: Passes,
    /// Ends with the last listener.
    _task: Background,
}

/// What listeners wait for.
#[derive(Debug)]
struct Tide {
    ring: Ring,
    is_closing: bool,
}

impl Feed {
    pub(super) fn new(store: Store) -> Self {
        Self { store, state: Arc::default() }
    }

    /// Begins to listen from a position on. `newest` is the number of an event that
    /// is stored. Returns nothing once the feed is closed.
    pub(super) fn listen(
        &self,
        selection: Selection,
        position: i64,
        newest: i64,
    ) -> Option<Listener> {
        let mut state = self.state();
        if state.is_closed {
            return None;
        }
        let live = state.live.upgrade().unwrap_or_else(|| {
            let live = Arc::new(Live::start(self.store.clone(), newest));
            state.live = Arc::downgrade(&live);
            live
        });
        let tide = live.tide.subscribe();
        Some(Listener { cursor: Cursor { selection, position }, tide, live })
    }

    /// Ends everybody's listening: they are given what is in memory. Nobody can
    /// begin to listen any more.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        if let Some(live) = state.live.upgrade() {
            live.tide.send_modify(|tide| tide.is_closing = true);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    fn start(store: Store, newest: i64) -> Self {
        let tide = watch::Sender::new(Tide { ring: Ring::new(newest), is_closing: false });
        let (log, told) = (store.clone(), tide.clone());
        let task = Background::start(|_| read(log, told));
        let (readers, passes) = (Semaphore::new(READERS), Passes::default());
        Self { store, tide, readers, passes, _task: task }
    }
}

/// Reads the log for as long as it is let.
async fn read(store: Store, tide: watch::Sender<Tide>) {
    let mut wakeups = store.wakeups(Topic::Events);
    let mut is_away = false;
    loop {
        let after = tide.borrow().ring.newest();
        let portion = store.read(after, |conn, after| {
            Box::pin(events::read_portion(conn, &Selection::Everything, *after, READ))
        });
        let portion = match portion.await {
            Ok(portion) => portion,
            Err(error) => {
                if !is_away {
                    tracing::warn!(%error, "the events for streams could not be read");
                }
                is_away = true;
                time::sleep(PAUSE).await;
                continue;
            }
        };
        is_away = false;
        let Portion { events, is_all, removed } = portion;
        let last = events.last().map_or(after, |stored| stored.number);
        let wanted = events.iter().filter(|stored| stored.event.belongs.is_some());
        let entries = wanted.filter_map(|stored| Entry::new(stored, render::frame(stored)));
        let entries: Vec<_> = entries.collect();
        tide.send_if_modified(|tide| tide.ring.add(last, removed, entries));
        if is_all {
            wakeups.next().await;
        }
    }
}

/// Somebody who listens.
#[derive(Debug)]
pub(super) struct Listener {
    cursor: Cursor,
    tide: watch::Receiver<Tide>,
    live: Arc<Live>,
}

/// What somebody who listens is told.
#[derive(Debug)]
pub(super) enum Heard {
    /// Events, in order, joined.
    Events(Bytes),
    /// Retention removed everything up to this number before it was read.
    Missed(i64, Bytes),
    /// Nothing so far.
    Nothing,
    /// Nothing more comes: the feed is closed.
    Closed,
}

impl Listener {
    /// Returns the number up to which everything was told.
    pub(super) fn position(&self) -> i64 {
        self.cursor.position
    }

    /// Returns what comes next, and waits for it for some time if need be.
    /// Cancel-safe: what was not returned comes again.
    pub(super) async fn next(&mut self, mut until: Pin<&mut Sleep>) -> Heard {
        loop {
            let (look, is_closing, newest) = {
                let tide = self.tide.borrow_and_update();
                (self.cursor.look(&tide.ring), tide.is_closing, tide.ring.newest())
            };
            match look {
                Look::Frames(frames) => return Heard::Events(join(frames)),
                Look::Nothing | Look::Older if is_closing => return Heard::Closed,
                // Both are cancel-safe. The sender lives as long as `live`.
                Look::Nothing => tokio::select! {
                    Ok(()) = self.tide.changed() => {}
                    // Nobody was woken for what belongs to no project, and yet it counts
                    // for where he stands.
                    () = until.as_mut() => {
                        let look = self.cursor.look(&self.tide.borrow().ring);
                        return match look {
                            Look::Frames(frames) => Heard::Events(join(frames)),
                            Look::Nothing | Look::Older => Heard::Nothing,
                        };
                    }
                },
                // Its own allocation, for it is far longer than what those hold who wait.
                Look::Older => match Box::pin(self.catch_up(newest)).await {
                    Ok(Some(heard)) => return heard,
                    Ok(None) => {}
                    Err(error) => {
                        tracing::debug!(%error, "events for a stream could not be read");
                        time::sleep(PAUSE).await;
                    }
                },
            }
        }
    }

    /// Reads a page of the store, after everything up to `newest` was stored.
    /// Returns nothing if there is nothing on it.
    async fn catch_up(&mut self, newest: i64) -> Result<Option<Heard>, StoreError> {
        // It is never closed.
        let turn = self.live.readers.acquire().await.ok();
        let portion = self.live.store.read(&self.cursor, |conn, cursor| {
            Box::pin(events::read_portion(conn, &cursor.selection, cursor.position, PAGE))
        });
        let mut portion = portion.await?;
        drop(turn);
        let missed = self.cursor.turn(&mut portion, newest);
        let frames = join(portion.events.iter().map(render::frame).collect());
        Ok(match missed {
            Some(removed) => Some(Heard::Missed(removed, frames)),
            None if frames.is_empty() => None,
            None => Some(Heard::Events(frames)),
        })
    }

    /// Returns whether somebody may still listen: his key stands and the project is
    /// there. A store that is away says nothing against it.
    pub(super) async fn may_go_on(&self, key: KeyId, project: ProjectId) -> bool {
        Box::pin(self.live.passes.is_good(&self.live.store, key, project)).await
    }
}

/// Makes one piece of several. A single one, which is the usual case, stays shared
/// with everybody who is sent it.
fn join(mut frames: Vec<Bytes>) -> Bytes {
    match frames.len() {
        0 => Bytes::new(),
        1 => frames.swap_remove(0),
        _ => frames.concat().into(),
    }
}

/// Which keys may listen to which projects, as was seen just now: many listeners
/// have the same key, and look at about the same time.
#[derive(Debug, Default)]
struct Passes {
    seen: Mutex<HashMap<(KeyId, ProjectId), (Instant, bool)>>,
}

impl Passes {
    async fn is_good(&self, store: &Store, key: KeyId, project: ProjectId) -> bool {
        let now = Instant::now();
        if let Some((at, is_good)) = self.seen().get(&(key, project)).copied()
            && now.duration_since(at) < FRESH
        {
            return is_good;
        }
        let args = (key, project, Millis::now());
        let read = store.read(args, |conn, (key, project, now)| {
            Box::pin(async move {
                let stands = keys::stands(conn, *key, *now).await?;
                Ok::<_, StoreError>(stands && projects::find(conn, *project).await?.is_some())
            })
        });
        let Ok(is_good) = read.await else { return true };
        let mut seen = self.seen();
        seen.retain(|_, (at, _)| now.saturating_duration_since(*at) < FRESH);
        seen.insert((key, project), (now, is_good));
        is_good
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<(KeyId, ProjectId), (Instant, bool)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
