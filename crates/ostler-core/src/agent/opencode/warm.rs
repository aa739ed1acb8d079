//! OpenCode kept running: `opencode serve`, one process with many sessions in
//! many directories, spoken to over HTTP.
//!
//! Facts only. The command line has what holds for the whole process; the
//! directory, the model and the prompt's own system text go with each call. A
//! server that somebody else runs is spoken to in the same way (`attach`).

mod alarm;
mod answering;
mod asking;
mod attach;
mod call;
mod client;
mod ending;
mod event;
mod flat;
mod health;
mod launch;
mod meanwhile;
mod message;
mod outcome;
mod parts;
mod prompting;
mod reading;
mod records;
mod resync;
mod server;
mod session;
mod shown;
#[cfg(test)]
mod tests;
mod turn;
mod visit;

use std::time::Duration;

use crate::agent::{Signal, StopStep, WarmSpec};

/// How OpenCode is kept running.
pub(super) static WARM: WarmSpec = WarmSpec {
    sessions_per_process: 32,
    supports_steering: true,
    is_bound_to_directory: false,
    adopts: |_| true,
    // Every signal ends it at once. Turns are aborted before, which ends their
    // tools; what is left of a tool is the keeper's.
    stop: &[StopStep::Signal { signal: Signal::Term, wait: Duration::from_secs(2) }],
    launch: launch::launch,
    dialect: server::dialect,
    attach: Some(attach::ATTACH),
};
