//! What outlives a process: conversations, jobs, turns, events, messages on
//! their way out. The only place that knows SQL, one file a table.
//!
//! Two databases, one behaviour. **SQLite** is a file beside which a lock makes
//! sure that one gateway uses it; all writes go through one task (`writer`)
//! that commits them in groups. **PostgreSQL** may be shared by several
//! gateways; each write is a transaction (`postgres`). On both, a write that
//! was acknowledged has been flushed to disk, and a write that failed left
//! nothing behind, unless the error is [`StoreError::Unclear`].
//!
//! The functions of the tables work on a [`Conn`], so that several become one
//! transaction: `store.write(args, |conn, args| Box::pin(async move { … }))`.
//! They are given the time and never ask for it. Nothing is ordered by it.

pub(crate) mod answered_requests;
pub(crate) mod audit;
mod backup;
mod check;
pub(crate) mod choice_numbers;
pub(crate) mod choices;
pub(crate) mod commands;
pub(crate) mod contacts;
pub(crate) mod conversations;
mod db;
pub(crate) mod duties;
mod error;
pub(crate) mod events;
pub(crate) mod jobs;
pub(crate) mod keys;
mod location;
mod lock;
pub(crate) mod messages;
mod migrations;
pub(crate) mod numbers;
pub(crate) mod outbox;
pub(crate) mod overheard;
pub(crate) mod pairings;
pub(crate) mod permissions;
mod postgres;
pub(crate) mod posts;
pub(crate) mod projects;
mod retention;
pub(crate) mod schedules;
pub(crate) mod sessions;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub(crate) mod turns;
mod wakeups;
pub(crate) mod webhooks;
mod write;
mod writer;

use std::{fmt, fs, future::Future, os::unix::fs::DirBuilderExt as _, path::Path, pin::Pin};
use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use sqlx::{
    Connection as _, PgConnection, PgPool, SqlitePool,
    pool::PoolOptions,
    postgres::PgConnectOptions,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::{
    sync::{mpsc, oneshot},
    time,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

pub(crate) use self::{
    backup::BackupError,
    check::Problem,
    db::Conn,
    error::{StoreError, WriteError},
    location::{Location, LocationError},
    retention::Keep,
    wakeups::{Topic, Wakeups, Woken},
};
use self::{
    db::Link,
    lock::StoreLock,
    postgres::Repeat,
    wakeups::Hub,
    write::{Pending, Waiting},
};

/// A future of any type, as writes and reads return it.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How long a write may take with everything that is before it. What takes
/// longer is an error, so that nobody waits for a disk that hangs.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long SQLite waits for another program that has the file locked.
const BUSY: Duration = Duration::from_secs(5);
/// How long a connection may take to be had.
const CONNECT: Duration = Duration::from_secs(5);
/// How many readers a SQLite store has.
const READERS: u32 = 4;
/// How many connections to a PostgreSQL server one gateway has, beside the
/// one that hears notifications.
const CONNECTIONS: u32 = 16;
/// How long a connection that was given back is taken to be alive.
const FRESH: Duration = Duration::from_millis(100);
/// How long those who wait trust that no wake-up means nothing to do.
const POLL: Duration = Duration::from_secs(5);

/// What a store is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// By a gateway: takes the lock, and brings the schema up to date.
    Gateway,
    /// By a command that changes something while a gateway runs: without the
    /// lock, and only with the schema of this program.
    Beside,
    /// By a command that only looks: the same, and nothing can be written.
    Look,
}

/// An open store. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    location: Location,
    database: Database,
    hub: Hub,
    /// Where it is noted how long writes take.
    write_time: OnceLock<metrics::Histogram>,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Ends the tasks of a store that nobody closed.
    _guard: DropGuard,
}

enum Database {
    Sqlite { writer: mpsc::Sender<Box<dyn Pending>>, readers: SqlitePool },
    Postgres(PgPool),
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.shared.location)
    }
}

impl Store {
    /// Opens a store, and makes it if a gateway opens it for the first time.
    pub(crate) async fn open(location: &Location, purpose: Use) -> Result<Self, StoreError> {
        let tasks = TaskTracker::new();
        let stop = CancellationToken::new();
        let (database, hub) = match location {
            Location::Sqlite(path) => open_sqlite(path, purpose, &tasks, &stop).await?,
            Location::Postgres(options) => open_postgres(options, purpose, &tasks, &stop).await?,
        };
        if purpose == Use::Look {
            stop.cancel();
        }
        let guard = stop.clone().drop_guard();
        let location = location.clone();
        let write_time = OnceLock::new();
        let shared = Shared { location, database, hub, write_time, tasks, stop, _guard: guard };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns where it is.
    pub(crate) fn location(&self) -> &Location {
        &self.shared.location
    }

    /// Notes from now on how long writes take. The first that asks is told.
    pub(crate) fn time_writes(&self, write_time: metrics::Histogram) {
        self.shared.write_time.set(write_time).ok();
    }

    /// Does a write in one transaction, and returns when it is durable. It may
    /// be started several times, but takes effect at most once.
    ///
    /// The body does nothing but use its connection: on SQLite everybody else
    /// waits for it. An error of it, or of any statement in it, undoes all of
    /// it. Dropping the future does not: the write happens or fails unheard.
    pub(crate) async fn write<A, T, E, F>(&self, args: A, body: F) -> Result<T, E>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: WriteError,
        F: for<'a> Fn(&'a mut Conn, &'a A) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    {
        self.write_as(Repeat::Unsafe, args, body).await
    }

    /// Does a write that is the same done twice as done once. So it is tried
    /// again also when a connection broke during the commit.
    pub(crate) async fn write_repeatable<A, T, E, F>(&self, args: A, body: F) -> Result<T, E>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: WriteError,
        F: for<'a> Fn(&'a mut Conn, &'a A) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    {
        self.write_as(Repeat::Safe, args, body).await
    }

    async fn write_as<A, T, E, F>(&self, repeat: Repeat, args: A, body: F) -> Result<T, E>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: WriteError,
        F: for<'a> Fn(&'a mut Conn, &'a A) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let begun = Instant::now();
        let asked = async {
            match &self.shared.database {
                Database::Sqlite { writer, .. } => {
                    let waiting = Waiting::new(args, body, reply);
                    writer.send(Box::new(waiting)).await.map_err(|_| StoreError::Closed)?;
                }
                Database::Postgres(pool) => {
                    if self.shared.stop.is_cancelled() {
                        return Err(StoreError::Closed.into());
                    }
                    let (pool, hub) = (pool.clone(), self.shared.hub.clone());
                    // A task of its own, for a transaction must not be left half-way.
                    self.shared.tasks.spawn(async move {
                        let outcome = postgres::write(&pool, &hub, repeat, &args, &body).await;
                        drop(reply.send(outcome));
                    });
                }
            }
            answer.await.unwrap_or_else(|_| Err(StoreError::Closed.into()))
        };
        let outcome = time::timeout(PATIENCE, asked).await;
        if let Some(write_time) = self.shared.write_time.get() {
            write_time.record(begun.elapsed());
        }
        match outcome {
            Ok(outcome) => outcome,
            Err(_) => Err(StoreError::Unclear.into()),
        }
    }

    /// Reads. Each statement sees what was committed before it began.
    pub(crate) async fn read<A, T, E, F>(&self, args: A, body: F) -> Result<T, E>
    where
        E: WriteError,
        F: for<'a> Fn(&'a mut Conn, &'a A) -> BoxFuture<'a, Result<T, E>>,
    {
        match time::timeout(PATIENCE, self.read_patiently(args, body)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(StoreError::from_sqlx(sqlx::Error::PoolTimedOut).into()),
        }
    }

    /// Reads for as long as it takes, for commands that look at everything.
    async fn read_patiently<A, T, E, F>(&self, args: A, body: F) -> Result<T, E>
    where
        E: WriteError,
        F: for<'a> Fn(&'a mut Conn, &'a A) -> BoxFuture<'a, Result<T, E>>,
    {
        let link = match &self.shared.database {
            Database::Sqlite { readers, .. } => readers.acquire().await.map(Link::Sqlite),
            Database::Postgres(pool) => pool.acquire().await.map(Link::Postgres),
        };
        let mut conn = Conn::new(link.map_err(StoreError::from_sqlx)?);
        body(&mut conn, &args).await
    }

    /// Subscribes to what may have changed. To miss nothing, subscribe before
    /// the first look, and look after each wait.
    pub(crate) fn wakeups(&self, topic: Topic) -> Wakeups {
        self.shared.hub.subscribe(topic, POLL)
    }

    /// Writes what was accepted, takes nothing more, and gives the store free.
    pub(crate) async fn close(&self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        match &self.shared.database {
            Database::Sqlite { readers, .. } => readers.close().await,
            Database::Postgres(pool) => pool.close().await,
        }
    }
}

/// How this program opens a SQLite file.
fn sqlite_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        // With less, a power cut could undo what was acknowledged.
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY)
        // In pages. A checkpoint writes a page once however often it changed since
        // the last one, so that rarer ones write less.
        .pragma("wal_autocheckpoint", "4000")
        .pragma("journal_size_limit", "67108864")
}

async fn open_sqlite(
    path: &Path,
    purpose: Use,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(Database, Hub), StoreError> {
    let hub = Hub::new();
    let (sender, queue) = mpsc::channel(writer::QUEUE);
    let lock = match purpose {
        Use::Gateway => {
            let folder = path.parent().unwrap_or(Path::new("/"));
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(StoreError::file("make the folder", folder))?;
            Some(StoreLock::take(path)?)
        }
        Use::Beside | Use::Look if !path.exists() => {
            return Err(StoreError::Missing { path: path.to_owned() });
        }
        Use::Beside | Use::Look => None,
    };
    if purpose != Use::Look {
        let options = sqlite_options(path)
            .journal_mode(SqliteJournalMode::Wal)
            .create_if_missing(purpose == Use::Gateway);
        let pool = sqlite_pool(1).connect_lazy_with(options);
        let mut link = pool.acquire().await.map_err(StoreError::from_sqlx)?;
        if purpose == Use::Gateway {
            migrations::run(&mut *link).await?;
        }
        let conn = Conn::new(Link::Sqlite(link));
        tasks.spawn(writer::work(conn, queue, hub.clone(), stop.clone(), lock));
    }
    let readers = sqlite_pool(READERS).connect_lazy_with(sqlite_options(path).read_only(true));
    let link = readers.acquire().await.map_err(StoreError::from_sqlx)?;
    migrations::require(&mut Conn::new(Link::Sqlite(link))).await?;
    Ok((Database::Sqlite { writer: sender, readers }, hub))
}

/// A pool whose connections stay: a SQLite connection costs nothing to keep.
fn sqlite_pool(connections: u32) -> SqlitePoolOptions {
    PoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(CONNECT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}

async fn open_postgres(
    options: &PgConnectOptions,
    purpose: Use,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(Database, Hub), StoreError> {
    let pool = PoolOptions::new()
        // One more, which hears notifications.
        .max_connections(CONNECTIONS + 1)
        .acquire_timeout(CONNECT)
        .after_connect(move |conn, _| {
            Box::pin(async move {
                make_durable(conn).await?;
                if purpose == Use::Gateway { limit_waits(conn).await } else { Ok(()) }
            })
        })
        .test_before_acquire(false)
        .before_acquire(|conn: &mut PgConnection, meta| {
            Box::pin(async move {
                // What was used a moment ago is hardly dead, and to ask costs a round trip.
                Ok(meta.idle_for < FRESH || conn.ping().await.is_ok())
            })
        })
        .connect_lazy_with(options.clone().application_name("ostler"));
    let mut link = pool.acquire().await.map_err(StoreError::from_sqlx)?;
    if purpose == Use::Gateway {
        migrations::run(&mut *link).await?;
    }
    migrations::require(&mut Conn::new(Link::Postgres(link))).await?;
    if purpose == Use::Look {
        return Ok((Database::Postgres(pool), Hub::new()));
    }
    let (hub, abroad) = Hub::with_others();
    tasks.spawn(wakeups::tell(pool.clone(), Arc::clone(&abroad), stop.clone()));
    if purpose == Use::Gateway {
        tasks.spawn(wakeups::hear(pool.clone(), hub.clone(), abroad, stop.clone()));
    }
    Ok((Database::Postgres(pool), hub))
}

/// Sees to it that a commit is flushed: a server may be set up to acknowledge
/// what it could still lose.
async fn make_durable(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    let flush = "SELECT set_config('synchronous_commit', 'on', false) \
                 WHERE current_setting('synchronous_commit') = 'off'";
    sqlx::query(flush).execute(conn).await.map(drop)
}

/// Sees to it that nobody waits for long for a gateway that froze in the middle
/// of a transaction. Shorter than [`PATIENCE`], so that it is the server who says no.
async fn limit_waits(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    let limits = "SELECT set_config('idle_in_transaction_session_timeout', '15s', false), \
                         set_config('lock_timeout', '20s', false)";
    sqlx::query(limits).execute(conn).await.map(drop)
}
