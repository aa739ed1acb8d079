//! Requests for permission as stored things: whoever may answer one does so
//! once, from wherever, and it is written down who it was.

use std::collections::HashMap;

use ostler_core::permission::{Answer, DecidedBy, Decision, Permission};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::{
    channel::NUMBERED,
    clock::Millis,
    id::{ConversationId, JobId, PermissionId, TurnId},
    queue::MessageKey,
    store::{
        Conn, Store, StoreError, WriteError,
        audit::{self, Entry},
        conversations::Address,
        jobs,
        permissions::{self, NewRequest, Resolved, StoredRequest},
    },
};

/// How long a request without a time of its own is open.
const OPEN: std::time::Duration = std::time::Duration::from_secs(300);

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    /// Whoever runs the gateway may answer everything.
    Operator(String),
    /// Somebody with a key that is for this: the line of the audit, as far as it is
    /// about him and his request.
    Caller(Entry),
    /// Somebody in a channel, by the name that the channel vouches for.
    Sender { channel: &'static str, name: String },
}

impl Actor {
    /// Returns what he is called wherever it is written down who did something.
    fn name(&self) -> String {
        match self {
            Self::Operator(name) => name.clone(),
            Self::Caller(entry) => entry.actor.clone(),
            Self::Sender { channel, name } => format!("{channel}:{name}"),
        }
    }

    /// Returns what the audit says beside who it was and what he decided.
    fn detail(&self, asked: String) -> String {
        let Self::Caller(entry) = self else { return asked };
        let mut detail: Map<String, Value> =
            serde_json::from_str(&entry.detail).unwrap_or_default();
        let asked = serde_json::from_str(&asked).unwrap_or(Value::String(asked));
        detail.insert("asked".to_owned(), asked);
        Value::Object(detail).to_string()
    }

    /// Whether this one may answer: the operator, or who asked the agent.
    fn may_answer(&self, request: &StoredRequest) -> bool {
        match self {
            Self::Operator(_) | Self::Caller(_) => true,
            Self::Sender { name, .. } => request.request.asked_of.as_deref() == Some(name),
        }
    }
}

/// Why an answer was not taken.
#[derive(Clone, Debug, Error)]
pub(crate) enum AnswerError {
    #[error("there is no such request")]
    Unknown,
    #[error("only who asked the agent, or the operator, may answer this")]
    NotYours,
    /// By the same one, and as he decides it now.
    #[error("it was decided before: {0}")]
    Again(String),
    #[error("it was decided before: {0}")]
    Before(String),
    #[error("its time is up; it counts as denied")]
    Late,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl WriteError for AnswerError {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            Self::Unknown | Self::NotYours | Self::Again(_) | Self::Before(_) | Self::Late => None,
        }
    }
}

/// A request as an agent makes it.
#[derive(Clone, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) conversation: ConversationId,
    pub(crate) turn: TurnId,
    /// Who asked the agent, and may answer.
    pub(crate) of: String,
    pub(crate) permission: &'a Permission,
    /// Where the answer to the turn goes.
    pub(crate) target: &'a Address,
    /// Which request of its turn it is: agents use names again.
    pub(crate) number: u32,
}

/// A request as it can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asking {
    pub(crate) id: PermissionId,
    /// The number of its first choice, where choices have numbers.
    pub(crate) number: Option<u32>,
}

/// Returns the event that shows a request, as the log has it.
pub(crate) fn event_of(stored: &StoredRequest) -> Value {
    let mut body: Value = serde_json::from_str(&stored.request.body).unwrap_or_default();
    if let Some(fields) = body.as_object_mut() {
        fields.insert("id".to_owned(), stored.id.to_string().into());
        fields.extend(stored.number.map(|number| ("number".to_owned(), number.into())));
    }
    body
}

/// Stores a request, with the numbers of its choices where they have some. Nothing, if
/// that is not possible: then nobody can answer it, and it is denied when its time is up.
pub(crate) async fn store(store: &Store, asked: Asked<'_>) -> Option<Asking> {
    let id = PermissionId::new();
    let now = Millis::now();
    let expires_at = asked.permission.expires_at.map(|at| Millis(at.as_millisecond()));
    let request = NewRequest {
        conversation: asked.conversation,
        turn: asked.turn,
        request: format!("{} {}", asked.number, asked.permission.request),
        body: serde_json::to_string(asked.permission).unwrap_or_default(),
        asked_of: Some(asked.of),
        asked_at: now,
        expires_at: expires_at.unwrap_or_else(|| now.after(OPEN)),
    };
    let is_numbered = NUMBERED.contains(&asked.target.channel());
    let place = is_numbered.then(|| asked.target.clone());
    // Without options it can be allowed and denied.
    let n_choices = u32::try_from(asked.permission.options.len()).unwrap_or(u32::MAX).max(2);
    let args = (id, request, place, n_choices);
    let stored = store.write_repeatable(args, |conn, (id, request, place, n_choices)| {
        Box::pin(async move {
            let id = permissions::ask(conn, *id, request).await?;
            let number = match place {
                None => None,
                Some(at) => {
                    let (channel, place) = (at.channel(), at.key());
                    Some(permissions::number(conn, id, channel, place, *n_choices).await?)
                }
            };
            Ok::<_, StoreError>(Asking { id, number })
        })
    });
    match stored.await {
        Ok(asking) => Some(asking),
        Err(error) => {
            tracing::warn!(%error, "a request for permission could not be stored");
            None
        }
    }
}

/// Answers a request, once, and writes down who did.
pub(crate) async fn answer(
    store: &Store,
    id: PermissionId,
    answer: Answer,
    by: Actor,
) -> Result<(), AnswerError> {
    let args = (id, answer, by, Millis::now());
    store
        .write(args, |conn, (id, answer, by, now)| Box::pin(decide(conn, *id, answer, by, *now)))
        .await
}

/// Answers a request by a message, which is dealt with by that: in the same write.
pub(crate) async fn answer_by(
    store: &Store,
    message: MessageKey,
    id: PermissionId,
    answer: Answer,
    by: Actor,
) -> Result<(), AnswerError> {
    let args = (message, JobId::new(), id, answer, by, Millis::now());
    let answered = store.write(args, |conn, (message, job, id, answer, by, now)| {
        Box::pin(async move {
            decide(conn, *id, answer, by, *now).await?;
            let MessageKey { channel, message } = message;
            jobs::note_message(conn, channel, message, *job, *now).await?;
            Ok(())
        })
    });
    answered.await
}

async fn decide(
    conn: &mut Conn,
    id: PermissionId,
    answer: &Answer,
    by: &Actor,
    now: Millis,
) -> Result<(), AnswerError> {
    let request = permissions::find(conn, id).await?.ok_or(AnswerError::Unknown)?;
    if !by.may_answer(&request) {
        return Err(AnswerError::NotYours);
    }
    let decision = answer.decision.code();
    let said = permissions::Decision { decision: decision.to_owned(), text: answer.text.clone() };
    match permissions::resolve(conn, id, &said, &by.name(), now).await? {
        Resolved::Now => {}
        Resolved::Again(earlier) => return Err(AnswerError::Again(earlier.decision.decision)),
        Resolved::Before(earlier) => return Err(AnswerError::Before(earlier.decision.decision)),
        Resolved::Late => return Err(AnswerError::Late),
        Resolved::Unknown => return Err(AnswerError::Unknown),
    }
    let entry = Entry {
        at: now,
        actor: by.name(),
        action: format!("permission.{decision}"),
        subject: id.to_string(),
        detail: by.detail(request.request.body),
    };
    Ok(audit::add(conn, &entry).await?)
}

/// Returns the answers that were given to open requests of a turn.
pub(crate) async fn answers(
    store: &Store,
    turn: TurnId,
    open: &HashMap<String, PermissionId>,
) -> Vec<(String, Answer)> {
    let decided = store.read(turn, |conn, turn| Box::pin(permissions::resolved_of(conn, *turn)));
    let Ok(decided) = decided.await else { return Vec::new() };
    let given = decided.into_iter().filter_map(|StoredRequest { id, resolution, .. }| {
        let (name, _) = open.iter().find(|(_, open)| **open == id)?;
        let resolution = resolution?;
        // What was decided by nobody, the turn knows by itself.
        resolution.by.as_ref()?;
        let permissions::Decision { decision, text } = resolution.decision;
        Some((name.clone(), Answer { decision: Decision::parse(&decision)?, text }))
    });
    given.collect()
}

/// Writes down how a request was decided without an answer from here.
pub(crate) async fn settle(store: &Store, id: PermissionId, decision: Decision, by: DecidedBy) {
    let args = (id, decision, by, Millis::now());
    let settled = store.write_repeatable(args, |conn, (id, decision, by, now)| {
        Box::pin(async move {
            let by = by.code();
            let decision = decision.code().to_owned();
            let decision = permissions::Decision { decision, text: None };
            permissions::resolve(conn, *id, &decision, by, *now).await.map(drop)
        })
    });
    if let Err(error) = settled.await {
        let error: StoreError = error;
        tracing::warn!(%error, "how a request for permission was decided could not be stored");
    }
}
