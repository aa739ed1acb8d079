//! People who asked to be let in, and what the operator said of them. What he
//! says has its line of the audit in the same write.

use std::{str::FromStr, time::Duration};

use serde::Serialize;
use serde_json::json;

use super::{
    Conn, StoreError,
    audit::{self, Entry},
    db::{Row, values},
};
use crate::{
    channel::{access::Standing, code::Code},
    clock::Millis,
};

/// How long a code can be used.
pub(crate) const OPEN: Duration = Duration::from_secs(60 * 60);
/// How many strangers of a channel can have one at a time.
pub(crate) const MOST: u64 = 20;
/// How much is kept of what somebody calls himself, in characters.
const LONGEST_NAME: usize = 100;
/// How many are listed.
const LISTED: i64 = 1000;

/// Somebody in a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) channel: String,
    /// Who it is, by the name that the channel vouches for.
    pub(crate) sender: String,
}

/// How it stands with somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PairingState {
    Asked,
    Approved,
    Rejected,
}

impl PairingState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
        }
    }
}

/// A text that is no state.
#[derive(Debug, thiserror::Error)]
#[error("there is no such state")]
pub(crate) struct NoState;

impl FromStr for PairingState {
    type Err = NoState;

    fn from_str(text: &str) -> Result<Self, NoState> {
        let all = [Self::Asked, Self::Approved, Self::Rejected];
        all.into_iter().find(|state| state.as_str() == text).ok_or(NoState)
    }
}

impl From<PairingState> for Standing {
    fn from(state: PairingState) -> Self {
        match state {
            PairingState::Asked => Self::Unknown,
            PairingState::Approved => Self::Approved,
            PairingState::Rejected => Self::Rejected,
        }
    }
}

/// Somebody who asked, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pairing {
    pub(crate) person: Person,
    /// What he is called there.
    pub(crate) name: String,
    /// What the operator has to say, as long as nothing is decided.
    pub(crate) code: Option<String>,
    pub(crate) state: PairingState,
    pub(crate) asked_at: Millis,
    /// Until when the code can be used.
    pub(crate) expires_at: Millis,
    pub(crate) decided_at: Option<Millis>,
}

/// What somebody gets who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The code that the operator has to hear, new or from before.
    Code(String),
    /// Too many others have asked.
    TooMany,
    /// The operator has spoken.
    Decided(Standing),
}

/// What the operator says of somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Approve,
    Reject,
}

/// Gives somebody the code that he has, or else this one.
pub(crate) async fn ask(
    conn: &mut Conn,
    person: &Person,
    name: &str,
    code: &Code,
    now: Millis,
) -> Result<Asked, StoreError> {
    let Person { channel, sender } = person;
    // Whoever asks at the same time waits for the end of this write, so that all are counted.
    let sql = "UPDATE pairings SET state = state WHERE channel = $1 AND state = 'asked'";
    conn.execute(sql, values![channel]).await?;
    if let Some(known) = find(conn, person).await? {
        match (known.state, known.code) {
            (PairingState::Asked, Some(code)) if known.expires_at > now => {
                return Ok(Asked::Code(code));
            }
            (PairingState::Asked, _) => {}
            (state @ (PairingState::Approved | PairingState::Rejected), _) => {
                return Ok(Asked::Decided(state.into()));
            }
        }
    }
    let sql = "SELECT count(*) AS pairings FROM pairings
               WHERE channel = $1 AND state = 'asked' AND expires_at > $2";
    if conn.fetch_one(sql, values![channel, now]).await?.count("pairings")? >= MOST {
        return Ok(Asked::TooMany);
    }
    let name: String = name.chars().take(LONGEST_NAME).collect();
    conn.execute(
        "INSERT INTO pairings (channel, sender, name, code, state, asked_at, expires_at)
         VALUES ($1, $2, $3, $4, 'asked', $5, $6)
         ON CONFLICT (channel, sender) DO UPDATE
         SET name = excluded.name, code = excluded.code, asked_at = excluded.asked_at,
             expires_at = excluded.expires_at
         WHERE pairings.state = 'asked' AND pairings.expires_at <= excluded.asked_at",
        values![channel, sender, &name, code.as_str(), now, now.after(OPEN)],
    )
    .await?;
    // The same person may have been first, from elsewhere.
    let known = find(conn, person).await?.map(|known| (known.code, known.state));
    Ok(match known {
        Some((Some(code), _)) => Asked::Code(code),
        Some((None, state)) => Asked::Decided(state.into()),
        None => Asked::TooMany,
    })
}

/// Decides about whoever has a code; nobody, if it is none that can be used.
pub(crate) async fn decide(
    conn: &mut Conn,
    code: &Code,
    decision: Decision,
    by: &str,
    now: Millis,
) -> Result<Option<Pairing>, StoreError> {
    let (state, action) = match decision {
        Decision::Approve => (PairingState::Approved, "pairing.approve"),
        Decision::Reject => (PairingState::Rejected, "pairing.reject"),
    };
    let sql = "UPDATE pairings SET state = $2, code = NULL, decided_at = $3
               WHERE code = $1 AND state = 'asked' AND expires_at > $3 RETURNING *";
    let row = conn.fetch_optional(sql, values![code.as_str(), state.as_str(), now]).await?;
    let Some(decided) = row.map(|row| Pairing::from_row(&row)).transpose()? else {
        return Ok(None);
    };
    note(conn, action, &decided, by, now).await?;
    Ok(Some(decided))
}

/// Forgets somebody, whatever was said of him; returns how it stood.
pub(crate) async fn remove(
    conn: &mut Conn,
    person: &Person,
    by: &str,
    now: Millis,
) -> Result<Option<Pairing>, StoreError> {
    let sql = "DELETE FROM pairings WHERE channel = $1 AND sender = $2 RETURNING *";
    let row = conn.fetch_optional(sql, values![&person.channel, &person.sender]).await?;
    let Some(removed) = row.map(|row| Pairing::from_row(&row)).transpose()? else {
        return Ok(None);
    };
    note(conn, "pairing.remove", &removed, by, now).await?;
    Ok(Some(removed))
}

/// Writes down what was done about somebody.
async fn note(
    conn: &mut Conn,
    action: &str,
    pairing: &Pairing,
    by: &str,
    now: Millis,
) -> Result<(), StoreError> {
    let Person { channel, sender } = &pairing.person;
    let detail = json!({ "name": pairing.name, "state": pairing.state });
    let entry = Entry {
        at: now,
        actor: by.to_owned(),
        action: action.to_owned(),
        subject: format!("{channel}:{sender}"),
        detail: detail.to_string(),
    };
    audit::add(conn, &entry).await
}

/// Returns all whose code can be used or who were decided about, the newest first.
pub(crate) async fn list(conn: &mut Conn, now: Millis) -> Result<Vec<Pairing>, StoreError> {
    let sql = "SELECT * FROM pairings WHERE state <> 'asked' OR expires_at > $1
               ORDER BY asked_at DESC, channel, sender LIMIT +$2";
    let rows = conn.fetch_all(sql, values![now, LISTED]).await?;
    rows.iter().map(Pairing::from_row).collect()
}

/// Returns what the operator said of somebody.
pub(crate) async fn standing(conn: &mut Conn, person: &Person) -> Result<Standing, StoreError> {
    let found = find(conn, person).await?;
    Ok(found.map_or(Standing::Unknown, |found| found.state.into()))
}

async fn find(conn: &mut Conn, person: &Person) -> Result<Option<Pairing>, StoreError> {
    let sql = "SELECT * FROM pairings WHERE channel = $1 AND sender = $2";
    let row = conn.fetch_optional(sql, values![&person.channel, &person.sender]).await?;
    row.map(|row| Pairing::from_row(&row)).transpose()
}

/// Removes those whose code can no longer be used since a time, at most this many.
pub(crate) async fn remove_expired(
    conn: &mut Conn,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM pairings WHERE (channel, sender) IN (
                   SELECT channel, sender FROM pairings
                   WHERE state = 'asked' AND expires_at <= $1
                   ORDER BY expires_at LIMIT +$2)
                   AND state = 'asked' AND expires_at <= $1";
    conn.execute(sql, values![before, i64::from(limit)]).await
}

impl Pairing {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            person: Person { channel: row.text("channel")?, sender: row.text("sender")? },
            name: row.text("name")?,
            code: row.opt_text("code")?,
            state: row.parsed("state")?,
            asked_at: row.millis("asked_at")?,
            expires_at: row.millis("expires_at")?,
            decided_at: row.opt_millis("decided_at")?,
        })
    }
}
