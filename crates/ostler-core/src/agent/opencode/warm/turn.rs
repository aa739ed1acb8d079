//! One turn while it runs.
//!
//! A turn is a message of the user's and the model's messages that answer it,
//! with those that the CLI puts between them. What the server tells of it is
//! taken in `message` and `call`, what goes wrong and the last word are in
//! `outcome`. Knows nothing of calls of the server and of timers.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::{Map, Value};

use super::{answering::Said, call::Call, message::Message, parts::Parts, session::Held};
use crate::{
    agent::{Action, TimerKey, TurnKey, emit::emit_for, opencode::patience::Patience},
    event::{EventBody, Status, StopReason, Usage},
    failure::Failure,
    request::Permissions,
};

/// For how many messages that began unheard a turn is read again.
const MAX_LOOKED_FOR: usize = 64;

/// A turn.
pub(super) struct LiveTurn {
    pub(super) key: TurnKey,
    pub(super) held: Held,
    /// How far the wish to end it has come.
    pub(super) stop: Stop,
    /// Its last word was said; what still comes is nobody's.
    pub(super) is_silent: bool,
    /// The server has begun to work on it.
    pub(super) was_busy: bool,
    /// Further texts that the server was sent and has not confirmed.
    pub(super) n_steers: usize,
    /// Counts the reasons to wait for its end; an old one says nothing.
    pub(super) settling: u32,
    /// Which of them a timer runs for.
    pub(super) awaited: Option<u32>,
    /// Why we ended it ourselves.
    pub(super) failure: Option<(Failure, StopReason)>,
    /// What was answered, by the server's id of the request.
    pub(super) answers: BTreeMap<String, Said>,
    /// The messages of the user that are part of it.
    pub(super) users: Vec<String>,
    pub(super) messages: Vec<Message>,
    /// Messages that it was read again for, whether they were found or not.
    looked_for: BTreeSet<String>,
    pub(super) parts: Parts,
    pub(super) calls: BTreeMap<String, Call>,
    /// What was told once and is not to be told again.
    pub(super) told: BTreeSet<String>,
    /// The server tells under flat names, and no figures.
    pub(super) is_flat: bool,
    pub(super) error: Option<Failure>,
    pub(super) rejected: Option<String>,
    pub(super) patience: Patience,
    /// Which try was told of last, and when it is due.
    pub(super) last_retry: Option<(Option<u64>, Option<i64>)>,
    pub(super) n_calls: u32,
    pub(super) usage: Usage,
    pub(super) model: Option<String>,
}

/// How far the wish to end a turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Nobody wants it.
    No,
    /// The server is told as soon as it works: before, it would say yes and
    /// begin all the same.
    Wanted,
    /// The server was told.
    Sent,
}

/// What follows from something that happened in a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Follows {
    Nothing,
    /// It has to be stopped; why is noted.
    Stop,
    /// A timer of its patience.
    Watch(TimerKey, Duration),
}

impl LiveTurn {
    pub(super) fn new(held: Held) -> Self {
        Self {
            key: held.turn,
            stop: Stop::No,
            is_silent: false,
            was_busy: false,
            n_steers: 0,
            settling: 0,
            awaited: None,
            failure: None,
            answers: BTreeMap::new(),
            users: Vec::new(),
            messages: Vec::new(),
            looked_for: BTreeSet::new(),
            parts: Parts::default(),
            calls: BTreeMap::new(),
            told: BTreeSet::new(),
            is_flat: false,
            error: None,
            rejected: None,
            patience: Patience::default(),
            last_retry: None,
            n_calls: 0,
            usage: Usage::default(),
            model: None,
            held,
        }
    }

    /// What the agent may do here without asking.
    pub(super) fn permissions(&self) -> Permissions {
        self.held.permissions
    }

    /// Returns whether this is one of its messages of the model.
    pub(super) fn knows(&self, message: &str) -> bool {
        self.messages.iter().any(|known| known.id == message)
    }

    /// Returns whether the message of a part that is not known should be looked
    /// for: once, and not when an old call is only taken out of the history.
    pub(super) fn is_worth_a_look(&mut self, message: &str, part: &Map<String, Value>) -> bool {
        let state = part.get("state").and_then(|state| state.get("time"));
        let is_old = |time: &Value| time.get("compacted").is_some();
        if part.get("time").is_some_and(is_old) || state.is_some_and(is_old) {
            return false;
        }
        self.looked_for.len() < MAX_LOOKED_FOR && self.looked_for.insert(message.to_owned())
    }

    /// Returns its messages of the model.
    pub(super) fn message_ids(&self) -> Vec<String> {
        self.messages.iter().map(|message| message.id.clone()).collect()
    }

    /// Returns whether the server has taken the prompt up.
    pub(super) fn has_begun(&self) -> bool {
        self.was_busy || self.is_flat || !self.messages.is_empty()
    }

    /// Returns whether its end is waited for.
    pub(super) fn is_settling(&self) -> bool {
        self.awaited == Some(self.settling)
    }

    /// Says that a further text is lost, and why.
    pub(super) fn not_steered(&self, text: &str, why: &str, out: &mut Vec<Action>) {
        let text = not_steered(text, why);
        self.tell(None, EventBody::Status(Status::Warning { text }), out);
    }

    pub(super) fn tell(&self, parent: Option<&str>, event: EventBody, out: &mut Vec<Action>) {
        if !self.is_silent {
            emit_for(self.key, parent, event, out);
        }
    }
}

/// Returns how it is said that a further text is lost.
pub(super) fn not_steered(text: &str, why: &str) -> String {
    format!("not taken into account, because {why}: {text}")
}
