//! A thousand conversations at once: how long it takes until all have their answer,
//! that none is lost or doubled, what it takes of the gateway, and how many requests.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::site::{OnDiscord, Talk};
use crate::discord_double::{ChangeKind, Discord, World};

/// How many people talk at once.
const TALKS: usize = 1000;
/// What the gateway may have of memory of its own, in MB. Keepers and agents are
/// processes of their own.
const MEMORY_LIMIT: f64 = 150.0;
/// How many requests may be refused as too many.
const REFUSED_LIMIT: usize = TALKS / 100;
/// How long an agent is silent before it answers, so that all turns run at once.
const SILENCE: Duration = Duration::from_secs(12);
/// How long it may take until the last has its answer: thirty of them in a second,
/// which is three fifths of the requests that Discord takes.
const ANSWERED_LIMIT: Duration = SILENCE.saturating_add(Duration::from_secs(TALKS as u64 / 30));
/// How long everything may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures it with Discord's limits and without; returns whether ours hold.
pub(super) fn measure(place: &Path) -> bool {
    println!(
        "\nDiscord, {TALKS} conversations at once, agents that are silent for {SILENCE:?} (limits: \
         none lost or doubled, all answered after {ANSWERED_LIMIT:?}, {MEMORY_LIMIT:.0} MB of \
         anonymous memory, {REFUSED_LIMIT} requests refused)"
    );
    let fast = json!({ "requests_per_second": 10_000 });
    let mut fine = crowd(&place.join("free"), "no limits", &fast, Discord::relax);
    fine &= crowd(&place.join("limited"), "its limits", &json!({}), |_| {});
    fine
}

/// Lets all of them talk at once; returns whether the limits hold.
fn crowd(place: &Path, what: &str, discord: &Value, prepare: impl FnOnce(&Discord)) -> bool {
    let gateway = json!({ "max_concurrent_turns": TALKS, "max_queue_depth": 2 * TALKS });
    let site = OnDiscord::start(place, &gateway, discord);
    prepare(&site.discord);
    let talks: Vec<Talk> = (0..TALKS).map(|number| site.open(&format!("talk-{number}"))).collect();
    let mut client = site.daemon.client();
    let idle = site.daemon.memory().anonymous;
    let before = site.discord.look(|world| world.requests().len());
    let started = Instant::now();
    for (number, talk) in talks.iter().enumerate() {
        let silence = SILENCE.as_millis();
        site.say(*talk, &format!("sim:delay={silence} sim:echo=talk-{number}"));
    }
    let (mut at_once, mut anonymous) = (0, 0.0_f64);
    let mut first = None;
    let n_answered = loop {
        let standing = client.ask(&json!({ "type": "status" })).unwrap();
        at_once = at_once.max(standing["turns_running"].as_u64().unwrap());
        anonymous = anonymous.max(site.daemon.memory().anonymous);
        let n_answered = site.discord.look(|world| answered(world, &talks));
        if n_answered > 0 {
            first.get_or_insert_with(|| started.elapsed());
        }
        if n_answered == TALKS || started.elapsed() > PATIENCE {
            break n_answered;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let took = started.elapsed();
    let n_doubled = site.discord.look(|world| doubled(world, &talks));
    let n_typing = site.discord.look(|world| n_done(world, &talks, ChangeKind::Typing));
    let n_requests = site.discord.look(|world| world.requests().len()) - before;
    let n_refused = site.discord.limited();
    println!(
        "  {what:<10} {at_once} turns at once, {n_answered} answered after {took:.1?} (the first \
         after {:.1?}), {n_doubled} doubled",
        first.unwrap_or_default(),
    );
    println!(
        "  {:<10} at most {anonymous:.1} MB anonymous ({idle:.1} before); {:.2} requests an answer \
         ({n_typing} signs of typing in all), {n_refused} refused",
        "",
        n_requests as f64 / n_answered.max(1) as f64,
    );
    site.daemon.stop();
    let all_had_theirs = n_answered == TALKS && n_doubled == 0 && took <= ANSWERED_LIMIT;
    all_had_theirs && anonymous <= MEMORY_LIMIT && n_refused <= REFUSED_LIMIT
}

/// Returns how many have the answer to what they said.
fn answered(world: &World, talks: &[Talk]) -> usize {
    let has_answer = |(number, talk): &(usize, &Talk)| {
        let answer = format!("You said talk-{number}. Your prompt has");
        let messages = world.messages(talk.channel);
        messages.last().is_some_and(|last| {
            last.content.contains(&answer) && last.content.ends_with("characters.")
        })
    };
    talks.iter().enumerate().filter(has_answer).count()
}

/// Returns how many were sent more than one message.
fn doubled(world: &World, talks: &[Talk]) -> usize {
    let is_doubled =
        |talk: &&Talk| n_done(world, std::slice::from_ref(*talk), ChangeKind::Sent) > 1;
    talks.iter().filter(is_doubled).count()
}

/// Returns how often something was done.
fn n_done(world: &World, talks: &[Talk], kind: ChangeKind) -> usize {
    let changes = talks.iter().flat_map(|talk| world.changes(talk.channel));
    changes.filter(|change| change.kind == kind).count()
}
