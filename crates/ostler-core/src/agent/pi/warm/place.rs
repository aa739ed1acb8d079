//! In which session a process is, and how it gets to another.

use std::path::PathBuf;

use serde_json::Value;

use crate::{
    agent::pi::field,
    failure::{Failure, FailureKind},
    request::{Open, Options},
};

/// In which session a process is.
#[derive(Debug, Default)]
pub(super) struct Place {
    id: String,
    file: Option<PathBuf>,
}

/// How a process gets to a session.
#[derive(Debug)]
pub(super) enum Plan {
    /// It is there.
    Stay,
    /// It goes to the session in this file.
    Switch(PathBuf),
    /// It makes a new one.
    Begin,
    /// It cannot.
    Fail(Failure),
}

impl Place {
    /// Takes what the CLI tells about its state; returns whether that could be read.
    pub(super) fn read(&mut self, state: &Value) -> bool {
        let Some(id) = field::text(state, "sessionId") else { return false };
        id.clone_into(&mut self.id);
        self.file = field::text(state, "sessionFile").map(PathBuf::from);
        true
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn file(&self) -> Option<PathBuf> {
        self.file.clone()
    }

    /// Decides how to get to a session, for a process that was started for this one.
    pub(super) fn plan(&self, started_for: Option<&str>, open: &Open, options: &Options) -> Plan {
        let Open::Resume(memo) = open else {
            return if started_for.is_none() { Plan::Stay } else { Plan::Begin };
        };
        // Where it was started for this session, it is for the id to tell
        // whether it got there.
        if started_for == Some(memo.id.as_str()) || self.id == memo.id {
            return Plan::Stay;
        }
        // A session takes the process along to its own directory.
        let is_elsewhere = memo.cwd.as_ref().is_some_and(|cwd| *cwd != options.cwd);
        match &memo.file {
            Some(file) if !is_elsewhere => Plan::Switch(file.clone()),
            Some(_) => {
                let text = format!("session {} belongs to another directory", memo.id);
                Plan::Fail(Failure::new(FailureKind::SessionLost, text))
            }
            None => {
                let text = format!("it is not known where pi keeps session {}", memo.id);
                Plan::Fail(Failure::new(FailureKind::SessionLost, text))
            }
        }
    }
}
