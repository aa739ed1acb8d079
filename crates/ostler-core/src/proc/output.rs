//! One of a process's output streams, cut into lines.

use std::{
    future, io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, ReadBuf},
    process::ChildStdout,
    time::Instant,
};

use super::tail::Tail;
use crate::lines::{Line, Lines};

/// How much is read at once. Two of these live as long as the process.
const READ_SIZE: usize = 16 * 1024;

/// How much of the start of a stream is kept for messages.
const HEAD_BYTES: usize = 4 * 1024;

/// Where standard output is read from.
pub(super) enum Source {
    Pipe(ChildStdout),
    File(Tail),
}

impl AsyncRead for Source {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_read(context, buffer),
            Self::File(tail) => Pin::new(tail).poll_read(context, buffer),
        }
    }
}

/// One of the process's output streams.
pub(super) struct Output<R> {
    pub(super) pipe: Option<R>,
    chunk: Vec<u8>,
    n_taken: usize,
    lines: Lines,
    wanted: Wanted,
    pub(super) head: Vec<u8>,
    pub(super) last_byte_at: Instant,
}

/// What becomes of what is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Lines, and beside them the start.
    Lines,
    /// The first so many bytes, and nothing else.
    Head(usize),
}

impl<R: AsyncRead + Unpin> Output<R> {
    pub(super) fn new(pipe: Option<R>) -> Self {
        Self {
            pipe,
            chunk: Vec::new(),
            n_taken: 0,
            lines: Lines::default(),
            wanted: Wanted::Lines,
            head: Vec::new(),
            last_byte_at: Instant::now(),
        }
    }

    /// Makes no lines from here on, and keeps the first bytes of what comes.
    pub(super) fn keep_head(&mut self, max: usize) {
        self.wanted = Wanted::Head(max);
        self.head.clear();
    }

    /// Keeps only the start of lines that are longer than this.
    pub(super) fn bound_lines(&mut self, max: usize) {
        self.lines = Lines::new(max, max);
    }

    /// Returns the next line of what was read; afterwards there is nothing left.
    pub(super) fn take_line(&mut self) -> Option<Line> {
        let mut rest = self.chunk.get(self.n_taken..).unwrap_or_default();
        let line = self.lines.take(&mut rest);
        self.n_taken = self.chunk.len().saturating_sub(rest.len());
        match (line, &self.pipe) {
            (None, None) => self.lines.finish(),
            (line, _) => line,
        }
    }

    /// Reads the next chunk, once the last one is used up. A closed stream waits
    /// forever. Cancel-safe, for a single read is.
    pub(super) async fn read(&mut self) -> usize {
        let Some(pipe) = &mut self.pipe else {
            return future::pending().await;
        };
        self.chunk.clear();
        self.chunk.reserve(READ_SIZE);
        self.n_taken = 0;
        match pipe.read_buf(&mut self.chunk).await {
            Ok(n_read) if n_read > 0 => {
                let max = match self.wanted {
                    Wanted::Lines => HEAD_BYTES,
                    Wanted::Head(max) => max,
                };
                let room = max.saturating_sub(self.head.len());
                self.head.extend(self.chunk.iter().take(room));
                if self.wanted != Wanted::Lines {
                    self.chunk.clear();
                }
                self.last_byte_at = Instant::now();
                n_read
            }
            // There is nothing to be had from a broken pipe either.
            Ok(_) | Err(_) => {
                self.pipe = None;
                0
            }
        }
    }
}
