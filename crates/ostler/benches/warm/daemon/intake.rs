//! How many messages become durable jobs in a second, while nothing else is
//! done, beside how often the disk can make something durable at all.

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    disk::Disk,
    gateway::{Daemon, Ground},
};
use crate::figures::{median, quartiles};

/// How many send at a time, each its next message when the last was accepted.
const PRODUCERS: usize = 64;
/// How long they do so for one measurement.
const SPAN: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;

const SQLITE_LIMIT: f64 = 2000.0;
const POSTGRES_LIMIT: f64 = 1000.0;

/// Measures both databases; returns whether the limits hold.
pub(super) fn measure(place: &Path) -> bool {
    // One turn that never ends: everything else waits.
    let settings = json!({ "max_concurrent_turns": 1, "max_queue_depth": 1_000_000 });
    let postgres = std::env::var("OSTLER_TEST_POSTGRES").ok();
    println!(
        "\ngateway, messages accepted and durable a second, {PRODUCERS} at a time (limits: \
         {SQLITE_LIMIT:.0} on SQLite, {POSTGRES_LIMIT:.0} on PostgreSQL)"
    );
    let sqlite = Ground::new(&place.join("intake"), &settings);
    let mut grounds = vec![("SQLite", sqlite, SQLITE_LIMIT)];
    match postgres {
        Some(url) => {
            let ground = Ground::new(&place.join("intake-pg"), &settings).with_database(&url);
            grounds.push(("PostgreSQL", ground, POSTGRES_LIMIT));
        }
        None => println!("  PostgreSQL: skipped, OSTLER_TEST_POSTGRES names no server"),
    }
    let daemons: Vec<Daemon> = grounds.iter().map(|(_, ground, _)| Daemon::start(ground)).collect();
    for daemon in &daemons {
        let hang = json!({ "type": "send", "conversation": "local:hang", "text": "sim:hang" });
        daemon.client().ask(&hang).unwrap();
    }
    let mut rates: Vec<Vec<f64>> = daemons.iter().map(|_| Vec::new()).collect();
    let mut flushes = Vec::new();
    let mut disk = Disk::new(&grounds[0].1.data());
    for _ in 0..ROUNDS {
        flushes.push(flush_rate(&mut disk));
        for (daemon, rates) in daemons.iter().zip(&mut rates) {
            rates.push(intake_rate(daemon));
        }
    }
    println!("  {:<10} n={ROUNDS:<3} flushes a second  {}", "the disk", quartiles(flushes));
    let mut fine = true;
    for ((name, _, limit), rates) in grounds.iter().zip(rates) {
        fine &= median(rates.clone()) >= *limit;
        println!("  {name:<10} n={ROUNDS:<3} messages a second {}", quartiles(rates));
    }
    fine
}

/// Sends for a while and returns how many were accepted in a second.
fn intake_rate(daemon: &Daemon) -> f64 {
    let n_accepted = AtomicUsize::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let mut client = daemon.client();
            let n_accepted = &n_accepted;
            scope.spawn(move || {
                let send = json!({
                    "type": "send", "conversation": format!("local:{producer}"), "text": "hello",
                });
                while started.elapsed() < SPAN {
                    let answer = client.ask(&send).unwrap();
                    assert_eq!(answer["type"], "accepted", "{answer}");
                    n_accepted.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    rate(n_accepted.into_inner(), started)
}

/// Flushes the disk again and again, and returns how often in a second.
fn flush_rate(disk: &mut Disk) -> f64 {
    let started = Instant::now();
    let mut n_flushes = 0;
    while started.elapsed() < SPAN / 4 {
        disk.flush();
        n_flushes += 1;
    }
    rate(n_flushes, started)
}

#[expect(clippy::cast_precision_loss, reason = "counts of a few seconds fit")]
fn rate(count: usize, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64()
}
