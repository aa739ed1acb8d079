//! What a caller asks of an agent, and whether it can be asked at all.
//!
//! Values that no agent could take are refused here, before anything starts.
//! The argv builders behind it take whatever passes.

mod check;
mod options;

use std::{path::PathBuf, time::Duration};

use serde_json::{Map, Value};

pub use self::{
    check::{RequestError, check_session, validate},
    options::{
        Format, Identity, Options, Permissions, ProjectSettings, PromptCommands, Repeat,
        SessionArgPosition, SessionArgs, Template, Thinking,
    },
};
use crate::{
    event::{Mode, TurnId},
    memo::Memo,
};

/// One prompt and everything that decides how it is run.
#[derive(Clone, Debug)]
pub struct TurnRequest {
    /// What the user typed, verbatim.
    pub prompt: String,
    /// A new session, or one to go on with.
    pub open: Open,
    /// How to run it.
    pub options: Options,
    /// A process for this turn alone, or one that is kept for further ones.
    pub mode: Mode,
    /// How long the turn may take in all.
    pub timeout: Duration,
    /// How long the agent may print nothing.
    pub idle_timeout: Duration,
    /// How long a permission request waits for an answer before it is denied.
    pub ask_timeout: Duration,
    /// Which try at this prompt it is, from 1.
    pub attempt: u32,
    /// What the turn is called, where the caller has to know before it begins.
    pub turn: Option<TurnId>,
    /// Where to write every raw line, for bug reports and fixtures.
    pub transcript: Option<PathBuf>,
    /// Who keeps what is remembered of the session.
    pub memos: MemoKeeping,
    /// The project it belongs to; kept for the caller, not read here.
    pub project_id: Option<String>,
    /// The caller's own notes; kept, not read here.
    pub metadata: Map<String, Value>,
}

impl TurnRequest {
    /// Ten minutes for a turn.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
    /// Five minutes of silence.
    pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(300);
    /// Five minutes for an answer.
    pub const DEFAULT_ASK_TIMEOUT: Duration = Duration::from_secs(300);

    /// Makes a request for a new session in `cwd` with defaults for all else.
    pub fn new(prompt: impl Into<String>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            prompt: prompt.into(),
            open: Open::New,
            options: Options::new(cwd),
            mode: Mode::OneShot,
            timeout: Self::DEFAULT_TIMEOUT,
            idle_timeout: Self::DEFAULT_IDLE_TIMEOUT,
            ask_timeout: Self::DEFAULT_ASK_TIMEOUT,
            attempt: 1,
            turn: None,
            transcript: None,
            memos: MemoKeeping::Caller,
            project_id: None,
            metadata: Map::new(),
        }
    }

    /// Goes on with a session that a former turn left behind.
    #[must_use]
    pub fn resume(mut self, memo: Memo) -> Self {
        self.open = Open::Resume(Box::new(memo));
        self
    }
}

/// Who keeps what is remembered of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoKeeping {
    /// The caller, who hands the report's memo back when the session goes on.
    Caller,
    /// The host's data folder: read and written while the session is locked, so
    /// that turns which wait for each other see what the other left.
    DataFolder,
}

/// Which session a turn runs in.
#[derive(Clone, Debug)]
pub enum Open {
    /// One that the agent makes.
    New,
    /// One that exists, with what is known about it.
    Resume(Box<Memo>),
}

impl Open {
    /// Returns what is known about the session, if there is one already.
    #[must_use]
    pub fn memo(&self) -> Option<&Memo> {
        match self {
            Self::New => None,
            Self::Resume(memo) => Some(memo),
        }
    }
}
