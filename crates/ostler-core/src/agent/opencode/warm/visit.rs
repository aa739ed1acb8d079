//! A server that somebody else runs: how it is found, lost and left.
//!
//! It is never stopped. When it cannot be reached for a while every turn ends,
//! and whoever wants the next one looks for it anew.

use std::time::Duration;

use serde_json::Value;

use super::{alarm::Alarm, attach, server::Server, turn::Stop};
use crate::{
    agent::{Action, ONLY_SESSION, SessionKey, TurnEnd, http::ServerAddress},
    failure::{Failure, FailureKind},
};

/// How long a server may be out of reach. One that is started again needs two
/// seconds, and more on a busy machine.
const LOST_LIMIT: Duration = Duration::from_secs(15);

/// What is known of a server that is not ours.
pub(super) struct Visit {
    server: ServerAddress,
    /// Counts the waits for the server; an old one says nothing.
    round: u32,
    /// Why the server was lost last.
    loss: String,
    is_leaving: bool,
}

impl Visit {
    pub(super) fn new(server: &ServerAddress) -> Self {
        Self { server: server.clone(), round: 0, loss: String::new(), is_leaving: false }
    }

    /// Returns why no turn can go on that still runs.
    pub(super) fn given_up(&self) -> Failure {
        let url = self.server.url();
        let text = format!("the connection to opencode's server at {url} was given up");
        Failure::new(FailureKind::Unavailable, text)
    }

    fn lost(&self) -> Failure {
        let Self { server, loss, .. } = self;
        let text = format!(
            "opencode's server at {} was out of reach for {LOST_LIMIT:?}: GET /global/event: \
             {loss}",
            server.url()
        );
        Failure::new(FailureKind::Unavailable, text)
    }
}

impl Server {
    pub(super) fn begin_visit(&mut self, out: &mut Vec<Action>) {
        self.client.health(out);
        self.client.listen(out);
        let round = self.visit.as_ref().map_or(0, |visit| visit.round);
        self.arm(Alarm::Lost(round), LOST_LIMIT, out);
    }

    /// The server has said whether it is well, and thereby that it is one.
    pub(super) fn welcomed(&mut self, reply: Result<Value, Failure>, out: &mut Vec<Action>) {
        let Some(visit) = &self.visit else { return };
        match attach::judged(&visit.server, reply) {
            Ok(version) => {
                visit.server.remember_version(&version);
                self.version = Some(version);
                self.ready_if_so(out);
            }
            Err(error) => self.refuse(Failure::from(&error), out),
        }
    }

    /// Takes note of why the stream is lost.
    pub(super) fn miss(&mut self, why: &str, out: &mut Vec<Action>) {
        let Some(visit) = &mut self.visit else { return };
        visit.loss = why.to_owned();
        if self.is_connected {
            visit.round = visit.round.wrapping_add(1);
            let round = visit.round;
            self.arm(Alarm::Lost(round), LOST_LIMIT, out);
        }
    }

    pub(super) fn found_again(&mut self) {
        if let Some(visit) = &mut self.visit {
            visit.round = visit.round.wrapping_add(1);
        }
    }

    /// Looks for a lost server at once, because somebody needs it.
    pub(super) fn seek(&mut self, out: &mut Vec<Action>) {
        if self.visit.is_some() && self.is_ready && !self.is_connected {
            self.client.listen(out);
        }
    }

    /// The server was waited for.
    pub(super) fn waited(&mut self, round: u32, out: &mut Vec<Action>) {
        let Some(visit) = self.visit.as_ref().filter(|visit| visit.round == round) else { return };
        if !self.is_connected {
            self.refuse(visit.lost(), out);
        }
    }

    /// Nothing can be done there; whoever comes next may try again.
    fn refuse(&mut self, failure: Failure, out: &mut Vec<Action>) {
        if !self.is_ready {
            let failure = failure.clone();
            out.push(Action::OpenFailed { session: ONLY_SESSION, failure });
        }
        self.fail_all(&failure, out);
        out.push(Action::Stop);
    }

    /// The server has taken a session's rules, or has not.
    pub(super) fn ruled(
        &mut self,
        key: SessionKey,
        reply: Result<Value, Failure>,
        out: &mut Vec<Action>,
    ) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let asked = session.ruling.take().unwrap_or_default();
        let held = session.held.as_ref().and_then(|held| held.rules.as_ref());
        let is_wanted = held.is_some_and(|rules| rules.list() == asked);
        match reply {
            Ok(told) => {
                let rules = told.get("permission").and_then(Value::as_array);
                session.rules = rules.cloned().unwrap_or_default();
                if !is_wanted || session.rules.ends_with(&asked) {
                    return self.advance(key, out);
                }
                let failure = Failure::new(
                    FailureKind::InvalidRequest,
                    "opencode's server did not take the rules of this turn; it was not begun",
                );
                self.drop_held(key, failure, out);
            }
            // The turn that they were for was cancelled.
            Err(_) if !is_wanted => self.advance(key, out),
            Err(failure) => self.drop_held(key, failure, out),
        }
    }

    /// Ends a turn that the server knows nothing of.
    fn drop_held(&mut self, key: SessionKey, failure: Failure, out: &mut Vec<Action>) {
        let held = self.sessions.get_mut(&key.0).and_then(|session| session.held.take());
        if let Some(held) = held {
            let end = Box::new(TurnEnd::failed(failure));
            out.push(Action::EndTurn { turn: held.turn, end });
        }
    }

    /// Ends what still runs. A prompt that the server has not taken up is ended
    /// when it does, for it would not listen before.
    pub(super) fn leave(&mut self, out: &mut Vec<Action>) {
        let Some(visit) = &mut self.visit else { return };
        visit.is_leaving = true;
        let runs: Vec<u32> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.turn.as_ref().is_some_and(|live| live.stop == Stop::No))
            .map(|(key, _)| *key)
            .collect();
        for key in runs {
            self.stop(SessionKey(key), out);
        }
    }

    /// Leaves once the server has heard everything.
    pub(super) fn leave_if_done(&mut self, out: &mut Vec<Action>) {
        let Some(visit) = &mut self.visit else { return };
        let is_done =
            self.client.is_idle() && self.sessions.values().all(|session| session.turn.is_none());
        if is_done && std::mem::take(&mut visit.is_leaving) {
            out.push(Action::Stop);
        }
    }
}
