//! How an agent is run: what a command line is made of. Data only.

use std::{collections::BTreeMap, path::PathBuf};

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
