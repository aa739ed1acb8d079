//! The end of an attempt at a job: everything that came of it, in one write.

use std::sync::Arc;

use ostler_core::memo::Memo;
use serde_json::json;

use super::{
    begin::Place,
    commands,
    conclusion::without_turn,
    history::{self, Speaker},
    inbound::{API, LOCAL, Origin},
    persistence::{Persistence, Then},
    policy::Policy,
    result::Outcome,
    tools::Tools,
};
use crate::{
    channel::{Reply, ReplyError},
    clock::Millis,
    id::{JobId, TurnId},
    project,
    queue::{Finished, JobEnd, JobState, Joined, Queue, Ticket},
    store::{
        Conn, StoreError,
        events::{self, NewEvent},
        outbox::{self, NewMessage, Put},
        permissions,
        sessions::{self, Session},
        turns,
    },
};

/// What came of an attempt.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub(crate) end: JobEnd,
    pub(crate) joined: Joined,
    pub(crate) place: Option<Place>,
    pub(crate) turn: Option<Turned>,
    pub(crate) session: SessionEnd,
    /// What is sent, unless the job is put back.
    pub(crate) outcome: Option<Outcome>,
    /// Whether people hear nothing of the outcome.
    pub(crate) is_silent: bool,
    pub(crate) events: Vec<NewEvent>,
    /// What else the turn was told while it ran, for those who hear of it.
    pub(crate) taken: Vec<String>,
}

/// The turn of an attempt.
#[derive(Clone, Debug)]
pub(crate) struct Turned {
    pub(crate) id: TurnId,
    pub(crate) agent: String,
    /// Its report, as JSON.
    pub(crate) report: String,
    /// Whether it asked for a permission.
    pub(crate) has_asked: bool,
    /// Where it was run, if it was.
    pub(crate) cwd: Option<String>,
}

/// What becomes of the conversation's session.
#[derive(Clone, Debug)]
pub(crate) enum SessionEnd {
    AsItWas,
    Keep(Box<Memo>),
    Forget,
}

/// How a job stands after the end of an attempt, if that brought it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) state: JobState,
    /// Whether the store took nothing else of it.
    pub(crate) is_bare: bool,
}

/// Why the job of an end that cannot be stored is dead.
pub(crate) const NOT_STORED: &str = "what came of it cannot be stored";

/// Writes the end of an attempt, for as long as it takes. An end that the store
/// does not take is written as a failure with nothing but what happened before
/// it, or without that, so that the conversation goes on.
pub(crate) async fn write(
    tools: &Tools,
    ticket: &Ticket,
    policy: &Arc<Policy>,
    ending: Ending,
) -> Option<Ended> {
    let queue = &tools.queue;
    let events = ending.events.clone();
    let bare = || without_turn(JobEnd::Dead { reason: NOT_STORED.to_owned() }, None, None);
    let mut is_bare = false;
    let mut written = write_all(queue, ticket, policy, ending).await;
    if let Written::NotTaken = written {
        is_bare = true;
        let with_events = Ending { events: events.clone(), ..bare() };
        written = write_all(queue, ticket, policy, with_events).await;
    }
    if let Written::Lost | Written::NotTaken = written {
        // Closed only if the gateway does not wait for this any more.
        tools.log.append_all(events).await.ok();
    }
    if let Written::NotTaken = written {
        written = write_all(queue, ticket, policy, bare()).await;
    }
    match written {
        Written::Now(state) => Some(Ended { state, is_bare }),
        Written::Before | Written::Lost | Written::NotTaken => None,
    }
}

/// What became of a write.
#[derive(Clone, Copy, Debug)]
enum Written {
    Now(JobState),
    /// Earlier, or never: the store is closed.
    Before,
    /// The job is another's.
    Lost,
    /// The store does not take it.
    NotTaken,
}

async fn write_all(
    queue: &Queue,
    ticket: &Ticket,
    policy: &Arc<Policy>,
    ending: Ending,
) -> Written {
    let Ending { end, joined, .. } = ending.clone();
    let args = Arc::new((ticket.clone(), Arc::clone(policy), ending));
    let mut persistence = Persistence::new("the end of a job");
    loop {
        let (now, args) = (Millis::now(), Arc::clone(&args));
        let written = queue.finish_with(
            ticket,
            end.clone(),
            joined.clone(),
            now,
            (args, now),
            |conn, state, (args, now)| {
                let (ticket, policy, ending) = &**args;
                Box::pin(put(conn, state, ticket, policy, ending, *now))
            },
        );
        match written.await {
            Ok(Finished::Now(state, ())) => return Written::Now(state),
            Ok(Finished::Before) | Err(StoreError::Closed) => return Written::Before,
            Ok(Finished::Lost) => return Written::Lost,
            Err(error) => {
                if persistence.after(&error).await == Then::GiveUp {
                    return Written::NotTaken;
                }
            }
        }
    }
}

/// Writes what came of an attempt, within the write that ends it.
async fn put(
    conn: &mut Conn,
    state: JobState,
    ticket: &Ticket,
    policy: &Policy,
    ending: &Ending,
    now: Millis,
) -> Result<(), StoreError> {
    let turn = ending.turn.as_ref();
    if let Some(turn) = turn {
        turns::end(conn, turn.id, &turn.report, now).await?;
        if turn.has_asked {
            permissions::expire_turn(conn, turn.id, now).await?;
        }
    }
    if let Some(place) = &ending.place {
        match (&ending.session, turn) {
            (SessionEnd::AsItWas, _) | (SessionEnd::Keep(_), None) => {}
            (SessionEnd::Keep(memo), Some(turn)) => {
                let (id, session) = (place.conversation, stored(memo, now));
                if place.origin == Origin::Heartbeat {
                    sessions::refresh(conn, id, &turn.agent, &session).await?;
                } else if project::still_answers(conn, policy, place.project(), &turn.agent).await?
                {
                    sessions::keep(conn, id, &turn.agent, &session).await?;
                }
            }
            (SessionEnd::Forget, _) => sessions::clear(conn, place.conversation).await?,
        }
        // A job that will be done again is answered then.
        if let Some(outcome) =
            ending.outcome.as_ref().filter(|_| state.is_over() && !ending.is_silent)
        {
            let with = &ending.joined.jobs;
            reply(conn, ticket, place, turn, with, outcome, now).await?;
        }
    }
    events::append(conn, &ending.events).await?;
    // The last word about a command comes after everything that happened in it.
    let belongs = ending.place.as_ref().and_then(|place| place.belongs.as_ref());
    commands::over(conn, belongs, state, turn, ending.outcome.as_ref(), now).await
}

/// Returns a session as it is stored.
pub(crate) fn stored(memo: &Memo, now: Millis) -> Session {
    let text = serde_json::to_string(memo).unwrap_or_default();
    Session { session: memo.id.clone(), memo: text, updated_at: now }
}

/// Puts the reply to a job on its way.
pub(crate) async fn reply(
    conn: &mut Conn,
    ticket: &Ticket,
    place: &Place,
    turn: Option<&Turned>,
    with: &[JobId],
    outcome: &Outcome,
    now: Millis,
) -> Result<(), StoreError> {
    let said = Said { key: reply_key(ticket), job: Some(ticket.job), with, turn, outcome };
    put_out(conn, place, said, now).await
}

/// Puts what a turn said that no job asked for on its way.
pub(crate) async fn say(
    conn: &mut Conn,
    place: &Place,
    turn: &Turned,
    outcome: &Outcome,
    now: Millis,
) -> Result<(), StoreError> {
    let said = Said { key: turn.id.to_string(), job: None, with: &[], turn: Some(turn), outcome };
    put_out(conn, place, said, now).await
}

/// Something that is said to a place.
struct Said<'a> {
    /// What makes it the same, however often it is put.
    key: String,
    job: Option<JobId>,
    with: &'a [JobId],
    turn: Option<&'a Turned>,
    outcome: &'a Outcome,
}

/// Puts something on its way, and keeps it in the history. People on this machine
/// read the event log.
async fn put_out(
    conn: &mut Conn,
    place: &Place,
    said: Said<'_>,
    now: Millis,
) -> Result<(), StoreError> {
    let Said { key, job, with, turn: turned, outcome } = said;
    let turn = turned.map(|turn| turn.id);
    let agent = turned.map(|turn| turn.agent.as_str());
    let speaker = Speaker { conversation: place.conversation, job, turn, agent };
    match outcome.target.channel() {
        LOCAL => return history::said(conn, speaker, outcome, now).await,
        // It is kept with the command.
        API => return Ok(()),
        _ => {}
    }
    let error = outcome.error.as_ref();
    let body = Reply {
        conversation: place.conversation,
        job,
        with: with.to_vec(),
        turn,
        text: outcome.text.clone(),
        error: error.map(|error| ReplyError {
            kind: error.kind.to_owned(),
            message: error.message.clone(),
        }),
        cwd: turned.and_then(|turn| turn.cwd.clone()),
    };
    let message = NewMessage {
        dedupe: key,
        conversation: Some(place.conversation),
        turn,
        channel: outcome.target.channel().to_owned(),
        address: outcome.target.key().to_owned(),
        body: body.to_json(),
    };
    match outbox::put(conn, &message, now).await? {
        Put::New(_) => history::said(conn, speaker, outcome, now).await,
        Put::Again(_) => Ok(()),
    }
}

/// Returns what makes the reply to a job the same reply.
pub(crate) fn reply_key(ticket: &Ticket) -> String {
    format!("{}:{}", ticket.job, ticket.attempt)
}

/// Makes an event of the gateway's own about a conversation. If it is about a
/// turn, those who follow that turn see it, too; it has no number there.
pub(crate) fn status(
    place: &Place,
    turn: Option<TurnId>,
    code: &str,
    text: &str,
    fields: &[(&str, serde_json::Value)],
    now: Millis,
) -> NewEvent {
    let mut body = json!({
        "seq": 0, "at": now, "type": "status", "turn": null, "code": code, "text": text,
    });
    if let Some(body) = body.as_object_mut() {
        body.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    }
    NewEvent {
        conversation: Some(place.conversation),
        belongs: place.belongs.clone(),
        turn,
        seq: 0,
        at: now,
        kind: "status".to_owned(),
        body: body.to_string(),
    }
}
