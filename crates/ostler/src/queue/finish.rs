//! The end of a job, together with what came of it.

use super::{Job, JobState, Queue, Ticket};
use crate::{
    clock::Millis,
    id::JobId,
    store::{BoxFuture, Conn, StoreError, Topic, WriteError, jobs},
};

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobEnd {
    Done,
    /// It cannot succeed.
    Dead {
        reason: String,
    },
    /// It was stopped because somebody wanted it.
    Cancelled {
        reason: String,
    },
    /// It failed, and may succeed another time. Counts as a failure: the last
    /// one makes it dead.
    Retry {
        not_before: Millis,
        reason: String,
    },
    /// It was interrupted in good order, such as by shutting down, and is to
    /// be done again. Does not count.
    Release,
}

/// Jobs that were answered together with another one of their lane. They are
/// over when it is; if it is put back, they still wait behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) jobs: Vec<JobId>,
    /// How they end.
    pub(crate) state: JobState,
    pub(crate) reason: String,
}

impl Joined {
    /// Returns that none were.
    pub(crate) fn none() -> Self {
        Self { jobs: Vec::new(), state: JobState::Done, reason: String::new() }
    }
}

/// What became of a report of a job's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finished<T> {
    /// The job is now in this state, and what was to be written with it is.
    Now(JobState, T),
    /// The same attempt had ended it before; nothing was written again.
    Before,
    /// The job is not this worker's any more. Nothing was written.
    Lost,
}

impl Queue {
    /// Ends an attempt.
    pub(crate) async fn finish(
        &self,
        ticket: &Ticket,
        end: JobEnd,
        now: Millis,
    ) -> Result<Finished<()>, StoreError> {
        let joined = Joined::none();
        self.finish_with(ticket, end, joined, now, (), |_, _, ()| Box::pin(async { Ok(()) })).await
    }

    /// Ends an attempt with the jobs that joined it, and writes what came of it
    /// in the same transaction: after a crash all of it is there, or nothing.
    ///
    /// `body` is told the state that the job has now, which is not always what
    /// `end` asked for. An error of it undoes everything.
    pub(crate) async fn finish_with<A, T, E, F>(
        &self,
        ticket: &Ticket,
        end: JobEnd,
        joined: Joined,
        now: Millis,
        args: A,
        body: F,
    ) -> Result<Finished<T>, E>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: WriteError,
        F: for<'a> Fn(&'a mut Conn, JobState, &'a A) -> BoxFuture<'a, Result<T, E>>
            + Send
            + Sync
            + 'static,
    {
        let args = (ticket.clone(), end, joined, now, args, body);
        self.store
            .write_repeatable(args, |conn, (ticket, end, joined, now, args, body)| {
                Box::pin(async move {
                    Ok(match finish(conn, ticket, end, joined, *now).await? {
                        Finished::Now(state, ()) => {
                            Finished::Now(state, body(conn, state, args).await?)
                        }
                        Finished::Before => Finished::Before,
                        Finished::Lost => Finished::Lost,
                    })
                })
            })
            .await
    }
}

/// Ends an attempt within a write.
pub(crate) async fn finish(
    conn: &mut Conn,
    ticket: &Ticket,
    end: &JobEnd,
    joined: &Joined,
    now: Millis,
) -> Result<Finished<()>, StoreError> {
    jobs::lock(conn, &ticket.lane).await?;
    let Some(job) = jobs::find(conn, ticket.job).await? else { return Ok(Finished::Lost) };
    if job.attempt != ticket.attempt || job.owner.as_deref() != Some(ticket.owner.as_str()) {
        return Ok(Finished::Lost);
    }
    match job.state {
        JobState::Running => {}
        JobState::Done | JobState::Dead | JobState::Cancelled => return Ok(Finished::Before),
        JobState::Waiting | JobState::Ready => return Ok(Finished::Lost),
    }
    let state = match decide(&job, end) {
        Decision::End(state, reason) => {
            jobs::end(conn, job.id, state, reason, now).await?;
            // Before the next is made ready, which must be none of them.
            let Joined { jobs, state: with, reason } = joined;
            jobs::end_not_begun(conn, &job.lane, jobs, *with, reason, now).await?;
            jobs::promote(conn, &job.lane).await?;
            state
        }
        Decision::PutBack { failures, not_before, reason } => {
            jobs::put_back(conn, job.id, failures, not_before, reason).await?;
            JobState::Ready
        }
    };
    conn.wake(Topic::Jobs);
    Ok(Finished::Now(state, ()))
}

/// What is to be written of an attempt's end.
#[derive(Debug, PartialEq, Eq)]
enum Decision<'a> {
    End(JobState, Option<&'a str>),
    PutBack { failures: i64, not_before: Millis, reason: Option<&'a str> },
}

fn decide<'a>(job: &'a Job, end: &'a JobEnd) -> Decision<'a> {
    match end {
        JobEnd::Done => Decision::End(JobState::Done, None),
        JobEnd::Dead { reason } => Decision::End(JobState::Dead, Some(reason)),
        // Who wanted it may have said why.
        JobEnd::Cancelled { reason } => {
            let said = job.reason.as_deref().filter(|_| job.cancel_requested);
            Decision::End(JobState::Cancelled, Some(said.unwrap_or(reason)))
        }
        // What somebody wanted to end is not begun again.
        JobEnd::Retry { .. } | JobEnd::Release if job.cancel_requested => {
            Decision::End(JobState::Cancelled, job.reason.as_deref())
        }
        JobEnd::Retry { reason, .. } if job.failures + 1 >= job.max_failures => {
            Decision::End(JobState::Dead, Some(reason))
        }
        JobEnd::Retry { not_before, reason } => Decision::PutBack {
            failures: job.failures + 1,
            not_before: *not_before,
            reason: Some(reason),
        },
        JobEnd::Release => {
            Decision::PutBack { failures: job.failures, not_before: Millis(0), reason: None }
        }
    }
}
