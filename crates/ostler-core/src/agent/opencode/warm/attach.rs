//! A server that somebody else runs: what it can be told, and whether it is one.
//!
//! Its settings are its operator's. So what a turn may do is said with its
//! session, which counts more than the settings, but not for the sessions of
//! sub-agents; and what would be said by the environment of a process is not
//! said at all, but warned about.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{
    client,
    health::{HEALTH, Health},
    launch::warn_of_any_server,
    server,
};
use crate::{
    agent::{
        AttachSpec,
        command_line::warn_if,
        http::{HttpCall, HttpReply, Method, ServerAddress, ServerError},
        opencode::settings,
    },
    event::Mode,
    failure::{Failure, FailureKind},
    request::{Options, ProjectSettings},
};

/// How a server of somebody else's is spoken to.
pub(super) const ATTACH: AttachSpec =
    AttachSpec { dialect: server::attached, warnings, health, judge };

/// What the turns of a session may do there.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rules {
    /// What the server's own settings allow; what it asks is allowed.
    Free,
    /// What these rules allow, whatever the settings say.
    Strict(Vec<Value>),
}

impl Rules {
    /// Returns the rules of a turn.
    pub(super) fn of(options: &Options) -> Self {
        Self::from(rules(options, &mut Vec::new()))
    }

    /// Returns the rules that a server of ours has in its settings. They reach
    /// sub-agents, so these are there.
    pub(super) fn of_settings(options: &Options) -> Self {
        Self::from(settings::rules(options, Mode::Warm, &mut Vec::new()))
    }

    fn from(rules: Option<Map<String, Value>>) -> Self {
        rules.map_or(Self::Free, |rules| Self::Strict(list(&rules)))
    }

    /// Returns them as the server wants them.
    pub(super) fn list(&self) -> Vec<Value> {
        match self {
            // A question would wait for an answer for ever.
            Self::Free => vec![rule("question", "*", &json!("deny"))],
            Self::Strict(rules) => rules.clone(),
        }
    }
}

/// Returns the rules of a turn that may not do everything.
fn rules(options: &Options, warnings: &mut Vec<String>) -> Option<Map<String, Value>> {
    let mut rules = settings::rules(options, Mode::Warm, warnings)?;
    let task = rules.insert("task".to_owned(), json!("deny"));
    warn_if(
        warnings,
        task.is_none_or(|task| task != "deny"),
        "the rules of a session do not count for its sub-agents, and this server has none of its \
         own for this turn; sub-agents are refused",
    );
    Some(rules)
}

/// Writes rules down as the server wants those of a session: in order, for the
/// last one that matches counts.
fn list(rules: &Map<String, Value>) -> Vec<Value> {
    let mut list = Vec::new();
    for (permission, value) in rules {
        if let Some(patterns) = value.as_object() {
            list.extend(patterns.iter().map(|(pattern, how)| rule(permission, pattern, how)));
        } else {
            list.push(rule(permission, "*", value));
        }
    }
    list
}

fn rule(permission: &str, pattern: &str, action: &Value) -> Value {
    json!({ "permission": permission, "pattern": pattern, "action": action })
}

/// Returns which options the server is not told.
fn warnings(options: &Options) -> Vec<String> {
    let mut warnings = Vec::new();
    rules(options, &mut warnings);
    let names: Vec<&str> = options.env.iter().map(|(name, _)| name.as_str()).collect();
    let mut warn = |applies: bool, text: &str| warn_if(&mut warnings, applies, text);
    warn(
        !names.is_empty(),
        &format!(
            "variables cannot be given to a server that runs already; not passed on: {}",
            names.join(", ")
        ),
    );
    warn(
        !options.extra_args.is_empty(),
        "arguments cannot be given to a server that runs already; they are left out",
    );
    warn(
        options.home.is_some(),
        "a server that runs already has its own home, login and settings; they are not replaced",
    );
    warn(
        options.project_settings == ProjectSettings::Trusted,
        "whether settings in the directory are obeyed is for the server's operator to say",
    );
    warn_of_any_server(&mut warnings, options);
    warnings
}

fn health(server: &ServerAddress, limit: Duration) -> HttpCall {
    HttpCall {
        method: Method::Get,
        url: format!("{}{HEALTH}", server.url()),
        login: server.login().cloned(),
        body: None,
        limit,
    }
}

fn judge(
    server: &ServerAddress,
    reply: Result<HttpReply<'_>, &str>,
) -> Result<String, ServerError> {
    let name = format!("{} {HEALTH}", Method::Get.as_str());
    judged(server, client::read(&name, reply, None))
}

/// Reads what the server said of its health: its version, or what is wrong.
pub(super) fn judged(
    server: &ServerAddress,
    health: Result<Value, Failure>,
) -> Result<String, ServerError> {
    let wrong = |kind, what: &str, words: &str, hint| {
        let message = format!("opencode: the server at {} {what}: {words}", server.url());
        ServerError { kind, message, hint }
    };
    let health = health.map_err(|failure| match (failure.kind, server.login()) {
        (FailureKind::Auth, None) => {
            wrong(FailureKind::Auth, "wants a password", &failure.message, GIVE_PASSWORD)
        }
        (FailureKind::Auth, Some(_)) => {
            wrong(FailureKind::Auth, "knows no such login", &failure.message, CHECK_PASSWORD)
        }
        (FailureKind::Unavailable | FailureKind::Overloaded, _) => {
            wrong(failure.kind, "cannot be reached", &failure.message, SEE_IF_RUNNING)
        }
        (_, _) => {
            wrong(FailureKind::InvalidRequest, "is not opencode's", &failure.message, CHECK_URL)
        }
    })?;
    match Health::read(&health) {
        Health::Well { version } => Ok(version),
        Health::Unwell => {
            let words = format!("GET {HEALTH}: {health}");
            Err(wrong(FailureKind::Unavailable, "is not well", &words, SEE_IF_RUNNING))
        }
        Health::Unsaid => {
            let start: String = health.to_string().chars().take(client::SHOWN).collect();
            let words = format!("GET {HEALTH}: {start}");
            Err(wrong(FailureKind::InvalidRequest, "is not opencode's", &words, CHECK_URL))
        }
    }
}

const GIVE_PASSWORD: &str = "set OPENCODE_PASSWORD to what the server has as \
                             OPENCODE_SERVER_PASSWORD";
const CHECK_PASSWORD: &str = "set OPENCODE_USERNAME and OPENCODE_PASSWORD to what the server has \
                              as OPENCODE_SERVER_USERNAME and OPENCODE_SERVER_PASSWORD";
const SEE_IF_RUNNING: &str = "see that `opencode serve` runs there and is not stuck, or set \
                              OPENCODE_URL to where it does";
const CHECK_URL: &str = "set OPENCODE_URL to the address that `opencode serve` prints";
