//! Runs what waits: claims jobs up to the limit, keeps their leases, and tells
//! running ones what is wanted of them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    attempt::{self, Claimed, Tools, Wish},
    begin::{Claim, begin},
    policy::Policy,
};
use crate::{
    clock::Millis,
    id::{JobId, TurnId},
    queue::{JobEnd, Reclaimed, Renewed, Ticket, WorkerId},
    store::{StoreError, Topic},
};

/// Why a job failed that was claimed and then not heard of.
const UNHEARD: &str = "its attempt ended without a word";
/// For how long nothing may be heard of the task that keeps the leases. A store
/// that does not answer takes up to half of it.
const SILENCE: Duration = Duration::from_secs(60);
/// The wait after the store could not be asked.
const PAUSE: Duration = Duration::from_millis(500);

/// What runs in this gateway. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Runtime {
    shared: Arc<Shared>,
}

struct Shared {
    tools: Tools,
    policy: watch::Receiver<Arc<Policy>>,
    owner: WorkerId,
    /// For how long a job is this gateway's without a further word.
    lease: Duration,
    running: Mutex<HashMap<JobId, Running>>,
    /// When leases were last seen to, well or not.
    beat: watch::Sender<Instant>,
    /// Rung when a job has ended.
    freed: Notify,
    /// Rung when somebody else may have changed the store.
    look: watch::Sender<()>,
    /// No more jobs are begun.
    closing: CancellationToken,
    /// Nothing runs any more; leases need not be kept.
    done: CancellationToken,
    attempts: TaskTracker,
}

/// A job that runs here.
struct Running {
    attempt: i64,
    wish: watch::Sender<Wish>,
}

impl Runtime {
    /// Starts to run what waits.
    pub(crate) fn start(
        tools: Tools,
        policy: watch::Receiver<Arc<Policy>>,
        owner: WorkerId,
        lease: Duration,
        tasks: &TaskTracker,
    ) -> Self {
        let shared = Arc::new(Shared {
            tools,
            policy,
            owner,
            lease,
            running: Mutex::default(),
            beat: watch::Sender::new(Instant::now()),
            freed: Notify::new(),
            look: watch::Sender::new(()),
            closing: CancellationToken::new(),
            done: CancellationToken::new(),
            attempts: TaskTracker::new(),
        });
        tasks.spawn(Arc::clone(&shared).claim_jobs());
        tasks.spawn(Arc::clone(&shared).keep_leases());
        Self { shared }
    }

    /// Returns how many jobs run.
    pub(crate) fn n_running(&self) -> usize {
        self.shared.running().len()
    }

    /// Whether leases are still seen to.
    pub(crate) fn is_well(&self) -> bool {
        self.shared.beat.borrow().elapsed() < self.shared.lease + SILENCE
    }

    /// Looks at everything now, for somebody else may have changed it.
    pub(crate) fn look_again(&self) {
        self.shared.look.send_modify(|()| {});
    }

    /// Begins nothing more, gives what runs time to end, then stops it and
    /// leaves it for later. Returns when nothing runs.
    pub(crate) async fn stop(&self, grace: Duration, limit: Duration) {
        let shared = &self.shared;
        shared.closing.cancel();
        shared.attempts.close();
        if time::timeout(grace, shared.attempts.wait()).await.is_err() {
            tracing::info!(running = self.n_running(), "stopping what still runs, for later");
            shared.want_of_all(Wish::Release);
            if time::timeout(limit, shared.attempts.wait()).await.is_err() {
                tracing::warn!(running = self.n_running(), "some turns did not stop in time");
            }
        }
        shared.done.cancel();
    }
}

impl Shared {
    fn running(&self) -> MutexGuard<'_, HashMap<JobId, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn want_of_all(&self, wish: Wish) {
        for running in self.running().values() {
            want(&running.wish, wish);
        }
    }

    /// Claims what can be begun, for as long as the gateway takes work.
    async fn claim_jobs(self: Arc<Self>) {
        let mut wakeups = self.tools.store.wakeups(Topic::Jobs);
        let mut policy = self.policy.clone();
        let mut look = self.look.subscribe();
        loop {
            let due = match self.fill().await {
                Ok(due) => due,
                Err(error) => {
                    tracing::warn!(%error, "no jobs can be had for now");
                    Some(Instant::now() + PAUSE)
                }
            };
            let due = async {
                match due {
                    Some(due) => time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.closing.cancelled() => return,
                _ = wakeups.next() => {}
                () = self.freed.notified() => {}
                _ = look.changed() => {}
                () = due => {}
                changed = policy.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Claims until the limit is reached or nothing is ready; returns when a job
    /// that has to wait for its time is due.
    async fn fill(self: &Arc<Self>) -> Result<Option<Instant>, StoreError> {
        loop {
            let policy = Arc::clone(&self.policy.borrow());
            if self.closing.is_cancelled() || self.running().len() >= policy.max_concurrent_turns {
                return Ok(None);
            }
            if !self.claim(policy).await? {
                let now = Millis::now();
                let due = self.tools.queue.next_due(now).await?;
                let wait = |due: Millis| {
                    Duration::from_millis(u64::try_from(due.0 - now.0).unwrap_or_default())
                };
                return Ok(due.map(|due| Instant::now() + wait(due)));
            }
        }
    }

    /// Claims a job and starts an attempt at it; returns whether there was one.
    async fn claim(self: &Arc<Self>, policy: Arc<Policy>) -> Result<bool, StoreError> {
        let now = Millis::now();
        let turn = TurnId::new();
        let claim = Claim { policy: Arc::clone(&policy), turn, now };
        let claimed =
            self.tools.queue.claim_with(&self.owner, now, self.lease, claim, |conn, job, claim| {
                Box::pin(begin(conn, job, claim))
            });
        let Some((job, ticket, begun)) = claimed.await? else { return Ok(false) };
        let (wish, wanted) = watch::channel(Wish::Nothing);
        self.running().insert(job.id, Running { attempt: ticket.attempt, wish });
        tracing::debug!(job = %job.id, lane = %job.lane, attempt = ticket.attempt, "begins");
        let claimed = Claimed { ticket, turn, policy, begun };
        let shared = Arc::clone(self);
        self.attempts.spawn(async move {
            // Leaves the list also if the attempt panics.
            let _place = Leaves { shared: &shared, job: job.id };
            attempt::make(shared.tools.clone(), claimed, wanted).await;
        });
        Ok(true)
    }

    /// Keeps the leases of what runs, and finds out what is wanted of it.
    async fn keep_leases(self: Arc<Self>) {
        let mut wakeups = self.tools.store.wakeups(Topic::Wishes);
        let mut renewal = time::interval(self.lease / 3);
        renewal.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        let mut strangers = Vec::new();
        let mut look = self.look.subscribe();
        loop {
            tokio::select! {
                () = self.done.cancelled() => return,
                _ = renewal.tick() => {
                    match self.renew(&strangers).await {
                        Ok(now) => strangers = now,
                        Err(error) => tracing::warn!(%error, "leases cannot be renewed for now"),
                    }
                    self.beat.send_replace(Instant::now());
                }
                _ = wakeups.next() => self.see_wishes().await,
                _ = look.changed() => self.see_wishes().await,
            }
        }
    }

    /// Renews all leases, then takes over the jobs of gateways that did not. In
    /// this order, for after a sleep of the whole machine all have expired.
    ///
    /// What is this gateway's by the store, and twice in a row not known here,
    /// was claimed without anybody hearing of it; it counts as failed.
    async fn renew(&self, before: &[Ticket]) -> Result<Vec<Ticket>, StoreError> {
        let queue = &self.tools.queue;
        // Those that begin meanwhile are not among the renewed, and not lost.
        let known: Vec<_> =
            self.running().iter().map(|(job, running)| (*job, running.attempt)).collect();
        let renewed = queue.renew_all(&self.owner, Millis::now(), self.lease).await?;
        let strangers = self.compare(&known, renewed);
        for ticket in strangers.iter().filter(|ticket| before.contains(ticket)) {
            tracing::warn!(job = %ticket.job, "a job was claimed unheard, and is given back");
            let now = Millis::now();
            let end = JobEnd::Retry { not_before: now, reason: UNHEARD.to_owned() };
            queue.finish(ticket, end, now).await?;
        }
        let Reclaimed { ready, dead, cancelled } = queue.reclaim(Millis::now()).await?;
        if ready + dead + cancelled > 0 {
            tracing::info!(ready, dead, cancelled, "took over jobs of a gateway that is gone");
        }
        Ok(strangers)
    }

    /// Tells jobs that are lost or whose end is wanted, and returns those that
    /// are not known here.
    fn compare(&self, known: &[(JobId, i64)], renewed: Vec<Renewed>) -> Vec<Ticket> {
        let running = self.running();
        for (job, attempt) in known {
            let held = renewed.iter().find(|held| held.job == *job && held.attempt == *attempt);
            let Some(running) = running.get(job) else { continue };
            match held {
                None => want(&running.wish, Wish::Lost),
                Some(held) if held.is_cancel_requested => want(&running.wish, Wish::Cancel),
                Some(_) => {}
            }
        }
        let strangers = renewed.into_iter().filter(|held| !running.contains_key(&held.job));
        let ticket = |held: Renewed| Ticket {
            job: held.job,
            lane: held.lane,
            attempt: held.attempt,
            owner: self.owner.clone(),
        };
        strangers.map(ticket).collect()
    }

    /// Tells jobs whose end is wanted.
    async fn see_wishes(&self) {
        match self.tools.queue.wishes(&self.owner).await {
            Ok(jobs) => {
                let running = self.running();
                for job in jobs {
                    if let Some(running) = running.get(&job.id) {
                        want(&running.wish, Wish::Cancel);
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "what is wanted of jobs cannot be seen for now"),
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

/// Takes a job off the list when dropped.
struct Leaves<'a> {
    shared: &'a Shared,
    job: JobId,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.shared.running().remove(&self.job);
        self.shared.freed.notify_one();
    }
}
