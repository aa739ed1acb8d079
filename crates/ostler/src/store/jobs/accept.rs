//! Accepting a job: the message that it is of, its place, how much waits.

use super::{Conn, JobId, JobState, LaneId, Millis, StoreError, values};
use crate::queue::MessageKey;

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

/// Returns under which id a message was noted, if it came before.
pub(crate) async fn noted_as(
    conn: &mut Conn,
    MessageKey { channel, message }: &MessageKey,
) -> Result<Option<JobId>, StoreError> {
    let sql = "SELECT job FROM inbox WHERE channel = $1 AND message = $2";
    let row = conn.fetch_optional(sql, values![channel, message]).await?;
    row.map(|row| row.parsed("job")).transpose()
}

/// Takes the next place in a lane, and locks the lane until the commit.
pub(crate) async fn take_place(conn: &mut Conn, lane: &LaneId) -> Result<i64, StoreError> {
    let sql = "INSERT INTO lanes (id, last_seq) VALUES ($1, 1)
               ON CONFLICT (id) DO UPDATE SET last_seq = lanes.last_seq + 1 RETURNING last_seq";
    conn.fetch_one(sql, values![lane.as_str()]).await?.int("last_seq")
}

/// Counts the jobs that nobody has begun, up to a limit.
pub(crate) async fn count_not_begun(conn: &mut Conn, limit: u32) -> Result<u64, StoreError> {
    let sql = "SELECT count(*) AS jobs FROM (
                   SELECT 1 FROM jobs WHERE state IN ('waiting', 'ready') LIMIT +$1) AS bounded";
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
                   LIMIT +$2) AS bounded";
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
    /// How many jobs of the lane may wait.
    pub(crate) limit: u32,
}

const INSERT: &str =
    "INSERT INTO jobs (id, lane, seq, number, kind, payload, priority, state, attempt,
         failures, max_failures, not_before, cancel_requested, enqueued_at)
     SELECT $1, $2, $3, CASE WHEN newest.number >= $9 THEN newest.number + 1 ELSE $9 END,
         $4, $5, $6, CASE WHEN head.seq IS NULL THEN 'ready' ELSE 'waiting' END,
         0, 0, $7, $8, 0, $9
     FROM (SELECT coalesce((
             SELECT number FROM jobs WHERE state IN ('waiting', 'ready')
             ORDER BY number DESC LIMIT 1), 0) AS number) AS newest,
         (SELECT (
             SELECT seq FROM jobs WHERE lane = $2 AND state IN ('waiting', 'ready', 'running')
             ORDER BY seq LIMIT 1) AS seq) AS head
     WHERE $3 - coalesce(head.seq, $3) < $10
         OR $10 > (SELECT count(*) FROM (
             SELECT 1 FROM jobs WHERE lane = $2 AND state IN ('waiting', 'ready', 'running')
                 AND state <> 'running'
             LIMIT +$10) AS bounded)
     ON CONFLICT (id) DO NOTHING
     RETURNING state";

/// Stores a job at the end of its lane, which is locked, and returns its state.
/// Returns nothing if the lane is full, or if the job is there already.
///
/// Those that wait in the lane are counted only if there are more places
/// between its head and this one than may be taken: so a long lane costs no
/// more than a short one.
///
/// Its number is the time, but never before that of an open job: a clock that
/// was set back lets nobody jump the queue.
pub(crate) async fn insert(
    conn: &mut Conn,
    job: &Insert<'_>,
) -> Result<Option<JobState>, StoreError> {
    let row = conn
        .fetch_optional(
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
                job.now,
                i64::from(job.limit)
            ],
        )
        .await?;
    row.map(|row| row.parsed("state")).transpose()
}
