//! The end of jobs, what follows it in their lanes, and the wish for it.

use super::{Conn, JobId, JobState, LaneId, Millis, StoreError, values};
use crate::store::db::Value;

/// How many ids go into one statement.
const ROWS: usize = 50;

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
