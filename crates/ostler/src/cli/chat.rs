//! `ostler chat`: one conversation, with the agent kept running between prompts.
//!
//! Sets the conversation up; how it is held is in `talk`.

mod aside;
mod input;
mod message;
mod queue;
mod requests;
mod speaker;
mod talk;
mod turns;

use clap::Args;
use ostler_core::{
    cli_agent::CliAgent,
    event::Mode,
    host::{Host, HostConfig},
    request::{Permissions, TurnRequest},
};
use tokio::{sync::mpsc, task::JoinSet};

pub(crate) use self::aside::Aside;
use self::{
    queue::{Queue, WhenBusy},
    talk::{Ears, Speech, Talk},
};
use super::{
    CLEAN_UP, Exit,
    render::Renderer,
    run,
    signals::{Signals, Wish},
    turn_args::{OutputArg, TurnArgs},
};
use crate::{config::Settings, ui::Ui};

/// How many turns that the agent begins by itself may wait to be shown.
const UNASKED_AHEAD: usize = 16;

#[derive(Args, Debug)]
pub(crate) struct ChatArgs {
    /// The first prompt
    prompt: Option<String>,
    /// What becomes of a prompt that comes while a turn runs
    #[arg(long, value_enum, default_value = "queue")]
    when_busy: WhenBusy,
    #[command(flatten)]
    turn: TurnArgs,
}

/// Holds a conversation.
pub(crate) async fn run(args: ChatArgs, settings: Settings, ui: &mut Ui) -> Exit {
    for warning in &settings.warnings {
        ui.notice(&format!("ostler: {warning}"));
    }
    let host = Host::new(HostConfig::from_environment(settings.environment.clone()));
    let output = args.turn.output;
    let speech = match output {
        OutputArg::StreamJson => Speech::Messages,
        OutputArg::Json | OutputArg::Text => Speech::Lines,
    };
    let (agent, mut request) = match args.turn.prepare(&settings, &host) {
        Ok(prepared) => prepared,
        Err(refused) => {
            ui.notice(&format!("ostler: {}", refused.message));
            return refused.exit;
        }
    };
    if !args.turn.cold {
        request.mode = Mode::Warm;
    }
    if speech == Speech::Lines && request.options.permissions == Permissions::Ask {
        ui.notice("ostler: warning: nobody can be asked here, so the agent may only look; --permissions bypass lets it do everything");
        request.options.permissions = Permissions::ReadOnly;
    }
    let mut renderer = Renderer::new(output, ui);
    if let Some(exit) = unusable(&agent, &request, &mut renderer) {
        return exit;
    }
    let (lines, signals) = match input::lines().and_then(|lines| Ok((lines, Signals::listen()?))) {
        Ok(heard) => heard,
        Err(error) => {
            renderer.notice(&format!("ostler: could not listen: {error}"));
            return Exit::Failed;
        }
    };
    let (wish, wishes) = mpsc::channel(1);
    let mut tasks = JoinSet::new();
    tasks.spawn(pass_on(signals, wish, host.clone()));
    let (unasked, turns) = mpsc::channel(UNASKED_AHEAD);
    let agent = agent.with_unasked(unasked);
    let ears = Ears { lines, wishes, unasked: turns };
    let talk = Talk::new(agent, request, speech, Queue::new(args.when_busy), renderer);
    let exit = Box::pin(talk.hold(args.prompt, ears)).await;
    host.shutdown(CLEAN_UP).await;
    exit
}

/// Tells now what would be wrong with every prompt.
fn unusable(agent: &CliAgent, request: &TurnRequest, renderer: &mut Renderer<'_>) -> Option<Exit> {
    let any = TurnRequest { prompt: "?".to_owned(), mode: Mode::OneShot, ..request.clone() };
    let error = agent.plan(&any).err()?;
    Some(run::refuse(agent, &error, renderer))
}

/// Passes signals on to the conversation.
///
/// That may be stuck in a pipe that nobody reads, and not take them. Then the
/// second one ends what runs, and the program.
async fn pass_on(mut signals: Signals, to: mpsc::Sender<Wish>, host: Host) {
    loop {
        let wish = signals.next().await;
        if to.try_send(wish).is_err() {
            host.shutdown(CLEAN_UP).await;
            std::process::exit(Exit::Cancelled as i32);
        }
    }
}
