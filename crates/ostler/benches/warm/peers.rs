//! The same turn of one scripted ACP agent through Ostler and through other
//! gateways, interleaved in one run.
//!
//! Two tables: a turn of an agent that is kept, and everything from nothing to
//! the end of the first turn. Printed are medians with quartiles, ratios to a raw
//! client, and what the gateways' own processes take, the agent apart.

mod acpx;
mod ours;
mod sandbox_agent;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use tokio::runtime::Runtime;

use crate::{
    figures::{FIRST_TEXT, Gateway, TOTAL, Took, column, median, ms, quartiles},
    process::{MARK, with_variable},
    stand::scripted_agent,
};

/// The agent that is played; Ostler speaks ACP with it, too.
const AGENT: &str = "gemini";

/// How often a kept turn is measured.
const ROUNDS: usize = 100;
/// How often a start is.
const STARTS: usize = 10;

/// Where a gateway is measured, and what with.
pub(crate) struct Ground<'a> {
    runtime: &'a Runtime,
    /// Where the peers are installed.
    peers: &'a Path,
    /// A folder of the gateway's own.
    place: PathBuf,
    /// An executable that speaks ACP when it is called with `--acp`.
    agent: PathBuf,
}

impl Ground<'_> {
    /// Returns a folder in the gateway's own, which is there.
    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.place.join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Gives a command of the gateway its environment, and its mark.
    fn dress(&self, command: &mut Command) {
        let folder = self.peers.join("node_modules/.bin");
        command
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
            .env("HOME", self.folder("home"))
            .env("TMPDIR", self.folder("tmp"))
            .env(MARK, &self.place)
            .current_dir(self.folder("work"));
    }
}

/// Something to be measured.
struct Entry {
    name: &'static str,
    start: for<'a> fn(&'a Ground<'a>) -> Box<dyn Gateway + 'a>,
    /// Whether it keeps the agent from one turn to the next.
    keeps: bool,
    /// Whether it has processes of its own.
    is_apart: bool,
    /// How many times rarer than the others it is measured.
    rarer: usize,
}

const ENTRIES: [Entry; 9] = [
    entry("raw client", ours::raw, true, false, 1),
    entry("ostler, library", ours::library, true, false, 1),
    entry("ostler chat", ours::chat, true, true, 1),
    entry("ostler run", ours::run, false, false, 1),
    entry("ostler, HTTP", ours::http, true, true, 1),
    entry("sandbox-agent", sandbox_agent::start, true, true, 1),
    entry("acpx, library", acpx::library, true, true, 5),
    entry("acpx prompt", acpx::session, true, true, 10),
    entry("acpx exec", acpx::exec, false, false, 2),
];

const fn entry(
    name: &'static str,
    start: for<'a> fn(&'a Ground<'a>) -> Box<dyn Gateway + 'a>,
    keeps: bool,
    is_apart: bool,
    rarer: usize,
) -> Entry {
    Entry { name, start, keeps, is_apart, rarer }
}

/// Measures all of them and prints the tables.
pub(crate) fn compare(place: &Path, runtime: &Runtime, peers: &Path) {
    let place = place.join("peers");
    fs::create_dir_all(&place).unwrap();
    let agent = scripted_agent(&place, AGENT);
    let mut entries: Vec<&Entry> = ENTRIES.iter().collect();
    if !is_offline() {
        // It calls home, and may only try where nobody is.
        println!("\nsandbox-agent: skipped, this machine's network can be reached from here");
        entries.retain(|entry| entry.name != "sandbox-agent");
    }
    let ground = |name: &str| Ground {
        runtime,
        peers,
        place: place.join(name.replace([' ', ','], "-")),
        agent: agent.clone(),
    };
    kept(&entries, &ground);
    from_nothing(&entries, &ground);
}

fn kept<'a>(entries: &[&Entry], ground: &dyn Fn(&str) -> Ground<'a>) {
    let entries: Vec<&&Entry> = entries.iter().filter(|entry| entry.keeps).collect();
    let grounds: Vec<Ground<'_>> =
        entries.iter().map(|entry| ground(&format!("kept {}", entry.name))).collect();
    let mut gateways: Vec<Box<dyn Gateway + '_>> =
        entries.iter().zip(&grounds).map(|(entry, ground)| (entry.start)(ground)).collect();
    let mut took: Vec<Vec<Took>> = entries.iter().map(|_| Vec::new()).collect();
    // The first turn of each fills caches, and may start the agent.
    for gateway in &mut gateways {
        gateway.turn();
    }
    for round in 0..ROUNDS {
        for (index, entry) in entries.iter().enumerate() {
            if round % entry.rarer == 0 {
                took[index].push(gateways[index].turn());
            }
        }
    }
    println!("\npeers, a turn of a scripted ACP agent that is kept, ms");
    let raw = median(column(&took[0], TOTAL));
    for ((entry, ground), took) in entries.iter().zip(&grounds).zip(&took) {
        let total = column(took, TOTAL);
        println!(
            "  {:<16} n={:<4} first text {:<24} whole turn {:<28} {:>6} × raw   {}",
            entry.name,
            took.len(),
            quartiles(column(took, FIRST_TEXT)),
            quartiles(total.clone()),
            times(median(total) / raw),
            if entry.is_apart { memory(ground) } else { String::new() },
        );
    }
}

fn times(ratio: f64) -> String {
    if ratio < 100.0 { format!("{ratio:.1}") } else { format!("{ratio:.0}") }
}

/// Tells what a gateway's processes take.
fn memory(ground: &Ground<'_>) -> String {
    let found = with_variable(&format!("{MARK}={}", ground.place.display()));
    let kilobytes: u64 = found.iter().map(|one| one.kilobytes).sum();
    let megabytes = f64::from(u32::try_from(kilobytes).unwrap()) / 1000.0;
    format!("{megabytes:.1} MB resident in {} of its own", found.len())
}

fn from_nothing<'a>(entries: &[&Entry], ground: &dyn Fn(&str) -> Ground<'a>) {
    let mut took: Vec<Vec<f64>> = entries.iter().map(|_| Vec::new()).collect();
    // The first round fills caches.
    for round in 0..=STARTS {
        for (index, entry) in entries.iter().enumerate() {
            let is_rare = entry.rarer > 1;
            if is_rare && round % 2 == 1 {
                continue;
            }
            let ground = ground(&format!("start {round} {}", entry.name));
            ground.folder("work");
            let started = Instant::now();
            let mut gateway = (entry.start)(&ground);
            gateway.turn();
            let total = ms(started);
            drop(gateway);
            if round > 0 {
                took[index].push(total);
            }
        }
    }
    println!("\npeers, from nothing to the end of the first turn, ms");
    let raw = median(took[0].clone());
    for (entry, took) in entries.iter().zip(took) {
        println!(
            "  {:<16} n={:<4} {:<30} {:>6} × raw",
            entry.name,
            took.len(),
            quartiles(took.clone()),
            times(median(took) / raw)
        );
    }
}

/// Returns whether there is no network here but loopback.
fn is_offline() -> bool {
    let devices = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let mut names = devices.lines().filter_map(|line| line.split_once(':'));
    !devices.is_empty() && names.all(|(name, _)| name.trim() == "lo")
}
