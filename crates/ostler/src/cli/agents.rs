//! `ostler agents`: which agents there are, which are installed, and what each
//! can do. Also the look at the installed programs that `doctor` starts from.

mod standing;

use std::io;

use clap::{Args, ValueEnum};
use ostler_core::{
    CliAgent, Host,
    agent::{AgentRef, Caps},
    registry::{Agent as _, Unusable},
    version::{Found, Health},
};
use serde::Serialize;
use tokio::task::JoinSet;

pub(crate) use self::standing::{Standing, numbers};
use super::Exit;
use crate::{
    config::Settings,
    ui::{Ui, printable},
};

#[derive(Args, Debug)]
pub(crate) struct AgentsArgs {
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    output: FormArg,
}

/// The two forms of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormArg {
    Text,
    Json,
}

/// Lists the agents.
pub(crate) async fn run(args: AgentsArgs, settings: Settings, ui: &mut Ui) -> Exit {
    for warning in &settings.warnings {
        ui.notice(&format!("ostler: {warning}"));
    }
    let host = Host::new(settings.host_config());
    let looks = look(&settings, &host).await;
    let rows: Vec<_> = looks.iter().map(Row::new).collect();
    let shown = match args.output {
        FormArg::Text => ui.line(&text(&rows)),
        FormArg::Json => {
            serde_json::to_string(&rows).map_err(io::Error::other).and_then(|json| ui.line(&json))
        }
    };
    match shown {
        Ok(()) => Exit::Answered,
        Err(error) => {
            ui.notice(&format!("ostler: {error}"));
            Exit::Failed
        }
    }
}

/// An agent, and what was found of it on this machine or where it is a server.
pub(crate) struct Look {
    pub(crate) agent: CliAgent,
    pub(crate) found: Result<Health, Unusable>,
}

impl Look {
    pub(crate) fn spec(&self) -> &AgentRef {
        self.agent.spec()
    }
}

/// Looks for every agent, all at once, in the order of the table.
pub(crate) async fn look(settings: &Settings, host: &Host) -> Vec<Look> {
    let mut tasks = JoinSet::new();
    for (number, spec) in settings.roster.iter().enumerate() {
        let agent = agent(spec.clone(), settings, host);
        tasks.spawn(async move {
            let found = agent.validate().await;
            (number, Look { agent, found })
        });
    }
    let mut looks = tasks.join_all().await;
    looks.sort_by_key(|(number, _)| *number);
    looks.into_iter().map(|(_, look)| look).collect()
}

/// Returns an agent with the program or the server that the settings name for
/// it, if they do.
pub(crate) fn agent(spec: AgentRef, settings: &Settings, host: &Host) -> CliAgent {
    let is_backend = spec.name == settings.agent.name;
    let agent = CliAgent::new(spec, host.clone());
    let agent = match &settings.program {
        Some(program) if is_backend => agent.with_program(program),
        Some(_) | None => agent,
    };
    settings.attached(agent)
}

/// One agent, as it is printed. The field names are part of the contract.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    title: &'a str,
    /// Whether it comes from the configuration file.
    configured: bool,
    /// Whether it can be used: its program is there, or its server is well.
    installed: bool,
    path: Option<String>,
    /// The server that it is attached to, if it is.
    server: Option<ServerRow>,
    version: Option<String>,
    /// Where the installed version stands; null when nothing is installed.
    version_status: Option<Standing>,
    tested_versions: &'static [&'static str],
    warm: bool,
    capabilities: &'a Caps,
    /// Why it cannot run, or what is not as it should be.
    problem: Option<String>,
    install_hint: &'static str,
}

/// A server that somebody else runs, as it is printed.
#[derive(Serialize)]
struct ServerRow {
    url: String,
    healthy: bool,
    /// How long it took to say so.
    latency_ms: Option<u64>,
}

impl ServerRow {
    fn new(look: &Look) -> Option<Self> {
        let url = look.agent.server()?.url().to_owned();
        let latency_ms = look.found.as_ref().ok().and_then(|health| match &health.at {
            Found::Server { latency, .. } => u64::try_from(latency.as_millis()).ok(),
            Found::Program(_) => None,
        });
        Some(Self { url, healthy: look.found.is_ok(), latency_ms })
    }
}

impl<'a> Row<'a> {
    fn new(look: &'a Look) -> Self {
        let spec = look.spec();
        let health = look.found.as_ref().ok();
        let version = health.and_then(|health| health.version.clone());
        let status = health.map(|_| Standing::of(version.as_deref(), spec.tested_versions));
        Self {
            name: &spec.name,
            title: &spec.title,
            configured: spec.custom.is_some(),
            installed: health.is_some(),
            path: health.and_then(|health| Some(health.path()?.display().to_string())),
            server: ServerRow::new(look),
            version,
            version_status: status,
            tested_versions: spec.tested_versions,
            warm: spec.caps.supports_warm,
            capabilities: &spec.caps,
            problem: match &look.found {
                Ok(health) => health.warning.clone(),
                Err(error) => Some(error.to_string()),
            },
            install_hint: spec.install_hint,
        }
    }

    /// Returns what is said of a version that there is none of.
    fn absence(&self) -> &'static str {
        if self.server.is_some() { "out of reach" } else { "not installed" }
    }

    /// Returns what it runs on, for people.
    fn place(&self) -> String {
        match &self.server {
            Some(ServerRow { url, latency_ms: Some(latency), .. }) => {
                format!("{url} (a server, {latency} ms)")
            }
            Some(ServerRow { url, latency_ms: None, .. }) => format!("{url} (a server)"),
            None => self.path.clone().unwrap_or_default(),
        }
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![
            self.name.to_owned(),
            self.version.clone().unwrap_or_else(|| "-".to_owned()),
            self.version_status.map_or(self.absence(), Standing::label).to_owned(),
        ];
        let mark = |can: bool| if can { "yes" } else { "-" };
        cells.extend(ABILITIES.iter().map(|(_, can)| mark(can(self.capabilities)).to_owned()));
        cells.push(self.place());
        cells
    }
}

/// The table for people, then a line for each agent that is not as it should be.
fn text(rows: &[Row]) -> String {
    let headings = ABILITIES.iter().map(|(heading, _)| *heading);
    let headings = ["agent", "version", ""].into_iter().chain(headings).chain(["program"]);
    let mut table = vec![headings.map(str::to_owned).collect()];
    table.extend(rows.iter().map(Row::cells));
    let mut lines = align(&table);
    for row in rows {
        match &row.problem {
            _ if !row.installed && row.server.is_none() => {
                lines.push(format!("\n{}: to install it: {}", row.name, row.install_hint));
            }
            Some(problem) => lines.push(format!("\n{}: {problem}", row.name)),
            None => {}
        }
    }
    printable(&lines.join("\n"))
}

type Ability = (&'static str, fn(&Caps) -> bool);

/// What an agent can or cannot do, with the heading of its column.
const ABILITIES: &[Ability] = &[
    ("resume", |caps| caps.supports_session_continuation),
    ("model", |caps| caps.supports_model_selection),
    ("tools", |caps| caps.supports_tool_control),
    ("stream", |caps| caps.supports_streaming),
    ("ask", |caps| caps.supports_approvals),
    ("warm", |caps| caps.supports_warm),
    ("max turns", |caps| caps.supports_max_turns),
    ("system", |caps| caps.supports_system_prompt),
];

/// Makes every column as wide as its widest cell.
fn align(rows: &[Vec<String>]) -> Vec<String> {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<_> = (0..n_columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use ostler_core::agent::AGENTS;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "version"], ["codex", "é"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(align(&rows), ["a      version", "codex  é"]);
    }

    #[test]
    fn every_ability_has_a_column() {
        for spec in AGENTS {
            let caps = serde_json::to_value(&spec.caps).unwrap();
            let abilities = caps.as_object().unwrap().values().filter(|value| value.is_boolean());
            assert_eq!(abilities.count(), ABILITIES.len());
        }
    }
}
