//! Requests that must not be done twice: their answers, each under the name that
//! its caller gave it. Kept in the write that does what was asked for, so that
//! either both are there or neither.

use super::{
    Conn, StoreError,
    db::{Row, values},
};
use crate::clock::Millis;

/// A request with a name, and the answer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnsweredRequest {
    /// The id of the key: the names of others are others.
    pub(crate) actor: String,
    pub(crate) name: String,
    /// What makes the request the same request.
    pub(crate) fingerprint: String,
    pub(crate) status: u16,
    /// What was answered, as JSON.
    pub(crate) body: String,
    pub(crate) at: Millis,
}

/// Keeps an answer, unless there is one of that name: then it returns that, and
/// nothing may be done. Whoever comes at the same time waits here for the first,
/// so that it has to be the first thing of its write.
pub(crate) async fn keep(
    conn: &mut Conn,
    answered: &AnsweredRequest,
) -> Result<Option<AnsweredRequest>, StoreError> {
    let AnsweredRequest { actor, name, fingerprint, status, body, at } = answered;
    let sql = "INSERT INTO answered_requests (actor, name, fingerprint, status, body, at)
               VALUES ($1, $2, $3, $4, $5, $6)
               ON CONFLICT DO NOTHING";
    let values = values![actor, name, fingerprint, i64::from(*status), body, *at];
    if conn.execute(sql, values).await? > 0 {
        return Ok(None);
    }
    find(conn, actor, name).await
}

/// Returns the answer to the request of a name.
pub(crate) async fn find(
    conn: &mut Conn,
    actor: &str,
    name: &str,
) -> Result<Option<AnsweredRequest>, StoreError> {
    let sql = "SELECT * FROM answered_requests WHERE actor = $1 AND name = $2";
    let row = conn.fetch_optional(sql, values![actor, name]).await?;
    row.map(|row| AnsweredRequest::from_row(&row)).transpose()
}

/// Removes answers from before a time, at most this many.
pub(crate) async fn remove_before(
    conn: &mut Conn,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM answered_requests WHERE (actor, name) IN (
                   SELECT actor, name FROM answered_requests WHERE at < $1
                   ORDER BY at LIMIT +$2)";
    conn.execute(sql, values![before, i64::from(limit)]).await
}

impl AnsweredRequest {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            actor: row.text("actor")?,
            name: row.text("name")?,
            fingerprint: row.text("fingerprint")?,
            status: u16::try_from(row.int("status")?).unwrap_or_default(),
            body: row.text("body")?,
            at: row.millis("at")?,
        })
    }
}
