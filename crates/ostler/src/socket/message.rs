//! What is said on the socket. Reading is lenient: fields that are not known
//! pass. A type that is not known does not, for something is expected of it.

use ostler_core::permission::{Answer, Decision};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use thiserror::Error;

use crate::{
    gateway::{Standing, inbound::Details},
    id::{ConversationId, JobId, MessageId, PermissionId},
    outbound::{Outgoing, Target},
    store::conversations::{Address, AddressError},
    wishes::Wishes,
};

/// The version of the protocol. Another number means that the two ends do not
/// understand each other; what only adds something does not change it.
pub(crate) const PROTOCOL: u32 = 1;
/// The longest line, but for a prompt.
pub(crate) const MAX_LINE: usize = 1024 * 1024;
/// The longest line with a prompt.
pub(crate) const MAX_PROMPT_LINE: usize = 4 * MAX_LINE;
/// The longest name of a message or of a sender.
const MAX_NAME: usize = 512;
/// How much is said of what was wrong with a line.
const MAX_REASON: usize = 300;

/// What a client wants.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    Send(Box<Message>),
    Follow(Follow),
    Answer {
        request: PermissionId,
        answer: Answer,
    },
    Cancel(Cancel),
    /// A heartbeat now, in this conversation or in the newest.
    Heartbeat(Option<Address>),
    Status,
    Look,
    Deliver(Box<Outgoing>),
}

/// A message for a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) conversation: Address,
    pub(crate) text: String,
    /// The same id twice is the same message.
    pub(crate) id: Option<String>,
    pub(crate) sender: Option<String>,
    pub(crate) wishes: Wishes,
    /// Whether the agent gets the text alone, without what the gateway adds to
    /// what people say.
    pub(crate) is_bare: bool,
    /// What is known of it beside its text.
    pub(crate) details: Details,
}

/// What to be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follow {
    /// A job, up to its end.
    Job(JobId),
    /// The log from a number on, for ever.
    Log { conversation: Option<ConversationId>, after: i64 },
}

/// What to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancel {
    Job(JobId),
    Conversation(ConversationId),
}

/// Why a line was not understood.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum Misunderstood {
    #[error("a line is no JSON object with a `type`: {0}")]
    NotAnObject(String),
    #[error(
        "unknown type {0:?}; known are send, deliver, follow, answer, cancel, heartbeat, status \
         and look"
    )]
    UnknownType(String),
    #[error("{kind}: {why}")]
    Fields { kind: &'static str, why: String },
}

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct SendFields {
    conversation: String,
    text: String,
    id: Option<String>,
    sender: Option<String>,
    #[serde(default)]
    bare: bool,
    details: Option<Details>,
}

#[derive(Deserialize)]
struct DeliverFields {
    to: Option<String>,
    text: String,
    id: Option<String>,
    from: Option<String>,
}

#[derive(Deserialize)]
struct FollowFields {
    job: Option<JobId>,
    conversation: Option<ConversationId>,
    after: Option<i64>,
}

#[derive(Deserialize)]
struct AnswerFields {
    request: PermissionId,
    decision: String,
    text: Option<String>,
}

#[derive(Deserialize)]
struct CancelFields {
    job: Option<JobId>,
    conversation: Option<ConversationId>,
}

#[derive(Deserialize)]
struct HeartbeatFields {
    conversation: Option<String>,
}

impl Request {
    /// Reads a line.
    pub(crate) fn read(line: &[u8]) -> Result<Self, Misunderstood> {
        let head: Head = serde_json::from_slice(line)
            .map_err(|error| Misunderstood::NotAnObject(start_of(&error.to_string())))?;
        match head.kind.as_str() {
            "send" => Ok(Self::Send(Box::new(message(line)?))),
            "follow" => follow(line).map(Self::Follow),
            "answer" => answer(line),
            "cancel" => cancel(line).map(Self::Cancel),
            "heartbeat" => heartbeat(line).map(Self::Heartbeat),
            "status" => Ok(Self::Status),
            "look" => Ok(Self::Look),
            "deliver" => Ok(Self::Deliver(Box::new(deliver(line)?))),
            other => Err(Misunderstood::UnknownType(start_of(other))),
        }
    }

    /// Writes it as a line, without the line end. Fails for a path that is no UTF-8.
    pub(crate) fn to_line(&self) -> Result<String, serde_json::Error> {
        let fields = match self {
            Self::Send(message) => return message.to_line(),
            Self::Follow(Follow::Job(job)) => json!({ "type": "follow", "job": job }),
            Self::Follow(Follow::Log { conversation, after }) => {
                json!({ "type": "follow", "conversation": conversation, "after": after })
            }
            Self::Answer { request, answer: Answer { decision, text } } => json!({
                "type": "answer", "request": request, "decision": decision.code(), "text": text,
            }),
            Self::Cancel(Cancel::Job(job)) => json!({ "type": "cancel", "job": job }),
            Self::Cancel(Cancel::Conversation(conversation)) => {
                json!({ "type": "cancel", "conversation": conversation })
            }
            Self::Heartbeat(conversation) => {
                let conversation = conversation.as_ref().map(Address::to_string);
                json!({ "type": "heartbeat", "conversation": conversation })
            }
            Self::Status => json!({ "type": "status" }),
            Self::Look => json!({ "type": "look" }),
            Self::Deliver(outgoing) => {
                let Outgoing { to, text, id, from } = &**outgoing;
                let to = match to {
                    Target::At(address) => Some(address.to_string()),
                    Target::Newest => None,
                };
                json!({ "type": "deliver", "to": to, "text": text, "id": id, "from": from })
            }
        };
        Ok(fields.to_string())
    }
}

impl Message {
    fn to_line(&self) -> Result<String, serde_json::Error> {
        let wishes = serde_json::to_value(&self.wishes)?;
        let mut fields = wishes.as_object().cloned().unwrap_or_default();
        let own = [
            ("type", Some(json!("send"))),
            ("conversation", Some(json!(self.conversation.to_string()))),
            ("text", Some(json!(self.text))),
            ("id", self.id.as_ref().map(|id| json!(id))),
            ("sender", self.sender.as_ref().map(|sender| json!(sender))),
            ("bare", self.is_bare.then_some(json!(true))),
            ("details", (self.details != Details::default()).then(|| json!(self.details))),
        ];
        let own = own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        fields.extend(own);
        Ok(Value::Object(fields).to_string())
    }
}

/// Reads the fields of a line whose type is known.
fn fields<T: DeserializeOwned>(kind: &'static str, line: &[u8]) -> Result<T, Misunderstood> {
    serde_json::from_slice(line).map_err(|error| wrong(kind, &error.to_string()))
}

fn wrong(kind: &'static str, why: &str) -> Misunderstood {
    Misunderstood::Fields { kind, why: start_of(why) }
}

fn message(line: &[u8]) -> Result<Message, Misunderstood> {
    const KIND: &str = "send";
    let SendFields { conversation, text, id, sender, bare, details } = fields(KIND, line)?;
    let conversation = conversation
        .parse()
        .map_err(|error: <Address as std::str::FromStr>::Err| wrong(KIND, &error.to_string()))?;
    check_names(KIND, [("id", &id), ("sender", &sender)])?;
    let wishes: Wishes = fields(KIND, line)?;
    if wishes.cwd.as_ref().is_some_and(|cwd| !cwd.is_absolute()) {
        return Err(wrong(KIND, "`cwd` must be an absolute path"));
    }
    let details = details.unwrap_or_default();
    Ok(Message { conversation, text, id, sender, wishes, is_bare: bare, details })
}

fn deliver(line: &[u8]) -> Result<Outgoing, Misunderstood> {
    const KIND: &str = "deliver";
    let DeliverFields { to, text, id, from } = fields(KIND, line)?;
    let to = to.map(|to| to.parse().map(Target::At)).transpose();
    let to = to.map_err(|error: AddressError| wrong(KIND, &error.to_string()))?;
    check_names(KIND, [("id", &id), ("from", &from)])?;
    Ok(Outgoing { to: to.unwrap_or(Target::Newest), text, id, from })
}

fn check_names<const N: usize>(
    kind: &'static str,
    names: [(&str, &Option<String>); N],
) -> Result<(), Misunderstood> {
    for (name, value) in names {
        if value.as_deref().is_some_and(|value| !is_name(value)) {
            let why = format!("`{name}` must have 1 to {MAX_NAME} bytes and no control characters");
            return Err(wrong(kind, &why));
        }
    }
    Ok(())
}

fn is_name(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len()) && !text.chars().any(char::is_control)
}

fn follow(line: &[u8]) -> Result<Follow, Misunderstood> {
    let FollowFields { job, conversation, after } = fields("follow", line)?;
    match (job, conversation, after) {
        (Some(job), None, None) => Ok(Follow::Job(job)),
        (Some(_), _, _) => {
            Err(wrong("follow", "a job is followed from its beginning; name nothing else"))
        }
        (None, conversation, after) => {
            Ok(Follow::Log { conversation, after: after.unwrap_or(0).max(0) })
        }
    }
}

fn answer(line: &[u8]) -> Result<Request, Misunderstood> {
    let AnswerFields { request, decision, text } = fields("answer", line)?;
    let Some(decision) = Decision::parse(&decision) else {
        let decision = start_of(&decision);
        let why = format!("unknown decision {decision:?}; known are allow, allow_always and deny");
        return Err(wrong("answer", &why));
    };
    Ok(Request::Answer { request, answer: Answer { decision, text } })
}

fn cancel(line: &[u8]) -> Result<Cancel, Misunderstood> {
    match fields("cancel", line)? {
        CancelFields { job: Some(job), conversation: None } => Ok(Cancel::Job(job)),
        CancelFields { job: None, conversation: Some(conversation) } => {
            Ok(Cancel::Conversation(conversation))
        }
        CancelFields { job: Some(_), .. } | CancelFields { job: None, conversation: None } => {
            Err(wrong("cancel", "name a `job` or a `conversation`"))
        }
    }
}

fn heartbeat(line: &[u8]) -> Result<Option<Address>, Misunderstood> {
    const KIND: &str = "heartbeat";
    let HeartbeatFields { conversation } = fields(KIND, line)?;
    let read = |name: String| name.parse();
    conversation
        .map(read)
        .transpose()
        .map_err(|error: <Address as std::str::FromStr>::Err| wrong(KIND, &error.to_string()))
}

/// Returns enough of a text to recognize it.
fn start_of(text: &str) -> String {
    text.chars().take(MAX_REASON).collect()
}

/// What the gateway says. The names are part of the contract.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Reply {
    Hello(Hello),
    Accepted(Accepted),
    Delivered(Delivered),
    Refused(Refused),
    Event(Event),
    /// Events up to this number were removed before they were read.
    Missed {
        number: i64,
    },
    Ended(Ended),
    Answered {
        outcome: &'static str,
    },
    Cancelled(Cancelled),
    /// There is no heartbeat now.
    Skipped(Skipped),
    Status(Box<Standing>),
    Looked,
}

/// Who speaks, before anything else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: String,
    pub(crate) protocol: u32,
    pub(crate) pid: u32,
}

/// A message was stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Accepted {
    pub(crate) job: JobId,
    pub(crate) conversation: ConversationId,
    /// Whether it had been accepted before.
    pub(crate) again: bool,
}

/// A message for people was stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delivered {
    pub(crate) message: MessageId,
    pub(crate) conversation: ConversationId,
    /// Whether it had been stored before.
    pub(crate) again: bool,
}

/// Something was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refused {
    /// The word to branch on.
    pub(crate) code: String,
    pub(crate) message: String,
}

/// Why there is no heartbeat now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Skipped {
    /// The word to branch on.
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// An event of the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) number: i64,
    /// As it was stored.
    pub(crate) event: Box<RawValue>,
}

/// A job is over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) job: JobId,
    pub(crate) state: String,
    pub(crate) reason: Option<String>,
    /// How the turn ended that answered it, if one did.
    pub(crate) complete: Option<Box<RawValue>>,
}

/// What became of the wish to end something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Cancelled {
    pub(crate) outcome: String,
    /// How many jobs had not begun, and never will.
    pub(crate) waiting: u64,
    /// The one that runs and is told to stop.
    pub(crate) running: Option<JobId>,
}

#[cfg(test)]
mod tests;
