//! The answer in plain text output: every line that is printed belongs to it.
//!
//! When a line is read, and what else is printed, is for the agent to say.

use std::mem;

/// The answer is kept up to here; beyond it the events still carry all of it.
pub(crate) const MAX_ANSWER_BYTES: usize = 17 * 1024 * 1024;

/// The lines that were printed so far.
#[derive(Debug, Default)]
pub(crate) struct PlainAnswer {
    text: Option<String>,
    /// Whether a line was too long to read.
    pub(crate) has_lost_line: bool,
}

impl PlainAnswer {
    /// Adds a line; returns what to tell of it.
    ///
    /// Line ends only separate: the CLIs print one behind the answer that is
    /// not the answer's.
    pub(crate) fn add(&mut self, line: &[u8]) -> String {
        let line = String::from_utf8_lossy(line);
        let text = match self.text {
            None => line.into_owned(),
            Some(_) => format!("\n{line}"),
        };
        let answer = self.text.get_or_insert_default();
        if answer.len() <= MAX_ANSWER_BYTES {
            answer.push_str(&text);
        }
        text
    }

    /// Takes the answer; `None` when nothing was printed.
    pub(crate) fn take(&mut self) -> Option<String> {
        mem::take(&mut self.text)
    }
}
