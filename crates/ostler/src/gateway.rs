//! The gateway: what every input goes through, from its acceptance to the reply.
//!
//! ```text
//!  message ─► gate ─► job in the store ─► runtime ─► attempt ─► ending ─► outbox ─► delivery
//!                                            │          │ events
//!                                          begin       log ─► follow (readers)
//! ```
//!
//! State lives in the store, so that a gateway that is killed goes on where it
//! was: each arrow that crosses a process boundary is a transaction.

pub(crate) mod asking;
mod attempt;
mod begin;
pub(crate) mod commands;
mod conclusion;
pub(crate) mod delivery;
mod details;
pub(crate) mod directing;
mod ending;
mod fetching;
pub(crate) mod follow;
pub(crate) mod gate;
mod history;
pub(crate) mod inbound;
mod instructions;
mod joined;
mod leases;
mod log;
pub(crate) mod notices;
mod opened;
mod persistence;
pub(crate) mod policy;
pub(crate) mod program;
mod record;
mod requests;
mod restarting;
mod result;
mod retry;
mod runtime;
mod steering;
mod telling;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod text;
mod tools;
mod unasked;
mod upkeep;

use std::{sync::Arc, time::Duration};

use ostler_core::permission::Answer;
use serde::Serialize;
use tokio::{sync::watch, time};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    asking::{Actor, AnswerError},
    commands::accept::Order,
    follow::{Follower, Of, Reader},
    inbound::{Accepted, Inbound, LOCAL, Refusal, check_place},
    log::Log,
    policy::Policy,
    runtime::Runtime,
    tools::Tools,
    unasked::Unasked,
};
use crate::{
    clock::Millis,
    hooks::runner::Runner,
    id::{CommandId, ConversationId, JobId, MessageId, PermissionId},
    media::incoming::Fetcher,
    outbound::{self, Delivered, Outgoing, Target},
    queue::{CancelOutcome, LaneCancel, LaneId, MessageKey, Queue, Stats, WorkerId},
    schedule::{self, heartbeat},
    store::{
        Store, StoreError,
        answered_requests::AnsweredRequest,
        audit::{self, Entry},
        conversations::Address,
    },
    telemetry::{Telemetry, names},
};

/// Why a job was cancelled by somebody who did not say more.
const CANCELLED: &str = "cancelled";
/// A shorter lease would expire while it is renewed.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);
/// How long the last events may take to be stored.
const WRITING: Duration = Duration::from_secs(10);
/// How long turns may take to end after they were stopped.
const STOPPING: Duration = Duration::from_secs(10);
/// How long hooks may take that run beside.
const HOOKS: Duration = Duration::from_secs(10);

/// A gateway that runs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Gateway {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    queue: Queue,
    policy: watch::Receiver<Arc<Policy>>,
    runtime: Runtime,
    /// Nothing more is accepted.
    closing: CancellationToken,
    /// Somebody wants it to start again.
    restart: CancellationToken,
    since: Millis,
    tasks: TaskTracker,
    upkeep: CancellationToken,
    log: Log,
    hooks: Runner,
    telemetry: Telemetry,
    name: String,
}

/// How a gateway stands. The field names are part of the contract.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Standing {
    pub(crate) version: &'static str,
    pub(crate) pid: u32,
    pub(crate) gateway: String,
    pub(crate) since: Millis,
    pub(crate) stopping: bool,
    pub(crate) turns_running: usize,
    pub(crate) queue: Option<Stats>,
}

impl Gateway {
    /// Starts a gateway on an open store: takes back what a killed one had, and
    /// begins to work. Without a word for as long as the lease, its jobs are
    /// another's.
    pub(crate) async fn start(
        store: Store,
        policy: watch::Receiver<Arc<Policy>>,
        lease: Duration,
    ) -> Result<Self, StoreError> {
        let now = Millis::now();
        let lease = lease.max(SHORTEST_LEASE);
        let name = format!("gw_{}", uuid::Uuid::now_v7().simple());
        let queue = Queue::new(store.clone());
        let reclaimed = queue.recover(now).await?;
        if reclaimed.ready > 0 {
            tracing::info!(jobs = reclaimed.ready, "going on with what was interrupted");
        }
        let tasks = TaskTracker::new();
        let upkeep = CancellationToken::new();
        let telemetry = Telemetry::new();
        store.time_writes(telemetry.histogram(&names::STORE_WRITES, &[]));
        let log = Log::start(store.clone(), &tasks);
        let unasked = Unasked {
            store: store.clone(),
            log: log.clone(),
            telemetry: telemetry.clone(),
            tasks: tasks.clone(),
            stop: upkeep.clone(),
        };
        let hooks = Runner::new();
        let tools = Tools {
            store: store.clone(),
            queue: queue.clone(),
            log: log.clone(),
            unasked,
            hooks: hooks.clone(),
            fetcher: Arc::new(Fetcher::new()),
            telemetry: telemetry.clone(),
        };
        tasks.spawn(upkeep::keep_up(tools.clone(), policy.clone(), upkeep.clone()));
        let owner = WorkerId::new(&name);
        let runtime = Runtime::start(tools, policy.clone(), owner, lease, &tasks);
        let closing = CancellationToken::new();
        let (look, until) = (runtime.looks(), closing.clone());
        tasks.spawn(schedule::keep(store.clone(), policy.clone(), look, until));
        let since = now;
        let shared = Shared {
            store,
            queue,
            policy,
            runtime,
            closing,
            restart: CancellationToken::new(),
            since,
            tasks,
            upkeep,
            log,
            hooks,
            telemetry,
            name,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns how long turns may take to end when the gateway stops.
    pub(crate) fn shutdown_grace(&self) -> Duration {
        self.shared.policy.borrow().shutdown_grace
    }

    /// Returns the name that no other gateway has.
    pub(crate) fn name(&self) -> &str {
        &self.shared.name
    }

    /// Accepts a message. It is stored when this returns, and will be answered.
    pub(crate) async fn accept(&self, inbound: Inbound) -> Result<Accepted, Refusal> {
        let shared = &self.shared;
        if shared.closing.is_cancelled() {
            return Err(Refusal::Stopping);
        }
        if inbound.text.trim().is_empty() && !details::has_content(&inbound.details) {
            return Err(Refusal::Empty);
        }
        details::check(&inbound.details).map_err(Refusal::Details)?;
        check_place(&inbound.address)?;
        let policy = Arc::clone(&shared.policy.borrow());
        if let Some(name) = &inbound.wishes.agent {
            policy.agents.resolve(Some(name)).map_err(Refusal::Agent)?;
        }
        if let Some(message) = &inbound.message {
            // The same rules as for an address: it is a part of a key.
            Address::new(inbound.address.channel(), message).map_err(Refusal::Message)?;
        }
        // The id is made here: a try whose commit may have happened is told
        // from the next one by it.
        let args = (JobId::new(), inbound, policy.rules.clone(), Millis::now());
        shared
            .store
            .write_repeatable(args, |conn, (id, inbound, rules, now)| {
                Box::pin(gate::store(conn, *id, inbound, rules, *now))
            })
            .await
    }

    /// Makes a heartbeat now, unless there is a reason to leave it out.
    pub(crate) async fn heartbeat(
        &self,
        conversation: Option<Address>,
    ) -> Result<heartbeat::Made, Refusal> {
        let shared = &self.shared;
        if shared.closing.is_cancelled() {
            return Err(Refusal::Stopping);
        }
        let policy = Arc::clone(&shared.policy.borrow());
        let occasion = heartbeat::Occasion::Asked(conversation);
        heartbeat::make(&shared.store, &policy, occasion, Millis::now()).await
    }

    /// Sends people a message that nobody asked for. It is stored when this
    /// returns, and will be sent.
    pub(crate) async fn deliver(&self, mut outgoing: Outgoing) -> Result<Delivered, Refusal> {
        let shared = &self.shared;
        if shared.closing.is_cancelled() {
            return Err(Refusal::Stopping);
        }
        if outgoing.text.trim().is_empty() {
            return Err(Refusal::NoText);
        }
        let output = shared.policy.borrow().rules.output.clone();
        if let (Target::Newest, Some(output)) = (&outgoing.to, output) {
            outgoing.to = Target::At(output);
        }
        if let Target::At(address) = &outgoing.to {
            check_place(address)?;
        }
        // The same rules as for an address: both are names.
        let name = |name: &str| Address::new(LOCAL, name).map(drop);
        outgoing.id.as_deref().map_or(Ok(()), name).map_err(Refusal::Message)?;
        outgoing.from.as_deref().map_or(Ok(()), name).map_err(Refusal::Sender)?;
        let scope = shared.policy.borrow().rules.sessions.scope;
        let args = (MessageId::new(), outgoing, scope, Millis::now());
        shared
            .store
            .write_repeatable(args, |conn, (id, outgoing, scope, now)| {
                Box::pin(outbound::store(conn, *id, outgoing, *scope, *now))
            })
            .await
    }

    /// Reads events from a number on.
    pub(crate) fn reader(&self, of: Of, after: i64) -> Reader {
        Reader::new(self.shared.store.clone(), of, after)
    }

    /// Follows a job to its end.
    pub(crate) fn follow(&self, job: JobId) -> Follower {
        Follower::new(self.shared.store.clone(), job)
    }

    /// Cancels a job: one that waits never runs, one that runs is stopped.
    pub(crate) async fn cancel_job(&self, job: JobId) -> Result<CancelOutcome, StoreError> {
        self.shared.queue.cancel(job, CANCELLED, Millis::now()).await
    }

    /// Accepts a command. It is stored when this returns, and will be done.
    pub(crate) async fn command(&self, order: Order) -> Result<Accepted, Refusal> {
        let shared = &self.shared;
        if shared.closing.is_cancelled() {
            return Err(Refusal::Stopping);
        }
        let rules = shared.policy.borrow().rules.clone();
        let args = (order, rules, Millis::now());
        let written = shared.store.write_repeatable(args, |conn, (order, rules, now)| {
            Box::pin(commands::accept::accept(conn, order, rules, *now))
        });
        written.await
    }

    /// Accepts a command unless it was accepted before, and then returns the answer
    /// that was given then.
    pub(crate) async fn command_once(
        &self,
        order: Order,
        answered: AnsweredRequest,
    ) -> Result<Option<AnsweredRequest>, Refusal> {
        let shared = &self.shared;
        if shared.closing.is_cancelled() {
            return Err(Refusal::Stopping);
        }
        let rules = shared.policy.borrow().rules.clone();
        let args = (order, answered, rules, Millis::now());
        let written = shared.store.write_repeatable(args, |conn, (order, answered, rules, now)| {
            Box::pin(commands::accept::accept_once(conn, order, answered, rules, *now))
        });
        written.await
    }

    /// Cancels a command, and writes down who did. One that has not begun is over
    /// when this returns.
    pub(crate) async fn cancel_command(
        &self,
        id: CommandId,
        entry: Entry,
    ) -> Result<CancelOutcome, StoreError> {
        let args = (id, entry, Millis::now());
        let cancelled = self.shared.store.write(args, |conn, (id, entry, now)| {
            Box::pin(async move {
                let outcome = commands::cancel_one(conn, *id, CANCELLED, *now).await?;
                match outcome {
                    CancelOutcome::Cancelled | CancelOutcome::Requested => {
                        audit::add(conn, entry).await?;
                    }
                    CancelOutcome::Ended(_) | CancelOutcome::Unknown => {}
                }
                Ok(outcome)
            })
        });
        cancelled.await
    }

    /// Cancels what runs and what waits in a conversation.
    pub(crate) async fn cancel_conversation(
        &self,
        conversation: ConversationId,
    ) -> Result<LaneCancel, StoreError> {
        let lane = LaneId::new(conversation.to_string());
        self.shared.queue.cancel_lane(&lane, CANCELLED, Millis::now()).await
    }

    /// Answers what an agent asked.
    pub(crate) async fn answer(
        &self,
        request: PermissionId,
        answer: Answer,
        by: Actor,
    ) -> Result<(), AnswerError> {
        asking::answer(&self.shared.store, request, answer, by).await
    }

    /// Answers what an agent asked by a message, which is dealt with by that.
    pub(crate) async fn answer_by(
        &self,
        message: MessageKey,
        request: PermissionId,
        answer: Answer,
        by: Actor,
    ) -> Result<(), AnswerError> {
        asking::answer_by(&self.shared.store, message, request, answer, by).await
    }

    /// Says how it stands.
    pub(crate) async fn standing(&self) -> Standing {
        let shared = &self.shared;
        Standing {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            gateway: shared.name.clone(),
            since: shared.since,
            stopping: shared.closing.is_cancelled(),
            turns_running: shared.runtime.n_running(),
            queue: shared.queue.stats().await.ok(),
        }
    }

    /// Returns what is counted.
    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.shared.telemetry
    }

    /// Returns since when it runs.
    pub(crate) fn since(&self) -> Millis {
        self.shared.since
    }

    /// Returns how many turns run.
    pub(crate) fn n_running(&self) -> usize {
        self.shared.runtime.n_running()
    }

    /// Waits until so many do.
    #[cfg(test)]
    pub(crate) async fn until_running(&self, n_turns: usize) {
        self.shared.runtime.until_running(n_turns).await;
    }

    /// Whether it still looks after its jobs. A store that is away does not make
    /// it unwell: starting again would not help.
    pub(crate) fn is_well(&self) -> bool {
        self.shared.runtime.is_well()
    }

    /// Sees to what is otherwise seen to from time to time.
    #[cfg(test)]
    pub(crate) async fn keep_up_now(&self) -> Result<(), StoreError> {
        upkeep::look_after(&self.shared.store).await
    }

    /// Looks at everything now, for somebody else changed the store.
    pub(crate) fn look_again(&self) {
        self.shared.runtime.look_again();
    }

    /// Takes no more messages.
    pub(crate) fn close(&self) {
        self.shared.closing.cancel();
    }

    /// Stops working: no more jobs are begun, running turns have `grace` to
    /// end, the others are stopped and resumed by the next gateway. Returns when
    /// everything that happened is stored.
    pub(crate) async fn stop(&self, grace: Duration) {
        let shared = &self.shared;
        shared.closing.cancel();
        shared.runtime.stop(grace, STOPPING).await;
        shared.hooks.stop(HOOKS).await;
        shared.upkeep.cancel();
        shared.tasks.close();
        let written = async {
            shared.log.close().await;
            shared.tasks.wait().await;
        };
        if time::timeout(WRITING, written).await.is_err() {
            tracing::error!("the last events could not be stored");
        }
    }
}
