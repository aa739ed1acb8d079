//! How a prompt reaches the server: its session is open, idle and ruled, and
//! further texts follow it.

use serde_json::Value;

use super::{
    attach::Rules,
    client::Purpose,
    server::Server,
    session::State,
    turn::{LiveTurn, Stop, not_steered},
};
use crate::{
    agent::{
        Action, SessionKey, TurnEnd, TurnKey,
        emit::emit_warning,
        opencode::{SPEC, fault},
    },
    event::{EventBody, Status},
    failure::{Failure, FailureKind},
};

/// How many further texts may be on their way, or wait with their prompt.
const MAX_STEERS: usize = 100;
const TOO_MANY: &str = "too many wait already";

impl Server {
    pub(super) fn opened(
        &mut self,
        key: SessionKey,
        reply: Result<Value, Failure>,
        out: &mut Vec<Action>,
    ) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let told = reply.and_then(|session| {
            let text = |name: &str| session.get(name).and_then(Value::as_str).map(str::to_owned);
            let rules = session.get("permission").and_then(Value::as_array).cloned();
            let used = session.get("time").and_then(|time| time.get("updated")?.as_i64());
            Ok((text("id").ok_or_else(Failure::unreadable)?, text("directory"), rules, used))
        });
        match told {
            Ok((id, directory, rules, used)) => {
                session.state = State::Open;
                session.rules = rules.unwrap_or_default();
                session.has_rules = !session.rules.is_empty();
                // One that has just been made has no past, and its first message
                // may come in the same millisecond.
                session.since = used.filter(|_| session.id.is_some());
                session.id = Some(id.clone());
                if let Some(directory) = directory.filter(|told| *told != session.directory) {
                    let text = format!("opencode goes on in {directory}, where the session began");
                    session.warning = Some(text);
                    session.directory = directory;
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

    /// Sends the prompt that waits, as soon as that is possible.
    pub(super) fn advance(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let is_drained = self.is_drained(key);
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        if session.is_closing {
            return self.let_go(key, out);
        }
        let Some(held) = &session.held else { return };
        if self.visit.is_some() && !self.is_connected {
            // What would follow could be missed; it goes on when it is heard again.
            return;
        }
        if session.state == State::New {
            session.state = State::Asked;
            let body = held.session_body();
            return self.client.create(key, &session.directory, body, out);
        }
        let Some((id, directory)) = session.at() else { return };
        let is_idle = session.turn.is_none() && session.n_aborts == 0 && is_drained;
        if session.state != State::Open || !is_idle {
            return;
        }
        if session.ruling.is_some() {
            // Rules that come late would be those of the turn that overtook them.
            return;
        }
        session.insist();
        if let Some(rules) = session.held.as_ref().and_then(|held| held.rules.as_ref())
            && !session.obeys(rules)
        {
            let rules = rules.list();
            self.client.restrict(key, (&id, &directory), &rules, out);
            session.ruling = Some(rules);
            return;
        }
        let Some(held) = session.held.take() else { return };
        if let Some(Rules::Free) = held.rules {
            session.rules = Rules::Free.list();
        }
        if held.model(None).is_some_and(|model| !model.contains('/')) {
            let text = "opencode's models are named provider/model; this one names no provider";
            let end = TurnEnd::failed(Failure::new(FailureKind::InvalidRequest, text));
            let end = Box::new(end);
            return out.push(Action::EndTurn { turn: held.turn, end });
        }
        let body = held.body(&held.prompt, session.model.as_deref());
        let mut turn = LiveTurn::new(held);
        let turn_key = turn.key;
        let steers = std::mem::take(&mut turn.held.steers);
        session.turn = Some(turn);
        session.n_missed = 0;
        if let Some(text) = session.warning.take() {
            emit_warning(turn_key, text, out);
        }
        if !std::mem::replace(&mut session.was_version_judged, true)
            && let Some(version) = self.version.as_deref().filter(|version| is_untested(version))
        {
            emit_warning(turn_key, format!("opencode {version} was not tested with this"), out);
        }
        let purpose = Purpose::Prompt(key, turn_key, None);
        self.client.prompt(purpose, (&id, &directory), body, out);
        for text in steers {
            self.steer(turn_key, &text, out);
        }
    }

    /// Returns whether nothing is left of what ran under a session's name before
    /// it was opened.
    fn is_drained(&self, key: SessionKey) -> bool {
        let id = self.sessions.get(&key.0).and_then(|session| session.id.as_ref());
        let mut closing = self.sessions.values().filter(|session| session.is_closing);
        id.is_none() || !closing.any(|session| session.id.as_ref() == id)
    }

    /// The server took a prompt, or did not.
    pub(super) fn sent(
        &mut self,
        key: SessionKey,
        turn: TurnKey,
        steer: Option<String>,
        reply: Result<Value, Failure>,
        out: &mut Vec<Action>,
    ) {
        let Some(live) = self.live(key, turn) else { return };
        if steer.is_some() {
            live.n_steers = live.n_steers.saturating_sub(1);
        }
        match (reply, steer) {
            (Ok(_), Some(text)) => {
                live.tell(None, EventBody::Status(Status::Steered { text }), out);
                if live.is_settling() {
                    // It is about to be taken up.
                    self.settle(key, out);
                }
            }
            (Ok(_), None) => {}
            (Err(failure), Some(text)) => live.not_steered(&text, &failure.message, out),
            (Err(failure), None) if failure.kind == FailureKind::Unavailable => {
                // It may have heard it all the same, or may be about to end: that
                // would be the better reason.
                let reason = fault::stop_reason(&failure);
                live.failure = Some((failure, reason));
                self.stop(key, out);
            }
            (Err(failure), None) => {
                let end = live.failed(failure);
                self.conclude_with(key, Some(end), out);
            }
        }
    }

    /// The server takes a prompt into account that comes while it works.
    pub(super) fn steer(&mut self, turn: TurnKey, text: &str, out: &mut Vec<Action>) {
        let found = self.sessions.iter_mut().find(|(_, session)| session.has_turn(turn));
        let Some((key, session)) = found else { return };
        let at = session.at();
        match (&mut session.turn, &mut session.held, at) {
            (Some(live), _, Some((id, directory))) if live.key == turn => {
                if live.stop != Stop::No {
                    return live.not_steered(text, "the turn is being stopped", out);
                }
                if live.n_steers >= MAX_STEERS {
                    return live.not_steered(text, TOO_MANY, out);
                }
                live.n_steers += 1;
                let body = live.held.body(text, session.model.as_deref());
                let purpose = Purpose::Prompt(SessionKey(*key), turn, Some(text.to_owned()));
                self.client.prompt(purpose, (&id, &directory), body, out);
            }
            (_, Some(held), _) if held.steers.len() >= MAX_STEERS => {
                emit_warning(turn, not_steered(text, TOO_MANY), out);
            }
            (_, Some(held), _) => held.steers.push(text.to_owned()),
            _ => {}
        }
    }
}

fn is_untested(version: &str) -> bool {
    !version.is_empty() && !SPEC.tested_versions.contains(&version)
}
