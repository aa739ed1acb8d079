//! What is known of one message of the model: the answer, if it is the last.

use jiff::Timestamp;

use crate::{
    event::StopReason,
    failure::{Failure, FailureKind},
};

/// The message that is being written, or was written last.
#[derive(Default)]
pub(super) struct Message {
    pub(super) id: String,
    /// When the model began to write it, the last time it did.
    pub(super) started_at: Option<Timestamp>,
    /// Its texts, each with the block under which it was told.
    pub(super) texts: Vec<(String, String)>,
    pub(super) has_tools: bool,
    /// Why it ended, once it has.
    pub(super) finish: Option<String>,
}

impl Message {
    /// Whether the model's answer was cut off on its way. The CLI has no word
    /// for that and simply calls the model again.
    pub(super) fn is_broken(&self) -> bool {
        self.finish.as_deref() == Some("unknown") && !self.has_tools
    }

    /// Takes the text of the whole message, if there is any.
    pub(super) fn text(&mut self) -> Option<String> {
        let texts = std::mem::take(&mut self.texts);
        let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }
}

/// Returns why the model stopped, or why the turn fails that ended so.
///
/// After tools the model should have been called once more. A permission that
/// was refused is why it was not, else nobody knows.
pub(super) fn ending(finish: &str, rejected: Option<String>) -> Result<StopReason, Failure> {
    match (finish, rejected) {
        ("tool-calls", Some(message)) => Err(Failure::new(FailureKind::Denied, message)),
        ("tool-calls", None) => Err(Failure::unreadable()),
        ("content-filter", _) => {
            let message = "the provider's content filter stopped the answer";
            Err(Failure::new(FailureKind::Refused, message))
        }
        ("error", _) => {
            let message = "the model's answer ended in an error";
            Err(Failure::new(FailureKind::Unavailable, message))
        }
        (reason, _) => Ok(stop_reason(reason)),
    }
}

/// Returns what the CLI's word for the end of an answer means.
fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "stop" | "" => StopReason::EndTurn,
        "length" => StopReason::MaxTokens,
        other => StopReason::Other(other.to_owned()),
    }
}
