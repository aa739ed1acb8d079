//! The turns that run: the one that was asked for, and those that the agent
//! began by itself.

use std::{future::poll_fn, pin::pin, task::Poll};

use ostler_core::{
    event::{Event, EventBody, TurnId},
    turn::{Control, Turn},
};

/// The turns that run, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    running: Vec<Turn>,
}

impl Turns {
    pub(crate) fn add(&mut self, turn: Turn) {
        self.running.push(turn);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Returns what speaks to the newest turn.
    pub(crate) fn newest(&self) -> Option<Control> {
        self.running.last().map(Turn::control)
    }

    /// Returns what speaks to a turn.
    pub(crate) fn control(&self, id: &TurnId) -> Option<Control> {
        self.running.iter().find(|turn| turn.id() == id).map(Turn::control)
    }

    /// Asks for the end of all.
    pub(crate) fn cancel(&self) {
        self.running.iter().for_each(Turn::cancel);
    }

    /// Ends the processes of all at once.
    pub(crate) fn kill(&self) {
        self.running.iter().for_each(Turn::kill);
    }

    /// Waits for the next event of any; for ever if none runs. Cancel-safe.
    ///
    /// A turn leaves with its last event; `None` stands for the end of one that
    /// did not get as far, because the host was shut down under it.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        let (at, event) = poll_fn(|context| {
            for (at, turn) in self.running.iter_mut().enumerate() {
                if let Poll::Ready(event) = pin!(turn.next()).poll(context) {
                    return Poll::Ready((at, event));
                }
            }
            Poll::Pending
        })
        .await;
        let is_last =
            event.as_ref().is_none_or(|event| matches!(event.body, EventBody::Complete(_)));
        if is_last {
            drop(self.running.remove(at));
        }
        event
    }
}
