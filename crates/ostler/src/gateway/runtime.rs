//! Runs what waits: claims jobs up to the limit and starts an attempt at each.
//! Their leases, and what is wanted of them, are kept in `leases`.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    attempt::{self, Claimed, Wish},
    begin::{Begun, Claim, begin},
    commands,
    leases::Leases,
    policy::Policy,
    tools::Tools,
};
use crate::{
    clock::Millis,
    id::TurnId,
    logging,
    queue::{Job, JobEnd, JobState, Joined, Ticket, WorkerId},
    store::{StoreError, Topic, turns},
};

/// The wait after the store could not be asked.
const PAUSE: Duration = Duration::from_millis(500);
/// For how long nothing may be heard of a task that goes round and round. A
/// store that does not answer takes up to half of it.
const SILENCE: Duration = Duration::from_secs(60);

/// What runs in this gateway. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Runtime {
    shared: Arc<Shared>,
}

struct Shared {
    tools: Tools,
    policy: watch::Receiver<Arc<Policy>>,
    leases: Arc<Leases>,
    /// When jobs were last looked for.
    beat: watch::Sender<Instant>,
    /// Rung when somebody else may have changed the store.
    look: watch::Sender<()>,
    /// No more jobs are begun.
    closing: CancellationToken,
    /// Nothing runs any more; leases need not be kept.
    done: CancellationToken,
    /// The task that claims.
    claiming: TaskTracker,
    attempts: TaskTracker,
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
        let leases = Arc::new(Leases::new(tools.clone(), owner, lease));
        let shared = Arc::new(Shared {
            tools,
            policy,
            leases,
            beat: watch::Sender::new(Instant::now()),
            look: watch::Sender::new(()),
            closing: CancellationToken::new(),
            done: CancellationToken::new(),
            claiming: TaskTracker::new(),
            attempts: TaskTracker::new(),
        });
        shared.claiming.spawn(Arc::clone(&shared).claim_jobs());
        let (look, done) = (shared.look.subscribe(), shared.done.clone());
        tasks.spawn(Arc::clone(&shared.leases).keep(look, done.clone()));
        tasks.spawn(Arc::clone(&shared.leases).take_over(done));
        Self { shared }
    }

    /// Returns how many jobs run.
    pub(crate) fn n_running(&self) -> usize {
        self.shared.leases.n_running()
    }

    /// Waits until so many do.
    #[cfg(test)]
    pub(crate) async fn until_running(&self, n_turns: usize) {
        self.shared.leases.until_running(n_turns).await;
    }

    /// Whether it goes on looking for jobs, and after those that run.
    pub(crate) fn is_well(&self) -> bool {
        self.shared.beat.borrow().elapsed() < SILENCE && self.shared.leases.silence() < SILENCE
    }

    /// Looks at everything now, for somebody else may have changed it.
    pub(crate) fn look_again(&self) {
        self.shared.look.send_modify(|()| {});
    }

    /// Returns what rings when somebody else may have changed the store.
    pub(crate) fn looks(&self) -> watch::Receiver<()> {
        self.shared.look.subscribe()
    }

    /// Begins nothing more, gives what runs time to end, then stops it and
    /// leaves it for later. Returns when nothing runs.
    pub(crate) async fn stop(&self, grace: Duration, limit: Duration) {
        let shared = &self.shared;
        shared.closing.cancel();
        shared.claiming.close();
        // A claim may be on its way, and then an attempt.
        if time::timeout(limit, shared.claiming.wait()).await.is_err() {
            tracing::warn!("the store does not say whether another job was begun");
        }
        shared.attempts.close();
        if time::timeout(grace, shared.attempts.wait()).await.is_err() {
            tracing::info!(running = self.n_running(), "stopping what still runs, for later");
            shared.leases.want_of_all(Wish::Release);
            if time::timeout(limit, shared.attempts.wait()).await.is_err() {
                tracing::warn!(running = self.n_running(), "some turns did not stop in time");
            }
        }
        shared.done.cancel();
    }
}

impl Shared {
    /// Claims what can be begun, for as long as the gateway takes work.
    async fn claim_jobs(self: Arc<Self>) {
        let mut wakeups = self.tools.store.wakeups(Topic::Jobs);
        let mut policy = self.policy.clone();
        let mut has_policy = true;
        let mut look = self.look.subscribe();
        while !self.closing.is_cancelled() {
            self.beat.send_replace(Instant::now());
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
                () = self.closing.cancelled() => {}
                _ = wakeups.next() => {}
                () = self.leases.freed() => {}
                _ = look.changed() => {}
                () = due => {}
                changed = policy.changed(), if has_policy => has_policy = changed.is_ok(),
            }
        }
    }

    /// Claims until the limit is reached or nothing is ready; returns when a job
    /// that has to wait for its time is due.
    async fn fill(self: &Arc<Self>) -> Result<Option<Instant>, StoreError> {
        loop {
            let most = self.policy.borrow().max_concurrent_turns;
            if self.closing.is_cancelled() || self.leases.n_running() >= most {
                return Ok(None);
            }
            let now = Millis::now();
            let Some(due) = self.tools.queue.next_due(now).await? else { return Ok(None) };
            if due > now {
                let wait = u64::try_from(due.0 - now.0).unwrap_or_default();
                return Ok(Some(Instant::now() + Duration::from_millis(wait)));
            }
            if !self.claim().await? {
                // Another gateway is about to have it, or to leave it.
                return Ok(Some(Instant::now() + PAUSE));
            }
        }
    }

    /// Claims a job and starts an attempt at it; returns whether there was one.
    async fn claim(self: &Arc<Self>) -> Result<bool, StoreError> {
        // Taken after the look: what was configured before a message came counts for it.
        let policy = Arc::clone(&self.policy.borrow());
        let now = Millis::now();
        let turn = TurnId::new();
        let claim = Claim { policy: Arc::clone(&policy), turn, now };
        let (owner, lease) = (self.leases.owner(), self.leases.lease());
        let claimed = self.tools.queue.claim_with(owner, now, lease, claim, |conn, job, claim| {
            Box::pin(begin(conn, job, claim))
        });
        match claimed.await {
            Ok(None) => Ok(false),
            Ok(Some((job, ticket, begun))) => {
                self.begin(&job, ticket, turn, policy, begun).await?;
                Ok(true)
            }
            Err(error) if error.passes() => Err(error),
            Err(error) => self.set_aside(&error).await,
        }
    }

    async fn begin(
        self: &Arc<Self>,
        job: &Job,
        ticket: Ticket,
        turn: TurnId,
        policy: Arc<Policy>,
        begun: Begun,
    ) -> Result<(), StoreError> {
        if self.closing.is_cancelled() {
            return self.leave(&ticket, turn, &begun).await;
        }
        tracing::debug!(job = %job.id, lane = %job.lane, attempt = ticket.attempt, "begins");
        let (place, wish) = self.leases.add(&ticket);
        let tools = self.tools.clone();
        let mut about = vec![("job", job.id.to_string()), ("turn", turn.to_string())];
        about.extend(begun.command().map(|id| ("command", id.to_string())));
        let claimed = Claimed { ticket, turn, policy, begun };
        self.attempts.spawn(logging::about(about, async move {
            // Left also if the attempt panics.
            let _place = place;
            attempt::make(tools, claimed, wish).await;
        }));
        Ok(())
    }

    /// Leaves a job for later of which nothing was done. A program is run if no
    /// turn of it was begun before. If somebody cancelled it meanwhile it is over.
    async fn leave(&self, ticket: &Ticket, turn: TurnId, begun: &Begun) -> Result<(), StoreError> {
        let is_unbegun = matches!(begun, Begun::Program(program) if !program.is_again);
        let unbegun = is_unbegun.then_some(turn);
        let now = Millis::now();
        let args = (unbegun, begun.command(), now);
        let queue = &self.tools.queue;
        let (end, joined) = (JobEnd::Release, Joined::none());
        let left = queue.finish_with(
            ticket,
            end,
            joined,
            now,
            args,
            |conn, state, (turn, command, now)| {
                Box::pin(async move {
                    if let Some(turn) = turn {
                        turns::remove(conn, *turn).await?;
                    }
                    if let (JobState::Cancelled, Some(id)) = (state, command) {
                        let result = commands::cancelled(None);
                        commands::end(conn, *id, state, result, *now).await?;
                    }
                    Ok::<_, StoreError>(())
                })
            },
        );
        left.await.map(drop)
    }

    /// Ends a job that cannot even be begun: else it would be claimed for ever,
    /// and nothing after it.
    async fn set_aside(&self, error: &StoreError) -> Result<bool, StoreError> {
        let (owner, lease) = (self.leases.owner(), self.leases.lease());
        let now = Millis::now();
        let claimed = self.tools.queue.claim_with(owner, now, lease, (), |_, _, ()| {
            Box::pin(async { Ok::<_, StoreError>(()) })
        });
        let Some((job, ticket, ())) = claimed.await? else { return Ok(false) };
        tracing::error!(%error, job = %job.id, "a job cannot be begun, and is dead");
        let reason = format!("it cannot be begun: {error}");
        self.tools.queue.finish(&ticket, JobEnd::Dead { reason }, Millis::now()).await?;
        Ok(true)
    }
}
