//! The messages that show an answer in a chat: which there are, so that whoever
//! goes on with the answer changes them instead of posting it again.

use super::{
    Conn, StoreError,
    db::{Row, values},
};
use crate::clock::Millis;

/// A message that shows a part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredPost {
    /// Which part it is.
    pub(crate) slot: String,
    /// What the chat calls it.
    pub(crate) message: String,
}

/// The answer that messages belong to, and where they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subject {
    /// The job that is answered, or the turn if no job asked for it.
    pub(crate) id: String,
    pub(crate) channel: String,
    pub(crate) place: String,
}

/// Notes a message behind those that are there. Done twice it is the same as once;
/// a part that is posted again has the message that came last.
pub(crate) async fn note(
    conn: &mut Conn,
    subject: &Subject,
    post: &StoredPost,
    now: Millis,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO posts (subject, number, slot, channel, place, message, posted_at)
               VALUES ($1,
                   coalesce((SELECT max(number) FROM posts WHERE subject = $1), 0) + 1,
                   $2, $3, $4, $5, $6)
               ON CONFLICT (subject, slot) DO UPDATE
               SET message = excluded.message, channel = excluded.channel,
                   place = excluded.place, posted_at = excluded.posted_at";
    let values =
        values![&subject.id, &post.slot, &subject.channel, &subject.place, &post.message, now];
    conn.execute(sql, values).await.map(drop)
}

/// Forgets a message that is not there any more.
pub(crate) async fn forget(conn: &mut Conn, subject: &str, slot: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM posts WHERE subject = $1 AND slot = $2";
    conn.execute(sql, values![subject, slot]).await.map(drop)
}

/// Returns the messages of an answer at a place, in the order in which they stand there.
pub(crate) async fn of(conn: &mut Conn, subject: &Subject) -> Result<Vec<StoredPost>, StoreError> {
    let sql = "SELECT * FROM posts WHERE subject = $1 AND channel = $2 AND place = $3
               ORDER BY number";
    let values = values![&subject.id, &subject.channel, &subject.place];
    let rows = conn.fetch_all(sql, values).await?;
    let post =
        |row: &Row| Ok(StoredPost { slot: row.text("slot")?, message: row.text("message")? });
    rows.iter().map(post).collect()
}

/// Removes what was posted before a time, at most this many.
pub(crate) async fn remove_before(
    conn: &mut Conn,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM posts WHERE (subject, slot) IN (
                   SELECT subject, slot FROM posts WHERE posted_at < $1
                   ORDER BY posted_at LIMIT +$2)";
    conn.execute(sql, values![before, i64::from(limit)]).await
}

/// Whether a part of an answer stands at a place.
pub(crate) async fn is_at(
    conn: &mut Conn,
    slot: &str,
    channel: &str,
    place: &str,
) -> Result<bool, StoreError> {
    let sql = "SELECT 1 AS found FROM posts WHERE slot = $1 AND channel = $2 AND place = $3";
    Ok(conn.fetch_optional(sql, values![slot, channel, place]).await?.is_some())
}
