//! Programs that callers from outside may run: what they ask for, held against
//! what the operator allows. Pure; running them is up to the gateway.
//!
//! A caller gives words, never a line for a shell. What is allowed is exactly what
//! is stored and run: nothing is looked at again, or in another way, afterwards.

pub(crate) mod git;
pub(crate) mod shell;

use std::ffi::OsStr;

use ostler_core::environment::Variables;
use thiserror::Error;

/// The variables that a program gets of the gateway's own. No secret is in them.
const PASSED_ON: [&str; 3] = ["PATH", "HOME", "LANG"];

/// Returns the environment of programs.
pub(crate) fn environment(all: &Variables) -> Variables {
    let passed_on = PASSED_ON.into_iter().filter_map(|name| {
        let value = all.get(OsStr::new(name))?;
        Some((name.into(), value.clone()))
    });
    passed_on.collect()
}

/// Why something is not run.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It cannot be understood.
    #[error("{0}")]
    Wrong(String),
    /// The operator does not allow it.
    #[error("{0}")]
    Forbidden(String),
}

impl Refused {
    fn wrong(message: impl Into<String>) -> Self {
        Self::Wrong(message.into())
    }

    fn forbidden(message: impl Into<String>) -> Self {
        Self::Forbidden(message.into())
    }
}

/// Writes words as a line that people read.
pub(crate) fn line(words: &[String]) -> String {
    let quoted = shlex::try_join(words.iter().map(String::as_str));
    // Only a NUL cannot be written, and such words are refused.
    quoted.unwrap_or_else(|_| words.join(" "))
}

/// Lists names for people.
fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
