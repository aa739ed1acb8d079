//! Schedules: what is to be said when, to whom, and how far that was done.

use std::str::FromStr;

use super::{
    Conn, StoreError, Topic,
    conversations::Address,
    db::{Row, unreadable, values},
};
use crate::{
    clock::Millis,
    id::{JobId, ScheduleId},
};

/// How many there can be. All of them are looked at again and again.
pub(crate) const MOST: u32 = 1000;

/// What becomes of times that passed while no gateway ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missed {
    /// They are left out.
    Skip,
    /// One run makes up for all of them.
    Once,
}

impl Missed {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Once => "once",
        }
    }
}

/// A text that is no such policy.
#[derive(Debug, thiserror::Error)]
#[error("there is no such policy")]
pub(crate) struct NoPolicy;

impl FromStr for Missed {
    type Err = NoPolicy;

    fn from_str(text: &str) -> Result<Self, NoPolicy> {
        match text {
            "skip" => Ok(Self::Skip),
            "once" => Ok(Self::Once),
            _ => Err(NoPolicy),
        }
    }
}

/// A schedule as somebody writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewSchedule {
    pub(crate) id: ScheduleId,
    pub(crate) name: String,
    pub(crate) cron: String,
    pub(crate) zone: String,
    pub(crate) conversation: Address,
    /// Where the answers go; nothing for the conversation itself.
    pub(crate) to: Option<Address>,
    pub(crate) agent: Option<String>,
    pub(crate) prompt: String,
    pub(crate) missed: Missed,
    pub(crate) created_at: Millis,
}

/// A schedule as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) schedule: NewSchedule,
    pub(crate) is_enabled: bool,
    /// Up to which time everything was dealt with.
    pub(crate) last_slot: Millis,
    /// The last run.
    pub(crate) job: Option<JobId>,
    pub(crate) last_run_at: Option<Millis>,
    pub(crate) n_runs: u64,
    /// How many times were left out: missed, or while an earlier run was not over.
    pub(crate) n_skipped: u64,
}

impl Schedule {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let address = |channel: String, address: String| {
            Address::new(&channel, &address).map_err(|error| unreadable("address", error))
        };
        let to = match (row.opt_text("to_channel")?, row.opt_text("to_address")?) {
            (Some(channel), Some(key)) => Some(address(channel, key)?),
            (None, _) | (_, None) => None,
        };
        Ok(Self {
            schedule: NewSchedule {
                id: row.parsed("id")?,
                name: row.text("name")?,
                cron: row.text("cron")?,
                zone: row.text("zone")?,
                conversation: address(row.text("channel")?, row.text("address")?)?,
                to,
                agent: row.opt_text("agent")?,
                prompt: row.text("prompt")?,
                missed: row.parsed("missed")?,
                created_at: row.millis("created_at")?,
            },
            is_enabled: row.is("is_enabled")?,
            last_slot: row.millis("last_slot")?,
            job: row.opt_parsed("job")?,
            last_run_at: row.opt_millis("last_run_at")?,
            n_runs: row.count("n_runs")?,
            n_skipped: row.count("n_skipped")?,
        })
    }
}

/// Adds a schedule whose times count from its creation. Returns whether its
/// name was free.
pub(crate) async fn add(conn: &mut Conn, new: &NewSchedule) -> Result<bool, StoreError> {
    let to = new.to.as_ref();
    let added = conn
        .execute(
            "INSERT INTO schedules (id, name, cron, zone, channel, address, to_channel, to_address,
                 agent, prompt, missed, is_enabled, last_slot, n_runs, n_skipped, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1, $12, 0, 0, $12)
             ON CONFLICT (name) DO NOTHING",
            values![
                new.id,
                &new.name,
                &new.cron,
                &new.zone,
                new.conversation.channel(),
                new.conversation.key(),
                to.map(Address::channel),
                to.map(Address::key),
                new.agent.as_deref(),
                &new.prompt,
                new.missed.as_str(),
                new.created_at
            ],
        )
        .await?;
    conn.wake(Topic::Schedules);
    Ok(added > 0)
}

/// Lists all schedules, by name.
pub(crate) async fn list(conn: &mut Conn) -> Result<Vec<Schedule>, StoreError> {
    let sql = "SELECT * FROM schedules ORDER BY name LIMIT +$1";
    let rows = conn.fetch_all(sql, values![i64::from(MOST)]).await?;
    rows.iter().map(Schedule::from_row).collect()
}

/// Returns how many there are.
pub(crate) async fn count(conn: &mut Conn) -> Result<u64, StoreError> {
    conn.fetch_one("SELECT count(*) AS found FROM schedules", values![]).await?.count("found")
}

/// Returns a schedule by its name or its id.
pub(crate) async fn find(conn: &mut Conn, name: &str) -> Result<Option<Schedule>, StoreError> {
    // No name is another's id: ids cannot be chosen, and names like them are refused.
    let sql = "SELECT * FROM schedules WHERE name = $1 OR id = $1";
    let row = conn.fetch_optional(sql, values![name]).await?;
    row.map(|row| Schedule::from_row(&row)).transpose()
}

/// Returns a schedule as [`find`] does, and keeps it from all others until the
/// write is over: between the look and a run nobody else makes one.
pub(crate) async fn lock(conn: &mut Conn, name: &str) -> Result<Option<Schedule>, StoreError> {
    let sql = "UPDATE schedules SET n_runs = n_runs WHERE name = $1 OR id = $1";
    conn.execute(sql, values![name]).await?;
    find(conn, name).await
}

/// Removes a schedule. Runs that have begun go on.
pub(crate) async fn remove(conn: &mut Conn, id: ScheduleId) -> Result<(), StoreError> {
    conn.wake(Topic::Schedules);
    conn.execute("DELETE FROM schedules WHERE id = $1", values![id]).await.map(drop)
}

/// Switches a schedule on or off. The times that passed while it was off are
/// nothing that was missed.
pub(crate) async fn set_enabled(
    conn: &mut Conn,
    id: ScheduleId,
    is_enabled: bool,
    now: Millis,
) -> Result<(), StoreError> {
    let sql = "UPDATE schedules SET is_enabled = $2,
                   last_slot = CASE WHEN is_enabled = 0 AND $2 = 1 THEN $3 ELSE last_slot END
               WHERE id = $1";
    conn.wake(Topic::Schedules);
    conn.execute(sql, values![id, i64::from(is_enabled), now]).await.map(drop)
}

/// Deals with everything up to a time, if nobody else has: only one gateway
/// gets the run of a time.
pub(crate) async fn pass(
    conn: &mut Conn,
    id: ScheduleId,
    from: Millis,
    to: Millis,
    n_skipped: u32,
) -> Result<bool, StoreError> {
    let sql = "UPDATE schedules SET last_slot = $3, n_skipped = n_skipped + $4
               WHERE id = $1 AND last_slot = $2 AND is_enabled = 1";
    Ok(conn.execute(sql, values![id, from, to, i64::from(n_skipped)]).await? > 0)
}

/// Notes that a time was left out after all.
pub(crate) async fn skipped(conn: &mut Conn, id: ScheduleId) -> Result<(), StoreError> {
    let sql = "UPDATE schedules SET n_skipped = n_skipped + 1 WHERE id = $1";
    conn.execute(sql, values![id]).await.map(drop)
}

/// Notes a run.
pub(crate) async fn ran(
    conn: &mut Conn,
    id: ScheduleId,
    job: JobId,
    now: Millis,
) -> Result<(), StoreError> {
    let sql = "UPDATE schedules SET job = $2, last_run_at = $3, n_runs = n_runs + 1 WHERE id = $1";
    conn.execute(sql, values![id, job, now]).await.map(drop)
}
