//! `ostler demo`: a tour of the agents that needs no key and nothing installed.
//!
//! Every agent gets a prompt that uses a tool, then a second one in the same
//! session. CLIs that are installed run for real, isolated and with a made-up
//! key, against the simulated model; the scripted agent stands in for the
//! others. Each is labelled with which it is.
#![expect(clippy::wildcard_enum_match_arm, reason = "what a view leaves out needs no name")]

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Args;
use ostler_core::{
    CliAgent, Event, EventBody, Host, HostConfig, Memo, TurnReport, TurnRequest,
    agent::{AGENTS, AgentSpec},
    registry::Agent as _,
    request::Open,
    turn::Turn,
};
use ostler_sim::{
    model::{self, Sim},
    scripted,
};
use serde_json::json;

use super::Exit;
use crate::{config::Settings, ui::Ui};

/// The prompts, with the word that tells the simulated model what to do. The
/// first one reads a file, which every agent may do without being asked; the
/// scripted agent only pretends to use a tool.
const FIRST: &str = "What does notes.txt say? sim:read=notes.txt";
const FIRST_SCRIPTED: &str = "Use a tool, please. sim:tool";
const SECOND: &str = "How many prompts have I sent you so far? sim:history";

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Only this agent (repeatable)
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<String>,
    /// Use the scripted agent even where the CLI is installed
    #[arg(long)]
    scripted: bool,
}

/// A row of the table at the end.
struct Row {
    agent: &'static str,
    cast: Cast,
    session: String,
    turns: Vec<Measured>,
    failure: Option<String>,
}

struct Measured {
    first_text: Option<Duration>,
    total: Duration,
    tokens: Option<u64>,
}

/// Who plays the agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cast {
    Real,
    Scripted,
}

impl Cast {
    fn label(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Scripted => "scripted",
        }
    }
}

/// Runs the tour.
pub(crate) async fn run(args: DemoArgs, settings: Settings, ui: &mut Ui) -> Exit {
    match tour(&args, settings, ui).await {
        Ok(exit) => exit,
        Err(error) => {
            ui.notice(&format!("ostler: the demo could not go on: {error}"));
            Exit::Failed
        }
    }
}

async fn tour(args: &DemoArgs, settings: Settings, ui: &mut Ui) -> io::Result<Exit> {
    let chosen: Vec<_> = AGENTS
        .iter()
        .filter(|spec| args.agents.is_empty() || args.agents.iter().any(|name| name == spec.name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<_> = AGENTS.iter().map(|spec| spec.name).collect();
        ui.notice(&format!("ostler: no such agent; valid agents: {}", names.join(", ")));
        return Ok(Exit::Usage);
    }
    let folder = Folder::create(&settings)?;
    let sim = Sim::start(model::Options::default()).await?;
    let mut config = HostConfig::from_environment(settings.environment);
    config.data_dir = folder.path.join("data");
    let host = Host::new(config);
    ui.line(&format!("A simulated model listens on {}. No key is used.", sim.base_url()))?;
    let mut rows = Vec::new();
    for spec in chosen {
        let stage = Stage { spec, host: &host, sim: &sim, folder: &folder.path };
        let row = stage.play(args.scripted, ui).await?;
        rows.push(row);
    }
    ui.line(&table(&rows))?;
    host.shutdown(Duration::from_secs(10)).await;
    sim.stop().await;
    let failed = rows.iter().any(|row| row.failure.is_some());
    Ok(if failed { Exit::Failed } else { Exit::Answered })
}

/// A folder for the demo, removed at its end.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn create(settings: &Settings) -> io::Result<Self> {
        let root = HostConfig::from_environment(settings.environment.clone()).run_root;
        let path = root.join(format!("ostler-demo-{}", std::process::id()));
        fs::create_dir(&path)?;
        fs::create_dir(path.join("work"))?;
        fs::write(path.join("work/notes.txt"), "An ostler looks after the horses of an inn.\n")?;
        Ok(Self { path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).ok();
    }
}

/// One agent's part of the tour.
struct Stage<'a> {
    spec: &'static AgentSpec,
    host: &'a Host,
    sim: &'a Sim,
    folder: &'a Path,
}

impl Stage<'_> {
    async fn play(&self, scripted: bool, ui: &mut Ui) -> io::Result<Row> {
        let real = CliAgent::new(self.spec, self.host.clone());
        let (agent, cast) = if !scripted && real.find().is_ok() {
            (real, Cast::Real)
        } else {
            let program = self.stand_in()?;
            (real.with_program(program), Cast::Scripted)
        };
        ui.line(&format!("\n{} ({})", self.spec.title, self.describe(&agent, cast).await))?;
        let mut row = Row {
            agent: self.spec.name,
            cast,
            session: String::new(),
            turns: Vec::new(),
            failure: None,
        };
        let mut memo: Option<Memo> = None;
        let first = match cast {
            Cast::Real => FIRST,
            Cast::Scripted => FIRST_SCRIPTED,
        };
        for prompt in [first, SECOND] {
            ui.line(&format!("  > {prompt}"))?;
            let mut request = self.request(prompt, cast)?;
            if let Some(memo) = memo.take() {
                request.open = Open::Resume(Box::new(memo));
            }
            let began = Instant::now();
            let turn = match agent.start(request).await {
                Ok(turn) => turn,
                Err(error) => {
                    row.failure = Some(error.to_string());
                    break;
                }
            };
            let Some((report, first_text)) = watch(turn, began, ui).await? else {
                break;
            };
            row.turns.push(Measured {
                first_text,
                total: began.elapsed(),
                tokens: report.usage.total_tokens,
            });
            if let Some(failure) = &report.error {
                row.failure = Some(format!("{}: {}", failure.kind.code(), failure.message));
                break;
            }
            row.session = report.session_id.clone().unwrap_or_default();
            memo = report.memo;
        }
        if let Some(failure) = &row.failure {
            ui.line(&format!("  failed: {failure}"))?;
        }
        Ok(row)
    }

    async fn describe(&self, agent: &CliAgent, cast: Cast) -> String {
        match cast {
            Cast::Scripted => format!(
                "scripted: `{}` is not installed, so the scripted agent plays it",
                self.spec.program
            ),
            Cast::Real => match agent.validate().await {
                Ok(health) => format!(
                    "real: version {}, isolated, made-up key",
                    health.version.as_deref().unwrap_or("unknown")
                ),
                Err(error) => error.to_string(),
            },
        }
    }

    fn request(&self, prompt: &str, cast: Cast) -> io::Result<TurnRequest> {
        let mut request = TurnRequest::new(prompt, self.folder.join("work"));
        request.timeout = Duration::from_secs(120);
        let home = self.host.isolated_home(self.spec.name);
        if cast == Cast::Real
            && let Some(settings) = model::settings(self.spec.name, &self.sim.base_url())
        {
            settings.write_files(&home)?;
            request.options.model = settings.model.map(str::to_owned);
            let set = settings.environment.into_iter();
            request.options.env = set.map(|(name, value)| (name.to_owned(), Some(value))).collect();
            request.options.extra_args = settings.arguments;
        }
        request.options.home = Some(home);
        Ok(request)
    }

    /// Writes an executable file that plays the agent.
    fn stand_in(&self) -> io::Result<PathBuf> {
        let own = std::env::current_exe()?;
        let steps = json!([{ "do": "agent", "name": self.spec.name, "pace_ms": 15 }]);
        let text = scripted::executable(&format!("{} scripted", own.display()), &steps);
        let path = self.folder.join(self.spec.program);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(path)
    }
}

/// Shows a turn as it runs; returns its end and when the first text came.
async fn watch(
    mut turn: Turn,
    began: Instant,
    ui: &mut Ui,
) -> io::Result<Option<(TurnReport, Option<Duration>)>> {
    let mut first_text = None;
    let mut block = None;
    while let Some(Event { body, .. }) = turn.next().await {
        match body {
            EventBody::Output { text, block: id } => {
                first_text.get_or_insert_with(|| began.elapsed());
                if block.as_ref() != Some(&id) {
                    ui.end_line()?;
                    ui.write("  ")?;
                    block = Some(id);
                }
                ui.write(&text.replace('\n', "\n  "))?;
            }
            EventBody::ToolUse { tool, title, .. } => {
                ui.end_line()?;
                ui.line(&format!("  → {tool}: {title}"))?;
                block = None;
            }
            EventBody::ToolResult(result) => {
                let mark = if result.is_error { "✗" } else { "←" };
                ui.line(&format!("  {mark} {}", result.output.trim_end().replace('\n', " ⏎ ")))?;
            }
            EventBody::Complete(report) => {
                ui.end_line()?;
                return Ok(Some((*report, first_text)));
            }
            _ => {}
        }
    }
    Ok(None)
}

fn table(rows: &[Row]) -> String {
    let mut lines = vec![format!(
        "\n{:<9} {:<9} {:<37} {:>10} {:>8} {:>7}",
        "agent", "played", "session", "first text", "total", "tokens"
    )];
    for row in rows {
        if let Some(failure) = &row.failure {
            lines.push(format!("{:<9} {:<9} failed: {failure}", row.agent, row.cast.label()));
        }
        for (number, turn) in row.turns.iter().enumerate() {
            let session = if number == 0 { row.session.as_str() } else { "  resumed" };
            lines.push(format!(
                "{:<9} {:<9} {:<37} {:>10} {:>8} {:>7}",
                row.agent,
                row.cast.label(),
                session,
                turn.first_text.map_or_else(|| "-".to_owned(), milliseconds),
                milliseconds(turn.total),
                turn.tokens.map_or_else(|| "-".to_owned(), |tokens| tokens.to_string()),
            ));
        }
    }
    lines.join("\n")
}

fn milliseconds(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}
