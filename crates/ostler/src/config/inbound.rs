//! The `inbound.reply` block: how messages from chats are answered.
//!
//! Its keys are spelt as in the product that had them first. Some say what a
//! key of another section says as well; these are moved there while the file is
//! read (`MOVED`), so that everybody reads one place.

use std::path::PathBuf;

use ostler_core::request::Format;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::section::word;

/// Messages from outside.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Inbound {
    pub(crate) reply: Option<Reply>,
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

/// Where the keys of `inbound.reply` lead that are not its own.
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
