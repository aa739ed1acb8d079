//! Why there will be no connection to Discord until somebody does something about
//! it. Pure.

use thiserror::Error;

/// Why, and what to do, in words for the operator.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{reason}")]
pub(crate) struct Fatal {
    pub(crate) reason: String,
}

impl Fatal {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    pub(super) fn token() -> Self {
        Self::new(
            "Discord does not take the bot's token: make a new one in the developer portal \
             (Bot → Reset Token), and set discord.token or DISCORD_BOT_TOKEN",
        )
    }

    pub(super) fn url() -> Self {
        Self::new("discord.gateway_url is not a URL such as wss://gateway.discord.gg")
    }

    pub(super) fn ended() -> Self {
        Self::new("Discord ended the connection for good, and did not say why")
    }

    /// Returns what a close code means; nothing if connecting again helps.
    pub(super) fn of_code(code: u16) -> Option<Self> {
        match code {
            4004 => Some(Self::token()),
            4010 | 4011 => Some(Self::new(format!(
                "the bot is in more servers than one connection can have, which Ostler \
                 cannot do (close code {code}): use a bot of its own in fewer servers"
            ))),
            4012 => Some(Self::new(
                "Discord does not speak this version of its protocol any more: update Ostler",
            )),
            4013 => {
                Some(Self::new("Discord does not know what Ostler wants to hear of: update Ostler"))
            }
            4014 => Some(Self::new(
                "the bot may not read messages: in the developer portal, under Bot → \
                 Privileged Gateway Intents, switch on Message Content Intent",
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_new_connection_helps_against_says_what_does() {
        for (code, words) in [
            (4004, "DISCORD_BOT_TOKEN"),
            (4010, "fewer servers"),
            (4011, "fewer servers"),
            (4012, "update"),
            (4013, "update"),
            (4014, "Message Content Intent"),
        ] {
            let fatal = Fatal::of_code(code).unwrap();
            assert!(fatal.reason.contains(words), "{code}: {fatal}");
        }
        for code in [0, 1000, 1001, 1006, 4000, 4001, 4002, 4003, 4005, 4007, 4008, 4009, 4999] {
            assert_eq!(Fatal::of_code(code), None, "{code}");
        }
    }
}
