//! Lines that are typed on the terminal while something else is going on.
//!
//! The terminal does the editing here. Waiting for a line can be given up, which
//! standard input would not allow: a thread that reads it cannot be called off,
//! and would steal the next line from whoever reads it then.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, IsTerminal},
    os::unix::fs::OpenOptionsExt as _,
};

use ostler_core::lines::Lines;
use tokio::net::unix::pipe;

/// The longest line; terminals themselves cut at about 4,000 bytes.
const MAX_LINE: usize = 64 * 1024;
/// How much is read at once.
const PIECE: usize = 4096;

/// The terminal of this program.
#[derive(Debug)]
pub(crate) struct Typed {
    terminal: pipe::Receiver,
    lines: Lines,
    ready: VecDeque<String>,
}

/// Returns whether somebody sits at a terminal who can be asked: one who can
/// type, and sees what is not the answer.
pub(crate) fn somebody_is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

impl Typed {
    /// Opens the terminal anew, because not waiting for input is a property
    /// that standard input would share with the shell.
    pub(crate) fn open() -> io::Result<Self> {
        let terminal = File::options()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
            .open("/dev/tty")?;
        Ok(Self {
            // A terminal is waited for and read like the end of a pipe.
            terminal: pipe::Receiver::from_file_unchecked(terminal)?,
            lines: Lines::new(MAX_LINE, MAX_LINE),
            ready: VecDeque::new(),
        })
    }

    /// Forgets what was typed before: it cannot be the answer to what was not
    /// asked yet.
    pub(crate) fn forget(&mut self) {
        self.ready.clear();
        self.lines = Lines::new(MAX_LINE, MAX_LINE);
        // A terminal that is gone has nothing to forget.
        rustix::termios::tcflush(&self.terminal, rustix::termios::QueueSelector::IFlush).ok();
    }

    /// Waits for a line; `None` for Ctrl-D, or when the terminal is gone. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let mut piece = [0; PIECE];
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(line);
            }
            self.terminal.readable().await.ok()?;
            let n_read = match self.terminal.try_read(&mut piece) {
                Ok(0) => return None,
                Ok(n_read) => n_read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            let mut rest = piece.get(..n_read).unwrap_or_default();
            while let Some(line) = self.lines.take(&mut rest) {
                self.ready.push_back(String::from_utf8_lossy(&line.bytes).into_owned());
            }
        }
    }
}
