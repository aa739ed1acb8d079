//! Each agent beside itself.
//!
//! Four ways to the same answer, interleaved in one run: the CLI started for it,
//! directly and through `ostler run`; and a turn in a process that is there
//! already, by a minimal client of the CLI's own protocol and through the
//! library. Printed are medians with quartiles of the time to the first text and
//! of the whole turn, and of the paired differences.

use std::{path::Path, time::Duration};

use ostler_core::{
    agent::{AGENTS, Stdin},
    event::Mode,
};
use ostler_sim::model;
use tokio::runtime::Runtime;

use crate::{
    figures::{Column, FIRST_TEXT, PROMPT, TOTAL, Took, column, median, quartiles},
    process::{run, with_variable},
    raw,
    stand::Stand,
};

/// How often a turn in a process that is there is measured.
const WARM_ROUNDS: usize = 100;
/// How often a turn with a process of its own is.
const COLD_ROUNDS: usize = 10;
/// How many sessions are opened beside those of the other measurements.
const IDLE_SESSIONS: usize = 10;

/// The agent whose server the scripted one does not play.
const NOT_PLAYED: &str = "opencode";

/// How many times faster than cold a kept turn has to be.
const FASTER: [(&str, f64); 5] =
    [("claude", 4.0), ("codex", 2.5), ("gemini", 10.0), ("opencode", 10.0), ("pi", 20.0)];

/// Measures the scripted agents; returns whether the limit holds.
pub(crate) fn scripted(place: &Path, runtime: &Runtime) -> bool {
    let mut fine = true;
    for spec in AGENTS.iter().copied().filter(|spec| spec.name != NOT_PLAYED) {
        let stand = Stand::scripted(place, spec, runtime);
        let (over, _) = warm(&stand);
        fine &= over <= 1.0;
        stand.shut_down();
    }
    fine
}

/// Measures the real CLIs; returns whether the limits hold.
pub(crate) fn real(place: &Path, runtime: &Runtime, clis: &Path, sim: &model::Sim) -> bool {
    let mut fine = true;
    for spec in AGENTS {
        let stand = Stand::real(place, spec, runtime, clis, sim);
        let (over, raw) = warm(&stand);
        fine &= over <= 5.0 || over <= raw * 0.1;
        let ratio = cold(&stand);
        fine &= FASTER.iter().all(|(name, least)| *name != stand.name || ratio >= *least);
        memory(&stand);
        stand.shut_down();
    }
    fine
}

/// Measures turns in processes that are there; returns the medians of what
/// Ostler adds and of the raw turns.
fn warm(stand: &Stand<'_>) -> (f64, f64) {
    let plan = stand.plan(Mode::Warm);
    let mut raw = raw::start(stand.name, stand.command(&plan), &stand.request);
    let mut memo = None;
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    for round in 0..WARM_ROUNDS + 5 {
        rest(stand);
        let one = raw.turn();
        rest(stand);
        let other = stand.turn(&mut memo);
        // The first rounds start the processes and fill caches.
        if round >= 5 {
            direct.push(one);
            through.push(other);
        }
    }
    let over = |of: Column| -> Vec<f64> {
        direct.iter().zip(&through).map(|(one, other)| of(other) - of(one)).collect()
    };
    for (what, of) in [("first text", FIRST_TEXT), ("whole turn", TOTAL)] {
        println!(
            "  {:<8} n={:<4} {what} ms  raw {}  ostler {}  over {}",
            stand.name,
            direct.len(),
            quartiles(column(&direct, of)),
            quartiles(column(&through, of)),
            quartiles(over(of)),
        );
    }
    (median(over(TOTAL)), median(column(&direct, TOTAL)))
}

/// Waits until a CLI's connection to its model has come to rest: used again
/// within 40 ms, it can meet a delayed acknowledgement, and the one of the
/// two that comes sooner would pay for it.
fn rest(stand: &Stand<'_>) {
    if stand.is_real {
        std::thread::sleep(Duration::from_millis(60));
    }
}

/// Measures turns with a process of their own; returns how many times faster the
/// kept ones are.
fn cold(stand: &Stand<'_>) -> f64 {
    let plan = stand.plan(Mode::OneShot);
    let stdin = match &plan.line.stdin {
        Stdin::Bytes(bytes) => bytes.clone(),
        Stdin::Null | Stdin::Open => Vec::new(),
    };
    let (mut direct, mut through, mut kept) = (Vec::new(), Vec::new(), Vec::<Took>::new());
    let mut memo = None;
    stand.turn(&mut memo);
    for round in 0..COLD_ROUNDS + 1 {
        let one = run(&mut stand.command(&plan), &stdin);
        let other = run(&mut stand.ostler("run", "json"), PROMPT.as_bytes());
        let third = stand.turn(&mut memo);
        if round >= 1 {
            direct.push(one);
            through.push(other);
            kept.push(third);
        }
    }
    let ratio = median(direct.clone()) / median(column(&kept, TOTAL));
    println!(
        "  {:<8} n={:<4} whole turn ms  cold {}  cold ostler {}  kept ostler {}  {ratio:.1} times faster",
        stand.name,
        direct.len(),
        quartiles(direct),
        quartiles(through),
        quartiles(column(&kept, TOTAL)),
    );
    ratio
}

/// Measures the memory of sessions that wait.
fn memory(stand: &Stand<'_>) {
    for _ in 0..IDLE_SESSIONS {
        stand.turn(&mut None);
    }
    // Keepers have the folder of Ostler and not one for themselves.
    let folder = stand.place.join("tmp/ostler-");
    let found = with_variable(&format!("TMPDIR={}", folder.display()));
    println!(
        "  {:<8} {} idle sessions: {} processes, {} MB resident",
        stand.name,
        IDLE_SESSIONS + 2,
        found.len(),
        found.iter().map(|one| one.kilobytes).sum::<u64>() / 1000
    );
}
