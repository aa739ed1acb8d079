//! Changing schedules beside the gateway, and writing down who did.

use serde_json::json;

use crate::{
    clock::Millis,
    gateway::{gate::Rules, inbound::Refusal},
    id::JobId,
    schedule::run::{self, Made},
    store::{
        Conn, StoreError,
        audit::{self, Entry},
        schedules::{self, MOST, NewSchedule, Schedule},
    },
};

/// Who is written down for what is done here.
const OPERATOR: &str = "operator";

/// What is to be changed.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Add(NewSchedule),
    Remove(String),
    Run(String, JobId, Rules),
    Enable(String, bool),
}

impl Change {
    /// Returns the schedule that it is about.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Add(new) => &new.name,
            Self::Remove(name) | Self::Run(name, ..) | Self::Enable(name, _) => name,
        }
    }
}

/// What became of it.
#[derive(Debug)]
pub(super) enum Done {
    Changed {
        found: Box<Schedule>,
        outcome: &'static str,
        job: Option<JobId>,
    },
    Unknown,
    /// Another has the name.
    Taken,
    TooMany,
    /// The run before is not over.
    StillOpen(JobId),
}

pub(super) async fn add(conn: &mut Conn, new: &NewSchedule, now: Millis) -> Result<Done, Refusal> {
    if schedules::count(conn).await? >= u64::from(MOST) {
        return Ok(Done::TooMany);
    }
    if !schedules::add(conn, new).await? {
        return Ok(Done::Taken);
    }
    changed(conn, &new.name, "schedules.add", "added", None, now).await
}

pub(super) async fn remove(conn: &mut Conn, name: &str, now: Millis) -> Result<Done, Refusal> {
    let Some(found) = schedules::find(conn, name).await? else { return Ok(Done::Unknown) };
    let done = changed(conn, name, "schedules.remove", "removed", None, now).await?;
    schedules::remove(conn, found.schedule.id).await?;
    Ok(done)
}

pub(super) async fn set_enabled(
    conn: &mut Conn,
    name: &str,
    is_enabled: bool,
    now: Millis,
) -> Result<Done, Refusal> {
    let Some(found) = schedules::find(conn, name).await? else { return Ok(Done::Unknown) };
    schedules::set_enabled(conn, found.schedule.id, is_enabled, now).await?;
    let (action, outcome) =
        if is_enabled { ("schedules.resume", "resumed") } else { ("schedules.pause", "paused") };
    changed(conn, name, action, outcome, None, now).await
}

pub(super) async fn run_now(
    conn: &mut Conn,
    name: &str,
    job: JobId,
    rules: &Rules,
    now: Millis,
) -> Result<Done, Refusal> {
    // Before anything else, as a gateway does when a time has come.
    let Some(found) = schedules::lock(conn, name).await? else { return Ok(Done::Unknown) };
    match run::make(conn, &found, None, job, rules, now).await? {
        Made::Job(job) => changed(conn, name, "schedules.run", "enqueued", Some(job), now).await,
        Made::StillOpen(job) => Ok(Done::StillOpen(job)),
        // Only times can have been before, or have been missed.
        Made::Before | Made::Nothing => Ok(Done::Unknown),
    }
}

/// Writes down what was done, and returns the schedule as it is.
async fn changed(
    conn: &mut Conn,
    name: &str,
    action: &str,
    outcome: &'static str,
    job: Option<JobId>,
    now: Millis,
) -> Result<Done, Refusal> {
    let Some(found) = schedules::find(conn, name).await? else { return Ok(Done::Unknown) };
    // Neither the text nor where answers go: both may be nobody else's business.
    let NewSchedule { id, name, cron, zone, .. } = &found.schedule;
    let detail = json!({ "name": name, "cron": cron, "zone": zone, "job": job });
    note(conn, action, id.to_string(), detail.to_string(), now).await?;
    Ok(Done::Changed { found: Box::new(found), outcome, job })
}

async fn note(
    conn: &mut Conn,
    action: &str,
    subject: String,
    detail: String,
    now: Millis,
) -> Result<(), StoreError> {
    let (actor, action) = (OPERATOR.to_owned(), action.to_owned());
    audit::add(conn, &Entry { at: now, actor, action, subject, detail }).await
}
