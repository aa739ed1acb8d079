//! The `ostler` program: reads the command line and the environment, and does
//! what one of the commands says.

mod archive;
mod channel;
mod cli;
mod clock;
mod config;
mod daemon;
mod gateway;
mod id;
mod logging;
mod outbound;
mod queue;
mod socket;
mod store;
mod ui;
mod wishes;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
