//! The statements of the queue, each one step. What they make together is in
//! [`crate::queue`], which also says which of them need the lane to be locked.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

use super::{
    Conn, StoreError,
    db::{Dialect, Row, Value, values},
};
use crate::{clock::Millis, id::JobId};

/// How many ids go into one statement.
const ROWS: usize = 50;

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

/// Takes the next place in a lane, and locks the lane until the commit.
pub(crate) async fn take_place(conn: &mut Conn, lane: &LaneId) -> Result<i64, StoreError> {
    let sql = "INSERT INTO lanes (id, last_seq) VALUES ($1, 1)
               ON CONFLICT (id) DO UPDATE SET last_seq = lanes.last_seq + 1 RETURNING last_seq";
    conn.fetch_one(sql, values![lane.as_str()]).await?.int("last_seq")
}

/// Locks a lane until the commit.
pub(crate) async fn lock(conn: &mut Conn, lane: &LaneId) -> Result<(), StoreError> {
    // An update that changes nothing is the lock that both databases know.
    let sql = "UPDATE lanes SET last_seq = last_seq WHERE id = $1";
    conn.execute(sql, values![lane.as_str()]).await.map(drop)
}

/// Counts the jobs that nobody has begun, up to a limit.
pub(crate) async fn count_not_begun(conn: &mut Conn, limit: u32) -> Result<u64, StoreError> {
    let sql = "SELECT count(*) AS jobs FROM (
                   SELECT 1 FROM jobs WHERE state IN ('waiting', 'ready') LIMIT $1) AS bounded";
    conn.fetch_one(sql, values![i64::from(limit)]).await?.count("jobs")
}

/// Counts those of a lane, up to a limit.
pub(crate) async fn count_in_lane(
    conn: &mut Conn,
    lane: &LaneId,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "SELECT count(*) AS jobs FROM (
                   SELECT 1 FROM jobs WHERE lane = $1 AND state IN ('waiting', 'ready', 'running')
                       AND state <> 'running'
                   LIMIT $2) AS bounded";
    conn.fetch_one(sql, values![lane.as_str(), i64::from(limit)]).await?.count("jobs")
}

/// A job that is to be stored.
pub(crate) struct Insert<'a> {
    pub(crate) id: JobId,
    pub(crate) lane: &'a LaneId,
    pub(crate) seq: i64,
    pub(crate) kind: &'a str,
    pub(crate) payload: &'a str,
    pub(crate) priority: i64,
    pub(crate) max_failures: i64,
    pub(crate) not_before: Millis,
    pub(crate) now: Millis,
}

const INSERT: &str =
    "INSERT INTO jobs (id, lane, seq, number, kind, payload, priority, state, attempt,
         failures, max_failures, not_before, cancel_requested, enqueued_at)
     SELECT $1, $2, $3, CASE WHEN newest.number >= $9 THEN newest.number + 1 ELSE $9 END,
         $4, $5, $6,
         CASE WHEN EXISTS (
             SELECT 1 FROM jobs
             WHERE lane = $2 AND state IN ('waiting', 'ready', 'running'))
         THEN 'waiting' ELSE 'ready' END,
         0, 0, $7, $8, 0, $9
     FROM (SELECT coalesce((
         SELECT number FROM jobs WHERE state IN ('waiting', 'ready')
         ORDER BY number DESC LIMIT 1), 0) AS number) AS newest
     RETURNING state";

/// Stores a job at the end of its lane, which is locked.
///
/// Its number is the time, but never before that of an open job: a clock that
/// was set back lets nobody jump the queue.
pub(crate) async fn insert(conn: &mut Conn, job: &Insert<'_>) -> Result<JobState, StoreError> {
    let row = conn
        .fetch_one(
            INSERT,
            values![
                job.id,
                job.lane.as_str(),
                job.seq,
                job.kind,
                job.payload,
                job.priority,
                job.max_failures,
                job.not_before,
                job.now
            ],
        )
        .await?;
    row.parsed("state")
}

macro_rules! claim {
    ($lock:literal) => {
        concat!(
            "UPDATE jobs SET state = 'running', attempt = attempt + 1, owner = $1,
                 lease_until = $2, started_at = $3
             WHERE id = (
                 SELECT id FROM jobs WHERE state = 'ready' AND not_before <= $3
                 ORDER BY priority DESC, number, id LIMIT 1",
            $lock,
            ") RETURNING *"
        )
    };
}

/// Returns the statement of [`claim()`].
pub(crate) fn claim_sql(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => claim!(""),
        // Two gateways do not wait for each other's pick, but each take another.
        Dialect::Postgres => claim!(" FOR UPDATE SKIP LOCKED"),
    }
}

/// Gives the first job that is ready to somebody.
pub(crate) async fn claim(
    conn: &mut Conn,
    owner: &str,
    lease_until: Millis,
    now: Millis,
) -> Result<Option<Job>, StoreError> {
    let sql = claim_sql(conn.dialect());
    let row = conn.fetch_optional(sql, values![owner, lease_until, now]).await?;
    row.map(|row| Job::from_row(&row)).transpose()
}

/// Returns when the next job that has to wait for its time is due, if one does.
pub(crate) async fn next_due(conn: &mut Conn, now: Millis) -> Result<Option<Millis>, StoreError> {
    let sql = "SELECT min(not_before) AS due FROM jobs WHERE state = 'ready' AND not_before > $1";
    conn.fetch_one(sql, values![now]).await?.opt_millis("due")
}

/// Prolongs a lease, and returns whether the end was asked for; nothing if the
/// lease is lost.
pub(crate) async fn renew(
    conn: &mut Conn,
    id: JobId,
    attempt: i64,
    owner: &str,
    lease_until: Millis,
) -> Result<Option<bool>, StoreError> {
    let sql = "UPDATE jobs SET lease_until = $4
               WHERE id = $1 AND attempt = $2 AND owner = $3 AND state = 'running'
               RETURNING cancel_requested";
    let row = conn.fetch_optional(sql, values![id, attempt, owner, lease_until]).await?;
    row.map(|row| row.is("cancel_requested")).transpose()
}

/// A job that runs, as whoever renews it sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Renewed {
    pub(crate) job: JobId,
    pub(crate) lane: LaneId,
    pub(crate) attempt: i64,
    pub(crate) is_cancel_requested: bool,
}

/// Prolongs all leases of an owner, and returns what he has.
pub(crate) async fn renew_all(
    conn: &mut Conn,
    owner: &str,
    lease_until: Millis,
) -> Result<Vec<Renewed>, StoreError> {
    let sql = "UPDATE jobs SET lease_until = $2 WHERE state = 'running' AND owner = $1
               RETURNING id, lane, attempt, cancel_requested";
    let renewed = |row: &Row| {
        Ok(Renewed {
            job: row.parsed("id")?,
            lane: LaneId(row.text("lane")?),
            attempt: row.int("attempt")?,
            is_cancel_requested: row.is("cancel_requested")?,
        })
    };
    conn.fetch_all(sql, values![owner, lease_until]).await?.iter().map(renewed).collect()
}

/// Returns the running jobs of an owner whose end was asked for.
pub(crate) async fn cancel_requested_of(
    conn: &mut Conn,
    owner: &str,
) -> Result<Vec<Job>, StoreError> {
    let sql = "SELECT * FROM jobs WHERE state = 'running' AND owner = $1
                   AND cancel_requested = 1";
    conn.fetch_all(sql, values![owner]).await?.iter().map(Job::from_row).collect()
}

/// Ends a running job, whose lane is locked. Its owner stays on record.
pub(crate) async fn end(
    conn: &mut Conn,
    id: JobId,
    state: JobState,
    reason: Option<&str>,
    now: Millis,
) -> Result<(), StoreError> {
    let sql = "UPDATE jobs SET state = $2, reason = $3, lease_until = NULL, ended_at = $4
               WHERE id = $1";
    conn.execute(sql, values![id, state.as_str(), reason, now]).await.map(drop)
}

/// Puts a running job back to the head of its lane, which is locked.
pub(crate) async fn put_back(
    conn: &mut Conn,
    id: JobId,
    failures: i64,
    not_before: Millis,
    reason: Option<&str>,
) -> Result<(), StoreError> {
    let sql = "UPDATE jobs SET state = 'ready', owner = NULL, lease_until = NULL, failures = $2,
                   not_before = $3, reason = coalesce($4, reason)
               WHERE id = $1";
    conn.execute(sql, values![id, failures, not_before, reason]).await.map(drop)
}

/// Takes a running job from a worker whose lease ended by a time, so that he
/// cannot say anything about it any more. Its lane is locked.
pub(crate) async fn seize(
    conn: &mut Conn,
    id: JobId,
    attempt: i64,
    by: Millis,
) -> Result<bool, StoreError> {
    let sql = "UPDATE jobs SET owner = NULL
               WHERE id = $1 AND attempt = $2 AND state = 'running' AND lease_until <= $3";
    Ok(conn.execute(sql, values![id, attempt, by]).await? > 0)
}

/// Makes the first waiting job of a lane ready if none is ready or running.
/// The lane is locked.
pub(crate) async fn promote(conn: &mut Conn, lane: &LaneId) -> Result<bool, StoreError> {
    let sql = "UPDATE jobs SET state = 'ready'
               WHERE id = (
                   SELECT id FROM jobs
                   WHERE lane = $1 AND state IN ('waiting', 'ready', 'running')
                       AND state = 'waiting'
                   ORDER BY seq LIMIT 1)
               AND NOT EXISTS (
                   SELECT 1 FROM jobs WHERE lane = $1 AND state IN ('ready', 'running'))";
    Ok(conn.execute(sql, values![lane.as_str()]).await? > 0)
}

/// Cancels a job that nobody has begun; its lane is locked.
pub(crate) async fn cancel_not_begun(
    conn: &mut Conn,
    id: JobId,
    reason: &str,
    now: Millis,
) -> Result<bool, StoreError> {
    let sql = "UPDATE jobs SET state = 'cancelled', reason = $2, ended_at = $3
               WHERE id = $1 AND state IN ('waiting', 'ready')";
    Ok(conn.execute(sql, values![id, reason, now]).await? > 0)
}

/// Cancels all jobs of a lane that nobody has begun; it is locked.
pub(crate) async fn cancel_lane_not_begun(
    conn: &mut Conn,
    lane: &LaneId,
    reason: &str,
    now: Millis,
) -> Result<u64, StoreError> {
    let sql = "UPDATE jobs SET state = 'cancelled', reason = $2, ended_at = $3
               WHERE lane = $1 AND state IN ('waiting', 'ready', 'running')
                   AND state <> 'running'";
    conn.execute(sql, values![lane.as_str(), reason, now]).await
}

/// Asks for the end of a running job.
pub(crate) async fn request_cancel(
    conn: &mut Conn,
    id: JobId,
    reason: &str,
) -> Result<bool, StoreError> {
    let sql = "UPDATE jobs SET cancel_requested = 1, reason = $2
               WHERE id = $1 AND state = 'running'";
    Ok(conn.execute(sql, values![id, reason]).await? > 0)
}

/// Ends those of these jobs that are of this lane and have not begun; it is locked.
pub(crate) async fn end_not_begun(
    conn: &mut Conn,
    lane: &LaneId,
    ids: &[JobId],
    state: JobState,
    reason: &str,
    now: Millis,
) -> Result<u64, StoreError> {
    let mut n_ended = 0;
    for ids in ids.chunks(ROWS) {
        let mut all = values![lane.as_str(), state.as_str(), reason, now].to_vec();
        all.extend(ids.iter().map(|id| Value::from(*id)));
        let places: Vec<_> = (5..=all.len()).map(|place| format!("${place}")).collect();
        let sql = format!(
            "UPDATE jobs SET state = $2, reason = $3, ended_at = $4
             WHERE lane = $1 AND id IN ({}) AND state IN ('waiting', 'ready')",
            places.join(", ")
        );
        n_ended += conn.execute(sql, &all).await?;
    }
    Ok(n_ended)
}

/// Returns the jobs that wait in a lane, in their order.
pub(crate) async fn waiting_behind(
    conn: &mut Conn,
    lane: &LaneId,
    limit: u32,
) -> Result<Vec<Job>, StoreError> {
    let sql = "SELECT * FROM jobs WHERE lane = $1 AND state IN ('waiting', 'ready', 'running')
                   AND state = 'waiting'
               ORDER BY seq LIMIT $2";
    let rows = conn.fetch_all(sql, values![lane.as_str(), i64::from(limit)]).await?;
    rows.iter().map(Job::from_row).collect()
}

/// Returns the running job of a lane.
pub(crate) async fn running_in(
    conn: &mut Conn,
    lane: &LaneId,
) -> Result<Option<JobId>, StoreError> {
    let sql = "SELECT id FROM jobs WHERE lane = $1 AND state IN ('ready', 'running')
                   AND state = 'running'";
    let row = conn.fetch_optional(sql, values![lane.as_str()]).await?;
    row.map(|row| row.parsed("id")).transpose()
}

/// Puts a dead job at the end of its lane, which is locked, to be tried anew.
pub(crate) async fn revive(
    conn: &mut Conn,
    id: JobId,
    lane: &LaneId,
    seq: i64,
) -> Result<JobState, StoreError> {
    let sql = "UPDATE jobs SET seq = $3, failures = 0, not_before = 0, owner = NULL,
                   cancel_requested = 0, ended_at = NULL,
                   state = CASE WHEN EXISTS (
                       SELECT 1 FROM jobs AS other
                       WHERE other.lane = $2 AND other.state IN ('waiting', 'ready', 'running'))
                   THEN 'waiting' ELSE 'ready' END
               WHERE id = $1 RETURNING state";
    conn.fetch_one(sql, values![id, lane.as_str(), seq]).await?.parsed("state")
}

/// Returns running jobs whose lease ended by a time, those first whose lease
/// ended first.
pub(crate) async fn expired(
    conn: &mut Conn,
    by: Millis,
    limit: u32,
) -> Result<Vec<Job>, StoreError> {
    let sql = "SELECT * FROM jobs WHERE state = 'running' AND lease_until <= $1
               ORDER BY lease_until LIMIT $2";
    let rows = conn.fetch_all(sql, values![by, i64::from(limit)]).await?;
    rows.iter().map(Job::from_row).collect()
}

/// Which dead jobs are to be answered for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unanswered<'a> {
    pub(crate) kind: &'a str,
    /// The channel that is answered without the outbox.
    pub(crate) but: &'a str,
    /// Those that died since. Replies are removed from the outbox before dead
    /// jobs are, so that without it old ones would be answered again.
    pub(crate) since: Millis,
}

/// Returns dead and cancelled jobs of conversations whose outbox has no reply of their last
/// attempt (`job:attempt`): nobody was left to put one.
pub(crate) async fn over_without_reply(
    conn: &mut Conn,
    of: Unanswered<'_>,
    limit: u32,
) -> Result<Vec<Job>, StoreError> {
    let values = values![of.kind, of.but, of.since, i64::from(limit)];
    conn.fetch_all(OVER_WITHOUT_REPLY, values).await?.iter().map(Job::from_row).collect()
}

const OVER_WITHOUT_REPLY: &str =
    "SELECT jobs.* FROM jobs JOIN conversations ON conversations.id = jobs.lane
     WHERE jobs.state IN ('dead', 'cancelled') AND jobs.kind = $1 AND jobs.ended_at >= $3
         AND conversations.channel <> $2
         AND NOT EXISTS (
             SELECT 1 FROM outbox
             WHERE outbox.dedupe = jobs.id || ':' || CAST(jobs.attempt AS TEXT))
     ORDER BY jobs.ended_at, jobs.id LIMIT $4";

/// Returns a job by its id.
pub(crate) async fn find(conn: &mut Conn, id: JobId) -> Result<Option<Job>, StoreError> {
    let row = conn.fetch_optional("SELECT * FROM jobs WHERE id = $1", values![id]).await?;
    row.map(|row| Job::from_row(&row)).transpose()
}

/// Lists jobs in one state, newest first, beginning after one of them.
pub(crate) async fn list_in(
    conn: &mut Conn,
    state: JobState,
    after: Option<JobId>,
    limit: u32,
) -> Result<Vec<Job>, StoreError> {
    let sql = "SELECT * FROM jobs WHERE state = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    let before = before(after);
    let values = values![state.as_str(), &before, i64::from(limit)];
    conn.fetch_all(sql, values).await?.iter().map(Job::from_row).collect()
}

/// Lists all jobs, newest first, beginning after one of them.
pub(crate) async fn list(
    conn: &mut Conn,
    after: Option<JobId>,
    limit: u32,
) -> Result<Vec<Job>, StoreError> {
    let sql = "SELECT * FROM jobs WHERE id < $1 ORDER BY id DESC LIMIT $2";
    let before = before(after);
    let values = values![&before, i64::from(limit)];
    conn.fetch_all(sql, values).await?.iter().map(Job::from_row).collect()
}

/// Returns the text that the ids of a page are below.
fn before(after: Option<JobId>) -> String {
    // No id is above this: the digits are all lower.
    after.map_or_else(|| "job_g".to_owned(), |id| id.to_string())
}

/// Counts jobs by state.
pub(crate) async fn count_by_state(conn: &mut Conn) -> Result<Vec<(JobState, u64)>, StoreError> {
    let sql = "SELECT state, count(*) AS jobs FROM jobs GROUP BY state";
    let count = |row: &Row| Ok((row.parsed("state")?, row.count("jobs")?));
    conn.fetch_all(sql, values![]).await?.iter().map(count).collect()
}

/// Returns since when the longest waiting job waits.
pub(crate) async fn oldest_not_begun(conn: &mut Conn) -> Result<Option<Millis>, StoreError> {
    let sql = "SELECT enqueued_at FROM jobs WHERE state IN ('waiting', 'ready')
               ORDER BY number LIMIT 1";
    let row = conn.fetch_optional(sql, values![]).await?;
    row.map(|row| row.millis("enqueued_at")).transpose()
}

/// Jobs that are over, by how long they are worth keeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    DoneOrCancelled,
    Dead,
}

/// Removes jobs that ended before a time, at most this many.
pub(crate) async fn remove_before(
    conn: &mut Conn,
    over: Over,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    // The states that an index is of are named as in it, so that it is used.
    macro_rules! remove {
        ($state:literal) => {
            concat!(
                "DELETE FROM jobs WHERE id IN (
                     SELECT id FROM jobs
                     WHERE state IN ('done', 'dead', 'cancelled') AND ",
                $state,
                " AND ended_at < $1 ORDER BY ended_at LIMIT $2)"
            )
        };
    }
    let sql = match over {
        Over::DoneOrCancelled => remove!("state <> 'dead'"),
        Over::Dead => remove!("state = 'dead'"),
    };
    conn.execute(sql, values![before, i64::from(limit)]).await
}

/// Notes that a message became a job, or returns the job that it became before.
pub(crate) async fn note_message(
    conn: &mut Conn,
    channel: &str,
    message: &str,
    job: JobId,
    now: Millis,
) -> Result<Option<JobId>, StoreError> {
    let sql = "INSERT INTO inbox (channel, message, job, received_at) VALUES ($1, $2, $3, $4)
               ON CONFLICT (channel, message) DO NOTHING";
    if conn.execute(sql, values![channel, message, job, now]).await? > 0 {
        return Ok(None);
    }
    let sql = "SELECT job FROM inbox WHERE channel = $1 AND message = $2";
    conn.fetch_one(sql, values![channel, message]).await?.parsed("job").map(Some)
}

/// Forgets messages that came before a time, at most this many.
pub(crate) async fn forget_messages(
    conn: &mut Conn,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM inbox WHERE (channel, message) IN (
                   SELECT channel, message FROM inbox WHERE received_at < $1
                   ORDER BY received_at LIMIT $2)";
    conn.execute(sql, values![before, i64::from(limit)]).await
}

/// Returns how the database would go about what is done most often.
#[cfg(test)]
pub(crate) async fn plans(conn: &mut Conn) -> Result<Vec<String>, StoreError> {
    let explain = match conn.dialect() {
        Dialect::Sqlite => "EXPLAIN QUERY PLAN ",
        Dialect::Postgres => {
            conn.execute("ANALYZE jobs", values![]).await?;
            "EXPLAIN "
        }
    };
    let column = match conn.dialect() {
        Dialect::Sqlite => "detail",
        Dialect::Postgres => "QUERY PLAN",
    };
    let claim = claim_sql(conn.dialect());
    let expired = "SELECT 1 FROM jobs WHERE state = 'running' AND lease_until <= $1";
    let (one, two) = (Value::Int(1), Value::Int(2));
    let text = || Value::from("x");
    let insert = [
        &[text(), text(), one.clone(), text(), text()][..],
        &[one.clone(), one.clone(), one.clone(), one.clone()],
    ];
    let mut plans = Vec::new();
    for (sql, values) in
        [(claim, vec![text(), two, one.clone()]), (INSERT, insert.concat()), (expired, vec![one])]
    {
        let rows = conn.fetch_all(format!("{explain}{sql}"), &values).await?;
        let lines: Result<Vec<_>, _> = rows.iter().map(|row| row.text(column)).collect();
        plans.push(lines?.join("\n"));
    }
    Ok(plans)
}
