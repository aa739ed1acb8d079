//! What an agent is: a record of facts and a dialect.
//!
//! Everything that differs between the CLIs is either data in [`AgentSpec`] or
//! a decision in one of its two functions: `launch`, which makes a command
//! line, and `dialect`, which makes the state machine that reads the process.
//! Neither does any I/O. The driver does it for all of them.

pub mod acp;
pub mod claude;
pub mod codex;
pub(crate) mod command_line;
mod custom;
mod dialect;
mod document;
pub(crate) mod emit;
pub(crate) mod field;
pub mod gemini;
pub mod http;
mod last_word;
mod name;
pub mod opencode;
mod patience;
pub mod pi;
pub(crate) mod plain;
#[cfg(test)]
pub(crate) mod play;
pub(crate) mod prompt;
mod roster;
pub(crate) mod sniff;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod warm;
pub(crate) mod words;

use std::{
    borrow::Cow,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;
use thiserror::Error;

pub use self::{
    custom::{AgentRef, Custom, Names},
    dialect::{
        Action, Dialect, Exit, Input, ONLY_SESSION, ONLY_TURN, Order, SessionKey, TimerKey,
        TurnEnd, TurnKey,
    },
    name::{AgentName, NameError, resolve_backend, resolve_provider},
    roster::Roster,
    warm::{AttachSpec, WarmLaunch, WarmSpec},
};
use crate::{
    event::Mode,
    request::{Open, Options, RequestError},
};

/// The built-in agents, in the order in which they are listed.
pub static AGENTS: &[&AgentSpec] =
    &[&claude::SPEC, &codex::SPEC, &gemini::SPEC, &opencode::SPEC, &pi::SPEC];

/// Finds a built-in agent by its exact name.
#[must_use]
pub fn find(name: &str) -> Option<&'static AgentSpec> {
    AGENTS.iter().copied().find(|spec| spec.name == name)
}

/// Everything Ostler knows about one agent, built in or configured.
pub struct AgentSpec {
    /// The name in the product's contract.
    pub name: AgentName,
    /// The name in texts for people.
    pub title: Cow<'static, str>,
    /// The program to look for in PATH.
    pub program: Cow<'static, str>,
    /// What it has beside that, if it is somebody's own.
    pub custom: Option<Custom>,
    /// Where the native program lies, seen from the npm launcher's real path.
    /// The launchers cost a Node process that swallows signals.
    pub natives: &'static [&'static str],
    /// What it can do.
    pub caps: Caps,
    /// The variables of the agent's own that are passed on, by name.
    pub env: Names,
    /// Those of them that lead to files of the user, left out when the agent has another home.
    pub home_env: &'static [&'static str],
    /// Files of a working directory that it reads only when the directory is trusted.
    pub project_files: &'static [&'static str],
    /// How its process is stopped.
    pub stop: &'static [StopStep],
    /// Versions the conformance suite ran against.
    pub tested_versions: &'static [&'static str],
    /// How to get it.
    pub install_hint: &'static str,
    /// The default identity text.
    pub identity: &'static str,
    /// When a system prompt reaches the model.
    pub system_prompt: Heard,
    /// Rejects session ids that this agent would misread.
    pub check_session: fn(&str) -> Result<(), RequestError>,
    /// Makes the command line.
    pub launch: fn(&Launch<'_>) -> Result<CommandLine, LaunchError>,
    /// Makes the state machine that reads the process.
    pub dialect: fn(&Launch<'_>) -> Box<dyn Dialect>,
    /// How it is kept running between turns, where it can be.
    pub warm: Option<&'static WarmSpec>,
}

impl fmt::Debug for AgentSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSpec").field("name", &self.name).finish_non_exhaustive()
    }
}

/// When a system prompt reaches the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// With every turn that it is given with.
    EachTurn,
    /// Only when a session begins: one that is given later is ignored.
    FirstTurn,
}

/// What an agent can do. The field names are part of the HTTP contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Caps {
    /// A session can be resumed.
    pub supports_session_continuation: bool,
    /// A model can be chosen.
    pub supports_model_selection: bool,
    /// Tools can be restricted.
    pub supports_tool_control: bool,
    /// Text comes in pieces while the model writes.
    pub supports_streaming: bool,
    /// Somebody can be asked for permission.
    pub supports_approvals: bool,
    /// A process can be kept for several turns.
    pub supports_warm: bool,
    /// The number of model calls can be limited.
    pub supports_max_turns: bool,
    /// A system prompt can be given.
    pub supports_system_prompt: bool,
    /// Models known to work; any other name is passed on as it is.
    pub supported_models: &'static [&'static str],
    /// The model used when none is named, as far as it is fixed.
    pub default_model: Option<&'static str>,
    /// The longest prompt in bytes; 0 is unlimited.
    pub max_prompt_length: usize,
}

/// One step of stopping a process. After the last one its tree is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopStep {
    /// Closes its standard input and waits for its end.
    CloseStdin {
        /// How long to wait.
        wait: Duration,
    },
    /// Sends a signal to the process and waits for its end.
    Signal {
        /// Which.
        signal: Signal,
        /// How long to wait.
        wait: Duration,
    },
}

/// The signals that end a CLI gently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT.
    Int,
    /// SIGTERM.
    Term,
}

impl Signal {
    /// Returns the signal's number.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::Int => libc::SIGINT,
            Self::Term => libc::SIGTERM,
        }
    }

    /// Returns the signal's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Int => "SIGINT",
            Self::Term => "SIGTERM",
        }
    }
}

/// What a command line is made of.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// Of which agent.
    pub spec: &'a AgentSpec,
    /// One process per turn, or a warm one.
    pub mode: Mode,
    /// How to run it.
    pub options: &'a Options,
    /// In which session.
    pub open: &'a Open,
    /// The prompt, identity text included.
    pub prompt: &'a str,
    /// The binary's version, if it is known already.
    pub version: Option<&'a str>,
    /// A private folder for this turn: the child's TMPDIR, short, removed afterwards.
    pub run_dir: &'a Path,
}

/// How to start the agent's process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The program, when a template names its own; else the agent's.
    pub program: Option<OsString>,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables beside the allowed ones, which they override.
    pub env: Vec<(OsString, OsString)>,
    /// Files to write before the start, by absolute path, inside the run folder.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Files of the agent's own home, by path below it, written unless they are there.
    pub home_files: Vec<(PathBuf, Vec<u8>)>,
    /// What the process reads.
    pub stdin: Stdin,
    /// How its standard output is read.
    pub stdout: Stdout,
    /// What could not be done as asked.
    pub warnings: Vec<String>,
}

/// What a process reads on its standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: the null device.
    #[default]
    Null,
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// What is written to it as long as it runs.
    Open,
}

/// How a process's standard output is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stdout {
    /// Through a pipe.
    #[default]
    Pipe,
    /// From a file in the run folder, for programs that end without waiting
    /// until a pipe has taken all they printed.
    File,
}

/// Why no command line could be made.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LaunchError {
    /// The template cannot be used.
    #[error("invalid command template: {why}")]
    BadTemplate {
        /// What is wrong with it.
        why: String,
    },
}
