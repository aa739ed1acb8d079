//! Events as the log keeps them.

use jiff::Timestamp;
use ostler_core::event::{Event, EventBody, Stream, TurnReport};
use serde_json::json;

use crate::{
    clock::Millis,
    gateway::asking::Asking,
    id::{ConversationId, TurnId},
    store::events::{Belonging, NewEvent},
};

/// Whose an event is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whose<'a> {
    pub(crate) conversation: ConversationId,
    pub(crate) belongs: Option<&'a Belonging>,
}

/// Makes what is stored of an event; of a request for permission also by what it is
/// answered.
pub(crate) fn record(
    whose: Whose<'_>,
    turn: TurnId,
    event: &Event,
    permission: Option<Asking>,
) -> NewEvent {
    // Everything in an event can be written as JSON.
    let mut body = serde_json::to_string(event).unwrap_or_else(|_| "{}".to_owned());
    if let (Some(Asking { id, number }), Some(fields)) = (permission, body.strip_suffix('}')) {
        let number = number.map(|number| format!(",\"number\":{number}")).unwrap_or_default();
        body = format!("{fields},\"id\":\"{id}\"{number}}}");
    }
    NewEvent {
        conversation: Some(whose.conversation),
        belongs: whose.belongs.cloned(),
        turn: Some(turn),
        seq: i64::try_from(event.seq).unwrap_or(i64::MAX),
        at: Millis(event.at.as_millisecond()),
        kind: event.body.kind().to_owned(),
        body,
    }
}

/// Makes what is stored of a line that a program printed.
pub(crate) fn printed(
    whose: Whose<'_>,
    turn: TurnId,
    seq: u64,
    stream: Stream,
    text: &str,
    is_cut: bool,
) -> NewEvent {
    const KIND: &str = "output";
    let at = Millis::now();
    let mut body = json!({
        "seq": seq, "at": at, "type": KIND, "turn": turn, "text": text, "stream": stream,
    });
    if let Some(body) = body.as_object_mut().filter(|_| is_cut) {
        body.insert("truncated".to_owned(), true.into());
    }
    NewEvent {
        conversation: Some(whose.conversation),
        belongs: whose.belongs.cloned(),
        turn: Some(turn),
        seq: i64::try_from(seq).unwrap_or(i64::MAX),
        at,
        kind: KIND.to_owned(),
        body: body.to_string(),
    }
}

/// Makes the events of a turn that never began.
pub(crate) fn told_of(report: &TurnReport) -> impl Iterator<Item = EventBody> {
    let error = report.error.clone().map(EventBody::Error);
    error.into_iter().chain([EventBody::Complete(Box::new(report.clone()))])
}

/// Makes what is stored of a turn that never began.
pub(crate) fn not_started(whose: Whose<'_>, turn: TurnId, report: &TurnReport) -> Vec<NewEvent> {
    let event = |(body, seq)| {
        let event = Event { seq, at: Timestamp::now(), turn: turn.into(), parent: None, body };
        record(whose, turn, &event, None)
    };
    told_of(report).zip(1..).map(event).collect()
}
