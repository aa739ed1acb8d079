//! The sessions in a kept process: how they come, and how they go.

use std::mem;

use super::{super::pool::News, Worker};
use crate::{
    agent::{Input, Order, SessionKey, TurnEnd},
    failure::Failure,
    lock::SessionLock,
};

impl Worker {
    /// Opens a session as soon as the process takes any.
    pub(super) fn open_pending(&mut self, session: SessionKey) {
        if !self.ready {
            return;
        }
        let pending = self.sessions.get_mut(&session).and_then(|entry| entry.pending.take());
        if let Some((open, options)) = pending {
            self.step(Input::Order(Order::Open { session, open: &open, options: &options }));
            self.begin_next(session);
        }
    }

    pub(super) fn opened(&mut self, session: SessionKey, id: &str) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        if entry.id.as_deref() != Some(id) {
            let known = entry.id.as_ref().or(entry.asked.as_ref());
            let is_other = known.is_none_or(|known| known != id);
            if is_other {
                let path = self.parts.memos.path(&self.parts.agent, id, "lock");
                // Without the lock the turn still runs; only a second user would
                // not be told to wait.
                entry.lock = SessionLock::try_take(&path).ok().flatten();
            }
            // What was allowed for one session is not for another.
            let mine = mem::take(&mut entry.allowed);
            if entry.id.is_none() {
                self.parts.allowances.add(&self.parts.agent, id, mine);
            }
            entry.allowed = self.parts.allowances.of(&self.parts.agent, id);
            entry.id = Some(id.to_owned());
            let member = self.parts.member;
            self.tell(News::Opened { member, session, id: id.to_owned() });
        }
        if let Some(turn) = self.active_turn(session) {
            turn.tell_session(id);
        }
    }

    pub(super) fn open_failed(&mut self, session: SessionKey, failure: &Failure) {
        let Some(entry) = self.sessions.remove(&session) else { return };
        self.tell(News::Closed { member: self.parts.member, session });
        if entry.active.is_none() && entry.queue.is_empty() {
            self.refused.insert(session, failure.clone());
        }
        for key in entry.active.into_iter().chain(entry.queue) {
            let failed = TurnEnd::failed(failure.clone());
            self.finish(key, Some(failed));
        }
        if !self.parts.is_shared {
            self.retire();
        }
    }

    pub(super) fn close(&mut self, session: SessionKey) {
        self.refused.remove(&session);
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        if entry.active.is_some() || !entry.queue.is_empty() {
            entry.closing = true;
            return;
        }
        self.sessions.remove(&session);
        self.tell(News::Closed { member: self.parts.member, session });
        if self.parts.is_shared {
            self.step(Input::Order(Order::Close { session }));
        } else {
            self.retire();
        }
    }
}
