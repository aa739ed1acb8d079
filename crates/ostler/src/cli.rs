//! The command line: one file a command.

mod agents;
mod asker;
mod asking;
mod chat;
mod config;
mod demo;
mod doctor;
mod heartbeat;
mod history;
mod init;
mod keys;
mod pairing;
mod plan;
mod projects;
mod prompt;
mod queue;
mod rehearsal;
mod remote;
mod render;
mod requests;
mod run;
mod schedule;
mod send;
mod serve;
mod sessions;
mod shown;
mod signals;
mod sim;
mod store;
mod turn_args;
mod typed;

use std::{ffi::OsString, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};

use crate::{
    api::document,
    config::{Loaded, Loader, Problems, Settings, Trust, store_location},
    ui::Ui,
};

/// How long what runs may take to end when a command is done.
const CLEAN_UP: Duration = Duration::from_secs(5);

/// Coding agents behind one interface.
#[derive(Debug, Parser)]
#[command(name = "ostler", version, about, arg_required_else_help = true)]
struct Cli {
    /// The configuration file, instead of the one that lies where such files lie
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one prompt and print the answer
    Run(Box<run::RunArgs>),
    /// Hold a conversation: one agent, kept running between prompts
    Chat(Box<chat::ChatArgs>),
    /// Write prompt files to begin with: who the agent is, what it remembers
    Init(init::InitArgs),
    /// Run the gateway: take messages, answer them, lose none
    Serve(serve::ServeArgs),
    /// Give a message to the running gateway
    Send(Box<send::SendArgs>),
    /// Look at the gateway's conversations, reset them, or change their agent
    Sessions(sessions::SessionsArgs),
    /// Have something said at certain times: list, add, remove or run schedules
    Schedule(schedule::ScheduleArgs),
    /// Look at the projects of the HTTP service, make, change or delete them
    Projects(projects::ProjectsArgs),
    /// Make a heartbeat now: the agent looks whether something needs attention
    Heartbeat(heartbeat::HeartbeatArgs),
    /// Look at what was said in the gateway's conversations
    History(Box<history::HistoryArgs>),
    /// Make, list and revoke the keys of the HTTP service
    Keys(keys::KeysArgs),
    /// Let people in who asked in a chat, reject or forget them
    Pairing(pairing::PairingArgs),
    /// List the agents: installed or not, version, abilities
    Agents(agents::AgentsArgs),
    /// Say what is wrong on this machine, and what to do about it
    Doctor(doctor::DoctorArgs),
    /// Check and show the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Print the OpenAPI document of the HTTP service
    Openapi,
    /// Look at the jobs of the gateway, cancel them, or try them again
    Queue(queue::QueueArgs),
    /// Back up or check what the gateway has stored
    Store(store::StoreArgs),
    /// Tour the agents against a simulated model; needs no key and nothing installed
    Demo(demo::DemoArgs),
    /// Start the simulated model and print what each CLI needs to reach it
    Sim(sim::SimArgs),
    /// Play a coding agent from a script
    #[command(hide = true, disable_help_flag = true)]
    Scripted {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

/// The exit codes of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Answered = 0,
    Failed = 1,
    Usage = 2,
    NotRunnable = 3,
    TimedOut = 124,
    Cancelled = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Reads the command line and does what it says.
pub(crate) fn main() -> ExitCode {
    // The scripted agent is a baseline of the benchmarks, and plays CLIs whose
    // arguments must not be read as ours: nothing else happens before it.
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|word| word == "scripted") {
        return ostler_sim::scripted::main(args);
    }
    let cli = Cli::parse();
    let mut ui = Ui::default();
    // It tells itself what is wrong with the configuration.
    if let Command::Config(command) = cli.command {
        return config::run(command, cli.config, &mut ui).into();
    }
    if let Command::Openapi = cli.command {
        return openapi(&mut ui).into();
    }
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                ui.notice(&format!("ostler: could not start: {error}"));
                return Exit::Failed.into();
            }
        };
    let exit = runtime.block_on(obey(cli, &mut ui)).unwrap_or_else(|problems| {
        problems.lines().for_each(|line| ui.notice(&format!("ostler: {line}")));
        Exit::Usage
    });
    runtime.shutdown_background();
    exit.into()
}

/// Does what the command says, unless the configuration is wrong.
async fn obey(cli: Cli, ui: &mut Ui) -> Result<Exit, Problems> {
    if let Command::Queue(args) = cli.command {
        let loaded = load(cli.config)?;
        let location = store_location(&loaded).await?;
        return Ok(queue::run(args, &location, &loaded.host_config().data_dir, ui).await);
    }
    if let Command::Store(args) = cli.command {
        return Ok(store::run(args, &store_location(&load(cli.config)?).await?, ui).await);
    }
    if let Command::Send(args) = cli.command {
        return Ok(send::run(*args, &load(cli.config)?, ui).await);
    }
    if let Command::Sessions(args) = cli.command {
        return sessions::run(args, load(cli.config)?, ui).await;
    }
    if let Command::Schedule(args) = cli.command {
        return schedule::run(args, load(cli.config)?, ui).await;
    }
    if let Command::Projects(args) = cli.command {
        return Box::pin(projects::run(args, load(cli.config)?, ui)).await;
    }
    if let Command::Keys(args) = cli.command {
        return keys::run(args, load(cli.config)?, ui).await;
    }
    if let Command::Pairing(args) = cli.command {
        return pairing::run(args, load(cli.config)?, ui).await;
    }
    if let Command::Heartbeat(args) = cli.command {
        return Ok(heartbeat::run(args, &load(cli.config)?, ui).await);
    }
    if let Command::Init(args) = cli.command {
        // As the gateway would that is started here.
        let loaded = Loader::from_process(cli.config, Trust::Everything).load()?;
        return Ok(init::run(&args, &loaded, ui));
    }
    if let Command::History(args) = cli.command {
        return history::run(*args, load(cli.config)?, ui).await;
    }
    if let Command::Serve(args) = cli.command {
        let loader = Loader::from_process(cli.config, Trust::Everything);
        return Box::pin(serve::run(args, loader)).await;
    }
    let settings = settings(&cli).await?;
    Ok(match cli.command {
        Command::Run(args) => run::run(*args, settings, ui).await,
        Command::Chat(args) => chat::run(*args, settings, ui).await,
        Command::Agents(args) => agents::run(args, settings, ui).await,
        Command::Doctor(args) => doctor::run(args, settings, ui).await,
        Command::Demo(args) => demo::run(args, settings, ui).await,
        Command::Sim(args) => sim::run(args, ui).await,
        Command::Config(_)
        | Command::Heartbeat(_)
        | Command::History(_)
        | Command::Init(_)
        | Command::Projects(_)
        | Command::Openapi
        | Command::Keys(_)
        | Command::Pairing(_)
        | Command::Queue(_)
        | Command::Schedule(_)
        | Command::Send(_)
        | Command::Serve(_)
        | Command::Sessions(_)
        | Command::Store(_)
        | Command::Scripted { .. } => Exit::Usage,
    })
}

/// Prints what the HTTP service can do, which is the same on every machine.
fn openapi(ui: &mut Ui) -> Exit {
    match document::text().and_then(|text| ui.line(text)) {
        Ok(()) => Exit::Answered,
        Err(error) => {
            ui.notice(&format!("ostler: {error}"));
            Exit::Failed
        }
    }
}

/// Reads the configuration, for a command that may be run anywhere.
async fn settings(cli: &Cli) -> Result<Settings, Problems> {
    let single = if let Command::Run(args) = &cli.command { Some(&args.turn) } else { None };
    let held = if let Command::Chat(args) = &cli.command { Some(&args.turn) } else { None };
    let trusts_project = single.or(held).is_some_and(|turn| turn.trust_project);
    let trust = if trusts_project { Trust::Everything } else { Trust::Named };
    let loaded = Loader::from_process(cli.config.clone(), trust).load()?;
    // Only a single turn is sure to be with one agent.
    let only = single.map(|turn| turn.agent_name(&loaded).to_owned());
    Settings::new(loaded, only.as_deref()).await
}

/// Reads the configuration, for a command that runs no turns itself.
fn load(file: Option<PathBuf>) -> Result<Loaded, Problems> {
    Loader::from_process(file, Trust::Named).load()
}
