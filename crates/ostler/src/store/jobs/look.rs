//! Looking at jobs without changing them.

use super::{Conn, Job, JobId, JobState, LaneId, Millis, Row, StoreError, values};

/// Lists all jobs, newest first, beginning after one of them.
pub(crate) async fn list(
    conn: &mut Conn,
    after: Option<JobId>,
    limit: u32,
) -> Result<Vec<Job>, StoreError> {
    let sql = "SELECT * FROM jobs WHERE id < $1 ORDER BY id DESC LIMIT +$2";
    let before = before(after);
    let values = values![&before, i64::from(limit)];
    conn.fetch_all(sql, values).await?.iter().map(Job::from_row).collect()
}

/// Lists jobs in one state, newest first, beginning after one of them.
pub(crate) async fn list_in(
    conn: &mut Conn,
    state: JobState,
    after: Option<JobId>,
    limit: u32,
) -> Result<Vec<Job>, StoreError> {
    let sql = "SELECT * FROM jobs WHERE state = $1 AND id < $2 ORDER BY id DESC LIMIT +$3";
    let before = before(after);
    let values = values![state.as_str(), &before, i64::from(limit)];
    conn.fetch_all(sql, values).await?.iter().map(Job::from_row).collect()
}

/// Returns the text that the ids of a page are below.
fn before(after: Option<JobId>) -> String {
    // No id is above this: the digits are all lower.
    after.map_or_else(|| "job_g".to_owned(), |id| id.to_string())
}

/// Returns the jobs that wait in a lane, in their order.
pub(crate) async fn waiting_behind(
    conn: &mut Conn,
    lane: &LaneId,
    limit: u32,
) -> Result<Vec<Job>, StoreError> {
    let sql = "SELECT * FROM jobs WHERE lane = $1 AND state IN ('waiting', 'ready', 'running')
                   AND state = 'waiting'
               ORDER BY seq LIMIT +$2";
    let rows = conn.fetch_all(sql, values![lane.as_str(), i64::from(limit)]).await?;
    rows.iter().map(Job::from_row).collect()
}

/// Returns the job of a lane that is to begin next.
pub(crate) async fn ready_in(conn: &mut Conn, lane: &LaneId) -> Result<Option<Job>, StoreError> {
    let sql = "SELECT * FROM jobs WHERE lane = $1 AND state IN ('ready', 'running')
                   AND state = 'ready'";
    let row = conn.fetch_optional(sql, values![lane.as_str()]).await?;
    row.map(|row| Job::from_row(&row)).transpose()
}

/// Whether a job of a lane runs or waits.
pub(crate) async fn is_busy(conn: &mut Conn, lane: &LaneId) -> Result<bool, StoreError> {
    let sql = "SELECT 1 AS found FROM jobs
               WHERE lane = $1 AND state IN ('waiting', 'ready', 'running') LIMIT 1";
    Ok(conn.fetch_optional(sql, values![lane.as_str()]).await?.is_some())
}

/// Returns the jobs of which something will become yet.
pub(crate) async fn not_over(conn: &mut Conn) -> Result<Vec<JobId>, StoreError> {
    let sql = "SELECT id FROM jobs WHERE state IN ('waiting', 'ready', 'running')";
    conn.fetch_all(sql, values![]).await?.iter().map(|row| row.parsed("id")).collect()
}

/// Which jobs are to be answered for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unanswered<'a> {
    pub(crate) kind: &'a str,
    /// Those that ended since. Replies are removed from the outbox before dead
    /// jobs are, so that without it old ones would be answered again.
    pub(crate) since: Millis,
    /// Of those that ended at that very time, only those after this one.
    pub(crate) after: Option<JobId>,
}

/// Returns dead and cancelled jobs without a reply of their last attempt
/// (`job:attempt`) in the outbox, in the order in which they ended: nobody was
/// left to put one, or it goes to somebody who needs none there.
pub(crate) async fn over_without_reply(
    conn: &mut Conn,
    of: Unanswered<'_>,
    limit: u32,
) -> Result<Vec<Job>, StoreError> {
    let after = of.after.map(|id| id.to_string()).unwrap_or_default();
    let values = values![of.kind, of.since, &after, i64::from(limit)];
    conn.fetch_all(OVER_WITHOUT_REPLY, values).await?.iter().map(Job::from_row).collect()
}

const OVER_WITHOUT_REPLY: &str = "SELECT * FROM jobs
     WHERE state IN ('dead', 'cancelled') AND kind = $1 AND ended_at >= $2
         AND (ended_at > $2 OR id > $3)
         AND NOT EXISTS (
             SELECT 1 FROM outbox
             WHERE outbox.dedupe = jobs.id || ':' || CAST(jobs.attempt AS TEXT))
     ORDER BY ended_at, id LIMIT +$4";

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
