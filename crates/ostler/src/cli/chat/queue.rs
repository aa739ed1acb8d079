//! The prompts that wait, and what becomes of one that comes while a turn runs.
//!
//! Decides only; whoever asks carries it out.

use std::collections::VecDeque;

use clap::ValueEnum;
use thiserror::Error;

/// How many prompts may wait.
pub(crate) const MAX_WAITING: usize = 100;
/// How long they may be together, in bytes.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// What becomes of a prompt that comes while a turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenBusy {
    /// It waits for its turn
    Queue,
    /// The running turn takes it into account, where the agent can do that
    Steer,
    /// The running turn is cancelled
    Interrupt,
}

/// Why a prompt was not taken.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum Full {
    #[error("{MAX_WAITING} prompts are waiting; this one was not taken")]
    Count,
    #[error("the prompts that wait have {} MiB; this one was not taken", MAX_BYTES / 1024 / 1024)]
    Bytes,
}

/// What to do about a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// Nothing runs: it is the next one.
    Next,
    /// It waits, as the one with this number from 1.
    Waits(usize),
    /// It waits, and what runs is to be cancelled.
    Interrupts(usize),
    /// It is to be handed to what runs, and was not put into the queue.
    Steers(String),
}

/// The prompts that wait.
#[derive(Debug)]
pub(crate) struct Queue {
    when_busy: WhenBusy,
    waiting: VecDeque<String>,
    n_bytes: usize,
}

impl Queue {
    pub(crate) fn new(when_busy: WhenBusy) -> Self {
        Self { when_busy, waiting: VecDeque::new(), n_bytes: 0 }
    }

    /// Takes a prompt in, while something runs or not.
    pub(crate) fn place(&mut self, prompt: String, is_busy: bool) -> Result<Placed, Full> {
        if !is_busy {
            self.push(prompt)?;
            return Ok(Placed::Next);
        }
        match self.when_busy {
            WhenBusy::Queue => self.push(prompt).map(Placed::Waits),
            WhenBusy::Interrupt => self.push(prompt).map(Placed::Interrupts),
            WhenBusy::Steer => Ok(Placed::Steers(prompt)),
        }
    }

    /// Puts a prompt at the end; returns its number from 1.
    pub(crate) fn push(&mut self, prompt: String) -> Result<usize, Full> {
        if self.waiting.len() >= MAX_WAITING {
            return Err(Full::Count);
        }
        let n_bytes = self.n_bytes.saturating_add(prompt.len());
        if n_bytes > MAX_BYTES {
            return Err(Full::Bytes);
        }
        self.n_bytes = n_bytes;
        self.waiting.push_back(prompt);
        Ok(self.waiting.len())
    }

    /// Takes the next prompt.
    pub(crate) fn pop(&mut self) -> Option<String> {
        let prompt = self.waiting.pop_front()?;
        self.n_bytes = self.n_bytes.saturating_sub(prompt.len());
        Some(prompt)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Forgets what waits; returns how many prompts that were.
    pub(crate) fn clear(&mut self) -> usize {
        self.n_bytes = 0;
        self.waiting.drain(..).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_conversation_takes_a_prompt_whatever_is_done_with_it_when_busy() {
        for when_busy in [WhenBusy::Queue, WhenBusy::Steer, WhenBusy::Interrupt] {
            let mut queue = Queue::new(when_busy);
            assert_eq!(queue.place("a".into(), false), Ok(Placed::Next));
            assert_eq!(queue.pop().as_deref(), Some("a"));
            assert!(queue.is_empty());
        }
    }

    #[test]
    fn a_busy_one_does_as_it_was_told() {
        let place = |when_busy| Queue::new(when_busy).place("a".into(), true);
        assert_eq!(place(WhenBusy::Queue), Ok(Placed::Waits(1)));
        assert_eq!(place(WhenBusy::Interrupt), Ok(Placed::Interrupts(1)));
        assert_eq!(place(WhenBusy::Steer), Ok(Placed::Steers("a".into())));
    }

    #[test]
    fn a_hundred_prompts_wait_in_order_and_no_more() {
        let mut queue = Queue::new(WhenBusy::Queue);
        for number in 1..=MAX_WAITING {
            assert_eq!(queue.place(number.to_string(), true), Ok(Placed::Waits(number)));
        }
        assert_eq!(queue.place("one more".into(), true), Err(Full::Count));
        assert_eq!(queue.pop().as_deref(), Some("1"));
        assert_eq!(queue.place("now".into(), true), Ok(Placed::Waits(MAX_WAITING)));
        assert_eq!(queue.clear(), MAX_WAITING);
    }

    #[test]
    fn what_waits_has_a_bounded_size() {
        let mut queue = Queue::new(WhenBusy::Queue);
        queue.push("x".repeat(MAX_BYTES)).unwrap();
        assert_eq!(queue.push("y".into()), Err(Full::Bytes));
        queue.pop();
        assert_eq!(queue.push("y".into()), Ok(1));
    }
}
