//! What is written to a process, and whether it still reads.

use std::future;

use tokio::{io::AsyncWriteExt, net::unix::pipe, process::ChildStdin};

use crate::agent::Stdin;

/// How much room is kept when everything is written.
const KEPT_SIZE: usize = 16 * 1024;

/// What is still to be written to the process.
pub(super) struct Feed {
    pipe: pipe::Sender,
    pub(super) bytes: Vec<u8>,
    n_written: usize,
    pub(super) then: Then,
}

/// What happens to the pipe when everything is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Close,
    Wait,
}

/// The process closed an input that was to stay open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost;

impl Feed {
    pub(super) fn new(pipe: Option<ChildStdin>, stdin: Stdin) -> Option<Self> {
        let (bytes, then) = match stdin {
            Stdin::Null => return None,
            Stdin::Bytes(bytes) => (bytes, Then::Close),
            Stdin::Open => (Vec::new(), Then::Wait),
        };
        let is_done = bytes.is_empty() && then == Then::Close;
        let pipe = pipe.filter(|_| !is_done)?.into_owned_fd().ok()?;
        // A pipe that is no pipe cannot be: it was made for this child.
        let pipe = pipe::Sender::from_owned_fd(pipe).ok()?;
        Some(Self { pipe, bytes, n_written: 0, then })
    }

    /// Waits until nobody can read the other end any more. Cancel-safe.
    #[cfg(target_os = "linux")]
    async fn closed(pipe: &pipe::Sender) {
        // The answer is the same whether it comes as readiness or as an error.
        pipe.ready(tokio::io::Interest::ERROR).await.ok();
    }

    /// Elsewhere the next write tells.
    #[cfg(not(target_os = "linux"))]
    async fn closed(_: &pipe::Sender) {
        future::pending().await
    }

    /// Writes some bytes, and closes the pipe after the last, if it is to be
    /// closed. With nothing to do it waits until the other end is closed.
    /// Cancel-safe, for a single write is.
    pub(super) async fn write(feed: &mut Option<Self>) -> Result<(), Lost> {
        let Some(open) = feed else {
            return future::pending().await;
        };
        let rest = open.bytes.get(open.n_written..).unwrap_or_default();
        if rest.is_empty() && open.then == Then::Wait {
            Self::closed(&open.pipe).await;
            *feed = None;
            return Err(Lost);
        }
        if !rest.is_empty() {
            match open.pipe.write(rest).await {
                Ok(n_written) => open.n_written = open.n_written.saturating_add(n_written),
                // A process need not read all that one turn has to say.
                Err(_) => {
                    let lost = open.then == Then::Wait;
                    *feed = None;
                    return if lost { Err(Lost) } else { Ok(()) };
                }
            }
        }
        if open.n_written >= open.bytes.len() {
            open.bytes.clear();
            open.n_written = 0;
            // A long prompt leaves nothing behind.
            open.bytes.shrink_to(KEPT_SIZE);
            if open.then == Then::Close {
                *feed = None;
            }
        }
        Ok(())
    }
}
