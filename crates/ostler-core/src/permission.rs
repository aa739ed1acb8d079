//! What an agent asks before it does something, and what may be answered.
//!
//! Agents differ in what their own "always" means, so they are only ever told
//! *once*; what was allowed for the rest of a session is remembered here.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::agent::AgentName;

/// A request for permission, or a question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Permission {
    /// The id to answer with, unique within its turn.
    pub request: String,
    /// What it is about.
    pub kind: PermissionKind,
    /// The tool that would run, in the agent's own words.
    pub tool: String,
    /// One line for people: the whole command, the path, the question.
    pub title: String,
    /// The tool's arguments, if the agent tells them.
    pub input: Option<Value>,
    /// What can be answered: decisions, or the choices of a question.
    pub options: Vec<String>,
    /// When it counts as denied. Set by the driver.
    pub expires_at: Option<Timestamp>,
}

impl Permission {
    /// Makes a request that is allowed or denied.
    #[must_use]
    pub fn new(kind: PermissionKind, tool: &str, title: String, input: Option<Value>) -> Self {
        Self {
            request: String::new(),
            kind,
            tool: tool.to_owned(),
            title,
            input,
            options: Self::decisions(),
            expires_at: None,
        }
    }

    /// Gives it the id to answer with.
    #[must_use]
    pub fn named(self, request: impl Into<String>) -> Self {
        Self { request: request.into(), ..self }
    }

    /// The answers to everything that is not a question.
    #[must_use]
    pub fn decisions() -> Vec<String> {
        let all = [Decision::Allow, Decision::AllowAlways, Decision::Deny];
        all.into_iter().map(|decision| decision.code().to_owned()).collect()
    }
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PermissionKind {
    /// Running a command.
    Command,
    /// Changing a file.
    Edit,
    /// Reading something outside of its reach.
    Read,
    /// Reaching out to the network.
    Network,
    /// A question to the user, answered with a text.
    Question,
    /// Anything else.
    Other,
}

/// What somebody decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it may happen.
    pub decision: Decision,
    /// The answer to a question, or why not.
    pub text: Option<String>,
}

impl Answer {
    /// Makes an answer without a text.
    #[must_use]
    pub fn new(decision: Decision) -> Self {
        Self { decision, text: None }
    }

    /// Returns what the agent is told: `AllowAlways` is ours alone.
    #[must_use]
    pub fn ruling(&self) -> Ruling {
        let text = self.text.clone();
        match self.decision {
            Decision::Allow | Decision::AllowAlways => Ruling::Allow { text },
            Decision::Deny => Ruling::Deny { why: text.unwrap_or_else(|| "denied".to_owned()) },
        }
    }
}

/// Whether something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// This time.
    Allow,
    /// This time and whenever the same tool asks with the same input, as long
    /// as the session is open.
    AllowAlways,
    /// No.
    Deny,
}

impl Decision {
    /// Returns the word that is printed and read.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::AllowAlways => "allow_always",
            Self::Deny => "deny",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Allow, Self::AllowAlways, Self::Deny].into_iter().find(|one| one.code() == word)
    }
}

/// Who or what made a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecidedBy {
    /// Somebody answered.
    User,
    /// An earlier `allow_always`.
    Session,
    /// Nobody answered in time.
    Timeout,
    /// The turn was cancelled or timed out.
    Cancel,
    /// The agent did not wait for the answer.
    Agent,
}

impl DecidedBy {
    /// Returns the word that is printed.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Session => "session",
            Self::Timeout => "timeout",
            Self::Cancel => "cancel",
            Self::Agent => "agent",
        }
    }
}

/// What the agent is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Go on, this once.
    Allow {
        /// The answer to a question. Without one the question is left
        /// unanswered: nobody chooses for the person who was asked.
        text: Option<String>,
    },
    /// Do not.
    Deny {
        /// Why, for the model to read.
        why: String,
    },
}

/// What was allowed for the rest of a session: the same tool with the same input.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowed {
    known: HashSet<(String, String)>,
}

impl Allowed {
    /// Remembers what was allowed. A question is never answered twice by the same answer.
    pub(crate) fn remember(&mut self, permission: &Permission) {
        self.known.extend(key(permission));
    }

    /// Adds what was allowed elsewhere.
    fn add(&mut self, other: Self) {
        self.known.extend(other.known);
    }

    /// Returns whether it was allowed before.
    pub(crate) fn covers(&self, permission: &Permission) -> bool {
        key(permission).is_some_and(|key| self.known.contains(&key))
    }
}

/// How many sessions are remembered in which something was allowed.
const MAX_SESSIONS: usize = 1024;

/// What was allowed, by agent and session: a session outlives the process that
/// has it open. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowances {
    sessions: Arc<Mutex<VecDeque<Permitted>>>,
}

#[derive(Debug)]
struct Permitted {
    agent: AgentName,
    id: String,
    allowed: Allowed,
}

impl Allowances {
    /// Returns what was allowed in a session.
    pub(crate) fn of(&self, agent: &str, id: &str) -> Allowed {
        let sessions = self.lock();
        let found = sessions.iter().find(|one| one.agent == *agent && one.id == id);
        found.map(|one| one.allowed.clone()).unwrap_or_default()
    }

    /// Adds what was allowed in a session; of too many the oldest is forgotten,
    /// and asked for again.
    pub(crate) fn add(&self, agent: &AgentName, id: &str, allowed: Allowed) {
        if allowed.known.is_empty() {
            return;
        }
        let mut sessions = self.lock();
        match sessions.iter_mut().find(|one| one.agent == *agent && one.id == id) {
            Some(known) => known.allowed.add(allowed),
            None => {
                let (agent, id) = (agent.clone(), id.to_owned());
                sessions.push_back(Permitted { agent, id, allowed });
            }
        }
        if sessions.len() > MAX_SESSIONS {
            sessions.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Permitted>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What makes two requests the same. Without an input nothing is known to be the same.
fn key(permission: &Permission) -> Option<(String, String)> {
    let input = permission.input.as_ref()?;
    (permission.kind != PermissionKind::Question)
        .then(|| (permission.tool.clone(), input.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asks(kind: PermissionKind, tool: &str, input: Option<Value>) -> Permission {
        Permission::new(kind, tool, String::new(), input).named("r")
    }

    #[test]
    fn always_means_the_same_tool_with_the_same_input() {
        let mut allowed = Allowed::default();
        let touch = asks(PermissionKind::Command, "Bash", Some(json!({"command": "touch a"})));
        assert!(!allowed.covers(&touch));
        allowed.remember(&touch);
        assert!(allowed.covers(&Permission { request: "other".into(), ..touch.clone() }));
        let other = asks(PermissionKind::Command, "Bash", Some(json!({"command": "touch b"})));
        assert!(!allowed.covers(&other));
        assert!(!allowed.covers(&Permission { tool: "Shell".into(), ..touch }));
    }

    #[test]
    fn questions_and_requests_without_an_input_are_always_asked() {
        let mut allowed = Allowed::default();
        let input = Some(json!({"q": 1}));
        for asked in [
            asks(PermissionKind::Question, "AskUserQuestion", input),
            asks(PermissionKind::Edit, "Edit", None),
        ] {
            allowed.remember(&asked);
            assert!(!allowed.covers(&asked));
        }
    }

    #[test]
    fn what_was_allowed_is_known_by_its_session_and_the_oldest_is_forgotten() {
        let allowances = Allowances::default();
        let touch = asks(PermissionKind::Command, "Bash", Some(json!({"command": "touch a"})));
        let mut allowed = Allowed::default();
        allowed.remember(&touch);
        allowances.add(&AgentName::new("claude"), "one", allowed.clone());
        assert!(allowances.of("claude", "one").covers(&touch));
        assert!(!allowances.of("claude", "two").covers(&touch));
        assert!(!allowances.of("codex", "one").covers(&touch));
        for number in 0..MAX_SESSIONS {
            allowances.add(&AgentName::new("codex"), &number.to_string(), allowed.clone());
        }
        assert!(!allowances.of("claude", "one").covers(&touch));
        assert!(allowances.of("codex", "0").covers(&touch));
    }

    #[test]
    fn agents_are_only_ever_told_once() {
        let always = Answer::new(Decision::AllowAlways).ruling();
        assert_eq!(always, Answer::new(Decision::Allow).ruling());
        let no = Answer { decision: Decision::Deny, text: Some("not now".into()) };
        assert_eq!(no.ruling(), Ruling::Deny { why: "not now".into() });
    }
}
