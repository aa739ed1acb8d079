//! The task that owns the kept processes: who gets which.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Call, LONGEST_ROUND, Lease, MAX_BEREFT, MemberId, News, PoolLimits, PoolStats, room::close,
    shutting_down,
};
use crate::{
    agent::{AgentName, SessionKey, TurnKey},
    request::Open,
    verdict::Reason,
    warm::{
        seed::{Key, Seed, Started},
        worker::Command,
    },
};

/// The task that owns the kept processes.
pub(super) struct Keeper {
    pub(super) limits: PoolLimits,
    pub(super) shutdown: CancellationToken,
    pub(super) tasks: TaskTracker,
    pub(super) members: HashMap<MemberId, Member>,
    pub(super) next_member: u64,
    pub(super) stats: PoolStats,
    /// Sessions whose process died, the latest last.
    pub(super) bereft: VecDeque<(AgentName, String)>,
    pub(super) news: mpsc::UnboundedSender<News>,
}

/// A kept process, as the pool sees it.
pub(super) struct Member {
    pub(super) agent: AgentName,
    pub(super) key: Key,
    pub(super) capacity: usize,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) stop: CancellationToken,
    /// Of a process of ours.
    pub(super) pid: Option<u32>,
    pub(super) next_session: u32,
    pub(super) next_turn: Arc<AtomicU32>,
    pub(super) seats: HashMap<SessionKey, Seat>,
    pub(super) idle_since: Instant,
    /// Nobody new comes here.
    pub(super) retired: bool,
}

/// A session in a kept process.
pub(super) struct Seat {
    pub(super) id: Option<String>,
    pub(super) n_turns: usize,
    pub(super) idle_since: Instant,
    /// Somebody else wants the session.
    pub(super) wanted: bool,
}

impl Member {
    pub(super) fn is_busy(&self) -> bool {
        self.seats.values().any(|seat| seat.n_turns > 0)
    }

    pub(super) fn find(&self, id: &str) -> Option<SessionKey> {
        let found = self.seats.iter().find(|(_, seat)| seat.id.as_deref() == Some(id));
        found.map(|(session, _)| *session)
    }

    pub(super) fn retire(&mut self) {
        self.retired = true;
        self.stop.cancel();
    }
}

impl Keeper {
    pub(super) async fn run(
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

    pub(super) fn called(&mut self, call: Call) {
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

    pub(super) fn heard(&mut self, news: News) {
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
    pub(super) fn remember_dead(&mut self, member: Member) {
        let ids = member.seats.into_values().filter_map(|seat| seat.id);
        self.bereft.extend(ids.map(|id| (member.agent.clone(), id)));
        let n_too_many = self.bereft.len().saturating_sub(MAX_BEREFT);
        self.bereft.drain(..n_too_many);
    }

    pub(super) fn returned(&mut self, id: MemberId, session: SessionKey) {
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

    pub(super) fn join(&mut self, agent: &AgentName, id: &str, key: &Key) -> Option<Lease> {
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
    pub(super) fn give_up(&mut self, agent: &AgentName, id: &str, but: Option<&Key>) {
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

    pub(super) fn take(&mut self, seed: Seed, open: &Open) -> Result<Lease, Reason> {
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

    pub(super) fn start(&mut self, seed: &Seed, open: &Open) -> Result<MemberId, Reason> {
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

    pub(super) fn lease(
        &mut self,
        id: MemberId,
        session: SessionKey,
        is_new: bool,
    ) -> Option<Lease> {
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
}
