//! What the CLI says: answers to what was asked of it, and what happens in a turn.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    HEARING, Rpc, SETTLING, Stage,
    request::{Purpose, Response},
    running::Running,
    timers::Due,
};
use crate::{
    agent::{
        Action, ONLY_SESSION, TurnKey,
        emit::{emit, emit_unknown, emit_warning},
        pi::{fault, field, session::Session},
    },
    event::{EventBody, Status, Stream},
    failure::{Failure, FailureKind},
};

impl Rpc {
    pub(super) fn line(&mut self, now: Timestamp, bytes: &[u8], out: &mut Vec<Action>) {
        let mut line: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let is_understood = match field::text(&line, "type") {
            Some("response") => match self.requests.take(&mut line) {
                Some((purpose, response)) => {
                    self.response(purpose, response, out);
                    true
                }
                None => false,
            },
            Some("extension_ui_request") => {
                let turn = self.running.as_ref().map(Running::key);
                let is_ending = self.running.as_ref().is_some_and(Running::is_ending);
                self.dialogs.hear(&mut line, turn, is_ending, &mut self.timers, out)
            }
            Some("extension_error") => self.extension_error(&mut line, out),
            Some(_) => self.event(now, &mut line, out),
            None => false,
        };
        if !is_understood {
            self.unknown(bytes, out);
        }
    }

    /// Passes on a line that was not understood, if there is a turn to tell it in.
    pub(super) fn unknown(&self, bytes: &[u8], out: &mut Vec<Action>) {
        if let Some(running) = &self.running {
            emit_unknown(running.key(), Stream::Stdout, bytes, out);
        }
    }

    fn response(&mut self, purpose: Purpose, response: Response, out: &mut Vec<Action>) {
        let Response { data, error } = response;
        match purpose {
            Purpose::Ready => self.greeted(&data, error, out),
            Purpose::Move | Purpose::Arrived => self.moved(&purpose, &data, error, out),
            Purpose::Prompt(turn) => {
                let Some(running) = self.running_as(turn) else { return };
                if let Some(error) = error {
                    running.refuse(&error, out);
                } else if running.accepted(&data, out) {
                    self.requests.ask_state(Purpose::Works(turn), out);
                }
            }
            Purpose::Works(turn) => {
                // An error does not tell that it does not work on it.
                if let (Some(running), None) = (self.running_as(turn), error) {
                    running.works(&data, out);
                }
            }
            Purpose::Steer(turn, text) => self.steered(turn, text, error, out),
            // It is answered when all is quiet. Before the run has begun it did
            // nothing, and is said again then.
            Purpose::Abort(turn) => {
                if let Some(running) = self.running_as(turn)
                    && running.has_begun()
                {
                    running.finish(out);
                }
            }
            Purpose::Forget => {}
        }
    }

    fn greeted(&mut self, data: &Value, error: Option<String>, out: &mut Vec<Action>) {
        let failure = match error {
            Some(error) => fault::of_message(&error, FailureKind::SpawnFailed),
            None if self.place.read(data) => {
                self.stage = Stage::Ready;
                return out.push(Action::Ready);
            }
            None => Failure::unreadable(),
        };
        self.lose(ONLY_SESSION, failure, out);
        out.push(Action::Stop);
    }

    fn moved(
        &mut self,
        purpose: &Purpose,
        data: &Value,
        error: Option<String>,
        out: &mut Vec<Action>,
    ) {
        let Stage::Opening(session) = self.stage else { return };
        let lost = |text: &str| fault::of_message(text, FailureKind::SessionLost);
        if let Some(error) = error {
            self.lose(session, lost(&error), out);
        } else if field::is_true(data, "cancelled") {
            self.lose(session, lost("an extension kept pi from opening the session"), out);
        } else if *purpose == Purpose::Move {
            self.requests.ask_state(Purpose::Arrived, out);
        } else if self.place.read(data) {
            self.arrived(session, out);
        } else {
            self.lose(session, Failure::unreadable(), out);
        }
    }

    fn steered(
        &mut self,
        turn: TurnKey,
        text: String,
        error: Option<String>,
        out: &mut Vec<Action>,
    ) {
        match (self.running_as(turn), error) {
            (Some(_), None) => emit(turn, EventBody::Status(Status::Steered { text }), out),
            (Some(_), Some(error)) => emit_warning(turn, format!("not steered: {error}"), out),
            // It would be put before the next prompt.
            (None, None) => self.requests.send("clear_queue", json!({}), Purpose::Forget, out),
            (None, Some(_)) => {}
        }
    }

    fn extension_error(&self, line: &mut Value, out: &mut Vec<Action>) -> bool {
        if let Some(running) = &self.running {
            let error = field::take_text(line, "error").unwrap_or_default();
            let path = field::take_text(line, "extensionPath").unwrap_or_default();
            emit_warning(running.key(), format!("extension {path}: {error}"), out);
        }
        true
    }

    fn event(&mut self, now: Timestamp, line: &mut Value, out: &mut Vec<Action>) -> bool {
        let kind = field::text(line, "type").unwrap_or_default().to_owned();
        if kind == "agent_settled" {
            self.settles = true;
        }
        if kind == "agent_start" && self.running.is_none() && self.stage == Stage::Open {
            self.begin_unasked(out);
        }
        let settles = self.settles;
        let Some(running) = &mut self.running else { return true };
        let turn = running.key();
        let had_begun = running.has_begun();
        let had_to_be_aborted = running.is_to_be_aborted();
        let is_understood = running.event(now, line, out);
        if running.has_ended() {
            return is_understood;
        }
        let must_abort = running.is_to_be_aborted() && !had_to_be_aborted;
        // An abort that came before the run did nothing.
        let must_repeat = running.has_begun() && !had_begun && running.is_cancelled();
        let may_be_over = running.has_run() && kind != "compaction_start";
        if may_be_over && !settles {
            self.timers.arm(Due::Settled, SETTLING, out);
        } else {
            self.timers.forget(&Due::Settled);
        }
        if must_abort {
            self.timers.arm(Due::Unheard, HEARING, out);
        }
        if must_abort || must_repeat {
            self.abort(turn, out);
        }
        is_understood
    }

    /// An extension can make the CLI run without a prompt.
    fn begin_unasked(&mut self, out: &mut Vec<Action>) {
        let Some(session) = self.session.as_ref().map(Session::key) else { return };
        let turn = TurnKey::unasked(self.n_unasked);
        self.n_unasked = self.n_unasked.saturating_add(1);
        out.push(Action::Unasked { session, turn });
        self.begin(turn, None, false, out);
    }
}
