//! Events as the log keeps them.

use ostler_core::event::Event;
use serde_json::{Value, json};

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
    let body = match (permission, serde_json::to_value(event)) {
        (Some(id), Ok(Value::Object(mut body))) => {
            body.insert("id".to_owned(), json!(id));
            Value::Object(body).to_string()
        }
        (_, Ok(body)) => body.to_string(),
        // Everything in an event can be written as JSON.
        (_, Err(_)) => "{}".to_owned(),
    };
    NewEvent {
        conversation: Some(conversation),
        turn: Some(turn),
        seq: i64::try_from(event.seq).unwrap_or(i64::MAX),
        at: Millis(event.at.as_millisecond()),
        kind: event.body.kind().to_owned(),
        body,
    }
}
