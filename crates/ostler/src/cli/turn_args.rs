//! The options that every command which runs turns shares, as they are typed.
//!
//! What they come to is made in `prepare`.

mod prepare;

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use ostler_core::request::{Format, Permissions, Thinking};

pub(crate) use self::prepare::Refused;
use crate::config;

/// How turns are run, by whichever command.
#[derive(Args, Clone, Debug)]
pub(crate) struct TurnArgs {
    /// Which agent [default: $AGENT_BACKEND, else agent.default of the file, else claude]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Which model [default: $BACKEND_MODEL, else agent.model, else the agent's own]
    #[arg(long, allow_hyphen_values = true)]
    model: Option<String>,
    /// Go on with this session of the agent's
    #[arg(long, value_name = "ID", conflicts_with = "continue_newest", allow_hyphen_values = true)]
    session: Option<String>,
    /// Go on with the newest session of this agent in this directory
    #[arg(long = "continue")]
    continue_newest: bool,
    /// Where the agent works [default: here]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Text for the system prompt, after the agent's own
    #[arg(long, value_name = "TEXT", conflicts_with = "system_file")]
    system: Option<String>,
    /// A file with that text
    #[arg(long, value_name = "FILE")]
    system_file: Option<PathBuf>,
    /// Allow this tool and no other that is not named too (repeatable)
    #[arg(long = "allow-tool", value_name = "TOOL")]
    allow_tools: Vec<String>,
    /// How many model calls the turn may make
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_turns: Option<u32>,
    /// How long the turn may take: 90s, 10m, 1h30m [default: 10m]
    #[arg(long, value_parser = duration, allow_hyphen_values = true)]
    timeout: Option<Duration>,
    /// How long the agent may print nothing [default: 5m]
    #[arg(long, value_parser = duration, allow_hyphen_values = true)]
    idle_timeout: Option<Duration>,
    /// How long the agent waits for a permission before it counts as denied [default: 5m]
    #[arg(long, value_parser = duration, allow_hyphen_values = true)]
    ask_timeout: Option<Duration>,
    /// What the agent may do without asking [default: $PERMISSION_MODE, else agent.permissions, else ask where somebody can be asked, else read-only]
    #[arg(long, value_enum)]
    permissions: Option<PermissionsArg>,
    /// How hard the model should think
    #[arg(long, value_enum, value_name = "LEVEL")]
    thinking: Option<ThinkingArg>,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) output: OutputArg,
    /// Which output to ask of the agent's CLI
    #[arg(long, value_enum, default_value = "stream-json")]
    format: FormatArg,
    /// Give the agent a home of its own: no login, settings or history of yours
    #[arg(long)]
    isolated: bool,
    /// Obey settings that lie in the working directory; a repository can start programs with them
    #[arg(long)]
    pub(crate) trust_project: bool,
    /// One process for each turn
    #[arg(long)]
    pub(crate) cold: bool,
    /// The agent's program [default: $BACKEND_CLI_PATH, else agent.path, else found in PATH]
    #[arg(long, value_name = "PATH")]
    bin: Option<PathBuf>,
    /// Pass a variable on, or set it (repeatable)
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Hand an argument to the agent's CLI as it is (repeatable)
    #[arg(long = "agent-arg", value_name = "ARG", allow_hyphen_values = true)]
    agent_args: Vec<String>,
    /// Write every raw line of the agent to this file
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
}

impl TurnArgs {
    /// Returns which agent is meant.
    pub(crate) fn agent_name<'a>(&'a self, loaded: &'a config::Loaded) -> &'a str {
        self.agent.as_deref().unwrap_or(&loaded.config.agent.default)
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PermissionsArg {
    Bypass,
    Ask,
    ReadOnly,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ThinkingArg {
    Off,
    Minimal,
    Low,
    Medium,
    High,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputArg {
    Text,
    Json,
    StreamJson,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    StreamJson,
    Json,
    Text,
}

/// Reads a duration, as a configuration file has it, too.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("invalid timeout; {}", config::duration::HINT);
    config::duration::parse(text).ok_or_else(wrong)
}

impl From<PermissionsArg> for Permissions {
    fn from(arg: PermissionsArg) -> Self {
        match arg {
            PermissionsArg::Bypass => Self::Bypass,
            PermissionsArg::Ask => Self::Ask,
            PermissionsArg::ReadOnly => Self::ReadOnly,
        }
    }
}

impl From<ThinkingArg> for Thinking {
    fn from(arg: ThinkingArg) -> Self {
        match arg {
            ThinkingArg::Off => Self::Off,
            ThinkingArg::Minimal => Self::Minimal,
            ThinkingArg::Low => Self::Low,
            ThinkingArg::Medium => Self::Medium,
            ThinkingArg::High => Self::High,
        }
    }
}

impl From<FormatArg> for Format {
    fn from(arg: FormatArg) -> Self {
        match arg {
            FormatArg::StreamJson => Self::StreamJson,
            FormatArg::Json => Self::Json,
            FormatArg::Text => Self::Text,
        }
    }
}
