//! What is said on the socket. Reading is lenient: fields that are not known
//! pass. A type that is not known does not, for something is expected of it.

use ostler_core::permission::{Answer, Decision};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use thiserror::Error;

use crate::{
    gateway::Standing,
    id::{ConversationId, JobId, PermissionId},
    store::conversations::Address,
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
    Answer { request: PermissionId, answer: Answer },
    Cancel(Cancel),
    Status,
    Look,
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
    #[error("unknown type {0:?}; known are send, follow, answer, cancel, status and look")]
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
            "status" => Ok(Self::Status),
            "look" => Ok(Self::Look),
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
            Self::Status => json!({ "type": "status" }),
            Self::Look => json!({ "type": "look" }),
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
    let SendFields { conversation, text, id, sender } = fields(KIND, line)?;
    let conversation = conversation
        .parse()
        .map_err(|error: <Address as std::str::FromStr>::Err| wrong(KIND, &error.to_string()))?;
    for (name, value) in [("id", &id), ("sender", &sender)] {
        if value.as_deref().is_some_and(|value| !is_name(value)) {
            let why = format!("`{name}` must have 1 to {MAX_NAME} bytes and no control characters");
            return Err(wrong(KIND, &why));
        }
    }
    let wishes: Wishes = fields(KIND, line)?;
    if wishes.cwd.as_ref().is_some_and(|cwd| !cwd.is_absolute()) {
        return Err(wrong(KIND, "`cwd` must be an absolute path"));
    }
    Ok(Message { conversation, text, id, sender, wishes })
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

/// Something was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refused {
    /// The word to branch on.
    pub(crate) code: String,
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
mod tests {
    use proptest::{option, prelude::*};

    use super::*;

    fn line_of(request: &Request) -> String {
        request.to_line().unwrap()
    }

    fn any_request() -> impl Strategy<Value = Request> {
        let wishes = (option::of("[a-z]{1,8}"), option::of(any::<u64>()), any::<bool>());
        let wishes = wishes.prop_map(|(agent, timeout_ms, cold)| Wishes {
            agent,
            timeout_ms,
            cold,
            cwd: Some("/work".into()),
            ..Wishes::default()
        });
        let names = (option::of("[^\\p{Cc}]{1,20}"), option::of("[^\\p{Cc}]{1,20}"));
        let send = ("[a-z]{1,9}", "[^\\p{Cc}]{1,40}", any::<String>(), names, wishes).prop_map(
            |(channel, key, text, (id, sender), wishes)| {
                let conversation = Address::new(&channel, &key).unwrap();
                Request::Send(Box::new(Message { conversation, text, id, sender, wishes }))
            },
        );
        let conversation =
            option::of(Just(())).prop_map(|some| some.map(|()| ConversationId::new()));
        let log = (conversation, 0..i64::MAX)
            .prop_map(|(conversation, after)| Request::Follow(Follow::Log { conversation, after }));
        let decision =
            prop_oneof![Just(Decision::Allow), Just(Decision::AllowAlways), Just(Decision::Deny)];
        let answer = (decision, option::of(any::<String>())).prop_map(|(decision, text)| {
            Request::Answer { request: PermissionId::new(), answer: Answer { decision, text } }
        });
        prop_oneof![
            send,
            log,
            answer,
            Just(()).prop_map(|()| Request::Follow(Follow::Job(JobId::new()))),
            Just(()).prop_map(|()| Request::Cancel(Cancel::Job(JobId::new()))),
            Just(()).prop_map(|()| Request::Cancel(Cancel::Conversation(ConversationId::new()))),
            Just(Request::Status),
            Just(Request::Look),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_and_is_one_line(request in any_request()) {
            let line = line_of(&request);
            prop_assert!(!line.contains('\n'));
            prop_assert_eq!(Request::read(line.as_bytes()), Ok(request));
        }

        #[test]
        fn any_bytes_are_refused_or_understood(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            Request::read(&bytes).ok();
        }

        #[test]
        fn a_line_that_was_cut_is_refused(request in any_request(), at in 0.0..1.0) {
            let line = line_of(&request);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below the length")]
            let cut = (line.len() as f64 * at) as usize;
            prop_assert!(Request::read(&line.as_bytes()[..cut]).is_err());
        }

        #[test]
        fn a_line_with_something_changed_is_refused_or_understood(
            request in any_request(),
            at in any::<proptest::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut line = line_of(&request).into_bytes();
            let at = at.index(line.len());
            line[at] = byte;
            Request::read(&line).ok();
        }
    }

    #[test]
    fn fields_that_are_not_known_pass() {
        let job = JobId::new();
        let line = json!({ "type": "follow", "job": job, "of_tomorrow": [1] }).to_string();
        assert_eq!(Request::read(line.as_bytes()), Ok(Request::Follow(Follow::Job(job))));
        let line =
            r#"{"type":"send","conversation":"local:a:b","text":"hi","more":{},"model":"m"}"#;
        let Ok(Request::Send(message)) = Request::read(line.as_bytes()) else { panic!() };
        assert_eq!((message.conversation.channel(), message.conversation.key()), ("local", "a:b"));
        assert_eq!(message.wishes.model.as_deref(), Some("m"));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let job = JobId::new();
        for (line, says) in [
            (String::new(), "no JSON object"),
            ("7".to_owned(), "no JSON object"),
            ("[]".to_owned(), "no JSON object"),
            ("{}".to_owned(), "missing field `type`"),
            (r#"{"type":"dance"}"#.to_owned(), r#"unknown type "dance""#),
            (r#"{"type":"send","text":"a"}"#.to_owned(), "missing field `conversation`"),
            (r#"{"type":"send","conversation":"main","text":"a"}"#.to_owned(), "local:main"),
            (r#"{"type":"send","conversation":"local:","text":"a"}"#.to_owned(), "not be empty"),
            (
                r#"{"type":"send","conversation":"local:a\u001b","text":"a"}"#.to_owned(),
                "control characters",
            ),
            (
                r#"{"type":"send","conversation":"local:a","text":"a","id":""}"#.to_owned(),
                "`id` must have",
            ),
            (
                r#"{"type":"send","conversation":"local:a","text":"a","cwd":"x"}"#.to_owned(),
                "absolute path",
            ),
            (
                r#"{"type":"send","conversation":"local:a","text":"a","max_turns":-1}"#.to_owned(),
                "invalid value",
            ),
            (
                r#"{"type":"send","conversation":"local:a","text":"a","permissions":"all"}"#
                    .to_owned(),
                "unknown variant",
            ),
            (r#"{"type":"follow","job":"trn_1"}"#.to_owned(), "not the id of a job"),
            (json!({"type":"follow","job":job,"after":1}).to_string(), "from its beginning"),
            (r#"{"type":"cancel"}"#.to_owned(), "name a `job`"),
            (r#"{"type":"answer","request":"prm_1","decision":"allow"}"#.to_owned(), "prm_0"),
            (
                json!({"type":"answer","request":PermissionId::new(),"decision":"yes"}).to_string(),
                "unknown decision",
            ),
        ] {
            let error = Request::read(line.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
        let long = format!(r#"{{"type":"{}"}}"#, "x".repeat(100_000));
        assert!(Request::read(long.as_bytes()).unwrap_err().to_string().len() < 1000);
    }

    #[test]
    fn an_event_is_handed_on_as_it_was_stored() {
        let event = RawValue::from_string(r#"{"z":1,  "a":2}"#.to_owned()).unwrap();
        let line = serde_json::to_string(&Reply::Event(Event { number: 7, event })).unwrap();
        assert_eq!(line, r#"{"type":"event","number":7,"event":{"z":1,  "a":2}}"#);
    }
}
