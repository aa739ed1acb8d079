//! The books of a driver that keeps its rules: which sessions and turns there
//! are, who is asked what, and which requests an agent waits for.
//!
//! Whatever breaks a rule is a panic at once, so that a property finds the step
//! that did it. Knows no wire format: what was written is for its user to read.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::{Action, SessionKey, TimerKey, TurnKey};

/// What is known of one process.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    n_sessions: u32,
    n_turns: u32,
    is_ready: bool,
    sessions: BTreeSet<u32>,
    /// The sessions by the agent's ids.
    names: BTreeMap<String, u32>,
    /// The sessions of the turns that have not ended.
    running: BTreeMap<u32, u32>,
    ended: BTreeSet<u32>,
    /// Turns whose end the driver has said.
    given_up: BTreeSet<u32>,
    /// What a person is asked, by its name.
    asked: BTreeMap<String, Asked>,
    /// The agent's ids of the requests that it waits for.
    owed: BTreeSet<String>,
    timers: Vec<TimerKey>,
}

/// A question to a person.
#[derive(Debug)]
struct Asked {
    turn: u32,
    /// The agent's id of the request that it comes from.
    id: String,
}

impl Ledger {
    /// A session is to be opened.
    pub(crate) fn open(&mut self) -> SessionKey {
        let session = SessionKey(self.n_sessions);
        self.n_sessions += 1;
        self.sessions.insert(session.0);
        session
    }

    /// A turn is to begin in a session.
    pub(crate) fn begin(&mut self, session: SessionKey) -> TurnKey {
        let turn = TurnKey(self.n_turns);
        self.n_turns += 1;
        self.running.insert(turn.0, session.0);
        turn
    }

    /// A session is closed; the driver says the end of the turns in it.
    pub(crate) fn close(&mut self, session: SessionKey) {
        self.sessions.remove(&session.0);
        for turn in self.turns_of(session) {
            self.given_up.insert(turn.0);
            self.end(turn);
        }
    }

    /// The agent makes a request and waits.
    pub(crate) fn owe(&mut self, id: impl Into<String>) {
        self.owed.insert(id.into());
    }

    /// The agent gets its answer.
    pub(crate) fn pay(&mut self, id: &str) {
        assert!(self.owed.remove(id), "{id} is answered, and nobody waits for it");
    }

    /// The agent does not wait any more, if it did.
    pub(crate) fn forgive(&mut self, id: &str) {
        self.owed.remove(id);
    }

    /// A person has decided.
    pub(crate) fn decide(&mut self, request: &str) -> TurnKey {
        TurnKey(self.asked.remove(request).expect("it is asked").turn)
    }

    /// The agent was told to stop what runs in a session: nobody need be asked.
    pub(crate) fn stop(&mut self, session: SessionKey) {
        let turns = self.turns_of(session);
        self.asked.retain(|_, asked| !turns.contains(&TurnKey(asked.turn)));
    }

    /// The process has ended, and waits for nothing.
    pub(crate) fn process_ended(&mut self) {
        self.owed.clear();
    }

    /// Takes down what a dialect wants done. What is written is not read here.
    pub(crate) fn take(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Ready => {
                    assert!(!self.is_ready, "a process is ready once");
                    self.is_ready = true;
                }
                Action::Opened { session, id } => {
                    self.names.insert(id.clone(), session.0);
                }
                Action::OpenFailed { session, .. } => {
                    self.sessions.remove(&session.0);
                    self.turns_of(*session).into_iter().for_each(|turn| self.end(turn));
                }
                Action::Unasked { session, turn } => {
                    assert!(!self.ended.contains(&turn.0), "a turn begins once");
                    let before = self.running.insert(turn.0, session.0);
                    assert!(before.is_none(), "a turn begins once");
                }
                Action::Emit { turn, .. } | Action::Working { turn } => {
                    assert!(self.is_running(*turn), "told of a turn that does not run: {action:?}");
                }
                Action::EndTurn { turn, .. } => {
                    if !self.given_up.contains(&turn.0) {
                        assert!(self.is_running(*turn), "a turn ends once: {action:?}");
                        self.end(*turn);
                    }
                }
                Action::Ask { turn, permission } => {
                    assert!(self.is_running(*turn), "asked in a turn that does not run");
                    let id = self.request_of(&permission.request);
                    let asked = Asked { turn: turn.0, id };
                    let before = self.asked.insert(permission.request.clone(), asked);
                    assert!(before.is_none(), "two requests of one name");
                }
                Action::Withdraw { request, .. } => {
                    let asked = self.asked.remove(request).expect("it is asked");
                    self.forgive(&asked.id);
                }
                Action::Arm { timer, .. } => {
                    self.timers.retain(|known| known != timer);
                    self.timers.push(*timer);
                }
                Action::Write(_) | Action::Call { .. } | Action::Listen(_) | Action::Stop => {}
            }
        }
    }

    /// Asserts that the agent waits for what a person is asked, and for nothing else.
    pub(crate) fn check(&self) {
        let asked: BTreeSet<&String> = self.asked.values().map(|asked| &asked.id).collect();
        let owed: BTreeSet<&String> = self.owed.iter().collect();
        assert_eq!(owed, asked, "the requests that are open, and those that somebody is asked");
    }

    /// Asserts that every turn that has begun has ended.
    pub(crate) fn check_all_ended(&self) {
        assert!(self.running.is_empty(), "turns without an end: {:?}", self.running);
        let unended: Vec<u32> =
            (0..self.n_turns).filter(|turn| !self.ended.contains(turn)).collect();
        assert!(unended.is_empty(), "turns without an end: {unended:?}");
    }

    /// Finds the request that a question comes from: further ones of the same
    /// request have longer names.
    fn request_of(&self, name: &str) -> String {
        let is_it = |id: &&String| {
            let rest = name.strip_prefix(id.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', '.']))
        };
        let request = self.owed.iter().filter(is_it).max_by_key(|id| id.len());
        request.unwrap_or_else(|| panic!("{name} is asked, and no request waits for it")).clone()
    }

    fn end(&mut self, turn: TurnKey) {
        self.running.remove(&turn.0);
        self.ended.insert(turn.0);
        self.asked.retain(|_, asked| asked.turn != turn.0);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Finds a session by the agent's id.
    pub(crate) fn named(&self, id: &str) -> Option<SessionKey> {
        self.names.get(id).map(|session| SessionKey(*session))
    }

    pub(crate) fn is_running(&self, turn: TurnKey) -> bool {
        self.running.contains_key(&turn.0)
    }

    pub(crate) fn running(&self) -> Vec<TurnKey> {
        self.running.keys().map(|turn| TurnKey(*turn)).collect()
    }

    pub(crate) fn turns_of(&self, session: SessionKey) -> Vec<TurnKey> {
        let of = self.running.iter().filter(|(_, known)| **known == session.0);
        of.map(|(turn, _)| TurnKey(*turn)).collect()
    }

    /// Returns the sessions in which a turn runs, or none does.
    pub(crate) fn sessions(&self, is_busy: bool) -> Vec<SessionKey> {
        let sessions = self.sessions.iter().map(|session| SessionKey(*session));
        sessions.filter(|session| self.turns_of(*session).is_empty() != is_busy).collect()
    }

    /// Returns the names of what a person is asked.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.keys().cloned().collect()
    }

    /// Returns the names of what a person is asked in a turn.
    pub(crate) fn asked_in(&self, turn: TurnKey) -> Vec<String> {
        let of = self.asked.iter().filter(|(_, asked)| asked.turn == turn.0);
        of.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the agent's ids of the requests that it waits for.
    pub(crate) fn owed(&self) -> Vec<String> {
        self.owed.iter().cloned().collect()
    }

    /// Takes one of the timers that run.
    pub(crate) fn take_timer(&mut self, at: usize) -> Option<TimerKey> {
        let count = self.timers.len();
        (count > 0).then(|| self.timers.remove(at % count))
    }
}
