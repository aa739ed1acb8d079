//! Taking work back, and giving dead work another try.

use super::{Job, JobState, LaneId, Queue};
use crate::{
    clock::Millis,
    id::JobId,
    store::{Conn, StoreError, Topic, jobs},
};

/// What became of the wish to cancel a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CancelOutcome {
    /// It had not begun, and never will.
    Cancelled,
    /// It runs; its worker is told, and ends it. Until then its lane is taken.
    Requested,
    /// It was over.
    Ended(JobState),
    Unknown,
}

impl CancelOutcome {
    /// Returns the word for it. Part of the contract.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Cancelled | Self::Ended(JobState::Cancelled) => "cancelled",
            Self::Requested => "cancel_requested",
            Self::Ended(_) => "already_over",
            Self::Unknown => "unknown_job",
        }
    }
}

/// What became of the wish to cancel all of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneCancel {
    /// How many had not begun.
    pub(crate) n_cancelled: u64,
    /// The one that runs, and whose worker is told.
    pub(crate) running: Option<JobId>,
}

/// What became of the wish to try a dead job again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryOutcome {
    /// It is at the end of its lane.
    Retried(JobState),
    /// It is not dead.
    NotDead(JobState),
    Unknown,
}

impl Queue {
    /// Cancels a job. One that runs goes on until its worker ends it, so that
    /// the next of its lane does not begin beside it.
    pub(crate) async fn cancel(
        &self,
        id: JobId,
        reason: &str,
        now: Millis,
    ) -> Result<CancelOutcome, StoreError> {
        let args = (id, reason.to_owned(), now);
        self.store
            .write_repeatable(args, |conn, (id, reason, now)| {
                Box::pin(cancel(conn, *id, reason, *now))
            })
            .await
    }

    /// Cancels everything in a lane at once, so that nothing of it begins.
    pub(crate) async fn cancel_lane(
        &self,
        lane: &LaneId,
        reason: &str,
        now: Millis,
    ) -> Result<LaneCancel, StoreError> {
        let args = (lane.clone(), reason.to_owned(), now);
        self.store
            .write_repeatable(args, |conn, (lane, reason, now)| {
                Box::pin(cancel_lane(conn, lane, reason, *now))
            })
            .await
    }

    /// Puts a dead job at the end of its lane, with its failures forgotten.
    pub(crate) async fn retry(&self, id: JobId) -> Result<RetryOutcome, StoreError> {
        self.store.write_repeatable(id, |conn, id| Box::pin(retry(conn, *id))).await
    }
}

/// Cancels a job within a write.
pub(crate) async fn cancel(
    conn: &mut Conn,
    id: JobId,
    reason: &str,
    now: Millis,
) -> Result<CancelOutcome, StoreError> {
    let Some(Job { lane, .. }) = jobs::find(conn, id).await? else {
        return Ok(CancelOutcome::Unknown);
    };
    jobs::lock(conn, &lane).await?;
    // A claim does not lock the lane: a job that was ready may run by now, so
    // that this order is the one in which no state is missed.
    let cancelled = JobState::Cancelled;
    if jobs::end_not_begun(conn, &lane, &[id], cancelled, reason, now).await? > 0 {
        if jobs::promote(conn, &lane).await? {
            conn.wake(Topic::Jobs);
        }
        return Ok(CancelOutcome::Cancelled);
    }
    if jobs::request_cancel(conn, id, reason).await? {
        conn.wake(Topic::Wishes);
        return Ok(CancelOutcome::Requested);
    }
    Ok(match jobs::find(conn, id).await? {
        Some(job) => CancelOutcome::Ended(job.state),
        None => CancelOutcome::Unknown,
    })
}

/// Cancels everything in a lane within a write.
pub(crate) async fn cancel_lane(
    conn: &mut Conn,
    lane: &LaneId,
    reason: &str,
    now: Millis,
) -> Result<LaneCancel, StoreError> {
    jobs::lock(conn, lane).await?;
    let n_cancelled = jobs::cancel_lane_not_begun(conn, lane, reason, now).await?;
    let running = jobs::running_in(conn, lane).await?;
    if let Some(id) = running {
        jobs::request_cancel(conn, id, reason).await?;
        conn.wake(Topic::Wishes);
    }
    Ok(LaneCancel { n_cancelled, running })
}

async fn retry(conn: &mut Conn, id: JobId) -> Result<RetryOutcome, StoreError> {
    let Some(Job { lane, .. }) = jobs::find(conn, id).await? else {
        return Ok(RetryOutcome::Unknown);
    };
    let seq = jobs::take_place(conn, &lane).await?;
    match jobs::find(conn, id).await? {
        Some(Job { state: JobState::Dead, .. }) => {}
        Some(job) => return Ok(RetryOutcome::NotDead(job.state)),
        None => return Ok(RetryOutcome::Unknown),
    }
    let state = jobs::revive(conn, id, &lane, seq).await?;
    conn.wake(Topic::Jobs);
    Ok(RetryOutcome::Retried(state))
}
