//! How turns and sessions end: by themselves, because somebody wants it, or
//! because the server is gone.

use std::time::Duration;

use serde_json::Value;

use super::{
    alarm::Alarm,
    client::Purpose,
    server::Server,
    session::Session,
    turn::{Follows, Stop},
};
use crate::{
    agent::{
        Action, Exit, ONLY_SESSION, SessionKey, TurnEnd, TurnKey, opencode::fault,
        words::exit_words,
    },
    failure::{Failure, FailureKind},
};

/// How long a turn that seems to be over may take to say more.
const SETTLE: Duration = Duration::from_millis(500);
/// How long a turn that we ended may take to end.
const STOP_LIMIT: Duration = Duration::from_millis(1500);
/// How long a prompt that nobody wants any more may take to be taken up.
const DRAIN_LIMIT: Duration = Duration::from_secs(15);

impl Server {
    pub(super) fn cancel(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        let cancelled = || Box::new(TurnEnd::never_begun());
        for session in self.sessions.values_mut() {
            if session.held.as_ref().is_some_and(|held| held.turn == turn) {
                // The server knows nothing of it yet.
                session.held = None;
                out.push(Action::EndTurn { turn, end: cancelled() });
            }
        }
        let Some((key, live)) = self.find_live(turn) else { return };
        if live.has_begun() || live.stop != Stop::No {
            return self.stop(key, out);
        }
        // Nothing has happened that would have to be cleaned up. The prompt is
        // ended when the server takes it up, and the next one waits for that.
        live.stop = Stop::Wanted;
        live.is_silent = true;
        out.push(Action::EndTurn { turn, end: cancelled() });
        self.arm(Alarm::Stop(key, turn), DRAIN_LIMIT, out);
    }

    /// Makes the server end a turn, and what runs in it.
    pub(super) fn stop(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some((id, directory)) = session.at() else { return };
        let Some(live) = &mut session.turn else { return };
        let turn = live.key;
        session.n_aborts += 1;
        if std::mem::replace(&mut live.stop, Stop::Sent) == Stop::No {
            self.arm(Alarm::Stop(key, turn), STOP_LIMIT, out);
        }
        self.client.abort(Purpose::Abort(key, turn), (&id, &directory), out);
    }

    /// Does what follows from something that happened in a turn.
    pub(super) fn follow(&mut self, key: SessionKey, follows: Follows, out: &mut Vec<Action>) {
        let turn = self.sessions.get(&key.0).and_then(|session| session.turn.as_ref());
        let Some((turn, stop)) = turn.map(|live| (live.key, live.stop)) else { return };
        match follows {
            Follows::Nothing => {}
            Follows::Stop if stop == Stop::No => self.stop(key, out),
            Follows::Stop => {}
            Follows::Watch(timer, after) => {
                self.arm(Alarm::Patience(key, turn, timer), after, out);
            }
        }
    }

    /// The turn seems to be over; what may still come gets a moment.
    pub(super) fn settle(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some(live) = &mut session.turn else { return };
        live.settling = live.settling.wrapping_add(1);
        live.awaited = Some(live.settling);
        let alarm = Alarm::Settle(key, live.key, live.settling);
        self.arm(alarm, SETTLE, out);
    }

    /// Says the last word on a turn and goes on with the session.
    pub(super) fn conclude(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let end = session.turn.as_mut().map(|live| live.end(out));
        self.conclude_with(key, end, out);
    }

    pub(super) fn conclude_with(
        &mut self,
        key: SessionKey,
        end: Option<Box<TurnEnd>>,
        out: &mut Vec<Action>,
    ) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some(live) = session.turn.take() else { return };
        let mut end = end.unwrap_or_default();
        session.meanwhile = None;
        session.answered = live.message_ids();
        if end.failure.is_none() {
            session.model = live.model.or(session.model.take());
        }
        session.remember(live.users);
        self.children.retain(|_, (parent, _)| *parent != key);
        self.deny_all(live.key, out);
        if !live.is_silent {
            if let Some(version) = self.version.as_ref().filter(|version| !version.is_empty()) {
                end.meta.insert("version".to_owned(), Value::from(version.as_str()));
            }
            out.push(Action::EndTurn { turn: live.key, end });
        }
        self.advance(key, out);
    }

    /// Forgets a session, as soon as nobody is needed any more who would end what
    /// a cancelled prompt begins.
    pub(super) fn close(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        if let Some(session) = self.sessions.get_mut(&key.0).filter(|one| one.is_draining()) {
            session.held = None;
            session.is_closing = true;
            return;
        }
        let Some(session) = self.sessions.remove(&key.0) else { return };
        self.children.retain(|_, (parent, _)| *parent != key);
        if let (Some((id, directory)), Some(live)) = (session.at(), &session.turn) {
            self.deny_all(live.key, out);
            self.client.abort(Purpose::Nothing, (&id, &directory), out);
        }
    }

    /// Forgets a session that was closed, once nothing of it is left on the
    /// server. One that was opened under the same name waits for that.
    pub(super) fn let_go(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        if self.sessions.get(&key.0).is_none_or(Session::is_draining) {
            return;
        }
        let Some(closed) = self.sessions.remove(&key.0) else { return };
        let next = self.sessions.iter_mut().find(|(_, session)| session.id == closed.id);
        if let Some((next, session)) = next {
            let next = SessionKey(*next);
            session.inherit(closed);
            self.advance(next, out);
        }
    }

    /// The process is gone, or the server was left.
    pub(super) fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        if let Some(visit) = &self.visit {
            let failure = visit.given_up();
            return self.fail_all(&failure, out);
        }
        if !self.is_ready {
            let failure = fault::of_exit(exit, self.cause.as_deref());
            out.push(Action::OpenFailed { session: ONLY_SESSION, failure });
        }
        self.fail_all(&Failure::new(FailureKind::Crashed, exit_words(exit)), out);
    }

    /// Ends every turn, for there is nobody any more who would.
    pub(super) fn fail_all(&mut self, failure: &Failure, out: &mut Vec<Action>) {
        for (_, mut session) in std::mem::take(&mut self.sessions) {
            if let Some(mut live) = session.turn.take().filter(|live| !live.is_silent) {
                let end = live.failed(failure.clone());
                out.push(Action::EndTurn { turn: live.key, end });
            }
            if let Some(held) = session.held.take() {
                let end = Box::new(TurnEnd::failed(failure.clone()));
                out.push(Action::EndTurn { turn: held.turn, end });
            }
        }
        self.asked.clear();
    }
}
