//! The permission requests that wait for somebody's decision.

use ostler_core::{event::TurnId, permission::Permission};

/// The requests that are open, oldest first, each with its turn.
#[derive(Debug)]
pub(crate) struct Requests<T = TurnId> {
    open: Vec<(Permission, T)>,
    /// The one that somebody is being asked.
    asked: Option<(String, T)>,
}

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Self { open: Vec::new(), asked: None }
    }
}

impl<T: Clone + PartialEq> Requests<T> {
    pub(crate) fn opened(&mut self, permission: Permission, turn: T) {
        self.open.push((permission, turn));
    }

    /// Forgets a request that was decided, by whomever.
    pub(crate) fn resolved(&mut self, request: &str, turn: &T) {
        self.open.retain(|(open, of)| open.request != request || of != turn);
    }

    /// Forgets the requests of a turn that has ended.
    pub(crate) fn ended(&mut self, turn: &T) {
        self.open.retain(|(_, of)| of != turn);
    }

    /// Returns the turn that waits for a decision on this.
    pub(crate) fn turn_of(&self, request: &str) -> Option<&T> {
        self.open.iter().find(|(open, _)| open.request == request).map(|(_, turn)| turn)
    }

    /// Returns the oldest, and its turn.
    pub(crate) fn first(&self) -> Option<(&Permission, &T)> {
        self.open.first().map(|(permission, turn)| (permission, turn))
    }

    /// Returns the oldest, if nobody was asked about it yet.
    pub(crate) fn next_to_ask(&mut self) -> Option<&Permission> {
        let first = self.open.first();
        let asked = first.map(|(permission, turn)| (permission.request.clone(), turn.clone()));
        if asked == self.asked {
            return None;
        }
        self.asked = asked;
        self.first().map(|(permission, _)| permission)
    }

    /// Takes all, to be decided at once.
    pub(crate) fn take_all(&mut self) -> Vec<(String, T)> {
        self.open.drain(..).map(|(permission, turn)| (permission.request, turn)).collect()
    }
}

#[cfg(test)]
mod tests {
    use ostler_core::permission::PermissionKind;

    use super::*;

    fn asks(request: &str) -> Permission {
        Permission::new(PermissionKind::Command, "", String::new(), None).named(request)
    }

    #[test]
    fn a_person_is_asked_one_thing_at_a_time_and_about_each_once() {
        let mut requests = Requests::default();
        let turn = TurnId::new();
        let asked =
            |requests: &mut Requests| requests.next_to_ask().map(|asked| asked.request.clone());
        assert_eq!(asked(&mut requests), None);
        requests.opened(asks("one"), turn.clone());
        requests.opened(asks("two"), turn.clone());
        assert_eq!(asked(&mut requests).as_deref(), Some("one"));
        assert_eq!(asked(&mut requests), None);
        requests.resolved("one", &turn);
        assert_eq!(asked(&mut requests).as_deref(), Some("two"));
        requests.ended(&turn);
        assert_eq!((asked(&mut requests), requests.turn_of("two")), (None, None));
    }
}
