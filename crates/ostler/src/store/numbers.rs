//! The store in numbers, for those who watch a gateway.

use super::{Conn, StoreError, db::values, jobs};
use crate::clock::Millis;

/// What there is. Nothing that has to be counted through all that is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// The projects that are not deleted.
    pub(crate) projects: Vec<String>,
    /// Sessions that conversations go on with, by agent.
    pub(crate) sessions: Vec<(String, u64)>,
    /// Jobs that are not over or dead, by state.
    pub(crate) jobs: Vec<(String, u64)>,
    /// Since when the first of those waits that have not begun.
    pub(crate) oldest_at: Option<Millis>,
    /// Messages that have not left, by channel and state.
    pub(crate) outbox: Vec<(String, String, u64)>,
}

/// Counts.
pub(crate) async fn count(conn: &mut Conn) -> Result<Numbers, StoreError> {
    let mut numbers = Numbers::default();
    let sql = "SELECT id FROM projects WHERE deleted_at IS NULL";
    for row in conn.fetch_all(sql, values![]).await? {
        numbers.projects.push(row.text("id")?);
    }
    let sql = "SELECT agent, count(*) AS n FROM sessions GROUP BY agent";
    for row in conn.fetch_all(sql, values![]).await? {
        numbers.sessions.push((row.text("agent")?, row.count("n")?));
    }
    // Several statements, so that each can use an index of its own.
    for sql in [
        "SELECT state, count(*) AS n FROM jobs WHERE state IN ('waiting', 'ready') GROUP BY state",
        "SELECT 'running' AS state, count(*) AS n FROM jobs WHERE state = 'running'",
        "SELECT 'dead' AS state, count(*) AS n FROM jobs WHERE state = 'dead'",
    ] {
        for row in conn.fetch_all(sql, values![]).await? {
            numbers.jobs.push((row.text("state")?, row.count("n")?));
        }
    }
    numbers.oldest_at = jobs::oldest_not_begun(conn).await?;
    let open = "SELECT channel, state, count(*) AS n FROM outbox
                WHERE state IN ('waiting', 'sending') GROUP BY channel, state";
    let failed = "SELECT channel, 'failed' AS state, count(*) AS n FROM outbox
                  WHERE state = 'failed' GROUP BY channel";
    for sql in [open, failed] {
        for row in conn.fetch_all(sql, values![]).await? {
            numbers.outbox.push((row.text("channel")?, row.text("state")?, row.count("n")?));
        }
    }
    Ok(numbers)
}
