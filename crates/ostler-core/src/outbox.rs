//! Events on their way to a reader: numbered, dated, in order, bounded.

use std::{
    collections::VecDeque,
    future::poll_fn,
    task::{Context, Poll, ready},
};

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::PollSender;

use crate::event::{Event, EventBody, TurnId};

/// How many events are kept for a reader that does not read while a process is
/// on its way out. Before that nothing is ever left out: the agent is paused.
const KEPT_AT_THE_END: usize = 4096;

/// How much text may wait for a reader that is behind while the agent cannot be
/// paused, because others use the same process.
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;

/// The events of one turn that the reader has not taken yet.
#[derive(Debug)]
pub(crate) struct Outbox {
    turn: TurnId,
    seq: u64,
    waiting: VecDeque<Event>,
    n_waiting_bytes: usize,
    limited: bool,
    reader: PollSender<Event>,
}

impl Outbox {
    pub(crate) fn new(turn: TurnId, reader: mpsc::Sender<Event>) -> Self {
        Self {
            turn,
            seq: 0,
            waiting: VecDeque::new(),
            n_waiting_bytes: 0,
            limited: false,
            reader: PollSender::new(reader),
        }
    }

    /// Makes one that nobody reads, to stand where another one was taken away.
    pub(crate) fn closed(turn: TurnId) -> Self {
        Self::new(turn, mpsc::channel(1).0)
    }

    /// Numbers an event and hands it over, or keeps it if the reader is behind.
    pub(crate) fn push(&mut self, parent: Option<String>, body: EventBody) {
        let last = matches!(body, EventBody::Error(_) | EventBody::Complete(_));
        if self.limited && self.waiting.len() >= KEPT_AT_THE_END && !last {
            return;
        }
        let Some(body) = self.merge(parent.as_deref(), body) else {
            return;
        };
        self.seq += 1;
        let turn = self.turn.clone();
        let event = Event { seq: self.seq, at: Timestamp::now(), turn, parent, body };
        if !self.waiting.is_empty() {
            return self.keep(event);
        }
        let Some(reader) = self.reader.get_ref() else {
            return;
        };
        match reader.try_send(event) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(event)) => self.keep(event),
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

    /// Returns whether the reader is so far behind that it is given up.
    pub(crate) fn is_overfull(&self) -> bool {
        self.n_waiting_bytes > MAX_WAITING_BYTES
    }

    /// Hands over what waits, as soon as the reader makes room. Cancel-safe.
    pub(crate) async fn deliver(&mut self) {
        poll_fn(|context| self.poll_deliver(context)).await;
    }

    /// Hands over what there is room for; ready when nothing waits any more.
    pub(crate) fn poll_deliver(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while !self.waiting.is_empty() {
            if ready!(self.reader.poll_reserve(context)).is_err() {
                self.waiting.clear();
                self.n_waiting_bytes = 0;
                break;
            }
            if let Some(event) = self.waiting.pop_front() {
                self.n_waiting_bytes = self.n_waiting_bytes.saturating_sub(weight(&event.body));
                // A reader that has gone since is noticed with the next event.
                self.reader.send_item(event).ok();
            }
        }
        Poll::Ready(())
    }

    fn keep(&mut self, event: Event) {
        self.n_waiting_bytes = self.n_waiting_bytes.saturating_add(weight(&event.body));
        self.waiting.push_back(event);
    }

    /// Adds a piece of text to the last waiting event, if that has the text
    /// before it; returns what could not be added.
    fn merge(&mut self, parent: Option<&str>, body: EventBody) -> Option<EventBody> {
        let last = self.waiting.back_mut().filter(|last| last.parent.as_deref() == parent);
        let Some(last) = last else {
            return Some(body);
        };
        match (&mut last.body, body) {
            (EventBody::Output { text, block }, EventBody::Output { text: more, block: same })
            | (
                EventBody::Thinking { text, block },
                EventBody::Thinking { text: more, block: same },
            ) if *block == same => {
                if self.limited && self.n_waiting_bytes > MAX_WAITING_BYTES {
                    return None;
                }
                text.push_str(&more);
                self.n_waiting_bytes = self.n_waiting_bytes.saturating_add(more.len());
                None
            }
            (_, body) => Some(body),
        }
    }
}

/// Returns about how much memory an event takes, as far as it can be a lot.
#[expect(clippy::wildcard_enum_match_arm, reason = "only these can be long")]
fn weight(body: &EventBody) -> usize {
    let text = match body {
        EventBody::Output { text, .. }
        | EventBody::Thinking { text, .. }
        | EventBody::Unknown { text, .. } => text.len(),
        EventBody::ToolResult(result) => result.output.len(),
        EventBody::ToolUse { input: Some(input), .. } => input.to_string().len(),
        EventBody::Permission(permission) => {
            permission.input.as_ref().map_or(0, |input| input.to_string().len())
        }
        _ => 0,
    };
    text.saturating_add(size_of::<Event>())
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

    fn piece(text: &str) -> EventBody {
        EventBody::Output { text: text.into(), block: "b".into() }
    }

    #[tokio::test]
    async fn pieces_of_one_block_merge_while_they_wait_and_numbers_have_no_gaps() {
        let (sender, mut reader) = mpsc::channel(1);
        let mut outbox = Outbox::new(TurnId::new(), sender);
        outbox.push(None, warning(0));
        for text in ["a", "b", "c"] {
            outbox.push(None, piece(text));
        }
        outbox.push(Some("sub".into()), piece("d"));
        let deliver = async {
            outbox.deliver().await;
            drop(outbox);
        };
        let read = async {
            let mut seen = Vec::new();
            while let Some(event) = reader.recv().await {
                let kind = event.body.kind().to_owned();
                let EventBody::Output { text, .. } = event.body else {
                    seen.push((event.seq, kind));
                    continue;
                };
                seen.push((event.seq, text));
            }
            seen
        };
        let ((), seen) = tokio::join!(deliver, read);
        let expected = [(1, "status"), (2, "abc"), (3, "d")];
        assert_eq!(seen, expected.map(|(seq, text)| (seq, text.to_owned())));
    }

    #[test]
    fn a_reader_that_never_reads_is_noticed() {
        let (sender, _reader) = mpsc::channel(1);
        let mut outbox = Outbox::new(TurnId::new(), sender);
        outbox.push(None, warning(0));
        let mut n_pieces = 0;
        while !outbox.is_overfull() {
            outbox.push(None, piece(&"x".repeat(1024 * 1024)));
            n_pieces += 1;
        }
        assert_eq!(n_pieces, 16, "sixteen of a megabyte each, and what an event takes itself");
    }
}
