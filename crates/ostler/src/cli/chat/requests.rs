//! The permission requests that wait for somebody's decision.

use ostler_core::{event::TurnId, permission::Permission};

/// The requests that are open, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    open: Vec<(Permission, TurnId)>,
}

impl Requests {
    pub(crate) fn opened(&mut self, permission: Permission, turn: TurnId) {
        self.open.push((permission, turn));
    }

    /// Forgets a request that was decided, by whomever.
    pub(crate) fn resolved(&mut self, request: &str, turn: &TurnId) {
        self.open.retain(|(open, of)| open.request != request || of != turn);
    }

    /// Forgets the requests of a turn that has ended.
    pub(crate) fn ended(&mut self, turn: &TurnId) {
        self.open.retain(|(_, of)| of != turn);
    }

    /// Returns the turn that waits for a decision on this.
    pub(crate) fn turn_of(&self, request: &str) -> Option<&TurnId> {
        self.open.iter().find(|(open, _)| open.request == request).map(|(_, turn)| turn)
    }

    /// Takes all, to be decided at once.
    pub(crate) fn take_all(&mut self) -> Vec<(String, TurnId)> {
        self.open.drain(..).map(|(permission, turn)| (permission.request, turn)).collect()
    }
}
