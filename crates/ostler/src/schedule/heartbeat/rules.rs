//! What is configured of heartbeats, and why there may be none.

use std::time::Duration;

use thiserror::Error;

use crate::{config, store::conversations::Address};

/// How often there is one, if it is only switched on.
pub(crate) const EVERY: Duration = Duration::from_secs(30 * 60);
/// The shortest time between two: each looks at the store.
const SHORTEST: Duration = Duration::from_secs(1);

/// What is configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// `None`: never.
    pub(crate) every: Option<Duration>,
    /// `None`: [`PROMPT_TEXT`](super::PROMPT_TEXT).
    pub(crate) prompt: Option<String>,
    /// `None`: the one that a person spoke in last.
    pub(crate) conversation: Option<Address>,
    /// For how long after a person's last word.
    pub(crate) idle: Option<Duration>,
}

impl From<&config::Heartbeat> for Rules {
    fn from(config: &config::Heartbeat) -> Self {
        let every = match config.enabled {
            Some(false) => None,
            Some(true) => Some(config.every.unwrap_or(EVERY)),
            None => config.every,
        };
        Self {
            every: every.map(|every| every.max(SHORTEST)),
            prompt: config.prompt.clone().filter(|prompt| !prompt.trim().is_empty()),
            conversation: config.conversation.as_ref().and_then(|name| name.parse().ok()),
            idle: config.idle,
        }
    }
}

/// Why there was none.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum Skip {
    #[error("no person has spoken in any conversation yet")]
    NoConversation,
    #[error("there is no conversation {0}")]
    Unknown(Address),
    #[error("a job of the conversation runs or waits")]
    Busy,
    #[error("the conversation has no session, and a heartbeat begins none")]
    NoSession,
    #[error("the conversation was silent for so long that its session is over")]
    Idle,
    #[error("no person has spoken in the conversation for longer than heartbeat.idle")]
    Quiet,
    #[error("it is not known where people are reached in the conversation")]
    NowhereToSend,
    #[error("it waited for too long")]
    Stale,
    #[error("somebody spoke while it waited")]
    GaveWay,
    #[error("the gateway ended while it ran")]
    CutOff,
}

impl Skip {
    /// Returns the word to branch on. Part of the contract.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NoConversation => "no_conversation",
            Self::Unknown(_) => "unknown_conversation",
            Self::Busy => "busy",
            Self::NoSession => "no_session",
            Self::Idle => "idle",
            Self::Quiet => "quiet",
            Self::NowhereToSend => "nowhere_to_send",
            Self::Stale => "stale",
            Self::GaveWay => "gave_way",
            Self::CutOff => "cut_off",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_off_unless_it_is_switched_on_and_then_comes_every_30_minutes() {
        let every = |enabled, every: Option<u64>| {
            let every = every.map(Duration::from_secs);
            let config = config::Heartbeat { enabled, every, ..config::Heartbeat::default() };
            Rules::from(&config).every.map(|every| every.as_secs())
        };
        assert_eq!(every(None, None), None);
        assert_eq!(every(Some(true), None), Some(1800));
        assert_eq!(every(Some(true), Some(60)), Some(60));
        assert_eq!(every(None, Some(60)), Some(60));
        assert_eq!(every(Some(false), Some(60)), None);
    }
}
