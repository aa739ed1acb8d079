//! Commands of projects: what somebody wanted to be done, and what came of it.
//! Each is a job, and its state follows the job's in the same writes.

use std::{fmt, str::FromStr};

use serde::Serialize;
use thiserror::Error;

use super::{
    Conn, StoreError,
    db::{Row, Value, values},
};
use crate::{
    clock::Millis,
    id::{CommandId, ConversationId, ProjectId},
};

/// Makes an enum whose values are stored and shown as words.
macro_rules! words {
    ($(#[$about:meta])* $name:ident, $error:ident, $says:literal, $($value:ident = $word:literal),+) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub(crate) enum $name {
            $($value),+
        }

        impl $name {
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word),+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        #[doc = "A text that is none of them."]
        #[derive(Clone, Debug, Error)]
        #[error($says)]
        pub(crate) struct $error(String);

        impl FromStr for $name {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                match text {
                    $($word => Ok(Self::$value),)+
                    other => Err($error(other.to_owned())),
                }
            }
        }
    };
}

words!(
    /// What sort of command it is.
    CommandKind, NoKind, "{0:?} is none of prompt, shell, git",
    Prompt = "prompt", Shell = "shell", Git = "git"
);

words!(
    /// Where a command stands.
    CommandState, NoState, "{0:?} is none of queued, running, completed, failed, cancelled",
    Queued = "queued", Running = "running", Completed = "completed", Failed = "failed",
    Cancelled = "cancelled"
);

/// A command that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewCommand {
    pub(crate) id: CommandId,
    pub(crate) project: ProjectId,
    pub(crate) conversation: ConversationId,
    pub(crate) kind: CommandKind,
    /// The name under which its events are read.
    pub(crate) stream: String,
    pub(crate) agent: Option<String>,
    /// The prompt, or the command line.
    pub(crate) text: String,
    /// The id of the key that gave it.
    pub(crate) actor: String,
    pub(crate) created_at: Millis,
}

/// A command as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredCommand {
    pub(crate) command: NewCommand,
    pub(crate) state: CommandState,
    /// What came of it, as JSON, once it is over.
    pub(crate) result: Option<String>,
    pub(crate) started_at: Option<Millis>,
    pub(crate) ended_at: Option<Millis>,
}

/// Stores a command that was accepted.
pub(crate) async fn add(conn: &mut Conn, command: &NewCommand) -> Result<(), StoreError> {
    conn.execute(
        "INSERT INTO commands (id, project, conversation, kind, stream, agent, text, actor, state,
             created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'queued', $9)",
        values![
            command.id,
            command.project,
            command.conversation,
            command.kind.as_str(),
            &command.stream,
            command.agent.as_deref(),
            &command.text,
            &command.actor,
            command.created_at
        ],
    )
    .await
    .map(drop)
}

/// Notes that work on it began; returns whether that is news.
pub(crate) async fn begin(conn: &mut Conn, id: CommandId, now: Millis) -> Result<bool, StoreError> {
    let sql = "UPDATE commands SET state = 'running', started_at = $2
               WHERE id = $1 AND state = 'queued'";
    Ok(conn.execute(sql, values![id, now]).await? > 0)
}

/// Notes what came of it. The first word stands; returns whether it is this.
pub(crate) async fn end(
    conn: &mut Conn,
    id: CommandId,
    state: CommandState,
    result: &str,
    now: Millis,
) -> Result<bool, StoreError> {
    let sql = "UPDATE commands SET state = $2, result = $3, ended_at = $4
               WHERE id = $1 AND ended_at IS NULL";
    Ok(conn.execute(sql, values![id, state.as_str(), result, now]).await? > 0)
}

/// Returns a command by its id.
pub(crate) async fn find(
    conn: &mut Conn,
    id: CommandId,
) -> Result<Option<StoredCommand>, StoreError> {
    let row = conn.fetch_optional("SELECT * FROM commands WHERE id = $1", values![id]).await?;
    row.map(|row| StoredCommand::from_row(&row)).transpose()
}

/// Returns whether a command is there and not over.
pub(crate) async fn is_open(conn: &mut Conn, id: CommandId) -> Result<bool, StoreError> {
    let sql = "SELECT 1 AS found FROM commands WHERE id = $1 AND ended_at IS NULL";
    Ok(conn.fetch_optional(sql, values![id]).await?.is_some())
}

/// How much of a command's text a list shows.
const SHOWN: i64 = 500;

/// Which commands of a project are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) state: Option<CommandState>,
    pub(crate) kind: Option<CommandKind>,
}

impl Filter {
    /// Returns the conditions. They are words of ours, never of a caller's.
    fn sql(self) -> String {
        // What is not over has an index of its own.
        let state = self.state.map(|state| match state {
            CommandState::Queued | CommandState::Running => {
                format!(" AND state = '{state}' AND ended_at IS NULL")
            }
            CommandState::Completed | CommandState::Failed | CommandState::Cancelled => {
                format!(" AND state = '{state}'")
            }
        });
        let kind = self.kind.map(|kind| format!(" AND kind = '{kind}'"));
        state.unwrap_or_default() + &kind.unwrap_or_default()
    }
}

/// Lists commands of a project, newest first, beginning after one of them: without
/// their results, and with the start of their texts, for both may be long.
pub(crate) async fn list(
    conn: &mut Conn,
    project: ProjectId,
    filter: Filter,
    after: Option<CommandId>,
    limit: u32,
) -> Result<Vec<StoredCommand>, StoreError> {
    // No id is above this: the digits are all lower.
    let before = after.map_or_else(|| "cmd_g".to_owned(), |id| id.to_string());
    let sql = format!(
        "SELECT id, project, conversation, kind, stream, agent, substr(text, 1, {SHOWN}) AS text,
             actor, state, NULL AS result, created_at, started_at, ended_at
         FROM commands WHERE project = $1 AND id < $2{}
         ORDER BY id DESC LIMIT +$3",
        filter.sql()
    );
    let rows = conn.fetch_all(sql, values![project, &before, i64::from(limit)]).await?;
    rows.iter().map(StoredCommand::from_row).collect()
}

/// Returns the commands of a project that are not over.
pub(crate) async fn open_in(
    conn: &mut Conn,
    project: ProjectId,
) -> Result<Vec<CommandId>, StoreError> {
    let sql = "SELECT id FROM commands WHERE project = $1 AND ended_at IS NULL ORDER BY id";
    let rows = conn.fetch_all(sql, values![project]).await?;
    rows.iter().map(|row| row.parsed("id")).collect()
}

/// Returns those of some commands that are over.
pub(crate) async fn over_among(
    conn: &mut Conn,
    ids: &[CommandId],
) -> Result<Vec<CommandId>, StoreError> {
    let places: Vec<String> = (1..=ids.len()).map(|place| format!("${place}")).collect();
    let sql = format!(
        "SELECT id FROM commands WHERE ended_at IS NOT NULL AND id IN ({})",
        places.join(", ")
    );
    let values: Vec<Value> = ids.iter().map(|id| Value::from(*id)).collect();
    let rows = conn.fetch_all(sql, &values).await?;
    rows.iter().map(|row| row.parsed("id")).collect()
}

/// Returns commands that are not over though their jobs are, or are gone: nobody
/// is left to end them.
pub(crate) async fn left_behind(
    conn: &mut Conn,
    limit: u32,
) -> Result<Vec<StoredCommand>, StoreError> {
    // The ids of both are the same but for the prefix.
    let sql = "SELECT * FROM commands
               WHERE ended_at IS NULL
                   AND NOT EXISTS (
                       SELECT 1 FROM jobs
                       WHERE jobs.id = 'job' || substr(commands.id, 4)
                           AND jobs.state IN ('waiting', 'ready', 'running'))
               ORDER BY id LIMIT +$1";
    let rows = conn.fetch_all(sql, values![i64::from(limit)]).await?;
    rows.iter().map(StoredCommand::from_row).collect()
}

/// Removes commands that ended before a time, at most this many.
pub(crate) async fn remove_before(
    conn: &mut Conn,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM commands WHERE id IN (
                   SELECT id FROM commands WHERE ended_at < $1 ORDER BY ended_at LIMIT +$2)";
    conn.execute(sql, values![before, i64::from(limit)]).await
}

impl StoredCommand {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            command: NewCommand {
                id: row.parsed("id")?,
                project: row.parsed("project")?,
                conversation: row.parsed("conversation")?,
                kind: row.parsed("kind")?,
                stream: row.text("stream")?,
                agent: row.opt_text("agent")?,
                text: row.text("text")?,
                actor: row.text("actor")?,
                created_at: row.millis("created_at")?,
            },
            state: row.parsed("state")?,
            result: row.opt_text("result")?,
            started_at: row.opt_millis("started_at")?,
            ended_at: row.opt_millis("ended_at")?,
        })
    }
}
