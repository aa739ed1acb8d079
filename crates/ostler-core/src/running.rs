//! The turns that run, so that one can be cancelled by its session.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{agent::AgentName, event::TurnId, memo::Memo, turn::Control};

/// The turns of a host that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Running {
    turns: Mutex<Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    turn: TurnId,
    agent: AgentName,
    /// Known from the start for a session that goes on, later for a new one.
    session: Option<String>,
    control: Control,
}

impl Running {
    /// Notes a turn, before it does anything.
    pub(crate) fn add(
        &self,
        turn: &TurnId,
        agent: &AgentName,
        memo: Option<&Memo>,
        control: &Control,
    ) {
        let session = memo.map(|memo| memo.id.clone());
        self.lock().push(Entry {
            turn: turn.clone(),
            agent: agent.clone(),
            session,
            control: control.clone(),
        });
    }

    /// Notes the session that a turn turned out to have.
    pub(crate) fn opened(&self, turn: &TurnId, session: &str) {
        if let Some(entry) = self.lock().iter_mut().find(|entry| entry.turn == *turn) {
            entry.session = Some(session.to_owned());
        }
    }

    /// Forgets a turn that has ended.
    pub(crate) fn remove(&self, turn: &TurnId) {
        self.lock().retain(|entry| entry.turn != *turn);
    }

    /// Cancels the turns of a session, those that wait for it included.
    pub(crate) fn cancel(&self, agent: &str, session: &str) -> usize {
        let turns = self.lock();
        let mine = turns
            .iter()
            .filter(|entry| entry.agent == agent && entry.session.as_deref() == Some(session));
        mine.inspect(|entry| entry.control.cancel()).count()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
