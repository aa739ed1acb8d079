//! Projects as they are printed. The names are part of the contract.

use serde::Serialize;

use crate::{
    api::provider,
    clock::Millis,
    gateway::policy::Policy,
    id::ProjectId,
    project::{self, settings::SettingsView},
    store::projects::Project,
    ui::printable,
};

/// A project.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) id: ProjectId,
    pub(super) name: String,
    pub(super) directory: String,
    /// Who answers: the project's own agent, or the default.
    pub(super) agent_provider: Option<String>,
    /// Whether it names nobody.
    pub(super) is_default_agent: bool,
    pub(super) settings: SettingsView,
    pub(super) created_at: Millis,
    pub(super) updated_at: Millis,
}

impl Row {
    pub(super) fn new(project: Project, policy: &Policy, chosen: Option<&str>) -> Self {
        let agent = project::who_answers(policy, project.agent.as_deref(), chosen).ok();
        let Project { id, name, directory, agent: own, settings, created_at, updated_at } = project;
        Self {
            id,
            name,
            directory,
            agent_provider: agent.map(|agent| provider(&agent.name).to_owned()),
            is_default_agent: own.is_none(),
            settings: SettingsView::from(&settings.wishes),
            created_at,
            updated_at,
        }
    }

    fn agent(&self) -> &str {
        self.agent_provider.as_deref().unwrap_or("-")
    }

    /// Returns it for people.
    pub(super) fn text(&self) -> String {
        let by_default = if self.is_default_agent { " (by default)" } else { "" };
        let mut lines = vec![
            format!("project    {}", self.id),
            format!("name       {}", self.name),
            format!("directory  {}", self.directory),
            format!("agent      {}{by_default}", self.agent()),
            format!("created    {}", self.created_at),
            format!("changed    {}", self.updated_at),
        ];
        // The settings have their names, and those that are set are told.
        let settings = serde_json::to_value(&self.settings).unwrap_or_default();
        let set = settings.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        lines.extend(set.map(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("setting    {name} = {value}")
        }));
        lines.iter().map(|line| in_one_line(line)).collect::<Vec<_>>().join("\n")
    }
}

/// A page of them.
#[derive(Serialize)]
pub(super) struct Page {
    pub(super) projects: Vec<Row>,
    /// What to give as `--after` for more; null when there is no more.
    pub(super) next: Option<ProjectId>,
}

impl Page {
    /// Returns it for people.
    pub(super) fn text(&self) -> String {
        let line = |row: &Row| {
            in_one_line(&format!("{}  {}  {}  {}", row.id, row.agent(), row.name, row.directory))
        };
        let mut lines: Vec<_> = self.projects.iter().map(line).collect();
        if lines.is_empty() {
            lines.push("no projects".to_owned());
        }
        if let Some(next) = self.next {
            lines.push(format!("more with --after {next}"));
        }
        lines.join("\n")
    }
}

/// What was done.
#[derive(Serialize)]
pub(super) struct Changed {
    pub(super) outcome: &'static str,
    /// How many sessions were forgotten because another agent answers.
    pub(super) sessions: u64,
    /// How many commands were cancelled.
    pub(super) cancelled: usize,
    pub(super) project: Row,
}

impl Changed {
    pub(super) fn new(outcome: &'static str, project: Row) -> Self {
        Self { outcome, sessions: 0, cancelled: 0, project }
    }

    /// Returns it for people.
    pub(super) fn text(&self) -> String {
        let Self { outcome, sessions, cancelled, project } = self;
        let mut text = format!("{}: {outcome} as {}", project.name, project.id);
        if *sessions > 0 {
            text += &format!(", {sessions} forgotten sessions");
        }
        if *cancelled > 0 {
            text += &format!(", {cancelled} cancelled commands");
        }
        in_one_line(&text)
    }
}

/// Returns a text that can neither control the terminal nor begin a line.
fn in_one_line(text: &str) -> String {
    printable(text).replace('\n', "\u{fffd}")
}
