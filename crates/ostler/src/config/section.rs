//! The typed configuration: one struct a section, with the defaults. What each
//! key takes is in `key`; what the sections mean is up to those who read them.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use ostler_core::request::{Format, Permissions, Thinking, TurnRequest};
use serde::{Deserialize, Serialize};

use super::{
    agents::OwnAgents,
    api::Api,
    archive::{Archive, Outbound},
    discord::Discord,
    duration::{self, or_off},
    hooks::OwnHooks,
    inbound::Inbound,
    media::Media,
    secret::SecretSource,
    twilio::Twilio,
};
use crate::logging;

/// How many model calls a turn may make.
pub(crate) const DEFAULT_MAX_TURNS: u32 = 25;

/// Everything that can be configured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) gateway: Gateway,
    pub(crate) agent: AgentDefaults,
    /// Agents of the operator's own. Read apart, for their order counts.
    #[serde(skip)]
    pub(crate) agents: OwnAgents,
    /// What is done when something happens. The same.
    #[serde(skip)]
    pub(crate) hooks: OwnHooks,
    pub(crate) opencode: OpenCode,
    pub(crate) sessions: Sessions,
    pub(crate) busy: Busy,
    pub(crate) retry: Retry,
    pub(crate) heartbeat: Heartbeat,
    pub(crate) inbound: Inbound,
    pub(crate) prompt: Prompt,
    pub(crate) outbound: Outbound,
    pub(crate) archive: Archive,
    pub(crate) api: Api,
    pub(crate) media: Media,
    pub(crate) discord: Discord,
    pub(crate) twilio: Box<Twilio>,
}

impl Config {
    /// Returns the files that secrets are read from.
    pub(crate) fn secret_files(&self) -> impl Iterator<Item = &Path> {
        let sources = [
            &self.gateway.database_url,
            &self.opencode.password,
            &self.discord.token,
            &self.twilio.auth_token,
            &self.twilio.api_secret,
        ];
        sources.into_iter().flatten().filter_map(|source| match source {
            SecretSource::File(path) => Some(path.as_path()),
            SecretSource::Given(_) | SecretSource::Command(_) => None,
        })
    }
}

/// The gateway itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Gateway {
    pub(crate) listen: SocketAddr,
    /// Unset: where the environment leads (`HostConfig::from_environment`).
    pub(crate) data_dir: Option<PathBuf>,
    /// Unset: a file in the data folder.
    pub(crate) database_url: Option<SecretSource>,
    pub(crate) log_level: logging::Level,
    pub(crate) log_format: logging::Form,
    #[serde(with = "duration")]
    pub(crate) lease: Duration,
    pub(crate) max_concurrent_turns: usize,
    pub(crate) max_queue_depth: usize,
    #[serde(with = "duration")]
    pub(crate) shutdown_grace: Duration,
    /// `None`: events are kept for ever.
    #[serde(with = "or_off")]
    pub(crate) event_retention: Option<Duration>,
}

impl Default for Gateway {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8474)),
            data_dir: None,
            database_url: None,
            log_level: logging::Level::Info,
            log_format: logging::Form::Text,
            max_concurrent_turns: 5,
            max_queue_depth: 100,
            shutdown_grace: Duration::from_secs(30),
            lease: Duration::from_secs(30),
            event_retention: Some(Duration::from_secs(7 * 24 * 60 * 60)),
        }
    }
}

/// What turns are run with unless something else is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentDefaults {
    /// A name that there is an agent of.
    pub(crate) default: String,
    /// The same, for new projects.
    pub(crate) project_default: String,
    pub(crate) path: Option<PathBuf>,
    pub(crate) model: Option<String>,
    pub(crate) max_turns: u32,
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// Unset: ask where the agent can, else read-only.
    #[serde(with = "word::permissions")]
    pub(crate) permissions: Option<Permissions>,
    #[serde(with = "word::thinking")]
    pub(crate) thinking: Option<Thinking>,
    #[serde(with = "duration")]
    pub(crate) timeout: Duration,
    #[serde(with = "duration")]
    pub(crate) idle_timeout: Duration,
    #[serde(with = "duration")]
    pub(crate) ask_timeout: Duration,
    pub(crate) env: Vec<String>,
}

impl Default for AgentDefaults {
    fn default() -> Self {
        Self {
            default: "claude".to_owned(),
            project_default: "claude".to_owned(),
            path: None,
            model: None,
            max_turns: DEFAULT_MAX_TURNS,
            allowed_tools: None,
            permissions: None,
            thinking: None,
            timeout: TurnRequest::DEFAULT_TIMEOUT,
            idle_timeout: TurnRequest::DEFAULT_IDLE_TIMEOUT,
            ask_timeout: TurnRequest::DEFAULT_ASK_TIMEOUT,
            env: Vec::new(),
        }
    }
}

/// A server of OpenCode's that somebody else runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OpenCode {
    pub(crate) enabled: bool,
    pub(crate) url: String,
    pub(crate) username: String,
    pub(crate) password: Option<SecretSource>,
}

impl Default for OpenCode {
    fn default() -> Self {
        Self {
            enabled: false,
            // Where `opencode serve` listens unless it is told otherwise.
            url: "http://127.0.0.1:4096".to_owned(),
            username: "opencode".to_owned(),
            password: None,
        }
    }
}

/// How messages become conversations.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sessions {
    pub(crate) scope: Scope,
    /// `None`: never.
    #[serde(with = "or_off")]
    pub(crate) idle: Option<Duration>,
    pub(crate) reset_words: Vec<String>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            scope: Scope::PerChannel,
            idle: Some(Duration::from_secs(60 * 60)),
            reset_words: vec!["/new".to_owned()],
        }
    }
}

/// Who shares a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scope {
    PerSender,
    PerChannel,
    PerGroup,
    Global,
}

/// What becomes of a message that comes while a turn runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Busy {
    #[default]
    Queue,
    Combine,
    Steer,
    Interrupt,
}

/// How often and when a turn is tried again. The wait doubles each time.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Retry {
    pub(crate) max: u32,
    #[serde(with = "duration")]
    pub(crate) first_delay: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { max: 3, first_delay: Duration::from_secs(5) }
    }
}

/// A look from time to time whether something needs attention.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Heartbeat {
    /// Unset: if `every` is a duration.
    pub(crate) enabled: Option<bool>,
    /// `None`: never, unless it is enabled.
    #[serde(with = "or_off")]
    pub(crate) every: Option<Duration>,
    /// Unset: a text of Ostler's own.
    pub(crate) prompt: Option<String>,
    /// Unset: the one that a person spoke in last.
    pub(crate) conversation: Option<String>,
    /// `None`: for as long as the session lives.
    #[serde(with = "or_off")]
    pub(crate) idle: Option<Duration>,
}

/// What agents are told beside the messages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Prompt {
    /// Unset: a folder in the data folder.
    pub(crate) dir: Option<PathBuf>,
}

/// The words for what the library has its own types for.
pub(crate) mod word {
    use super::*;

    /// Reads and writes an optional value of a closed set by its word.
    macro_rules! words {
        ($name:ident, $type:ty, $($word:literal => $value:path),+ $(,)?) => {
            pub(crate) mod $name {
                use serde::{Deserializer, Serializer, de::Error as _};

                use super::*;

                pub(crate) fn serialize<S: Serializer>(
                    value: &Option<$type>,
                    to: S,
                ) -> Result<S::Ok, S::Error> {
                    match value {
                        None => to.serialize_none(),
                        Some(value) => to.serialize_str(word(*value)),
                    }
                }

                pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
                    from: D,
                ) -> Result<Option<$type>, D::Error> {
                    let Some(given) = Option::<String>::deserialize(from)? else {
                        return Ok(None);
                    };
                    let unknown = || D::Error::unknown_variant(&given, &[$($word),+]);
                    read(&given).map(Some).ok_or_else(unknown)
                }

                /// Returns the word for a value.
                pub(crate) fn word(value: $type) -> &'static str {
                    match value {
                        $($value => $word,)+
                    }
                }

                /// Returns the value of a word.
                pub(crate) fn read(word: &str) -> Option<$type> {
                    match word {
                        $($word => Some($value),)+
                        _ => None,
                    }
                }
            }
        };
    }

    words!(permissions, Permissions,
        "bypass" => Permissions::Bypass, "ask" => Permissions::Ask, "read-only" => Permissions::ReadOnly);
    words!(thinking, Thinking,
        "off" => Thinking::Off, "minimal" => Thinking::Minimal, "low" => Thinking::Low,
        "medium" => Thinking::Medium, "high" => Thinking::High);
    words!(format, Format,
        "stream-json" => Format::StreamJson, "json" => Format::Json, "text" => Format::Text);
}
