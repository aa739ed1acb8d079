//! Words that agents print, and words about them: what a table of marks makes of
//! a message, and how to say a thing in one line.

use super::Exit;
use crate::failure::FailureKind;

/// Words in lower case, and the kind of failure that a message with them tells.
pub(crate) type Marks = [(&'static str, FailureKind)];

/// Returns the kind of the first mark that a message holds, in whichever case.
pub(crate) fn kind_by_marks(marks: &Marks, message: &str) -> Option<FailureKind> {
    let lower = message.to_lowercase();
    marks.iter().find(|(mark, _)| lower.contains(mark)).map(|(_, kind)| *kind)
}

/// Says how a process ended that did not say it itself.
pub(crate) fn exit_words(exit: &Exit) -> String {
    match exit.signal {
        Some(signal) => format!("the process was ended by signal {signal}"),
        None => format!("the process ended with exit code {}", exit.number()),
    }
}

/// Returns the first line, with a sign that there are more.
pub(crate) fn one_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default();
    match lines.next() {
        Some(_) => format!("{first} …"),
        None => first.to_owned(),
    }
}
