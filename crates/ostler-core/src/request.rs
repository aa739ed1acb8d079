//! What a caller asks of an agent, and whether it can be asked at all.
//!
//! Values that no agent could take are refused here, before anything starts.
//! The argv builders behind it take whatever passes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Map, Value};
use thiserror::Error;

use crate::{event::Mode, memo::Memo};

/// One prompt and everything that decides how it is run.
#[derive(Clone, Debug)]
pub struct TurnRequest {
    /// What the user typed, verbatim.
    pub prompt: String,
    /// A new session, or one to go on with.
    pub open: Open,
    /// How to run it.
    pub options: Options,
    /// A process for this turn alone, or one that is kept for further ones.
    pub mode: Mode,
    /// How long the turn may take in all.
    pub timeout: Duration,
    /// How long the agent may print nothing.
    pub idle_timeout: Duration,
    /// How long a permission request waits for an answer before it is denied.
    pub ask_timeout: Duration,
    /// Which try at this prompt it is, from 1.
    pub attempt: u32,
    /// Where to write every raw line, for bug reports and fixtures.
    pub transcript: Option<PathBuf>,
    /// Who keeps what is remembered of the session.
    pub memos: MemoKeeping,
    /// The project it belongs to; kept for the caller, not read here.
    pub project_id: Option<String>,
    /// The caller's own notes; kept, not read here.
    pub metadata: Map<String, Value>,
}

impl TurnRequest {
    /// Ten minutes for a turn.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
    /// Five minutes of silence.
    pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(300);
    /// Five minutes for an answer.
    pub const DEFAULT_ASK_TIMEOUT: Duration = Duration::from_secs(300);

    /// Makes a request for a new session in `cwd` with defaults for all else.
    pub fn new(prompt: impl Into<String>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            prompt: prompt.into(),
            open: Open::New,
            options: Options::new(cwd),
            mode: Mode::OneShot,
            timeout: Self::DEFAULT_TIMEOUT,
            idle_timeout: Self::DEFAULT_IDLE_TIMEOUT,
            ask_timeout: Self::DEFAULT_ASK_TIMEOUT,
            attempt: 1,
            transcript: None,
            memos: MemoKeeping::Caller,
            project_id: None,
            metadata: Map::new(),
        }
    }

    /// Goes on with a session that a former turn left behind.
    #[must_use]
    pub fn resume(mut self, memo: Memo) -> Self {
        self.open = Open::Resume(Box::new(memo));
        self
    }
}

/// Who keeps what is remembered of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoKeeping {
    /// The caller, who hands the report's memo back when the session goes on.
    Caller,
    /// The host's data folder: read and written while the session is locked, so
    /// that turns which wait for each other see what the other left.
    DataFolder,
}

/// Which session a turn runs in.
#[derive(Clone, Debug)]
pub enum Open {
    /// One that the agent makes.
    New,
    /// One that exists, with what is known about it.
    Resume(Box<Memo>),
}

impl Open {
    /// Returns what is known about the session, if there is one already.
    #[must_use]
    pub fn memo(&self) -> Option<&Memo> {
        match self {
            Self::New => None,
            Self::Resume(memo) => Some(memo),
        }
    }
}

/// How an agent is run: what a command line is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the agent works.
    pub cwd: PathBuf,
    /// Which model; the agent's default when absent.
    pub model: Option<String>,
    /// Text for the system prompt, after the agent's own.
    pub system_prompt: Option<String>,
    /// The only tools to allow.
    pub allowed_tools: Option<Vec<String>>,
    /// How many model calls the turn may make.
    pub max_turns: Option<u32>,
    /// What the agent may do without asking.
    pub permissions: Permissions,
    /// How hard the model should think.
    pub thinking: Option<Thinking>,
    /// Which output the CLI is asked for.
    pub format: Format,
    /// Whether slash commands and `@file` in prompts mean something.
    pub prompt_commands: PromptCommands,
    /// Whether settings that lie in the working directory are obeyed.
    pub project_settings: ProjectSettings,
    /// A home of its own for the agent, instead of the user's.
    pub home: Option<PathBuf>,
    /// Variables that the operator names: with a value, or to be passed on.
    pub env: Vec<(String, Option<String>)>,
    /// Arguments that the operator adds, before the session and the prompt.
    pub extra_args: Vec<String>,
    /// A command line of the operator's own.
    pub template: Option<Template>,
    /// Text that goes before the prompt.
    pub identity: Identity,
}

impl Options {
    /// Makes options for `cwd` with defaults for all else.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self {
            cwd: cwd.into(),
            model: None,
            system_prompt: None,
            allowed_tools: None,
            max_turns: None,
            permissions: Permissions::ReadOnly,
            thinking: None,
            format: Format::StreamJson,
            prompt_commands: PromptCommands::Off,
            project_settings: ProjectSettings::Ignored,
            home: None,
            env: Vec::new(),
            extra_args: Vec::new(),
            template: None,
            identity: Identity::Off,
        }
    }

    /// Returns whether the command line is to be the literal one that existing
    /// deployments rely on, which has no flag beyond those.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.format == Format::Json
            && self.permissions == Permissions::Bypass
            && self.template.is_none()
    }

    /// Returns which output the CLI will print: as asked, or as a template says.
    ///
    /// A template without a format gets no output flag, so what it prints is
    /// plain text unless its own words ask for JSON.
    #[must_use]
    pub fn wire_format(&self) -> Format {
        let Some(template) = &self.template else {
            return self.format;
        };
        let asks_for_json = |word: &String| {
            ["json", "stream-json", "--json", "--output-format=json", "--output-format=stream-json"]
                .contains(&word.as_str())
        };
        match template.format {
            Some(format) => format,
            None if template.command.iter().any(asks_for_json) => Format::StreamJson,
            None => Format::Text,
        }
    }
}

/// What the agent may do without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permissions {
    /// Everything: the operator's explicit choice.
    Bypass,
    /// What a person allows, request by request.
    Ask,
    /// Look, but not touch.
    ReadOnly,
}

/// How hard the model should think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// Not at all, where that can be asked for.
    Off,
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// The usual amount.
    Medium,
    /// A lot.
    High,
}

/// Which output the CLI is asked for. The parser reads all of them whatever was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Events as they happen.
    StreamJson,
    /// The literal command lines that existing deployments rely on, one object at the end.
    Json,
    /// Plain text.
    Text,
}

/// Whether slash commands and `@file` in prompts mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptCommands {
    /// A prompt is text and nothing else.
    Off,
    /// The CLI may interpret it.
    On,
}

/// Whether settings that lie in the working directory are obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectSettings {
    /// No: a repository can start programs and redirect the API key with them.
    Ignored,
    /// Yes: the operator trusts the directory.
    Trusted,
}

/// Text that goes before the prompt and tells the agent who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// None: the prompt arrives as typed.
    Off,
    /// The agent's default text.
    Default(Repeat),
    /// The operator's text.
    Text(String, Repeat),
}

/// How often the identity text is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// With every prompt.
    EachTurn,
    /// With the first prompt of a session.
    OncePerSession,
}

/// A command line of the operator's own, with `{{Name}}` variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// The program and its arguments; `{{Body}}` is the prompt.
    pub command: Vec<String>,
    /// Values of further variables; an unknown name is empty.
    pub variables: BTreeMap<String, String>,
    /// Which output flag to add; none when absent.
    pub format: Option<Format>,
    /// Session arguments that replace the agent's own.
    pub session: SessionArgs,
}

/// Session arguments that replace the agent's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionArgs {
    /// For a new session.
    pub new: Option<Vec<String>>,
    /// For one that goes on.
    pub resume: Option<Vec<String>>,
    /// Where they go.
    pub position: SessionArgPosition,
}

/// Where session arguments go in a template's command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionArgPosition {
    /// Right before the prompt.
    #[default]
    BeforeBody,
    /// At the end.
    End,
}

/// Why a request was refused before anything started.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RequestError {
    /// There is nothing to ask.
    #[error("prompt required")]
    EmptyPrompt,
    /// The agent does not take prompts of that length.
    #[error("the prompt has {length} characters; {agent} takes at most {limit}")]
    PromptTooLong {
        /// How long it is.
        length: usize,
        /// How long it may be.
        limit: usize,
        /// Who was asked.
        agent: String,
    },
    /// The turn could never finish.
    #[error("invalid timeout")]
    InvalidTimeout,
    /// The id cannot be one of the agent's.
    #[error("invalid session id {id:?}: {why}")]
    BadSession {
        /// The id.
        id: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The directory is not one, or cannot be read.
    #[error("working directory {path:?} {why}")]
    BadDirectory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A value that would be taken for an option, or cannot be passed at all.
    #[error("invalid {what} {value:?}: {why}")]
    BadValue {
        /// Which option.
        what: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The session belongs to another agent.
    #[error("session {id:?} belongs to {owner}, not to {agent}")]
    ForeignSession {
        /// The session.
        id: String,
        /// Whose it is.
        owner: String,
        /// Who was asked.
        agent: String,
    },
}

/// A year: what is longer is a mistake, and no clock could add it up.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

/// Checks what holds for every agent; reads the working directory's metadata.
///
/// # Errors
/// When the request could not be run by any agent.
pub fn validate(request: &TurnRequest) -> Result<(), RequestError> {
    if request.prompt.trim().is_empty() {
        return Err(RequestError::EmptyPrompt);
    }
    let limits = [request.timeout, request.idle_timeout, request.ask_timeout];
    if limits.iter().any(|limit| limit.is_zero() || *limit > MAX_TIMEOUT) {
        return Err(RequestError::InvalidTimeout);
    }
    if let Some(memo) = request.open.memo() {
        check_session(&memo.id)?;
    }
    let options = &request.options;
    check_value("model", options.model.as_deref())?;
    for tool in options.allowed_tools.iter().flatten() {
        check_value("tool", Some(tool))?;
    }
    for (name, value) in &options.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            let why = "a name cannot be empty or hold `=` or NUL";
            return Err(bad_value("environment variable", name, why));
        }
        if value.as_deref().is_some_and(|value| value.contains('\0')) {
            return Err(bad_value("environment variable", name, "a value cannot hold NUL"));
        }
    }
    check_directory(&options.cwd)
}

/// Checks a session id as far as all agents agree.
///
/// # Errors
/// When it is blank, starts with a dash or holds white space or control characters.
pub fn check_session(id: &str) -> Result<(), RequestError> {
    let why = if id.trim().is_empty() {
        "it is blank"
    } else if id.starts_with('-') {
        "it starts with a dash"
    } else if id.chars().any(|c| c.is_control() || c.is_whitespace()) {
        "it holds white space or control characters"
    } else if id.len() > 512 {
        "it is longer than 512 bytes"
    } else {
        return Ok(());
    };
    Err(RequestError::BadSession { id: id.to_owned(), why })
}

fn check_value(what: &'static str, value: Option<&str>) -> Result<(), RequestError> {
    let Some(value) = value else { return Ok(()) };
    if value.trim().is_empty() {
        return Err(bad_value(what, value, "it is blank"));
    }
    if value.starts_with('-') {
        return Err(bad_value(what, value, "it starts with a dash"));
    }
    if value.chars().any(char::is_control) {
        return Err(bad_value(what, value, "it holds control characters"));
    }
    Ok(())
}

fn bad_value(what: &'static str, value: &str, why: &'static str) -> RequestError {
    RequestError::BadValue { what, value: value.to_owned(), why }
}

fn check_directory(path: &Path) -> Result<(), RequestError> {
    let why = match std::fs::read_dir(path) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            "is not a directory".to_owned()
        }
        Err(error) => format!("cannot be read: {error}"),
    };
    Err(RequestError::BadDirectory { path: path.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(prompt: &str) -> TurnRequest {
        TurnRequest::new(prompt, ".")
    }

    #[test]
    fn an_empty_or_blank_prompt_is_refused() {
        for prompt in ["", " ", "\n\t"] {
            assert_eq!(validate(&request(prompt)), Err(RequestError::EmptyPrompt));
        }
        assert_eq!(RequestError::EmptyPrompt.to_string(), "prompt required");
    }

    #[test]
    fn a_zero_or_endless_timeout_is_refused() {
        let mut zero = request("hi");
        for wrong in [Duration::ZERO, Duration::MAX] {
            zero.timeout = wrong;
            assert_eq!(validate(&zero).unwrap_err().to_string(), "invalid timeout");
        }
    }

    #[test]
    fn session_ids_that_look_like_options_or_hold_spaces_are_refused() {
        for id in ["", "  ", "-x", "--resume", "a b", "a\nb", "a\u{0}b"] {
            assert!(check_session(id).is_err(), "{id:?}");
        }
        for id in ["a", "ses_1", "01a1e088-9109-7530-b2ac-e9fa07582dea", "é"] {
            assert!(check_session(id).is_ok(), "{id:?}");
        }
    }

    #[test]
    fn a_missing_directory_and_a_file_are_refused_by_name() {
        let mut lost = request("hi");
        lost.options.cwd = "/definitely/not/here".into();
        assert_eq!(
            validate(&lost).unwrap_err().to_string(),
            "working directory \"/definitely/not/here\" does not exist"
        );
        lost.options.cwd = "Cargo.toml".into();
        assert_eq!(
            validate(&lost).unwrap_err().to_string(),
            "working directory \"Cargo.toml\" is not a directory"
        );
    }

    #[test]
    fn a_model_or_tool_that_looks_like_an_option_is_refused() {
        let mut dash = request("hi");
        dash.options.model = Some("--help".into());
        assert!(validate(&dash).is_err());
        let mut dash = request("hi");
        dash.options.allowed_tools = Some(vec!["-x".into()]);
        assert!(validate(&dash).is_err());
    }
}
