//! One conversation on Discord, beside the same turn over the gateway's socket.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde_json::json;

use super::site::{OnDiscord, Talk};
use crate::{
    daemon::kept::Kept,
    discord_double::{Change, ChangeKind},
    figures::{Gateway as _, PROMPT, Took, median, quartiles},
};

/// The agent that is played.
const AGENT: &str = "claude";
const ROUNDS: usize = 60;
/// How much later the first and the final message may come than the first text and
/// the end of the turn over the socket, in milliseconds.
const LIMIT: f64 = 10.0;
/// How soon a sign of typing is to be seen, in milliseconds.
const TYPING_LIMIT: f64 = 20.0;
/// How long a turn may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// A turn whose answer comes in pieces.
const IN_PIECES: &str = "sim:slow=10";
/// What the answer to either ends with.
const LAST_WORDS: &str = "characters.";

/// How long it took from a message until something was seen, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Seen {
    typing: f64,
    /// The first message, with as much of the answer as there was by then.
    first: f64,
    /// The first change of a message; nothing if it was whole at once.
    edit: Option<f64>,
    answer: f64,
}

/// Measures it; returns whether the limits hold.
pub(super) fn compare(place: &Path) -> bool {
    println!(
        "\nDiscord, one conversation, beside the same turn over the socket (limits: typing after \
         {TYPING_LIMIT:.0} ms, first and final message {LIMIT:.0} ms over the socket)"
    );
    // Discord's limits, and that we keep to them, would be what is measured.
    let site = OnDiscord::start(place, &json!({}), &json!({ "requests_per_second": 10_000 }));
    site.discord.relax();
    let mut fine = true;
    for (what, prompt) in [("at once", PROMPT), ("in pieces", IN_PIECES)] {
        let talk = site.open(what);
        let mut socket = Kept::asked(site.daemon.client(), AGENT, prompt);
        let (mut direct, mut seen) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS + 5 {
            let one = socket.turn();
            let other = turn(&site, talk, prompt);
            // The first rounds start the processes and fill caches.
            if round >= 5 {
                direct.push(one);
                seen.push(other);
            }
        }
        fine &= print(what, &direct, &seen);
    }
    site.daemon.stop();
    fine
}

/// Says something and waits for the answer to stand there.
fn turn(site: &OnDiscord, talk: Talk, prompt: &str) -> Seen {
    let before = site.discord.changes(talk.channel).len();
    let started = Instant::now();
    let asked = site.say(talk, prompt);
    let changes = site.discord.wait_for("an answer", PATIENCE, |world| {
        let last = world.messages(talk.channel).into_iter().next_back()?;
        let is_it = last.id > asked && last.content.ends_with(LAST_WORDS);
        is_it.then(|| world.changes(talk.channel)[before..].to_vec())
    });
    let since = |change: &Change| change.at.duration_since(started).as_secs_f64() * 1000.0;
    let first = |kind: ChangeKind| changes.iter().find(|change| change.kind == kind).map(since);
    let answer = since(changes.last().unwrap());
    Seen {
        typing: first(ChangeKind::Typing).unwrap_or(answer),
        first: first(ChangeKind::Sent).unwrap(),
        edit: first(ChangeKind::Edited),
        answer,
    }
}

/// Prints both; returns whether the limits hold.
fn print(what: &str, direct: &[Took], seen: &[Seen]) -> bool {
    let typing: Vec<f64> = seen.iter().map(|seen| seen.typing).collect();
    let mut fine = median(typing.clone()) <= TYPING_LIMIT;
    println!("  {what:<10} n={ROUNDS:<4} typing seen   ms {}", quartiles(typing));
    let firsts = (
        direct.iter().map(|took| took.first_text).collect::<Vec<_>>(),
        seen.iter().map(|seen| seen.first).collect::<Vec<_>>(),
    );
    let edits: Vec<f64> = seen.iter().filter_map(|seen| seen.edit).collect();
    if !edits.is_empty() {
        let n_edits = edits.len();
        println!("  {what:<10} n={n_edits:<4} first edit    ms {}", quartiles(edits));
    }
    let answers = (
        direct.iter().map(|took| took.total).collect::<Vec<_>>(),
        seen.iter().map(|seen| seen.answer).collect::<Vec<_>>(),
    );
    for (mark, (direct, seen)) in [("first message", firsts), ("the answer", answers)] {
        let over: Vec<f64> = direct.iter().zip(&seen).map(|(one, other)| other - one).collect();
        fine &= median(over.clone()) <= LIMIT;
        println!(
            "  {what:<10} n={ROUNDS:<4} {mark:<13} ms {}  socket {}  over {}",
            quartiles(seen),
            quartiles(direct),
            quartiles(over),
        );
    }
    fine
}
