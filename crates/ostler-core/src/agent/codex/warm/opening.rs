//! How sessions are opened and closed, and turns begun and steered.

use serde_json::{Value, json};

use super::{
    server::{AppServer, Call, refused},
    session::input,
    stopping::CLEAN,
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
        let result = result.map_err(|error| refused(&error, FailureKind::InvalidRequest));
        let told = result.and_then(|result| {
            let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
            let thread = result.get("thread");
            let id = text(thread.and_then(|thread| thread.get("id")));
            let file = text(thread.and_then(|thread| thread.get("path")));
            Ok((id.ok_or_else(Failure::unreadable)?, file, text(result.get("model"))))
        });
        let Some(session) = self.sessions.get_mut(&key.0) else {
            // It was closed meanwhile.
            if let Ok((id, ..)) = told {
                self.unload(&id, out);
            }
            return;
        };
        let lost = |asked: &str, id: &str| {
            let text = format!("codex did not resume session {asked} but opened {id}");
            Failure::new(FailureKind::SessionLost, text)
        };
        let told = match (told, &session.thread) {
            (Ok((id, ..)), Some(asked)) if !is_same_session(asked, &id) => Err(lost(asked, &id)),
            (told, _) => told,
        };
        match told {
            Ok((id, file, model)) => {
                session.is_open = true;
                session.thread = Some(id.clone());
                session.file = file.map(Into::into);
                session.model = model.or(session.model.take());
                out.push(Action::Opened { session: key, id });
                self.advance(key, out);
            }
            Err(failure) => {
                self.sessions.remove(&key.0);
                out.push(Action::OpenFailed { session: key, failure });
            }
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
            let (method, params) = session.opening(None);
            self.unload(&thread, out);
            self.ask_server(Call::Open(key), method, params, out);
            return;
        }
        let Some(mut held) = session.held.take() else { return };
        let mut turn = LiveTurn::new(held.turn, session.totals);
        turn.model = held.model().or(session.model.as_ref()).cloned();
        turn.file.clone_from(&session.file);
        turn.steers.append(&mut held.steers);
        if let Some(text) = session.warning.take() {
            turn.warn(text, out);
        }
        session.model.clone_from(&turn.model);
        session.turn = Some(turn);
        let params = held.params(&thread);
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
            self.unload(&thread, out);
        }
    }

    /// Makes the server forget a thread, so that others can go on with it.
    fn unload(&mut self, thread: &str, out: &mut Vec<Action>) {
        let params = json!({ "threadId": thread });
        self.ask_server(Call::Nothing, "thread/unsubscribe", params, out);
    }
}
