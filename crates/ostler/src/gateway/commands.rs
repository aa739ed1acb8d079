//! What becomes of the commands of projects: they follow their jobs, in the same
//! writes, and each has an event that says that it is over. That is its last.

pub(crate) mod accept;

use ostler_core::failure::FailureKind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ending::Turned, notices, result::Outcome};
use crate::{
    clock::Millis,
    id::{CommandId, JobId},
    queue::{CancelOutcome, Job, JobState, cancel::cancel},
    store::{
        Conn, Store, StoreError, Topic,
        commands::{self, CommandState, StoredCommand},
        events::{self, Belonging, CommandRef, NewEvent},
        jobs,
    },
};

/// The kind of the event that says that a command is over. A turn has its own
/// word for that, and a command may take several turns.
pub(crate) const COMPLETE: &str = "command_complete";

/// How many commands are ended at once that nobody else will end.
const BATCH: u32 = 50;

/// What came of a command. The field names are part of the contract.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub(crate) struct CommandResult {
    /// 0 if it was done; that of the program where there is one.
    pub(crate) exit_code: i32,
    pub(crate) duration_ms: u64,
    /// The agent's session, to go on with.
    pub(crate) session_id: Option<String>,
    /// The agent that answered.
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) response_text: Option<String>,
    /// Whether that is not all of it.
    pub(crate) truncated: bool,
    pub(crate) is_error: bool,
    #[schema(value_type = Option<Object>)]
    pub(crate) error: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub(crate) usage: Option<Value>,
}

/// The exit code of a failure that has no other.
const FAILED: i32 = 1;

/// The exit codes of `ostler run`, for what has none of its own.
fn exit_code(kind: Option<&str>) -> i32 {
    let is = |known: FailureKind| kind == Some(known.code());
    match kind {
        None => 0,
        Some(_) if is(FailureKind::Timeout) => 124,
        Some(_) if is(FailureKind::Cancelled) => 130,
        Some(_) if is(FailureKind::SpawnFailed) => 3,
        Some(_) => FAILED,
    }
}

impl CommandResult {
    /// Takes the report of a turn, as JSON.
    fn of_report(report: &str) -> Self {
        let report: Value = serde_json::from_str(report).unwrap_or_default();
        let text = |name: &str| report.get(name).and_then(Value::as_str).map(str::to_owned);
        let there = |name: &str| report.get(name).filter(|value| !value.is_null()).cloned();
        let kind = report.pointer("/error/kind").and_then(Value::as_str);
        let own = report.get("exit_code").and_then(Value::as_i64);
        let own = own.and_then(|code| i32::try_from(code).ok());
        Self {
            // A program that was stopped has the code of the signal, and one that ends
            // well after an error does not make it a success.
            exit_code: match exit_code(kind) {
                FAILED => own.filter(|code| *code != 0).unwrap_or(FAILED),
                code => code,
            },
            duration_ms: report.get("duration_ms").and_then(Value::as_u64).unwrap_or_default(),
            session_id: text("session_id"),
            provider: text("agent"),
            model: text("model"),
            stop_reason: text("stop_reason"),
            response_text: text("response_text"),
            truncated: report.get("truncated") == Some(&Value::Bool(true)),
            is_error: kind.is_some(),
            error: there("error"),
            usage: there("usage"),
        }
    }

    /// Takes what was said without a turn.
    fn of_outcome(outcome: &Outcome) -> Self {
        let error = outcome.error.as_ref();
        let failed = error.map(|error| Self::failed(error.kind, &error.message));
        let said = Self { response_text: outcome.text.clone(), ..Self::default() };
        failed.unwrap_or(said)
    }

    /// Makes what came of a command that failed without a turn.
    pub(crate) fn failed(kind: &str, message: &str) -> Self {
        Self {
            exit_code: exit_code(Some(kind)),
            is_error: true,
            error: Some(json!({ "kind": kind, "message": message })),
            ..Self::default()
        }
    }
}

/// Notes that work on a command begins, and returns what the work belongs to. A
/// command that is over stays so, whatever becomes of its job.
pub(crate) async fn begun(
    conn: &mut Conn,
    belongs: Option<Belonging>,
    now: Millis,
) -> Result<Option<Belonging>, StoreError> {
    let Some(belonging) = &belongs else { return Ok(None) };
    let Some(CommandRef { id, .. }) = &belonging.command else { return Ok(belongs) };
    if commands::begin(conn, *id, now).await? {
        notices::begun(conn, belonging.project, *id, now).await?;
        return Ok(belongs);
    }
    let is_open = commands::find(conn, *id).await?.is_some_and(|found| found.ended_at.is_none());
    Ok(if is_open { belongs } else { Some(belonging.of_project()) })
}

/// Appends events of turns that may not know yet that they are over. What comes
/// after the end of its command belongs to the project alone.
pub(crate) async fn append(conn: &mut Conn, new: &[NewEvent]) -> Result<(), StoreError> {
    let of = |event: &NewEvent| event.belongs.as_ref()?.command.as_ref().map(|it| it.id);
    let mut ids: Vec<CommandId> = new.iter().filter_map(of).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return events::append(conn, new).await.map(drop);
    }
    // Whoever ends a command numbers an event, too: nobody ends one from here on.
    let first = *events::number(conn, new.len()).await?.start();
    let over = commands::over_among(conn, &ids).await?;
    if over.is_empty() {
        return events::put(conn, first, new).await;
    }
    let mut new = new.to_vec();
    for event in &mut new {
        if of(event).is_some_and(|id| over.contains(&id)) {
            event.belongs = event.belongs.as_ref().map(Belonging::of_project);
        }
    }
    events::put(conn, first, &new).await
}

/// Ends the command of a job that is over, with what came of its last attempt.
pub(crate) async fn over(
    conn: &mut Conn,
    belongs: Option<&Belonging>,
    state: JobState,
    turn: Option<&Turned>,
    outcome: Option<&Outcome>,
    now: Millis,
) -> Result<(), StoreError> {
    let Some(CommandRef { id, .. }) = belongs.and_then(|belongs| belongs.command.as_ref()) else {
        return Ok(());
    };
    let result = match (turn, outcome) {
        (Some(turn), _) => CommandResult::of_report(&turn.report),
        (None, Some(outcome)) => CommandResult::of_outcome(outcome),
        (None, None) if state == JobState::Cancelled => cancelled(None),
        (None, None) => CommandResult::failed(FailureKind::Internal.code(), "nothing came of it"),
    };
    end(conn, *id, state, result, now).await
}

/// Makes what came of a command that was cancelled without a turn.
pub(crate) fn cancelled(reason: Option<&str>) -> CommandResult {
    let reason = reason.unwrap_or("it was cancelled");
    CommandResult::failed(FailureKind::Cancelled.code(), reason)
}

/// Ends a command, once, and tells those who read its events.
pub(crate) async fn end(
    conn: &mut Conn,
    id: CommandId,
    state: JobState,
    result: CommandResult,
    now: Millis,
) -> Result<(), StoreError> {
    let state = match state {
        JobState::Cancelled => CommandState::Cancelled,
        JobState::Done if !result.is_error => CommandState::Completed,
        JobState::Done | JobState::Dead => CommandState::Failed,
        JobState::Waiting | JobState::Ready | JobState::Running => return Ok(()),
    };
    let text = serde_json::to_string(&result).unwrap_or_else(|_| "{}".to_owned());
    if !commands::end(conn, id, state, &text, now).await? {
        return Ok(());
    }
    let Some(ended) = commands::find(conn, id).await? else { return Ok(()) };
    notices::ended(conn, &ended, &result, now).await?;
    // Whoever waits for it is woken also if no job is ready by that.
    conn.wake(Topic::Jobs);
    events::append(conn, &[complete(&ended, &result, now)]).await.map(drop)
}

/// Makes the event that says that a command is over.
fn complete(ended: &StoredCommand, result: &CommandResult, now: Millis) -> NewEvent {
    let StoredCommand { command, state, .. } = ended;
    let mut body = json!({
        "seq": 0, "at": now, "type": COMPLETE, "turn": null,
        "command_id": command.id, "kind": command.kind, "state": state,
    });
    if let (Some(body), Ok(Value::Object(fields))) =
        (body.as_object_mut(), serde_json::to_value(result))
    {
        body.extend(fields);
    }
    let id = CommandRef { id: command.id, stream: command.stream.clone() };
    NewEvent {
        conversation: Some(command.conversation),
        belongs: Some(Belonging { project: command.project, command: Some(id) }),
        turn: None,
        seq: 0,
        at: now,
        kind: COMPLETE.to_owned(),
        body: body.to_string(),
    }
}

/// Cancels a command within a write. One that has not begun is over with it.
pub(crate) async fn cancel_one(
    conn: &mut Conn,
    id: CommandId,
    reason: &str,
    now: Millis,
) -> Result<CancelOutcome, StoreError> {
    let outcome = cancel(conn, id.into(), reason, now).await?;
    if outcome == CancelOutcome::Cancelled {
        end(conn, id, JobState::Cancelled, cancelled(Some(reason)), now).await?;
    }
    Ok(outcome)
}

/// Ends commands that nobody else will end: their jobs were cancelled by another
/// way, died with their gateway, or are gone.
pub(crate) async fn end_left_behind(store: &Store, now: Millis) -> Result<(), StoreError> {
    store
        .write_repeatable(now, |conn, now| {
            Box::pin(async move {
                for left in commands::left_behind(conn, BATCH).await? {
                    let id = left.command.id;
                    let job = jobs::find(conn, JobId::from(id)).await?;
                    if let Some((state, result)) = fate(job) {
                        end(conn, id, state, result, *now).await?;
                    }
                }
                Ok(())
            })
        })
        .await
}

/// Says what became of a command by its job alone, if that is over: somebody may
/// have revived it meanwhile.
fn fate(job: Option<Job>) -> Option<(JobState, CommandResult)> {
    let failed = |reason: &str| CommandResult::failed(FailureKind::Internal.code(), reason);
    let Some(Job { state, reason, .. }) = job else {
        return Some((JobState::Dead, failed("its job is gone")));
    };
    match state {
        JobState::Waiting | JobState::Ready | JobState::Running => None,
        JobState::Cancelled => Some((state, cancelled(reason.as_deref()))),
        JobState::Done | JobState::Dead => {
            Some((JobState::Dead, failed(reason.as_deref().unwrap_or("it failed"))))
        }
    }
}

#[cfg(test)]
pub(in crate::gateway) mod tests;
