//! The event log. Numbers are store-wide, without gaps, and become visible in
//! their order: the counter's row is locked from the numbering to the commit.
//! Whoever has read up to a number misses nothing by going on from there.

use std::{fmt::Write as _, ops::RangeInclusive};

use serde::{Deserialize, Serialize};

use super::{
    Conn, StoreError, Topic,
    db::{Row, Value, values},
};
use crate::{
    clock::Millis,
    id::{CommandId, ConversationId, JobId, ProjectId, TurnId},
};

/// How many events go into one statement.
const ROWS: usize = 50;
/// How many columns an event has.
const COLUMNS: usize = 10;

/// Which project something belongs to, and which command of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Belonging {
    pub(crate) project: ProjectId,
    /// None of what an agent does by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<CommandRef>,
}

/// A command, and the name under which its events are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandRef {
    pub(crate) id: CommandId,
    pub(crate) stream: String,
}

impl Belonging {
    /// Returns the same without the command: that one is over.
    pub(crate) fn of_project(&self) -> Self {
        Self { project: self.project, command: None }
    }
}

/// An event that is to be numbered and stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewEvent {
    pub(crate) conversation: Option<ConversationId>,
    pub(crate) belongs: Option<Belonging>,
    pub(crate) turn: Option<TurnId>,
    /// Its number within its turn.
    pub(crate) seq: i64,
    pub(crate) at: Millis,
    pub(crate) kind: String,
    /// The whole event, as JSON.
    pub(crate) body: String,
}

/// An event of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredEvent {
    pub(crate) number: i64,
    pub(crate) event: NewEvent,
}

/// What there is to read: everything after `removed` up to `newest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The newest number that retention removed; 0 if none.
    pub(crate) removed: i64,
    /// The newest number there is; 0 if none.
    pub(crate) newest: i64,
}

/// Numbers and stores events, and returns their numbers. Nothing else that
/// takes long should follow in the same write: others wait for the counter.
pub(crate) async fn append(
    conn: &mut Conn,
    events: &[NewEvent],
) -> Result<Option<RangeInclusive<i64>>, StoreError> {
    if events.is_empty() {
        return Ok(None);
    }
    let numbers = number(conn, events.len()).await?;
    put(conn, *numbers.start(), events).await?;
    Ok(Some(numbers))
}

/// Takes the next numbers. Until the write is over nobody else numbers events.
pub(crate) async fn number(
    conn: &mut Conn,
    n_events: usize,
) -> Result<RangeInclusive<i64>, StoreError> {
    let n_events = i64::try_from(n_events).unwrap_or(i64::MAX);
    let sql = "UPDATE counters SET value = value + $1 WHERE name = 'events' RETURNING value";
    let last = conn.fetch_one(sql, values![n_events]).await?.int("value")?;
    Ok(last - n_events + 1..=last)
}

/// Stores events whose numbers were taken in the same write, beginning with this.
pub(crate) async fn put(
    conn: &mut Conn,
    first: i64,
    events: &[NewEvent],
) -> Result<(), StoreError> {
    let mut number = first;
    for rows in events.chunks(ROWS) {
        let mut all = Vec::with_capacity(rows.len() * COLUMNS);
        for event in rows {
            let command = event.belongs.as_ref().and_then(|belongs| belongs.command.as_ref());
            all.extend([
                Value::from(number),
                event.conversation.into(),
                event.turn.into(),
                event.seq.into(),
                event.at.into(),
                Value::from(&event.kind),
                Value::from(&event.body),
                event.belongs.as_ref().map(|belongs| belongs.project).into(),
                command.map(|command| command.id).into(),
                command.map(|command| command.stream.as_str()).into(),
            ]);
            number += 1;
        }
        conn.execute(insert(rows.len()), &all).await?;
    }
    conn.wake(Topic::Events);
    Ok(())
}

/// Returns the statement that inserts this many events.
fn insert(n_rows: usize) -> String {
    let mut sql = "INSERT INTO events (number, conversation, turn, seq, at, type, body, project,
                       command, stream) VALUES "
        .to_owned();
    for row in 0..n_rows {
        for column in 1..=COLUMNS {
            let before = if column > 1 {
                ", "
            } else if row > 0 {
                "), ("
            } else {
                "("
            };
            // Writing to a string cannot fail.
            write!(sql, "{before}${}", row * COLUMNS + column).ok();
        }
    }
    sql.push(')');
    sql
}

/// Reads events of all conversations after a number, in order.
pub(crate) async fn read(
    conn: &mut Conn,
    after: i64,
    limit: u32,
) -> Result<Vec<StoredEvent>, StoreError> {
    let sql = "SELECT * FROM events WHERE number > $1 ORDER BY number LIMIT +$2";
    let rows = conn.fetch_all(sql, values![after, i64::from(limit)]).await?;
    rows.iter().map(StoredEvent::from_row).collect()
}

/// Reads events of one conversation after a number, in order.
pub(crate) async fn read_of(
    conn: &mut Conn,
    conversation: ConversationId,
    after: i64,
    limit: u32,
) -> Result<Vec<StoredEvent>, StoreError> {
    let sql = "SELECT * FROM events WHERE conversation = $1 AND number > $2
               ORDER BY number LIMIT +$3";
    let rows = conn.fetch_all(sql, values![conversation, after, i64::from(limit)]).await?;
    rows.iter().map(StoredEvent::from_row).collect()
}

/// Reads the events of a job's turns after a number, in order.
pub(crate) async fn read_job(
    conn: &mut Conn,
    job: JobId,
    after: i64,
    limit: u32,
) -> Result<Vec<StoredEvent>, StoreError> {
    let sql = "SELECT * FROM events WHERE turn IN (SELECT id FROM turns WHERE job = $1)
                   AND number > $2
               ORDER BY number LIMIT +$3";
    let rows = conn.fetch_all(sql, values![job, after, i64::from(limit)]).await?;
    rows.iter().map(StoredEvent::from_row).collect()
}

/// Returns whether an event of a turn is in the log: what to ask after a write
/// that may have happened.
pub(crate) async fn is_stored(conn: &mut Conn, turn: TurnId, seq: i64) -> Result<bool, StoreError> {
    let sql = "SELECT 1 AS found FROM events WHERE turn = $1 AND seq = $2 AND seq > 0";
    Ok(conn.fetch_optional(sql, values![turn, seq]).await?.is_some())
}

/// Returns what there is to read. A reader whose number is below `removed` has
/// missed something, and can say so.
pub(crate) async fn extent(conn: &mut Conn) -> Result<Extent, StoreError> {
    let sql = "SELECT (SELECT value FROM counters WHERE name = 'events_removed') AS removed,
                      (SELECT value FROM counters WHERE name = 'events') AS newest";
    let row = conn.fetch_one(sql, values![]).await?;
    Ok(Extent { removed: row.int("removed")?, newest: row.int("newest")? })
}

/// Removes the oldest events that are from before a time, at most this many,
/// and returns how many. What is kept has no gaps: an event with a later time,
/// by a clock that was wrong, keeps those after it until its time has come.
pub(crate) async fn remove_before(
    conn: &mut Conn,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "SELECT number, at FROM events ORDER BY number LIMIT +$1";
    let mut last = None;
    for row in conn.fetch_all(sql, values![i64::from(limit)]).await? {
        if row.millis("at")? >= before {
            break;
        }
        last = Some(row.int("number")?);
    }
    let Some(last) = last else { return Ok(0) };
    let sql = "UPDATE counters SET value = $1 WHERE name = 'events_removed'";
    conn.execute(sql, values![last]).await?;
    conn.execute("DELETE FROM events WHERE number <= $1", values![last]).await
}

/// Reads events of a project after a number, in order.
pub(crate) async fn read_project(
    conn: &mut Conn,
    project: ProjectId,
    after: i64,
    limit: u32,
) -> Result<Vec<StoredEvent>, StoreError> {
    let sql = "SELECT * FROM events WHERE project = $1 AND number > $2
               ORDER BY number LIMIT +$3";
    let rows = conn.fetch_all(sql, values![project, after, i64::from(limit)]).await?;
    rows.iter().map(StoredEvent::from_row).collect()
}

/// Reads events of one stream of a project after a number, in order.
pub(crate) async fn read_stream(
    conn: &mut Conn,
    project: ProjectId,
    stream: &str,
    after: i64,
    limit: u32,
) -> Result<Vec<StoredEvent>, StoreError> {
    let sql = "SELECT * FROM events WHERE project = $1 AND stream = $2 AND number > $3
               ORDER BY number LIMIT +$4";
    let rows = conn.fetch_all(sql, values![project, stream, after, i64::from(limit)]).await?;
    rows.iter().map(StoredEvent::from_row).collect()
}

/// Whose events to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Everything,
    Project(ProjectId),
    /// One stream of a project.
    Stream(ProjectId, Box<str>),
}

/// Some events, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Portion {
    pub(crate) events: Vec<StoredEvent>,
    /// Whether nothing selected that had been stored when the reading began comes
    /// after them.
    pub(crate) is_all: bool,
    /// The newest number that retention had removed when the reading was over: up
    /// to there events may be missing.
    pub(crate) removed: i64,
}

/// The most of a portion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtMost {
    pub(crate) events: u32,
    /// The bytes of their bodies. A single event may have more.
    pub(crate) bytes: usize,
}

/// Reads some of the selected events after a number.
pub(crate) async fn read_portion(
    conn: &mut Conn,
    selection: &Selection,
    after: i64,
    at_most: AtMost,
) -> Result<Portion, StoreError> {
    // The sizes are looked at first, so that a few long events do not fill the memory.
    let sizes = sizes(conn, selection, after, at_most.events).await?;
    let mut bytes = 0_usize;
    let fits = |size: &usize| {
        bytes = bytes.saturating_add(*size);
        bytes <= at_most.bytes
    };
    let n_fit = sizes.iter().copied().take_while(fits).count().max(1);
    let limit = u32::try_from(n_fit).unwrap_or(u32::MAX);
    let events = match selection {
        _ if sizes.is_empty() => Vec::new(),
        Selection::Everything => read(conn, after, limit).await?,
        Selection::Project(project) => read_project(conn, *project, after, limit).await?,
        Selection::Stream(project, stream) => {
            read_stream(conn, *project, stream, after, limit).await?
        }
    };
    let is_all = n_fit >= sizes.len() && sizes.len() < at_most.events as usize;
    // Looked at last: what retention removed before the events were read shows in it.
    let removed = extent(conn).await?.removed;
    Ok(Portion { events, is_all, removed })
}

/// Returns how long the selected events after a number are.
async fn sizes(
    conn: &mut Conn,
    selection: &Selection,
    after: i64,
    limit: u32,
) -> Result<Vec<usize>, StoreError> {
    let limit = i64::from(limit);
    let rows = match selection {
        Selection::Everything => {
            let sql = "SELECT CAST(octet_length(body) AS BIGINT) AS size FROM events
                       WHERE number > $1
                       ORDER BY number LIMIT +$2";
            conn.fetch_all(sql, values![after, limit]).await?
        }
        Selection::Project(project) => {
            let sql = "SELECT CAST(octet_length(body) AS BIGINT) AS size FROM events
                       WHERE project = $1 AND number > $2
                       ORDER BY number LIMIT +$3";
            conn.fetch_all(sql, values![*project, after, limit]).await?
        }
        Selection::Stream(project, stream) => {
            let sql = "SELECT CAST(octet_length(body) AS BIGINT) AS size FROM events
                       WHERE project = $1 AND stream = $2 AND number > $3
                       ORDER BY number LIMIT +$4";
            conn.fetch_all(sql, values![*project, &**stream, after, limit]).await?
        }
    };
    let size = |row: &Row| Ok(usize::try_from(row.int("size")?).unwrap_or(usize::MAX));
    rows.iter().map(size).collect()
}

/// Reads events of a command after a number, in order.
pub(crate) async fn read_command(
    conn: &mut Conn,
    command: CommandId,
    after: i64,
    limit: u32,
) -> Result<Vec<StoredEvent>, StoreError> {
    let sql = "SELECT * FROM events WHERE command = $1 AND number > $2
               ORDER BY number LIMIT +$3";
    let rows = conn.fetch_all(sql, values![command, after, i64::from(limit)]).await?;
    rows.iter().map(StoredEvent::from_row).collect()
}

/// Reads events of a turn after a number, in order.
pub(crate) async fn read_turn(
    conn: &mut Conn,
    turn: TurnId,
    after: i64,
    limit: u32,
) -> Result<Vec<StoredEvent>, StoreError> {
    // Not by the numbers of everybody's events: a turn has few of them.
    let sql = "SELECT * FROM events WHERE turn = $1 AND number + 0 > $2
               ORDER BY number + 0 LIMIT +$3";
    let rows = conn.fetch_all(sql, values![turn, after, i64::from(limit)]).await?;
    rows.iter().map(StoredEvent::from_row).collect()
}

/// Returns the last event of a turn up to a number.
pub(crate) async fn last(
    conn: &mut Conn,
    turn: TurnId,
    up_to: i64,
) -> Result<Option<StoredEvent>, StoreError> {
    let sql = "SELECT * FROM events WHERE turn = $1 AND number + 0 <= $2
               ORDER BY number + 0 DESC LIMIT 1";
    let row = conn.fetch_optional(sql, values![turn, up_to]).await?;
    row.map(|row| StoredEvent::from_row(&row)).transpose()
}

impl StoredEvent {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let command = row.opt_parsed("command")?.zip(row.opt_text("stream")?);
        let command = command.map(|(id, stream)| CommandRef { id, stream });
        let project = row.opt_parsed("project")?;
        Ok(Self {
            number: row.int("number")?,
            event: NewEvent {
                conversation: row.opt_parsed("conversation")?,
                belongs: project.map(|project| Belonging { project, command }),
                turn: row.opt_parsed("turn")?,
                seq: row.int("seq")?,
                at: row.millis("at")?,
                kind: row.text("type")?,
                body: row.text("body")?,
            },
        })
    }
}
