//! Discord: the bot, who may talk to it, and how it answers.

use serde::{Deserialize, Serialize};

use super::secret::SecretSource;
use crate::{channel::DISCORD, store::conversations::Address};

/// What stands for everybody in a list of people.
pub(crate) const EVERYBODY: &str = "*";

/// The bot.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Discord {
    /// Unset: there is no bot.
    pub(crate) token: Option<SecretSource>,
    /// The servers and channels in which it answers; none at all means any.
    pub(crate) guilds: Vec<String>,
    pub(crate) channels: Vec<String>,
    /// Who may talk to it. Nobody, if neither these nor a place is listed.
    pub(crate) users: Vec<String>,
    pub(crate) roles: Vec<String>,
    /// Those of them who may do more than talk.
    pub(crate) owners: Vec<String>,
    /// The channels in which it answers without being mentioned.
    pub(crate) answer_all_in: Vec<String>,
    /// Whether strangers get a code with which the operator can let them in.
    pub(crate) pairing: bool,
    pub(crate) messages_per_minute: u32,
    /// Whether an answer in a channel begins a thread.
    pub(crate) threads: bool,
    pub(crate) long_answers: LongAnswers,
    pub(crate) detail: Detail,
    /// Where agents speak that nobody asked, unless they are told where.
    pub(crate) output_channel: Option<String>,
    /// How many requests Discord takes from the bot.
    pub(crate) requests_per_second: u32,
    /// Unset: Discord's own.
    pub(crate) api_url: Option<String>,
    pub(crate) gateway_url: Option<String>,
}

impl Discord {
    /// Returns the place where agents speak that nobody asked, if there is a bot that
    /// can.
    pub(crate) fn output(&self) -> Option<Address> {
        let channel = self.output_channel.as_ref().filter(|_| self.token.is_some())?;
        Address::new(DISCORD, channel).ok()
    }
}

/// What becomes of an answer that is longer than a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LongAnswers {
    /// Several messages.
    Split,
    /// A file.
    File,
}

/// How much is shown of a turn while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Detail {
    /// The answer alone.
    Quiet,
    /// The tools, too.
    #[default]
    Normal,
    /// The tools that ran before, and what the agent thinks.
    Verbose,
}

impl Default for Discord {
    fn default() -> Self {
        Self {
            token: None,
            guilds: Vec::new(),
            channels: Vec::new(),
            users: Vec::new(),
            roles: Vec::new(),
            owners: Vec::new(),
            answer_all_in: Vec::new(),
            pairing: false,
            messages_per_minute: 20,
            threads: false,
            long_answers: LongAnswers::Split,
            detail: Detail::Normal,
            output_channel: None,
            requests_per_second: 50,
            api_url: None,
            gateway_url: None,
        }
    }
}
