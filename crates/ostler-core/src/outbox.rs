//! Events on their way to a reader: numbered, dated, in order, bounded.

use std::collections::VecDeque;

use jiff::Timestamp;
use tokio::sync::mpsc;

use crate::event::{Event, EventBody, TurnId};

/// How many events are kept for a reader that has stopped reading while a turn
/// is being stopped; before that, the agent is paused and nothing piles up.
const KEPT_WHILE_STOPPING: usize = 4096;

/// The events of one turn that the reader has not taken yet.
#[derive(Debug)]
pub(crate) struct Outbox {
    turn: TurnId,
    seq: u64,
    waiting: VecDeque<Event>,
    reader: mpsc::Sender<Event>,
}

impl Outbox {
    pub(crate) fn new(turn: TurnId, reader: mpsc::Sender<Event>) -> Self {
        Self { turn, seq: 0, waiting: VecDeque::new(), reader }
    }

    /// Numbers an event and hands it over, or keeps it if the reader is behind.
    pub(crate) fn push(&mut self, parent: Option<String>, body: EventBody) {
        let last = matches!(body, EventBody::Error(_) | EventBody::Complete(_));
        if self.waiting.len() >= KEPT_WHILE_STOPPING && !last {
            return;
        }
        self.seq += 1;
        let turn = self.turn.clone();
        let event = Event { seq: self.seq, at: Timestamp::now(), turn, parent, body };
        if !self.waiting.is_empty() {
            self.waiting.push_back(event);
            return;
        }
        match self.reader.try_send(event) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(event)) => self.waiting.push_back(event),
            // Nobody reads any more; the dropped turn is being cancelled.
            Err(mpsc::error::TrySendError::Closed(_)) => {}
        }
    }

    /// Returns whether the reader is behind.
    pub(crate) fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Hands over what waits, as soon as the reader makes room. Cancel-safe.
    pub(crate) async fn deliver(&mut self) {
        while !self.waiting.is_empty() {
            let Ok(permit) = self.reader.reserve().await else {
                self.waiting.clear();
                return;
            };
            if let Some(event) = self.waiting.pop_front() {
                permit.send(event);
            }
        }
    }
}
