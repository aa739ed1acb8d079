//! The same promises for an agent that is kept running: the real CLI in its own
//! protocol, held by `ostler chat` against the simulated model.

mod ask;
mod busy;
mod cancel;
mod cuts;
mod errors;
mod host;
mod prompts;
mod stdio;
mod turns;

/// Writes the tests of one file down for every agent that can be kept running.
macro_rules! for_every_warm_agent {
    ($($test:ident)*) => {
        mod claude {
            $(#[test] fn $test() { super::$test(&crate::conformance::CLAUDE); })*
        }
        mod codex {
            $(#[test] fn $test() { super::$test(&crate::conformance::CODEX); })*
        }
        mod gemini {
            $(#[test] fn $test() { super::$test(&crate::conformance::GEMINI); })*
        }
        mod opencode {
            $(#[test] fn $test() { super::$test(&crate::conformance::OPENCODE); })*
        }
        mod pi {
            $(#[test] fn $test() { super::$test(&crate::conformance::PI); })*
        }
    };
}
use for_every_warm_agent;

/// Writes tests down for the agents that come from a configuration.
macro_rules! for_every_own_agent {
    ($($test:ident)*) => {
        mod copilot {
            $(#[test] fn $test() { super::$test(&crate::conformance::COPILOT); })*
        }
        mod qwen {
            $(#[test] fn $test() { super::$test(&crate::conformance::QWEN); })*
        }
    };
}
use for_every_own_agent;

use super::rig::Rig;
use crate::support::{Place, is_live, until};

/// Returns the processes that Ostler started for this rig, keepers apart.
fn processes(rig: &Rig) -> Vec<u32> {
    processes_in(&rig.place)
}

fn processes_in(place: &Place) -> Vec<u32> {
    let mark = format!("TMPDIR={}", place.path("tmp").join("ostler-").display());
    let mut found: Vec<u32> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| is_live(*pid))
        .filter(|pid| {
            let variables = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&variables).split('\0').any(|one| one.starts_with(&mark))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Returns those of them that Ostler started itself: the CLI, not its tools.
fn leaders(rig: &Rig) -> Vec<u32> {
    leaders_in(&rig.place)
}

/// The same for a place in which something else than a rig runs them.
pub(super) fn leaders_in(place: &Place) -> Vec<u32> {
    let all = processes_in(place);
    let parent = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_whitespace().nth(1)?.parse().ok()
    };
    let is_leader = |pid: &u32| parent(pid).is_some_and(|parent: u32| !all.contains(&parent));
    all.iter().copied().filter(is_leader).collect()
}

/// Waits until nothing that Ostler started for this rig runs any more.
fn until_all_gone(rig: &Rig) {
    until("everything is gone", || processes(rig).is_empty().then_some(()));
}
