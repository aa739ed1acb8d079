//! Any agent that speaks the Agent Client Protocol on its standard input and
//! output: somebody's own, from configuration or from a program that uses this
//! library.
//!
//! What is known of such an agent is little: how to start it, and what it says
//! about itself once it runs. The protocol is spoken elsewhere. How it is
//! started is in `launch`, one turn with a process of its own in `once`, what
//! its words mean in `fault`, and what some programs do of their own in
//! `habits`.

mod fault;
mod habits;
mod launch;
mod once;
mod prompt;
mod stderr;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, time::Duration};

use serde_json::{Value, json};
use thiserror::Error;

use super::{
    AgentName, AgentSpec, Caps, Custom, Heard, Names, Signal, StopStep, WarmSpec, find,
    name::ALIASES,
};
use crate::{
    event::Usage,
    memo,
    protocol::acp::{self, AcpFacts, Call},
    request::{self, Open, Options},
};

/// An agent of somebody's own, as they describe it.
#[derive(Clone, Default)]
pub struct AcpAgent {
    /// Its name: a small letter, then small letters, digits and dashes.
    pub name: String,
    /// The program and the arguments with which it speaks the protocol.
    pub command: Vec<String>,
    /// Variables that it gets, with their values.
    pub env: Vec<(String, String)>,
    /// The names of variables that are passed on to it.
    pub pass_env: Vec<String>,
    /// The program and the arguments that print its version.
    pub version: Option<Vec<String>>,
}

/// Why something is no agent.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CustomError {
    /// Not a name.
    #[error(
        "{name:?} is no name for an agent: it takes a small letter, then small letters, digits and dashes"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// The name of another agent.
    #[error("the name {name:?} is taken by a built-in agent")]
    TakenName {
        /// The name.
        name: String,
    },
    /// No program, or none for the version.
    #[error("{field} names no program")]
    NoProgram {
        /// Which of the two.
        field: &'static str,
    },
    /// Something that no program can be given.
    #[error("{field}: {text:?} {why}")]
    BadText {
        /// Where.
        field: &'static str,
        /// What.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl AcpAgent {
    /// Makes the facts of it.
    ///
    /// # Errors
    /// When it has no usable name or no program, or names a variable that
    /// there cannot be.
    pub fn spec(self) -> Result<AgentSpec, CustomError> {
        check_name(&self.name)?;
        let mut command = self.command.into_iter();
        let program = command.next().filter(|program| !program.is_empty());
        let program = program.ok_or(CustomError::NoProgram { field: "command" })?;
        let args: Vec<String> = command.collect();
        let words = std::iter::once(&program).chain(&args);
        check_words("command", words)?;
        if let Some(version) = &self.version {
            let first = version.first().filter(|program| !program.is_empty());
            first.ok_or(CustomError::NoProgram { field: "version" })?;
            check_words("version", version)?;
        }
        for (name, value) in &self.env {
            check_variable("env", name)?;
            // The value may be a secret: the name says which it is.
            if value.contains('\0') {
                let (text, why) = (name.clone(), "has a value that no program can be given");
                return Err(CustomError::BadText { field: "env", text, why });
            }
        }
        for name in &self.pass_env {
            check_variable("pass_env", name)?;
        }
        Ok(AgentSpec {
            title: Cow::Owned(self.name.clone()),
            name: AgentName::new(self.name),
            program: Cow::Owned(program),
            custom: Some(Custom { args, env: self.env, version: self.version }),
            natives: &[],
            caps: CAPS,
            env: Names::Given(self.pass_env),
            home_env: &[],
            project_files: &[],
            stop: STOP,
            tested_versions: &[],
            install_hint: "install it, or correct its `command` in the configuration",
            identity: "",
            system_prompt: Heard::FirstTurn,
            check_session: request::check_session,
            launch: launch::one_shot,
            dialect: once::dialect,
            warm: Some(&WARM),
        })
    }
}

impl std::fmt::Debug for AcpAgent {
    /// Leaves the variables out: there are secrets in them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AcpAgent").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Checks what an agent of somebody's own is to be called.
///
/// # Errors
/// When it is no name, or that of a built-in agent.
pub fn check_name(name: &str) -> Result<(), CustomError> {
    let is_fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    if !begins || !name.bytes().all(is_fine) {
        return Err(CustomError::BadName { name: name.to_owned() });
    }
    if find(name).is_some() || ALIASES.iter().any(|(alias, _)| *alias == name) {
        return Err(CustomError::TakenName { name: name.to_owned() });
    }
    Ok(())
}

fn check_variable(field: &'static str, name: &str) -> Result<(), CustomError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        let (text, why) = (name.to_owned(), "is no name for a variable");
        return Err(CustomError::BadText { field, text, why });
    }
    Ok(())
}

fn check_words<'a>(
    field: &'static str,
    words: impl IntoIterator<Item = &'a String>,
) -> Result<(), CustomError> {
    match words.into_iter().find(|word| word.contains('\0')) {
        Some(_) => {
            // It may be a secret.
            let text = "…".to_owned();
            let why = "holds a character that no program can be given";
            Err(CustomError::BadText { field, text, why })
        }
        None => Ok(()),
    }
}

/// What the protocol can do. Whether one agent has all of it is known when it
/// runs; what it has not is then said.
const CAPS: Caps = Caps {
    supports_session_continuation: true,
    supports_model_selection: true,
    supports_tool_control: false,
    supports_streaming: true,
    supports_approvals: true,
    supports_warm: true,
    supports_max_turns: false,
    supports_system_prompt: true,
    supported_models: &[],
    default_model: None,
    max_prompt_length: 0,
};

/// The end of its input should end it; some do not listen for that.
const STOP: &[StopStep] = &[
    StopStep::CloseStdin { wait: Duration::from_secs(2) },
    StopStep::Signal { signal: Signal::Term, wait: Duration::from_secs(2) },
];

/// How such an agent is kept running.
static WARM: WarmSpec = WarmSpec {
    sessions_per_process: 32,
    supports_steering: false,
    // A session has its own directory, but what an agent reads where it was
    // started is not known.
    is_bound_to_directory: true,
    adopts: |_| true,
    stop: STOP,
    launch: launch::kept,
    dialect: |_| acp::dialect(&FACTS),
    attach: None,
};

/// What is true of an agent of which nothing special is known.
static FACTS: AcpFacts = AcpFacts {
    load_id: str::to_owned,
    // The history should have been told before the reply; not all are that strict.
    replay: Some(Duration::from_millis(500)),
    has_settings: true,
    thoughts_are_whole: false,
    is_notice: |_| false,
    tool,
    title,
    input,
    prompt: prompt::text,
    looks: |call| matches!(call.kind.as_deref(), Some("read" | "search")),
    ignored: ignored_system_prompt,
    spent: |_| (Usage::default(), None),
    stopped: |_| None,
    failure: fault::of_reply,
    is_lost: fault::is_lost,
    habits: habits::of,
    stderr: || Box::new(stderr::Reader),
};

/// The protocol has no name for a tool. Some tell it; else the kind says what
/// sort of tool it is.
fn tool(call: &Call) -> String {
    let known = call.tool_name.clone().or_else(|| call.kind.clone());
    known.unwrap_or_else(|| "tool".to_owned())
}

/// A command in full, whatever the agent calls it: somebody may have to allow it.
/// Else what the agent says, with the file if that is not in it.
fn title(call: &Call) -> String {
    let field = |name: &str| call.raw_input.as_ref().and_then(|input| input.get(name)?.as_str());
    if let Some(command) = field("command") {
        return command.to_owned();
    }
    let title = call.title.clone().unwrap_or_default();
    let file = ["file_path", "path", "url"].iter().find_map(|name| field(name));
    let file =
        file.or_else(|| call.locations.first().and_then(|place| place.get("path")?.as_str()));
    match file {
        Some(file) if !title.contains(file) => format!("{title}: {file}"),
        Some(_) | None => title,
    }
}

/// Arguments, or all that is shown in their place: the same question must not look
/// like another one, nor another one like the same.
fn input(call: &Call) -> Option<Value> {
    let shown = || {
        let title = call.title.as_ref()?;
        let (changes, content): (Vec<&Value>, Vec<&Value>) =
            call.content.iter().partition(|item| Call::is_change(item));
        let locations = &call.locations;
        Some(
            json!({ "title": title, "locations": locations, "changes": changes, "content": content }),
        )
    };
    call.arguments().cloned().or_else(shown)
}

/// Returns a warning about a system prompt that comes too late.
fn ignored_system_prompt(open: &Open, options: &Options) -> Option<&'static str> {
    let (text, memo) = (options.system_prompt.as_ref()?, open.memo()?);
    let is_other = memo.system_sent && memo.system_hash.as_ref() != Some(&memo::hash(text));
    is_other.then_some(
        "the agent got another system prompt when the session began; this one is ignored",
    )
}
