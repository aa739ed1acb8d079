//! Who did what to what: lines that are only ever added, and removed when they
//! are old.

use super::{
    Conn, StoreError,
    db::{Row, Value, values},
};
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
    conn.fetch_all(sql, values![subject]).await?.iter().map(Entry::from_row).collect()
}

/// Which lines are wanted: those for which all of it holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) actor: Option<String>,
    pub(crate) action: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) since: Option<Millis>,
    /// Not this moment itself.
    pub(crate) until: Option<Millis>,
    /// Begin after this one.
    pub(crate) after: Option<AuditId>,
}

/// Returns lines, newest first.
pub(crate) async fn list(
    conn: &mut Conn,
    filter: &Filter,
    limit: u32,
) -> Result<Vec<(AuditId, Entry)>, StoreError> {
    // No id is above this: the digits are all lower.
    let before = filter.after.map_or_else(|| "aud_g".to_owned(), |id| id.to_string());
    let mut values = vec![Value::from(&before), Value::from(i64::from(limit))];
    // What nobody asks for would keep indexes from being used.
    let conditions: Vec<String> = filter
        .conditions()
        .into_iter()
        .filter_map(|(condition, value)| {
            values.push(value?);
            Some(format!(" AND {condition} ${}", values.len()))
        })
        .collect();
    let sql = format!(
        "SELECT * FROM audit WHERE id < $1{} ORDER BY id DESC LIMIT +$2",
        conditions.concat()
    );
    let line = |row: &Row| Ok((row.parsed("id")?, Entry::from_row(row)?));
    conn.fetch_all(sql, &values).await?.iter().map(line).collect()
}

impl Filter {
    /// Returns everything that can be asked for, with the value if it is.
    fn conditions(&self) -> [(&'static str, Option<Value<'_>>); 5] {
        [
            ("actor =", self.actor.as_ref().map(Value::from)),
            ("action =", self.action.as_ref().map(Value::from)),
            ("subject =", self.subject.as_ref().map(Value::from)),
            ("at >=", self.since.map(Value::from)),
            ("at <", self.until.map(Value::from)),
        ]
    }
}

impl Entry {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            at: row.millis("at")?,
            actor: row.text("actor")?,
            action: row.text("action")?,
            subject: row.text("subject")?,
            detail: row.text("detail")?,
        })
    }
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
