//! Work in the background that somebody owns: it is asked to stop, waited for,
//! and dropped where it is when its time is up or its owner is gone.

use std::{fmt, time::Duration};

use tokio::time;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

/// Work that runs.
pub(crate) struct Background {
    task: TaskTracker,
    stop: CancellationToken,
    abort: CancellationToken,
    /// Ends work that nobody stopped.
    _guard: DropGuard,
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Background")
    }
}

impl Background {
    /// Starts work, which ends by itself soon after the token that it is given is
    /// cancelled.
    pub(crate) fn start<F>(work: impl FnOnce(CancellationToken) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (task, stop, abort) =
            (TaskTracker::new(), CancellationToken::new(), CancellationToken::new());
        let (work, until) = (work(stop.clone()), abort.clone());
        task.spawn(async move {
            until.run_until_cancelled(work).await;
        });
        task.close();
        let guard = abort.clone().drop_guard();
        Self { task, stop, abort, _guard: guard }
    }

    /// Asks it to stop, and returns when it has. If it has not after this long, it
    /// is dropped; returns whether it ended by itself.
    pub(crate) async fn stop(self, limit: Duration) -> bool {
        self.stop.cancel();
        if time::timeout(limit, self.task.wait()).await.is_ok() {
            return true;
        }
        self.abort.cancel();
        self.task.wait().await;
        false
    }
}

#[cfg(test)]
mod tests {
    use std::future;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_that_stops_when_asked_is_waited_for() {
        let (said, heard) = oneshot::channel();
        let work = Background::start(|stop| async move {
            stop.cancelled().await;
            time::sleep(Duration::from_secs(1)).await;
            said.send(()).unwrap();
        });
        assert!(work.stop(Duration::from_secs(2)).await);
        heard.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_does_not_stop_is_dropped_when_its_time_is_up() {
        let (kept, gone) = oneshot::channel::<()>();
        let work = Background::start(|_| async move {
            let _kept = kept;
            future::pending().await
        });
        assert!(!work.stop(Duration::from_secs(2)).await);
        assert!(gone.await.is_err());
    }

    #[tokio::test]
    async fn work_does_not_outlive_its_owner() {
        let (kept, gone) = oneshot::channel::<()>();
        drop(Background::start(|_| async move {
            let _kept = kept;
            future::pending().await
        }));
        assert!(gone.await.is_err());
    }
}
