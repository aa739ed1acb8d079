//! How turns end: by the agent, by us, and with it.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    client::{Alarm, Client},
    prompting::not_set,
    session::{Session, State},
    settings::What,
    turn::LiveTurn,
};
use crate::{
    agent::{Action, Exit, ONLY_SESSION, SessionKey, TurnEnd, TurnKey, words::exit_words},
    failure::{Failure, FailureKind},
    protocol::jsonrpc::RpcError,
};

/// How long a turn that we ended ourselves may take to end.
const STOP_LIMIT: Duration = Duration::from_millis(1500);
/// How long the next prompt waits for an agent that does not end such a turn.
const DRAIN_LIMIT: Duration = Duration::from_secs(15);

impl Client {
    /// Ends a turn whose prompt was answered.
    pub(super) fn over(
        &mut self,
        key: SessionKey,
        result: Result<Value, RpcError>,
        out: &mut Vec<Action>,
    ) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some(mut live) = session.turn.take() else { return };
        let is_done = result.is_ok();
        let end = live.over(result, &mut session.tally, out);
        session.system_sent |= live.is_answered || is_done;
        self.drop_asked(live.key, out);
        self.say_end(live.key, end, out);
    }

    pub(super) fn say_end(&self, turn: TurnKey, mut end: Box<TurnEnd>, out: &mut Vec<Action>) {
        if let Some(version) = &self.version {
            end.meta.insert("version".to_owned(), Value::from(version.as_str()));
        }
        out.push(Action::EndTurn { turn, end });
    }

    pub(super) fn cancel(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        let is_it = |session: &Session| {
            let waits = session.held.as_ref().is_some_and(|held| held.turn == turn);
            waits && session.state == State::Opening
        };
        let opening = self.sessions.iter().find(|(_, session)| is_it(session));
        if let Some(number) = opening.map(|(number, _)| *number) {
            return self.give_up(SessionKey(number), out);
        }
        for session in self.sessions.values_mut() {
            if session.held.as_ref().is_some_and(|held| held.turn == turn) {
                // The agent knows nothing of it yet.
                session.held = None;
                let totals = session.tally.totals();
                let end = TurnEnd { totals, ..TurnEnd::never_begun() };
                out.push(Action::EndTurn { turn, end: Box::new(end) });
            }
        }
        self.stop(turn, out);
    }

    /// Makes the agent end a turn. It does not while it waits for an answer.
    pub(super) fn stop(&mut self, turn: TurnKey, out: &mut Vec<Action>) -> Option<SessionKey> {
        let (key, session) = self.sessions.iter_mut().find(|(_, session)| {
            session.turn.as_ref().is_some_and(|live| live.key == turn && !live.is_stopping)
        })?;
        let key = SessionKey(*key);
        if let Some(live) = &mut session.turn {
            live.is_stopping = true;
        }
        let params = json!({ "sessionId": session.wire_id });
        self.drop_asked(turn, out);
        out.push(Action::Write(self.peer.notification_of("session/cancel", params)));
        Some(key)
    }

    /// Takes a line of standard error.
    pub(super) fn complaint(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        let turn = self.only_turn();
        let failure = self.stderr.line(bytes, turn, out);
        if let (Some(failure), Some(turn)) = (failure, turn)
            && let Some(key) = self.stop(turn, out)
        {
            if let Some(live) = self.find_live(turn) {
                live.failure = Some(failure);
            }
            self.arm(Alarm::Stop(key, turn), STOP_LIMIT, out);
        }
    }

    pub(super) fn rang(&mut self, alarm: Alarm, out: &mut Vec<Action>) {
        match alarm {
            Alarm::Replay(key) => {
                let Some(session) = self.sessions.get_mut(&key.0) else { return };
                if session.state == State::Replaying {
                    session.state = State::Open;
                    self.advance(key, out);
                }
            }
            Alarm::Setting(key, number) => {
                let Some(session) = self.sessions.get_mut(&key.0) else { return };
                let Some(pending) = session.answered(number) else { return };
                // It may still come to be set.
                session.settings.forget(pending.change.what);
                if let Some(held) = session.held.as_mut().filter(|held| held.turn == pending.turn) {
                    // Whatever was to be set, it is not asked for once more.
                    held.settled.extend([What::Mode, What::Model, What::Thinking]);
                }
                let text =
                    format!("the agent did not answer when {} was to be set", pending.change.value);
                not_set(session, &pending, text, out);
                self.advance(key, out);
            }
            Alarm::Open(key) => {
                // An agent that hangs, and that nobody else uses, is of no use.
                if self.given_up.contains_key(&key.0) && self.sessions.is_empty() {
                    out.push(Action::Stop);
                }
            }
            Alarm::Stop(key, turn) => {
                let Some(session) = self.sessions.get_mut(&key.0) else { return };
                let is_it = |live: &mut LiveTurn| live.key == turn && live.failure.is_some();
                if let Some(mut live) = session.turn.take_if(is_it)
                    && let Some(failure) = live.failure.take()
                {
                    // The next prompt waits until the agent has ended this one.
                    let end = live.failed(failure, &session.tally);
                    self.say_end(turn, end, out);
                    self.arm(Alarm::Drain(key), DRAIN_LIMIT, out);
                }
            }
            Alarm::Drain(key) => {
                let is_stuck = |session: &Session| session.is_busy && session.turn.is_none();
                if self.sessions.get(&key.0).is_some_and(is_stuck) {
                    self.sessions.remove(&key.0);
                    let text = "the agent does not end the turn before, which was given up";
                    let failure = Failure::new(FailureKind::SessionBusy, text);
                    out.push(Action::OpenFailed { session: key, failure });
                }
            }
        }
    }

    pub(super) fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        if !self.is_ready {
            let failure = self.stderr.not_started(exit);
            out.push(Action::OpenFailed { session: ONLY_SESSION, failure });
        }
        let crashed = Failure::new(FailureKind::Crashed, exit_words(exit));
        for session in std::mem::take(&mut self.sessions).into_values() {
            if let Some(mut live) = session.turn {
                let failure = live.failure.take().unwrap_or_else(|| crashed.clone());
                let end = live.failed(failure, &session.tally);
                self.say_end(live.key, end, out);
            }
            if let Some(held) = session.held {
                let (failure, totals) = (Some(crashed.clone()), session.tally.totals());
                let end = TurnEnd { failure, totals, ..TurnEnd::default() };
                out.push(Action::EndTurn { turn: held.turn, end: Box::new(end) });
            }
        }
        self.asked.clear();
    }
}
