//! Events as the log keeps them.

use ostler_core::event::Event;

use crate::{
    clock::Millis,
    id::{ConversationId, PermissionId, TurnId},
    store::events::NewEvent,
};

/// Makes what is stored of an event; of a request for permission also the id by
/// which it is answered.
pub(crate) fn record(
    conversation: ConversationId,
    turn: TurnId,
    event: &Event,
    permission: Option<PermissionId>,
) -> NewEvent {
    // Everything in an event can be written as JSON.
    let mut body = serde_json::to_string(event).unwrap_or_else(|_| "{}".to_owned());
    if let (Some(id), Some(fields)) = (permission, body.strip_suffix('}')) {
        body = format!("{fields},\"id\":\"{id}\"}}");
    }
    NewEvent {
        conversation: Some(conversation),
        turn: Some(turn),
        seq: i64::try_from(event.seq).unwrap_or(i64::MAX),
        at: Millis(event.at.as_millisecond()),
        kind: event.body.kind().to_owned(),
        body,
    }
}
