//! Accepting work.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use thiserror::Error;

use super::LaneId;
use crate::{
    clock::Millis,
    id::JobId,
    store::{Conn, StoreError, Topic, WriteError, jobs},
};

/// How many failures make a job dead unless it says otherwise.
const MAX_FAILURES: u32 = 10;

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// In the whole store. Gateways on PostgreSQL do not see at once what
    /// others accept, so it may be exceeded by a few.
    pub(crate) waiting: u32,
    /// In one lane.
    pub(crate) waiting_in_lane: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { waiting: 100, waiting_in_lane: 100 }
    }
}

/// The limits, and what is known of the room that they leave. Counting takes
/// the longer the more waits, so that it is done only now and then while there
/// is plenty of room, and always when there is little. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Capacity {
    limits: Limits,
    /// How many may be accepted before those that wait are counted again.
    room: Arc<AtomicU32>,
}

impl Capacity {
    /// By how much of the room others may be thought to take the rest: so many
    /// gateways together do not exceed the limit between two counts.
    const SHARES: u32 = 8;

    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, room: Arc::default() }
    }

    /// Refuses a job if as many wait in the store as may.
    async fn admit(&self, conn: &mut Conn) -> Result<(), EnqueueError> {
        let take = |room: u32| room.checked_sub(1);
        if self.room.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok() {
            return Ok(());
        }
        let limit = self.limits.waiting;
        // One more than the limit is counted, so that a limit that was lowered is told as it is.
        let waiting = jobs::count_not_begun(conn, limit.saturating_add(1)).await?;
        let free = u64::from(limit).saturating_sub(waiting);
        if free == 0 {
            return Err(EnqueueError::QueueFull { waiting, limit });
        }
        let share = u32::try_from(free).unwrap_or(u32::MAX) / Self::SHARES;
        self.room.store(share, Ordering::Release);
        Ok(())
    }
}

/// What makes a message the same message, however often it is delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageKey {
    pub(crate) channel: String,
    pub(crate) message: String,
}

impl MessageKey {
    /// Makes the key of a message that came from a place.
    pub(crate) fn new(channel: &str, place: &str, message: &str) -> Self {
        // Neither has such a character in it.
        Self { channel: channel.to_owned(), message: format!("{place}\u{1f}{message}") }
    }
}

/// Work that is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewJob {
    /// What sort of work it is.
    pub(crate) kind: String,
    /// The work, as JSON.
    pub(crate) payload: String,
    /// Higher goes first, among lanes.
    pub(crate) priority: i64,
    /// How many failures make it dead.
    pub(crate) max_failures: u32,
    /// When it may begin at the earliest; nothing for at once.
    pub(crate) not_before: Option<Millis>,
    /// The message that it is of, if that may come twice.
    pub(crate) message: Option<MessageKey>,
}

impl NewJob {
    /// Makes a job with the defaults.
    pub(crate) fn new(kind: &str, payload: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            payload: payload.to_owned(),
            priority: 0,
            max_failures: MAX_FAILURES,
            not_before: None,
            message: None,
        }
    }
}

/// What became of accepted work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enqueued {
    New(JobId),
    /// The message had become this job before.
    Again(JobId),
}

/// Why work was not accepted. Nothing was stored.
#[derive(Clone, Debug, Error)]
pub(crate) enum EnqueueError {
    /// Too much waits already. The sender is to be told.
    #[error("the queue is full: {waiting} jobs wait, and the limit is {limit}")]
    QueueFull {
        /// How many wait: in the store, or in the lane.
        waiting: u64,
        /// How many may.
        limit: u32,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl WriteError for EnqueueError {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            Self::QueueFull { .. } => None,
        }
    }
}

/// Accepts work within a write, together with what else belongs to it. Doing
/// it twice with the same id is the same as once.
pub(crate) async fn enqueue(
    conn: &mut Conn,
    id: JobId,
    lane: &LaneId,
    job: &NewJob,
    capacity: &Capacity,
    now: Millis,
) -> Result<Enqueued, EnqueueError> {
    if let Some(MessageKey { channel, message }) = &job.message {
        match jobs::note_message(conn, channel, message, id, now).await? {
            None => {}
            Some(same) if same == id => return Ok(Enqueued::New(id)),
            Some(earlier) => return Ok(Enqueued::Again(earlier)),
        }
    }
    let placed = place(conn, id, lane, job, capacity, now).await;
    if let Err(EnqueueError::QueueFull { .. }) = placed
        && jobs::find(conn, id).await?.is_some()
    {
        // It was an earlier try that took the last place.
        return Ok(Enqueued::New(id));
    }
    placed.map(|()| Enqueued::New(id))
}

/// Stores a job at the end of its lane, if there is room.
async fn place(
    conn: &mut Conn,
    id: JobId,
    lane: &LaneId,
    job: &NewJob,
    capacity: &Capacity,
    now: Millis,
) -> Result<(), EnqueueError> {
    capacity.admit(conn).await?;
    let limit = capacity.limits.waiting_in_lane;
    let insert = jobs::Insert {
        id,
        lane,
        seq: jobs::take_place(conn, lane).await?,
        kind: &job.kind,
        payload: &job.payload,
        priority: job.priority,
        max_failures: i64::from(job.max_failures.max(1)),
        not_before: job.not_before.unwrap_or(Millis(0)),
        now,
        limit,
    };
    match jobs::insert(conn, &insert).await? {
        // One that waits may be told to the turn that it waits for.
        Some(_) => conn.wake(Topic::Jobs),
        None => {
            let waiting = jobs::count_in_lane(conn, lane, limit.saturating_add(1)).await?;
            return Err(EnqueueError::QueueFull { waiting, limit });
        }
    }
    Ok(())
}
