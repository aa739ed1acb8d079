//! Heartbeats and schedules in a gateway, on both databases.

mod beats;
mod day;
mod runs;
mod scopes;

use std::time::Duration;

use super::{
    Desk,
    heartbeat::{self, Made},
};
use crate::{
    clock::Millis,
    gateway::{
        inbound::{Accepted, HEARTBEAT, Inbound},
        testing::{Knobs, Rig, inbound, text_of},
    },
    id::{ConversationId, JobId, ScheduleId},
    queue::{Job, JobState, Queue},
    store::{
        Store,
        conversations::{self, Address, Conversation},
        messages::{self, Query, Start},
        schedules::{self, Missed, NewSchedule, Schedule},
        testing::{age, on_both, replies},
    },
};

const URL: &str = "http://127.0.0.1:9/c/1";

/// Makes a message whose reply is posted somewhere.
fn from_outside(text: &str) -> Inbound {
    let address = Address::new("webhook", URL).unwrap();
    Inbound { address, ..inbound("main", text) }
}

/// Returns what a gateway goes by whose heartbeat says this.
fn saying(prompt: &str) -> Knobs {
    let prompt = Some(prompt.to_owned());
    let heartbeat = heartbeat::Rules { prompt, ..heartbeat::Rules::default() };
    Knobs { heartbeat, ..Knobs::default() }
}

/// Makes a heartbeat and returns its job.
async fn beat(rig: &Rig) -> JobId {
    let made = rig.gateway.heartbeat(None).await.unwrap();
    let Made::Job { job, .. } = made else { panic!("{made:?}") };
    job
}

/// Asks for a heartbeat, and returns why there is none.
async fn skipped(rig: &Rig) -> &'static str {
    let made = rig.gateway.heartbeat(None).await.unwrap();
    let Made::Skipped(skip) = made else { panic!("{made:?}") };
    skip.code()
}

async fn all_jobs(store: &Store) -> Vec<Job> {
    let mut jobs = Queue::new(store.clone()).list(None, None, 1000).await.unwrap();
    jobs.reverse();
    jobs
}

async fn conversation(store: &Store, id: ConversationId) -> Conversation {
    let found = store.read(id, |conn, id| Box::pin(conversations::find(conn, *id)));
    found.await.unwrap().unwrap()
}

/// Returns what is in the history.
async fn texts(store: &Store) -> Vec<String> {
    let (conversation, since, until) = (None, None, None);
    let query = Query { conversation, since, until, from: Start::Oldest, limit: 100 };
    let read = store.read(query, |conn, query| Box::pin(messages::read(conn, query)));
    let said = read.await.unwrap().into_iter();
    said.map(|message| message.text.or(message.error).unwrap()).collect()
}

fn schedule(name: &str, cron: &str, prompt: &str, now: Millis) -> NewSchedule {
    NewSchedule {
        id: ScheduleId::new(),
        name: name.to_owned(),
        cron: cron.to_owned(),
        zone: "UTC".to_owned(),
        conversation: Address::new("local", "cron").unwrap(),
        to: None,
        agent: None,
        prompt: prompt.to_owned(),
        missed: Missed::Skip,
        created_at: now,
    }
}

async fn add(store: &Store, new: NewSchedule) {
    assert!(store.must(new, |conn, new| Box::pin(schedules::add(conn, new))).await);
}

async fn stored(store: &Store, name: &str) -> Schedule {
    let name = name.to_owned();
    let found = store.read(name, |conn, name| Box::pin(schedules::find(conn, name)));
    found.await.unwrap().unwrap()
}

/// A gateway that begins nothing and makes nothing of what is due, so that only
/// the test does.
async fn idle_rig(store: &Store, knobs: Knobs) -> Rig {
    let rig = Rig::new(store.clone(), Knobs { at_once: 0, ..knobs }).await;
    rig.gateway.close();
    rig
}

/// Where things become due, by a clock that the test has.
fn desk(rig: &Rig) -> Desk {
    Desk::new(rig.store.clone(), rig.policy.subscribe())
}

/// Returns a full hour that is to come.
fn an_hour_to_come() -> Millis {
    let hour = 60 * 60 * 1000;
    Millis((Millis::now().0 / hour + 2) * hour)
}

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}
