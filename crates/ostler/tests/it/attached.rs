//! A server of OpenCode's that somebody else runs: the program with the real
//! server, and with whatever may answer instead of it.

mod false_servers;
mod server;
mod turns;

use std::process::Command;

use serde_json::Value;

use crate::support::{Outcome, Place};

/// The server's password in these tests.
const PASSWORD: &str = "very-secret-word";

/// Returns one of the commands, attached to a server, with nothing in PATH that
/// could be run instead.
fn attached(place: &Place, url: &str, args: &[&str]) -> Command {
    let mut command = place.ostler(args);
    command
        .env("PATH", place.path("bin"))
        .env("OPENCODE_ENABLED", "true")
        .env("OPENCODE_URL", url)
        .env("OPENCODE_PASSWORD", PASSWORD);
    command
}

/// Runs it to its end, and sees that nothing tells the password.
fn outcome(command: Command) -> Outcome {
    let outcome = Outcome::of_input(command, None);
    for text in [&outcome.stdout, &outcome.stderr] {
        assert!(!text.contains(PASSWORD), "{text}");
    }
    outcome
}

fn warnings(events: &crate::support::Events) -> String {
    let texts = events.statuses("warning").into_iter();
    texts.filter_map(|warning| warning["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no {name}: {value}"))
}
