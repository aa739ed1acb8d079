//! What all callers share: the sessions, what is asked, and who listens.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::super::super::Error;
use super::super::super::agent::{Agent, Props};
use super::super::super::fault::Faults;
use super::super::super::id::Ids;
use super::super::super::session::{Session, Sessions};
use super::record::Records;
use super::stream::Listener;

/// The names under which things are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speech {
    /// Those of OpenCode's own server.
    Own,
    /// A few of a flat kind: texts, tools and the end, and nothing else.
    Flat,
}

/// A turn is about to begin: what happens to the process is played first.
pub(super) struct Begin {
    pub(super) faults: Faults,
    pub(super) done: oneshot::Sender<()>,
}

pub(super) struct Shared {
    /// The name and the password of whoever may call, in the form of the header.
    pub(super) login: Option<String>,
    pub(super) speech: Speech,
    pub(super) pace: Duration,
    pub(super) asks: bool,
    pub(super) begins: mpsc::Sender<Begin>,
    pub(super) sessions: Sessions,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) ids: Ids,
    pub(super) open: BTreeMap<String, Open>,
    pub(super) listeners: Vec<Listener>,
    /// What somebody has to answer, by its id.
    pub(super) asked: BTreeMap<String, Asked>,
    /// The turns that run.
    pub(super) turns: JoinSet<()>,
}

/// A session that was used since the start.
pub(super) struct Open {
    pub(super) session: Session,
    pub(super) title: String,
    pub(super) records: Records,
    pub(super) turn: Option<Running>,
}

/// A turn that runs.
pub(super) struct Running {
    pub(super) task: tokio::task::AbortHandle,
    /// The message that is being written.
    pub(super) message: Option<Value>,
    /// Prompts that came meanwhile, with the ids of their messages.
    pub(super) further: Vec<(String, String)>,
    /// Who waits for the end.
    pub(super) waiting: Vec<oneshot::Sender<()>>,
}

/// A request that waits.
pub(super) struct Asked {
    pub(super) kind: Kind,
    /// What is listed of it.
    pub(super) request: Value,
    pub(super) answer: oneshot::Sender<Reply>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Permission,
    Question,
}

/// What somebody answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    Yes(String),
    /// With a reason the turn goes on.
    No {
        message: Option<String>,
    },
}

impl Shared {
    pub(super) fn new(
        props: &Props,
        speech: Speech,
        begins: mpsc::Sender<Begin>,
    ) -> Result<Self, Error> {
        let state = State {
            ids: Ids::open()?,
            open: BTreeMap::new(),
            listeners: Vec::new(),
            asked: BTreeMap::new(),
            turns: JoinSet::new(),
        };
        let login = variable("OPENCODE_SERVER_PASSWORD").map(|password| {
            let user = variable("OPENCODE_SERVER_USERNAME").unwrap_or_else(|| "opencode".into());
            super::call::basic(&user, &password)
        });
        Ok(Self {
            login,
            speech,
            pace: props.pace,
            asks: asks(&variable("OPENCODE_PERMISSION").unwrap_or_default()),
            begins,
            sessions: Sessions::of(Agent::OpenCode.name(), &props.home),
            state: Mutex::new(state),
        })
    }

    /// Nothing is waited for while this is held.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a session, on disk if it was not used since the start.
    pub(super) fn find(&self, id: &str) -> Result<bool, Error> {
        if self.lock().open.contains_key(id) {
            return Ok(true);
        }
        let Some(session) = self.sessions.load(id)? else { return Ok(false) };
        self.insert(session, String::new());
        Ok(true)
    }

    pub(super) fn insert(&self, session: Session, title: String) {
        let records = Records::of_prompts(&session);
        let open = Open { title, records, turn: None, session };
        self.lock().open.insert(open.session.id.clone(), open);
    }
}

impl State {
    /// An id of this kind; without random bytes one that is the same each time.
    pub(super) fn id(&mut self, prefix: &str) -> String {
        self.ids.prefixed(prefix).unwrap_or_else(|_| format!("{prefix}0"))
    }
}

impl Open {
    /// What is told of the session itself.
    pub(super) fn info(&self) -> Value {
        json!({
            "id": self.session.id, "slug": "scripted", "projectID": "global",
            "directory": self.session.cwd, "title": self.title, "version": "0.0.0",
            "cost": 0, "time": { "created": 0, "updated": 0 },
        })
    }
}

/// Whether somebody is asked before a command runs, by the rules of the process.
fn asks(rules: &str) -> bool {
    let rules: Value = serde_json::from_str(rules).unwrap_or_default();
    let rule = rules.get("bash").or_else(|| rules.get("*"));
    match rule {
        Some(Value::String(action)) => action == "ask",
        Some(Value::Object(patterns)) => patterns.get("*").and_then(Value::as_str) == Some("ask"),
        _ => false,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the scripted agent is a program of its own, with its own settings"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_say_whether_a_command_is_asked_about() {
        assert!(asks(r#"{"*":"allow","bash":"ask"}"#));
        assert!(asks(r#"{"*":"ask"}"#));
        assert!(asks(r#"{"bash":{"*":"ask"}}"#));
        assert!(!asks(r#"{"*":"ask","bash":"allow"}"#));
        assert!(!asks("") && !asks("nonsense"));
    }
}
