//! What the gateway begins by itself: runs of schedules, and heartbeats.
//!
//! One task looks at what is due, makes jobs of it, and sleeps until the next
//! time. `due` and `cron` decide, without a clock of their own; `run` and
//! `heartbeat` write. A time has one job however many gateways there are: a
//! schedule's is with whoever moves `last_slot` on, a heartbeat's has the name of
//! its slot.

pub(crate) mod cron;
pub(crate) mod due;
pub(crate) mod heartbeat;
pub(crate) mod run;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time};
use tokio_util::sync::CancellationToken;

use self::{
    cron::Timetable,
    due::{Beat, Progress, beat, due},
    heartbeat::{Made, Occasion},
    run::{Made as MadeRun, Slot},
};
use crate::{
    clock::Millis,
    gateway::{inbound::Refusal, policy::Policy},
    id::JobId,
    queue::EnqueueError,
    store::{
        Store, StoreError, Topic, Woken,
        schedules::{self, Schedule},
    },
};

/// The longest sleep: a clock that is set is noticed after it.
const LONGEST: Duration = Duration::from_secs(30);
/// The wait after the store could not be used.
const PAUSE: Duration = Duration::from_secs(1);

/// Makes jobs of what is due until it is told to stop.
pub(crate) async fn keep(
    store: Store,
    policy: watch::Receiver<Arc<Policy>>,
    mut look: watch::Receiver<()>,
    stop: CancellationToken,
) {
    // Before the first look, so that nothing is missed between the two.
    let mut wakeups = store.wakeups(Topic::Schedules);
    let mut changed = policy.clone();
    let (mut has_look, mut has_policy) = (true, true);
    let mut desk = Desk::new(store, policy);
    while !stop.is_cancelled() {
        let now = Millis::now();
        let next = desk.look(now).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "what is due cannot be looked at for now");
            Some(now.after(PAUSE))
        });
        let wait = next.map_or(LONGEST, |next| until(now, next).min(LONGEST));
        // All of these can be dropped half-way without losing anything.
        tokio::select! {
            () = stop.cancelled() => return,
            () = time::sleep(wait) => {}
            () = async { while wakeups.next().await != Woken::Told {} } => {}
            heard = look.changed(), if has_look => has_look = heard.is_ok(),
            heard = changed.changed(), if has_policy => has_policy = heard.is_ok(),
        }
    }
}

fn until(now: Millis, time: Millis) -> Duration {
    Duration::from_millis(u64::try_from(time.0.saturating_sub(now.0)).unwrap_or(0))
}

/// Where things become due.
pub(crate) struct Desk {
    store: Store,
    policy: watch::Receiver<Arc<Policy>>,
    /// How often the last heartbeat was to come, and the slot that is dealt with.
    slot: Option<(Duration, i64)>,
    /// Schedules of which it was told that they cannot be read.
    told: Vec<String>,
}

impl Desk {
    pub(crate) fn new(store: Store, policy: watch::Receiver<Arc<Policy>>) -> Self {
        Self { store, policy, slot: None, told: Vec::new() }
    }

    /// Makes jobs of what is due, and returns when to look again.
    pub(crate) async fn look(&mut self, now: Millis) -> Result<Option<Millis>, StoreError> {
        let policy = Arc::clone(&self.policy.borrow());
        let beat = self.beat(&policy, now).await?;
        let schedules = self.store.read((), |conn, ()| Box::pin(schedules::list(conn)));
        let mut next = beat;
        for schedule in schedules.await?.into_iter().filter(|schedule| schedule.is_enabled) {
            let following = self.schedule(schedule, &policy, now).await?;
            next = next.into_iter().chain(following).min();
        }
        Ok(next)
    }

    /// Sees to the heartbeat; returns when the next one is.
    async fn beat(
        &mut self,
        policy: &Arc<Policy>,
        now: Millis,
    ) -> Result<Option<Millis>, StoreError> {
        let Some(every) = policy.heartbeat.every else {
            self.slot = None;
            return Ok(None);
        };
        let last = self.slot.filter(|(of, _)| *of == every).map(|(_, slot)| slot);
        let Beat { slot, last, next } = beat(every, last, now);
        if let Some(slot) = slot {
            let occasion = Occasion::Slot { every, slot };
            match heartbeat::make(&self.store, policy, occasion, now).await {
                Ok(Made::Job { job, conversation }) => {
                    tracing::debug!(%job, %conversation, "a heartbeat");
                }
                // Another gateway was first.
                Ok(Made::Before) => {}
                Ok(Made::Skipped(skip)) => {
                    tracing::debug!(reason = skip.code(), "a heartbeat is left out: {skip}");
                }
                Err(Refusal::Enqueue(EnqueueError::Store(error))) => return Err(error),
                Err(error) => tracing::warn!(%error, "a heartbeat is left out"),
            }
        }
        self.slot = Some((every, last));
        Ok(Some(next))
    }

    /// Sees to a schedule; returns when its next time is.
    async fn schedule(
        &mut self,
        found: Schedule,
        policy: &Policy,
        now: Millis,
    ) -> Result<Option<Millis>, StoreError> {
        let Schedule { schedule, last_slot, .. } = &found;
        let name = schedule.name.clone();
        let times = match Timetable::read(&schedule.cron, &schedule.zone) {
            Ok(times) => times,
            Err(error) => {
                if !self.told.contains(&name) {
                    tracing::error!(schedule = name, %error, "a schedule cannot be followed");
                    self.told.push(name);
                }
                return Ok(None);
            }
        };
        self.told.retain(|told| *told != name);
        let progress = Progress { created: schedule.created_at, last: *last_slot };
        let due = due(&times, schedule.missed, progress, now);
        if due.until == *last_slot {
            return Ok(due.next);
        }
        let slot = Slot { from: *last_slot, due };
        let args = (found, slot, JobId::new(), policy.rules.clone(), now);
        let made = self.store.write_repeatable(args.clone(), |conn, args| {
            let (schedule, slot, job, rules, now) = args;
            Box::pin(run::at_slot(conn, schedule, *slot, *job, rules, *now))
        });
        match made.await {
            Ok(made) => tell(&name, due.n_missed, made),
            Err(Refusal::Enqueue(EnqueueError::Store(error))) => return Err(error),
            // It would be refused again until it is late.
            Err(error) => {
                tracing::warn!(schedule = name, %error, "a run is left out");
                let left_out = self.store.write_repeatable(args, |conn, (schedule, slot, ..)| {
                    Box::pin(run::leave_out(conn, schedule, *slot))
                });
                left_out.await?;
            }
        }
        Ok(due.next)
    }
}

/// Logs what became of the times of a schedule.
fn tell(schedule: &str, n_missed: u32, made: MadeRun) {
    if n_missed > 0 && made != MadeRun::Before {
        tracing::warn!(schedule, times = n_missed, "times were missed");
    }
    match made {
        MadeRun::Job(job) => tracing::info!(schedule, %job, "a run begins"),
        MadeRun::StillOpen(job) => {
            tracing::warn!(schedule, %job, "a run is left out: the one before is not over");
        }
        MadeRun::Before | MadeRun::Nothing => {}
    }
}
