//! Looking at the queue.

use serde::Serialize;

use super::{Job, JobState, Queue};
use crate::{
    clock::Millis,
    id::JobId,
    store::{StoreError, jobs},
};

/// The queue in numbers. As JSON it is part of the contract.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Stats {
    pub(crate) waiting: u64,
    pub(crate) ready: u64,
    pub(crate) running: u64,
    pub(crate) done: u64,
    pub(crate) dead: u64,
    pub(crate) cancelled: u64,
    /// Since when the first of those waits that have not begun.
    pub(crate) oldest_at: Option<Millis>,
}

impl Queue {
    /// Returns a job.
    pub(crate) async fn find(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        self.store.read(id, |conn, id| Box::pin(jobs::find(conn, *id))).await
    }

    /// Lists jobs, newest first, beginning after one of them.
    pub(crate) async fn list(
        &self,
        state: Option<JobState>,
        after: Option<JobId>,
        limit: u32,
    ) -> Result<Vec<Job>, StoreError> {
        self.store
            .read((state, after, limit), |conn, (state, after, limit)| {
                Box::pin(async move {
                    match state {
                        Some(state) => jobs::list_in(conn, *state, *after, *limit).await,
                        None => jobs::list(conn, *after, *limit).await,
                    }
                })
            })
            .await
    }

    /// Counts.
    pub(crate) async fn stats(&self) -> Result<Stats, StoreError> {
        self.store
            .read((), |conn, ()| {
                Box::pin(async move {
                    let mut stats = Stats::default();
                    for (state, n_jobs) in jobs::count_by_state(conn).await? {
                        *stats.of(state) = n_jobs;
                    }
                    stats.oldest_at = jobs::oldest_not_begun(conn).await?;
                    Ok(stats)
                })
            })
            .await
    }
}

impl Stats {
    fn of(&mut self, state: JobState) -> &mut u64 {
        match state {
            JobState::Waiting => &mut self.waiting,
            JobState::Ready => &mut self.ready,
            JobState::Running => &mut self.running,
            JobState::Done => &mut self.done,
            JobState::Dead => &mut self.dead,
            JobState::Cancelled => &mut self.cancelled,
        }
    }
}
