//! The processes that are kept: who has which, and which ones go. A server of
//! somebody else's is among them as long as we speak with it.
//!
//! One task owns them all, so nothing here is locked. Turns hold leases; a
//! process without one is parked, and leaves when it has been idle too long,
//! when there are too many, when they take too much memory, when its program on
//! disk was replaced, or when its session is wanted elsewhere.

mod keeper;
mod room;

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use tokio::sync::{mpsc, oneshot};

use self::keeper::Keeper;
use super::{
    seed::{Key, Seed},
    worker::Command,
};
use crate::{
    agent::{AgentName, SessionKey, TurnKey},
    failure::{Failure, FailureKind},
    host::Host,
    request::Open,
    verdict::Reason,
};

/// A clock can be added to a day.
const LONGEST_ROUND: Duration = Duration::from_secs(24 * 3600);

/// How many sessions are remembered whose process died.
const MAX_BEREFT: usize = 256;

/// What parked processes may cost.
#[derive(Clone, Copy, Debug)]
pub struct PoolLimits {
    /// How long one may be idle.
    pub idle: Duration,
    /// How many there may be.
    pub parked: usize,
    /// How much memory they may take together, in bytes.
    pub memory: u64,
    /// How many fresh ones are kept ready for further sessions of a kind that
    /// was asked for, where one process holds one session.
    pub spares: usize,
    /// How often all this is looked at.
    pub round: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(600),
            parked: 16,
            memory: 4 * 1024 * 1024 * 1024,
            spares: 0,
            round: Duration::from_secs(10),
        }
    }
}

/// What happened to kept processes so far, and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Processes that were started.
    pub started: u64,
    /// Sessions that found their process waiting.
    pub reused: u64,
    /// Processes that were sent away: idle, too many or too large.
    pub evicted: u64,
    /// Processes that were sent away because their program was replaced.
    pub outdated: u64,
    /// Processes that ended although nobody wanted it.
    pub died: u64,
    /// Processes with a turn.
    pub busy: usize,
    /// Processes without one.
    pub parked: usize,
}

/// One of our names for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MemberId(u64);

/// What a process tells the pool.
#[derive(Debug)]
pub(crate) enum News {
    /// A session has an id now, or another one.
    Opened { member: MemberId, session: SessionKey, id: String },
    /// A session is gone.
    Closed { member: MemberId, session: SessionKey },
    /// No new session should come.
    Retired { member: MemberId },
    /// The process has ended, wanted or not.
    Gone { member: MemberId, died: bool },
    /// A turn is done with its session.
    Returned { member: MemberId, session: SessionKey },
}

enum Call {
    Join { agent: AgentName, id: String, key: Box<Key>, reply: oneshot::Sender<Option<Lease>> },
    Release { agent: AgentName, id: String, reply: oneshot::Sender<()> },
    Take { seed: Box<Seed>, open: Box<Open>, reply: oneshot::Sender<Result<Lease, Reason>> },
    Stats { reply: oneshot::Sender<PoolStats> },
}

/// The way to the pool. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    calls: mpsc::Sender<Call>,
}

/// The right to run a turn in a session of a kept process; given back on drop.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) session: SessionKey,
    pub(crate) turn: TurnKey,
    /// The session is not open in the process yet.
    pub(crate) is_new: bool,
    /// The process in which the session was open has died since.
    pub(crate) is_replacement: bool,
    member: MemberId,
    news: mpsc::UnboundedSender<News>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A pool that is gone needs nothing back.
        self.news.send(News::Returned { member: self.member, session: self.session }).ok();
    }
}

impl Pool {
    /// Starts the pool's task.
    pub(crate) fn start(host: &Host) -> Self {
        let (calls, asked) = mpsc::channel(64);
        let (news, heard) = mpsc::unbounded_channel();
        let keeper = Keeper {
            limits: host.pool_limits(),
            shutdown: host.shutdown_token().clone(),
            tasks: host.tasks().clone(),
            members: HashMap::new(),
            next_member: 0,
            stats: PoolStats::default(),
            bereft: VecDeque::new(),
            news,
        };
        host.tasks().spawn(keeper.run(asked, heard));
        Self { calls }
    }

    /// Finds the process in which a session is open, if it would be started in
    /// the same way now. Any other process gives the session up, at once or
    /// after its turn.
    pub(crate) async fn join(&self, agent: &AgentName, id: &str, key: Key) -> Option<Lease> {
        let (agent, id, key) = (agent.clone(), id.to_owned(), Box::new(key));
        self.call(|reply| Call::Join { agent, id, key, reply }).await.flatten()
    }

    /// Makes whatever process has the session give it up.
    pub(crate) async fn release(&self, agent: &AgentName, id: &str) {
        let (agent, id) = (agent.clone(), id.to_owned());
        // Without a pool there is nothing to give up.
        self.call(|reply| Call::Release { agent, id, reply }).await.unwrap_or_default();
    }

    /// Finds or starts a process that can take a session in.
    pub(crate) async fn take(&self, seed: Seed, open: Open) -> Result<Lease, Reason> {
        let (seed, open) = (Box::new(seed), Box::new(open));
        let lease = self.call(|reply| Call::Take { seed, open, reply }).await;
        lease.unwrap_or_else(|| Err(shutting_down()))
    }

    /// Returns what happened so far.
    pub(crate) async fn stats(&self) -> PoolStats {
        self.call(|reply| Call::Stats { reply }).await.unwrap_or_default()
    }

    async fn call<T>(&self, make: impl FnOnce(oneshot::Sender<T>) -> Call) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.calls.send(make(reply)).await.ok()?;
        answer.await.ok()
    }
}

fn shutting_down() -> Reason {
    Reason::Failed(Failure::new(FailureKind::Cancelled, "shutting down"))
}
