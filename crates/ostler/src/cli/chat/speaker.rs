//! Says things to running turns, one after the other, and tells how they were
//! taken.
//!
//! A turn takes them when it gets to it, which may be a while; the conversation
//! does not stand still meanwhile.

use ostler_core::{
    permission::Answer,
    turn::{Control, SayError},
};
use tokio::{sync::mpsc, task::JoinSet};

/// How much may be on its way.
const AHEAD: usize = 100;

/// Something to say.
pub(crate) struct Saying {
    pub(crate) to: Control,
    pub(crate) what: What,
}

/// What is said.
pub(crate) enum What {
    /// A decision.
    Answer { request: String, answer: Answer },
    /// A further text; what to do if it is not taken is the sender's business.
    Steer { text: String, otherwise: Otherwise },
}

/// What becomes of a text that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Otherwise {
    /// It is a prompt, and waits.
    Queue,
    /// It is refused.
    Refuse,
}

/// What was said, and how it was taken.
pub(crate) struct Outcome {
    pub(crate) what: What,
    pub(crate) taken: Result<(), SayError>,
}

/// The way to the task that speaks. The task ends with it.
pub(crate) struct Speaker {
    sayings: mpsc::Sender<Saying>,
    outcomes: mpsc::Receiver<Outcome>,
    _task: JoinSet<()>,
}

impl Speaker {
    pub(crate) fn start() -> Self {
        let (sayings, mut heard) = mpsc::channel::<Saying>(AHEAD);
        let (told, outcomes) = mpsc::channel(AHEAD);
        let mut task = JoinSet::new();
        task.spawn(async move {
            while let Some(Saying { to, what }) = heard.recv().await {
                let taken = match &what {
                    What::Answer { request, answer } => to.answer(request, answer.clone()).await,
                    What::Steer { text, .. } => to.steer(text).await,
                };
                if told.send(Outcome { what, taken }).await.is_err() {
                    break;
                }
            }
        });
        Self { sayings, outcomes, _task: task }
    }

    /// Puts something behind what is being said; gives it back if too much is.
    pub(crate) fn say(&self, saying: Saying) -> Result<(), What> {
        self.sayings.try_send(saying).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(saying) | mpsc::error::TrySendError::Closed(saying) => {
                saying.what
            }
        })
    }

    /// Waits until something was taken or not. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Outcome> {
        self.outcomes.recv().await
    }
}
