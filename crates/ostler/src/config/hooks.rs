//! The `hooks` key: what is done when something happens, by name.

use std::{path::Path, time::Duration};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::{agents::Values, duration, secret::settle_program};
use crate::{
    channel::webhook,
    store::conversations::{Address, AddressError},
};

/// How long a hook may take unless it says something else.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most that it can say, in seconds.
pub(super) const LONGEST_TIMEOUT: u64 = 10 * 60;
/// The longest name.
const LONGEST_NAME: usize = 64;

/// When a hook can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HookEvent {
    Start,
    Stop,
    BeforeTurn,
    AfterTurn,
    Error,
    SessionReset,
}

/// The words for [`HookEvent`].
pub(super) const EVENTS: &[&str] =
    &["start", "stop", "before_turn", "after_turn", "error", "session_reset"];

impl HookEvent {
    /// Returns its word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::BeforeTurn => "before_turn",
            Self::AfterTurn => "after_turn",
            Self::Error => "error",
            Self::SessionReset => "session_reset",
        }
    }

    /// Whether it happens in a conversation.
    fn has_conversation(self) -> bool {
        match self {
            Self::Start | Self::Stop => false,
            Self::BeforeTurn | Self::AfterTurn | Self::Error | Self::SessionReset => true,
        }
    }

    /// Whether a failure of the hook can stop what is about to happen.
    fn can_be_stopped(self) -> bool {
        match self {
            Self::Start | Self::BeforeTurn => true,
            Self::Stop | Self::AfterTurn | Self::Error | Self::SessionReset => false,
        }
    }
}

/// What a hook does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HookAction {
    /// Tells the agent something.
    Instruction(String),
    /// Runs a program, without a shell.
    Command(Vec<String>),
    /// Posts what happened there.
    Url(String),
}

/// What a failure of a hook means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnFailure {
    #[default]
    Ignore,
    Fail,
}

/// Something that is done when something happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hook {
    pub(crate) name: String,
    pub(crate) on: Vec<HookEvent>,
    pub(crate) action: HookAction,
    pub(crate) timeout: Duration,
    pub(crate) on_failure: OnFailure,
    /// Where an instruction goes, if not to where it happened.
    pub(crate) conversation: Option<Address>,
    /// The channels that it is for; `None` for all.
    pub(crate) channels: Option<Vec<String>>,
}

/// The hooks, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnHooks {
    hooks: Vec<Hook>,
}

/// What is wrong with a hook: the key below it, if it is one key's fault.
pub(super) type Wrong = (Option<&'static str>, String);

/// Checks the name of a hook.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    if begins && name.len() <= LONGEST_NAME && name.bytes().all(is_fine) {
        return Ok(());
    }
    Err(format!(
        "{name:?} is no name for a hook: a small letter, then small letters, digits and dashes"
    ))
}

impl OwnHooks {
    /// Adds a hook, as a file that was checked describes it.
    pub(super) fn add(&mut self, name: &str, entry: Map<String, Value>) -> Result<(), Wrong> {
        let entry: Entry = serde_path_to_error::deserialize(Value::Object(entry))
            .map_err(|error| (None, error.to_string()))?;
        self.hooks.push(entry.named(name.to_owned())?);
        Ok(())
    }

    /// Takes programs that are named by a relative path as seen from a folder.
    pub(super) fn settle_in(&mut self, folder: &Path) {
        for hook in &mut self.hooks {
            if let HookAction::Command(words) = &mut hook.action
                && let Some(program) = words.first_mut()
            {
                settle_program(program, folder);
            }
        }
    }

    /// Returns the hooks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Hook> {
        self.hooks.iter()
    }

    /// Returns what they are by key, with URLs as these are (to compare them) or
    /// without what may be secret in them (to show them).
    pub(super) fn by_key(&self, values: Values) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        for hook in &self.hooks {
            let (mut instruction, mut command, mut url) = (Value::Null, Value::Null, Value::Null);
            match &hook.action {
                HookAction::Instruction(text) => instruction = json!(text),
                HookAction::Command(words) => command = json!(words),
                HookAction::Url(address) => {
                    url = match values {
                        Values::Real => json!(address),
                        Values::Hidden => json!(format!("{}/…", webhook::origin(address))),
                    };
                }
            }
            for (name, value) in [
                ("on", json!(hook.on)),
                ("instruction", instruction),
                ("command", command),
                ("url", url),
                ("timeout", json!(duration::text(hook.timeout))),
                ("on_failure", json!(hook.on_failure)),
                ("conversation", json!(hook.conversation.as_ref().map(Address::to_string))),
                ("channels", json!(hook.channels)),
            ] {
                all.push((format!("hooks.{}.{name}", hook.name), value));
            }
        }
        all
    }
}

/// What is said about one hook.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(deserialize_with = "one_or_several")]
    on: Vec<HookEvent>,
    instruction: Option<String>,
    command: Option<Vec<String>>,
    url: Option<String>,
    #[serde(default, deserialize_with = "some_duration")]
    timeout: Option<Duration>,
    on_failure: Option<OnFailure>,
    conversation: Option<String>,
    channels: Option<Vec<String>>,
}

fn one_or_several<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<HookEvent>, D::Error> {
    use serde::de::Error as _;
    let value = Value::deserialize(from)?;
    let value = if value.is_array() { value } else { json!([value]) };
    serde_json::from_value(value).map_err(D::Error::custom)
}

fn some_duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    duration::deserialize(from).map(Some)
}

impl Entry {
    fn named(self, name: String) -> Result<Hook, Wrong> {
        let action = match (self.instruction, self.command, self.url) {
            (Some(text), None, None) => HookAction::Instruction(text),
            (None, Some(words), None) => HookAction::Command(words),
            (None, None, Some(url)) => HookAction::Url(url),
            (None, None, None) => {
                return Err((None, "it does nothing: give instruction, command or url".to_owned()));
            }
            (_, _, _) => {
                let why = "a hook has one of instruction, command and url; make several hooks";
                return Err((None, why.to_owned()));
            }
        };
        let conversation = self.conversation.as_deref().map(str::parse).transpose();
        let conversation = conversation
            .map_err(|error: AddressError| (Some("conversation"), error.to_string()))?;
        let hook = Hook {
            name,
            on: self.on,
            action,
            timeout: self.timeout.unwrap_or(DEFAULT_TIMEOUT),
            on_failure: self.on_failure.unwrap_or_default(),
            conversation,
            channels: self.channels,
        };
        hook.check(self.timeout.is_some())?;
        Ok(hook)
    }
}

impl Hook {
    /// Returns the first of its events that something does not go with.
    fn unless(&self, goes: fn(HookEvent) -> bool) -> Option<&'static str> {
        self.on.iter().find(|event| !goes(**event)).map(|event| event.word())
    }

    /// Checks what belongs together.
    fn check(&self, has_timeout: bool) -> Result<(), Wrong> {
        let wrong = |key, why: String| Err((Some(key), why));
        if let Some(event) = (1..self.on.len()).find_map(|n| {
            let (before, rest) = self.on.split_at(n);
            rest.first().filter(|event| before.contains(event))
        }) {
            return wrong("on", format!("{} is there twice", event.word()));
        }
        if self.on_failure == OnFailure::Fail
            && let Some(event) = self.unless(HookEvent::can_be_stopped)
        {
            let why = format!("only start and before_turn can be stopped, and not {event}");
            return wrong("on_failure", why);
        }
        if self.channels.is_some()
            && let Some(event) = self.unless(HookEvent::has_conversation)
        {
            return wrong("channels", format!("{event} happens in no channel"));
        }
        match &self.action {
            HookAction::Instruction(_) => self.check_instruction(has_timeout),
            HookAction::Command(_) | HookAction::Url(_) if self.conversation.is_some() => {
                wrong("conversation", "only an instruction goes to a conversation".to_owned())
            }
            HookAction::Command(_) | HookAction::Url(_) => Ok(()),
        }
    }

    fn check_instruction(&self, has_timeout: bool) -> Result<(), Wrong> {
        let wrong = |key, why: &str| Err((Some(key), why.to_owned()));
        if has_timeout {
            return wrong("timeout", "an instruction is a turn, which has agent.timeout");
        }
        if self.on_failure == OnFailure::Fail {
            return wrong("on_failure", "an instruction cannot fail before it is followed");
        }
        match &self.conversation {
            None => match self.unless(HookEvent::has_conversation) {
                Some(event) => Err((
                    None,
                    format!(
                        "on {event} an instruction needs the key `conversation`: where it goes"
                    ),
                )),
                None => Ok(()),
            },
            Some(_) if self.on.contains(&HookEvent::BeforeTurn) => wrong(
                "conversation",
                "before_turn puts its instruction into the prompt of the turn, and nowhere else",
            ),
            Some(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
