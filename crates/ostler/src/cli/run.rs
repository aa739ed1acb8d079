//! `ostler run`: one prompt, one answer.

mod daemon;

use std::time::Duration;

use clap::Args;
use ostler_core::{
    cli_agent::{CliAgent, StartError},
    event::{EventBody, Mode, TurnReport},
    failure::{Failure, FailureKind},
    host::Host,
    registry::Agent as _,
    request::{Permissions, TurnRequest},
    turn::{Control, Turn},
};
use tokio::task::JoinSet;

use super::{
    CLEAN_UP, Exit,
    asker::Asker,
    plan, prompt,
    render::Renderer,
    shown::Shown,
    signals::Signals,
    turn_args::{OutputArg, Refused, TurnArgs},
    typed,
};
use crate::{config::Settings, ui::Ui};

/// How long a server may take to answer before a turn. It may be busy, so this
/// is longer than for a mere look at it.
const SERVER_LIMIT: Duration = Duration::from_secs(10);

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The prompt; `-`, or nothing off a terminal, reads standard input
    prompt: Option<String>,
    /// Print what would be run, and stop
    #[arg(long)]
    dry_run: bool,
    /// Let the running gateway do it
    #[arg(long, conflicts_with_all = ["dry_run", "bin", "env", "agent_args", "transcript"])]
    daemon: bool,
    #[command(flatten)]
    pub(crate) turn: TurnArgs,
}

/// Runs one prompt.
pub(crate) async fn run(args: RunArgs, settings: Settings, ui: &mut Ui) -> Exit {
    for warning in &settings.warnings {
        ui.notice(&format!("ostler: {warning}"));
    }
    let output = args.turn.output;
    let host = Host::new(settings.host_config());
    if args.daemon {
        return daemon::run(&args, &settings, &host, ui).await;
    }
    let (agent, mut request) = match prepare(&args, &settings, &host) {
        Ok(prepared) => prepared,
        Err(refused) => {
            ui.notice(&format!("ostler: {}", refused.message));
            return refused.exit;
        }
    };
    if args.dry_run {
        return plan::print(&agent, &request, output, ui);
    }
    warn_if_cold(&args.turn, &agent, ui);
    let asker = if may_ask(&args.turn, &agent, &request) { Asker::open() } else { None };
    if asker.is_some() {
        request.mode = Mode::Warm;
    }
    let mut renderer = Renderer::new(output, ui);
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => {
            renderer.notice(&format!("ostler: could not listen for signals: {error}"));
            return Exit::Failed;
        }
    };
    let started = match out_of_reach(&agent).await {
        Some(error) => Err(error),
        None => agent.start(request).await,
    };
    let exit = match started {
        Err(error) => {
            let (exit, failure) = refusal(&error);
            renderer.not_started(&agent.spec().name, &failure);
            exit
        }
        Ok(turn) => {
            let mut tasks = JoinSet::new();
            tasks.spawn(control(signals, turn.control()));
            follow(turn, asker, &mut renderer).await
        }
    };
    host.shutdown(CLEAN_UP).await;
    exit
}

fn prepare(
    args: &RunArgs,
    settings: &Settings,
    host: &Host,
) -> Result<(CliAgent, TurnRequest), Refused> {
    let (agent, mut request) = args.turn.prepare(settings, host)?;
    request.prompt = prompt::read(args.prompt.clone()).map_err(Refused::usage)?;
    Ok((agent, request))
}

/// Returns what is wrong with the server that an agent is attached to, if
/// anything is. A turn there could only fail, and later.
pub(crate) async fn out_of_reach(agent: &CliAgent) -> Option<StartError> {
    let health = agent.ask_server(SERVER_LIMIT).await?;
    health.err().map(StartError::Server)
}

/// Returns how to tell that nothing was started.
pub(crate) fn refusal(error: &StartError) -> (Exit, Failure) {
    let exit = match error {
        StartError::Binary(_) | StartError::Server(_) => Exit::NotRunnable,
        StartError::Request(_) | StartError::Launch(_) | StartError::Transcript { .. } => {
            Exit::Usage
        }
        StartError::ShuttingDown => Exit::Cancelled,
    };
    (exit, error.failure())
}

/// The first signal cancels the turn, the second kills it.
///
/// A task of its own, because the one that prints may be stuck in a pipe
/// that nobody reads. Then the second signal ends the program as well; the
/// keeper sees to the agent.
async fn control(mut signals: Signals, turn: Control) {
    signals.next().await;
    turn.cancel();
    signals.next().await;
    turn.kill();
    tokio::time::sleep(CLEAN_UP).await;
    std::process::exit(Exit::Cancelled as i32);
}

/// Says that there is no process for each turn where there is none at all.
pub(crate) fn warn_if_cold(args: &TurnArgs, agent: &CliAgent, ui: &mut Ui) {
    if let Some(server) = agent.server().filter(|_| args.cold) {
        let url = server.url();
        ui.notice(&format!(
            "ostler: warning: --cold does nothing: turns go to the server at {url}"
        ));
    }
}

/// Returns whether permissions can be asked for while the turn runs: the agent
/// has a way to ask, and somebody is there.
fn may_ask(args: &TurnArgs, agent: &CliAgent, request: &TurnRequest) -> bool {
    request.options.permissions == Permissions::Ask
        && !args.cold
        && args.output == OutputArg::Text
        && agent.spec().warm.is_some()
        && agent.spec().caps.supports_approvals
        && typed::somebody_is_there()
}

/// Shows the turn's events until its end, and asks whoever can be asked.
async fn follow(mut turn: Turn, mut asker: Option<Asker>, renderer: &mut Renderer<'_>) -> Exit {
    loop {
        let event = tokio::select! {
            event = turn.next() => event,
            reply = Asker::reply(asker.as_mut()) => {
                if let Some(asker) = &mut asker {
                    asker.replied(reply, &mut turn, renderer).await;
                }
                continue;
            }
        };
        let Some(event) = event else { return Exit::Failed };
        let shown = renderer.event(&event);
        if let Some(asker) = &mut asker {
            asker.event(&Shown::of(&event), renderer);
        }
        match (&event.body, shown) {
            (EventBody::Complete(report), Ok(())) => return exit_of(failure_of(report)),
            // Nobody got the answer: whatever the agent thinks, this run failed.
            (EventBody::Complete(report), Err(error)) => {
                renderer.notice(&format!("ostler: the answer could not be printed: {error}"));
                let exit = exit_of(failure_of(report));
                return if exit == Exit::Answered { Exit::Failed } else { exit };
            }
            (_, Ok(())) => {}
            // Nobody reads any more: the turn is pointless, and is ended.
            (_, Err(_)) => turn.cancel(),
        }
    }
}

fn failure_of(report: &TurnReport) -> Option<FailureKind> {
    report.error.as_ref().map(|failure| failure.kind)
}

/// Returns the exit code of a turn that failed like this, or did not.
pub(crate) fn exit_of(failure: Option<FailureKind>) -> Exit {
    match failure {
        None => Exit::Answered,
        Some(FailureKind::SpawnFailed) => Exit::NotRunnable,
        Some(FailureKind::Timeout) => Exit::TimedOut,
        Some(FailureKind::Cancelled) => Exit::Cancelled,
        Some(_) => Exit::Failed,
    }
}
