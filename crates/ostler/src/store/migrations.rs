//! The schema and its versions: one list for both databases, forward only.

use std::{ops::Deref, sync::Arc};

use sqlx::{
    Acquire, SqlSafeStr as _,
    migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator},
};

use super::{Conn, StoreError, db::values};

/// All steps from an empty database to the present one. A step that was
/// released is never changed; a change is a further step.
const STEPS: &[(i64, &str, &str)] = &[
    (1, "store", include_str!("../../migrations/0001_store.sql")),
    (2, "runtime", include_str!("../../migrations/0002_runtime.sql")),
    (3, "schedules", include_str!("../../migrations/0003_schedules.sql")),
    (4, "history", include_str!("../../migrations/0004_history.sql")),
    (5, "http", include_str!("../../migrations/0005_http.sql")),
    (6, "chats", include_str!("../../migrations/0006_chats.sql")),
    (7, "twilio", include_str!("../../migrations/0007_twilio.sql")),
    (8, "numbers", include_str!("../../migrations/0008_numbers.sql")),
    (9, "signed_names", include_str!("../../migrations/0009_signed_names.sql")),
    (10, "tries", include_str!("../../migrations/0010_tries.sql")),
];

/// The version of the present schema.
pub(super) fn newest() -> i64 {
    STEPS.iter().map(|(version, ..)| *version).max().unwrap_or(0)
}

/// Brings a database up to date.
pub(super) async fn run<'a, A>(database: A) -> Result<(), StoreError>
where
    A: Acquire<'a>,
    <A::Connection as Deref>::Target: Migrate,
{
    run_to(newest(), database).await
}

/// Brings a database to a version.
pub(super) async fn run_to<'a, A>(newest: i64, database: A) -> Result<(), StoreError>
where
    A: Acquire<'a>,
    <A::Connection as Deref>::Target: Migrate,
{
    let step = |(version, name, sql): &(i64, &'static str, &'static str)| {
        Migration::new(*version, (*name).into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    let steps = STEPS.iter().filter(|(version, ..)| *version <= newest);
    let migrator = Migrator::with_migrations(steps.map(step).collect());
    migrator.run(database).await.map_err(refusal)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the list of them is sqlx's, and open")]
fn refusal(error: MigrateError) -> StoreError {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
            StoreError::from_sqlx(error)
        }
        MigrateError::VersionMissing(found) if found > newest() => {
            StoreError::Newer { found, known: newest() }
        }
        other => StoreError::Schema { why: Arc::from(other.to_string()) },
    }
}

/// Returns an error unless a database has exactly the present schema.
pub(super) async fn require(conn: &mut Conn) -> Result<(), StoreError> {
    let sql = "SELECT coalesce(max(version), 0) AS version FROM _sqlx_migrations";
    let found = match conn.fetch_one(sql, values![]).await {
        Ok(row) => row.int("version")?,
        // No such table: it is somebody else's database, or an empty one.
        Err(StoreError::Refused(_)) => 0,
        Err(error) => return Err(error),
    };
    let known = newest();
    match found {
        _ if found > known => Err(StoreError::Newer { found, known }),
        _ if found < known => Err(StoreError::Older { found, known }),
        _ => Ok(()),
    }
}
