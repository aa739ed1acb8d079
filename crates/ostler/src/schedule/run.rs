//! A run of a schedule: the job that it becomes in its conversation.

use super::due::Due;
use crate::{
    clock::Millis,
    gateway::{
        gate::{self, Asked, Rules},
        inbound::{Details, Fresh, LOCAL, Origin, PAYLOAD, PROMPT, Payload, RESET, Refusal},
    },
    id::JobId,
    queue::{Enqueued, LaneId, MessageKey, NewJob, enqueue::enqueue},
    store::{
        Conn, StoreError,
        conversations::{self, Conversation},
        jobs,
        schedules::{self, Schedule},
    },
    wishes::Wishes,
};

/// Who speaks in a run.
const SENDER: &str = "schedule";
/// Where the names of runs are kept, as if it was a channel.
const CHANNEL: &str = "schedule";

/// The times of a schedule that are dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Up to when they were before.
    pub(crate) from: Millis,
    pub(crate) due: Due,
}

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    Job(JobId),
    /// An earlier run is not over, and no two run at once.
    StillOpen(JobId),
    /// Another gateway has dealt with it.
    Before,
    /// Its times were missed, and are left out.
    Nothing,
}

/// Deals with the times that are due, within a write. Done twice it is the same
/// as once.
pub(crate) async fn at_slot(
    conn: &mut Conn,
    found: &Schedule,
    slot: Slot,
    job: JobId,
    rules: &Rules,
    now: Millis,
) -> Result<Made, Refusal> {
    let Slot { from, due } = slot;
    let id = found.schedule.id;
    if !schedules::pass(conn, id, from, due.until, due.n_missed).await? {
        return Ok(Made::Before);
    }
    let Some(time) = due.run else { return Ok(Made::Nothing) };
    // The row is locked now, and may have changed since it was read.
    let Some(found) = schedules::find(conn, &id.to_string()).await? else {
        return Ok(Made::Before);
    };
    let made = make(conn, &found, Some(time), job, rules, now).await?;
    if let Made::StillOpen(_) = made {
        schedules::skipped(conn, id).await?;
    }
    Ok(made)
}

/// Leaves out the times that are due, because there is no room for a run.
pub(crate) async fn leave_out(
    conn: &mut Conn,
    found: &Schedule,
    slot: Slot,
) -> Result<(), StoreError> {
    let Slot { from, due } = slot;
    let n_skipped = due.n_missed + u32::from(due.run.is_some());
    schedules::pass(conn, found.schedule.id, from, due.until, n_skipped).await.map(drop)
}

/// Makes a run of a schedule, within a write: that of a time, or one more.
pub(crate) async fn make(
    conn: &mut Conn,
    found: &Schedule,
    time: Option<Millis>,
    job: JobId,
    rules: &Rules,
    now: Millis,
) -> Result<Made, Refusal> {
    let Schedule { schedule, job: last, .. } = found;
    if let Some(last) = *last
        && let Some(earlier) = jobs::find(conn, last).await?
    {
        if last == job {
            return Ok(Made::Job(job));
        }
        if !earlier.state.is_over() {
            return Ok(Made::StillOpen(last));
        }
    }
    let home = gate::shared(&schedule.conversation, rules.sessions.scope)?;
    let conversation = conversations::find_or_begin(conn, &home, now).await?;
    let (kind, text, fresh) = match gate::read(&schedule.prompt, &rules.sessions.reset_words) {
        Asked::Reset => (RESET, "", None),
        Asked::Prompt { text, fresh: Some(fresh) } => (PROMPT, text, Some(fresh)),
        Asked::Prompt { text, fresh: None } => {
            let idle = is_silent(conn, &conversation, now, rules).await?;
            (PROMPT, text, idle.then_some(Fresh::Idle))
        }
    };
    let output = rules.output.as_ref().filter(|_| schedule.conversation.channel() == LOCAL);
    let to = schedule.to.as_ref().or(output).unwrap_or(&schedule.conversation);
    let payload = Payload {
        v: PAYLOAD,
        text: text.to_owned(),
        sender: SENDER.to_owned(),
        channel: to.channel().to_owned(),
        address: to.key().to_owned(),
        fresh,
        wishes: Wishes { agent: schedule.agent.clone(), ..Wishes::default() },
        message: None,
        at: Some(now.0),
        origin: Origin::Schedule,
        details: Details::default(),
        belongs: None,
        words: None,
    };
    let new = NewJob {
        message: time.map(|time| MessageKey {
            channel: CHANNEL.to_owned(),
            message: format!("{} {}", schedule.id, time.0),
        }),
        ..NewJob::new(kind, &payload.to_json()?)
    };
    let lane = LaneId::new(conversation.id);
    match enqueue(conn, job, &lane, &new, &rules.capacity, now).await? {
        Enqueued::New(job) => {
            schedules::ran(conn, schedule.id, job, now).await?;
            Ok(Made::Job(job))
        }
        Enqueued::Again(_) => Ok(Made::Before),
    }
}

/// Whether a conversation was silent for too long: since a person said something,
/// and since the last run or answer in it.
async fn is_silent(
    conn: &mut Conn,
    conversation: &Conversation,
    now: Millis,
    rules: &Rules,
) -> Result<bool, StoreError> {
    gate::has_gone_idle(conn, conversation, now, &rules.sessions).await
}
