//! `ostler run`: one prompt, one answer.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, ValueEnum};
use ostler_core::{
    agent::{self, AgentSpec},
    cli_agent::{CliAgent, StartError},
    event::{EventBody, TurnReport},
    failure::{Failure, FailureKind, chain},
    host::{Host, HostConfig},
    memo::{Memo, MemoError},
    registry::Agent as _,
    request::{
        self, Format, MemoKeeping, Open, Permissions, ProjectSettings, Thinking, TurnRequest,
    },
    turn::{Control, Turn},
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::JoinSet,
};

use super::{Exit, plan, prompt, render::Renderer};
use crate::{config::Settings, ui::Ui};

/// How long the rest of a finished turn may take to clean up.
const CLEAN_UP: Duration = Duration::from_secs(5);

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The prompt; `-`, or nothing off a terminal, reads standard input
    prompt: Option<String>,
    /// Which agent [default: $AGENT_BACKEND, else claude]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Which model [default: $BACKEND_MODEL, else the agent's own]
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
    /// What the agent may do without asking [default: $PERMISSION_MODE, else ask where somebody can be asked, else read-only]
    #[arg(long, value_enum)]
    permissions: Option<PermissionsArg>,
    /// How hard the model should think
    #[arg(long, value_enum, value_name = "LEVEL")]
    thinking: Option<ThinkingArg>,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    output: OutputArg,
    /// Which output to ask of the agent's CLI
    #[arg(long, value_enum, default_value = "stream-json")]
    format: FormatArg,
    /// Give the agent a home of its own: no login, settings or history of yours
    #[arg(long)]
    isolated: bool,
    /// Obey settings that lie in the working directory; a repository can start programs with them
    #[arg(long)]
    trust_project: bool,
    /// One process for this turn
    #[arg(long)]
    cold: bool,
    /// The agent's program [default: $BACKEND_CLI_PATH, else found in PATH]
    #[arg(long, value_name = "PATH")]
    bin: Option<PathBuf>,
    /// Pass a variable on, or set it (repeatable)
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Hand an argument to the agent's CLI as it is (repeatable)
    #[arg(long = "agent-arg", value_name = "ARG", allow_hyphen_values = true)]
    agent_args: Vec<String>,
    /// Print what would be run, and stop
    #[arg(long)]
    dry_run: bool,
    /// Write every raw line of the agent to this file
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PermissionsArg {
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

/// Why a turn was not even tried.
struct Refused {
    exit: Exit,
    message: String,
}

impl Refused {
    fn usage(message: impl ToString) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }
}

/// Runs one prompt.
pub(crate) async fn run(args: RunArgs, settings: Settings, ui: &mut Ui) -> Exit {
    for warning in &settings.warnings {
        ui.notice(&format!("ostler: {warning}"));
    }
    let output = args.output;
    let dry_run = args.dry_run;
    let prepared = prepare(args, settings);
    let (agent, request, host) = match prepared {
        Ok(prepared) => prepared,
        Err(refused) => {
            ui.notice(&format!("ostler: {}", refused.message));
            return refused.exit;
        }
    };
    if dry_run {
        return plan::print(&agent, &request, output, ui);
    }
    let mut renderer = Renderer::new(output, ui);
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => {
            renderer.notice(&format!("ostler: could not listen for signals: {error}"));
            return Exit::Failed;
        }
    };
    let exit = match agent.start(request).await {
        Err(error) => refuse(&agent, &error, &mut renderer),
        Ok(turn) => {
            let mut tasks = JoinSet::new();
            tasks.spawn(signals.control(turn.control()));
            follow(turn, &mut renderer).await
        }
    };
    host.shutdown(CLEAN_UP).await;
    exit
}

fn prepare(args: RunArgs, settings: Settings) -> Result<(CliAgent, TurnRequest, Host), Refused> {
    let spec = match &args.agent {
        Some(name) => agent::resolve_provider(name).map_err(Refused::usage)?,
        None => settings.agent,
    };
    let is_backend = spec.name == settings.agent.name;
    let host = Host::new(HostConfig::from_environment(settings.environment.clone()));
    let cwd = working_directory(args.cwd.as_deref())?;
    let home = args.isolated.then(|| host.isolated_home(spec.name));
    let open = session(&args, spec, &host, &cwd, home.as_deref())?;
    let prompt = prompt::read(args.prompt.clone()).map_err(Refused::usage)?;
    let mut request = TurnRequest::new(prompt, cwd);
    request.open = open;
    request.memos = MemoKeeping::DataFolder;
    request.timeout = args.timeout.or(settings.timeout).unwrap_or(TurnRequest::DEFAULT_TIMEOUT);
    request.idle_timeout = args.idle_timeout.unwrap_or(TurnRequest::DEFAULT_IDLE_TIMEOUT);
    request.transcript.clone_from(&args.transcript);
    let options = &mut request.options;
    options.model = args.model.clone().or_else(|| settings.model.filter(|_| is_backend));
    options.system_prompt = system_prompt(&args)?;
    options.allowed_tools =
        Some(args.allow_tools.clone()).filter(|tools| !tools.is_empty()).or(settings.allowed_tools);
    options.max_turns = args.max_turns.or(settings.max_turns);
    let by_default =
        if spec.caps.supports_approvals { Permissions::Ask } else { Permissions::ReadOnly };
    options.permissions =
        args.permissions.map(Into::into).or(settings.permissions).unwrap_or(by_default);
    options.thinking = args.thinking.map(Into::into);
    options.format = args.format.into();
    options.extra_args.clone_from(&args.agent_args);
    options.env = args.env.iter().map(|pair| variable(pair)).collect();
    if args.trust_project {
        options.project_settings = ProjectSettings::Trusted;
    }
    options.home = home;
    let mut agent = CliAgent::new(spec, host.clone());
    if let Some(program) = args.bin.or(settings.program.filter(|_| is_backend)) {
        agent = agent.with_program(program);
    }
    Ok((agent, request, host))
}

fn working_directory(given: Option<&Path>) -> Result<PathBuf, Refused> {
    let here = || std::env::current_dir();
    let path = match given {
        None => here().map_err(|error| Refused::usage(format!("no working directory: {error}")))?,
        Some(path) => path.to_owned(),
    };
    // A path that does not exist is told by the request's validation, by the name that was given.
    Ok(std::fs::canonicalize(&path).unwrap_or(path))
}

fn session(
    args: &RunArgs,
    spec: &AgentSpec,
    host: &Host,
    cwd: &Path,
    home: Option<&Path>,
) -> Result<Open, Refused> {
    let memos = host.memos();
    let unreadable = |error: MemoError| Refused::usage(chain(&error));
    if let Some(id) = &args.session {
        request::check_session(id).map_err(Refused::usage)?;
        let memo = memos.load(spec.name, id).map_err(unreadable)?;
        return Ok(Open::Resume(Box::new(memo.unwrap_or_else(|| Memo::of_id(spec.name, id)))));
    }
    if args.continue_newest {
        let memo = memos.newest(spec.name, cwd, home).map_err(unreadable)?.ok_or_else(|| {
            Refused::usage(format!(
                "--continue: no session of {} in {} yet; run once without it",
                spec.name,
                cwd.display()
            ))
        })?;
        return Ok(Open::Resume(Box::new(memo)));
    }
    Ok(Open::New)
}

fn system_prompt(args: &RunArgs) -> Result<Option<String>, Refused> {
    let Some(path) = &args.system_file else {
        return Ok(args.system.clone());
    };
    std::fs::read_to_string(path)
        .map(Some)
        .map_err(|error| Refused::usage(format!("--system-file {}: {error}", path.display())))
}

fn variable(pair: &str) -> (String, Option<String>) {
    match pair.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (pair.to_owned(), None),
    }
}

/// Tells why nothing was started, in the form that was asked for.
fn refuse(agent: &CliAgent, error: &StartError, renderer: &mut Renderer<'_>) -> Exit {
    let (kind, exit) = match error {
        StartError::Binary(_) => (FailureKind::SpawnFailed, Exit::NotRunnable),
        StartError::Request(_) | StartError::Launch(_) | StartError::Transcript { .. } => {
            (FailureKind::InvalidRequest, Exit::Usage)
        }
        StartError::ShuttingDown => (FailureKind::Cancelled, Exit::Cancelled),
    };
    renderer.not_started(agent.spec().name, &Failure::new(kind, chain(error)));
    exit
}

/// The signals that end a turn. They are listened to before it starts.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }

    /// The first signal cancels the turn, the second kills it.
    ///
    /// A task of its own, because the one that prints may be stuck in a pipe
    /// that nobody reads. Then the second signal ends the program as well; the
    /// keeper sees to the agent.
    async fn control(mut self, turn: Control) {
        self.next().await;
        turn.cancel();
        self.next().await;
        turn.kill();
        tokio::time::sleep(CLEAN_UP).await;
        std::process::exit(Exit::Cancelled as i32);
    }
}

/// Shows the turn's events until its end.
async fn follow(mut turn: Turn, renderer: &mut Renderer<'_>) -> Exit {
    while let Some(event) = turn.next().await {
        let shown = renderer.event(&event);
        match (&event.body, shown) {
            (EventBody::Complete(report), Ok(())) => return exit_of(report),
            // Nobody got the answer: whatever the agent thinks, this run failed.
            (EventBody::Complete(report), Err(error)) => {
                renderer.notice(&format!("ostler: the answer could not be printed: {error}"));
                let exit = exit_of(report);
                return if exit == Exit::Answered { Exit::Failed } else { exit };
            }
            (_, Ok(())) => {}
            // Nobody reads any more: the turn is pointless, and is ended.
            (_, Err(_)) => turn.cancel(),
        }
    }
    Exit::Failed
}

fn exit_of(report: &TurnReport) -> Exit {
    match report.error.as_ref().map(|failure| failure.kind) {
        None => Exit::Answered,
        Some(FailureKind::SpawnFailed) => Exit::NotRunnable,
        Some(FailureKind::Timeout) => Exit::TimedOut,
        Some(FailureKind::Cancelled) => Exit::Cancelled,
        Some(_) => Exit::Failed,
    }
}

/// Reads `90s`, `10m`, `1h30m`, `500ms`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => text
            .parse::<jiff::SignedDuration>()
            .ok()
            .and_then(|duration| Duration::try_from(duration).ok()),
    };
    parsed
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "invalid timeout; give one above 0 such as 90s, 10m or 1h30m".to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let ms = |text| duration(text).map(|d| d.as_millis()).ok();
        assert_eq!(ms("90s"), Some(90_000));
        assert_eq!(ms("1h30m"), Some(5_400_000));
        assert_eq!(ms("500ms"), Some(500));
        assert_eq!(ms("2"), Some(2000));
        for wrong in ["0", "0s", "-1", "-5s", "soon", "", "nan", "inf"] {
            assert!(duration(wrong).unwrap_err().contains("invalid timeout"), "{wrong}");
        }
    }
}
