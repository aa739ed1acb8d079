//! Codex kept running: `codex app-server`, one process with many threads.
//!
//! Facts only. What differs between sessions is said per thread and turn, so
//! the command line has none of it and sessions can share a process.

mod approval;
mod asking;
mod fault;
mod item;
mod launch;
mod message;
mod notice;
mod opening;
mod reading;
mod reopening;
mod server;
mod session;
mod stopping;
#[cfg(test)]
mod tests;
mod thread;
mod turn;

use std::time::Duration;

use crate::agent::{Signal, StopStep, WarmSpec};

/// How Codex is kept running.
pub(super) static WARM: WarmSpec = WarmSpec {
    sessions_per_process: 32,
    supports_steering: true,
    is_bound_to_directory: false,
    adopts: |_| true,
    // Both end the running tools as well.
    stop: &[
        StopStep::CloseStdin { wait: Duration::from_secs(2) },
        StopStep::Signal { signal: Signal::Term, wait: Duration::from_secs(2) },
    ],
    launch: launch::launch,
    dialect: server::dialect,
    attach: None,
};
