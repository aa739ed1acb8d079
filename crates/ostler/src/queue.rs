//! Work that was accepted and is not done yet. A lane is what runs one after
//! the other: a conversation. Lanes run beside each other.
//!
//! ```text
//!            enqueue                claim              finish
//!  (message) ───────► waiting ► ready ────► running ───────────► done | dead | cancelled
//!                        ▲        ▲            │
//!                        │        └────────────┘ retry, release, lease expired
//!              behind another     first of its lane
//! ```
//!
//! - At most one job of a lane is ready or running: a unique index says so, not
//!   only this code. The row of the lane is the lock that orders everything
//!   that ends a job or adds one; a claim needs no lock but the job's own row.
//! - `attempt` counts claims, and is the fencing token: a worker that lost its
//!   lease and comes back late changes nothing ([`Finished::Lost`]).
//! - `failures` counts the attempts that ended without an end of the job, and
//!   makes it dead in the end. A job that was given back in good order
//!   ([`JobEnd::Release`]) has not failed.
//! - A job and what came of it end in one transaction ([`Queue::finish_with`]).
//! - Jobs of a lane run in the order of `seq`. Between lanes the higher
//!   priority goes first, then whoever came first. Neither is a time, so that a
//!   clock that jumps changes no order; it moves leases and delays by its jump.

pub(crate) mod cancel;
pub(crate) mod enqueue;
pub(crate) mod finish;
mod lease;
mod look;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use self::testing::Lease;
pub(crate) use self::{
    cancel::{CancelOutcome, LaneCancel, RetryOutcome},
    enqueue::{Capacity, EnqueueError, Enqueued, Limits, MessageKey, NewJob},
    finish::{Finished, JobEnd, Joined},
    lease::{Reclaimed, Ticket, WorkerId},
    look::Stats,
};
use crate::store::Store;
pub(crate) use crate::store::jobs::{Job, JobState, LaneId, Renewed};

/// The queue of a store. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    store: Store,
    /// What tests accept jobs with.
    #[cfg(test)]
    capacity: Capacity,
}

#[cfg(not(test))]
impl Queue {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }
}
