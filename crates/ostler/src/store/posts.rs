//! The messages that show an answer in a chat: which there are, so that whoever
//! goes on with the answer changes them instead of posting it again.

use super::{
    Conn, StoreError,
    db::{Row, values},
};
use crate::{clock::Millis, id::PermissionId};

/// What is noted of a message that does not arrive, however often it is sent.
pub(crate) const LOST: &str = "lost";

/// A message that shows a part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredPost {
    /// Which part it is.
    pub(crate) slot: String,
    /// What the chat calls it; nothing while it is on its way.
    pub(crate) message: Option<String>,
    /// When it was posted, or was to be.
    pub(crate) posted_at: Millis,
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
) -> Result<(), StoreError> {
    let sql = "INSERT INTO posts (subject, number, slot, channel, place, message, posted_at)
               VALUES ($1,
                   coalesce((SELECT max(number) FROM posts WHERE subject = $1), 0) + 1,
                   $2, $3, $4, $5, $6)
               ON CONFLICT (subject, slot) DO UPDATE
               SET message = excluded.message, channel = excluded.channel,
                   place = excluded.place, posted_at = excluded.posted_at,
                   delivery = NULL, trouble = NULL";
    let Subject { id, channel, place } = subject;
    let message = post.message.as_deref().unwrap_or_default();
    let values = values![id, &post.slot, channel, place, message, post.posted_at];
    conn.execute(sql, values).await.map(drop)
}

/// Forgets a message that is not there any more.
pub(crate) async fn forget(conn: &mut Conn, subject: &str, slot: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM posts WHERE subject = $1 AND slot = $2";
    conn.execute(sql, values![subject, slot]).await.map(drop)
}

/// Returns the messages of an answer at a place, in the order in which they stand there.
/// One that did not arrive, and may another time, is none of them.
pub(crate) async fn of(conn: &mut Conn, subject: &Subject) -> Result<Vec<StoredPost>, StoreError> {
    let sql = "SELECT * FROM posts WHERE subject = $1 AND channel = $2 AND place = $3
                   AND (trouble IS NULL OR delivery = $4)
               ORDER BY number";
    let values = values![&subject.id, &subject.channel, &subject.place, LOST];
    let rows = conn.fetch_all(sql, values).await?;
    let post = |row: &Row| {
        let message = Some(row.text("message")?).filter(|message| !message.is_empty());
        Ok(StoredPost { slot: row.text("slot")?, message, posted_at: row.millis("posted_at")? })
    };
    rows.iter().map(post).collect()
}

/// A part of an answer, as a chat speaks of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) subject: Subject,
    pub(crate) slot: String,
    /// What the chat said last became of it.
    pub(crate) delivery: Option<String>,
    pub(crate) posted_at: Millis,
}

/// Returns what a message is a part of.
pub(crate) async fn by_message(
    conn: &mut Conn,
    channel: &str,
    message: &str,
) -> Result<Option<Part>, StoreError> {
    let sql = "SELECT * FROM posts WHERE message = $1 AND channel = $2";
    let row = conn.fetch_optional(sql, values![message, channel]).await?;
    row.map(|row| {
        let (id, channel, place) = (row.text("subject")?, row.text("channel")?, row.text("place")?);
        let subject = Subject { id, channel, place };
        let (slot, delivery) = (row.text("slot")?, row.opt_text("delivery")?);
        Ok(Part { subject, slot, delivery, posted_at: row.millis("posted_at")? })
    })
    .transpose()
}

/// Notes what a chat says became of a message.
pub(crate) async fn delivered(
    conn: &mut Conn,
    channel: &str,
    message: &str,
    delivery: &str,
    trouble: Option<&str>,
) -> Result<(), StoreError> {
    let sql = "UPDATE posts SET delivery = $3, trouble = $4 WHERE message = $1 AND channel = $2";
    conn.execute(sql, values![message, channel, delivery, trouble]).await.map(drop)
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

/// How much of something that is asked stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stood {
    Nothing,
    /// What can be answered, and not all of what is above it.
    InPart,
    Whole,
}

/// Returns how much stands at a place of a request for permission. What did not arrive
/// does not stand there.
pub(crate) async fn stood(
    conn: &mut Conn,
    request: PermissionId,
    channel: &str,
    place: &str,
) -> Result<Stood, StoreError> {
    let sql = "SELECT subject FROM posts
               WHERE slot = 'asked:' || $1 AND channel = $2 AND place = $3 AND message <> ''
                   AND trouble IS NULL";
    let Some(row) = conn.fetch_optional(sql, values![request, channel, place]).await? else {
        return Ok(Stood::Nothing);
    };
    let sql = "SELECT 1 AS found FROM posts
               WHERE subject = $1 AND slot LIKE 'page:%:' || $2
                   AND (message = '' OR trouble IS NOT NULL) LIMIT 1";
    let missing = conn.fetch_optional(sql, values![&row.text("subject")?, request]).await?;
    Ok(if missing.is_some() { Stood::InPart } else { Stood::Whole })
}
