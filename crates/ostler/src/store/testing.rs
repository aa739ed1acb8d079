//! Stores for tests: a new one for each test, on both databases. PostgreSQL is
//! there if `OSTLER_TEST_POSTGRES` names a server where databases may be made.

use std::{
    future::{self, Future},
    path::PathBuf,
    str::FromStr as _,
    sync::OnceLock,
    time::Duration,
};

use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _,
    postgres::{PgConnectOptions, PgConnection},
};
use tempfile::TempDir;
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    BoxFuture, Conn, Location, READERS, Store, StoreError, Use,
    db::{Dialect, Row, values},
};
use crate::{
    clock::Millis,
    id::{ConversationId, OutboxId, ProjectId},
};

/// A place for a store of a test's own.
pub(crate) struct Place {
    pub(crate) location: Location,
    folder: Option<TempDir>,
    server: Option<(PgConnectOptions, String)>,
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::Builder::new().prefix("ostler-store").tempdir().unwrap();
        let location = Location::in_folder(folder.path());
        Self { location, folder: Some(folder), server: None }
    }

    /// Makes a database on the server, if there is one.
    pub(crate) async fn postgres() -> Option<Self> {
        let server = PgConnectOptions::from_str(server()?).unwrap();
        let name = format!("ostler_test_{}", uuid::Uuid::now_v7().simple());
        let mut admin = connect(&server).await;
        admin.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
        admin.close().await.unwrap();
        let location = Location::Postgres(Box::new(server.clone().database(&name)));
        Some(Self { location, folder: None, server: Some((server, name)) })
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.location, Use::Gateway).await.unwrap()
    }

    /// Returns the file of a SQLite store.
    pub(crate) fn file(&self) -> PathBuf {
        match &self.location {
            Location::Sqlite(path) => path.clone(),
            Location::Postgres(_) => panic!("this store is no file"),
        }
    }

    pub(crate) async fn remove(self) {
        if let Some((server, name)) = self.server {
            let mut admin = connect(&server).await;
            let sql = format!("DROP DATABASE {name} WITH (FORCE)");
            admin.execute(AssertSqlSafe(sql)).await.unwrap();
            admin.close().await.unwrap();
        }
        drop(self.folder);
    }
}

async fn connect(server: &PgConnectOptions) -> PgConnection {
    server.connect().await.expect("OSTLER_TEST_POSTGRES names a server that answers")
}

/// Returns the server for tests.
fn server() -> Option<&'static str> {
    static SERVER: OnceLock<Option<String>> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        #[expect(clippy::disallowed_methods, reason = "how tests are told of a server")]
        let (server, ci) = (std::env::var("OSTLER_TEST_POSTGRES"), std::env::var("CI"));
        assert!(
            server.is_ok() || ci.as_deref() != Ok("true"),
            "OSTLER_TEST_POSTGRES is not set; run this below scripts/lib/with-postgres"
        );
        server.ok().filter(|server| !server.is_empty())
    });
    server.as_deref()
}

/// Runs a test on a SQLite store.
pub(crate) async fn on_sqlite<F: Future<Output = ()>>(test: impl FnOnce(Store) -> F) {
    let place = Place::sqlite();
    let store = place.open().await;
    test(store.clone()).await;
    store.close().await;
    place.remove().await;
}

/// Runs a test on a PostgreSQL store, if there is a server.
pub(crate) async fn on_postgres<F: Future<Output = ()>>(test: impl FnOnce(Store) -> F) {
    match Place::postgres().await {
        Some(place) => {
            let store = place.open().await;
            test(store.clone()).await;
            store.close().await;
            place.remove().await;
        }
        None => eprintln!("skipped: OSTLER_TEST_POSTGRES names no server"),
    }
}

/// Makes a test on each database of every `async fn name(store: Store)`.
macro_rules! on_both {
    ($($(#[$meta:meta])* async fn $name:ident($store:ident: Store) $body:block)*) => {$(
        $(#[$meta])*
        mod $name {
            use super::*;

            async fn test($store: crate::store::Store) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite() {
                crate::store::testing::on_sqlite(|store| Box::pin(test(store))).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_postgres() {
                crate::store::testing::on_postgres(|store| Box::pin(test(store))).await;
            }
        }
    )*};
}
pub(crate) use on_both;

impl Store {
    /// Writes, where nothing is expected to fail.
    pub(crate) async fn must<A, T, F>(&self, args: A, body: F) -> T
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'a> Fn(&'a mut Conn, &'a A) -> BoxFuture<'a, Result<T, StoreError>>
            + Send
            + Sync
            + 'static,
    {
        self.write(args, body).await.unwrap()
    }
}

/// Has a SQLite store tell nobody anything until what is returned is dropped.
pub(crate) async fn stall(store: &Store) -> JoinSet<()> {
    let mut reads = JoinSet::new();
    let (sender, mut begun) = mpsc::channel(1);
    for _ in 0..READERS {
        let (store, sender) = (store.clone(), sender.clone());
        reads.spawn(async move {
            let read = store.read(sender, |_, sender| {
                Box::pin(async {
                    sender.send(()).await.unwrap();
                    future::pending().await
                })
            });
            read.await.unwrap_or_else(|error: StoreError| panic!("{error}"))
        });
    }
    for _ in 0..READERS {
        begun.recv().await.unwrap();
    }
    reads
}

/// A message of the outbox, as tests look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutboxRow {
    pub(crate) id: OutboxId,
    pub(crate) state: String,
    pub(crate) attempt: i64,
    pub(crate) is_unsure: bool,
    pub(crate) next_at: Millis,
    pub(crate) reason: Option<String>,
}

/// Returns all messages of the outbox, by id.
pub(crate) async fn outbox_rows(store: &Store) -> Vec<OutboxRow> {
    let rows: Result<_, StoreError> = store
        .read((), |conn, ()| {
            Box::pin(async move { conn.fetch_all("SELECT * FROM outbox ORDER BY id", &[]).await })
        })
        .await;
    let row = |row: &Row| {
        Ok::<_, StoreError>(OutboxRow {
            id: row.parsed("id")?,
            state: row.text("state")?,
            attempt: row.int("attempt")?,
            is_unsure: row.is("is_unsure")?,
            next_at: row.millis("next_at")?,
            reason: row.opt_text("reason")?,
        })
    };
    rows.unwrap().iter().map(|found| row(found).unwrap()).collect()
}

/// Takes the outbox away, so that everything that needs it fails.
pub(crate) async fn hide_outbox(store: &Store) {
    alter(store, "ALTER TABLE outbox RENAME TO outbox_away").await;
}

/// Brings it back.
pub(crate) async fn show_outbox(store: &Store) {
    alter(store, "ALTER TABLE outbox_away RENAME TO outbox").await;
}

async fn alter(store: &Store, sql: &'static str) {
    let altered =
        store.must(sql, |conn, sql| Box::pin(async move { conn.execute(*sql, &[]).await }));
    altered.await;
}

/// Empties the queue, so that one store serves many runs of a property.
pub(crate) async fn clear_queue(store: &Store) {
    store
        .must((), |conn, ()| {
            Box::pin(async move {
                for sql in ["DELETE FROM inbox", "DELETE FROM jobs", "DELETE FROM lanes"] {
                    conn.execute(sql, &[]).await?;
                }
                Ok(())
            })
        })
        .await;
}

/// Makes a project one that is gone.
pub(crate) async fn delete_project(store: &Store, id: ProjectId) {
    store
        .must((id, Millis::now()), |conn, (id, now)| {
            Box::pin(async move {
                let sql = "UPDATE projects SET deleted_at = $2 WHERE id = $1";
                conn.execute(sql, values![*id, *now]).await.map(drop)
            })
        })
        .await;
}

/// Makes it longer ago that anything was said or done in a conversation.
pub(crate) async fn age(store: &Store, conversation: ConversationId, by: Duration) {
    let then = Millis::now().before(by);
    store
        .must((conversation, then), |conn, (id, then)| {
            Box::pin(async move {
                for sql in [
                    "UPDATE conversations SET last_user_at = $2 WHERE id = $1",
                    "UPDATE turns SET ended_at = $2 WHERE conversation = $1",
                ] {
                    conn.execute(sql, values![*id, *then]).await?;
                }
                Ok(())
            })
        })
        .await;
}

/// Makes every further write about sessions fail for good.
pub(crate) async fn lose_sessions(store: &Store) {
    store
        .must((), |conn, ()| {
            Box::pin(async move { conn.execute("DROP TABLE sessions", &[]).await.map(drop) })
        })
        .await;
}

/// Returns what is to be sent, in the order in which it was put.
pub(crate) async fn replies(store: &Store) -> Vec<serde_json::Value> {
    let rows: Result<Vec<Row>, StoreError> = store
        .read((), |conn, ()| {
            Box::pin(
                async move { conn.fetch_all("SELECT body FROM outbox ORDER BY id", &[]).await },
            )
        })
        .await;
    let body = |row: &Row| serde_json::from_str(&row.text("body").unwrap()).unwrap();
    rows.unwrap().iter().map(body).collect()
}

/// Writes, and returns how the database went about each statement.
pub(crate) async fn plans<A, F>(store: &Store, args: A, body: F) -> Vec<String>
where
    A: Send + Sync + 'static,
    F: for<'a> Fn(&'a mut Conn, &'a A) -> BoxFuture<'a, Result<(), StoreError>>
        + Send
        + Sync
        + 'static,
{
    let explained = store.must((args, body), |conn, (args, body)| {
        Box::pin(async move {
            if conn.dialect() == Dialect::Postgres {
                conn.execute("ANALYZE", &[]).await?;
            }
            conn.plans = Some(Vec::new());
            let done = body(conn, args).await;
            let plans = conn.plans.take();
            done?;
            Ok(plans.unwrap_or_default())
        })
    });
    explained.await
}

/// Revokes every key.
pub(crate) async fn revoke_keys(store: &Store) {
    alter(store, "UPDATE keys SET revoked_at = 1").await;
}

/// Deletes every project.
pub(crate) async fn delete_projects(store: &Store) {
    alter(store, "UPDATE projects SET deleted_at = 1").await;
}
