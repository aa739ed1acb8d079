//! What is said before a prompt, and the prompt.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    client::{Alarm, Client, Request},
    session::{Pending, Session, State},
    settings::What,
    turn::LiveTurn,
};
use crate::{
    agent::{Action, SessionKey, TurnEnd, emit::emit_warning},
    event::StopReason,
    failure::{Failure, FailureKind},
    protocol::jsonrpc::RpcError,
};

/// How long the agent may take to change a setting.
const SETTING_LIMIT: Duration = Duration::from_secs(10);

impl Client {
    /// Takes the reply to a change of settings.
    pub(super) fn set(
        &mut self,
        key: SessionKey,
        number: u32,
        result: Result<Value, RpcError>,
        out: &mut Vec<Action>,
    ) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some(pending) = session.answered(number) else { return };
        match result {
            Ok(told) => {
                session.settings.done(&pending.change);
                session.settings.options_are(&told);
                if let Some(text) = session.settings.contradicts(&pending.change) {
                    not_set(session, &pending, text, out);
                }
            }
            Err(error) => {
                let what = match pending.change.what {
                    What::Mode => "mode",
                    What::Model => "model",
                    What::Thinking => "thinking level",
                };
                let why = (self.facts.failure)(&error).message;
                let text = format!("the {what} {} was not taken: {why}", pending.change.value);
                not_set(session, &pending, text, out);
            }
        }
        self.advance(key, out);
    }

    /// Sends the prompt that waits, as soon as that is possible.
    pub(super) fn advance(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        if session.state != State::Open || session.turn.is_some() || session.is_busy {
            return;
        }
        let Some(wire_id) = session.wire_id.clone().filter(|_| session.held.is_some()) else {
            return;
        };
        let mut complaints = Vec::new();
        let change = session.next_change(self.facts, &mut complaints);
        if let Some(held) = &session.held {
            complaints.into_iter().for_each(|text| emit_warning(held.turn, text, out));
        }
        if let Some(change) = change {
            self.n_settings = self.n_settings.wrapping_add(1);
            let number = self.n_settings;
            session.state = State::Setting(number);
            let (method, params) = change.request(&wire_id);
            session.pending = session.held.as_ref().map(|held| Pending { change, turn: held.turn });
            self.ask_agent(Request::Setting(key, number), method, params, out);
            self.arm(Alarm::Setting(key, number), SETTING_LIMIT, out);
            return;
        }
        let Some(mut held) = session.held.take() else { return };
        if let Some(text) = session.warning.take() {
            emit_warning(held.turn, text, out);
        }
        if self.facts.has_settings {
            // What is set needs no words.
            held.options.thinking =
                held.options.thinking.filter(|level| !session.settings.can_think(*level));
        }
        let text = (self.facts.prompt)(&held.prompt, &held.options, session.system_sent);
        let model = session.model(self.facts);
        let (facts, habits) = (self.facts, self.habits);
        let permissions = held.permissions();
        session.turn = Some(LiveTurn::new(facts, habits, held.turn, permissions, model));
        session.is_busy = true;
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": wire_id, "prompt": prompt });
        self.ask_agent(Request::Prompt(key, held.turn), "session/prompt", params, out);
    }
}

/// Says of the prompt that waits that something was not set for it. Where that
/// would let the agent do what it may not, the turn ends; else the prompt is
/// sent all the same, as things are.
pub(super) fn not_set(
    session: &mut Session,
    pending: &Pending,
    text: String,
    out: &mut Vec<Action>,
) {
    let Pending { change, turn } = pending;
    let Some(held) = session.held.take_if(|held| held.turn == *turn) else { return };
    if !change.guards(held.permissions()) {
        emit_warning(*turn, text, out);
        session.held = Some(held);
        return;
    }
    let text = format!(
        "{text}. Without it the agent might do what it may not: change its own settings, \
         or use `--permissions bypass`"
    );
    let end = TurnEnd {
        failure: Some(Failure::new(FailureKind::Denied, text)),
        stop_reason: Some(StopReason::Error),
        totals: session.tally.totals(),
        ..TurnEnd::default()
    };
    out.push(Action::EndTurn { turn: *turn, end: Box::new(end) });
}
