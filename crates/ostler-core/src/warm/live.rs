//! One turn inside a process that is kept: where it stands, and what it waits for.

use std::time::Duration;

use jiff::Timestamp;
use tokio::{sync::oneshot, time::Instant};

use super::worker::UnaskedHook;
use crate::{
    agent::{SessionKey, TurnKey},
    driver::Limits,
    event::{EventBody, Status},
    outbox::Outbox,
    permission::{DecidedBy, Decision, Permission},
    request::Options,
    transcript::Transcript,
    verdict::{Evidence, Reason},
};

/// A turn on its way into a process.
pub(crate) struct NewTurn {
    pub(crate) key: TurnKey,
    pub(crate) session: SessionKey,
    pub(crate) prompt: String,
    pub(crate) options: Options,
    /// What its reader learns once it begins.
    pub(crate) opening: Vec<EventBody>,
    pub(crate) way: Way,
    /// Called when the agent begins a turn of its own in the session.
    pub(crate) unasked: UnaskedHook,
}

/// What a turn brings along, whoever began it.
pub(crate) struct Way {
    pub(crate) outbox: Outbox,
    pub(crate) limits: Limits,
    pub(crate) ask_timeout: Duration,
    pub(crate) transcript: Option<Transcript>,
    /// Called when the agent's id for the session is known.
    pub(crate) opened: Box<dyn Fn(&str) + Send>,
    pub(crate) done: oneshot::Sender<Done>,
}

/// How a process is done with a turn.
pub(crate) enum Done {
    /// The turn has ended.
    Ended(Box<Ended>),
    /// The process ended before it took the prompt; another one may.
    NotBegun { outbox: Outbox, transcript: Option<Transcript>, why: String },
}

/// What a process says of a turn that has ended.
pub(crate) struct Ended {
    pub(crate) outbox: Outbox,
    pub(crate) evidence: Evidence,
    /// The agent's id for the session, unless none came to be.
    pub(crate) session_id: Option<String>,
}

/// A turn inside a process.
pub(crate) struct LiveTurn {
    pub(crate) session: SessionKey,
    pub(crate) way: Way,
    pub(crate) phase: Phase,
    /// Why the driver gave it up.
    pub(crate) reason: Option<Reason>,
    /// When something was last heard of it, or its reader last caught up.
    pub(crate) heard_at: Instant,
    /// The session's id that its reader was told.
    told_session: Option<String>,
    asked: Vec<Asked>,
}

/// Where a turn stands.
pub(crate) enum Phase {
    /// It waits for the process, or for another turn of its session.
    Waiting { prompt: String, options: Box<Options>, opening: Vec<EventBody> },
    /// The agent has the prompt.
    Running,
    /// The agent was told to end it, and has until then.
    GivenUp(Instant),
}

/// A request that waits for its answer.
struct Asked {
    permission: Permission,
    expires: Instant,
}

impl LiveTurn {
    pub(crate) fn new(session: SessionKey, phase: Phase, way: Way) -> Self {
        Self {
            session,
            way,
            phase,
            reason: None,
            heard_at: Instant::now(),
            told_session: None,
            asked: Vec::new(),
        }
    }

    /// Tells the reader the session's id, once.
    pub(crate) fn tell_session(&mut self, id: &str) {
        if self.told_session.as_deref() == Some(id) {
            return;
        }
        self.told_session = Some(id.to_owned());
        (self.way.opened)(id);
        self.status(Status::Session { session_id: id.to_owned() });
    }

    pub(crate) fn status(&mut self, status: Status) {
        self.way.outbox.push(None, EventBody::Status(status));
    }

    /// Passes a request on to somebody who can decide it.
    pub(crate) fn ask(&mut self, mut permission: Permission) {
        let timeout = self.way.ask_timeout;
        let now = Instant::now();
        permission.expires_at = jiff::SignedDuration::try_from(timeout)
            .ok()
            .and_then(|timeout| Timestamp::now().checked_add(timeout).ok());
        self.way.outbox.push(None, EventBody::Permission(permission.clone()));
        let expires = now.checked_add(timeout).unwrap_or(now);
        self.asked.push(Asked { permission, expires });
    }

    /// Takes a request off the list and tells the reader how it was decided.
    pub(crate) fn resolve(
        &mut self,
        request: &str,
        decision: Decision,
        by: DecidedBy,
    ) -> Option<Permission> {
        let at = self.asked.iter().position(|asked| asked.permission.request == request)?;
        let asked = self.asked.swap_remove(at);
        self.resolved(request, decision, by);
        self.heard_at = Instant::now();
        Some(asked.permission)
    }

    /// Tells the reader how a request was decided.
    pub(crate) fn resolved(&mut self, request: &str, decision: Decision, by: DecidedBy) {
        self.status(Status::PermissionResolved { request: request.to_owned(), decision, by });
    }

    /// Returns the requests that wait, oldest first.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.asked.iter().map(|asked| asked.permission.request.clone()).collect()
    }

    /// Returns a request that nobody has answered in time.
    pub(crate) fn expired(&self, now: Instant) -> Option<String> {
        let late = self.asked.iter().find(|asked| asked.expires <= now)?;
        Some(late.permission.request.clone())
    }

    /// Returns when something is due for this turn. `heard_at` is when its
    /// process was last heard, where that says something about this turn.
    pub(crate) fn due(&self, heard_at: Option<Instant>) -> Instant {
        let limits = self.way.limits;
        match &self.phase {
            Phase::GivenUp(at) => *at,
            Phase::Waiting { .. } => limits.deadline,
            // A paused agent cannot print, so its silence does not count.
            Phase::Running if self.way.outbox.is_behind() => limits.deadline,
            Phase::Running => {
                let expires = self.asked.iter().map(|asked| asked.expires).min();
                match expires {
                    // Nor can one that waits for a person.
                    Some(at) => at.min(limits.deadline),
                    None => limits.alarm(heard_at.unwrap_or(self.heard_at).max(self.heard_at)),
                }
            }
        }
    }
}
