//! What is due in a kept process, and when.

use tokio::time::Instant;

use super::{super::live::Phase, FAR_AWAY, START_LIMIT, Worker};
use crate::{
    agent::{Exit, Input, TurnKey},
    driver::stopper::Progress,
    failure::{Failure, FailureKind},
    permission::DecidedBy,
    verdict::Reason,
};

impl Worker {
    pub(super) fn heard_at(&self) -> Option<Instant> {
        // What one session's turn prints says nothing about another's.
        self.parts.footing.last_byte_at().filter(|_| !self.parts.is_shared)
    }

    /// Returns the next moment at which something is due.
    pub(super) fn alarm(&self) -> Instant {
        let heard_at = self.heard_at();
        let turns = self.turns.values().map(|turn| turn.due(heard_at));
        let start = (!self.ready).then_some(self.start_limit);
        let footing = &self.parts.footing;
        let own = [footing.due(), self.timers.due(), start.filter(|_| !footing.is_going())];
        let far_away = Instant::now() + FAR_AWAY;
        turns.chain(own.into_iter().flatten()).min().unwrap_or(far_away)
    }

    pub(super) fn rang(&mut self) {
        let now = Instant::now();
        while let Some(timer) = self.timers.take(now) {
            self.step(Input::Timer(timer));
        }
        if !self.ready && !self.parts.footing.is_going() && now >= self.start_limit {
            let text = format!("the agent was not ready within {START_LIMIT:?}");
            let failure = Failure::new(FailureKind::SpawnFailed, text);
            let waiting: Vec<u32> = self.turns.keys().copied().collect();
            for key in waiting {
                self.give_up(TurnKey(key), Reason::Failed(failure.clone()));
            }
            self.stop_hard();
        }
        let heard_at = self.heard_at();
        let due: Vec<u32> = self
            .turns
            .iter()
            .filter(|(_, turn)| turn.due(heard_at) <= now)
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            self.turn_rang(TurnKey(key), now);
        }
        if self.parts.footing.due().is_some_and(|at| at <= now)
            && self.parts.footing.advance() == Progress::Lost
        {
            let exit = Exit { code: None, signal: Some(libc::SIGKILL), stderr: String::new() };
            self.ended(exit);
        }
    }

    pub(super) fn turn_rang(&mut self, key: TurnKey, now: Instant) {
        let Some(turn) = self.turns.get(&key.0) else { return };
        let limits = turn.way.limits;
        match &turn.phase {
            Phase::Waiting { .. } if !self.ready => {
                self.give_up(key, Reason::TimedOut(limits.exceeded(now)));
            }
            Phase::Waiting { .. } => {
                let text = format!("the session was in use for {:?}", limits.timeout);
                let failure = Failure::new(FailureKind::SessionBusy, text);
                self.give_up(key, Reason::Failed(failure));
            }
            Phase::Running => match turn.expired(now).filter(|_| now < limits.deadline) {
                Some(request) => {
                    let why = format!("nobody answered within {:?}", turn.way.ask_timeout);
                    self.deny(key, &request, DecidedBy::Timeout, &why);
                }
                None => self.give_up(key, Reason::TimedOut(limits.exceeded(now))),
            },
            Phase::GivenUp(_) if self.parts.is_shared => self.abandon(key),
            Phase::GivenUp(_) => {
                self.postpone(key);
                self.stop_hard();
            }
        }
    }

    /// The process is being stopped; its end will end the turn.
    pub(super) fn postpone(&mut self, key: TurnKey) {
        if let Some(turn) = self.turns.get_mut(&key.0) {
            turn.phase = Phase::GivenUp(Instant::now() + FAR_AWAY);
        }
    }
}
