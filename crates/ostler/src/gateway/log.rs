//! The event log's writer: events of all turns, many in one write.
//!
//! Nothing is dropped. While the store is out of reach the events wait here,
//! and when there are too many the turns wait, too.

use std::time::Duration;

use tokio::{
    sync::{mpsc, oneshot},
    time::{self, Instant},
};
use tokio_util::task::TaskTracker;

use super::{
    commands,
    persistence::{Persistence, Then},
};
use crate::{
    id::TurnId,
    store::{
        Store, StoreError,
        events::{self, NewEvent},
    },
};

/// How many events may wait to be written.
const AHEAD: usize = 4096;
/// How many are written at once.
const BATCH: usize = 500;
/// For how long more are waited for. Nobody sees so little of a delay, and a turn
/// that is short is stored in one go, with its end.
const MOMENT: Duration = Duration::from_millis(2);

/// Takes events to be stored. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    entries: mpsc::Sender<Entry>,
}

#[derive(Debug)]
enum Entry {
    Event(NewEvent),
    /// Asks for what is not stored yet of a turn. Everything else of it is.
    Take(TurnId, oneshot::Sender<Vec<NewEvent>>),
    /// Nothing comes after it.
    Close,
}

/// The log does not take anything any more.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the event log is closed")]
pub(crate) struct Closed;

impl Log {
    /// Starts the writer.
    pub(crate) fn start(store: Store, tasks: &TaskTracker) -> Self {
        let (entries, taken) = mpsc::channel(AHEAD);
        tasks.spawn(write(store, taken));
        Self { entries }
    }

    /// Takes an event, which will be stored after those that were taken before.
    pub(crate) async fn append(&self, event: NewEvent) -> Result<(), Closed> {
        self.entries.send(Entry::Event(event)).await.map_err(|_| Closed)
    }

    /// Takes several events, in their order.
    pub(crate) async fn append_all(&self, events: Vec<NewEvent>) -> Result<(), Closed> {
        for event in events {
            self.append(event).await?;
        }
        Ok(())
    }

    /// Gives back what was taken of a turn and is not stored yet, so that it can
    /// be stored together with its end.
    pub(crate) async fn take_back(&self, turn: TurnId) -> Result<Vec<NewEvent>, Closed> {
        let (events, taken) = oneshot::channel();
        self.entries.send(Entry::Take(turn, events)).await.map_err(|_| Closed)?;
        taken.await.map_err(|_| Closed)
    }

    /// Takes nothing more; the writer ends when all that was taken is stored.
    pub(crate) async fn close(&self) {
        // It may be closed already.
        self.entries.send(Entry::Close).await.ok();
    }
}

async fn write(store: Store, mut taken: mpsc::Receiver<Entry>) {
    let mut gathered = Gathered::default();
    while !gathered.is_closed {
        gathered.gather(&mut taken).await;
        if !keep_trying(&store, std::mem::take(&mut gathered.events)).await {
            return;
        }
    }
}

/// What is written next.
#[derive(Debug, Default)]
struct Gathered {
    events: Vec<NewEvent>,
    is_closed: bool,
}

impl Gathered {
    /// Waits for events, and then a moment for more.
    async fn gather(&mut self, entries: &mut mpsc::Receiver<Entry>) {
        let mut until = None;
        while !self.is_closed && self.events.len() < BATCH {
            let entry = match until {
                None => entries.recv().await,
                Some(until) => match time::timeout_at(until, entries.recv()).await {
                    Ok(entry) => entry,
                    Err(_) => return,
                },
            };
            self.add(entry.unwrap_or(Entry::Close));
            until = if self.events.is_empty() {
                None
            } else {
                until.or_else(|| Some(Instant::now() + MOMENT))
            };
        }
    }

    fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Event(event) => self.events.push(event),
            Entry::Take(turn, taker) => {
                let taken = self.events.extract_if(.., |event| event.turn == Some(turn));
                // Nobody waits any more if the gateway is killed half-way.
                if let Err(unwanted) = taker.send(taken.collect()) {
                    self.events.extend(unwanted);
                }
            }
            Entry::Close => self.is_closed = true,
        }
    }
}

/// Writes events, however long it takes; returns whether they are stored, which
/// they are unless the store was closed. One that the store does not take is
/// left out, and told, so that it does not hold up all others.
async fn keep_trying(store: &Store, events: Vec<NewEvent>) -> bool {
    let mut persistence = Persistence::new("a part of the event log");
    loop {
        let error = match append(store, events.clone()).await {
            Ok(()) => return true,
            Err(StoreError::Closed) => return false,
            Err(error) => error,
        };
        // A try that was given up on may have been made all the same, and then
        // the next is refused: an event is in the log once.
        if is_stored(store, &events).await {
            return true;
        }
        if persistence.after(&error).await == Then::GiveUp {
            break;
        }
    }
    for event in events {
        if let Err(error) = append(store, vec![event.clone()]).await {
            let turn = event.turn.map(|turn| turn.to_string());
            tracing::error!(%error, turn, seq = event.seq, "an event is lost");
        }
    }
    true
}

async fn append(store: &Store, events: Vec<NewEvent>) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    store.write(events, |conn, events| Box::pin(commands::append(conn, events))).await
}

/// Whether a write happened of which that is not known. It is all there or not
/// at all, so that one event tells.
async fn is_stored(store: &Store, events: &[NewEvent]) -> bool {
    let one = events.iter().filter(|event| event.seq > 0);
    let one = one.filter_map(|event| event.turn.map(|turn| (turn, event.seq))).next();
    let Some(one): Option<(TurnId, i64)> = one else { return false };
    let look = store.read(one, |conn, (turn, seq)| Box::pin(events::is_stored(conn, *turn, *seq)));
    look.await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::Millis, store::testing::on_both};

    fn event(turn: TurnId, seq: i64) -> NewEvent {
        NewEvent {
            conversation: None,
            turn: Some(turn),
            seq,
            at: Millis(1),
            kind: "output".to_owned(),
            body: "{}".to_owned(),
            belongs: None,
        }
    }

    on_both! {
        async fn of_a_turn_that_ends_everything_is_stored_or_given_back(store: Store) {
            let tasks = TaskTracker::new();
            let log = Log::start(store.clone(), &tasks);
            let (ends, goes_on) = (TurnId::new(), TurnId::new());
            for seq in 1..=20 {
                log.append(event(goes_on, seq)).await.unwrap();
                log.append(event(ends, seq)).await.unwrap();
            }
            let given_back = log.take_back(ends).await.unwrap();
            log.append(event(goes_on, 21)).await.unwrap();
            log.close().await;
            tasks.close();
            tasks.wait().await;
            let stored = store.must((), |conn, ()| Box::pin(events::read(conn, 0, 100))).await;
            let stored = stored.into_iter().map(|stored| stored.event);
            let (mut ended, gone_on): (Vec<_>, Vec<_>) =
                stored.partition(|event| event.turn == Some(ends));
            ended.extend(given_back);
            let numbers = |events: &[NewEvent]| events.iter().map(|event| event.seq).collect();
            let (ended, gone_on): (Vec<_>, Vec<_>) = (numbers(&ended), numbers(&gone_on));
            assert_eq!((ended, gone_on), ((1..=20).collect(), (1..=21).collect()));
            assert!(log.append(event(ends, 21)).await.is_err());
            assert!(log.take_back(ends).await.is_err());
        }
    }
}
