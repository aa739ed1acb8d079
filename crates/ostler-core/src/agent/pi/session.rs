//! Which session answers, and when its id may be told.
//!
//! The CLI names a session before it exists: it writes one down with the first
//! message of the model, newer versions with the first prompt. An id that is
//! told before could not be resumed if the process ended then.

use std::mem;

use crate::agent::{Action, SessionKey};

/// A session, as far as it is known.
#[derive(Debug)]
pub(super) struct Session {
    key: SessionKey,
    resumed: Option<String>,
    state: State,
    /// Whether the CLI writes a session down before the model has answered.
    keeps_prompts: bool,
}

/// What is known of the session that answers.
#[derive(Debug)]
enum State {
    Unknown,
    /// Its id was told, but it is not on disk yet.
    Named(String),
    /// It can be resumed, or must not be.
    Settled,
}

/// Whether the CLI keeps a session for later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Yes,
    No,
}

impl Kept {
    /// What the arguments say that the operator added.
    pub(super) fn of(extra_args: &[String]) -> Self {
        if extra_args.iter().any(|arg| arg == "--no-session") { Self::No } else { Self::Yes }
    }
}

impl Session {
    /// A session that was asked for by its id, or a new one.
    pub(super) fn new(
        key: SessionKey,
        resumed: Option<String>,
        kept: Kept,
        version: Option<&str>,
    ) -> Self {
        let state = match kept {
            Kept::Yes => State::Unknown,
            Kept::No => State::Settled,
        };
        Self { key, resumed, state, keeps_prompts: version.is_some_and(keeps_prompts) }
    }

    pub(super) fn key(&self) -> SessionKey {
        self.key
    }

    /// Returns the id of the session that was to be resumed.
    pub(super) fn resumed(&self) -> Option<&str> {
        self.resumed.as_deref()
    }

    /// Returns whether the CLI told which session it is.
    pub(super) fn is_named(&self) -> bool {
        !matches!(self.state, State::Unknown)
    }

    /// Takes the id that the CLI tells; returns why the session is lost.
    ///
    /// Resuming keeps the id. Another one means that the CLI took the asked one
    /// for the beginning of it, or copied the session of another directory: an
    /// answer from there would not belong to this conversation.
    pub(super) fn name(&mut self, id: String, out: &mut Vec<Action>) -> Result<(), String> {
        if self.is_named() {
            return Ok(());
        }
        match &self.resumed {
            None => self.state = State::Named(id),
            Some(asked) if *asked == id => {
                self.state = State::Settled;
                out.push(Action::Opened { session: self.key, id });
            }
            Some(asked) => {
                return Err(format!("pi did not resume session {asked} but opened {id}"));
            }
        }
        Ok(())
    }

    /// The prompt has become part of the session.
    pub(super) fn asked(&mut self, out: &mut Vec<Action>) {
        if self.keeps_prompts {
            self.open(out);
        }
    }

    /// Tells a new session's id, which is on disk now.
    pub(super) fn open(&mut self, out: &mut Vec<Action>) {
        match mem::replace(&mut self.state, State::Settled) {
            State::Named(id) => out.push(Action::Opened { session: self.key, id }),
            State::Unknown => self.state = State::Unknown,
            State::Settled => {}
        }
    }

    /// Nothing more is told about it.
    pub(super) fn settle(&mut self) {
        self.state = State::Settled;
    }
}

/// Version 1.5 writes the prompt down at once, 0.87 does not.
fn keeps_prompts(version: &str) -> bool {
    super::version::is_at_least(version, (1, 5, 0))
}
