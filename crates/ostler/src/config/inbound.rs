//! The `inbound` block: how messages from chats are answered, and what is made of
//! recordings.
//!
//! Its keys are spelt as in the product that had them first. Some say what a
//! key of another section says as well; these are moved there while the file is
//! read (`MOVED`), so that everybody reads one place.

use std::path::{Path, PathBuf};

use ostler_core::{request::Format, template};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::section::word;

/// Messages from outside.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub(crate) struct Inbound {
    pub(crate) reply: Option<Reply>,
    /// What stands before each message.
    pub(crate) message_prefix: Option<String>,
    /// What stands before each answer.
    pub(crate) response_prefix: Option<String>,
    /// The time zone of the time that stands before each message; without it none
    /// does.
    pub(crate) timestamp_prefix: Option<String>,
}

/// How they are answered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub(crate) struct Reply {
    pub(crate) mode: Mode,
    /// What is answered in [`Mode::Text`].
    pub(crate) text: Option<String>,
    pub(crate) agent: ReplyAgent,
    /// The command line, with `{{Body}}` and the like; else the agent's own.
    pub(crate) command: Option<Vec<String>>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) body_prefix: Option<String>,
    pub(crate) media_url: Option<String>,
    pub(crate) media_max_mb: Option<u32>,
    pub(crate) typing_interval_seconds: Option<u32>,
    pub(crate) session: ReplySession,
}

/// Programs that read a text as commands.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"];

impl Reply {
    /// Returns what is wrong with it, by key, beside what each key can tell alone.
    pub(super) fn wrong(&self) -> Vec<(&'static str, &'static str)> {
        let mut wrong = Vec::new();
        if self.mode == Mode::Text && self.text.is_none() {
            wrong.push(("inbound.reply.mode", "the mode text needs the key `text`"));
        }
        let command = self.command.as_deref().unwrap_or_default();
        if command.first().is_some_and(|program| template::has_variable(program)) {
            let why = "the program must not depend on the message; only its arguments may";
            wrong.push(("inbound.reply.command", why));
        }
        if has_variable_in_script(command) {
            let why = "a shell would run what people write; give it as an argument of its own, \
                       such as ['sh', '-c', 'claude -p \"$1\"', 'sh', '{{Body}}']";
            wrong.push(("inbound.reply.command", why));
        }
        if self.media_url.as_deref().is_some_and(|place| !is_place(place)) {
            wrong.push(("inbound.reply.mediaUrl", "give an http or https URL, or a path"));
        }
        wrong
    }
}

/// Whether a shell is given a script with a variable in it.
pub(super) fn has_variable_in_script(command: &[String]) -> bool {
    let is_shell = |word: &String| {
        let name = Path::new(word).file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| SHELLS.contains(&name))
    };
    let is_option = |word: &str| word.starts_with('-') && word.ends_with('c');
    let behind = command.iter().skip_while(|word| !is_shell(word));
    let scripts = behind.clone().zip(behind.skip(1)).filter(|(before, _)| is_option(before));
    scripts.map(|(_, script)| script).any(|script| template::has_variable(script))
}

/// Whether a text may be a URL of the web or a path.
fn is_place(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    !text.contains(char::is_control)
        && scheme.is_none_or(|scheme| scheme == "http" || scheme == "https")
}

/// Who answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// The agent.
    #[default]
    Command,
    /// Nobody: a fixed text is sent.
    Text,
}

/// What is special about the agent here. Which one it is, is in `agent.default`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub(crate) struct ReplyAgent {
    #[serde(with = "word::format")]
    pub(crate) format: Option<Format>,
    /// Unset: the agent's own; empty: none.
    pub(crate) identity_prefix: Option<String>,
}

/// What is special about sessions here.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub(crate) struct ReplySession {
    pub(crate) send_system_once: bool,
    pub(crate) session_intro: Option<String>,
    /// Unset: the agent's own arguments.
    pub(crate) session_arg_new: Option<Vec<String>>,
    pub(crate) session_arg_resume: Option<Vec<String>>,
    pub(crate) session_arg_before_body: Option<bool>,
}

/// A key that says what another one says.
#[derive(Debug)]
pub(super) struct Moved {
    pub(super) from: &'static str,
    pub(super) to: &'static str,
    pub(super) convert: fn(&Value) -> Value,
}

/// Where the keys of `inbound` lead that are not its own.
pub(super) const MOVED: &[Moved] = &[
    Moved { from: "inbound.reply.agent.kind", to: "agent.default", convert: Value::clone },
    Moved { from: "inbound.reply.timeoutSeconds", to: "agent.timeout", convert: seconds },
    Moved { from: "inbound.reply.session.scope", to: "sessions.scope", convert: Value::clone },
    Moved { from: "inbound.reply.session.idleMinutes", to: "sessions.idle", convert: minutes },
    Moved {
        from: "inbound.reply.session.resetTriggers",
        to: "sessions.reset_words",
        convert: Value::clone,
    },
    Moved {
        from: "inbound.reply.heartbeatMinutes",
        to: "heartbeat.every",
        convert: minutes_or_off,
    },
    Moved {
        from: "inbound.reply.session.heartbeatIdleMinutes",
        to: "heartbeat.idle",
        convert: minutes,
    },
    Moved {
        from: "inbound.transcribeAudio.command",
        to: "media.transcribe.command",
        convert: Value::clone,
    },
    Moved {
        from: "inbound.transcribeAudio.timeoutSeconds",
        to: "media.transcribe.timeout",
        convert: seconds,
    },
];

fn seconds(number: &Value) -> Value {
    json!(format!("{number}s"))
}

fn minutes(number: &Value) -> Value {
    json!(format!("{number}m"))
}

fn minutes_or_off(number: &Value) -> Value {
    if number == 0 { json!("off") } else { minutes(number) }
}
