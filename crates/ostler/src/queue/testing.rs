//! A queue without a gateway around it, for tests.

use std::time::Duration;

use super::{
    Capacity, EnqueueError, Enqueued, Job, LaneId, Limits, NewJob, Queue, Ticket, WorkerId,
    enqueue::enqueue,
};
use crate::{
    clock::Millis,
    id::JobId,
    store::{Store, StoreError, jobs},
};

/// Whether a job is still one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lease {
    Held,
    /// It is, but somebody wants it to end.
    CancelRequested,
    /// Somebody else has it, or it has ended. Stop, and say nothing more about it.
    Lost,
}

impl Queue {
    pub(crate) fn new(store: Store) -> Self {
        Self::with_limits(store, Limits::default())
    }

    pub(crate) fn with_limits(store: Store, limits: Limits) -> Self {
        Self { store, capacity: Capacity::new(limits) }
    }

    /// Accepts work. Once this returns, it will be done.
    pub(crate) async fn enqueue(
        &self,
        lane: LaneId,
        job: NewJob,
        now: Millis,
    ) -> Result<Enqueued, EnqueueError> {
        // The id is made here: a try whose commit may have happened is told
        // from the next one by it.
        let args = (JobId::new(), lane, job, self.capacity.clone(), now);
        self.store
            .write_repeatable(args, |conn, (id, lane, job, capacity, now)| {
                Box::pin(enqueue(conn, *id, lane, job, capacity, *now))
            })
            .await
    }

    /// Gives the next job to a worker, or nothing if all lanes are busy, empty
    /// or not due. Renew the lease at a third of its length.
    pub(crate) async fn claim(
        &self,
        owner: &WorkerId,
        now: Millis,
        lease: Duration,
    ) -> Result<Option<(Job, Ticket)>, StoreError> {
        let claimed = self.claim_with(owner, now, lease, (), |_, _, ()| Box::pin(async { Ok(()) }));
        let claimed: Result<_, StoreError> = claimed.await;
        Ok(claimed?.map(|(job, ticket, ())| (job, ticket)))
    }

    /// Prolongs a lease, and says whether it is still held.
    pub(crate) async fn renew(
        &self,
        ticket: &Ticket,
        now: Millis,
        lease: Duration,
    ) -> Result<Lease, StoreError> {
        let args = (ticket.clone(), now.after(lease));
        let renewed = self.store.write_repeatable(args, |conn, (ticket, until)| {
            let Ticket { job, attempt, owner, .. } = ticket;
            Box::pin(jobs::renew(conn, *job, *attempt, owner.as_str(), *until))
        });
        Ok(match renewed.await? {
            Some(false) => Lease::Held,
            Some(true) => Lease::CancelRequested,
            None => Lease::Lost,
        })
    }
}
