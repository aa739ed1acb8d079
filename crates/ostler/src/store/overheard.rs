//! What was said in groups without a word to the agent: the last of it, until the
//! agent is told.

use super::{
    Conn, StoreError,
    db::{Row, values},
};
use crate::clock::Millis;

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Overheard {
    pub(crate) message: String,
    /// Who said it.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) heard_at: Millis,
}

/// Notes something, once, and forgets what is too long ago to be told.
pub(crate) async fn note(
    conn: &mut Conn,
    channel: &str,
    place: &str,
    said: &Overheard,
    keep: u32,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO overheard (channel, place, message, number, name, text, heard_at)
               VALUES ($1, $2, $3,
                   coalesce((SELECT max(number) FROM overheard
                             WHERE channel = $1 AND place = $2), 0) + 1,
                   $4, $5, $6)
               ON CONFLICT (channel, message) DO NOTHING";
    let Overheard { message, name, text, heard_at } = said;
    conn.execute(sql, values![channel, place, message, name, text, *heard_at]).await?;
    let sql = "DELETE FROM overheard WHERE channel = $1 AND place = $2 AND number <= (
                   SELECT max(number) FROM overheard WHERE channel = $1 AND place = $2) - $3";
    conn.execute(sql, values![channel, place, i64::from(keep)]).await.map(drop)
}

/// Returns what was said at a place, in its order.
pub(crate) async fn at(
    conn: &mut Conn,
    channel: &str,
    place: &str,
) -> Result<Vec<Overheard>, StoreError> {
    let sql = "SELECT * FROM overheard WHERE channel = $1 AND place = $2 ORDER BY number";
    let rows = conn.fetch_all(sql, values![channel, place]).await?;
    let said = |row: &Row| {
        let (message, name, text) = (row.text("message")?, row.text("name")?, row.text("text")?);
        Ok(Overheard { message, name, text, heard_at: row.millis("heard_at")? })
    };
    rows.iter().map(said).collect()
}

/// Forgets what the agent was told.
pub(crate) async fn told(
    conn: &mut Conn,
    channel: &str,
    said: &[Overheard],
) -> Result<(), StoreError> {
    for Overheard { message, .. } in said {
        let sql = "DELETE FROM overheard WHERE channel = $1 AND message = $2";
        conn.execute(sql, values![channel, message]).await?;
    }
    Ok(())
}

/// Removes what was said before a time, at most this many.
pub(crate) async fn remove_before(
    conn: &mut Conn,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM overheard WHERE (channel, message) IN (
                   SELECT channel, message FROM overheard WHERE heard_at < $1
                   ORDER BY heard_at LIMIT +$2)";
    conn.execute(sql, values![before, i64::from(limit)]).await
}
