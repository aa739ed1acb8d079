//! What the server tells by itself.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    event::{self, Event, What},
    server::Server,
    turn::Stop,
};
use crate::{
    agent::{Action, SessionKey, emit::emit_unknown},
    event::Stream,
};

impl Server {
    pub(super) fn event(&mut self, now: Timestamp, data: &[u8], out: &mut Vec<Action>) {
        let event = event::read(data);
        self.heard(now, &event);
        match event {
            Event::Connected => self.connected(now, out),
            Event::Quiet | Event::Unreadable => {}
            Event::Unnamed(flat) => self.unnamed(flat, out),
            Event::Of { session, what: What::Child { of } } => {
                if let Some(key) = self.find(&of) {
                    self.children.insert(session, (key, None));
                }
            }
            Event::Of { session, what } => {
                let Some(key) = self.find(&session) else { return };
                let n_before = out.len();
                self.told(now, (&session, key), what, data, out);
                let live = self.turn_of(key).filter(|live| !live.is_silent);
                if let Some(live) = live.filter(|_| out.len() == n_before) {
                    out.push(Action::Working { turn: live.key });
                }
            }
        }
    }

    /// Takes what happened in a session, or in that of a helper.
    fn told(
        &mut self,
        now: Timestamp,
        (session, key): (&str, SessionKey),
        what: What,
        data: &[u8],
        out: &mut Vec<Action>,
    ) {
        if self.children.contains_key(session) {
            return self.child(session, key, what, out);
        }
        let Some(known) = self.sessions.get_mut(&key.0) else { return };
        if let What::Rules(rules) = what {
            return known.was_ruled(&rules);
        }
        match &mut known.meanwhile {
            Some(meanwhile) => {
                if !meanwhile.push(what, data.len()) {
                    self.look(key, out);
                }
            }
            None => {
                if let (What::Unknown, Some(live)) = (&what, &known.turn)
                    && !live.is_silent
                {
                    emit_unknown(live.key, Stream::Stdout, data, out);
                }
                self.happened(now, key, what, out);
            }
        }
    }

    /// Takes what happened in one of our sessions.
    pub(super) fn happened(
        &mut self,
        now: Timestamp,
        key: SessionKey,
        what: What,
        out: &mut Vec<Action>,
    ) {
        match what {
            What::Message(info) => self.message(key, info, out),
            What::Part(part) => self.part(key, part, out),
            What::Delta { part, text } => {
                if let Some(live) = self.turn_of(key) {
                    live.piece(&part, text, out);
                }
            }
            What::Busy => self.busy(key, out),
            What::Retry { attempt, message, next } => {
                let Some(live) = self.turn_of(key).filter(|live| !live.users.is_empty()) else {
                    return;
                };
                let follows = live.retry(now, message, attempt, next, out);
                self.follow(key, follows, out);
            }
            What::Idle => self.idle(key, out),
            What::Failed(error) => self.failed(key, &error, out),
            What::Asked(request) => self.permission(key, request, out),
            What::Questions(request) => self.question(key, request, out),
            What::Answered { request } => self.withdraw(&request, out),
            What::Flat(flat) => self.flat(key, flat, out),
            What::Child { .. } | What::Rules(_) | What::Unknown => {}
        }
    }

    fn message(&mut self, key: SessionKey, info: Map<String, Value>, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let text = |name: &str| info.get(name).and_then(Value::as_str).unwrap_or_default();
        let is_past = session.is_past(text("id"), &info);
        let is_of_user = text("role") == "user";
        let Some(live) = &mut session.turn else {
            // Somebody else works there, or a turn of ours that is over.
            let user = if is_of_user { text("id") } else { text("parentID") };
            if !user.is_empty() && !session.past.iter().any(|past| past == user) {
                session.remember(vec![user.to_owned()]);
            }
            return;
        };
        if is_of_user {
            let id = text("id").to_owned();
            if !is_past && !live.users.contains(&id) && !id.is_empty() {
                live.users.push(id);
            }
            return;
        }
        let parent = text("parentID").to_owned();
        let is_old = is_past || session.past.contains(&parent);
        if live.users.is_empty() && !parent.is_empty() && !is_old {
            // The prompt itself was not told, or not yet; only one runs at a time.
            live.users.push(parent);
        }
        let is_complete = info.get("time").is_some_and(|time| time.get("completed").is_some());
        if live.message(info, out) {
            live.settling = live.settling.wrapping_add(1);
            if live.stop == Stop::Sent {
                // It came between, and the server goes on.
                self.stop(key, out);
            } else if is_complete {
                // The server says that the stream is open a little before it is:
                // the beginning was not heard.
                self.look(key, out);
            }
        }
    }

    fn part(&mut self, key: SessionKey, part: Map<String, Value>, out: &mut Vec<Action>) {
        if part.get("tool").and_then(Value::as_str) == Some("task") {
            self.helper(key, &part);
        }
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some(live) = &mut session.turn else { return };
        let message = part.get("messageID").and_then(Value::as_str).unwrap_or_default();
        let is_of_user = live.users.iter().chain(&session.past).any(|user| user == message);
        if !is_of_user && !live.users.is_empty() && !live.knows(message) {
            // Its message began unheard, or is not ours.
            if live.is_worth_a_look(message, &part) {
                self.look(key, out);
            }
            return;
        }
        let follows = live.part(part, false, out);
        self.follow(key, follows, out);
    }

    /// Takes note of which call a helper's session was made for.
    pub(super) fn helper(&mut self, key: SessionKey, part: &Map<String, Value>) {
        let metadata = part.get("state").and_then(|state| state.get("metadata"));
        let child = metadata.and_then(|data| data.get("sessionId")).and_then(Value::as_str);
        let call = part.get("id").and_then(Value::as_str);
        if let (Some(child), Some(call)) = (child, call) {
            self.children.insert(child.to_owned(), (key, Some(call.to_owned())));
        }
    }

    /// Takes what happened in a helper's session: its tools, its needs and what
    /// it used. What it says is for the agent.
    pub(super) fn child(&mut self, id: &str, key: SessionKey, what: What, out: &mut Vec<Action>) {
        match what {
            What::Part(part) => {
                let call = self.children.get(id).and_then(|(_, call)| call.clone());
                let Some(live) = self.turn_of(key) else { return };
                match part.get("type").and_then(Value::as_str) {
                    Some("tool") => live.tool(call.as_deref(), part, out),
                    Some("step-finish") if live.is_news(&part) => live.spent(&part, out),
                    _ => {}
                }
            }
            What::Asked(request) => self.permission(key, request, out),
            What::Questions(request) => self.question(key, request, out),
            What::Answered { request } => self.withdraw(&request, out),
            What::Message(_)
            | What::Delta { .. }
            | What::Busy
            | What::Retry { .. }
            | What::Idle
            | What::Failed(_)
            | What::Child { .. }
            | What::Rules(_)
            | What::Flat(_)
            | What::Unknown => {}
        }
    }

    pub(super) fn busy(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(live) = self.turn_of(key).filter(|live| !live.users.is_empty()) else { return };
        live.was_busy = true;
        live.settling = live.settling.wrapping_add(1);
        if live.stop == Stop::Wanted {
            self.stop(key, out);
        }
    }

    /// The session does not work. After an error or an abort that is told twice,
    /// and before the last message is complete; the end of a turn is only what
    /// comes after that.
    fn idle(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        self.ends_if_over(key, out);
        if self.turn_of(key).is_some_and(|live| live.was_busy && !live.may_end()) {
            // It worked and left nothing, not even an error.
            self.look(key, out);
        }
    }

    /// Ends an idle session's turn, now or after a moment, if it is over.
    pub(super) fn ends_if_over(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(live) = self.turn_of(key) else { return };
        if live.is_over() {
            self.conclude(key, out);
        } else if live.may_end() {
            self.settle(key, out);
        }
    }

    fn failed(&mut self, key: SessionKey, error: &Value, out: &mut Vec<Action>) {
        let cause = self.cause.take();
        let Some(live) = self.turn_of(key) else { return };
        live.error(error, cause.as_deref());
        if live.failed_early() {
            // Nothing else may follow, not even that the session is idle.
            self.settle(key, out);
        }
    }

    pub(super) fn turn_of(&mut self, key: SessionKey) -> Option<&mut super::turn::LiveTurn> {
        self.sessions.get_mut(&key.0)?.turn.as_mut()
    }
}
