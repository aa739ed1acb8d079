//! Jobs as they are stored. The statements about them are in the files of this
//! folder, each one step. What they make together is in [`crate::queue`], which
//! also says which of them need the lane to be locked.

mod accept;
mod end;
mod lease;
mod look;
mod remove;

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

#[cfg(test)]
pub(crate) use self::lease::renew;
pub(crate) use self::{
    accept::{Insert, count_in_lane, count_not_begun, insert, note_message, noted_as, take_place},
    end::{
        cancel_lane_not_begun, end, end_not_begun, promote, put_back, request_cancel, revive,
        running_in,
    },
    lease::{Renewed, cancel_requested_of, claim, expired, next_due, renew_all, seize},
    look::{
        Unanswered, count_by_state, is_busy, list, list_in, not_over, oldest_not_begun,
        over_without_reply, ready_in, waiting_behind,
    },
    remove::{Came, Over, forget_messages, remove_before},
};
use super::{
    Conn, StoreError,
    db::{Dialect, Row, values},
};
use crate::{clock::Millis, id::JobId};

/// The name of a lane: what runs one after the other. A conversation's is its id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LaneId(String);

impl LaneId {
    pub(crate) fn new(name: impl fmt::Display) -> Self {
        Self(name.to_string())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for LaneId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum JobState {
    /// Behind another one of its lane.
    Waiting,
    /// The first of its lane; may be claimed once its time has come.
    Ready,
    /// Somebody works on it.
    Running,
    Done,
    /// It failed for good; kept with the reason.
    Dead,
    Cancelled,
}

/// All states, with their names.
pub(crate) const STATES: [(JobState, &str); 6] = [
    (JobState::Waiting, "waiting"),
    (JobState::Ready, "ready"),
    (JobState::Running, "running"),
    (JobState::Done, "done"),
    (JobState::Dead, "dead"),
    (JobState::Cancelled, "cancelled"),
];

impl JobState {
    /// Whether it is over, and well.
    pub(crate) fn is_done(self) -> bool {
        self == Self::Done
    }

    /// Whether nothing more becomes of it by itself.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Dead | Self::Cancelled)
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that is no state.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0:?} is none of waiting, ready, running, done, dead, cancelled")]
pub(crate) struct NoState(String);

impl FromStr for JobState {
    type Err = NoState;

    fn from_str(text: &str) -> Result<Self, NoState> {
        let named = STATES.iter().find(|(_, name)| *name == text);
        named.map(|(state, _)| *state).ok_or_else(|| NoState(text.to_owned()))
    }
}

impl Serialize for JobState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A job as it is stored. As JSON it is part of the contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Job {
    pub(crate) id: JobId,
    pub(crate) lane: LaneId,
    /// Its place in the lane.
    pub(crate) seq: i64,
    /// What sort of work it is.
    pub(crate) kind: String,
    /// The work, as JSON.
    #[serde(serialize_with = "as_json")]
    pub(crate) payload: String,
    /// Higher goes first, among lanes.
    pub(crate) priority: i64,
    pub(crate) state: JobState,
    /// How often it was claimed.
    pub(crate) attempt: i64,
    /// How often that ended without an end of the job.
    pub(crate) failures: i64,
    /// How many of these make it dead.
    pub(crate) max_failures: i64,
    /// When it may be claimed at the earliest; 0 for at once.
    #[serde(skip)]
    pub(crate) not_before: Millis,
    /// Who works on it, or did last.
    pub(crate) owner: Option<String>,
    pub(crate) lease_until: Option<Millis>,
    pub(crate) cancel_requested: bool,
    /// Why it failed last, or was cancelled.
    pub(crate) reason: Option<String>,
    pub(crate) enqueued_at: Millis,
    pub(crate) started_at: Option<Millis>,
    pub(crate) ended_at: Option<Millis>,
}

/// Writes a JSON text as the JSON that it is.
fn as_json<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(value) => value.serialize(serializer),
        Err(_) => serializer.serialize_str(text),
    }
}

impl Job {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.parsed("id")?,
            lane: LaneId(row.text("lane")?),
            seq: row.int("seq")?,
            kind: row.text("kind")?,
            payload: row.text("payload")?,
            priority: row.int("priority")?,
            state: row.parsed("state")?,
            attempt: row.int("attempt")?,
            failures: row.int("failures")?,
            max_failures: row.int("max_failures")?,
            not_before: row.millis("not_before")?,
            owner: row.opt_text("owner")?,
            lease_until: row.opt_millis("lease_until")?,
            cancel_requested: row.is("cancel_requested")?,
            reason: row.opt_text("reason")?,
            enqueued_at: row.millis("enqueued_at")?,
            started_at: row.opt_millis("started_at")?,
            ended_at: row.opt_millis("ended_at")?,
        })
    }
}

/// Returns a job by its id.
pub(crate) async fn find(conn: &mut Conn, id: JobId) -> Result<Option<Job>, StoreError> {
    let row = conn.fetch_optional("SELECT * FROM jobs WHERE id = $1", values![id]).await?;
    row.map(|row| Job::from_row(&row)).transpose()
}

/// Locks a lane until the commit.
pub(crate) async fn lock(conn: &mut Conn, lane: &LaneId) -> Result<(), StoreError> {
    match conn.dialect() {
        // There is one writer, and within a write nobody else changes anything.
        Dialect::Sqlite => Ok(()),
        Dialect::Postgres => {
            let sql = "UPDATE lanes SET last_seq = last_seq WHERE id = $1";
            conn.execute(sql, values![lane.as_str()]).await.map(drop)
        }
    }
}
