//! The one that writes to a SQLite store. Writes that arrive while a commit is
//! under way share the next one, so that many are made durable by one flush of
//! the disk. One that fails undoes nothing of the others: they are done again,
//! then each with a savepoint of its own. Nobody gets an answer before the commit.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Conn, StoreError,
    db::values,
    lock::StoreLock,
    wakeups::{Hub, Topics},
    write::{Pending, Verdict},
};

/// How many writes may wait. Whoever comes then waits before the door.
pub(super) const QUEUE: usize = 1024;
/// How many writes share a commit at most, so that none waits long for it.
const BATCH: usize = 256;

/// Writes until the store is closed, then what was accepted before. Holds the
/// lock of the store, which must not be free before the last commit.
pub(super) async fn work(
    mut conn: Conn,
    mut queue: mpsc::Receiver<Box<dyn Pending>>,
    hub: Hub,
    stop: CancellationToken,
    lock: Option<StoreLock>,
) {
    let mut is_closing = false;
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        // Both are cancel-safe: a write is in the queue or in the batch.
        let n_taken = tokio::select! {
            n_taken = queue.recv_many(&mut batch, BATCH) => n_taken,
            () = stop.cancelled(), if !is_closing => {
                is_closing = true;
                queue.close();
                continue;
            }
        };
        if n_taken == 0 {
            break;
        }
        write(&mut conn, &mut batch, &hub).await;
    }
    drop(conn);
    drop(lock);
}

/// Writes a batch. If it breaks as a whole, as a full disk does, each write
/// is tried alone: what still fits is not to fail for what does not.
async fn write(conn: &mut Conn, batch: &mut Vec<Box<dyn Pending>>, hub: &Hub) {
    let outcome = commit(conn, batch).await;
    let is_shared = match &outcome {
        Ok(()) | Err(StoreError::Unclear) => true,
        // A lock that was not to be had for one is not to be had for the others,
        // and each would wait for it anew.
        Err(error) => error.is_passing() || batch.len() == 1,
    };
    if is_shared {
        hub.wake(std::mem::take(&mut conn.woken));
        for pending in batch.drain(..) {
            pending.settle(outcome.clone());
        }
        return;
    }
    for pending in batch.drain(..) {
        let mut alone = [pending];
        let outcome = commit(conn, &mut alone).await;
        hub.wake(std::mem::take(&mut conn.woken));
        for pending in alone {
            pending.settle(outcome.clone());
        }
    }
}

/// Runs writes in one transaction. An error undoes all of them.
async fn commit(conn: &mut Conn, batch: &mut [Box<dyn Pending>]) -> Result<(), StoreError> {
    match attempt(conn, batch, Savepoints::None).await? {
        Verdict::Keep => Ok(()),
        // It has its own error, and nobody else was undone with it.
        Verdict::Undo if batch.len() == 1 => Ok(()),
        Verdict::Undo => attempt(conn, batch, Savepoints::Each).await.map(drop),
    }
}

/// Whether the writes of a transaction can be undone one by one. Nearly always
/// all of them succeed, and the savepoints would be half of the statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Savepoints {
    None,
    Each,
}

/// Runs writes in one transaction, which is gone if this does not return `Keep`.
async fn attempt(
    conn: &mut Conn,
    batch: &mut [Box<dyn Pending>],
    savepoints: Savepoints,
) -> Result<Verdict, StoreError> {
    let outcome = transact(conn, batch, savepoints).await;
    if !matches!(outcome, Ok(Verdict::Keep)) {
        conn.woken = Topics::default();
        // SQLite may have rolled back by itself, which makes this an error.
        conn.execute("ROLLBACK", values![]).await.ok();
    }
    outcome
}

async fn transact(
    conn: &mut Conn,
    batch: &mut [Box<dyn Pending>],
    savepoints: Savepoints,
) -> Result<Verdict, StoreError> {
    conn.execute("BEGIN IMMEDIATE", values![]).await?;
    for pending in batch {
        match savepoints {
            Savepoints::None => {
                if pending.run(conn).await == Verdict::Undo {
                    return Ok(Verdict::Undo);
                }
            }
            Savepoints::Each => {
                conn.execute("SAVEPOINT one", values![]).await?;
                if pending.run(conn).await == Verdict::Undo {
                    conn.execute("ROLLBACK TO one", values![]).await?;
                }
                // Fails if the transaction is gone; then nothing in it counts.
                conn.execute("RELEASE one", values![]).await?;
            }
        }
    }
    match conn.execute("COMMIT", values![]).await {
        Ok(_) => Ok(Verdict::Keep),
        // What reached the disk before it failed may be found there at the next start.
        Err(StoreError::Unavailable(_)) => Err(StoreError::Unclear),
        Err(error) => Err(error),
    }
}
