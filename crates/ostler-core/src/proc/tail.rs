//! Reads a file while a process still writes it.
//!
//! Some programs end without waiting until a pipe has taken all they printed,
//! and the rest is lost. What they write to a file never is. The file grows at
//! its end only, and whoever owns the process says when it will grow no more.
//!
//! There is nothing to be woken by, so the file is looked at again and again,
//! but only while somebody waits for it: soon after something came, seldom
//! when nothing does.

use std::{
    fs::File,
    io::{self, Read},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    time::{Instant, Sleep, sleep},
};

/// The first pause after something was read.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
/// The longest pause, when nothing comes.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The reading end of a file that grows.
pub(super) struct Tail {
    file: File,
    n_read: u64,
    /// Where the file ends, once nobody writes any more.
    end: Option<u64>,
    pause: Duration,
    alarm: Pin<Box<Sleep>>,
}

impl Tail {
    /// Starts at the beginning of the file.
    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            n_read: 0,
            end: None,
            pause: SHORTEST_PAUSE,
            alarm: Box::pin(sleep(Duration::ZERO)),
        }
    }

    /// Says that nobody writes any more: what is there now is all.
    ///
    /// What somebody outside the process's tree adds later is left unread, so
    /// reading ends whatever happens to the file.
    pub(super) fn finish(&mut self) {
        // A file that cannot be asked is read to wherever it ends.
        let length = self.file.metadata().map_or(u64::MAX, |meta| meta.len());
        self.end.get_or_insert(length);
    }

    fn read_some(&mut self, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
        let left = self.end.map_or(u64::MAX, |end| end.saturating_sub(self.n_read));
        let room = buffer.remaining().min(usize::try_from(left).unwrap_or(usize::MAX));
        let space = buffer.initialize_unfilled_to(room);
        let n_read = loop {
            // A regular file never makes its reader wait, and this much of it
            // comes from memory: it has just been written.
            match self.file.read(space) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        buffer.advance(n_read);
        self.n_read = self.n_read.saturating_add(u64::try_from(n_read).unwrap_or(u64::MAX));
        Ok(n_read)
    }
}

impl AsyncRead for Tail {
    /// Reads what is there, or waits for more. At the end, nothing is read.
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let n_read = self.read_some(buffer)?;
            if n_read > 0 {
                self.pause = SHORTEST_PAUSE;
                return Poll::Ready(Ok(()));
            }
            if self.end.is_some() {
                return Poll::Ready(Ok(()));
            }
            if self.alarm.is_elapsed() {
                let next_look = Instant::now() + self.pause;
                self.alarm.as_mut().reset(next_look);
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            }
            if self.alarm.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tokio::io::AsyncReadExt;

    use super::*;

    fn file() -> (File, Tail) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let tail = Tail::new(file.reopen().unwrap());
        (file.into_file(), tail)
    }

    async fn read(tail: &mut Tail) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        tail.read_buf(&mut bytes).await.unwrap();
        bytes
    }

    #[tokio::test]
    async fn what_is_added_is_read_and_the_end_is_the_end() {
        let (mut writer, mut tail) = file();
        writer.write_all(b"one ").unwrap();
        assert_eq!(read(&mut tail).await, b"one ");
        let (more, ()) = tokio::join!(read(&mut tail), async {
            tokio::task::yield_now().await;
            writer.write_all(b"two").unwrap();
        });
        assert_eq!(more, b"two");
        writer.write_all(b"!").unwrap();
        tail.finish();
        writer.write_all(b"too late").unwrap();
        assert_eq!(read(&mut tail).await, b"!");
        assert_eq!(read(&mut tail).await, b"");
        tail.finish();
        assert_eq!(read(&mut tail).await, b"");
    }
}
