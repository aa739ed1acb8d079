//! A running turn, as its caller sees it.

use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    event::{Event, EventBody, TurnId, TurnReport},
    permission::Answer,
};

/// How many events may wait for a slow reader before the agent is paused.
pub(crate) const EVENTS_AHEAD: usize = 64;

/// How many answers and texts may be on their way to a turn.
const SAYS_AHEAD: usize = 16;

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

    /// Decides a permission request of this turn.
    ///
    /// # Errors
    /// When nobody waits for it: it was decided before, or never asked.
    pub async fn answer(&self, request: &str, answer: Answer) -> Result<(), SayError> {
        self.control.answer(request, answer).await
    }

    /// Hands the running turn a further text to take into account.
    ///
    /// # Errors
    /// When the turn is over, or its agent cannot be steered.
    pub async fn steer(&self, text: &str) -> Result<(), SayError> {
        self.control.steer(text).await
    }

    /// Asks for the end of the turn. Its events go on until `complete`.
    pub fn cancel(&self) {
        self.control.cancel.cancel();
    }

    /// Ends the turn's processes at once.
    pub fn kill(&self) {
        self.control.kill.cancel();
    }

    /// Returns a handle that can cancel the turn, and speak to it, from elsewhere.
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

/// Why a turn did not take what was said to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SayError {
    /// It has ended, or has a process that cannot be spoken to.
    #[error("the turn does not take anything any more")]
    Over,
    /// Nobody waits for that answer.
    #[error("no such permission request is open")]
    NotAsked,
    /// The agent cannot be steered.
    #[error("the agent cannot be steered; send the text as the next prompt")]
    NotSteerable,
}

/// Something said to a running turn, and where to tell whether it was taken.
#[derive(Debug)]
pub(crate) struct Say {
    pub(crate) what: Said,
    pub(crate) taken: oneshot::Sender<Result<(), SayError>>,
}

#[derive(Debug)]
pub(crate) enum Said {
    Answer { request: String, answer: Answer },
    Steer { text: String },
}

/// Cancels a turn or speaks to it from elsewhere. Cheap to clone; harmless after
/// the turn's end.
#[derive(Clone, Debug)]
pub struct Control {
    pub(crate) cancel: CancellationToken,
    pub(crate) kill: CancellationToken,
    says: mpsc::Sender<Say>,
}

impl Control {
    /// Makes a control that also follows a wider token, and its other end.
    pub(crate) fn under(parent: &CancellationToken) -> (Self, mpsc::Receiver<Say>) {
        let (says, heard) = mpsc::channel(SAYS_AHEAD);
        let control = Self { cancel: parent.child_token(), kill: CancellationToken::new(), says };
        (control, heard)
    }

    /// Asks for the end of the turn.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Ends the turn's processes at once.
    pub fn kill(&self) {
        self.kill.cancel();
    }

    /// Decides a permission request; see [`Turn::answer`].
    ///
    /// # Errors
    /// When nobody waits for it.
    pub async fn answer(&self, request: &str, answer: Answer) -> Result<(), SayError> {
        self.say(Said::Answer { request: request.to_owned(), answer }).await
    }

    /// Hands the running turn a further text; see [`Turn::steer`].
    ///
    /// # Errors
    /// When the turn is over, or its agent cannot be steered.
    pub async fn steer(&self, text: &str) -> Result<(), SayError> {
        self.say(Said::Steer { text: text.to_owned() }).await
    }

    async fn say(&self, what: Said) -> Result<(), SayError> {
        let (taken, answer) = oneshot::channel();
        self.says.send(Say { what, taken }).await.map_err(|_| SayError::Over)?;
        // The other end goes away with the turn.
        answer.await.unwrap_or(Err(SayError::Over))
    }
}
