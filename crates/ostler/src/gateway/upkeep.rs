//! What has to be seen to from time to time: requests whose time is up, messages
//! that nobody will answer any more, and what is long over.

use std::{path::PathBuf, sync::Arc, time::Duration};

use ostler_core::failure::FailureKind;
use tokio::{sync::watch, task, time};
use tokio_util::sync::CancellationToken;

use super::{
    begin::Place,
    commands, ending,
    inbound::{API, LOCAL, PROMPT, Payload},
    policy::Policy,
    result::Outcome,
    tools::Tools,
};
use crate::{
    clock::Millis,
    media::{folder, hosting::Hosting},
    queue::{Job, JobState, Ticket, WorkerId},
    store::{
        Keep, Store, StoreError,
        conversations::Address,
        jobs::{self, Unanswered},
        permissions, turns,
    },
};

/// How often requests and messages are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// How often what is long over is removed.
const CLEAN_UP: Duration = Duration::from_secs(60 * 60);
/// How far back dead jobs without a reply are answered for.
const ANSWER_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// After how long a turn that nobody asked for is taken for dead.
const UNASKED: Duration = Duration::from_secs(24 * 60 * 60);
/// How many of them at once.
const BATCH: u32 = 50;

/// Sees to it until the gateway stops.
pub(crate) async fn keep_up(
    tools: Tools,
    policy: watch::Receiver<Arc<Policy>>,
    stop: CancellationToken,
) {
    let mut look = time::interval(LOOK);
    let mut clean_up = time::interval(CLEAN_UP);
    for interval in [&mut look, &mut clean_up] {
        interval.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    }
    loop {
        let done = tokio::select! {
            () = stop.cancelled() => return,
            _ = look.tick() => {
                tools.telemetry.keep_up();
                let media = policy.borrow().media.dir.clone();
                clear_offers(media).await;
                look_after(&tools.store).await
            }
            _ = clean_up.tick() => {
                let keep = {
                    let policy = policy.borrow();
                    let (events, history) = (policy.event_retention, policy.archive.kept());
                    Keep { events, history, ..Keep::default() }
                };
                let (media, most) = {
                    let policy = policy.borrow();
                    (policy.media.dir.clone(), policy.media.most_kept)
                };
                clear_media(&tools.store, media, most).await;
                tools.store.clean_up(keep, Millis::now()).await.map(drop)
            }
        };
        if let Err(error) = done {
            tracing::warn!(%error, "upkeep of the store has to wait");
        }
    }
}

/// Removes files that nobody fetched in time.
async fn clear_offers(dir: Option<PathBuf>) {
    let Some(dir) = dir else { return };
    let cleared = task::spawn_blocking(move || Hosting::new(dir).clear(Millis::now())).await;
    if let Ok(Err(error)) = cleared {
        tracing::warn!(%error, "files that were on offer cannot be removed");
    }
}

/// Removes files that came with messages long ago, and the oldest if there are too
/// many; none of a message that is not dealt with.
async fn clear_media(store: &Store, dir: Option<PathBuf>, most: Option<u64>) {
    let Some(dir) = dir else { return };
    let needed = match store.read((), |conn, ()| Box::pin(jobs::not_over(conn))).await {
        Ok(needed) => needed.into_iter().collect(),
        Err(error) => {
            tracing::warn!(%error, "old attachments are not removed: nobody knows which are needed");
            return;
        }
    };
    let keep = folder::Keep { since: Millis::now().before(folder::KEPT), most, needed };
    let cleared = task::spawn_blocking(move || folder::clear(&dir, &keep)).await;
    if let Ok(Err(error)) = cleared {
        tracing::warn!(%error, "old attachments cannot be removed");
    }
}

pub(crate) async fn look_after(store: &Store) -> Result<(), StoreError> {
    let now = Millis::now();
    let unheard = now.before(UNASKED);
    store
        .write_repeatable((now, unheard), |conn, (now, unheard)| {
            Box::pin(async move {
                turns::abandon_unasked(conn, *unheard, *now).await?;
                for turn in turns::left_behind(conn, BATCH).await? {
                    permissions::expire_turn(conn, turn, *now).await?;
                    turns::abandon_one(conn, turn, *now).await?;
                }
                permissions::expire(conn, *now).await
            })
        })
        .await?;
    // Neither waits for the other to become possible.
    let ended = commands::end_left_behind(store, now).await;
    let answered = answer_for_the_dead(store, now).await;
    ended.and(answered)
}

/// Answers messages whose jobs died with nobody left to answer, or were cancelled
/// before they began.
async fn answer_for_the_dead(store: &Store, now: Millis) -> Result<(), StoreError> {
    let mut after = (now.before(ANSWER_FOR), None);
    loop {
        let dead = store.read(after, |conn, (since, after)| {
            let of = Unanswered { kind: PROMPT, since: *since, after: *after };
            Box::pin(jobs::over_without_reply(conn, of, BATCH))
        });
        let dead: Vec<Job> = dead.await?;
        for job in &dead {
            let Some((ticket, place, outcome)) = failed(job) else { continue };
            tracing::warn!(job = %job.id, "a message was not answered, and its sender is told");
            let args = (ticket, place, outcome, now);
            store
                .write_repeatable(args, |conn, (ticket, place, outcome, now)| {
                    Box::pin(ending::reply(conn, ticket, place, None, &[], outcome, *now))
                })
                .await?;
        }
        // Those that nobody can be told of are found each time: go on behind them.
        match dead.last() {
            Some(Job { id, ended_at: Some(ended_at), .. }) if dead.len() >= BATCH as usize => {
                after = (*ended_at, Some(*id));
            }
            Some(_) | None => return Ok(()),
        }
    }
}

/// Returns what is said about a job that died; nothing, if nobody can be told.
fn failed(job: &Job) -> Option<(Ticket, Place, Outcome)> {
    let payload = Payload::read(&job.payload).ok()?;
    let conversation = job.lane.as_str().parse().ok()?;
    let target = Address::new(&payload.channel, &payload.address).ok()?;
    if matches!(target.channel(), LOCAL | API) {
        return None;
    }
    let owner = WorkerId::new("nobody");
    let ticket = Ticket { job: job.id, lane: job.lane.clone(), attempt: job.attempt, owner };
    let reason = job.reason.clone().unwrap_or_else(|| "it failed".to_owned());
    let is_cancelled = job.state == JobState::Cancelled;
    let kind = if is_cancelled { FailureKind::Cancelled } else { FailureKind::Internal };
    let outcome = Outcome::failed(kind, reason, target.clone());
    let Payload { sender, origin, belongs, .. } = payload;
    let place = Place { conversation, target, sender, origin, belongs };
    Some((ticket, place, outcome))
}
