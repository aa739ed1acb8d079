//! Processes: the only place that starts them.
//!
//! A [`Proc`] is an agent's process with everything it starts. Its output comes
//! as lines, its end comes last: after [`ProcEvent::Exited`] no process of the
//! tree is left, tools in sessions of their own included, and what they printed
//! has been read. Dropping a `Proc` ends the tree, and on Linux so does
//! whatever ends Ostler, SIGKILL included; see `proc/keeper.rs` for how.
//!
//! There are no tasks and no threads: all reading and writing happens inside of
//! [`Proc::next`]. Whoever does not call it pauses the process, which is the
//! back-pressure; a process whose output goes to a file is not paused, but
//! memory does not grow either. What the lines mean, how long to wait and when to stop are
//! decisions of the driver.

mod error;
mod feed;
mod image;
mod memory;
mod output;
mod tail;

#[cfg(target_os = "linux")]
mod descendants;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
use keeper as tree;

#[cfg(not(target_os = "linux"))]
mod group;
#[cfg(not(target_os = "linux"))]
use group as tree;

use std::{
    ffi::OsString,
    fmt,
    fs::{File, OpenOptions},
    io, mem,
    os::unix::{fs::OpenOptionsExt, process::ExitStatusExt},
    path::{Path, absolute},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    process::{Child, ChildStderr, Command},
    time::{Instant, sleep_until},
};

pub use self::error::SpawnError;
pub(crate) use self::memory::resident_below;
use self::{
    feed::{Feed, Lost, Then},
    image::Image,
    output::{Output, Source},
    tail::Tail,
    tree::Tree,
};
use crate::{
    agent::{Signal, Stdin},
    event::Stream,
    lines::Line,
};

/// How long a pipe that somebody outside the tree holds open is waited for.
const LEAK_TIMEOUT: Duration = Duration::from_secs(1);

/// How much is read after the end: two full pipes of the largest usual size.
/// More than that is not from the tree.
const LEAK_BYTES: usize = 2 * 1024 * 1024;

/// What to start.
#[derive(Clone, Debug)]
pub struct Spawn<'a> {
    /// The path of the program. PATH is not searched.
    pub program: &'a Path,
    /// Its arguments, without its own name.
    pub args: &'a [OsString],
    /// Its whole environment.
    pub env: &'a [(OsString, OsString)],
    /// Where it runs.
    pub cwd: &'a Path,
    /// What it reads.
    pub stdin: Stdin,
    /// A file to make for its standard output, which is read from there; else a pipe.
    pub stdout: Option<&'a Path>,
}

/// What a process did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcEvent {
    /// It printed a line.
    Line {
        /// Where.
        from: Stream,
        /// The line without its end, or the start of one that was too long.
        bytes: Vec<u8>,
        /// Whether the line was too long to keep.
        cut: bool,
    },
    /// It does not read its standard input any more, though it should. Said once.
    StdinClosed,
    /// It is gone with everything it started, and its output has been read.
    Exited {
        /// The exit code, unless a signal ended it.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
}

/// A process with everything it starts.
pub struct Proc {
    // Dropped first, so that the tree ends before the child is given up.
    tree: Option<Tree>,
    child: Child,
    pid: u32,
    stdin: Option<Feed>,
    /// Input that was to stay open was closed by the process, and nobody was told yet.
    stdin_lost: Option<Lost>,
    stdout: Output<Source>,
    stderr: Output<ChildStderr>,
    end: Option<End>,
}

/// Starts a process.
///
/// Blocks for about a millisecond, until the program is executed.
///
/// # Errors
/// When the program or the directory cannot be used, or the system refuses.
///
/// # Panics
/// Outside of a tokio runtime with I/O and time.
pub fn spawn(mut spawn: Spawn<'_>) -> Result<Proc, SpawnError> {
    // A bare name would mean a file of the working directory, and that can be
    // a stranger's repository.
    if spawn.program.parent() == Some(Path::new("")) {
        return Err(SpawnError::not_found(spawn.program));
    }
    let stdin = mem::take(&mut spawn.stdin);
    let file = match spawn.stdout {
        Some(path) => Some(output_file(path).map_err(|source| SpawnError::Output {
            program: spawn.program.to_owned(),
            path: path.to_owned(),
            source,
        })?),
        None => None,
    };
    start(&spawn, stdin, file).map_err(|source| SpawnError::new(&spawn, source))
}

/// Makes a file and returns its writing and its reading end.
fn output_file(path: &Path) -> io::Result<(File, File)> {
    let writer = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
    Ok((writer, File::open(path)?))
}

fn start(spawn: &Spawn<'_>, stdin: Stdin, file: Option<(File, File)>) -> io::Result<Proc> {
    // Made absolute because the child changes its directory first.
    let program = absolute(spawn.program)?;
    let image = Image::new(&program, spawn.args, spawn.env)?;
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
    let mut command = Command::new(&program);
    command
        .current_dir(spawn.cwd)
        .stdin(match stdin {
            Stdin::Null => Stdio::null(),
            Stdin::Bytes(_) | Stdin::Open => Stdio::piped(),
        })
        .stderr(Stdio::piped());
    let tail = match file {
        Some((writer, reader)) => {
            command.stdout(writer);
            Some(Source::File(Tail::new(reader)))
        }
        None => {
            command.stdout(Stdio::piped());
            None
        }
    };
    let (mut child, tree) = tree::spawn(command, image)?;
    Ok(Proc {
        pid: child.id().unwrap_or(0),
        stdin: Feed::new(child.stdin.take(), stdin),
        stdin_lost: None,
        stdout: Output::new(tail.or(child.stdout.take().map(Source::Pipe))),
        stderr: Output::new(child.stderr.take()),
        tree: Some(tree),
        child,
        end: None,
    })
}

impl Proc {
    /// Waits for the next thing the process does; forever `Exited` after its end.
    ///
    /// Cancel-safe: nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> ProcEvent {
        loop {
            if let Some(Line { bytes, cut }) = self.stdout.take_line() {
                let from = Stream::Stdout;
                return ProcEvent::Line { from, bytes, cut };
            }
            if let Some(Line { bytes, cut }) = self.stderr.take_line() {
                let from = Stream::Stderr;
                return ProcEvent::Line { from, bytes, cut };
            }
            if self.stdin_lost.take() == Some(Lost) {
                return ProcEvent::StdinClosed;
            }
            match &self.end {
                None => self.live().await,
                Some(end) if self.stdout.pipe.is_none() && self.stderr.pipe.is_none() => {
                    let (code, signal) = (end.code, end.signal);
                    return ProcEvent::Exited { code, signal };
                }
                Some(_) => self.drain().await,
            }
        }
    }

    /// Queues bytes for a standard input that was left open; they are written
    /// by [`Self::next`] and [`Self::flush`].
    pub fn write(&mut self, bytes: &[u8]) {
        if let Some(feed) = &mut self.stdin {
            feed.bytes.extend_from_slice(bytes);
        }
    }

    /// Closes standard input once everything queued is written.
    pub fn close_stdin(&mut self) {
        if let Some(feed) = &mut self.stdin {
            feed.then = Then::Close;
        }
    }

    /// Writes some of what is queued and reads nothing, for whoever does not
    /// want to hear more now. Cancel-safe.
    pub async fn flush(&mut self) {
        let written = Feed::write(&mut self.stdin).await;
        self.stdin_lost = self.stdin_lost.take().or(written.err());
    }

    /// Sends a signal to the agent's process, not to those that it started.
    pub fn signal(&self, signal: Signal) {
        if let Some(tree) = &self.tree {
            tree.signal(signal.number());
        }
    }

    /// Kills the process and everything it started. `Exited` still follows.
    pub fn kill(&mut self) {
        self.tree = None;
    }

    /// Returns the id of the process that stands for the tree: on Linux its keeper.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Keeps of lines that are longer than `max` bytes only so much, for whoever
    /// does not need them whole. To be said before anything is read.
    pub fn bound_lines(&mut self, max: usize) {
        self.stdout.bound_lines(max);
        self.stderr.bound_lines(max);
    }

    /// Makes no lines of what is printed from here on. Of each stream the first
    /// `max` bytes are kept; the rest is read and dropped, so that a process that
    /// prints without end costs no memory.
    pub fn keep_heads(&mut self, max: usize) {
        self.stdout.keep_head(max);
        self.stderr.keep_head(max);
    }

    /// Returns the start of what the process printed on standard output, byte for byte.
    #[must_use]
    pub fn stdout_head(&self) -> &[u8] {
        &self.stdout.head
    }

    /// Returns the start of what the process printed on standard error, byte for byte.
    #[must_use]
    pub fn stderr_head(&self) -> &[u8] {
        &self.stderr.head
    }

    /// Forgets it, so that what comes from here on is the start.
    pub fn forget_stderr_head(&mut self) {
        self.stderr.head.clear();
    }

    /// Returns when the process last printed anything, whole line or not.
    #[must_use]
    pub fn last_byte_at(&self) -> Instant {
        self.stdout.last_byte_at.max(self.stderr.last_byte_at)
    }

    /// Moves some bytes, or notices the end. Cancel-safe, for all its arms are.
    async fn live(&mut self) {
        let ended = tokio::select! {
            _ = self.stdout.read() => return,
            _ = self.stderr.read() => return,
            written = Feed::write(&mut self.stdin) => {
                self.stdin_lost = self.stdin_lost.take().or(written.err());
                return;
            }
            ended = self.child.wait() => ended,
        };
        self.stdin = None;
        self.tree = None;
        if let Some(Source::File(tail)) = &mut self.stdout.pipe {
            tail.finish();
        }
        self.end = Some(End::new(ended.ok()));
    }

    /// Reads what the dead have left in the pipes. Cancel-safe, for all its arms are.
    ///
    /// The timeout comes last: it must not hide output that is there. A file
    /// has an end by now, so it is read to there however long it is.
    async fn drain(&mut self) {
        let Some(end) = &mut self.end else {
            return;
        };
        let is_file = matches!(self.stdout.pipe, Some(Source::File(_)));
        let n_read = tokio::select! {
            biased;
            n_read = self.stdout.read() => if is_file { 0 } else { n_read },
            n_read = self.stderr.read() => n_read,
            () = sleep_until(end.patience) => usize::MAX,
        };
        end.n_drained = end.n_drained.saturating_add(n_read);
        if end.n_drained > LEAK_BYTES {
            self.stdout.pipe = None;
            self.stderr.pipe = None;
        }
    }
}

impl fmt::Debug for Proc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proc").field("pid", &self.pid).finish_non_exhaustive()
    }
}

/// How the process ended, and how long its pipes are still read.
struct End {
    code: Option<i32>,
    signal: Option<i32>,
    patience: Instant,
    n_drained: usize,
}

impl End {
    fn new(status: Option<ExitStatus>) -> Self {
        Self {
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            patience: Instant::now() + LEAK_TIMEOUT,
            n_drained: 0,
        }
    }
}
