//! `ostler chat`: one conversation, with the agent kept running between prompts.
//!
//! Sets the conversation up; how it is held is in `talk`.

mod aside;
mod command;
mod editor;
mod input;
mod message;
mod person;
mod queue;
mod saying;
mod setup;
mod source;
mod speaker;
mod talk;
mod turns;

use std::io;

use clap::Args;
use ostler_core::{
    cli_agent::CliAgent, event::Mode, failure::Failure, host::Host, request::TurnRequest,
};
use tokio::{sync::mpsc, task::JoinSet};

pub(crate) use self::aside::Aside;
use self::{
    editor::Editor,
    queue::{Queue, WhenBusy},
    setup::Setup,
    source::Source,
    talk::{Ears, Speech, Talk},
};
use super::{
    CLEAN_UP, Exit,
    render::Renderer,
    run,
    signals::{Signals, Wish},
    turn_args::{OutputArg, TurnArgs},
    typed::{self, Typed},
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
    pub(crate) turn: TurnArgs,
}

/// Holds a conversation.
pub(crate) async fn run(args: ChatArgs, settings: Settings, ui: &mut Ui) -> Exit {
    for warning in &settings.warnings {
        ui.notice(&format!("ostler: {warning}"));
    }
    let host = Host::new(settings.host_config());
    let output = args.turn.output;
    let (unasked, turns) = mpsc::channel(UNASKED_AHEAD);
    let speech = speech(output, ui);
    let agents = settings.roster.iter().map(|spec| spec.name.to_string()).collect();
    let setup = Setup { args: args.turn, settings, host: host.clone(), speech, unasked };
    let begun = match setup.begin() {
        Ok(begun) => begun,
        Err(refused) => {
            ui.notice(&format!("ostler: {}", refused.message));
            return refused.exit;
        }
    };
    if let Some(warning) = begun.warning {
        ui.notice(&format!("ostler: warning: {warning}"));
    }
    run::warn_if_cold(&setup.args, &begun.agent, ui);
    let refusal = match unusable(&begun.agent, &begun.request) {
        Some(refusal) => Some(refusal),
        None => run::out_of_reach(&begun.agent).await.map(|error| run::refusal(&error)),
    };
    if let Some((exit, failure)) = refusal {
        Renderer::new(output, ui).not_started(&begun.agent.spec().name, &failure);
        return exit;
    }
    let (source, signals) =
        match source(speech, agents, ui).and_then(|source| Ok((source, Signals::listen()?))) {
            Ok(heard) => heard,
            Err(error) => {
                ui.notice(&format!("ostler: could not listen: {error}"));
                return Exit::Failed;
            }
        };
    let (wish, wishes) = mpsc::channel(1);
    let mut tasks = JoinSet::new();
    tasks.spawn(pass_on(signals, wish, host.clone()));
    let talk = Talk::new(setup, begun, Queue::new(args.when_busy), Renderer::new(output, ui));
    let ears = Ears { source, wishes, unasked: turns };
    let exit = Box::pin(talk.hold(args.prompt, ears)).await;
    host.shutdown(CLEAN_UP).await;
    exit
}

fn speech(output: OutputArg, ui: &Ui) -> Speech {
    match output {
        OutputArg::StreamJson => Speech::Messages,
        OutputArg::Text if typed::somebody_is_there() && ui.is_terminal() => Speech::Person,
        OutputArg::Json | OutputArg::Text => Speech::Lines,
    }
}

fn source(speech: Speech, agents: Vec<String>, ui: &mut Ui) -> io::Result<Source> {
    if speech != Speech::Person {
        return input::lines().map(Source::Pipe);
    }
    let (editor, above) = Editor::start(agents)?;
    ui.print_above(above);
    Ok(Source::Terminal { editor, typed: Typed::open().ok() })
}

/// Returns what would be wrong with every prompt.
fn unusable(agent: &CliAgent, request: &TurnRequest) -> Option<(Exit, Failure)> {
    let any = TurnRequest { prompt: "?".to_owned(), mode: Mode::OneShot, ..request.clone() };
    agent.plan(&any).err().map(|error| run::refusal(&error))
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
