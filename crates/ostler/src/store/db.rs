//! A connection to either database, as the rest of the store uses it: the same
//! SQL text, values that are whole numbers or texts, rows that are read by the
//! name of a column.
//!
//! Write `LIMIT +$1`, not `LIMIT $1`: SQLite looks at a bare value there while it
//! makes its plan, and so makes a new one each time the statement is run.

use std::{borrow::Cow, fmt, str::FromStr, sync::Arc};

use sqlx::{
    AssertSqlSafe, ColumnIndex, Database, Decode, Encode, Executor, IntoArguments, Postgres,
    Row as _, Sqlite, Type, pool::PoolConnection, postgres::PgRow, query::Query, sqlite::SqliteRow,
};

use super::{
    StoreError,
    wakeups::{Topic, Topics},
};
use crate::clock::Millis;

/// The two databases, where their SQL has to differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// A connection, within a transaction when it was handed to a write.
pub(crate) struct Conn {
    pub(super) link: Link,
    /// What to wake when the transaction is committed.
    pub(super) woken: Topics,
    /// The first statement that failed. PostgreSQL turns the COMMIT after one
    /// into a ROLLBACK without a word, so a write with one is never committed.
    pub(super) failed: Option<StoreError>,
    /// How the database went about each statement, where a test asks for it.
    #[cfg(test)]
    pub(super) plans: Option<Vec<String>>,
}

/// The connection of one of the databases.
pub(super) enum Link {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>),
}

impl fmt::Debug for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Conn({:?})", self.dialect())
    }
}

impl Conn {
    pub(super) fn new(link: Link) -> Self {
        Self {
            link,
            woken: Topics::default(),
            failed: None,
            #[cfg(test)]
            plans: None,
        }
    }

    /// Wakes whoever waits for this, once the transaction is committed.
    pub(crate) fn wake(&mut self, topic: Topic) {
        self.woken.add(topic);
    }

    pub(super) fn dialect(&self) -> Dialect {
        match self.link {
            Link::Sqlite(_) => Dialect::Sqlite,
            Link::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Runs a statement and returns how many rows it changed.
    pub(super) async fn execute(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: &[Value<'_>],
    ) -> Result<u64, StoreError> {
        let sql = sql.into();
        #[cfg(test)]
        self.explain(&sql, values).await?;
        let sql = AssertSqlSafe(sql);
        let done = match &mut self.link {
            Link::Sqlite(conn) => {
                conn.execute(bind(sqlx::query(sql), values)).await.map(|done| done.rows_affected())
            }
            Link::Postgres(conn) => {
                conn.execute(bind(sqlx::query(sql), values)).await.map(|done| done.rows_affected())
            }
        };
        self.note(done)
    }

    /// Returns all rows of a query.
    pub(super) async fn fetch_all(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let sql = sql.into();
        #[cfg(test)]
        self.explain(&sql, values).await?;
        self.query(sql, values).await
    }

    async fn query(
        &mut self,
        sql: Cow<'static, str>,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let sql = AssertSqlSafe(sql);
        let rows = match &mut self.link {
            Link::Sqlite(conn) => conn
                .fetch_all(bind(sqlx::query(sql), values))
                .await
                .map(|rows| rows.into_iter().map(Row::Sqlite).collect()),
            Link::Postgres(conn) => conn
                .fetch_all(bind(sqlx::query(sql), values))
                .await
                .map(|rows| rows.into_iter().map(Row::Postgres).collect()),
        };
        self.note(rows)
    }

    /// Notes how the database would go about a statement, where a test asks for it.
    #[cfg(test)]
    async fn explain(&mut self, sql: &str, values: &[Value<'_>]) -> Result<(), StoreError> {
        assert!(!sql.contains("LIMIT $"), "write LIMIT +$1: {sql}");
        if self.plans.is_none() {
            return Ok(());
        }
        let (explain, column) = match self.dialect() {
            Dialect::Sqlite => ("EXPLAIN QUERY PLAN", "detail"),
            Dialect::Postgres => ("EXPLAIN", "QUERY PLAN"),
        };
        let rows = self.query(format!("{explain} {sql}").into(), values).await?;
        let lines: Result<Vec<_>, _> = rows.iter().map(|row| row.text(column)).collect();
        let plan = format!("{sql}\n{}", lines?.join("\n"));
        self.plans.get_or_insert_default().push(plan);
        Ok(())
    }

    fn note<T>(&mut self, result: Result<T, sqlx::Error>) -> Result<T, StoreError> {
        result.map_err(StoreError::from_sqlx).inspect_err(|error| {
            self.failed.get_or_insert_with(|| error.clone());
        })
    }

    /// Returns the first row of a query, if it has any.
    pub(super) async fn fetch_optional(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, StoreError> {
        // Every statement runs to its end, also a change that returns rows.
        Ok(self.fetch_all(sql, values).await?.into_iter().next())
    }

    /// Returns the first row of a query that always has one.
    pub(super) async fn fetch_one(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: &[Value<'_>],
    ) -> Result<Row, StoreError> {
        let row = self.fetch_optional(sql, values).await?;
        row.ok_or_else(|| StoreError::from_sqlx(sqlx::Error::RowNotFound))
    }
}

/// A value for a placeholder. What is missing has a type too: PostgreSQL asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Int(i64),
    Text(Cow<'a, str>),
    NoInt,
    NoText,
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(storable(text))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        text.as_str().into()
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Self::NoText, Self::from)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Self::NoInt, Self::Int)
    }
}

impl From<Millis> for Value<'_> {
    fn from(time: Millis) -> Self {
        Self::Int(time.0)
    }
}

impl From<Option<Millis>> for Value<'_> {
    fn from(time: Option<Millis>) -> Self {
        time.map(|time| time.0).into()
    }
}

macro_rules! ids_are_values {
    ($($id:ident),*) => {$(
        impl From<crate::id::$id> for Value<'_> {
            fn from(id: crate::id::$id) -> Self {
                Self::Text(id.to_string().into())
            }
        }

        impl From<Option<crate::id::$id>> for Value<'_> {
            fn from(id: Option<crate::id::$id>) -> Self {
                id.map_or(Self::NoText, Self::from)
            }
        }
    )*};
}
ids_are_values!(
    ConversationId,
    JobId,
    TurnId,
    OutboxId,
    PermissionId,
    AuditId,
    MessageId,
    ScheduleId,
    ProjectId,
    CommandId,
    KeyId,
    WebhookId
);

/// Lists values of several types.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::store::db::Value::from($value)),*] };
}
pub(super) use values;

/// Makes a text one that both databases keep: PostgreSQL refuses NUL.
fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

fn bind<'q, DB>(
    mut query: Query<'q, DB, DB::Arguments>,
    values: &[Value<'_>],
) -> Query<'q, DB, DB::Arguments>
where
    DB: Database,
    DB::Arguments: IntoArguments<DB>,
    i64: Encode<'q, DB> + Type<DB>,
    Option<i64>: Encode<'q, DB> + Type<DB>,
    String: Encode<'q, DB> + Type<DB>,
    Option<String>: Encode<'q, DB> + Type<DB>,
{
    for value in values {
        query = match value {
            Value::Int(number) => query.bind(*number),
            Value::Text(text) => query.bind(text.clone().into_owned()),
            Value::NoInt => query.bind(None::<i64>),
            Value::NoText => query.bind(None::<String>),
        };
    }
    query
}

/// A row of a result.
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl Row {
    pub(super) fn int(&self, column: &'static str) -> Result<i64, StoreError> {
        self.get(column)
    }

    pub(super) fn text(&self, column: &'static str) -> Result<String, StoreError> {
        self.get(column)
    }

    pub(super) fn opt_int(&self, column: &'static str) -> Result<Option<i64>, StoreError> {
        self.get(column)
    }

    pub(super) fn opt_text(&self, column: &'static str) -> Result<Option<String>, StoreError> {
        self.get(column)
    }

    pub(super) fn is(&self, column: &'static str) -> Result<bool, StoreError> {
        Ok(self.int(column)? != 0)
    }

    pub(super) fn count(&self, column: &'static str) -> Result<u64, StoreError> {
        u64::try_from(self.int(column)?).map_err(|error| unreadable(column, error))
    }

    pub(super) fn millis(&self, column: &'static str) -> Result<Millis, StoreError> {
        Ok(Millis(self.int(column)?))
    }

    pub(super) fn opt_millis(&self, column: &'static str) -> Result<Option<Millis>, StoreError> {
        Ok(self.get::<Option<i64>>(column)?.map(Millis))
    }

    /// Reads a text that is the written form of something.
    pub(super) fn parsed<T>(&self, column: &'static str) -> Result<T, StoreError>
    where
        T: FromStr<Err: fmt::Display>,
    {
        self.text(column)?.parse().map_err(|error| unreadable(column, error))
    }

    /// Reads such a text where there is one.
    pub(super) fn opt_parsed<T>(&self, column: &'static str) -> Result<Option<T>, StoreError>
    where
        T: FromStr<Err: fmt::Display>,
    {
        let text = self.opt_text(column)?;
        text.map(|text| text.parse().map_err(|error| unreadable(column, error))).transpose()
    }

    fn get<T>(&self, column: &'static str) -> Result<T, StoreError>
    where
        T: for<'r> Decode<'r, Sqlite> + Type<Sqlite>,
        T: for<'r> Decode<'r, Postgres> + Type<Postgres>,
        &'static str: ColumnIndex<SqliteRow> + ColumnIndex<PgRow>,
    {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
        .map_err(|error| unreadable(column, error))
    }
}

pub(super) fn unreadable(column: &'static str, error: impl fmt::Display) -> StoreError {
    StoreError::Unreadable { column, why: Arc::from(error.to_string()) }
}
