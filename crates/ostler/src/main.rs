//! The `ostler` program: reads the command line and the environment, and does
//! what one of the commands says.

mod channel;
mod cli;
mod clock;
mod config;
mod daemon;
mod gateway;
#[cfg_attr(not(test), expect(dead_code, reason = "used by the gateway's runtime"))]
mod id;
mod logging;
#[cfg_attr(not(test), expect(dead_code, unused_imports, reason = "used by the gateway's runtime"))]
mod queue;
mod socket;
#[cfg_attr(not(test), expect(dead_code, unused_imports, reason = "used by the gateway's runtime"))]
mod store;
mod ui;
mod wishes;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
