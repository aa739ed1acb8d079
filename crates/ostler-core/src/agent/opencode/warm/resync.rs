//! What happened while nobody listened.
//!
//! The stream tells nothing again. So when it was lost, every turn is read
//! anew: its messages, whether it runs, and what it waits for. Events that come
//! meanwhile wait, because what is read may be older or newer than they are.
//! Replies overtake each other and the stream. What they say is true all the same,
//! only not the latest: the events that wait do so until the last look, and a
//! turn is over if its messages said so before and after the server said that it
//! does nothing. A stream that is lost at once, again and again, so stops no turn.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::{
    alarm::Alarm,
    client::{Purpose, Round, Sight},
    event::{Event, What},
    records::{Record, catch_up},
    server::Server,
    turn::Stop,
};
use crate::{
    agent::{Action, SessionKey, field::fields_of},
    failure::{Failure, FailureKind},
};

/// How long until the stream is opened again, the first time and at most.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LAST_WAIT: Duration = Duration::from_secs(1);
/// How long a stream has to last to count as good that tells nothing.
const LASTS: SignedDuration = SignedDuration::from_secs(10);
/// How long until a turn is looked at once more that should be there and is not.
pub(super) const NEXT_LOOK: Duration = Duration::from_secs(1);
/// How often that is done.
const MAX_MISSED: u32 = 10;

impl Server {
    /// The stream is lost.
    pub(super) fn lost(&mut self, why: &str, out: &mut Vec<Action>) {
        self.miss(why, out);
        self.is_connected = false;
        for session in self.sessions.values_mut() {
            if let Some(meanwhile) = &mut session.meanwhile {
                meanwhile.forget();
            }
            // Nobody hears whether somebody else replaces them.
            session.rules.clear();
            if let Some(live) = &mut session.turn {
                live.parts.gap();
                // Whether it goes on is not heard for a while.
                live.settling = live.settling.wrapping_add(1);
            }
        }
        let wait = FIRST_WAIT.saturating_mul(1 << self.n_losses.min(8)).min(LAST_WAIT);
        self.n_losses = self.n_losses.saturating_add(1);
        self.arm(Alarm::Listen, wait, out);
    }

    /// Forgets earlier losses once the stream is good for something: one may be
    /// opened and closed at once by whoever stands between.
    pub(super) fn heard(&mut self, now: Timestamp, event: &Event) {
        let is_news = matches!(event, Event::Of { .. } | Event::Unnamed(_));
        let since = self.connected_at.filter(|_| self.is_connected);
        if is_news || since.is_some_and(|since| now.duration_since(since) >= LASTS) {
            self.n_losses = 0;
        }
    }

    /// The stream is open.
    pub(super) fn connected(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        self.is_connected = true;
        self.connected_at = Some(now);
        self.found_again();
        self.ready_if_so(out);
        let keys: Vec<u32> = self.sessions.keys().copied().collect();
        for key in keys {
            self.look(SessionKey(key), out);
            self.advance(SessionKey(key), out);
        }
    }

    /// Reads a turn anew.
    pub(super) fn look(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some((id, directory)) = session.at().filter(|_| session.turn.is_some()) else {
            return;
        };
        session.meanwhile.get_or_insert_default();
        let purpose = Purpose::Look(key, session.round.next(), Sight::Messages);
        self.client.messages(purpose, (&id, &directory), out);
    }

    /// Reads a turn that is over for the last time.
    fn look_back(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get(&key.0) else { return };
        let Some((id, directory)) = session.at() else { return };
        let purpose = Purpose::Look(key, session.round, Sight::Whole);
        self.client.messages(purpose, (&id, &directory), out);
    }

    /// Something was read anew.
    pub(super) fn seen(
        &mut self,
        now: Timestamp,
        (key, round): (SessionKey, Round),
        sight: Sight,
        reply: Result<Value, Failure>,
        out: &mut Vec<Action>,
    ) {
        let Some(session) = self.sessions.get(&key.0) else { return };
        if session.turn.is_none() {
            return;
        }
        let is_latest = session.round == round;
        match sight {
            Sight::Messages => self.read_messages(now, (key, is_latest), reply, out),
            Sight::Whole => {
                if let Ok(Value::Array(messages)) = reply {
                    self.catch_up(key, messages, out);
                    self.ends_if_whole(key, out);
                } else if is_latest {
                    self.missed(key, out);
                }
            }
            Sight::Helper(id) => self.read_helper(key, &id, reply, out),
            Sight::Status => self.read_status((key, is_latest), reply, out),
            Sight::Permissions(before) => self.read_requests(key, reply, (&before, false), out),
            Sight::Questions(before) => self.read_requests(key, reply, (&before, true), out),
        }
    }

    /// Tells a turn what was read of it.
    fn catch_up(&mut self, key: SessionKey, messages: Vec<Value>, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let messages: Vec<Record> = messages.into_iter().filter_map(Record::read).collect();
        // Only some are remembered; what came before one of them is past as well.
        let last = messages.iter().rposition(|one| session.is_past(&one.id, &one.info));
        let n_past = last.map_or(0, |at| at + 1);
        let Some(live) = &mut session.turn else { return };
        let helpers: Vec<_> = messages.iter().flat_map(Record::helpers).collect();
        let follows = catch_up(live, n_past, messages, out);
        helpers.iter().for_each(|part| self.helper(key, part));
        self.follow(key, follows, out);
    }

    fn ends_if_whole(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        if self.turn_of(key).is_some_and(|live| live.is_over()) {
            self.conclude(key, out);
        }
    }

    fn read_messages(
        &mut self,
        now: Timestamp,
        (key, is_latest): (SessionKey, bool),
        reply: Result<Value, Failure>,
        out: &mut Vec<Action>,
    ) {
        let Ok(Value::Array(messages)) = reply else {
            if is_latest {
                self.missed(key, out);
            }
            return;
        };
        self.catch_up(key, messages, out);
        let Some(session) = self.sessions.get_mut(&key.0).filter(|_| is_latest) else {
            return self.look_around(key, out);
        };
        let turn = session.turn.as_ref().map(|live| live.key);
        for what in session.meanwhile.take().unwrap_or_default().into_events() {
            // Whether it is still idle, is asked below. What a retry took back may
            // have been written again since.
            if !matches!(what, What::Idle | What::Retry { .. }) {
                self.happened(now, key, what, out);
            }
        }
        if turn.is_some_and(|turn| self.live(key, turn).is_some()) {
            self.look_around(key, out);
        }
    }

    /// Asks what messages do not tell.
    fn look_around(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get(&key.0) else { return };
        let round = session.round;
        let directory = session.directory.clone();
        let helpers = self.children.iter().filter(|(_, (parent, _))| *parent == key);
        let helpers: Vec<String> = helpers.map(|(id, _)| id.clone()).collect();
        for id in helpers {
            let purpose = Purpose::Look(key, round, Sight::Helper(id.clone()));
            self.client.messages(purpose, (&id, &directory), out);
        }
        let open = |are_questions: bool| {
            let asked = self.asked.values().filter(|asked| asked.session == key);
            let asked = asked.filter(|asked| asked.is_question() == are_questions);
            asked.map(|asked| asked.id.clone()).collect::<Vec<String>>()
        };
        let sights = [
            (Sight::Permissions(open(false)), "/permission"),
            (Sight::Questions(open(true)), "/question"),
            (Sight::Status, "/session/status"),
        ];
        for (sight, path) in sights {
            self.client.read(Purpose::Look(key, round, sight), path, &directory, out);
        }
    }

    fn read_status(
        &mut self,
        (key, is_latest): (SessionKey, bool),
        reply: Result<Value, Failure>,
        out: &mut Vec<Action>,
    ) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some(live) = &mut session.turn else { return };
        let Ok(Value::Object(busy)) = reply else {
            if is_latest {
                self.missed(key, out);
            }
            return;
        };
        let status = session.id.as_ref().and_then(|id| busy.get(id));
        let is_busy = status
            .and_then(|status| status.get("type"))
            .and_then(Value::as_str)
            .is_some_and(|status| status != "idle");
        if is_busy {
            session.n_missed = 0;
            let goes_on = live.stop == Stop::Sent;
            self.busy(key, out);
            if goes_on {
                // It came between, and the server goes on.
                self.stop(key, out);
            }
        } else if live.is_over() {
            self.look_back(key, out);
        } else if !is_latest || !self.is_connected {
            // It is looked at again.
        } else if live.may_end() {
            self.settle(key, out);
        } else {
            // It may be about to begin, or has ended in a way that was only told.
            self.missed(key, out);
        }
    }

    /// A turn is not where it should be; it is looked for again for a while.
    fn missed(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        session.n_missed += 1;
        let is_lost = session.n_missed > MAX_MISSED;
        let Some(live) = &mut session.turn else { return };
        let turn = live.key;
        if !is_lost {
            return self.arm(Alarm::Look(key, turn), NEXT_LOOK, out);
        }
        if live.is_silent {
            // Should it be about to begin, this may still end it.
            self.stop(key, out);
            return self.conclude(key, out);
        }
        let end = if live.may_end() {
            live.end(out)
        } else {
            let text = "the connection to opencode's server broke off, and the turn was not found \
                        afterwards";
            live.failed(Failure::new(FailureKind::Unavailable, text))
        };
        self.conclude_with(key, Some(end), out);
    }

    /// Takes what a helper has done so far.
    fn read_helper(
        &mut self,
        key: SessionKey,
        id: &str,
        reply: Result<Value, Failure>,
        out: &mut Vec<Action>,
    ) {
        let Ok(Value::Array(messages)) = reply else { return };
        for record in messages.into_iter().filter_map(Record::read) {
            for part in record.parts {
                self.child(id, key, What::Part(part), out);
            }
        }
    }

    /// Takes what is asked now. What was asked `before` and is not any more
    /// needs no answer.
    fn read_requests(
        &mut self,
        key: SessionKey,
        reply: Result<Value, Failure>,
        (before, are_questions): (&[String], bool),
        out: &mut Vec<Action>,
    ) {
        // What cannot be read now is read when the turn is looked at again, and
        // a turn that waits for nobody runs into its time limit.
        let Ok(Value::Array(requests)) = reply else { return };
        let text = |request: &Map<String, Value>, name: &str| {
            request.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let requests: Vec<Map<String, Value>> = requests
            .into_iter()
            .filter_map(fields_of)
            .filter(|request| self.find(&text(request, "sessionID")) == Some(key))
            .collect();
        let ids: Vec<String> = requests.iter().map(|request| text(request, "id")).collect();
        for id in before.iter().filter(|id| !ids.contains(id)) {
            self.withdraw(id, out);
        }
        for request in requests {
            if are_questions {
                self.question(key, request, out);
            } else {
                self.permission(key, request, out);
            }
        }
    }
}
