//! The store in numbers, for those who watch a gateway.

use super::{Conn, StoreError, db::values};

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// The projects that are not deleted.
    pub(crate) projects: Vec<String>,
    /// Sessions that conversations go on with, by agent.
    pub(crate) sessions: Vec<(String, u64)>,
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
    // Two statements, so that each can use an index of its own.
    let open = "SELECT channel, state, count(*) AS n FROM outbox
                WHERE state IN ('waiting', 'sending') GROUP BY channel, state";
    let failed = "SELECT channel, state, count(*) AS n FROM outbox
                  WHERE state IN ('sent', 'failed') AND state = 'failed' GROUP BY channel, state";
    for sql in [open, failed] {
        for row in conn.fetch_all(sql, values![]).await? {
            numbers.outbox.push((row.text("channel")?, row.text("state")?, row.count("n")?));
        }
    }
    Ok(numbers)
}
