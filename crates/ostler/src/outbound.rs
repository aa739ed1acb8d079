//! Messages that an agent or a program sends to people by itself: over the
//! socket, by the folder that is watched, or from within. All of them come
//! together here; what makes them arrive is the outbox, and for people on this
//! machine the event log.

mod draft;
pub(crate) mod folder;

use serde_json::json;

use crate::{
    channel::Reply,
    clock::Millis,
    config::Scope,
    gateway::{
        gate,
        inbound::{LOCAL, Refusal},
    },
    id::{ConversationId, MessageId},
    store::{
        Conn,
        conversations::{self, Address},
        events::{self, NewEvent},
        messages::{self, Direction, NewMessage},
        outbox,
    },
};

/// The origin of such a message in the history.
const ORIGIN: &str = "outbound";
/// Who speaks, unless that is said.
const SENDER: &str = "agent";

/// A message for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) to: Target,
    pub(crate) text: String,
    /// What it is called. The same name twice is the same message, wherever it goes.
    pub(crate) id: Option<String>,
    /// Who it is from, for those who read it later.
    pub(crate) from: Option<String>,
}

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    At(Address),
    /// Where a person last said something.
    Newest,
}

/// A message that is stored and will be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) message: MessageId,
    pub(crate) conversation: ConversationId,
    /// Whether it had been stored before.
    pub(crate) is_again: bool,
}

/// Stores a message that was looked at before: on its way, in the history, and
/// in the conversation's log. Done twice with the same id it is the same as once.
pub(crate) async fn store(
    conn: &mut Conn,
    id: MessageId,
    outgoing: &Outgoing,
    scope: Scope,
    now: Millis,
) -> Result<Delivered, Refusal> {
    if let Some(before) = known(conn, outgoing, id).await? {
        return Ok(before);
    }
    let (conversation, target) = match &outgoing.to {
        Target::At(address) => {
            let home = gate::shared(address, scope)?;
            (conversations::find_or_begin(conn, &home, now).await?.id, address.clone())
        }
        Target::Newest => messages::newest_place(conn).await?.ok_or(Refusal::NobodyThere)?,
    };
    let from = outgoing.from.as_deref().unwrap_or(SENDER);
    let message = NewMessage {
        id,
        conversation,
        direction: Direction::Out,
        origin: ORIGIN,
        place: &target,
        sender: Some(from),
        agent: None,
        text: Some(&outgoing.text),
        error: None,
        job: None,
        turn: None,
        at: now,
        dedupe: outgoing.id.as_deref(),
    };
    if !messages::add(conn, &message).await? {
        // Another gateway was quicker; or this is the second try of this very write.
        let before = Delivered { message: id, conversation, is_again: false };
        return Ok(known(conn, outgoing, id).await?.unwrap_or(before));
    }
    if target.channel() != LOCAL {
        let reply = Reply {
            conversation,
            job: None,
            with: Vec::new(),
            turn: None,
            text: Some(outgoing.text.clone()),
            error: None,
            cwd: None,
        };
        let message = outbox::NewMessage {
            dedupe: id.to_string(),
            conversation: Some(conversation),
            turn: None,
            channel: target.channel().to_owned(),
            address: target.key().to_owned(),
            body: reply.to_json(),
        };
        outbox::put(conn, &message, now).await?;
    }
    events::append(conn, &[event(id, conversation, &outgoing.text, from, now)]).await?;
    Ok(Delivered { message: id, conversation, is_again: false })
}

/// Returns the message of a name that was stored before; by an earlier try of
/// this very write, if it has this id.
async fn known(
    conn: &mut Conn,
    outgoing: &Outgoing,
    id: MessageId,
) -> Result<Option<Delivered>, Refusal> {
    let Some(name) = &outgoing.id else { return Ok(None) };
    let known = messages::named(conn, name).await?;
    Ok(known.map(|(message, conversation)| Delivered {
        message,
        conversation,
        is_again: message != id,
    }))
}

/// Makes the event that whoever follows the conversation sees: a text of its own
/// outside of any turn.
fn event(
    id: MessageId,
    conversation: ConversationId,
    text: &str,
    from: &str,
    now: Millis,
) -> NewEvent {
    let body = json!({
        "seq": 0, "at": now, "type": "output", "turn": null, "text": text, "block": id,
        "message": id, "from": from,
    });
    NewEvent {
        conversation: Some(conversation),
        turn: None,
        seq: 0,
        at: now,
        kind: "output".to_owned(),
        body: body.to_string(),
        belongs: None,
    }
}

#[cfg(test)]
mod tests;
