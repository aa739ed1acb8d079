//! A reply as it is stored until it has left.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

use crate::id::{ConversationId, JobId, TurnId};

/// The version that this program writes, and the newest that it can read.
const VERSION: u64 = 1;

/// What is sent when a job has ended: a text, or an error in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub(crate) conversation: ConversationId,
    /// The message that it answers; none if the agent spoke by itself.
    #[serde(default)]
    pub(crate) job: Option<JobId>,
    /// Messages that were answered together with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) with: Vec<JobId>,
    /// The turn that answered, if one ran.
    pub(crate) turn: Option<TurnId>,
    pub(crate) text: Option<String>,
    pub(crate) error: Option<ReplyError>,
    /// Where the turn was run: the files that its text names are seen from there.
    /// Nobody else's business, so that webhooks are not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<String>,
}

/// Why there is no text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReplyError {
    /// The word of the error kind.
    pub(crate) kind: String,
    pub(crate) message: String,
}

/// A stored reply that this program cannot read.
#[derive(Debug, Error)]
pub(crate) enum Unreadable {
    #[error("the stored reply is of version {0}, which a newer ostler wrote")]
    Newer(u64),
    #[error("the stored reply cannot be read: {0}")]
    Broken(String),
}

impl Reply {
    /// Writes it for the store.
    pub(crate) fn to_json(&self) -> String {
        let mut body = json!(self);
        if let Value::Object(fields) = &mut body {
            fields.insert("v".to_owned(), json!(VERSION));
        }
        body.to_string()
    }

    /// Reads what the store has.
    pub(crate) fn from_json(text: &str) -> Result<Self, Unreadable> {
        let broken = |error: serde_json::Error| Unreadable::Broken(error.to_string());
        let body: Value = serde_json::from_str(text).map_err(broken)?;
        match body.get("v").and_then(Value::as_u64) {
            Some(version) if version > VERSION => Err(Unreadable::Newer(version)),
            Some(_) => serde_json::from_value(body).map_err(broken),
            None => Err(Unreadable::Broken("it has no version".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_as_it_was_written_and_what_is_new_in_it_is_no_matter() {
        let (conversation, job) = (ConversationId::new(), JobId::new());
        let error = ReplyError { kind: "timeout".to_owned(), message: "too late".to_owned() };
        for (turn, text, error, cwd) in [
            (Some(TurnId::new()), Some("yes".to_owned()), None, Some("/work".to_owned())),
            (None, None, Some(error), None),
        ] {
            let (job, with) = (Some(job), vec![job]);
            let reply = Reply { conversation, job, with, turn, text, error, cwd };
            let written = reply.to_json();
            assert_eq!(written.contains("cwd"), reply.cwd.is_some(), "{written}");
            assert!(written.contains("\"v\":1"), "{written}");
            let further = written.replace("\"v\":1", "\"v\":1,\"mood\":\"good\"");
            assert_eq!(Reply::from_json(&further).unwrap(), reply);
        }
    }

    #[test]
    fn a_reply_of_a_later_version_is_told_from_a_broken_one() {
        let says = |text: &str| Reply::from_json(text).unwrap_err().to_string();
        assert!(says("{\"v\":2,\"parts\":[]}").contains("version 2"));
        for broken in ["", "{}", "{\"v\":1}", "{\"v\":\"1\"}", "[]"] {
            assert!(says(broken).contains("cannot be read"), "{broken}");
        }
    }
}
