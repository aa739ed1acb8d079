//! When people wrote last, by channel and place.

use super::{Conn, StoreError, db::values, posts};
use crate::clock::Millis;

/// When somebody wrote, and when he was last called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contact {
    pub(crate) heard_at: Millis,
    pub(crate) called_at: Option<Millis>,
}

/// Notes that somebody wrote at a time.
pub(crate) async fn heard(
    conn: &mut Conn,
    channel: &str,
    place: &str,
    at: Millis,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO contacts (channel, place, heard_at) VALUES ($1, $2, $3)
               ON CONFLICT (channel, place) DO UPDATE
               SET heard_at = CASE WHEN excluded.heard_at > contacts.heard_at
                                   THEN excluded.heard_at ELSE contacts.heard_at END,
                   called_at = CASE WHEN excluded.heard_at > contacts.heard_at
                                    THEN NULL ELSE contacts.called_at END";
    conn.execute(sql, values![channel, place, at]).await.map(drop)
}

/// Notes that somebody was called, or has to be heard before anything else reaches
/// him. Returns whether he was not called since he wrote last.
pub(crate) async fn called(
    conn: &mut Conn,
    channel: &str,
    place: &str,
    now: Millis,
) -> Result<bool, StoreError> {
    let sql = "INSERT INTO contacts (channel, place, heard_at, called_at) VALUES ($1, $2, 0, $3)
               ON CONFLICT (channel, place) DO UPDATE
               SET called_at = excluded.called_at WHERE contacts.called_at IS NULL";
    Ok(conn.execute(sql, values![channel, place, now]).await? > 0)
}

/// Notes that the call of somebody did not leave.
pub(crate) async fn not_called(
    conn: &mut Conn,
    channel: &str,
    place: &str,
) -> Result<(), StoreError> {
    let sql = "UPDATE contacts SET called_at = NULL WHERE channel = $1 AND place = $2";
    conn.execute(sql, values![channel, place]).await.map(drop)
}

/// Notes that somebody is called once more who was called before a time. Returns whether
/// he has not written since, nor was called again.
pub(crate) async fn called_again(
    conn: &mut Conn,
    channel: &str,
    place: &str,
    before: Millis,
    now: Millis,
) -> Result<bool, StoreError> {
    let sql = "UPDATE contacts SET called_at = $3
               WHERE channel = $1 AND place = $2 AND called_at < $4";
    Ok(conn.execute(sql, values![channel, place, now, before]).await? > 0)
}

/// Returns who was last called before a time, by a message that did not arrive and may
/// another time, while a message waits for him for a reason; at most this many. The
/// message is noted under his place, with this before it.
pub(crate) async fn missed_calls(
    conn: &mut Conn,
    channel: &str,
    before: Millis,
    (prefix, reason): (&str, &str),
    limit: u32,
) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT contacts.place FROM contacts
                   JOIN posts ON posts.subject = $3 || contacts.place
                       AND posts.channel = contacts.channel
               WHERE contacts.channel = $1 AND contacts.called_at < $2
                   AND posts.trouble IS NOT NULL AND posts.delivery <> $4
                   AND EXISTS (SELECT 1 FROM outbox
                               WHERE outbox.channel = contacts.channel
                                   AND outbox.address = contacts.place
                                   AND outbox.state = 'failed' AND outbox.reason = $5)
               ORDER BY contacts.called_at LIMIT +$6";
    let values = values![channel, before, prefix, posts::LOST, reason, i64::from(limit)];
    let rows = conn.fetch_all(sql, values).await?;
    rows.iter().map(|row| row.text("place")).collect()
}

/// Notes that somebody could not be written to at a time, nor can be until he writes.
/// Whatever he wrote since counts.
pub(crate) async fn silent(
    conn: &mut Conn,
    channel: &str,
    place: &str,
    at: Millis,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO contacts (channel, place, heard_at) VALUES ($1, $2, 0)
               ON CONFLICT (channel, place) DO UPDATE SET heard_at = 0
               WHERE contacts.heard_at <= $3";
    conn.execute(sql, values![channel, place, at]).await.map(drop)
}

/// Returns who wrote since a time, at most this many, whoever wrote last first.
pub(crate) async fn heard_since(
    conn: &mut Conn,
    channel: &str,
    since: Millis,
    limit: u32,
) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT place FROM contacts WHERE channel = $1 AND heard_at >= $2
               ORDER BY heard_at DESC LIMIT +$3";
    let rows = conn.fetch_all(sql, values![channel, since, i64::from(limit)]).await?;
    rows.iter().map(|row| row.text("place")).collect()
}

/// Removes who neither wrote nor was called since a time, at most this many.
pub(crate) async fn remove_before(
    conn: &mut Conn,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM contacts WHERE (channel, place) IN (
                   SELECT channel, place FROM contacts
                   WHERE heard_at < $1 AND coalesce(called_at, 0) < $1 LIMIT +$2)";
    conn.execute(sql, values![before, i64::from(limit)]).await
}

/// Returns what is known of somebody.
pub(crate) async fn find(
    conn: &mut Conn,
    channel: &str,
    place: &str,
) -> Result<Option<Contact>, StoreError> {
    let sql = "SELECT * FROM contacts WHERE channel = $1 AND place = $2";
    let row = conn.fetch_optional(sql, values![channel, place]).await?;
    row.map(|row| {
        let called_at = row.opt_millis("called_at")?;
        Ok(Contact { heard_at: row.millis("heard_at")?, called_at })
    })
    .transpose()
}
