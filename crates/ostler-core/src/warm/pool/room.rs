//! Which processes are kept ready, and which ones have to go.

use tokio::time::Instant;

use super::{
    MemberId,
    keeper::{Keeper, Member},
};
use crate::{
    agent::SessionKey,
    proc,
    request::Open,
    warm::{
        seed::{Key, Seed},
        worker::Command,
    },
};

impl Keeper {
    /// Starts fresh processes for the next sessions of this kind.
    pub(super) fn keep_spares(&mut self, seed: &Seed) {
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
    pub(super) fn retire_outdated(&mut self, key: &Key) {
        for member in self.members.values_mut() {
            if member.key.is_outdated_by(key) && !member.retired {
                member.retire();
                self.stats.outdated += 1;
            }
        }
    }

    /// Sends away what has been idle too long, and the longest idle of too many.
    pub(super) fn make_room(&mut self) {
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
    pub(super) fn save_memory(&mut self) {
        let pid = |(id, _)| Some((id, self.members.get(&id)?.pid?));
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
    pub(super) fn parked(&self) -> Vec<(MemberId, Instant)> {
        let mut parked: Vec<_> = self
            .members
            .iter()
            .filter(|(_, member)| !member.retired && !member.is_busy())
            .map(|(id, member)| (*id, member.idle_since))
            .collect();
        parked.sort_by_key(|(_, idle_since)| *idle_since);
        parked
    }

    pub(super) fn evict(&mut self, id: MemberId) {
        if let Some(member) = self.members.get_mut(&id) {
            member.retire();
            self.stats.evicted += 1;
        }
    }
}

/// Closes a session that no turn runs in; of a process for one session all.
pub(super) fn close(member: &mut Member, session: SessionKey) {
    if member.capacity == 1 {
        return member.retire();
    }
    // A worker that does not take it now still has the session, and is asked
    // again when that is idle for too long.
    if member.commands.try_send(Command::Close { session }).is_ok() {
        member.seats.remove(&session);
    }
}
