//! Everything this program prints goes through here.

use std::io::{self, IsTerminal, Write};

/// The terminal or whatever stands in its place.
#[derive(Debug, Default)]
pub(crate) struct Ui {
    /// Whether the cursor stands in the middle of a line on standard output.
    mid_line: bool,
}

impl Ui {
    /// Returns whether a person watches the answer.
    pub(crate) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Writes a whole line to standard output.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.write(text)?;
        self.write("\n")
    }

    /// Writes text to standard output at once.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.mid_line = !text.ends_with('\n');
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Ends the line on standard output, if one is open.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        if self.mid_line { self.write("\n") } else { Ok(()) }
    }

    /// Writes a notice to standard error. A notice that cannot be shown is lost, not fatal.
    pub(crate) fn notice(&mut self, text: &str) {
        if self.mid_line && self.is_terminal() && io::stderr().is_terminal() {
            self.end_line().ok();
        }
        writeln!(io::stderr().lock(), "{}", printable(text)).ok();
    }
}

/// Returns text without the characters that would control a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(
            |c| {
                if c.is_control() && c != '\n' && c != '\t' {
                    char::REPLACEMENT_CHARACTER
                } else {
                    c
                }
            },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_cannot_control_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\u{7}\n\tc"), "a\u{fffd}[31mb\u{fffd}\n\tc");
    }
}
