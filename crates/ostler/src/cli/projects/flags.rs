//! What can be said of a project on the command line. It becomes the same values
//! that come over HTTP, which are checked in one place.

use std::path::{self, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use crate::{
    id::ProjectId,
    project::{
        Change, Draft, ProjectError, SettingsPatch, confine::Misplaced, settings::SettingsChange,
    },
};

#[derive(Args, Debug)]
pub(super) struct CreateArgs {
    /// What it is called
    name: String,
    /// The folder that its agents work in
    directory: PathBuf,
    /// Make the folder if it is missing
    #[arg(long)]
    create: bool,
    /// The agent that answers [default: that of projects]
    #[arg(long)]
    agent: Option<String>,
    #[command(flatten)]
    settings: SettingsArgs,
}

#[derive(Args, Debug)]
pub(super) struct SetArgs {
    /// The project, by its name or as prj_…
    project: String,
    /// What it is called from now on
    #[arg(long)]
    name: Option<String>,
    /// The agent that answers; with another one, all sessions are forgotten
    #[arg(long)]
    agent: Option<String>,
    #[command(flatten)]
    settings: SettingsArgs,
    /// What is as configured again; may be given several times
    #[arg(long, value_enum, value_name = "FIELD")]
    clear: Vec<Field>,
}

/// How its turns are run, unless a prompt says otherwise.
#[derive(Args, Debug)]
struct SettingsArgs {
    /// The model, by the agent's name for it
    #[arg(long)]
    model: Option<String>,
    /// What the agent may do without asking: bypass, ask or read-only
    #[arg(long)]
    permissions: Option<String>,
    /// How much the model thinks: off, minimal, low, medium or high
    #[arg(long)]
    thinking: Option<String>,
    /// How long a turn may take, such as 90s or 1h30m
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// How often the model may be asked in a turn
    #[arg(long, value_name = "N")]
    max_turns: Option<u32>,
    /// A tool that the agent may use; may be given several times
    #[arg(long = "allowed-tool", value_name = "TOOL")]
    allowed_tools: Vec<String>,
    /// What the agent is told before everything else
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,
}

/// What can be cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Field {
    Agent,
    Model,
    Permissions,
    Thinking,
    Timeout,
    MaxTurns,
    AllowedTools,
    SystemPrompt,
}

impl Field {
    /// Returns the setting that it is, if it is one.
    fn setting(self) -> Option<&'static str> {
        match self {
            Self::Agent => None,
            Self::Model => Some("model"),
            Self::Permissions => Some("permissions"),
            Self::Thinking => Some("thinking"),
            Self::Timeout => Some("timeout"),
            Self::MaxTurns => Some("max_turns"),
            Self::AllowedTools => Some("allowed_tools"),
            Self::SystemPrompt => Some("system_prompt"),
        }
    }
}

impl SettingsArgs {
    /// Returns what is changed, as it would come over HTTP.
    fn change(self, clear: &[Field]) -> Result<SettingsChange, ProjectError> {
        let tools = (!self.allowed_tools.is_empty()).then_some(self.allowed_tools);
        let given = [
            ("model", self.model.map(Value::from)),
            ("permissions", self.permissions.map(Value::from)),
            ("thinking", self.thinking.map(Value::from)),
            ("timeout", self.timeout.map(Value::from)),
            ("max_turns", self.max_turns.map(Value::from)),
            ("allowed_tools", tools.map(Value::from)),
            ("system_prompt", self.system_prompt.map(Value::from)),
        ];
        let mut change = Map::new();
        for name in clear.iter().filter_map(|field| field.setting()) {
            change.insert(name.to_owned(), Value::Null);
        }
        for (name, value) in given {
            match value {
                Some(_) if change.contains_key(name) => {
                    let why = format!("settings.{name}: it cannot be both set and cleared");
                    return Err(ProjectError::Wrong(why));
                }
                Some(value) => drop(change.insert(name.to_owned(), value)),
                None => {}
            }
        }
        serde_path_to_error::deserialize(Value::Object(change))
            .map_err(|error| ProjectError::Wrong(format!("settings.{error}")))
    }
}

impl CreateArgs {
    pub(super) fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// Returns the project that is wanted. A folder is meant as in a shell: from
    /// where one is.
    pub(super) fn draft(self) -> Result<Draft, ProjectError> {
        let Self { name, directory, create, agent, settings } = self;
        let directory = match directory.as_os_str().is_empty() {
            true => directory,
            false => {
                path::absolute(directory).map_err(|error| Misplaced::Other(error.to_string()))?
            }
        };
        let directory = directory.into_os_string().into_string();
        Ok(Draft {
            id: ProjectId::new(),
            name,
            directory: directory.map_err(|_| Misplaced::NotText)?,
            create,
            agent,
            settings: settings.change(&[])?,
        })
    }
}

impl SetArgs {
    pub(super) fn project(&self) -> &str {
        &self.project
    }

    pub(super) fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// Returns what is to be changed.
    pub(super) fn change(self) -> Result<Change, ProjectError> {
        let Self { name, agent, settings, clear, .. } = self;
        let is_cleared = clear.contains(&Field::Agent);
        if is_cleared && agent.is_some() {
            return Err(ProjectError::Wrong("agent: it cannot be both set and cleared".to_owned()));
        }
        let agent = if is_cleared { Some(None) } else { agent.map(Some) };
        let settings = settings.change(&clear)?;
        let settings = (!settings.names().is_empty()).then_some(SettingsPatch::Merge(settings));
        Ok(Change { name, agent, settings })
    }
}
