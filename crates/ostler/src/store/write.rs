//! A write as data: what to do within a transaction, and where its result goes.
//! It can be done again from the start, because it only borrows what it needs.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

use tokio::sync::oneshot;

use super::{BoxFuture, Conn, StoreError, WriteError};

/// Does a write once, within a transaction that the caller opened and will
/// commit if this returns a value. A panic and a failed statement that the
/// write did not mind are errors of it.
pub(super) async fn perform<A, T, E, F>(conn: &mut Conn, args: &A, body: &F) -> Result<T, E>
where
    E: WriteError,
    F: for<'a> Fn(&'a mut Conn, &'a A) -> BoxFuture<'a, Result<T, E>>,
{
    conn.failed = None;
    // The call is within the future, for it may panic as well.
    let done = caught(async { body(&mut *conn, args).await }).await;
    let value = done.unwrap_or_else(|| Err(StoreError::Panicked.into()))?;
    match conn.failed.take() {
        Some(error) => Err(error.into()),
        None => Ok(value),
    }
}

/// Runs a future, and returns nothing if it panics.
async fn caught<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}

/// What becomes of the changes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Keep,
    Undo,
}

/// A write that waits for its transaction, whatever its types.
pub(super) trait Pending: Send {
    /// Does it, and keeps the result.
    fn run<'a>(&'a mut self, conn: &'a mut Conn) -> BoxFuture<'a, Verdict>;

    /// Hands the result over, now that the fate of the transaction is known.
    fn settle(self: Box<Self>, commit: Result<(), StoreError>);
}

/// A write of certain types.
pub(super) struct Waiting<A, T, E, F> {
    args: A,
    body: F,
    outcome: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<A, T, E, F> Waiting<A, T, E, F> {
    pub(super) fn new(args: A, body: F, reply: oneshot::Sender<Result<T, E>>) -> Self {
        Self { args, body, outcome: None, reply }
    }
}

impl<A, T, E, F> Pending for Waiting<A, T, E, F>
where
    A: Send + Sync,
    T: Send,
    E: WriteError,
    F: for<'a> Fn(&'a mut Conn, &'a A) -> BoxFuture<'a, Result<T, E>> + Send + Sync,
{
    fn run<'a>(&'a mut self, conn: &'a mut Conn) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let woken = conn.woken;
            let outcome = perform(conn, &self.args, &self.body).await;
            let verdict = if outcome.is_ok() { Verdict::Keep } else { Verdict::Undo };
            if verdict == Verdict::Undo {
                conn.woken = woken;
            }
            self.outcome = Some(outcome);
            verdict
        })
    }

    fn settle(self: Box<Self>, commit: Result<(), StoreError>) {
        let outcome = match (commit, self.outcome) {
            (_, Some(Err(error))) => Err(error),
            (Ok(()), Some(Ok(value))) => Ok(value),
            (Err(error), _) => Err(error.into()),
            (Ok(()), None) => Err(StoreError::Closed.into()),
        };
        // Whoever asked may be gone; what was written stays.
        drop(self.reply.send(outcome));
    }
}
