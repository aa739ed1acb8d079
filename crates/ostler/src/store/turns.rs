//! Turns: which attempt of which job they were, and what came of them.

use std::str::FromStr;

use super::{
    Conn, StoreError,
    db::{Row, values},
};
use crate::{
    clock::Millis,
    id::{ConversationId, JobId, ProjectId, TurnId},
};

/// Where a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnState {
    Running,
    /// It has a result.
    Ended,
    /// Nobody was left to end it: its gateway was killed, or lost its lease.
    Abandoned,
}

impl TurnState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ended => "ended",
            Self::Abandoned => "abandoned",
        }
    }
}

/// A text that is no state.
#[derive(Debug, thiserror::Error)]
#[error("there is no such state")]
pub(crate) struct NoState;

impl FromStr for TurnState {
    type Err = NoState;

    fn from_str(text: &str) -> Result<Self, NoState> {
        match text {
            "running" => Ok(Self::Running),
            "ended" => Ok(Self::Ended),
            "abandoned" => Ok(Self::Abandoned),
            _ => Err(NoState),
        }
    }
}

/// A turn that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewTurn {
    pub(crate) id: TurnId,
    pub(crate) conversation: ConversationId,
    pub(crate) job: Option<JobId>,
    /// The attempt of the job.
    pub(crate) attempt: i64,
    pub(crate) agent: String,
    pub(crate) begun_at: Millis,
}

/// A turn as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredTurn {
    pub(crate) turn: NewTurn,
    pub(crate) state: TurnState,
    /// The report, as JSON, once it has ended.
    pub(crate) result: Option<String>,
    pub(crate) ended_at: Option<Millis>,
}

/// Stores that a turn begins.
pub(crate) async fn begin(conn: &mut Conn, turn: &NewTurn) -> Result<(), StoreError> {
    conn.execute(
        "INSERT INTO turns (id, conversation, job, attempt, agent, state, begun_at, project)
         VALUES ($1, $2, $3, $4, $5, 'running', $6,
             (SELECT project FROM conversations WHERE id = $2))",
        values![turn.id, turn.conversation, turn.job, turn.attempt, &turn.agent, turn.begun_at],
    )
    .await
    .map(drop)
}

/// Stores the result of a turn. The first one stands; returns whether it is this.
pub(crate) async fn end(
    conn: &mut Conn,
    id: TurnId,
    result: &str,
    now: Millis,
) -> Result<bool, StoreError> {
    let sql = "UPDATE turns SET state = 'ended', result = $2, ended_at = $3
               WHERE id = $1 AND state = 'running'";
    Ok(conn.execute(sql, values![id, result, now]).await? > 0)
}

/// Notes that a turn is one beside the conversation, which keeps no session alive.
pub(crate) async fn mark_aside(conn: &mut Conn, id: TurnId) -> Result<(), StoreError> {
    let sql = "UPDATE turns SET is_aside = 1 WHERE id = $1";
    conn.execute(sql, values![id]).await.map(drop)
}

/// Returns the newest turn of a conversation that a job asked for. Those beside it
/// do not count.
pub(crate) async fn last_of(
    conn: &mut Conn,
    conversation: ConversationId,
) -> Result<Option<StoredTurn>, StoreError> {
    let sql = "SELECT * FROM turns WHERE conversation = $1 AND job IS NOT NULL
                   AND is_aside = 0
               ORDER BY id DESC LIMIT 1";
    let row = conn.fetch_optional(sql, values![conversation]).await?;
    row.map(|row| StoredTurn::from_row(&row)).transpose()
}

/// Notes that turns which nobody asked for, and of which nothing was heard for
/// long, will never end.
pub(crate) async fn abandon_unasked(
    conn: &mut Conn,
    begun_before: Millis,
    now: Millis,
) -> Result<u64, StoreError> {
    let sql = "UPDATE turns SET state = 'abandoned', ended_at = $2
               WHERE state = 'running' AND job IS NULL AND begun_at < $1";
    conn.execute(sql, values![begun_before, now]).await
}

/// Returns turns that run, as far as the store knows, though their jobs are over:
/// nobody is left to end them.
pub(crate) async fn left_behind(conn: &mut Conn, limit: u32) -> Result<Vec<TurnId>, StoreError> {
    let sql = "SELECT id FROM turns
               WHERE state = 'running' AND job IS NOT NULL
                   AND NOT EXISTS (
                       SELECT 1 FROM jobs
                       WHERE jobs.id = turns.job AND jobs.state IN ('waiting', 'ready', 'running'))
               ORDER BY id LIMIT +$1";
    let rows = conn.fetch_all(sql, values![i64::from(limit)]).await?;
    rows.iter().map(|row| row.parsed("id")).collect()
}

/// Notes that one of them will never end.
pub(crate) async fn abandon_one(
    conn: &mut Conn,
    id: TurnId,
    now: Millis,
) -> Result<(), StoreError> {
    let sql = "UPDATE turns SET state = 'abandoned', ended_at = $2
               WHERE id = $1 AND state = 'running'";
    conn.execute(sql, values![id, now]).await.map(drop)
}

/// Returns the turns of jobs that run, as far as the store knows, the newest first.
pub(crate) async fn running(conn: &mut Conn, limit: u32) -> Result<Vec<TurnId>, StoreError> {
    let sql = "SELECT id FROM turns WHERE state = 'running' AND job IS NOT NULL
               ORDER BY id DESC LIMIT +$1";
    let rows = conn.fetch_all(sql, values![i64::from(limit)]).await?;
    rows.iter().map(|row| row.parsed("id")).collect()
}

/// Whether a turn runs, as far as the store knows.
pub(crate) async fn is_running(conn: &mut Conn, id: TurnId) -> Result<bool, StoreError> {
    let sql = "SELECT 1 AS found FROM turns WHERE id = $1 AND state = 'running'";
    Ok(conn.fetch_optional(sql, values![id]).await?.is_some())
}

/// Notes that earlier attempts of a job will never end, and returns how many.
pub(crate) async fn abandon(
    conn: &mut Conn,
    job: JobId,
    before_attempt: i64,
    now: Millis,
) -> Result<u64, StoreError> {
    let sql = "UPDATE turns SET state = 'abandoned', ended_at = $3
               WHERE job = $1 AND attempt < $2 AND state = 'running'";
    conn.execute(sql, values![job, before_attempt, now]).await
}

/// Removes a turn of which nothing was done.
pub(crate) async fn remove(conn: &mut Conn, id: TurnId) -> Result<(), StoreError> {
    let sql = "DELETE FROM turns WHERE id = $1 AND state = 'running'";
    conn.execute(sql, values![id]).await.map(drop)
}

/// Returns a turn by its id.
pub(crate) async fn find(conn: &mut Conn, id: TurnId) -> Result<Option<StoredTurn>, StoreError> {
    let row = conn.fetch_optional("SELECT * FROM turns WHERE id = $1", values![id]).await?;
    row.map(|row| StoredTurn::from_row(&row)).transpose()
}

/// Returns the turns of a job, by attempt.
pub(crate) async fn of_job(conn: &mut Conn, job: JobId) -> Result<Vec<StoredTurn>, StoreError> {
    let sql = "SELECT * FROM turns WHERE job = $1 ORDER BY attempt, id";
    let rows = conn.fetch_all(sql, values![job]).await?;
    rows.iter().map(StoredTurn::from_row).collect()
}

/// Removes turns that ended before a time, at most this many. A turn stays for
/// as long as its job or one of its events does.
pub(crate) async fn remove_before(
    conn: &mut Conn,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM turns WHERE id IN (
                   SELECT id FROM turns AS old
                   WHERE state IN ('ended', 'abandoned') AND ended_at < $1
                       AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = old.job)
                       AND NOT EXISTS (SELECT 1 FROM events WHERE events.turn = old.id)
                   ORDER BY ended_at LIMIT +$2)";
    conn.execute(sql, values![before, i64::from(limit)]).await
}

/// Lists the newest turns of a conversation, newest first.
pub(crate) async fn newest(
    conn: &mut Conn,
    conversation: ConversationId,
    limit: u32,
) -> Result<Vec<StoredTurn>, StoreError> {
    let sql = "SELECT * FROM turns WHERE conversation = $1 ORDER BY id DESC LIMIT +$2";
    let rows = conn.fetch_all(sql, values![conversation, i64::from(limit)]).await?;
    rows.iter().map(StoredTurn::from_row).collect()
}

/// Lists turns of a project without their reports, newest first, beginning after
/// one of them.
pub(crate) async fn of_project(
    conn: &mut Conn,
    project: ProjectId,
    after: Option<TurnId>,
    limit: u32,
) -> Result<Vec<StoredTurn>, StoreError> {
    // No id is above this: the digits are all lower.
    let before = after.map_or_else(|| "trn_g".to_owned(), |id| id.to_string());
    let sql = "SELECT id, conversation, job, attempt, agent, state, NULL AS result, begun_at,
                      ended_at
               FROM turns WHERE project = $1 AND id < $2
               ORDER BY id DESC LIMIT +$3";
    let rows = conn.fetch_all(sql, values![project, &before, i64::from(limit)]).await?;
    rows.iter().map(StoredTurn::from_row).collect()
}

/// Returns a turn, if it is one of a project.
pub(crate) async fn find_in(
    conn: &mut Conn,
    project: ProjectId,
    id: TurnId,
) -> Result<Option<StoredTurn>, StoreError> {
    let sql = "SELECT * FROM turns WHERE id = $1 AND project = $2";
    let row = conn.fetch_optional(sql, values![id, project]).await?;
    row.map(|row| StoredTurn::from_row(&row)).transpose()
}

impl StoredTurn {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            turn: NewTurn {
                id: row.parsed("id")?,
                conversation: row.parsed("conversation")?,
                job: row.opt_parsed("job")?,
                attempt: row.int("attempt")?,
                agent: row.text("agent")?,
                begun_at: row.millis("begun_at")?,
            },
            state: row.parsed("state")?,
            result: row.opt_text("result")?,
            ended_at: row.opt_millis("ended_at")?,
        })
    }
}
