//! What it brings to keep an agent running, and what Ostler costs in between.
//!
//! `pairs` measures each agent beside itself: by a minimal client of its own
//! protocol and through Ostler, kept and started anew. `daemon` measures the
//! gateway as a process, `http` its HTTP service, and `chats` what people meet in a
//! chat. `peers` measures one scripted agent through Ostler and through other
//! gateways.
//!
//! `scripts/bench` runs this. It exits with 1 when a limit does not hold. Words
//! after `--` choose the parts: `scripted`, `daemon`, `http`, `chats`, `real`,
//! `peers`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a benchmark prints, starts programs, and may give up"
)]

mod chats;
#[path = "../../tests/shared/client.rs"]
mod client;
mod daemon;
#[path = "../../tests/shared/discord/double.rs"]
#[expect(dead_code, unused_imports, reason = "the double can do more than is asked of it here")]
mod discord_double;
mod figures;
mod http;
mod opencode;
mod pairs;
mod peers;
mod process;
mod raw;
mod service;
mod stand;
#[path = "../../tests/shared/twilio/double.rs"]
#[expect(dead_code, unused_imports, reason = "the double can do more than is asked of it here")]
mod twilio_double;

use std::{path::Path, process::ExitCode};

use ostler_sim::model;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |part: &str| words.is_empty() || words.iter().any(|word| word == part);
    let place = tempfile::Builder::new().prefix("ow").tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut fine = true;
    if is_wanted("scripted") {
        println!("warm, scripted agent (limit: 1 ms a turn over a raw client)");
        fine &= pairs::scripted(place.path(), &runtime);
    }
    if is_wanted("daemon") {
        fine &= daemon::measure(place.path(), &runtime);
    }
    if is_wanted("http") {
        fine &= service::measure(place.path(), &runtime);
    }
    if is_wanted("chats") {
        fine &= chats::measure(place.path());
    }
    if is_wanted("real") {
        match std::env::var_os("OSTLER_TEST_CLIS") {
            None => println!("\nreal CLIs: skipped, OSTLER_TEST_CLIS does not say where they are"),
            Some(clis) => fine &= real(place.path(), &runtime, Path::new(&clis)),
        }
    }
    if is_wanted("peers") {
        match std::env::var_os("OSTLER_BENCH_PEERS") {
            None => println!("\npeers: skipped, OSTLER_BENCH_PEERS does not say where they are"),
            Some(folder) => peers::compare(place.path(), &runtime, Path::new(&folder)),
        }
    }
    println!("\nlimits {}", if fine { "hold" } else { "DO NOT HOLD" });
    ExitCode::from(u8::from(!fine))
}

fn real(place: &Path, runtime: &Runtime, clis: &Path) -> bool {
    println!(
        "\nwarm, real CLIs (limits: 5 ms or 10 % a turn over a raw client, and how many times \
         faster than cold)"
    );
    let sim = runtime.block_on(model::Sim::start(model::Options::default())).unwrap();
    let fine = pairs::real(place, runtime, clis, &sim);
    runtime.block_on(sim.stop());
    fine
}
