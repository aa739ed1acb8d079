//! How sessions are opened and closed, and turns begun and steered.

use serde_json::{Value, json};

use super::{
    server::{AppServer, Call, refused},
    session::{Session, input},
    stopping::CLEAN,
    thread::Thread,
    turn::{Interrupt, LiveTurn},
};
use crate::{
    agent::{Action, SessionKey, TurnKey, codex::turn::is_same_session},
    failure::{Failure, FailureKind},
    protocol::jsonrpc::RpcError,
};

impl AppServer {
    /// Takes the reply to the request that opens a thread.
    pub(super) fn opened(
        &mut self,
        key: SessionKey,
        result: Result<Value, RpcError>,
        out: &mut Vec<Action>,
    ) {
        if let Err(error) = &result
            && self.is_closing(key, error, out)
        {
            return;
        }
        let thread = match result {
            Ok(reply) => Thread::read(reply).ok_or_else(Failure::unreadable),
            Err(error) => Err(refused(&error, FailureKind::InvalidRequest)),
        };
        let (thread, failure) = match (thread, self.sessions.get_mut(&key.0)) {
            (Ok(thread), Some(session)) => match refusal(session, &thread) {
                None => {
                    let id = thread.id.clone();
                    session.take(thread);
                    out.push(Action::Opened { session: key, id });
                    return self.advance(key, out);
                }
                failure => (Some(thread), failure),
            },
            // It was closed meanwhile.
            (Ok(thread), None) => (Some(thread), None),
            (Err(failure), session) => (None, session.map(|_| failure)),
        };
        if let Some(thread) = thread {
            self.unload(Call::Nothing, &thread.id, out);
        }
        if let Some(failure) = failure {
            self.sessions.remove(&key.0);
            out.push(Action::OpenFailed { session: key, failure });
        }
    }

    /// Sends the prompt that waits, as soon as that is possible.
    pub(super) fn advance(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        if !session.is_open || session.turn.is_some() || session.held.is_none() {
            return;
        }
        let Some(thread) = session.thread.clone() else { return };
        if session.must_reopen() {
            return self.unload(Call::Reopen(key), &thread, out);
        }
        let Some(mut held) = session.held.take() else { return };
        let mut turn = LiveTurn::new(held.turn, session.totals);
        let params = session.turn_params(&held);
        turn.model.clone_from(&session.model);
        turn.file.clone_from(&session.file);
        turn.steers.append(&mut held.steers);
        if let Some(text) = session.warning.take() {
            turn.warn(text, out);
        }
        session.turn = Some(turn);
        self.ask_server(Call::Begin(key, held.turn), "turn/start", params, out);
    }

    /// Takes the reply to the request that begins a turn.
    pub(super) fn begun(
        &mut self,
        key: SessionKey,
        turn: TurnKey,
        result: Result<Value, RpcError>,
        out: &mut Vec<Action>,
    ) {
        let Some(live) = self.live(key, turn).filter(|live| live.ending.is_none()) else { return };
        match result {
            Ok(result) => {
                let id = result.get("turn").and_then(|turn| turn.get("id"));
                if live.id.is_none() {
                    live.id = id.and_then(Value::as_str).map(str::to_owned);
                }
            }
            Err(error) => {
                let end = live.failed(refused(&error, FailureKind::InvalidRequest));
                self.end(key, end, out);
            }
        }
    }

    /// The running turn is to take a text into account.
    pub(super) fn steer(&mut self, turn: TurnKey, text: &str, out: &mut Vec<Action>) {
        let Some((_, session)) = self.sessions.iter_mut().find(|(_, s)| s.has_turn(turn)) else {
            return;
        };
        match (&mut session.turn, &mut session.held) {
            (Some(live), _) if live.key == turn => live.steers.push(text.to_owned()),
            (_, Some(held)) => held.steers.push(text.to_owned()),
            _ => {}
        }
        self.send_steers(turn, out);
    }

    /// Sends what the running turn is to take into account, once it runs.
    pub(super) fn send_steers(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        let Some((key, thread, live)) = self.find_live(turn) else { return };
        if !live.is_running || live.interrupt != Interrupt::No || live.ending.is_some() {
            return;
        }
        let Some(id) = live.id.clone() else { return };
        for text in std::mem::take(&mut live.steers) {
            let params = json!({ "threadId": thread, "expectedTurnId": id, "input": input(&text) });
            self.ask_server(Call::Steer(key, turn, text), "turn/steer", params, out);
        }
    }

    /// Nobody needs a session any more.
    pub(super) fn close(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.remove(&key.0) else { return };
        self.children.retain(|_, parent| *parent != key);
        if let Some(live) = &session.turn {
            self.deny_all(live.key, out);
        }
        // One that is still being opened is unloaded when the server says that it is.
        if let Some(thread) = session.thread.filter(|_| session.is_open) {
            if session.turn.is_some() {
                let params = json!({ "threadId": thread });
                self.ask_server(Call::Nothing, CLEAN, params, out);
            }
            self.unload(Call::Nothing, &thread, out);
        }
    }

    /// Makes the server forget a thread, so that others can go on with it.
    fn unload(&mut self, call: Call, thread: &str, out: &mut Vec<Action>) {
        let params = json!({ "threadId": thread });
        self.ask_server(call, "thread/unsubscribe", params, out);
    }
}

/// Returns why a session cannot be gone on with in this thread.
fn refusal(session: &Session, thread: &Thread) -> Option<Failure> {
    let asked = session.thread.as_ref().filter(|asked| !is_same_session(asked, &thread.id));
    let lost = asked.map(|asked| {
        let text = format!("codex did not resume session {asked} but opened {}", thread.id);
        Failure::new(FailureKind::SessionLost, text)
    });
    lost.or_else(|| thread.refusal(session.bounds()))
}
