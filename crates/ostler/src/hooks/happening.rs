//! What happened, as hooks are told of it. The names in the JSON are part of
//! the contract.

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    clock::Millis,
    config::{Hook, HookEvent},
    gateway::inbound::Origin,
    id::{ConversationId, JobId, TurnId},
    store::conversations::Address,
};

/// How much of a text is told, in bytes.
const LONGEST_TEXT: usize = 64 * 1024;
/// How much of an error.
const LONGEST_ERROR: usize = 4 * 1024;

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct Happening {
    pub(crate) event: HookEvent,
    pub(crate) at: Millis,
    /// What makes it another one than the last of its sort.
    pub(crate) subject: String,
    /// What made the turn.
    pub(crate) origin: Option<Origin>,
    /// The conversation, and where its replies go.
    pub(crate) conversation: Option<(ConversationId, Address)>,
    pub(crate) job: Option<JobId>,
    pub(crate) attempt: Option<i64>,
    pub(crate) turn: Option<TurnId>,
    pub(crate) agent: Option<String>,
    pub(crate) sender: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) response_text: Option<String>,
    /// The word of its kind, and what to show.
    pub(crate) error: Option<(String, String)>,
    pub(crate) session_id: Option<String>,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) reason: Option<Reason>,
}

/// What came of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Done,
    /// It failed for good.
    Dead,
    Cancelled,
    /// It failed, and is tried again.
    Retry,
    /// It was stopped with the gateway, and is begun again by the next.
    Released,
}

/// Why a conversation begins afresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    /// Somebody wanted it.
    Asked,
    /// It was silent for too long.
    Idle,
    /// Another agent answers.
    Agent,
    /// The agent does not know the session any more.
    Lost,
    /// Turns failed in it again and again.
    Failed,
}

impl Happening {
    /// Makes something that happened to the gateway itself.
    pub(crate) fn of_gateway(event: HookEvent, at: Millis) -> Self {
        Self {
            event,
            at,
            subject: uuid::Uuid::now_v7().simple().to_string(),
            origin: None,
            conversation: None,
            job: None,
            attempt: None,
            turn: None,
            agent: None,
            sender: None,
            text: None,
            response_text: None,
            error: None,
            session_id: None,
            outcome: None,
            reason: None,
        }
    }

    /// Returns the name under which a hook hears of it, which no other has.
    pub(crate) fn key(&self, hook: &Hook) -> String {
        let reason = self.reason.map(|reason| format!("-{}", word(reason))).unwrap_or_default();
        format!("{}:{}{reason}:{}", self.subject, self.event.word(), hook.name)
    }

    /// Returns what a hook is told.
    pub(crate) fn message(&self, hook: &Hook) -> Value {
        let conversation = self.conversation.as_ref().map(|(id, address)| {
            json!({ "id": id, "channel": address.channel(), "address": address.key() })
        });
        let error = self.error.as_ref().map(
            |(kind, message)| json!({ "kind": kind, "message": start_of(message, LONGEST_ERROR) }),
        );
        let text = |text: &Option<String>| {
            text.as_ref().map(|text| start_of(text, LONGEST_TEXT).to_owned())
        };
        let is_long =
            |text: &Option<String>| text.as_ref().is_some_and(|text| text.len() > LONGEST_TEXT);
        json!({
            "event": self.event,
            "hook": hook.name,
            "id": self.key(hook),
            "at": self.at,
            "conversation": conversation,
            "origin": self.origin,
            "job": self.job,
            "attempt": self.attempt,
            "turn": self.turn,
            "agent": self.agent,
            "sender": self.sender,
            "text": text(&self.text),
            "response_text": text(&self.response_text),
            "truncated": is_long(&self.text) || is_long(&self.response_text),
            "error": error,
            "outcome": self.outcome,
            "session_id": self.session_id,
            "reason": self.reason,
        })
    }

    /// Returns what the agent is told by an instruction that follows.
    pub(crate) fn instruction(&self, text: &str) -> String {
        match (&self.error, self.event) {
            (Some((kind, message)), HookEvent::Error) => {
                format!("{text}\n\nWhat went wrong: {kind}: {}", start_of(message, LONGEST_ERROR))
            }
            (_, _) => text.to_owned(),
        }
    }
}

/// Returns the word for a reason.
fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Asked => "asked",
        Reason::Idle => "idle",
        Reason::Agent => "agent",
        Reason::Lost => "lost",
        Reason::Failed => "failed",
    }
}

/// Returns the start of a text, of so many bytes at most.
fn start_of(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_for_a_reason_is_the_one_in_the_json() {
        use Reason::{Agent, Asked, Failed, Idle, Lost};
        for reason in [Asked, Idle, Agent, Lost, Failed] {
            assert_eq!(json!(reason), word(reason));
        }
    }
}
