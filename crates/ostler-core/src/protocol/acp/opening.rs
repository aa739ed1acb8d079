//! How the agent introduces itself, and how sessions come and go.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    client::{Alarm, Client, Request},
    hello::{About, OTHER_VERSION},
    session::{Reopening, Session, State},
    spent::Tally,
};
use crate::{
    agent::{Action, SessionKey},
    failure::{Failure, FailureKind},
    protocol::jsonrpc::RpcError,
    request::{Open, Options},
};

/// How long the agent may still take to open a session that nobody needs.
const OPEN_LIMIT: Duration = Duration::from_secs(30);

impl Client {
    pub(super) fn open(
        &mut self,
        key: SessionKey,
        open: &Open,
        options: &Options,
        out: &mut Vec<Action>,
    ) {
        let cannot_load = || {
            let text = "this agent cannot go on with a former session";
            Failure::new(FailureKind::SessionLost, text)
        };
        let refusal = self.refusal.clone();
        let is_lost = open.memo().is_some() && self.reopening.is_none();
        if let Some(failure) = refusal.or_else(|| is_lost.then(cannot_load)) {
            out.push(Action::OpenFailed { session: key, failure });
            return;
        }
        let mut session = Session::new(self.facts, open, options);
        if self.habits.counts_anew {
            session.tally = Tally::default();
        }
        let (method, params) = session.opening(self.reopening.unwrap_or(Reopening::Load));
        self.sessions.insert(key.0, session);
        self.ask_agent(Request::Open(key), method, params, out);
    }

    pub(super) fn introduced(&mut self, about: &Value) {
        let about = About::read(about);
        self.reopening = about.reopening;
        self.can_close = about.can_close;
        self.version = about.version;
        self.habits = (self.facts.habits)(&about.name.unwrap_or_default());
        self.logins = about.logins;
        if !about.speaks_ours {
            self.refusal = Some(Failure::new(FailureKind::Internal, OTHER_VERSION));
        }
    }

    pub(super) fn opened(
        &mut self,
        key: SessionKey,
        result: Result<Value, RpcError>,
        out: &mut Vec<Action>,
    ) {
        if let Some(id) = self.given_up.remove(&key.0) {
            let told = result.as_ref().ok().and_then(|told| told.get("sessionId")?.as_str());
            let id = id.or_else(|| told.map(str::to_owned)).filter(|_| result.is_ok());
            // It may have been opened once more meanwhile.
            if let Some(id) = id.filter(|id| self.find(id).is_none()) {
                self.close_id(&id, out);
            }
            return;
        }
        let is_known = self.sessions.get(&key.0).is_some_and(|session| session.id.is_some());
        let result = result.map_err(|error| self.not_opened(&error, is_known));
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let told = result.and_then(|told| {
            let id = told.get("sessionId").and_then(Value::as_str).map(str::to_owned);
            // The reply to a session that is gone on with names none.
            session.id.clone().or(id).ok_or_else(Failure::unreadable).map(|id| (id, told))
        });
        match told {
            Ok((id, told)) => {
                session.confirmed(self.facts, &told);
                session.wire_id.get_or_insert_with(|| id.clone());
                let is_loaded = session.id.replace(id.clone()).is_some()
                    && self.reopening == Some(Reopening::Load);
                session.state = State::Open;
                if let Some(limit) = self.facts.replay.filter(|_| is_loaded) {
                    session.state = State::Replaying;
                    self.arm(Alarm::Replay(key), limit, out);
                }
                out.push(Action::Opened { session: key, id });
                self.advance(key, out);
            }
            Err(failure) => {
                self.sessions.remove(&key.0);
                out.push(Action::OpenFailed { session: key, failure });
            }
        }
    }

    /// Finds out why a session was not opened.
    pub(super) fn not_opened(&self, error: &RpcError, is_known: bool) -> Failure {
        let mut failure = (self.facts.failure)(error);
        if is_known && (self.facts.is_lost)(error) {
            failure.kind = FailureKind::SessionLost;
        }
        if failure.kind == FailureKind::Auth && !self.logins.is_empty() {
            let ways = self.logins.join("; ");
            failure.message =
                format!("{}. To log in: {ways}", failure.message.trim_end_matches('.'));
        }
        failure
    }

    /// Fails a session whose opening is not waited for any longer: the next turn
    /// is not to wait for it either.
    pub(super) fn give_up(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.remove(&key.0) else { return };
        self.given_up.insert(key.0, session.wire_id);
        let text = "the turn was cancelled before it began";
        let failure = Failure::new(FailureKind::Cancelled, text);
        out.push(Action::OpenFailed { session: key, failure });
        self.arm(Alarm::Open(key), OPEN_LIMIT, out);
    }

    /// Forgets a session, and says so to an agent that wants to know.
    pub(super) fn close(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let turn = self.sessions.get(&key.0).and_then(|session| session.turn.as_ref());
        if let Some(turn) = turn.map(|live| live.key) {
            self.stop(turn, out);
        }
        let Some(session) = self.sessions.remove(&key.0) else { return };
        match session.wire_id {
            // It can be closed when it is open.
            id if session.state == State::Opening => {
                self.given_up.insert(key.0, id);
            }
            Some(id) => self.close_id(&id, out),
            None => {}
        }
    }

    pub(super) fn close_id(&mut self, id: &str, out: &mut Vec<Action>) {
        if self.can_close {
            self.ask_agent(Request::Close, "session/close", json!({ "sessionId": id }), out);
        }
    }
}
