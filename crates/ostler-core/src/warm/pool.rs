//! The processes that are kept: who has which, and which ones go.
//!
//! One task owns them all, so nothing here is locked. Turns hold leases; a
//! process without one is parked, and leaves when it has been idle too long,
//! when there are too many, when they take too much memory, when its program on
//! disk was replaced, or when its session is wanted elsewhere.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    seed::{Key, Seed, Started},
    worker::Command,
};
use crate::{
    agent::{AgentName, SessionKey, TurnKey},
    failure::{Failure, FailureKind},
    host::Host,
    proc,
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

/// The task that owns the kept processes.
struct Keeper {
    limits: PoolLimits,
    shutdown: CancellationToken,
    tasks: tokio_util::task::TaskTracker,
    members: HashMap<MemberId, Member>,
    next_member: u64,
    stats: PoolStats,
    /// Sessions whose process died, the latest last.
    bereft: VecDeque<(AgentName, String)>,
    news: mpsc::UnboundedSender<News>,
}

/// A kept process, as the pool sees it.
struct Member {
    agent: AgentName,
    key: Key,
    capacity: usize,
    commands: mpsc::Sender<Command>,
    stop: CancellationToken,
    pid: u32,
    next_session: u32,
    next_turn: Arc<AtomicU32>,
    seats: HashMap<SessionKey, Seat>,
    idle_since: Instant,
    /// Nobody new comes here.
    retired: bool,
}

/// A session in a kept process.
struct Seat {
    id: Option<String>,
    n_turns: usize,
    idle_since: Instant,
    /// Somebody else wants the session.
    wanted: bool,
}

impl Member {
    fn is_busy(&self) -> bool {
        self.seats.values().any(|seat| seat.n_turns > 0)
    }

    fn find(&self, id: &str) -> Option<SessionKey> {
        let found = self.seats.iter().find(|(_, seat)| seat.id.as_deref() == Some(id));
        found.map(|(session, _)| *session)
    }

    fn retire(&mut self) {
        self.retired = true;
        self.stop.cancel();
    }
}

impl Keeper {
    async fn run(
        mut self,
        mut calls: mpsc::Receiver<Call>,
        mut news: mpsc::UnboundedReceiver<News>,
    ) {
        let round = self.limits.round.min(LONGEST_ROUND);
        let mut next_round = Instant::now() + round;
        loop {
            // Looked at here and not where it is heard of: it may come in the
            // midst of what is done below, and nothing else would wake this loop.
            let closing = self.shutdown.is_cancelled();
            if closing {
                self.members.values_mut().for_each(Member::retire);
                if self.members.is_empty() {
                    return;
                }
            }
            tokio::select! {
                biased;
                () = self.shutdown.cancelled(), if !closing => {}
                Some(news) = news.recv() => self.heard(news),
                Some(call) = calls.recv(), if !closing => self.called(call),
                () = sleep_until(next_round) => {
                    self.make_room();
                    self.save_memory();
                    next_round = Instant::now() + round;
                }
            }
        }
    }

    fn called(&mut self, call: Call) {
        // Whoever called may have given up since: a lease then comes back by itself.
        match call {
            Call::Join { agent, id, key, reply } => {
                reply.send(self.join(&agent, &id, &key)).ok();
            }
            Call::Release { agent, id, reply } => {
                self.give_up(&agent, &id, None);
                reply.send(()).ok();
            }
            Call::Take { seed, open, reply } => {
                reply.send(self.take(*seed, &open)).ok();
            }
            Call::Stats { reply } => {
                let busy = self.members.values().filter(|member| member.is_busy()).count();
                let parked = self.members.len().saturating_sub(busy);
                reply.send(PoolStats { busy, parked, ..self.stats }).ok();
            }
        }
    }

    fn heard(&mut self, news: News) {
        match news {
            News::Opened { member, session, id } => {
                let seat = self.members.get_mut(&member).and_then(|m| m.seats.get_mut(&session));
                if let Some(seat) = seat {
                    seat.id = Some(id);
                }
            }
            News::Closed { member, session } => {
                if let Some(member) = self.members.get_mut(&member) {
                    member.seats.remove(&session);
                }
            }
            News::Retired { member } => {
                if let Some(member) = self.members.get_mut(&member) {
                    member.retired = true;
                }
            }
            News::Gone { member, died } => {
                if let Some(member) = self.members.remove(&member)
                    && died
                {
                    self.stats.died += 1;
                    self.remember_dead(member);
                }
            }
            News::Returned { member, session } => self.returned(member, session),
        }
    }

    /// Notes whose process died, so that the next turn there can be told.
    fn remember_dead(&mut self, member: Member) {
        let ids = member.seats.into_values().filter_map(|seat| seat.id);
        self.bereft.extend(ids.map(|id| (member.agent.clone(), id)));
        let n_too_many = self.bereft.len().saturating_sub(MAX_BEREFT);
        self.bereft.drain(..n_too_many);
    }

    fn returned(&mut self, id: MemberId, session: SessionKey) {
        let Some(member) = self.members.get_mut(&id) else { return };
        member.idle_since = Instant::now();
        if let Some(seat) = member.seats.get_mut(&session) {
            seat.n_turns = seat.n_turns.saturating_sub(1);
            seat.idle_since = Instant::now();
            // One that never got an id cannot be asked for again.
            if seat.n_turns == 0 && (seat.wanted || seat.id.is_none()) {
                close(member, session);
            }
        }
        self.make_room();
    }

    fn join(&mut self, agent: &AgentName, id: &str, key: &Key) -> Option<Lease> {
        self.retire_outdated(key);
        self.give_up(agent, id, Some(key));
        let (member_id, session) = self.members.iter().find_map(|(member_id, member)| {
            let fits = member.agent == *agent && member.key == *key && !member.retired;
            fits.then(|| member.find(id)).flatten().map(|session| (*member_id, session))
        })?;
        self.stats.reused += 1;
        self.lease(member_id, session, false)
    }

    /// Makes processes give a session up, except one with this key.
    fn give_up(&mut self, agent: &AgentName, id: &str, but: Option<&Key>) {
        for member in self.members.values_mut() {
            let stays = !member.retired && but == Some(&member.key);
            if member.agent != *agent || stays {
                continue;
            }
            let Some(session) = member.find(id) else { continue };
            if let Some(seat) = member.seats.get_mut(&session) {
                seat.wanted = true;
                if seat.n_turns == 0 {
                    close(member, session);
                }
            }
        }
    }

    fn take(&mut self, seed: Seed, open: &Open) -> Result<Lease, Reason> {
        self.retire_outdated(&seed.key);
        let adopts = match open {
            Open::New => true,
            Open::Resume(memo) => (seed.warm.adopts)(memo),
        };
        let roomy = |member: &Member| {
            !member.retired && member.key == seed.key && member.seats.len() < member.capacity
        };
        let found = self.members.iter().find(|(_, member)| adopts && roomy(member));
        let member_id = match found.map(|(id, _)| *id) {
            Some(id) => {
                self.stats.reused += 1;
                id
            }
            None => self.start(&seed, open)?,
        };
        let Some(member) = self.members.get_mut(&member_id) else {
            return Err(shutting_down());
        };
        let session = SessionKey(member.next_session);
        member.next_session = member.next_session.saturating_add(1);
        let id = open.memo().map(|memo| memo.id.clone());
        let seat = Seat { id, n_turns: 0, idle_since: Instant::now(), wanted: false };
        member.seats.insert(session, seat);
        let mut lease = self.lease(member_id, session, true).ok_or_else(shutting_down)?;
        lease.is_replacement = open.memo().is_some_and(|memo| {
            let known =
                |(agent, id): &(AgentName, String)| *agent == seed.spec().name && *id == memo.id;
            let found = self.bereft.iter().position(known);
            found.is_some_and(|at| self.bereft.remove(at).is_some())
        });
        self.keep_spares(&seed);
        Ok(lease)
    }

    fn start(&mut self, seed: &Seed, open: &Open) -> Result<MemberId, Reason> {
        let id = MemberId(self.next_member);
        self.next_member = self.next_member.saturating_add(1);
        let Started { worker, commands, stop, pid } = seed.start(id, open, self.news.clone())?;
        self.tasks.spawn(worker.run());
        self.stats.started += 1;
        let member = Member {
            agent: seed.spec().name.clone(),
            key: seed.key.clone(),
            capacity: seed.warm.sessions_per_process,
            commands,
            stop,
            pid,
            next_session: 0,
            next_turn: Arc::new(AtomicU32::new(0)),
            seats: HashMap::new(),
            idle_since: Instant::now(),
            retired: false,
        };
        self.members.insert(id, member);
        Ok(id)
    }

    fn lease(&mut self, id: MemberId, session: SessionKey, is_new: bool) -> Option<Lease> {
        let member = self.members.get_mut(&id)?;
        member.seats.get_mut(&session)?.n_turns += 1;
        Some(Lease {
            commands: member.commands.clone(),
            session,
            turn: TurnKey(member.next_turn.fetch_add(1, Ordering::Relaxed)),
            is_new,
            is_replacement: false,
            member: id,
            news: self.news.clone(),
        })
    }

    /// Starts fresh processes for the next sessions of this kind.
    fn keep_spares(&mut self, seed: &Seed) {
        if seed.warm.sessions_per_process > 1 {
            return;
        }
        let is_spare =
            |member: &&Member| !member.retired && member.key == seed.key && member.seats.is_empty();
        let n_spares = self.members.values().filter(is_spare).count();
        for _ in n_spares..self.limits.spares {
            // A spare that cannot be started is missed by nobody; the next
            // session that needs a process tells why.
            if self.start(seed, &Open::New).is_err() {
                return;
            }
        }
    }

    /// Sends processes of a program away that was replaced since.
    fn retire_outdated(&mut self, key: &Key) {
        for member in self.members.values_mut() {
            if member.key.program == key.program && member.key.stamp != key.stamp && !member.retired
            {
                member.retire();
                self.stats.outdated += 1;
            }
        }
    }

    /// Sends away what has been idle too long, and the longest idle of too many.
    fn make_room(&mut self) {
        let now = Instant::now();
        for member in self.members.values_mut().filter(|member| member.capacity > 1) {
            let late: Vec<SessionKey> = member
                .seats
                .iter()
                .filter(|(_, seat)| seat.n_turns == 0 && now - seat.idle_since >= self.limits.idle)
                .map(|(session, _)| *session)
                .collect();
            for session in late {
                close(member, session);
            }
        }
        let parked = self.parked();
        let n_too_many = parked.len().saturating_sub(self.limits.parked);
        for (number, (id, idle_since)) in parked.into_iter().enumerate() {
            if number < n_too_many || now - idle_since >= self.limits.idle {
                self.evict(id);
            }
        }
    }

    /// Sends away the longest idle ones until the others take little enough memory.
    fn save_memory(&mut self) {
        let pid = |(id, _)| self.members.get(&id).map(|member| (id, member.pid));
        let parked: Vec<(MemberId, u32)> = self.parked().into_iter().filter_map(pid).collect();
        let pids: Vec<u32> = parked.iter().map(|(_, pid)| *pid).collect();
        let memory = proc::resident_below(&pids);
        let mut total: u64 = memory.values().sum();
        for (id, pid) in parked {
            if total <= self.limits.memory {
                return;
            }
            total = total.saturating_sub(memory.get(&pid).copied().unwrap_or(0));
            self.evict(id);
        }
    }

    /// Returns the processes without a turn, the longest idle first.
    fn parked(&self) -> Vec<(MemberId, Instant)> {
        let mut parked: Vec<_> = self
            .members
            .iter()
            .filter(|(_, member)| !member.retired && !member.is_busy())
            .map(|(id, member)| (*id, member.idle_since))
            .collect();
        parked.sort_by_key(|(_, idle_since)| *idle_since);
        parked
    }

    fn evict(&mut self, id: MemberId) {
        if let Some(member) = self.members.get_mut(&id) {
            member.retire();
            self.stats.evicted += 1;
        }
    }
}

/// Closes a session that no turn runs in; of a process for one session all.
fn close(member: &mut Member, session: SessionKey) {
    if member.capacity == 1 {
        return member.retire();
    }
    // A worker that does not take it now still has the session, and is asked
    // again when that is idle for too long.
    if member.commands.try_send(Command::Close { session }).is_ok() {
        member.seats.remove(&session);
    }
}
