//! What happened while nobody listened.
//!
//! The stream tells nothing again. So when it was lost, every turn is read
//! anew: its messages, whether it runs, and what it waits for. Events that come
//! meanwhile wait, because what is read may be older or newer than they are.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    client::Purpose,
    event::What,
    server::{Alarm, Server},
    turn::{Follows, LiveTurn},
};
use crate::{
    agent::{Action, SessionKey, field::fields_of},
    failure::{Failure, FailureKind},
};

/// How long until the stream is opened again, the first time and at most.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LAST_WAIT: Duration = Duration::from_secs(5);
/// How long until a turn is looked at once more that should be there and is not.
const NEXT_LOOK: Duration = Duration::from_secs(1);
/// How often that is done.
const MAX_MISSED: u32 = 10;

impl Server {
    /// The stream is lost.
    pub(super) fn lost(&mut self, out: &mut Vec<Action>) {
        self.is_connected = false;
        for session in self.sessions.values_mut() {
            session.meanwhile = None;
            if let Some(live) = &mut session.turn {
                live.parts.gap();
            }
        }
        let wait = FIRST_WAIT.saturating_mul(1 << self.n_losses.min(8)).min(LAST_WAIT);
        self.n_losses = self.n_losses.saturating_add(1);
        self.arm(Alarm::Listen, wait, out);
    }

    /// The stream is open.
    pub(super) fn connected(&mut self, out: &mut Vec<Action>) {
        self.is_connected = true;
        self.n_losses = 0;
        self.ready_if_so(out);
        let keys: Vec<u32> = self.sessions.keys().copied().collect();
        for key in keys {
            self.look(SessionKey(key), out);
        }
    }

    /// Reads a turn anew.
    pub(super) fn look(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some((id, directory)) = session.at().filter(|_| session.turn.is_some()) else {
            return;
        };
        session.meanwhile.get_or_insert_default();
        self.client.messages(key, (&id, &directory), out);
    }

    pub(super) fn read_messages(
        &mut self,
        now: Timestamp,
        key: SessionKey,
        reply: Result<Value, Failure>,
        out: &mut Vec<Action>,
    ) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let (Some(live), Some(meanwhile)) = (&mut session.turn, &mut session.meanwhile) else {
            return;
        };
        let turn = live.key;
        let Ok(Value::Array(messages)) = reply else {
            self.missed(key, out);
            return;
        };
        let messages: Vec<Record> = messages.into_iter().filter_map(Record::read).collect();
        let past: Vec<String> = session.past.iter().cloned().collect();
        let meanwhile = std::mem::take(meanwhile);
        session.meanwhile = None;
        let follows = catch_up(live, &past, messages, out);
        let directory = session.directory.clone();
        self.follow(key, follows, out);
        for what in meanwhile {
            if matches!(what, What::Idle) {
                // Whether it still is, is asked below.
                self.ends_if_over(key, out);
            } else {
                self.happened(now, key, what, out);
            }
        }
        if self.live(key, turn).is_some() {
            self.client.read(Purpose::Status(key), "/session/status", &directory, out);
            self.client.read(Purpose::Permissions(key), "/permission", &directory, out);
            self.client.read(Purpose::Questions(key), "/question", &directory, out);
        }
    }

    pub(super) fn read_status(
        &mut self,
        key: SessionKey,
        reply: Result<Value, Failure>,
        out: &mut Vec<Action>,
    ) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        if session.turn.is_none() || session.meanwhile.is_some() {
            return;
        }
        let Ok(Value::Object(busy)) = reply else { return self.missed(key, out) };
        let status = session.id.as_ref().and_then(|id| busy.get(id));
        let is_busy = status
            .and_then(|status| status.get("type"))
            .and_then(Value::as_str)
            .is_some_and(|status| status != "idle");
        if is_busy {
            session.n_missed = 0;
            return;
        }
        if session.turn.as_ref().is_some_and(LiveTurn::is_over) {
            return self.conclude(key, out);
        }
        // It may be about to begin, or has ended in a way that was only told.
        self.missed(key, out);
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
        let end = if live.may_end() {
            live.end(out)
        } else {
            let text = "the connection to opencode's server broke off, and the turn was not found \
                        afterwards";
            live.failed(Failure::new(FailureKind::Unavailable, text))
        };
        self.conclude_with(key, Some(end), out);
    }

    pub(super) fn read_requests(
        &mut self,
        key: SessionKey,
        reply: Result<Value, Failure>,
        are_questions: bool,
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
        let gone: Vec<String> = self
            .asked
            .values()
            .filter(|asked| asked.session == key && asked.is_question() == are_questions)
            .filter(|asked| !ids.contains(&asked.id))
            .map(|asked| asked.id.clone())
            .collect();
        for id in gone {
            self.withdraw(&id, out);
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

/// A message with its parts.
struct Record {
    id: String,
    is_user: bool,
    info: Map<String, Value>,
    parts: Vec<Map<String, Value>>,
}

impl Record {
    fn read(record: Value) -> Option<Self> {
        let Value::Object(mut record) = record else { return None };
        let Some(Value::Object(info)) = record.remove("info") else { return None };
        let parts = match record.remove("parts") {
            Some(Value::Array(parts)) => parts,
            _ => Vec::new(),
        };
        let parts = parts.into_iter().filter_map(fields_of);
        let text = |name: &str| info.get(name).and_then(Value::as_str);
        Some(Self {
            id: text("id")?.to_owned(),
            is_user: text("role") == Some("user"),
            parts: parts.collect(),
            info,
        })
    }

    fn says(&self, prompt: &str) -> bool {
        self.parts.iter().any(|part| part.get("text").and_then(Value::as_str) == Some(prompt))
    }
}

/// Tells a turn what its messages have become.
fn catch_up(
    live: &mut LiveTurn,
    past: &[String],
    messages: Vec<Record>,
    out: &mut Vec<Action>,
) -> Follows {
    let first = match live.users.first() {
        Some(user) => messages.iter().position(|message| message.id == *user),
        None => messages.iter().rposition(|message| {
            message.is_user && !past.contains(&message.id) && message.says(&live.held.prompt)
        }),
    };
    let mut follows = Follows::Nothing;
    let Some(first) = first else { return follows };
    for message in messages.into_iter().skip(first) {
        if message.is_user {
            if !live.users.contains(&message.id) {
                live.users.push(message.id);
            }
            continue;
        }
        // A complete message's parts are known before its end.
        let info = message.info.clone();
        let mut begun = info.clone();
        begun.remove("time");
        live.message(begun, out);
        for part in message.parts {
            let next = live.part(part, true, out);
            if next != Follows::Nothing {
                follows = next;
            }
        }
        live.message(info, out);
    }
    follows
}
