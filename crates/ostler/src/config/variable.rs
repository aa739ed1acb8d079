//! The table of variables: which key each sets, and how its text is read.
//! docs/configuration.md shows the same table; a test compares them.

use ostler_core::agent;
use serde::Serialize;
use serde_json::{Value, json};

use super::section::DEFAULT_MAX_TURNS;
use crate::logging::Level;

/// A variable of the environment. The field names are part of the contract.
#[derive(Debug, Serialize)]
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    /// The key that it sets.
    pub(crate) key: Option<&'static str>,
    /// How its text is read, in words.
    pub(crate) about: &'static str,
    #[serde(skip)]
    pub(super) read: Read,
}

/// How the text of a variable is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// Exactly the name of a built-in agent; empty is none.
    Backend,
    /// The same, and its older names.
    Provider,
    /// As it stands; empty is not set.
    Text,
    /// As it stands, even if it is empty.
    Exact,
    Number,
    /// A number, or the default and a warning.
    TurnLimit,
    /// Texts with commas between them.
    List,
    Milliseconds,
    Permissions,
    Switch,
    /// A log level, or the default and a warning: many programs have a variable
    /// of this name, and the one that is set may be meant for another.
    LogLevel,
    /// Not as a key.
    Elsewhere,
    /// Not at all yet.
    Unused,
}

const fn variable(
    name: &'static str,
    key: &'static str,
    read: Read,
    about: &'static str,
) -> Variable {
    Variable { name, key: Some(key), about, read }
}

/// Variables of parts that are still to come. That they are set is no error.
const fn unused(name: &'static str) -> Variable {
    Variable { name, key: None, about: "not used yet", read: Read::Unused }
}

/// Every variable that has a meaning.
#[rustfmt::skip]
pub(crate) const VARIABLES: &[Variable] = &[
    variable("AGENT_BACKEND", "agent.default", Read::Backend, "exactly one of claude, codex, gemini, opencode, pi; an empty one is an error"),
    variable("BACKEND_CLI_PATH", "agent.path", Read::Text, "a path, or a name that is looked up in PATH"),
    variable("BACKEND_MODEL", "agent.model", Read::Text, "as it stands"),
    variable("BACKEND_MAX_TURNS", "agent.max_turns", Read::TurnLimit, "a number above 0; anything else is 25, with a warning"),
    variable("ALLOWED_TOOLS", "agent.allowed_tools", Read::List, "names with commas between them"),
    variable("QUERY_TIMEOUT_MS", "agent.timeout", Read::Milliseconds, "milliseconds above 0"),
    variable("PERMISSION_MODE", "agent.permissions", Read::Permissions, "bypassPermissions or bypass, default or ask, plan or read-only"),
    variable("CODE_AGENT_DEFAULT", "agent.project_default", Read::Provider, "the name of a built-in agent; claudecode is claude"),
    variable("MAX_CONCURRENT_QUERIES", "gateway.max_concurrent_turns", Read::Number, "a number above 0"),
    variable("MAX_QUEUE_DEPTH", "gateway.max_queue_depth", Read::Number, "a number above 0"),
    variable("OPENCODE_ENABLED", "opencode.enabled", Read::Switch, "true or 1, false or 0"),
    variable("OPENCODE_URL", "opencode.url", Read::Exact, "http:// or https://, without a login"),
    variable("OPENCODE_USERNAME", "opencode.username", Read::Text, "as it stands"),
    variable("OPENCODE_PASSWORD", "opencode.password", Read::Text, "as it stands; shown nowhere"),
    variable("OSTLER_LISTEN", "gateway.listen", Read::Text, "an address and a port"),
    variable("OSTLER_DATA_DIR", "gateway.data_dir", Read::Text, "a folder"),
    variable("OSTLER_DATABASE_URL", "gateway.database_url", Read::Text, "sqlite:… or postgres://…; its password is shown nowhere"),
    variable("LOG_LEVEL", "gateway.log_level", Read::LogLevel, "error, warn, info, debug or trace, in capitals or not; anything else is info, with a warning"),
    variable("CONFIG_DIR", "prompt.dir", Read::Text, "a folder"),
    variable("DISCORD_BOT_TOKEN", "discord.token", Read::Text, "as it stands; shown nowhere"),
    variable("OUTPUT_CHANNEL_ID", "discord.output_channel", Read::Text, "the id of a channel"),
    variable("TWILIO_ACCOUNT_SID", "twilio.account_sid", Read::Text, "AC and 32 digits"),
    variable("TWILIO_AUTH_TOKEN", "twilio.auth_token", Read::Text, "as it stands; shown nowhere"),
    variable("TWILIO_API_KEY", "twilio.api_key", Read::Text, "SK and 32 digits"),
    variable("TWILIO_API_SECRET", "twilio.api_secret", Read::Text, "as it stands; shown nowhere"),
    variable("TWILIO_WHATSAPP_FROM", "twilio.whatsapp_from", Read::Text, "a number, with whatsapp: before it or not"),
    Variable { name: "OSTLER_CONFIG", key: None, about: "the configuration file", read: Read::Elsewhere },
    unused("WOODPECKER_URL"),
    unused("WOODPECKER_API_TOKEN"),
];

/// What the text of a variable comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// As if it was not set.
    Unset,
    Value(Value),
    /// A value in the place of one that cannot be read, and what to say about it.
    Instead(Value, String),
}

impl Variable {
    /// Reads a text; the error says what is wrong, without the variable's name.
    pub(super) fn value(&self, text: &str) -> Result<Outcome, String> {
        let is_empty = text.is_empty();
        let value = match self.read {
            Read::Unused | Read::Elsewhere => return Ok(Outcome::Unset),
            Read::Backend => {
                let spec = agent::resolve_backend(Some(text)).map_err(|error| error.to_string())?;
                json!(spec.name)
            }
            Read::Exact => json!(text),
            Read::Provider
            | Read::Text
            | Read::Number
            | Read::TurnLimit
            | Read::List
            | Read::Milliseconds
            | Read::Permissions
            | Read::Switch
            | Read::LogLevel
                if is_empty =>
            {
                return Ok(Outcome::Unset);
            }
            Read::Provider => {
                let spec = agent::resolve_provider(text).map_err(|error| error.to_string())?;
                json!(spec.name)
            }
            Read::Text => json!(text),
            Read::Number => json!(number(text).ok_or_else(|| not_positive(text))?),
            Read::TurnLimit => match number(text).filter(|turns| u32::try_from(*turns).is_ok()) {
                Some(turns) => json!(turns),
                None => {
                    let warning = format!("{}; using {DEFAULT_MAX_TURNS}", not_positive(text));
                    return Ok(Outcome::Instead(json!(DEFAULT_MAX_TURNS), warning));
                }
            },
            Read::List => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                let items: Vec<_> = items.collect();
                if items.is_empty() {
                    return Ok(Outcome::Unset);
                }
                json!(items)
            }
            Read::Milliseconds => {
                let wrong = || format!("invalid timeout {text:?}; give milliseconds above 0");
                json!(format!("{}ms", number(text).ok_or_else(wrong)?))
            }
            Read::Permissions => json!(permissions(text)?),
            Read::Switch => json!(switch(text)?),
            Read::LogLevel => match log_level(text) {
                Some(level) => json!(level),
                None => {
                    let warning = format!("{text:?} is no log level; using {}", Level::Info);
                    return Ok(Outcome::Instead(json!(Level::Info), warning));
                }
            },
        };
        Ok(Outcome::Value(value))
    }

    /// Whether it is known, but has no effect yet.
    pub(super) fn is_unused(&self) -> bool {
        self.read == Read::Unused
    }
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number > 0)
}

fn not_positive(text: &str) -> String {
    format!("{text:?} is not a positive number")
}

/// Reads the older product's words, and ours.
fn permissions(text: &str) -> Result<&'static str, String> {
    match text {
        "bypassPermissions" | "bypass" => Ok("bypass"),
        "default" | "ask" => Ok("ask"),
        "plan" | "read-only" => Ok("read-only"),
        other => Err(format!("{other:?} is none of bypassPermissions, default, plan")),
    }
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(format!("{other:?} is neither true nor false")),
    }
}

fn log_level(text: &str) -> Option<Level> {
    let is = |level: &Level| level.as_str().eq_ignore_ascii_case(text);
    Level::ALL.into_iter().find(is).or(text.eq_ignore_ascii_case("warning").then_some(Level::Warn))
}

#[cfg(test)]
mod tests {
    use super::{super::key, *};

    #[test]
    fn every_variable_sets_a_key_that_there_is_and_none_is_there_twice() {
        for (number, variable) in VARIABLES.iter().enumerate() {
            assert!(variable.key.is_none_or(|path| key::find(path).is_some()), "{variable:?}");
            let mut others = VARIABLES.iter().skip(number + 1);
            let is_same = |other: &Variable| {
                other.name == variable.name || variable.key.is_some() && other.key == variable.key
            };
            assert!(!others.any(is_same), "{variable:?}");
        }
    }

    #[test]
    fn the_documentation_has_the_same_table() {
        let rows = VARIABLES.iter().map(|variable| {
            let key = variable.key.map_or_else(|| "–".to_owned(), |key| format!("`{key}`"));
            format!("| `{}` | {key} | {} |", variable.name, variable.about)
        });
        let rows = rows.collect::<Vec<_>>().join("\n");
        let page = include_str!("../../../../docs/configuration.md");
        assert!(page.contains(&rows), "docs/configuration.md lacks this table:\n{rows}");
    }
}
