//! The three standard streams as a script sees them, and the arguments the
//! played CLI was given. Nothing is buffered on the way out: a partial line is
//! really partial, and a chunk is one `write`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use serde::Deserialize;

use super::Error;
use super::inbox::{Heard, Inbox};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stream {
    #[default]
    Stdout,
    Stderr,
}

pub(super) struct Stage<'a> {
    pub(super) stdin: Inbox<'a>,
    pub(super) stdout: Box<dyn Write + 'a>,
    pub(super) stderr: Box<dyn Write + 'a>,
    /// What the played CLI was called with, without its name.
    pub(super) argv: Vec<OsString>,
}

impl Stage<'_> {
    /// The arguments as text, which is what the played CLIs make of them.
    pub(super) fn words(&self) -> Vec<String> {
        self.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    pub(super) fn write(&mut self, to: Stream, bytes: &[u8]) -> Result<(), Error> {
        let (out, name) = match to {
            Stream::Stdout => (&mut self.stdout, "stdout"),
            Stream::Stderr => (&mut self.stderr, "stderr"),
        };
        out.write_all(bytes)
            .and_then(|()| out.flush())
            .map_err(Error::io(format!("could not write to {name}")))
    }

    /// One line in one write, so that no reader sees its newline late.
    pub(super) fn write_line(&mut self, to: Stream, text: &str) -> Result<(), Error> {
        self.write(to, format!("{text}\n").as_bytes())
    }

    /// Forgets a stream, so that later steps print into nothing.
    pub(super) fn silence(&mut self, stream: Stream) {
        match stream {
            Stream::Stdout => self.stdout = Box::new(io::sink()),
            Stream::Stderr => self.stderr = Box::new(io::sink()),
        }
    }

    pub(super) fn read_to_end(&mut self) -> Result<Vec<u8>, Error> {
        self.stdin.rest().map_err(Error::io("could not read stdin"))
    }

    /// The next line with its newline; empty at the end of stdin.
    pub(super) fn read_line(&mut self) -> Result<Vec<u8>, Error> {
        Ok(match self.hear(None)? {
            Heard::Line(line) => line,
            Heard::Nothing | Heard::End => Vec::new(),
        })
    }

    /// The next line, if it comes in time.
    pub(super) fn hear(&mut self, at_most: Option<Duration>) -> Result<Heard, Error> {
        self.stdin.line(at_most).map_err(Error::io("could not read stdin"))
    }
}

/// A file that writes to the same stream, past the standard library's buffer.
pub(super) fn unbuffered(stream: impl AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}
