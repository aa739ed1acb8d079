//! The gateway as a process: how soon it is there, what it takes, and what it
//! adds to a turn that it stores.

mod crowd;
mod disk;
pub(crate) mod gateway;
mod intake;
pub(crate) mod kept;

use std::{fs, path::Path, time::Duration};

use ostler_core::agent::AGENTS;
use serde_json::json;
use tokio::runtime::Runtime;

use self::gateway::{Daemon, Ground};
use crate::figures::quartiles;

/// How often a start is measured.
const STARTS: usize = 20;
/// How long it may take, in milliseconds.
const READY_LIMIT: f64 = 100.0;
/// What may be resident of a gateway that has nothing to do, in MB.
const IDLE_LIMIT: f64 = 25.0;
/// How long a gateway is left alone before it counts as idle.
const REST: Duration = Duration::from_secs(2);

/// Measures everything; returns whether the limits hold.
pub(crate) fn measure(place: &Path, runtime: &Runtime) -> bool {
    let place = place.join("daemon");
    println!("\ngateway, ready (limit: {READY_LIMIT:.0} ms from its start to its hello)");
    let mut fine = ready(&place);
    println!("\ngateway, idle (limit: {IDLE_LIMIT:.0} MB resident)");
    fine &= idle(&place);
    println!(
        "\ngateway, kept agents, everything stored (limit: {:.0} ms a turn over a raw client)",
        kept::LIMIT
    );
    fine &= kept::compare(&place, runtime);
    fine &= intake::measure(&place);
    fine &= crowd::measure(&place);
    fine
}

/// Starts gateways on a store that is there and on new ones, in turns.
fn ready(place: &Path) -> bool {
    let old = Ground::new(&place.join("old"), &json!({}));
    Daemon::start(&old).stop();
    let (mut again, mut first) = (Vec::new(), Vec::new());
    for round in 0..STARTS {
        let new = Ground::new(&place.join(format!("new-{round}")), &json!({}));
        for (ground, took) in [(&old, &mut again), (&new, &mut first)] {
            let daemon = Daemon::start(ground);
            took.push(daemon.ready_ms);
            daemon.stop();
        }
    }
    let mut fine = true;
    for (what, took) in [("its store is there", again), ("a new store", first)] {
        fine &= crate::figures::median(took.clone()) <= READY_LIMIT;
        println!("  {what:<20} n={STARTS:<4} ready ms {}", quartiles(took));
    }
    fine
}

/// Looks at a gateway that has done nothing yet, and at one that has worked.
fn idle(place: &Path) -> bool {
    let ground = Ground::new(&place.join("idle"), &json!({}));
    let daemon = Daemon::start(&ground);
    std::thread::sleep(REST);
    let fresh = daemon.memory();
    let mut turns = kept::Kept::new(daemon.client(), "claude");
    for _ in 0..100 {
        crate::figures::Gateway::turn(&mut turns);
    }
    drop(turns);
    std::thread::sleep(REST);
    let worked = daemon.memory();
    daemon.stop();
    for (what, memory) in [("after its start", fresh), ("after 100 turns", worked)] {
        println!(
            "  {what:<20} {:5.1} MB resident, {:.1} MB of it anonymous",
            memory.resident, memory.anonymous
        );
    }
    fresh.resident <= IDLE_LIMIT && worked.resident <= IDLE_LIMIT
}

/// Puts agents that are played where a gateway finds them by their own names.
fn install_agents(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for spec in AGENTS {
        let played = crate::stand::scripted_agent(folder, &spec.name);
        fs::rename(played, folder.join(&*spec.program)).unwrap();
    }
}
