//! What is said outside of any turn: an object with `seq` 0 and no turn for
//! programs, a notice for people.

use jiff::Timestamp;
use ostler_core::failure::{Failure, FailureKind};
use serde::{
    Serialize, Serializer,
    ser::{Error as _, SerializeMap},
};
use serde_json::Value;

/// Something said outside of any turn.
#[derive(Debug)]
pub(crate) enum Aside {
    /// Something was refused, and nothing else happened.
    Error(Failure),
    /// A prompt waits, as the one with this number from 1.
    Queued { text: String, position: usize },
}

impl Aside {
    /// Refuses what makes no sense.
    pub(crate) fn wrong(message: impl ToString) -> Self {
        Self::Error(Failure::new(FailureKind::InvalidRequest, message.to_string()))
    }

    /// Refuses what might be taken later.
    pub(crate) fn too_much(message: impl ToString) -> Self {
        Self::Error(Failure::new(FailureKind::SessionBusy, message.to_string()))
    }

    /// Returns what people read.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Error(failure) => format!("ostler: {}", failure.message),
            Self::Queued { text, .. } => format!("  … {text}"),
        }
    }
}

impl Serialize for Aside {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("seq", &0)?;
        map.serialize_entry("at", &format_args!("{:.3}", Timestamp::now()))?;
        match self {
            Self::Error(failure) => {
                map.serialize_entry("type", "error")?;
                map.serialize_entry("turn", &Value::Null)?;
                let fields = serde_json::to_value(failure).map_err(S::Error::custom)?;
                for (key, value) in fields.as_object().into_iter().flatten() {
                    map.serialize_entry(key, value)?;
                }
            }
            Self::Queued { text, position } => {
                map.serialize_entry("type", "status")?;
                map.serialize_entry("turn", &Value::Null)?;
                map.serialize_entry("code", "queued")?;
                map.serialize_entry("text", text)?;
                map.serialize_entry("position", position)?;
            }
        }
        map.end()
    }
}
