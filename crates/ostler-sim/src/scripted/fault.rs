//! What goes wrong because the prompt asks for it, in every played agent.
//!
//! Scripts can do more, but only before an agent begins; these words reach into
//! the middle of a turn, also the tenth one of a process.

use std::time::Duration;

use super::Error;
use super::inbox::Inbox;
use super::os;
use super::script::Handle;
use super::signal::Signal;
use super::stage::{Stage, Stream};

const GARBAGE: &str = "}{ this line is no part of the protocol";
const DELAY_MS: u64 = 100;
const SLOW_MS: u64 = 50;

/// The faults of one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Faults {
    /// `sim:delay=<ms>`: silence before the answer.
    pub(super) delay: Duration,
    /// `sim:slow=<ms>`: a pause before each piece of it but the first.
    slow: Option<Duration>,
    garbage: bool,
    crash: bool,
    hang: bool,
    ignore_term: bool,
    close_stdin: bool,
}

impl Faults {
    /// Takes what stands after `sim:`; returns whether it is a fault.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let ms = |default: u64| Duration::from_millis(value.parse().unwrap_or(default));
        match name {
            "delay" => self.delay = ms(DELAY_MS),
            "slow" => self.slow = Some(ms(SLOW_MS)),
            "garbage" => self.garbage = true,
            "crash" => self.crash = true,
            "hang" => self.hang = true,
            "ignore-term" => self.ignore_term = true,
            "close-stdin" => self.close_stdin = true,
            _ => return false,
        }
        true
    }

    /// Plays what happens before the answer, except for the delay, in which some
    /// agents listen.
    pub(super) fn begin(&self, stage: &mut Stage<'_>) -> Result<(), Error> {
        if self.ignore_term
            && let Some(signal) = Signal::from_name("TERM")
        {
            os::ignore(signal).map_err(Error::io("could not ignore SIGTERM"))?;
        }
        if self.close_stdin {
            os::let_go(Handle::Stdin).map_err(Error::io("could not close stdin"))?;
            // Else the end of its input would be the end of the agent.
            stage.stdin = Inbox::new(os::Nobody);
        }
        if self.garbage {
            stage.write_line(Stream::Stdout, GARBAGE)?;
        }
        if self.hang {
            os::wait(os::FOREVER);
        }
        Ok(())
    }

    /// The same for an agent that does not listen.
    pub(super) fn begin_deaf(&self, stage: &mut Stage<'_>) -> Result<(), Error> {
        self.begin(stage)?;
        os::wait(self.delay);
        Ok(())
    }

    /// The pause before a piece of the answer, by its number.
    pub(super) fn pace(&self, piece: usize, usual: Duration) -> Duration {
        self.slow.filter(|_| piece > 0).unwrap_or(usual)
    }

    /// Plays what happens in the middle of the answer.
    pub(super) fn middle(&self) -> Result<(), Error> {
        match Signal::from_name("KILL") {
            Some(signal) if self.crash => {
                Err(Error::Io { what: "could not crash".to_owned(), source: os::die(signal) })
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_faults_by_their_name_and_may_have_a_number() {
        let mut faults = Faults::default();
        for word in ["delay=7", "slow", "garbage", "crash", "hang", "ignore-term", "close-stdin"] {
            assert!(faults.take(word), "{word}");
        }
        assert_eq!(faults.delay, Duration::from_millis(7));
        assert_eq!(faults.pace(0, Duration::ZERO), Duration::ZERO);
        assert_eq!(faults.pace(1, Duration::ZERO), Duration::from_millis(SLOW_MS));
        assert!(!faults.take("tool") && !faults.take("flood"));
    }
}
