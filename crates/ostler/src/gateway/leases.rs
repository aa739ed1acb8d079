//! Which jobs run in this gateway: keeping their leases, telling them what is
//! wanted of them, and taking over those of gateways that are gone.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use super::{attempt::Wish, tools::Tools};
use crate::{
    clock::Millis,
    id::JobId,
    queue::{JobEnd, Reclaimed, Renewed, Ticket, WorkerId},
    store::{Location, StoreError, Topic},
};

/// Why a job failed that was claimed and then not heard of.
const UNHEARD: &str = "its attempt ended without a word";

/// The jobs that run here.
pub(crate) struct Leases {
    tools: Tools,
    owner: WorkerId,
    /// For how long a job is this gateway's without a further word.
    lease: Duration,
    running: Mutex<HashMap<JobId, Running>>,
    /// How many run, for those who wait for another number.
    n_running: watch::Sender<usize>,
    /// Rung when a job has ended.
    freed: Notify,
    /// When leases were last seen to, well or not.
    beat: watch::Sender<Instant>,
    /// When they were last renewed.
    renewed: watch::Sender<Instant>,
}

/// A job that runs here.
struct Running {
    attempt: i64,
    wish: watch::Sender<Wish>,
}

/// The place of an attempt among those that run; left when dropped.
pub(crate) struct Place {
    leases: Arc<Leases>,
    job: JobId,
    attempt: i64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut running = self.leases.running();
        // A later attempt may have taken it.
        if running.get(&self.job).is_some_and(|running| running.attempt == self.attempt) {
            running.remove(&self.job);
        }
        self.leases.n_running.send_replace(running.len());
        drop(running);
        self.leases.freed.notify_one();
    }
}

impl Leases {
    pub(crate) fn new(tools: Tools, owner: WorkerId, lease: Duration) -> Self {
        Self {
            tools,
            owner,
            lease,
            running: Mutex::default(),
            n_running: watch::Sender::new(0),
            freed: Notify::new(),
            beat: watch::Sender::new(Instant::now()),
            renewed: watch::Sender::new(Instant::now()),
        }
    }

    pub(crate) fn owner(&self) -> &WorkerId {
        &self.owner
    }

    pub(crate) fn lease(&self) -> Duration {
        self.lease
    }

    pub(crate) fn n_running(&self) -> usize {
        *self.n_running.borrow()
    }

    /// Waits until so many run. Cancel-safe.
    #[cfg(test)]
    pub(crate) async fn until_running(&self, n_turns: usize) {
        self.n_running.subscribe().wait_for(|running| *running == n_turns).await.ok();
    }

    /// For how long nobody has seen to the leases, beyond their length.
    pub(crate) fn silence(&self) -> Duration {
        self.beat.borrow().elapsed().saturating_sub(self.lease)
    }

    /// Waits until a job has ended. Cancel-safe.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }

    /// Adds an attempt; returns its place, and what will be wanted of it.
    pub(crate) fn add(self: &Arc<Self>, ticket: &Ticket) -> (Place, watch::Receiver<Wish>) {
        let (job, attempt) = (ticket.job, ticket.attempt);
        let (wish, wanted) = watch::channel(Wish::Nothing);
        let mut running = self.running();
        running.insert(job, Running { attempt, wish });
        self.n_running.send_replace(running.len());
        drop(running);
        (Place { leases: Arc::clone(self), job, attempt }, wanted)
    }

    /// Wants something of all that run.
    pub(crate) fn want_of_all(&self, wish: Wish) {
        for running in self.running().values() {
            want(&running.wish, wish);
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<JobId, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the leases of what runs, and finds out what is wanted of it.
    pub(crate) async fn keep(
        self: Arc<Self>,
        mut look: watch::Receiver<()>,
        done: CancellationToken,
    ) {
        let mut wakeups = self.tools.store.wakeups(Topic::Wishes);
        let mut renewal = time::interval(self.lease / 3);
        renewal.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        let mut strangers = Vec::new();
        loop {
            tokio::select! {
                () = done.cancelled() => return,
                _ = renewal.tick() => {
                    match time::timeout(self.lease / 3, self.renew(&strangers)).await {
                        Ok(Ok(now)) => strangers = now,
                        Ok(Err(error)) => {
                            tracing::warn!(%error, "leases cannot be renewed for now");
                        }
                        Err(_) => tracing::warn!("leases cannot be renewed for now: no answer"),
                    }
                    self.beat.send_replace(Instant::now());
                    self.give_up_what_is_lost();
                }
                _ = wakeups.next() => self.see_wishes().await,
                _ = look.changed() => self.see_wishes().await,
            }
        }
    }

    /// Renews all leases. What is this gateway's by the store, and twice in a row
    /// not known here, was claimed without anybody hearing of it; it counts as
    /// failed.
    async fn renew(&self, before: &[Ticket]) -> Result<Vec<Ticket>, StoreError> {
        let queue = &self.tools.queue;
        // Those that begin meanwhile are not among the renewed, and not lost.
        let known: Vec<_> =
            self.running().iter().map(|(job, running)| (*job, running.attempt)).collect();
        let began = Instant::now();
        let renewed = queue.renew_all(&self.owner, Millis::now(), self.lease).await?;
        self.renewed.send_replace(began);
        let strangers = self.compare(&known, renewed);
        for ticket in strangers.iter().filter(|ticket| before.contains(ticket)) {
            tracing::warn!(job = %ticket.job, "a job was claimed unheard, and is given back");
            let now = Millis::now();
            let end = JobEnd::Retry { not_before: now, reason: UNHEARD.to_owned() };
            queue.finish(ticket, end, now).await?;
        }
        Ok(strangers)
    }

    /// Tells jobs that are lost or whose end is wanted, and returns those that
    /// are not known here.
    fn compare(&self, known: &[(JobId, i64)], renewed: Vec<Renewed>) -> Vec<Ticket> {
        let running = self.running();
        for (job, attempt) in known {
            let held = renewed.iter().find(|held| held.job == *job && held.attempt == *attempt);
            let Some(running) = running.get(job).filter(|running| running.attempt == *attempt)
            else {
                continue;
            };
            match held {
                None => want(&running.wish, Wish::Lost),
                Some(held) if held.is_cancel_requested => want(&running.wish, Wish::Cancel),
                Some(_) => {}
            }
        }
        let is_stranger = |held: &Renewed| {
            running.get(&held.job).is_none_or(|running| running.attempt != held.attempt)
        };
        let ticket = |held: Renewed| Ticket {
            job: held.job,
            lane: held.lane,
            attempt: held.attempt,
            owner: self.owner.clone(),
        };
        renewed.into_iter().filter(is_stranger).map(ticket).collect()
    }

    /// Ends what others may have taken over, where there are others.
    fn give_up_what_is_lost(&self) {
        let is_shared = matches!(self.tools.store.location(), Location::Postgres(_));
        if is_shared && self.renewed.borrow().elapsed() > self.lease && self.n_running() > 0 {
            tracing::warn!("leases have expired; what runs is stopped, for others may have it");
            self.want_of_all(Wish::Lost);
        }
    }

    /// Tells jobs whose end is wanted.
    async fn see_wishes(&self) {
        match self.tools.queue.wishes(&self.owner).await {
            Ok(jobs) => {
                let running = self.running();
                for job in jobs {
                    if let Some(running) =
                        running.get(&job.id).filter(|running| running.attempt == job.attempt)
                    {
                        want(&running.wish, Wish::Cancel);
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "what is wanted of jobs cannot be seen for now"),
        }
    }

    /// Takes over the jobs of gateways that are gone, for as long as this one is
    /// sure of its own: after a sleep of the whole machine all have expired.
    pub(crate) async fn take_over(self: Arc<Self>, done: CancellationToken) {
        let mut look = time::interval(self.lease / 3);
        look.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        while done.run_until_cancelled(look.tick()).await.is_some() {
            if self.renewed.borrow().elapsed() > self.lease / 2 {
                continue;
            }
            match self.tools.queue.reclaim(Millis::now()).await {
                Ok(Reclaimed { ready, dead, cancelled }) if ready + dead + cancelled > 0 => {
                    tracing::info!(
                        ready,
                        dead,
                        cancelled,
                        "took over jobs of a gateway that is gone"
                    );
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "others' jobs cannot be seen for now"),
            }
        }
    }
}

/// Wants something of a job, unless something more urgent is wanted already.
fn want(wish: &watch::Sender<Wish>, wanted: Wish) {
    wish.send_if_modified(|wish| {
        let is_more = *wish < wanted;
        *wish = (*wish).max(wanted);
        is_more
    });
}
