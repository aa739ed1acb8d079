//! Who works on a job, and until when.

use super::{Conn, Job, JobId, LaneId, Millis, Row, StoreError, values};
use crate::store::db::Dialect;

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
fn claim_sql(dialect: Dialect) -> &'static str {
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

/// Returns when the next job can be begun: now, if one is ready, else at the time
/// that the first is for.
pub(crate) async fn next_due(conn: &mut Conn, now: Millis) -> Result<Option<Millis>, StoreError> {
    let sql = "SELECT CASE WHEN EXISTS (
                       SELECT 1 FROM jobs WHERE state = 'ready' AND not_before <= $1) THEN $1
                   ELSE (SELECT min(not_before) FROM jobs WHERE state = 'ready') END AS due";
    conn.fetch_one(sql, values![now]).await?.opt_millis("due")
}

/// Prolongs a lease, and returns whether the end was asked for; nothing if the
/// lease is lost.
#[cfg(test)]
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

/// Returns running jobs whose lease ended by a time, those first whose lease
/// ended first.
pub(crate) async fn expired(
    conn: &mut Conn,
    by: Millis,
    limit: u32,
) -> Result<Vec<Job>, StoreError> {
    let sql = "SELECT * FROM jobs WHERE state = 'running' AND lease_until <= $1
               ORDER BY lease_until LIMIT +$2";
    let rows = conn.fetch_all(sql, values![by, i64::from(limit)]).await?;
    rows.iter().map(Job::from_row).collect()
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
