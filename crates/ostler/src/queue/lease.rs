//! Giving work to somebody, for as long as he says that he is at it.

use std::{fmt, time::Duration};

use super::{Job, JobState, LaneId, Queue};
use crate::{
    clock::Millis,
    id::JobId,
    store::{
        BoxFuture, Conn, Location, StoreError, Topic, WriteError,
        jobs::{self, Renewed},
    },
};

/// How many expired leases are dealt with at once.
const BATCH: u32 = 100;
/// Why a job failed whose worker was not heard of any more.
const EXPIRED: &str = "its gateway stopped or was not heard of in time";

/// Who works: a gateway, by a name that no other has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkerId(String);

impl WorkerId {
    pub(crate) fn new(name: impl fmt::Display) -> Self {
        Self(name.to_string())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a worker shows to say something about a job: which attempt he is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) job: JobId,
    pub(crate) lane: LaneId,
    pub(crate) attempt: i64,
    pub(crate) owner: WorkerId,
}

/// What became of jobs whose leases had expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reclaimed {
    /// To be done again.
    pub(crate) ready: u64,
    /// Failed too often.
    pub(crate) dead: u64,
    /// Were to be cancelled anyway.
    pub(crate) cancelled: u64,
}

impl Queue {
    /// Gives the next job to a worker, and writes what begins with it in the
    /// same transaction. An error of `body` undoes both.
    ///
    /// If the commit is unclear, the job may have been given to nobody until
    /// its lease expires: late, but not lost. Whoever renews all of his leases
    /// finds it among them, and has to give it back.
    pub(crate) async fn claim_with<A, T, E, F>(
        &self,
        owner: &WorkerId,
        now: Millis,
        lease: Duration,
        args: A,
        body: F,
    ) -> Result<Option<(Job, Ticket, T)>, E>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: WriteError,
        F: for<'a> Fn(&'a mut Conn, &'a Job, &'a A) -> BoxFuture<'a, Result<T, E>>
            + Send
            + Sync
            + 'static,
    {
        let args = (owner.clone(), now.after(lease), now, args, body);
        let claimed = self.store.write(args, |conn, (owner, until, now, args, body)| {
            Box::pin(async move {
                let job = jobs::claim(conn, owner.as_str(), *until, *now).await?;
                let Some(job) = job else { return Ok(None) };
                let value = body(conn, &job, args).await?;
                Ok::<_, E>(Some((job, value)))
            })
        });
        Ok(claimed.await?.map(|(job, value)| {
            let lane = job.lane.clone();
            let ticket = Ticket { job: job.id, lane, attempt: job.attempt, owner: owner.clone() };
            (job, ticket, value)
        }))
    }

    /// Returns when the next job can be begun: now, if one is ready, else at the
    /// time that the first is for. A read, which costs less than a claim of
    /// nothing and holds nobody up.
    pub(crate) async fn next_due(&self, now: Millis) -> Result<Option<Millis>, StoreError> {
        self.store.read(now, |conn, now| Box::pin(jobs::next_due(conn, *now))).await
    }

    /// Prolongs all leases of a worker at once, and says which jobs he has. One
    /// of his that is not among them is lost.
    pub(crate) async fn renew_all(
        &self,
        owner: &WorkerId,
        now: Millis,
        lease: Duration,
    ) -> Result<Vec<Renewed>, StoreError> {
        let args = (owner.clone(), now.after(lease));
        self.store
            .write_repeatable(args, |conn, (owner, until)| {
                Box::pin(jobs::renew_all(conn, owner.as_str(), *until))
            })
            .await
    }

    /// Returns the jobs of a worker whose end is wanted.
    pub(crate) async fn wishes(&self, owner: &WorkerId) -> Result<Vec<Job>, StoreError> {
        self.store
            .read(owner.clone(), |conn, owner| {
                Box::pin(jobs::cancel_requested_of(conn, owner.as_str()))
            })
            .await
    }

    /// Takes jobs back whose leases have expired, so that somebody else does them.
    pub(crate) async fn reclaim(&self, now: Millis) -> Result<Reclaimed, StoreError> {
        self.reclaim_leased_until(now, now).await
    }

    /// Takes all running jobs back when a gateway starts: on SQLite there is
    /// no other gateway that could have them, whatever their leases say. On
    /// PostgreSQL only what has expired.
    pub(crate) async fn recover(&self, now: Millis) -> Result<Reclaimed, StoreError> {
        let until = match self.store.location() {
            Location::Sqlite(_) => Millis(i64::MAX),
            Location::Postgres(_) => now,
        };
        self.reclaim_leased_until(until, now).await
    }

    async fn reclaim_leased_until(
        &self,
        until: Millis,
        now: Millis,
    ) -> Result<Reclaimed, StoreError> {
        let mut reclaimed = Reclaimed::default();
        loop {
            let expired = self
                .store
                .read(until, |conn, until| Box::pin(jobs::expired(conn, *until, BATCH)))
                .await?;
            let n_found = expired.len();
            for job in expired {
                let args = (job, until, now);
                // A write each: locks of several lanes at once could wait in a circle.
                let end = self.store.write_repeatable(args, |conn, (job, until, now)| {
                    Box::pin(take_back(conn, job, *until, *now))
                });
                match end.await? {
                    Some(JobState::Ready) => reclaimed.ready += 1,
                    Some(JobState::Dead) => reclaimed.dead += 1,
                    Some(_) => reclaimed.cancelled += 1,
                    None => {}
                }
            }
            if n_found < BATCH as usize {
                return Ok(reclaimed);
            }
        }
    }
}

/// Takes one job back, unless it was renewed or ended meanwhile.
async fn take_back(
    conn: &mut Conn,
    expired: &Job,
    until: Millis,
    now: Millis,
) -> Result<Option<JobState>, StoreError> {
    jobs::lock(conn, &expired.lane).await?;
    // Renewing needs no lock of the lane: what holds it off is the row's own.
    if !jobs::seize(conn, expired.id, expired.attempt, until).await? {
        return Ok(None);
    }
    let Some(job) = jobs::find(conn, expired.id).await? else { return Ok(None) };
    let failures = job.failures + 1;
    let state = if job.cancel_requested {
        jobs::end(conn, job.id, JobState::Cancelled, job.reason.as_deref(), now).await?;
        JobState::Cancelled
    } else if failures >= job.max_failures {
        let reason = format!("{EXPIRED}, {failures} times");
        jobs::end(conn, job.id, JobState::Dead, Some(&reason), now).await?;
        JobState::Dead
    } else {
        jobs::put_back(conn, job.id, failures, Millis(0), Some(EXPIRED)).await?;
        JobState::Ready
    };
    jobs::promote(conn, &job.lane).await?;
    conn.wake(Topic::Jobs);
    Ok(Some(state))
}
