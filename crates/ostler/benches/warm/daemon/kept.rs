//! A turn of an agent that is kept, through the gateway with everything stored,
//! beside a minimal client of the agent's own protocol.

use std::path::Path;

use ostler_core::{agent::AGENTS, event::Mode};
use serde_json::json;
use tokio::runtime::Runtime;

use super::{
    disk::Disk,
    gateway::{Daemon, Ground},
};
use crate::{
    client::Client,
    figures::{Clock, Column, FIRST_TEXT, Gateway, PROMPT, TOTAL, Took, column, median, quartiles},
    raw,
    stand::Stand,
};

/// How much longer a turn may take through the gateway, in milliseconds.
pub(super) const LIMIT: f64 = 5.0;
const ROUNDS: usize = 100;

/// The agents whose warm protocols the scripted one plays on pipes.
const PLAYED: [&str; 4] = ["claude", "codex", "gemini", "pi"];

/// Measures each agent; returns whether the limit holds.
pub(super) fn compare(place: &Path, runtime: &Runtime) -> bool {
    let ground = Ground::new(&place.join("kept"), &json!({}));
    let daemon = Daemon::start(&ground);
    let mut disk = Disk::new(&ground.data());
    let mut fine = true;
    for spec in AGENTS.iter().copied().filter(|spec| PLAYED.contains(&&*spec.name)) {
        let stand = Stand::scripted(place, spec, runtime);
        let plan = stand.plan(Mode::Warm);
        let mut direct = raw::start(stand.name, stand.command(&plan), &stand.request);
        let mut through = Kept::new(daemon.client(), stand.name);
        let (mut raw, mut stored, mut flushes) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS + 5 {
            let one = direct.turn();
            let other = through.turn();
            // The first rounds start the processes and fill caches.
            if round >= 5 {
                raw.push(one);
                stored.push(other);
                flushes.push(disk.flush());
            }
        }
        println!("  {:<8} n={ROUNDS:<4} flush of the disk ms {}", stand.name, quartiles(flushes));
        fine &= print(stand.name, &raw, &stored) <= LIMIT;
    }
    daemon.stop();
    fine
}

/// Prints both, and returns the median of what the gateway adds to a whole turn.
fn print(name: &str, raw: &[Took], stored: &[Took]) -> f64 {
    let over = |of: Column| -> Vec<f64> {
        raw.iter().zip(stored).map(|(one, other)| of(other) - of(one)).collect()
    };
    for (what, of) in [("first text", FIRST_TEXT), ("whole turn", TOTAL)] {
        println!(
            "  {name:<8} n={:<4} {what} ms  raw {}  gateway {}  over {}",
            raw.len(),
            quartiles(column(raw, of)),
            quartiles(column(stored, of)),
            quartiles(over(of)),
        );
    }
    median(over(TOTAL))
}

/// A conversation with the gateway.
pub(crate) struct Kept {
    client: Client,
    agent: &'static str,
    prompt: &'static str,
}

impl Kept {
    pub(crate) fn new(client: Client, agent: &'static str) -> Self {
        Self::asked(client, agent, PROMPT)
    }

    /// One in which every turn is asked this.
    pub(crate) fn asked(client: Client, agent: &'static str, prompt: &'static str) -> Self {
        Self { client, agent, prompt }
    }
}

impl Gateway for Kept {
    /// Sends the prompt and follows it to its end, which is in the store by then.
    fn turn(&mut self) -> Took {
        let mut clock = Clock::start();
        let send = json!({
            "type": "send", "conversation": format!("local:{}", self.agent),
            "text": self.prompt, "agent": self.agent,
        });
        let accepted = self.client.ask(&send).unwrap();
        assert_eq!(accepted["type"], "accepted", "{accepted}");
        self.client.tell(&json!({ "type": "follow", "job": accepted["job"] })).unwrap();
        loop {
            let line = self.client.hear().unwrap();
            match line["type"].as_str() {
                Some("event") if line["event"]["type"] == "output" => clock.text(),
                Some("event") => {}
                Some("ended") => {
                    let took = clock.end();
                    assert_eq!(line["state"], "done", "{line}");
                    assert_eq!(line["complete"]["is_error"], false, "{line}");
                    assert_eq!(line["complete"]["mode"], "warm", "{line}");
                    return took;
                }
                _ => panic!("{line}"),
            }
        }
    }
}
