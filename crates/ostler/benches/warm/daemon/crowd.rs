//! A thousand turns at once: what the gateway itself takes meanwhile.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::gateway::{Daemon, Ground};
use crate::client::Client;

/// How many turns are to run at once.
const TURNS: u64 = 1000;
/// What the gateway may have of memory of its own, in MB. Keepers and agents are
/// processes of their own.
const LIMIT: f64 = 150.0;
/// How long the agents stay silent: long enough for the last one to begin.
const SILENCE: Duration = Duration::from_secs(60);
/// How long everything may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// Measures it; returns whether the limit holds.
pub(super) fn measure(place: &Path) -> bool {
    println!("\ngateway, {TURNS} turns at once (limit: {LIMIT:.0} MB of anonymous memory)");
    let settings = json!({ "max_concurrent_turns": TURNS, "max_queue_depth": 2 * TURNS });
    let ground = Ground::new(&place.join("crowd"), &settings);
    let daemon = Daemon::start(&ground);
    let mut client = daemon.client();
    let started = Instant::now();
    for number in 0..TURNS {
        let send = json!({
            "type": "send", "conversation": format!("local:{number}"),
            "text": format!("sim:delay={}", SILENCE.as_millis()),
        });
        let answer = client.ask(&send).unwrap();
        assert_eq!(answer["type"], "accepted", "{answer}");
    }
    let (mut at_once, mut anonymous, mut n_files) = (0, 0.0_f64, 0);
    let mut all_begun = None;
    loop {
        let standing = client.ask(&json!({ "type": "status" })).unwrap();
        let running = standing["turns_running"].as_u64().unwrap();
        at_once = at_once.max(running);
        anonymous = anonymous.max(daemon.memory().anonymous);
        n_files = n_files.max(daemon.n_files());
        if running == TURNS {
            all_begun.get_or_insert_with(|| started.elapsed());
        }
        if n_done(&standing) == TURNS || started.elapsed() > PATIENCE {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let done = all_answered(&mut client);
    let begun = all_begun.map_or_else(|| "never".to_owned(), |after| format!("{after:.1?}"));
    println!(
        "  {at_once} at once (all after {begun}), {done} answered after {:.1?}: at most \
         {anonymous:.1} MB anonymous, {n_files} open files",
        started.elapsed()
    );
    daemon.stop();
    anonymous <= LIMIT && at_once == TURNS && done == TURNS
}

fn n_done(standing: &Value) -> u64 {
    standing["queue"]["done"].as_u64().unwrap_or(0)
}

fn all_answered(client: &mut Client) -> u64 {
    n_done(&client.ask(&json!({ "type": "status" })).unwrap())
}
