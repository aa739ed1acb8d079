//! `ostler run`: one prompt, one answer.

use clap::Args;
use ostler_core::{
    cli_agent::{CliAgent, StartError},
    event::{EventBody, TurnReport},
    failure::{Failure, FailureKind, chain},
    host::{Host, HostConfig},
    registry::Agent as _,
    request::TurnRequest,
    turn::{Control, Turn},
};
use tokio::task::JoinSet;

use super::{
    CLEAN_UP, Exit, plan, prompt,
    render::Renderer,
    signals::Signals,
    turn_args::{Refused, TurnArgs},
};
use crate::{config::Settings, ui::Ui};

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The prompt; `-`, or nothing off a terminal, reads standard input
    prompt: Option<String>,
    /// Print what would be run, and stop
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    turn: TurnArgs,
}

/// Runs one prompt.
pub(crate) async fn run(args: RunArgs, settings: Settings, ui: &mut Ui) -> Exit {
    for warning in &settings.warnings {
        ui.notice(&format!("ostler: {warning}"));
    }
    let output = args.turn.output;
    let host = Host::new(HostConfig::from_environment(settings.environment.clone()));
    let (agent, request) = match prepare(&args, &settings, &host) {
        Ok(prepared) => prepared,
        Err(refused) => {
            ui.notice(&format!("ostler: {}", refused.message));
            return refused.exit;
        }
    };
    if args.dry_run {
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
            tasks.spawn(control(signals, turn.control()));
            follow(turn, &mut renderer).await
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

/// Tells why nothing was started, in the form that was asked for.
pub(crate) fn refuse(agent: &CliAgent, error: &StartError, renderer: &mut Renderer<'_>) -> Exit {
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
