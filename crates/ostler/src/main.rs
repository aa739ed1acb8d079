//! The `ostler` program: reads the command line and the environment, and does
//! what one of the commands says.

mod api;
mod archive;
mod background;
mod channel;
mod cli;
mod clients;
mod clock;
mod command;
mod config;
mod daemon;
mod gateway;
mod hooks;
mod id;
mod key;
mod logging;
mod media;
mod outbound;
mod program;
mod project;
mod prompt;
mod queue;
mod schedule;
mod socket;
mod store;
mod telemetry;
mod ui;
mod unruly;
mod wishes;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
