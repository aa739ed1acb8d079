//! What kinds of values there are: which values are of a kind, and how a kind
//! is called in an error and in the schema.

use std::{net::SocketAddr, time::Duration};

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::{
    discord::EVERYBODY,
    duration::{self, or_off::OFF},
    pattern::Pattern,
    tree::noun,
    twilio,
};
use crate::{
    channel::{
        DISCORD, GROUP, NAMES, SMS, WEBHOOK, WHATSAPP, is_discord_id, is_number, is_sid, webhook,
    },
    gateway::inbound::LOCAL,
    store::conversations::{Address, AddressError},
};

/// The kind of value that a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// True or false.
    Switch,
    /// A whole number between two others.
    Number {
        min: u64,
        max: u64,
    },
    Text,
    /// A file or folder; a relative one is seen from the file that names it.
    Path,
    /// A text that says something.
    Words,
    /// The URL of something that is posted to.
    Url,
    /// The URL under which others reach this gateway: paths are put behind it.
    PublicUrl,
    /// A conversation, as CHANNEL:ADDRESS.
    Conversation,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// One of some words, or a list of them.
    Choices(&'static [&'static str]),
    Duration,
    /// A duration of so many seconds at most.
    DurationUpTo(u64),
    DurationOrOff,
    /// A list of texts.
    Texts,
    /// A list of patterns, each a regular expression.
    Patterns,
    /// A list of files or folders.
    Paths,
    /// A list of networks, such as 10.0.0.0/8.
    Networks,
    /// A list of origins of web pages, such as `https://example.org`.
    Origins,
    /// The id of something in a chat, such as '1234567890'.
    Id,
    /// A list of such ids; '*' stands for all.
    Ids,
    /// The name of a time zone.
    TimeZone,
    /// A telephone number with a plus sign and the country.
    Phone,
    /// Such a number, with `whatsapp:` before it or not.
    WhatsApp,
    /// A list of such numbers; '*' stands for all.
    Phones,
    /// What Twilio calls something, by how such names begin.
    Sid(&'static str),
    /// A list of such names.
    Sids(&'static str),
    /// A list of names of variables.
    Variables,
    /// Variables with their values, which may be secrets.
    Values,
    /// A program and its arguments.
    Command,
    /// The name of an agent, built in or of the operator's own.
    Agent,
    /// Where to listen.
    Address,
    /// A text that nobody may see: itself, or where to get it.
    Secret,
}

impl Kind {
    /// Checks a value; what is wrong with it is told with its place below the key.
    pub(super) fn check(self, value: &Value) -> Result<(), Wrong> {
        match (self, value) {
            (Self::Switch, Value::Bool(_)) | (Self::Text, Value::String(_)) => Ok(()),
            (Self::Path | Self::Agent, Value::String(text)) => not_empty(text),
            (Self::Number { min, max }, Value::Number(number)) => {
                let fits = number.as_u64().is_some_and(|number| (min..=max).contains(&number));
                let wrong = || format!("{number} is not a whole number from {min} to {max}");
                if fits { Ok(()) } else { Err(wrong().into()) }
            }
            (Self::Choice(words), Value::String(text)) => {
                let wrong = || format!("{text:?} is none of {}", words.join(", "));
                if words.contains(&text.as_str()) { Ok(()) } else { Err(wrong().into()) }
            }
            (Self::Words, Value::String(text)) => not_empty(text.trim()),
            (Self::Url, Value::String(text)) => {
                webhook::check(text).map_err(|error| error.to_string().into())
            }
            (Self::PublicUrl, Value::String(text)) => public_url(text),
            (Self::Conversation, Value::String(text)) => conversation(text),
            (Self::Choices(words), Value::String(_)) => Self::Choice(words).check(value),
            (Self::Choices(_), Value::Array(items)) if items.is_empty() => {
                Err("it is empty".to_owned().into())
            }
            (Self::Choices(words), Value::Array(items)) => {
                let wrong = |number, wrong| Wrong { below: format!("[{number}]"), ..wrong };
                let check = |(number, item)| {
                    Self::Choice(words).check(item).map_err(|error| wrong(number, error))
                };
                items.iter().enumerate().try_for_each(check)
            }
            (Self::DurationUpTo(max), Value::String(_) | Value::Number(_)) => {
                Self::Duration.check(value)?;
                let max = Duration::from_secs(max);
                let fits = duration::from_value(value).is_none_or(|given| given <= max);
                let wrong = || format!("{value} is too long; give {} at most", duration::text(max));
                if fits { Ok(()) } else { Err(wrong().into()) }
            }
            (Self::DurationOrOff, Value::String(text)) if text == OFF => Ok(()),
            (Self::Duration | Self::DurationOrOff, Value::String(_) | Value::Number(_)) => {
                let wrong = || format!("invalid duration {value}; {}", duration::HINT);
                duration::from_value(value).map(drop).ok_or_else(|| wrong().into())
            }
            (Self::Texts, Value::Array(items)) => each(items, |_| Ok(())),
            (Self::Patterns, Value::Array(items)) => patterns(items),
            (Self::Variables, Value::Array(items)) => each(items, variable),
            (Self::Paths, Value::Array(items)) => each(items, not_empty),
            (Self::Networks, Value::Array(items)) => each(items, network),
            (Self::Id, Value::String(text)) => id(text),
            (Self::Ids, Value::Array(items)) => ids(items),
            (Self::Origins, Value::Array(items)) => each(items, origin),
            (Self::TimeZone, Value::String(text)) => zone(text),
            (Self::Phone, Value::String(text)) => phone(text),
            (Self::WhatsApp, Value::String(text)) => phone(twilio::number(text)),
            // It would lose its sign.
            (Self::Phone | Self::WhatsApp, Value::Number(number)) => {
                Err(format!("write it in quotes: '+{number}'").into())
            }
            (Self::Phones, Value::Array(items)) => phones(items),
            (Self::Sid(start), Value::String(text)) => sid(text, start),
            (Self::Sids(start), Value::Array(items)) => each(items, |text| sid(text, start)),
            (Self::Command, Value::Array(items)) => command(items),
            (Self::Values, Value::Object(map)) => map.iter().try_for_each(|(name, value)| {
                variable(name)?;
                let no_text =
                    || Wrong::within(name, format!("expected a text, found {}", noun(value)));
                value.as_str().map(drop).ok_or_else(no_text)
            }),
            (Self::Address, Value::String(text)) => {
                let hint = "give an address and a port, such as 127.0.0.1:8474 or [::1]:8474";
                let wrong = |_| format!("{text:?} is no address to listen on; {hint}").into();
                text.parse::<SocketAddr>().map(drop).map_err(wrong)
            }
            (Self::Secret, value) => secret(value),
            _ => Err(format!("expected {}, found {}", self.noun(), noun(value)).into()),
        }
    }

    /// Returns what an error calls it.
    pub(crate) fn noun(self) -> String {
        match self {
            Self::Switch => "true or false".to_owned(),
            Self::Number { .. } => "a number".to_owned(),
            Self::Text | Self::Words => "a text".to_owned(),
            Self::Url | Self::PublicUrl => "a URL".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Choices(words) => format!("one or several of {}", words.join(", ")),
            Self::Duration | Self::DurationUpTo(_) => "a duration such as '10m'".to_owned(),
            Self::DurationOrOff => "a duration such as '10m', or 'off'".to_owned(),
            Self::Texts => "a list of texts".to_owned(),
            Self::Patterns => "a list of patterns".to_owned(),
            Self::Paths => "a list of paths".to_owned(),
            Self::Networks => "a list of networks".to_owned(),
            Self::Id => "an id in quotes, such as '1234567890'".to_owned(),
            Self::Ids => "a list of ids, each in quotes".to_owned(),
            Self::Origins => "a list of origins".to_owned(),
            Self::TimeZone => "a time zone such as 'Europe/Berlin'".to_owned(),
            Self::Phone | Self::WhatsApp => {
                "a number in quotes, such as '+4915112345678'".to_owned()
            }
            Self::Phones => "a list of numbers, each in quotes".to_owned(),
            Self::Sid(start) => format!("a name such as '{start}0123…'"),
            Self::Sids(start) => format!("a list of names such as '{start}0123…'"),
            Self::Variables => "a list of names of variables".to_owned(),
            Self::Values => "variables with their values".to_owned(),
            Self::Command => "a program and its arguments, each a text of its own".to_owned(),
            Self::Agent => "the name of an agent".to_owned(),
            Self::Address => "an address and a port".to_owned(),
            Self::Conversation => "a conversation such as 'local:main'".to_owned(),
            Self::Secret => "a text, { file: … } or { command: […] }".to_owned(),
        }
    }

    /// Returns its JSON Schema. Null is taken for every key, as if it was not there.
    pub(super) fn schema(self) -> Value {
        let texts = json!({ "type": ["array", "null"], "items": { "type": "string" } });
        match self {
            Self::Switch => json!({ "type": ["boolean", "null"] }),
            Self::Number { min, max } => {
                json!({ "type": ["integer", "null"], "minimum": min, "maximum": max })
            }
            Self::Text => json!({ "type": ["string", "null"] }),
            Self::Path
            | Self::Id
            | Self::TimeZone
            | Self::Phone
            | Self::Sid(_)
            | Self::Agent
            | Self::Address
            | Self::Words
            | Self::Url
            | Self::PublicUrl
            | Self::WhatsApp
            | Self::Conversation => {
                json!({ "type": ["string", "null"], "minLength": 1 })
            }
            Self::Choice(words) => {
                let words = words.iter().map(|word| json!(word)).chain([Value::Null]);
                json!({ "enum": words.collect::<Vec<_>>() })
            }
            Self::Choices(words) => json!({ "anyOf": [
                Self::Choice(words).schema(),
                { "type": "array", "items": { "enum": words }, "minItems": 1 },
            ] }),
            Self::Duration | Self::DurationUpTo(_) | Self::DurationOrOff => json!({
                "type": ["string", "number", "null"], "minLength": 1, "exclusiveMinimum": 0,
            }),
            Self::Texts
            | Self::Patterns
            | Self::Variables
            | Self::Paths
            | Self::Networks
            | Self::Ids
            | Self::Phones
            | Self::Sids(_)
            | Self::Origins => texts,
            Self::Command => {
                json!({ "type": ["array", "null"], "items": { "type": "string" }, "minItems": 1 })
            }
            Self::Values => {
                json!({ "type": ["object", "null"], "additionalProperties": { "type": "string" } })
            }
            Self::Secret => json!({ "anyOf": [
                { "type": ["string", "null"], "minLength": 1 },
                { "type": "object", "properties": { "file": { "type": "string", "minLength": 1 } },
                  "required": ["file"], "additionalProperties": false },
                { "type": "object",
                  "properties": { "command": { "type": "array", "items": { "type": "string" },
                                               "minItems": 1 } },
                  "required": ["command"], "additionalProperties": false },
            ] }),
        }
    }
}

/// Each is held against every message.
fn patterns(items: &[Value]) -> Result<(), Wrong> {
    const MOST: usize = 20;
    if items.len() > MOST {
        return Err(format!("there are more than {MOST}").into());
    }
    each(items, |text| Ok(Pattern::new(text).map(drop)?))
}

fn network(text: &str) -> Result<(), Wrong> {
    let wrong = |_| format!("{text:?} is no network; give one such as 10.0.0.0/8 or ::1/128");
    text.parse::<ipnet::IpNet>().map(drop).map_err(|error| wrong(error).into())
}

fn id(text: &str) -> Result<(), Wrong> {
    let wrong = || format!("{text:?} is no id; give its digits, such as '1234567890'");
    if is_discord_id(text) { Ok(()) } else { Err(wrong().into()) }
}

/// A number would lose its last digits on the way.
fn ids(items: &[Value]) -> Result<(), Wrong> {
    if let Some((number, item)) = items.iter().enumerate().find(|(_, item)| item.is_number()) {
        let why = format!("write it in quotes: '{item}'");
        return Err(Wrong { below: format!("[{number}]"), ..why.into() });
    }
    each(items, |text| if text == EVERYBODY { Ok(()) } else { id(text) })
}

fn zone(text: &str) -> Result<(), Wrong> {
    let wrong = |_| format!("{text:?} is no time zone; give one such as 'Europe/Berlin' or 'UTC'");
    TimeZone::get(text).map(drop).map_err(|error| wrong(error).into())
}

fn phone(text: &str) -> Result<(), Wrong> {
    let wrong = || format!("{text:?} is no number; give one such as '+4915112345678'");
    if is_number(text) { Ok(()) } else { Err(wrong().into()) }
}

/// A number without quotes would lose its sign.
fn phones(items: &[Value]) -> Result<(), Wrong> {
    if let Some((number, item)) = items.iter().enumerate().find(|(_, item)| item.is_number()) {
        let why = format!("write it in quotes: '+{item}'");
        return Err(Wrong { below: format!("[{number}]"), ..why.into() });
    }
    each(items, |text| if text == EVERYBODY { Ok(()) } else { phone(text) })
}

fn sid(text: &str, start: &str) -> Result<(), Wrong> {
    let wrong = || format!("{text:?} is none; it begins with {start}, and 32 digits follow");
    if is_sid(text, start) { Ok(()) } else { Err(wrong().into()) }
}

/// What Twilio calls is behind it, so that it has to end there.
fn public_url(text: &str) -> Result<(), Wrong> {
    const SUCH_AS: &str = "give one such as https://ostler.example.org";
    if !text.contains("://") {
        return Err(format!("{text:?} does not say how it is reached; {SUCH_AS}").into());
    }
    webhook::check(text).map_err(|error| error.to_string())?;
    let url = reqwest::Url::parse(text).map_err(|error| error.to_string())?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!("it has something behind its path; {SUCH_AS}").into());
    }
    let path = url.path().trim_end_matches('/');
    let own = ["/twilio", "/twilio/messages", "/twilio/groups", "/twilio/status"];
    if own.iter().any(|own| path.ends_with(own)) {
        return Err(format!("leave the paths of the gateway away; {SUCH_AS}").into());
    }
    Ok(())
}

/// An origin is exactly what browsers send: no path, no slash at the end.
fn origin(text: &str) -> Result<(), Wrong> {
    let is_one = reqwest::Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https") && url.origin().ascii_serialization() == text
    });
    let wrong = || format!("{text:?} is no origin; give one such as https://example.org");
    if is_one { Ok(()) } else { Err(wrong().into()) }
}

/// What is wrong with a value, and where below its key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// What is appended to the key: `[1]`, `.NAME`.
    pub(super) below: String,
    pub(super) why: String,
}

impl From<String> for Wrong {
    fn from(why: String) -> Self {
        Self { below: String::new(), why }
    }
}

impl Wrong {
    fn within(name: &str, why: String) -> Self {
        Self { below: format!(".{name}"), why }
    }
}

fn not_empty(text: &str) -> Result<(), Wrong> {
    if text.is_empty() { Err("it is empty".to_owned().into()) } else { Ok(()) }
}

fn each(items: &[Value], check: impl Fn(&str) -> Result<(), Wrong>) -> Result<(), Wrong> {
    for (number, item) in items.iter().enumerate() {
        let checked = match item.as_str() {
            Some(text) => check(text),
            None => Err(format!("expected a text, found {}", noun(item)).into()),
        };
        checked.map_err(|wrong| Wrong { below: format!("[{number}]"), ..wrong })?;
    }
    Ok(())
}

fn conversation(text: &str) -> Result<(), Wrong> {
    let address: Address =
        text.parse().map_err(|error: AddressError| Wrong::from(error.to_string()))?;
    match address.channel() {
        LOCAL => Ok(()),
        WEBHOOK => webhook::check(address.key()).map_err(|error| error.to_string().into()),
        DISCORD => id(address.key()),
        WHATSAPP | SMS => phone(address.key()),
        GROUP => sid(address.key(), "CH"),
        other => Err(format!("there is no channel {other:?}; there are {NAMES}").into()),
    }
}

fn variable(name: &str) -> Result<(), Wrong> {
    let is_fine = !name.is_empty() && !name.contains(['=', '\0', '*']);
    let why = || format!("{name:?} is no name for a variable; names are exact, one by one");
    if is_fine { Ok(()) } else { Err(why().into()) }
}

fn command(items: &[Value]) -> Result<(), Wrong> {
    each(items, |word| {
        let why = "a null character cannot be given to a program";
        if word.contains('\0') { Err(why.to_owned().into()) } else { Ok(()) }
    })?;
    match items.first() {
        Some(Value::String(program)) if !program.is_empty() => Ok(()),
        Some(_) | None => Err("it names no program".to_owned().into()),
    }
}

fn secret(value: &Value) -> Result<(), Wrong> {
    let map = match value {
        Value::Object(map) => map,
        Value::String(text) => return not_empty(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            let why = format!("expected {}, found {}", Kind::Secret.noun(), noun(value));
            return Err(why.into());
        }
    };
    let mut entries = map.iter();
    let (Some((name, value)), None) = (entries.next(), entries.next()) else {
        return Err("expected either file or command, and nothing else".to_owned().into());
    };
    let below = |wrong: Wrong| Wrong { below: format!(".{name}{}", wrong.below), ..wrong };
    match name.as_str() {
        "file" => Kind::Path.check(value).map_err(below),
        "command" => Kind::Command.check(value).map_err(below),
        _ => Err(Wrong::within(name, "unknown key; a secret has file or command".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_kind_is_refused_with_what_is_expected() {
        let number = Kind::Number { min: 1, max: 9 };
        for (kind, value, says) in [
            (Kind::Switch, json!("true"), "expected true or false, found a text"),
            (number, json!("5"), "expected a number, found a text"),
            (number, json!(0), "0 is not a whole number from 1 to 9"),
            (number, json!(10), "1 to 9"),
            (number, json!(-1), "1 to 9"),
            (number, json!(2.5), "2.5 is not a whole number"),
            (Kind::Text, json!(5), "expected a text, found a number"),
            (Kind::Path, json!(""), "empty"),
            (Kind::Choice(&["a", "b"]), json!("c"), "\"c\" is none of a, b"),
            (Kind::Duration, json!("soon"), "invalid duration \"soon\""),
            (Kind::Duration, json!(0), "above 0"),
            (Kind::Duration, json!("off"), "invalid duration"),
            (Kind::Duration, json!(true), "expected a duration"),
            (Kind::Texts, json!("a"), "expected a list of texts"),
            (Kind::Command, json!([]), "no program"),
            (Kind::Address, json!("8474"), "such as 127.0.0.1:8474"),
            (Kind::Address, json!("localhost:8474"), "no address"),
            (Kind::Secret, json!(""), "it is empty"),
            (Kind::Secret, json!(5), "expected a text, { file"),
            (Kind::Secret, json!({}), "either file or command"),
            (Kind::Secret, json!({ "file": "a", "command": ["b"] }), "either"),
        ] {
            let wrong = kind.check(&value).expect_err(&value.to_string());
            assert!(wrong.why.contains(says), "{kind:?} {value}: {}", wrong.why);
        }
    }

    #[test]
    fn a_conversation_is_in_a_channel_that_there_is() {
        for text in ["local:main", "webhook:https://example.org/in", "discord:1234567890"] {
            assert_eq!(Kind::Conversation.check(&json!(text)), Ok(()), "{text}");
        }
        for (text, says) in [
            ("main", "such as local:main"),
            ("webhook:example", "URL"),
            ("discord:general", "give its digits"),
            ("discord:123456789012345678901", "give its digits"),
            ("pigeon:1", "there are `local`, `webhook`, `discord`"),
        ] {
            let wrong = Kind::Conversation.check(&json!(text)).unwrap_err();
            assert!(wrong.why.contains(says), "{text}: {}", wrong.why);
        }
    }

    #[test]
    fn the_place_within_a_value_is_told() {
        for (kind, value, below) in [
            (Kind::Texts, json!(["a", 1]), "[1]"),
            (Kind::Variables, json!(["OPENAI_*"]), "[0]"),
            (Kind::Values, json!({ "A": 1 }), ".A"),
            (Kind::Secret, json!({ "command": ["x", 1] }), ".command[1]"),
            (Kind::Secret, json!({ "path": "x" }), ".path"),
        ] {
            assert_eq!(kind.check(&value).unwrap_err().below, below);
        }
    }

    #[test]
    fn a_secret_of_the_wrong_kind_is_not_repeated() {
        for value in [json!({ "command": "hunter2" }), json!({ "file": ["hunter2"] })] {
            let wrong = Kind::Secret.check(&value).unwrap_err();
            assert!(!wrong.why.contains("hunter2"), "{wrong:?}");
        }
    }
}
