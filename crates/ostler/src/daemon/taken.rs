//! What a gateway that was killed leaves taken for some moments: a child that it
//! was just forking has a copy of all that was open, locks and sockets too, until
//! it executes its program or closes them.

use std::time::Duration;

use tokio::time::{self, Instant};

/// How long that may last on a busy machine.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// Takes something, and waits a little if somebody else has it.
pub(super) async fn wait_while<T, E, Taking>(
    is_taken: impl Fn(&E) -> bool,
    mut take: impl FnMut() -> Taking,
) -> Result<T, E>
where
    Taking: Future<Output = Result<T, E>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        match take().await {
            Err(error) if is_taken(&error) && Instant::now() < deadline => {
                time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::ready};

    use super::*;

    /// Returns what comes of it and how often it was tried, where it is taken so often.
    async fn tried(n_taken: u32, error: &'static str) -> (Result<(), &'static str>, u32) {
        let n_tries = Cell::new(0);
        let done = wait_while(
            |error| *error == "taken",
            || {
                n_tries.set(n_tries.get() + 1);
                ready(if n_tries.get() > n_taken { Ok(()) } else { Err(error) })
            },
        );
        (done.await, n_tries.get())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_taken_for_a_moment_is_waited_for_and_nothing_else_is() {
        assert_eq!(tried(0, "taken").await, (Ok(()), 1));
        assert_eq!(tried(50, "taken").await, (Ok(()), 51));
        assert_eq!(tried(1, "broken").await, (Err("broken"), 1));
        let (done, n_tries) = tried(u32::MAX, "taken").await;
        assert_eq!(done, Err("taken"));
        assert!((99..=102).contains(&n_tries), "{n_tries}");
    }
}
