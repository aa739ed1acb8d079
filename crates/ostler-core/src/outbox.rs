//! Events on their way to a reader: numbered, dated, in order, bounded.

use std::collections::VecDeque;

use jiff::Timestamp;
use tokio::sync::mpsc;

use crate::event::{Event, EventBody, TurnId};

/// How many events are kept for a reader that does not read while a process is
/// on its way out. Before that nothing is ever left out: the agent is paused.
const KEPT_AT_THE_END: usize = 4096;

/// The events of one turn that the reader has not taken yet.
#[derive(Debug)]
pub(crate) struct Outbox {
    turn: TurnId,
    seq: u64,
    waiting: VecDeque<Event>,
    limited: bool,
    reader: mpsc::Sender<Event>,
}

impl Outbox {
    pub(crate) fn new(turn: TurnId, reader: mpsc::Sender<Event>) -> Self {
        Self { turn, seq: 0, waiting: VecDeque::new(), limited: false, reader }
    }

    /// Numbers an event and hands it over, or keeps it if the reader is behind.
    pub(crate) fn push(&mut self, parent: Option<String>, body: EventBody) {
        let last = matches!(body, EventBody::Error(_) | EventBody::Complete(_));
        if self.limited && self.waiting.len() >= KEPT_AT_THE_END && !last {
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

    /// From here on the process is read whether the reader keeps up or not.
    pub(crate) fn limit(&mut self) {
        self.limited = true;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(text: usize) -> EventBody {
        EventBody::Status(crate::event::Status::Warning { text: text.to_string() })
    }

    #[tokio::test]
    async fn one_input_may_have_any_number_of_events_and_none_is_lost() {
        let (sender, mut reader) = mpsc::channel(4);
        let mut outbox = Outbox::new(TurnId::new(), sender);
        (0..20_000).for_each(|number| outbox.push(None, warning(number)));
        let deliver = async {
            outbox.deliver().await;
            drop(outbox);
        };
        let read = async {
            let mut n_events = 0;
            while let Some(event) = reader.recv().await {
                n_events += 1;
                assert_eq!(event.seq, n_events);
            }
            n_events
        };
        let ((), n_events) = tokio::join!(deliver, read);
        assert_eq!(n_events, 20_000);
    }

    #[tokio::test]
    async fn at_the_end_a_reader_that_does_not_read_costs_bounded_memory_but_gets_the_end() {
        let (sender, _reader) = mpsc::channel(4);
        let mut outbox = Outbox::new(TurnId::new(), sender);
        outbox.limit();
        (0..20_000).for_each(|number| outbox.push(None, warning(number)));
        let failure = crate::failure::Failure::timed_out("x");
        outbox.push(None, EventBody::Error(failure));
        assert_eq!(outbox.waiting.len(), KEPT_AT_THE_END + 1);
        let last = outbox.waiting.back().unwrap();
        assert_eq!((last.body.kind(), last.seq), ("error", 4 + 4096 + 1));
    }
}
