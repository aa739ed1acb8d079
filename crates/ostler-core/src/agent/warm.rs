//! An agent that is kept running between turns: the facts.

use std::{ffi::OsString, fmt, path::Path};

use super::{AgentSpec, CommandLine, Dialect, Launch, LaunchError, StopStep};
use crate::{
    event::Mode,
    memo::Memo,
    request::{Open, Options},
};

/// How an agent is kept running between turns.
pub struct WarmSpec {
    /// How many sessions one process can hold at the same time.
    pub sessions_per_process: usize,
    /// Whether a running turn takes a further text.
    pub supports_steering: bool,
    /// Whether a process works in the directory in which it was started, for good.
    pub is_bound_to_directory: bool,
    /// Whether a process that was started for a new session can go on with this one.
    pub adopts: fn(&Memo) -> bool,
    /// How its process is stopped.
    pub stop: &'static [StopStep],
    /// Makes the command line.
    pub launch: fn(&WarmLaunch<'_>) -> Result<CommandLine, LaunchError>,
    /// Makes the state machine that speaks with the process.
    pub dialect: fn(&WarmLaunch<'_>) -> Box<dyn Dialect>,
}

impl fmt::Debug for WarmSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WarmSpec")
            .field("sessions_per_process", &self.sessions_per_process)
            .finish_non_exhaustive()
    }
}

/// What the command line of a process that is kept running is made of.
///
/// Two sessions may share a process, one after the other or at once, exactly
/// if their command lines for a new session of the same id are equal. So what
/// can be changed in a running process must not be in the line.
#[derive(Clone, Copy)]
pub struct WarmLaunch<'a> {
    /// Of which agent.
    pub spec: &'a AgentSpec,
    /// How to run it.
    pub options: &'a Options,
    /// For which session, at first.
    pub open: &'a Open,
    /// The id of a new session, for agents that let us choose: a UUID.
    pub new_id: &'a str,
    /// The binary's version, if it is known already.
    pub version: Option<&'a str>,
    /// The variables that reach the process, apart from the line's own: some
    /// protocols have to be told a key that one-shot takes from there.
    pub variables: &'a [(OsString, OsString)],
    /// A private folder for the process: its TMPDIR, short, removed afterwards.
    pub run_dir: &'a Path,
}

impl fmt::Debug for WarmLaunch<'_> {
    /// Leaves the variables out: there are secrets in them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WarmLaunch").field("new_id", &self.new_id).finish_non_exhaustive()
    }
}

impl<'a> WarmLaunch<'a> {
    /// Returns the value of a variable that reaches the process.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.variables.iter().rfind(|(known, _)| known == name)?;
        value.to_str().filter(|value| !value.is_empty())
    }

    /// Returns the same as for one turn, without a prompt.
    #[must_use]
    pub fn as_launch(&self) -> Launch<'a> {
        Launch {
            spec: self.spec,
            mode: Mode::Warm,
            options: self.options,
            open: self.open,
            prompt: "",
            version: self.version,
            run_dir: self.run_dir,
        }
    }
}
