//! Who did what to what: lines that are only ever added, and removed when they
//! are old.

#[cfg(test)]
use super::db::Row;
use super::{Conn, StoreError, db::values};
use crate::{clock::Millis, id::AuditId};

/// A line of the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) at: Millis,
    pub(crate) actor: String,
    pub(crate) action: String,
    /// The id of what it was done to.
    pub(crate) subject: String,
    /// What else there is to know, as JSON. Never a secret.
    pub(crate) detail: String,
}

/// Adds a line.
pub(crate) async fn add(conn: &mut Conn, entry: &Entry) -> Result<(), StoreError> {
    conn.execute(
        "INSERT INTO audit (id, at, actor, action, subject, detail)
         VALUES ($1, $2, $3, $4, $5, $6)",
        values![
            AuditId::new(),
            entry.at,
            &entry.actor,
            &entry.action,
            &entry.subject,
            &entry.detail
        ],
    )
    .await
    .map(drop)
}

/// Returns what was done to something, first things first.
#[cfg(test)]
pub(crate) async fn about(conn: &mut Conn, subject: &str) -> Result<Vec<Entry>, StoreError> {
    let sql = "SELECT * FROM audit WHERE subject = $1 ORDER BY id";
    let entry = |row: &Row| {
        Ok(Entry {
            at: row.millis("at")?,
            actor: row.text("actor")?,
            action: row.text("action")?,
            subject: row.text("subject")?,
            detail: row.text("detail")?,
        })
    };
    conn.fetch_all(sql, values![subject]).await?.iter().map(entry).collect()
}

/// Removes lines from before a time, at most this many.
pub(crate) async fn remove_before(
    conn: &mut Conn,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM audit WHERE id IN (
                   SELECT id FROM audit WHERE at < $1 ORDER BY at LIMIT +$2)";
    conn.execute(sql, values![before, i64::from(limit)]).await
}
