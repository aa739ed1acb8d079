//! A running turn, as its caller sees it.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::event::{Event, EventBody, TurnId, TurnReport};

/// How many events may wait for a slow reader before the agent is paused.
pub(crate) const EVENTS_AHEAD: usize = 64;

/// A running turn. Dropping it cancels it.
#[derive(Debug)]
pub struct Turn {
    id: TurnId,
    events: mpsc::Receiver<Event>,
    control: Control,
}

impl Turn {
    pub(crate) fn new(id: TurnId, events: mpsc::Receiver<Event>, control: Control) -> Self {
        Self { id, events, control }
    }

    /// Returns the turn's id.
    #[must_use]
    pub fn id(&self) -> &TurnId {
        &self.id
    }

    /// Waits for the next event; `None` after the last one, which is `complete`.
    ///
    /// A reader that does not call this pauses the agent. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Asks for the end of the turn. Its events go on until `complete`.
    pub fn cancel(&self) {
        self.control.cancel.cancel();
    }

    /// Ends the turn's processes at once.
    pub fn kill(&self) {
        self.control.kill.cancel();
    }

    /// Returns a handle that can cancel the turn from elsewhere.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Reads the turn to its end; `None` only if the runtime was shut down under it.
    pub async fn end(mut self) -> Option<TurnReport> {
        while let Some(event) = self.next().await {
            if let EventBody::Complete(report) = event.body {
                return Some(*report);
            }
        }
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.control.cancel.cancel();
    }
}

/// Cancels a turn from elsewhere. Cheap to clone; harmless after the turn's end.
#[derive(Clone, Debug)]
pub struct Control {
    pub(crate) cancel: CancellationToken,
    pub(crate) kill: CancellationToken,
}

impl Control {
    /// Makes a control that also follows a wider token.
    pub(crate) fn under(parent: &CancellationToken) -> Self {
        Self { cancel: parent.child_token(), kill: CancellationToken::new() }
    }

    /// Asks for the end of the turn.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Ends the turn's processes at once.
    pub fn kill(&self) {
        self.kill.cancel();
    }
}
