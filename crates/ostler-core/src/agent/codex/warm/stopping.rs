//! How turns are ended: by themselves, by a person, because they took too long,
//! or with the process.
//!
//! The server leaves the commands of an interrupted turn running, so they are
//! ended before the turn's last word is passed on.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    server::{Alarm, AppServer, Call, too_late},
    turn::{Interrupt, LiveTurn},
};
use crate::{
    agent::{
        Action, Exit, ONLY_SESSION, SessionKey, TurnEnd, TurnKey,
        codex::{fault, turn::is_noise},
        emit::emit_warning,
        words::exit_words,
    },
    failure::{Failure, FailureKind},
    memo::Totals,
};

/// The method that ends the commands of a thread.
pub(super) const CLEAN: &str = "thread/backgroundTerminals/clean";
/// How long an interrupted turn may take to end and to be cleaned up.
const STOP_LIMIT: Duration = Duration::from_millis(1500);
/// How long the last words on commands may take after that.
const LAST_WORDS_LIMIT: Duration = Duration::from_millis(250);

impl AppServer {
    /// Ends a turn that somebody has had enough of.
    pub(super) fn cancel(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        for session in self.sessions.values_mut() {
            if session.held.as_ref().is_some_and(|held| held.turn == turn) {
                // The server knows nothing of it yet.
                session.held = None;
                let totals = session.totals;
                let end = TurnEnd { totals, ..TurnEnd::never_begun() };
                out.push(Action::EndTurn { turn, end: Box::new(end) });
            }
        }
        self.stop(turn, out);
    }

    /// Makes the server end a turn, and what runs in it.
    fn stop(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        let Some((key, _, live)) = self.find_live(turn) else { return };
        if live.interrupt == Interrupt::No && live.ending.is_none() {
            live.interrupt = Interrupt::Wanted;
            self.arm(Alarm::Stop(key, turn), STOP_LIMIT, out);
            self.send_interrupt(turn, out);
        }
    }

    /// Sends the interruption that is wanted, once the turn runs.
    pub(super) fn send_interrupt(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        let Some((_, thread, live)) = self.find_live(turn) else { return };
        if live.interrupt != Interrupt::Wanted || !live.is_running || live.ending.is_some() {
            return;
        }
        let Some(id) = live.id.clone() else { return };
        live.interrupt = Interrupt::Sent;
        let params = json!({ "threadId": thread, "turnId": id });
        self.ask_server(Call::Nothing, "turn/interrupt", params, out);
    }

    /// Takes the ringing of a timer.
    pub(super) fn rang(&mut self, alarm: Alarm, out: &mut Vec<Action>) {
        match alarm {
            Alarm::Reopen(key, wait) => {
                if self.sessions.get(&key.0).is_some_and(|session| session.n_waits == wait) {
                    self.reopen(key, out);
                }
            }
            Alarm::Patience(key, turn, timer) => {
                let Some(live) = self.live(key, turn) else { return };
                if let Some(why) = live.rang(timer).filter(|_| live.interrupt == Interrupt::No) {
                    live.failure = Some(fault::of_message(&why, FailureKind::Unavailable));
                    self.stop(turn, out);
                }
            }
            Alarm::Stop(key, turn) => {
                let Some(live) = self.live(key, turn) else { return };
                if live.ending.is_some() {
                    return self.conclude(key, out);
                }
                // A cancelled turn that does not end is for the driver to give up,
                // with the process. One that we ended ourselves leaves a thread
                // behind that is opened anew for the next prompt.
                if let Some(failure) = live.failure.take() {
                    live.ending = Some(live.failed(failure));
                    if let Some(session) = self.sessions.get_mut(&key.0) {
                        session.is_stale = true;
                        let params = json!({ "threadId": session.thread });
                        self.ask_server(Call::Nothing, CLEAN, params, out);
                    }
                    self.conclude(key, out);
                }
            }
        }
    }

    /// Takes the last word on a turn, and ends it when nothing of it is left.
    pub(super) fn end(&mut self, key: SessionKey, end: Box<TurnEnd>, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some(live) = &mut session.turn else { return };
        live.ending = Some(end);
        let turn = live.key;
        if !live.leaves_something() {
            return self.conclude(key, out);
        }
        let was_interrupted = live.interrupt != Interrupt::No;
        let params = json!({ "threadId": session.thread });
        self.ask_server(Call::Clean(key, turn), CLEAN, params, out);
        if !was_interrupted {
            self.arm(Alarm::Stop(key, turn), STOP_LIMIT, out);
        }
    }

    /// The server has ended what a turn left behind.
    pub(super) fn cleaned(&mut self, key: SessionKey, turn: TurnKey, out: &mut Vec<Action>) {
        let Some(live) = self.live(key, turn) else { return };
        live.is_cleaned = true;
        if live.has_commands() {
            self.arm(Alarm::Stop(key, turn), LAST_WORDS_LIMIT, out);
        }
        self.conclude_if_clean(key, out);
    }

    /// Says the last word on a turn, if it was said and nothing runs any more.
    pub(super) fn conclude_if_clean(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let turn = self.sessions.get(&key.0).and_then(|session| session.turn.as_ref());
        let is_over = |live: &LiveTurn| live.ending.is_some() && live.is_cleaned;
        if turn.is_some_and(|live| is_over(live) && !live.has_commands()) {
            self.conclude(key, out);
        }
    }

    /// Says the last word on a turn and goes on with the session.
    pub(super) fn conclude(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some(mut live) = session.turn.take() else { return };
        let mut end = live.ending.take().unwrap_or_default();
        complete(&mut end, session.totals, self.version.as_deref());
        self.children.retain(|_, parent| *parent != key);
        self.deny_all(live.key, out);
        for text in live.steers {
            emit_warning(live.key, too_late(&text, "the turn has ended"), out);
        }
        out.push(Action::EndTurn { turn: live.key, end });
        self.advance(key, out);
    }

    /// The process is gone. What it printed on standard error long ago says
    /// nothing about that, unless it never got to work.
    pub(super) fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        if !self.is_ready {
            let failure = fault::of_exit(exit, is_noise);
            out.push(Action::OpenFailed { session: ONLY_SESSION, failure });
        }
        let failure = Failure::new(FailureKind::Crashed, exit_words(exit));
        let keys: Vec<u32> = self.sessions.keys().copied().collect();
        for key in keys {
            let Some(mut session) = self.sessions.remove(&key) else { continue };
            let waiting = session.held.take().map(|held| held.turn);
            let running = session.turn.take();
            if let Some(mut live) = running {
                let mut end = live.ending.take().unwrap_or_else(|| live.failed(failure.clone()));
                complete(&mut end, session.totals, self.version.as_deref());
                out.push(Action::EndTurn { turn: live.key, end });
            }
            if let Some(turn) = waiting {
                let end = Box::new(TurnEnd::failed(failure.clone()));
                out.push(Action::EndTurn { turn, end });
            }
        }
        self.asked.clear();
    }
}

/// Adds to a turn's last word what is known of its session and process.
fn complete(end: &mut TurnEnd, totals: Option<Totals>, version: Option<&str>) {
    end.totals = totals;
    if let Some(version) = version {
        end.meta.insert("version".to_owned(), Value::from(version));
    }
}
