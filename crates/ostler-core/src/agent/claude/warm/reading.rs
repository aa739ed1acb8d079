//! Reads what a process that is kept prints, and finds out whose turn it is.
//!
//! Turns follow each other: one begins with an `init` that names its messages,
//! or with the notice that its message was begun with, and ends with a `result`.
//! What comes in between two turns belongs to none.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    super::{failure::Evidence, field, outcome, turn::Turn},
    GRACE, Kept,
    control::{self, Wish},
    prompted::message_ids,
    timer_of,
};
use crate::{
    agent::{Action, TurnKey, emit::emit_unknown},
    event::Stream,
    failure::{Failure, FailureKind},
};

/// What a version calls it that says which messages its lines are about.
const TELLS_MESSAGES: &str = "msg_lifecycle_v1";

impl Kept {
    pub(super) fn line(&mut self, now: Timestamp, bytes: &[u8], out: &mut Vec<Action>) {
        let Ok(mut line @ Value::Object(_)) = serde_json::from_slice(bytes) else {
            return self.stray(bytes, out);
        };
        match field::text(&line, "type") {
            Some("control_response") => self.response(&line, out),
            Some("control_request") => self.request(&mut line, out),
            Some("control_cancel_request") => {
                if let Some(id) = field::text(&line, "request_id") {
                    self.asked.withdraw(id, out);
                }
            }
            Some("command_lifecycle") => self.lifecycle(&line, out),
            Some("result") => self.result(now, &mut line, out),
            Some("system") if field::text(&line, "subtype") == Some("init") => {
                self.begin(&line, out);
                self.read(now, bytes, &mut line, out);
            }
            Some(_) => self.read(now, bytes, &mut line, out),
            None => self.stray(bytes, out),
        }
    }

    /// A line was too long to read.
    pub(super) fn lost_line(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        if let Some(turn) = &mut self.current {
            turn.has_lost_line = true;
        }
        if let Some(turn) = self.heard_turn() {
            emit_unknown(turn, Stream::Stdout, bytes, out);
        }
    }

    fn stray(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        if let Some(turn) = &mut self.current {
            turn.stray(bytes, out);
        } else if let Some(turn) = self.heard_turn() {
            emit_unknown(turn, Stream::Stdout, bytes, out);
        }
    }

    /// Reads a line of the turn that runs. Between turns it is nobody's.
    fn read(&mut self, now: Timestamp, bytes: &[u8], line: &mut Value, out: &mut Vec<Action>) {
        let Some(turn) = &mut self.current else { return };
        if !turn.document(now, line, out) {
            emit_unknown(turn.key, Stream::Stdout, bytes, out);
        }
        if turn.given_up.is_some() {
            let key = turn.key;
            if self.interrupted != Some(key) {
                out.push(Action::Arm { timer: timer_of(key), after: GRACE });
            }
            self.interrupt(key, false, out);
        }
    }

    /// A turn begins, unless one runs.
    fn begin(&mut self, init: &Value, out: &mut Vec<Action>) {
        let can = init.get("capabilities").and_then(Value::as_array);
        self.tells_messages |=
            can.into_iter().flatten().any(|word| word.as_str() == Some(TELLS_MESSAGES));
        if self.current.is_some() {
            return;
        }
        let sent = self.prompted.as_ref().filter(|prompted| prompted.is_sent());
        match sent {
            Some(prompted) if prompted.is_in(init) || !self.tells_messages => {
                self.current = Some(self.reader(prompted.turn));
            }
            // A message of ours whose turn has ended here.
            _ if message_ids(init).next().is_some() => {}
            _ => self.begin_unasked(out),
        }
    }

    fn begin_unasked(&mut self, out: &mut Vec<Action>) {
        let turn = TurnKey::unasked(self.n_unasked);
        self.n_unasked = self.n_unasked.wrapping_add(1);
        out.push(Action::Unasked { session: self.session.key, turn });
        self.current = Some(self.reader(turn));
    }

    /// The CLI tells how it gets on with a message.
    fn lifecycle(&mut self, line: &Value, out: &mut Vec<Action>) {
        self.tells_messages = true;
        let id = field::text(line, "command_uuid").unwrap_or_default();
        let Some(prompted) = self.prompted.as_ref().filter(|prompted| prompted.is(id)) else {
            return;
        };
        let turn = prompted.turn;
        match field::text(line, "state") {
            Some("started") => self.take_over(turn, out),
            // Normally the result came before.
            Some("cancelled") if self.interrupted == Some(turn) || !self.is_current(turn) => {
                self.end_prompted(outcome::interrupted(), out);
            }
            Some("cancelled" | "completed") if self.has_lost_line() => {
                self.end_prompted(Failure::unreadable(), out);
            }
            Some(_) | None => {}
        }
    }

    /// The prompt's turn begins. If another one runs, the CLI has taken the
    /// prompt into it, and what follows is the answer to the prompt.
    fn take_over(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        if self.is_current(turn) {
            return;
        }
        if let Some(mut other) = self.current.take() {
            self.before_end(&other, out);
            other.let_go(out);
            self.session = other.session;
        }
        self.current = Some(self.reader(turn));
    }

    fn result(&mut self, now: Timestamp, line: &mut Value, out: &mut Vec<Action>) {
        if !self.is_ready {
            if outcome::is_error(line) {
                self.failed_start = Some(outcome::failure(line, None, Evidence::default(), now));
            }
            return;
        }
        if let Some(prompted) = self.prompted.as_ref().filter(|prompted| prompted.is_sent()) {
            let turn = prompted.turn;
            // A start that failed has no `init` and names no message.
            let is_first = self.current.is_none()
                && message_ids(line).next().is_none()
                && !outcome::is_unasked(line);
            if prompted.is_in(line) || is_first {
                self.take_over(turn, out);
            } else if self.is_current(turn) && !self.tells_messages && outcome::is_unasked(line) {
                // Only now does an older version tell that it was not the prompt's turn.
                if let Some(turn) = &mut self.current {
                    turn.document(now, line, out);
                }
                return;
            }
        }
        if let Some(mut turn) = self.current.take() {
            self.before_end(&turn, out);
            turn.finish(now, line, out);
            self.ended(turn);
        }
    }

    /// Answers a request of the CLI's.
    fn request(&mut self, line: &mut Value, out: &mut Vec<Action>) {
        let Some(id) = field::take_text(line, "request_id").filter(|id| !id.is_empty()) else {
            return self.stray(line.to_string().as_bytes(), out);
        };
        let request = line.get_mut("request").map(Value::take).unwrap_or_default();
        match (field::text(&request, "subtype"), &self.current) {
            (Some("can_use_tool"), Some(turn)) => {
                let turn = turn.key;
                let mut request = request;
                self.asked.ask(turn, &id, &mut request, out);
            }
            (Some("can_use_tool"), None) => {
                control::deny(&id, "no turn is running, so nobody can be asked", out);
            }
            (subtype, _) => control::refuse(&id, subtype.unwrap_or("a request"), out),
        }
    }

    /// Takes the answer to a wish of ours.
    fn response(&mut self, line: &Value, out: &mut Vec<Action>) {
        let Some(response) = line.get("response") else { return };
        let Some(wish) = self.wishes.answered(response) else { return };
        let refusal = (field::text(response, "subtype") == Some("error"))
            .then(|| field::text(response, "error").unwrap_or("the agent refused").to_owned());
        match (wish, refusal) {
            (Wish::Initialize, None) => {
                self.is_ready = true;
                out.push(Action::Ready);
            }
            (Wish::Initialize, Some(why)) => {
                self.failed_start = Some(Failure::new(FailureKind::SpawnFailed, why));
                out.push(Action::Stop);
            }
            (Wish::SetModel { model, .. }, None) => self.model = Some(model),
            (Wish::SetModel { turn, .. }, Some(why)) => {
                // It may be over, and another one wait behind it.
                if self.prompted.as_ref().is_some_and(|prompted| prompted.turn == turn) {
                    self.fail_prompted(Failure::new(FailureKind::InvalidRequest, why), out);
                }
            }
            (Wish::Interrupt { .. }, _) => {
                let dropped = response.pointer("/response/cancelled").and_then(Value::as_array);
                let dropped = dropped.into_iter().flatten().filter_map(Value::as_str);
                let is_ours = |id| self.prompted.as_ref().is_some_and(|prompted| prompted.is(id));
                if dropped.into_iter().any(is_ours) {
                    self.end_prompted(outcome::interrupted(), out);
                }
            }
            (Wish::StopTask(_), _) => {}
        }
        self.send(out);
    }

    /// Ends the prompt's turn without a result.
    fn end_prompted(&mut self, failure: Failure, out: &mut Vec<Action>) {
        let Some(turn) = self.prompted.as_ref().map(|prompted| prompted.turn) else { return };
        match self.current.take_if(|current| current.key == turn) {
            Some(mut turn) => {
                self.before_end(&turn, out);
                turn.fail(failure, out);
                self.ended(turn);
            }
            None => self.fail_prompted(failure, out),
        }
    }

    /// Leaves nothing of a turn behind: no question that nobody answers, and of
    /// one that was interrupted nothing in the background.
    fn before_end(&mut self, turn: &Turn, out: &mut Vec<Action>) {
        self.asked.end_turn(turn.key, out);
        if self.interrupted == Some(turn.key) {
            for task in &turn.tasks {
                self.wishes.ask(Wish::StopTask(task.clone()), out);
            }
        }
    }

    fn ended(&mut self, turn: Turn) {
        self.prompted.take_if(|prompted| prompted.turn == turn.key);
        self.session = turn.session;
    }

    fn is_current(&self, turn: TurnKey) -> bool {
        self.current.as_ref().is_some_and(|current| current.key == turn)
    }

    fn has_lost_line(&self) -> bool {
        self.current.as_ref().is_some_and(|turn| turn.has_lost_line)
    }
}
