//! Names of stored things: a UUIDv7 behind a prefix that says what it names.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;
use uuid::Uuid;

/// A text that is not an id of the wanted sort.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{text:?} is not the id of a {noun}; those look like {prefix}_01890a5d…")]
pub(crate) struct IdError {
    text: String,
    noun: &'static str,
    prefix: &'static str,
}

/// Makes a type for the ids of one sort of thing.
macro_rules! id {
    ($name:ident, $prefix:literal, $noun:literal) => {
        #[doc = concat!("The id of a ", $noun, ": `", $prefix, "_…`.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(Uuid);

        impl $name {
            /// Makes one that nothing else has.
            pub(crate) fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "_{}"), self.0.simple())
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix(concat!($prefix, "_"))
                    // The other ways to write a UUID would be other names for the same thing.
                    .filter(|digits| digits.len() == 32 && !digits.contains(char::is_uppercase))
                    .and_then(|digits| Uuid::try_parse(digits).ok())
                    .map(Self)
                    .ok_or_else(|| IdError { text: text.to_owned(), noun: $noun, prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(de::Error::custom)
            }
        }
    };
}

id!(ConversationId, "cnv", "conversation");
id!(JobId, "job", "job");
id!(TurnId, "trn", "turn");
id!(OutboxId, "out", "message on its way");
id!(PermissionId, "prm", "permission request");
id!(AuditId, "aud", "line of the audit");
id!(ScheduleId, "sch", "schedule");
id!(MessageId, "msg", "message");
id!(ProjectId, "prj", "project");
id!(CommandId, "cmd", "command");
id!(KeyId, "key", "key");
id!(WebhookId, "whk", "webhook");
id!(RequestId, "req", "request");

impl MessageId {
    /// Returns the name of the message that became a job. It is the same however
    /// often one asks.
    pub(crate) fn of_job(job: JobId) -> Self {
        Self(job.0)
    }
}

impl From<JobId> for CommandId {
    /// Returns the name of the command that became a job.
    fn from(id: JobId) -> Self {
        Self(id.0)
    }
}

impl From<CommandId> for JobId {
    fn from(id: CommandId) -> Self {
        Self(id.0)
    }
}

impl From<TurnId> for ostler_core::event::TurnId {
    fn from(id: TurnId) -> Self {
        Self::from_uuid(id.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_from_its_text() {
        let id = JobId::new();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id.to_string().starts_with("job_"));
    }

    #[test]
    fn what_names_another_sort_of_thing_is_refused() {
        let turn = TurnId::new().to_string();
        let upper = JobId::new().to_string().replace("job_", "job_A");
        for text in [turn.as_str(), "", "job_", "job_1", &upper, "job_{x}"] {
            let error = text.parse::<JobId>().unwrap_err().to_string();
            assert!(error.contains("job_0"), "{error}");
        }
    }
}
