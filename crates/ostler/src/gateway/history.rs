//! What is kept of an exchange as people know it: what they said, and what they
//! were told. Written with what it tells of, so that it is there or neither is.

use std::borrow::Cow;

use super::{
    inbound::{Inbound, Origin},
    result::Outcome,
};
use crate::{
    channel::ReplyError,
    clock::Millis,
    id::{ConversationId, JobId, MessageId, TurnId},
    store::{
        Conn, StoreError,
        messages::{self, Direction, NewMessage, PERSON},
    },
};

/// The origin of an answer.
const REPLY: &str = "reply";
/// The origin of what an agent said that nobody had asked.
const UNASKED: &str = "unasked";

/// Returns the word for what made a message, if it is one that people see: what
/// the gateway asks an agent by itself was said by nobody.
fn seen(origin: Origin) -> Option<&'static str> {
    match origin {
        Origin::Person => Some(PERSON),
        Origin::Run => Some("run"),
        // What a program asks is kept with its command.
        Origin::Command | Origin::Heartbeat | Origin::Schedule | Origin::Hook => None,
    }
}

/// Keeps what was said to the gateway, with the job that it became. Done twice it
/// is the same as once.
pub(crate) async fn heard(
    conn: &mut Conn,
    conversation: ConversationId,
    job: JobId,
    inbound: &Inbound,
    now: Millis,
) -> Result<(), StoreError> {
    let Some(origin) = seen(inbound.origin) else { return Ok(()) };
    let name = inbound.details.sender_name.as_ref().unwrap_or(&inbound.sender);
    let message = NewMessage {
        id: MessageId::of_job(job),
        conversation,
        direction: Direction::In,
        origin,
        place: &inbound.address,
        sender: Some(name),
        agent: None,
        text: Some(&words(inbound)),
        error: None,
        job: Some(job),
        turn: None,
        at: now,
        dedupe: None,
    };
    messages::add(conn, &message).await.map(drop)
}

/// Returns what was said, or, where that was nothing, what came instead of words.
fn words(inbound: &Inbound) -> Cow<'_, str> {
    let Inbound { text, details, .. } = inbound;
    if !text.trim().is_empty() {
        return text.into();
    }
    if let Some(spoken) = details.transcript.as_ref().filter(|spoken| !spoken.trim().is_empty()) {
        return spoken.into();
    }
    let kinds = details.media.iter().map(|media| media.media_type.as_deref().unwrap_or("a file"));
    kinds.map(|kind| format!("[Attached: {kind}]")).collect::<Vec<_>>().join("\n").into()
}

/// Whose words something is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speaker<'a> {
    pub(crate) conversation: ConversationId,
    /// What it answers; nothing, if nobody had asked.
    pub(crate) job: Option<JobId>,
    pub(crate) turn: Option<TurnId>,
    pub(crate) agent: Option<&'a str>,
}

/// Keeps what was said to people, or why there is nothing to say.
pub(crate) async fn said(
    conn: &mut Conn,
    speaker: Speaker<'_>,
    outcome: &Outcome,
    now: Millis,
) -> Result<(), StoreError> {
    let Speaker { conversation, job, turn, agent } = speaker;
    let error = outcome.error.as_ref().map(|error| {
        let error = ReplyError { kind: error.kind.to_owned(), message: error.message.clone() };
        serde_json::to_string(&error).unwrap_or_else(|_| "{}".to_owned())
    });
    let text = outcome.text.as_deref().filter(|_| error.is_none());
    let message = NewMessage {
        id: MessageId::new(),
        conversation,
        direction: Direction::Out,
        origin: if job.is_some() { REPLY } else { UNASKED },
        place: &outcome.target,
        sender: None,
        agent,
        text: text.or(error.is_none().then_some("")),
        error: error.as_deref(),
        job,
        turn,
        at: now,
        dedupe: None,
    };
    messages::add(conn, &message).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::{super::testing::inbound, *};

    #[test]
    fn a_message_without_words_is_told_by_what_came_instead() {
        let words = |text: &str, details: serde_json::Value| {
            let details = serde_json::from_value(details).unwrap();
            words(&Inbound { details, ..inbound("local:main", text) }).into_owned()
        };
        let media = serde_json::json!([{ "type": "audio/ogg" }, { "url": "https://m/1" }]);
        let silent = serde_json::json!({ "media": media });
        assert_eq!(words(" ", silent.clone()), "[Attached: audio/ogg]\n[Attached: a file]");
        assert_eq!(words("look", silent), "look");
        let spoken = serde_json::json!({ "media": media, "transcript": "oats" });
        assert_eq!(words("", spoken), "oats");
    }
}
