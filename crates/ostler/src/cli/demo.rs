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
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::Args;
use ostler_core::{
    CliAgent, Event, EventBody, Memo, TurnReport, TurnRequest,
    agent::{AGENTS, AgentSpec},
    registry::Agent as _,
    turn::Turn,
};

use super::{
    Exit,
    rehearsal::{self, Stage},
};
use crate::{
    config::Settings,
    ui::{Ui, printable},
};

/// What is asked first of the scripted agent, which only pretends to use a tool.
const READ_SCRIPTED: &str = "Use a tool, please. sim:tool";

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
    let ended = tokio::select! {
        exit = tour(&args, settings, ui) => exit,
        exit = interrupted() => exit,
    };
    match ended {
        Ok(exit) => exit,
        Err(error) => {
            ui.notice(&format!("ostler: the demo could not go on: {error}"));
            Exit::Failed
        }
    }
}

/// Ctrl-C ends the tour like an error would, so that nothing is left behind.
async fn interrupted() -> io::Result<Exit> {
    tokio::signal::ctrl_c().await?;
    Ok(Exit::Cancelled)
}

async fn tour(args: &DemoArgs, settings: Settings, ui: &mut Ui) -> io::Result<Exit> {
    let chosen: Vec<_> = AGENTS
        .iter()
        .filter(|spec| args.agents.is_empty() || args.agents.iter().any(|name| spec.name == **name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<_> = AGENTS.iter().map(|spec| spec.name.as_str()).collect();
        ui.notice(&format!("ostler: no such agent; valid agents: {}", names.join(", ")));
        return Ok(Exit::Usage);
    }
    let stage = Stage::set(&settings).await?;
    ui.line(&format!("A simulated model listens on {}. No key is used.", stage.sim.base_url()))?;
    let mut rows = Vec::new();
    for spec in chosen {
        rows.push(Part { spec, stage: &stage }.play(args.scripted, ui).await?);
    }
    ui.line(&table(&rows))?;
    stage.clear().await;
    let failed = rows.iter().any(|row| row.failure.is_some());
    Ok(if failed { Exit::Failed } else { Exit::Answered })
}

/// One agent's part of the tour.
struct Part<'a> {
    spec: &'static AgentSpec,
    stage: &'a Stage,
}

impl Part<'_> {
    async fn play(&self, scripted: bool, ui: &mut Ui) -> io::Result<Row> {
        let real = CliAgent::new(self.spec, self.stage.host.clone());
        let (agent, cast) = if !scripted && real.find().is_ok() {
            (real, Cast::Real)
        } else {
            let program = self.stand_in()?;
            (real.with_program(program), Cast::Scripted)
        };
        ui.line(&format!("\n{} ({})", self.spec.title, self.describe(&agent, cast).await))?;
        let mut row = Row {
            agent: &self.spec.name,
            cast,
            session: String::new(),
            turns: Vec::new(),
            failure: None,
        };
        let mut memo: Option<Memo> = None;
        let first = match cast {
            Cast::Real => rehearsal::READ,
            Cast::Scripted => READ_SCRIPTED,
        };
        for prompt in [first, rehearsal::REMEMBER] {
            ui.line(&format!("  > {prompt}"))?;
            let mut request = self.request(prompt, cast)?;
            if let Some(memo) = memo.take() {
                request = request.resume(memo);
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
            Cast::Scripted if CliAgent::new(self.spec, self.stage.host.clone()).find().is_ok() => {
                "scripted: the scripted agent plays it, as asked".to_owned()
            }
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
        let real = match cast {
            Cast::Real => self.stage.model_request(self.spec, prompt)?,
            Cast::Scripted => None,
        };
        Ok(real.unwrap_or_else(|| self.stage.request(self.spec, prompt)))
    }

    /// Writes an executable file that plays the agent.
    fn stand_in(&self) -> io::Result<PathBuf> {
        // Through a shell, because the path of this program may have spaces in it.
        let own = std::env::current_exe()?.display().to_string().replace('\'', r"'\''");
        let text = format!(
            "#!/bin/sh\nexec '{own}' scripted --as {} --pace-ms 15 -- \"$@\"\n",
            self.spec.name
        );
        let path = self.stage.folder().join(&*self.spec.program);
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
                ui.write(&printable(&text).replace('\n', "\n  "))?;
            }
            EventBody::ToolUse { tool, title, .. } => {
                ui.end_line()?;
                ui.line(&printable(&format!("  → {tool}: {title}")))?;
                block = None;
            }
            EventBody::ToolResult(result) => {
                let mark = if result.is_error { "✗" } else { "←" };
                let output = result.output.trim_end().replace('\n', " ⏎ ");
                ui.line(&printable(&format!("  {mark} {output}")))?;
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
