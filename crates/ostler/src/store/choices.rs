//! What was chosen while the gateway ran, and outlives it: a value for a name.

use super::{Conn, StoreError, db::values};
use crate::clock::Millis;

/// Who answers in projects that name nobody.
pub(crate) const PROJECT_AGENT: &str = "project_agent";

/// Returns what was chosen, if anything was.
pub(crate) async fn find(conn: &mut Conn, name: &str) -> Result<Option<String>, StoreError> {
    let sql = "SELECT value FROM choices WHERE name = $1";
    let row = conn.fetch_optional(sql, values![name]).await?;
    row.map(|row| row.text("value")).transpose()
}

/// Keeps a choice in place of the one before.
pub(crate) async fn keep(
    conn: &mut Conn,
    name: &str,
    value: &str,
    now: Millis,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO choices (name, value, changed_at) VALUES ($1, $2, $3)
               ON CONFLICT (name) DO UPDATE
               SET value = excluded.value, changed_at = excluded.changed_at";
    conn.execute(sql, values![name, value, now]).await.map(drop)
}

/// Forgets a choice.
pub(crate) async fn forget(conn: &mut Conn, name: &str) -> Result<(), StoreError> {
    conn.execute("DELETE FROM choices WHERE name = $1", values![name]).await.map(drop)
}
