//! What a running turn has asked for and nobody has decided yet.

use std::collections::HashMap;

use ostler_core::{
    event::{Event, EventBody, Status},
    turn::Turn,
};

use super::{
    asking::{self, Asked, Asking},
    begin::Place,
};
use crate::{
    id::{PermissionId, TurnId},
    store::{Store, Topic, Wakeups},
};

/// The open requests of a turn.
pub(crate) struct Requests {
    store: Store,
    place: Place,
    turn: TurnId,
    /// By the names that the agent gave them.
    open: HashMap<String, PermissionId>,
    /// How many there were.
    n_requests: u32,
    answers: Wakeups,
}

impl Requests {
    pub(crate) fn new(store: &Store, place: &Place, turn: TurnId) -> Self {
        Self {
            store: store.clone(),
            place: place.clone(),
            turn,
            open: HashMap::new(),
            n_requests: 0,
            answers: store.wakeups(Topic::Wishes),
        }
    }

    /// Takes note of an event; returns by what a request is answered, if it is one.
    pub(crate) async fn event(&mut self, event: &Event) -> Option<Asking> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "only these two matter here")]
        match &event.body {
            EventBody::Permission(permission) => {
                self.n_requests += 1;
                let asked = Asked {
                    conversation: self.place.conversation,
                    turn: self.turn,
                    of: self.place.sender.clone(),
                    permission,
                    target: &self.place.target,
                    number: self.n_requests,
                };
                let asking = asking::store(&self.store, asked).await?;
                self.open.insert(permission.request.clone(), asking.id);
                Some(asking)
            }
            EventBody::Status(Status::PermissionResolved { request, decision, by }) => {
                let id = self.open.remove(request)?;
                asking::settle(&self.store, id, *decision, *by).await;
                None
            }
            _ => None,
        }
    }

    /// Returns whether anything was asked.
    pub(crate) fn has_asked(&self) -> bool {
        self.n_requests > 0
    }

    /// Waits until there may be an answer; for ever if nothing was asked. Cancel-safe.
    pub(crate) async fn answered(&mut self) {
        if self.open.is_empty() {
            std::future::pending::<()>().await;
        }
        self.answers.next().await;
    }

    /// Hands the turn the answers that were given.
    pub(crate) async fn answer(&mut self, turn: &Turn) {
        for (request, answer) in asking::answers(&self.store, self.turn, &self.open).await {
            self.open.remove(&request);
            // One that is no longer open was decided meanwhile, and its event says so.
            turn.answer(&request, answer).await.ok();
        }
    }
}
