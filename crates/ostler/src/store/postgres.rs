//! Writes to PostgreSQL: each is a transaction of its own, and the server puts
//! their commits together. What certainly did not happen is tried again a few
//! times; what may have happened only if it may happen twice.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time;

use super::{
    BoxFuture, Conn, StoreError, WriteError,
    db::{Link, values},
    wakeups::Hub,
    write::perform,
};

/// How often a write is tried, and how long after the first failure.
const TRIES: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Whether a write that may have happened may be done again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Doing it twice is the same as once.
    Safe,
    Unsafe,
}

/// How a try failed.
struct Failure<E> {
    error: E,
    may_try_again: bool,
}

/// Does a write in a transaction.
pub(super) async fn write<A, T, E, F>(
    pool: &PgPool,
    hub: &Hub,
    repeat: Repeat,
    args: &A,
    body: &F,
) -> Result<T, E>
where
    E: WriteError,
    F: for<'a> Fn(&'a mut Conn, &'a A) -> BoxFuture<'a, Result<T, E>>,
{
    let mut pause = FIRST_PAUSE;
    let mut n_tries = 1;
    loop {
        match attempt(pool, hub, repeat, args, body).await {
            Ok(value) => return Ok(value),
            Err(failure) if failure.may_try_again && n_tries < TRIES => {
                time::sleep(pause).await;
                pause *= 2;
                n_tries += 1;
            }
            Err(failure) => return Err(failure.error),
        }
    }
}

async fn attempt<A, T, E, F>(
    pool: &PgPool,
    hub: &Hub,
    repeat: Repeat,
    args: &A,
    body: &F,
) -> Result<T, Failure<E>>
where
    E: WriteError,
    F: for<'a> Fn(&'a mut Conn, &'a A) -> BoxFuture<'a, Result<T, E>>,
{
    let link = pool.acquire().await.map_err(|error| undone(StoreError::from_sqlx(error)))?;
    let mut conn = Conn::new(Link::Postgres(link));
    let begun = conn.execute("BEGIN", values![]).await;
    if let Err(error) = begun {
        discard(conn);
        return Err(undone(error));
    }
    let value = match perform(&mut conn, args, body).await {
        Ok(value) => value,
        Err(error) => {
            if conn.execute("ROLLBACK", values![]).await.is_err() {
                discard(conn);
            }
            let may_try_again = error.store_error().is_some_and(StoreError::is_passing);
            return Err(Failure { error, may_try_again });
        }
    };
    let committed = conn.execute("COMMIT", values![]).await;
    let woken = conn.woken;
    match committed {
        Ok(_) => {
            hub.wake(woken);
            Ok(value)
        }
        Err(error) => {
            discard(conn);
            if was_refused(&error) {
                return Err(undone(error));
            }
            // Others are woken in case it happened.
            hub.wake(woken);
            let may_try_again = repeat == Repeat::Safe;
            Err(Failure { error: StoreError::Unclear.into(), may_try_again })
        }
    }
}

/// A failure that left nothing behind.
fn undone<E: WriteError>(error: StoreError) -> Failure<E> {
    Failure { may_try_again: error.is_passing(), error: error.into() }
}

/// Returns whether the server itself said that a commit did not happen.
fn was_refused(error: &StoreError) -> bool {
    // Class 57 is a server that is going down, perhaps after the commit.
    error.code().is_some_and(|code| !code.starts_with("57"))
}

/// Closes a connection whose state is not known, instead of giving it back.
fn discard(conn: Conn) {
    if let Link::Postgres(mut link) = conn.link {
        link.close_on_drop();
    }
}
