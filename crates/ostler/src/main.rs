//! The `ostler` program: reads the command line and the environment, and does
//! what one of the commands says.

mod cli;
mod config;
mod ui;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
