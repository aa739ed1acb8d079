//! Everything this program prints goes through here.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
};

use crate::unruly::is_unruly;

/// The terminal or whatever stands in its place.
#[derive(Debug, Default)]
pub(crate) struct Ui {
    /// Whether the cursor stands in the middle of a line on standard output.
    mid_line: bool,
    /// What prints above a line that is being edited.
    above: Option<Above>,
    /// Whether one is.
    is_editing: bool,
    /// The start of a line that is to be printed above it.
    held: String,
    /// Whether the cursor stands behind what asks for a reply.
    is_asking: bool,
}

type Print = dyn FnMut(String) -> io::Result<()> + Send;

/// Prints lines above one that is being edited.
pub(crate) struct Above(Box<Print>);

impl Above {
    pub(crate) fn new(print: impl FnMut(String) -> io::Result<()> + Send + 'static) -> Self {
        Self(Box::new(print))
    }
}

impl fmt::Debug for Above {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Above")
    }
}

impl Ui {
    /// Returns whether a person watches the answer.
    pub(crate) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Uses this to print while a line is being edited.
    pub(crate) fn print_above(&mut self, above: Above) {
        self.above = Some(above);
    }

    /// Notes whether a line is being edited on the terminal.
    pub(crate) fn set_editing(&mut self, is_editing: bool) -> io::Result<()> {
        if self.is_editing != is_editing {
            let held = std::mem::take(&mut self.held);
            self.is_editing = is_editing;
            self.mid_line = false;
            return self.write(&held);
        }
        Ok(())
    }

    /// Writes a whole line to standard output.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.write(text)?;
        self.write("\n")
    }

    /// Writes text to standard output at once; above an edited line, as soon as
    /// a line of it is complete.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.mid_line = !text.ends_with('\n');
        if let (true, Some(Above(print))) = (self.is_editing, &mut self.above) {
            self.held.push_str(text);
            return match self.held.rfind('\n') {
                Some(end) => print(self.held.drain(..=end).collect()),
                None => Ok(()),
            };
        }
        self.leave_question();
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Goes on below a question that nobody replied to.
    fn leave_question(&mut self) {
        if std::mem::take(&mut self.is_asking) {
            writeln!(io::stderr().lock()).ok();
        }
    }

    /// Ends the line on standard output, if one is open.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        if self.mid_line { self.write("\n") } else { Ok(()) }
    }

    /// Writes a notice to standard error. A notice that cannot be shown is lost, not fatal.
    pub(crate) fn notice(&mut self, text: &str) {
        self.aside(&format!("{}\n", printable(text)));
    }

    /// Writes what stands before a reply to standard error, without ending the line.
    pub(crate) fn ask(&mut self, text: &str) {
        self.aside(text);
        self.is_asking = !self.is_editing;
    }

    /// Notes that a line was typed, whose end stands on the terminal, too.
    pub(crate) fn replied(&mut self) {
        self.is_asking = false;
        self.mid_line = false;
    }

    /// Notes that the terminal shows `^C`, below which things go on.
    pub(crate) fn interrupted(&mut self) {
        self.is_asking = !self.mid_line && !self.is_editing;
    }

    fn aside(&mut self, text: &str) {
        if self.mid_line && self.is_terminal() && io::stderr().is_terminal() {
            self.end_line().ok();
        }
        if let (true, Some(Above(print))) = (self.is_editing, &mut self.above) {
            print(text.to_owned()).ok();
            return;
        }
        self.leave_question();
        let mut stderr = io::stderr().lock();
        stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()).ok();
    }
}

/// Returns text without the characters that would control a terminal, or show
/// a line in another order than it has.
pub(crate) fn printable(text: &str) -> String {
    let is_kept = |c: char| matches!(c, '\n' | '\t') || !is_unruly(c);
    text.chars().map(|c| if is_kept(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn above_an_edited_line_text_comes_in_whole_lines_and_in_order() {
        let printed = Arc::new(Mutex::new(String::new()));
        let mut ui = Ui::default();
        let to = Arc::clone(&printed);
        ui.print_above(Above::new(move |text| {
            to.lock().unwrap().push_str(&format!("[{text}]"));
            Ok(())
        }));
        ui.set_editing(true).unwrap();
        for piece in ["one, ", "two\nthr", "ee"] {
            ui.write(piece).unwrap();
        }
        ui.end_line().unwrap();
        ui.notice("done");
        assert_eq!(*printed.lock().unwrap(), "[one, two\n][three\n][done\n]");
    }

    #[test]
    fn notices_cannot_control_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\u{7}\n\tc"), "a\u{fffd}[31mb\u{fffd}\n\tc");
        assert_eq!(printable("rm \u{202e}x"), "rm \u{fffd}x");
    }
}
