//! Requests for permission that agents made, and how each was decided, once.

use super::{
    Conn, StoreError, Topic, choice_numbers,
    db::{Row, values},
};
use crate::{
    clock::Millis,
    id::{ConversationId, JobId, PermissionId, ProjectId, TurnId},
};

/// What is written as the decision when nobody made one in time.
const EXPIRED: &str = "expired";

/// A request that is to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewRequest {
    pub(crate) conversation: ConversationId,
    pub(crate) turn: TurnId,
    /// What the agent calls it.
    pub(crate) request: String,
    /// The whole request, as JSON.
    pub(crate) body: String,
    /// Who may answer beside the operator, by his name in the channel.
    pub(crate) asked_of: Option<String>,
    pub(crate) asked_at: Millis,
    pub(crate) expires_at: Millis,
}

/// A request as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredRequest {
    pub(crate) id: PermissionId,
    pub(crate) request: NewRequest,
    /// The number of its first choice, if they have numbers.
    pub(crate) number: Option<u32>,
    /// Nothing while it is open.
    pub(crate) resolution: Option<Resolution>,
}

/// A request that somebody at a place can answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) request: StoredRequest,
    /// What the chat calls its message; nothing while that is on its way.
    pub(crate) message: Option<String>,
    /// Since when it stands there.
    pub(crate) stood_at: Millis,
}

/// An answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) decision: String,
    /// What was said with it.
    pub(crate) text: Option<String>,
}

/// How a request was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolution {
    pub(crate) decision: Decision,
    /// Nobody, if its time ran out.
    pub(crate) by: Option<String>,
    pub(crate) at: Option<Millis>,
}

/// What came of an attempt to decide a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resolved {
    Now,
    /// The same one has decided the same before.
    Again(Resolution),
    /// Somebody else was first, or he decided something else.
    Before(Resolution),
    /// Its time is up.
    Late,
    /// There is no such request.
    Unknown,
}

/// Stores a request, and returns the id that it has: an earlier one, if the
/// turn has asked this before. Doing it twice is the same as once.
pub(crate) async fn ask(
    conn: &mut Conn,
    id: PermissionId,
    request: &NewRequest,
) -> Result<PermissionId, StoreError> {
    let n_stored = conn
        .execute(
            "INSERT INTO permission_requests
                 (id, conversation, turn, request, body, asked_of, state, asked_at, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, 'open', $7, $8)
             ON CONFLICT DO NOTHING",
            values![
                id,
                request.conversation,
                request.turn,
                &request.request,
                &request.body,
                request.asked_of.as_deref(),
                request.asked_at,
                request.expires_at
            ],
        )
        .await?;
    if n_stored > 0 {
        return Ok(id);
    }
    let sql = "SELECT id FROM permission_requests WHERE turn = $1 AND request = $2";
    conn.fetch_one(sql, values![request.turn, &request.request]).await?.parsed("id")
}

/// Gives the choices of a request their numbers at a place, once; returns the first as
/// people see it.
pub(crate) async fn number(
    conn: &mut Conn,
    id: PermissionId,
    channel: &str,
    place: &str,
    n_choices: u32,
) -> Result<u32, StoreError> {
    let sql = "SELECT first_number FROM permission_requests
               WHERE id = $1 AND first_number IS NOT NULL";
    if let Some(row) = conn.fetch_optional(sql, values![id]).await? {
        return Ok(choice_numbers::shown(row.int("first_number")?));
    }
    let (first, last) = choice_numbers::take(conn, channel, place, n_choices).await?;
    let sql = "UPDATE permission_requests
               SET channel = $2, place = $3, first_number = $4, last_number = $5
               WHERE id = $1";
    conn.execute(sql, values![id, channel, place, first, last]).await?;
    Ok(choice_numbers::shown(first))
}

/// Returns the request that has a number at a place, as people see numbers; the newest,
/// if several had it.
pub(crate) async fn numbered(
    conn: &mut Conn,
    channel: &str,
    place: &str,
    shown: u32,
) -> Result<Option<StoredRequest>, StoreError> {
    let Some(number) = choice_numbers::meant(conn, channel, place, shown).await? else {
        return Ok(None);
    };
    let sql = "SELECT * FROM permission_requests
               WHERE channel = $1 AND place = $2 AND first_number <= $3
               ORDER BY first_number DESC LIMIT 1";
    let row = conn.fetch_optional(sql, values![channel, place, number]).await?;
    let row = match row {
        Some(row) if number <= row.int("last_number")? => row,
        Some(_) | None => return Ok(None),
    };
    StoredRequest::from_row(&row).map(Some)
}

/// Returns the requests that somebody at a place can answer, in the order of their
/// numbers: a turn waits for it, and it stands there or is on its way.
pub(crate) async fn open_at(
    conn: &mut Conn,
    channel: &str,
    place: &str,
) -> Result<Vec<Standing>, StoreError> {
    let sql = "SELECT asked.*, posts.message AS message, posts.posted_at AS posted_at
               FROM permission_requests AS asked
                   JOIN turns ON turns.id = asked.turn
                   JOIN posts ON posts.slot = 'asked:' || asked.id
               WHERE asked.channel = $1 AND asked.place = $2 AND asked.state = 'open'
                   AND turns.state = 'running'
                   AND posts.channel = $1 AND posts.place = $2 AND posts.trouble IS NULL
               ORDER BY asked.first_number";
    let rows = conn.fetch_all(sql, values![channel, place]).await?;
    let standing = |row: &Row| {
        let message = Some(row.text("message")?).filter(|message| !message.is_empty());
        let (request, stood_at) = (StoredRequest::from_row(row)?, row.millis("posted_at")?);
        Ok(Standing { request, message, stood_at })
    };
    rows.iter().map(standing).collect()
}

/// Decides a request, if it is open and its time is not up. The same said
/// twice at the same time is the same as once.
pub(crate) async fn resolve(
    conn: &mut Conn,
    id: PermissionId,
    decision: &Decision,
    by: &str,
    now: Millis,
) -> Result<Resolved, StoreError> {
    let sql = "UPDATE permission_requests
               SET state = 'resolved', decision = $2, answer = $3, decided_by = $4,
                   resolved_at = $5
               WHERE id = $1 AND state = 'open' AND expires_at > $5";
    let values = values![id, &decision.decision, decision.text.as_deref(), by, now];
    let is_resolved = conn.execute(sql, values).await? > 0;
    conn.wake(Topic::Wishes);
    if is_resolved {
        return Ok(Resolved::Now);
    }
    Ok(match find(conn, id).await? {
        None => Resolved::Unknown,
        Some(StoredRequest { resolution: None, .. }) => Resolved::Late,
        Some(StoredRequest { resolution: Some(resolution), .. }) => match &resolution.by {
            None => Resolved::Late,
            Some(before) if before == by && resolution.decision == *decision => {
                if resolution.at == Some(now) { Resolved::Now } else { Resolved::Again(resolution) }
            }
            Some(_) => Resolved::Before(resolution),
        },
    })
}

/// Closes the requests whose time is up, and returns them.
pub(crate) async fn expire(conn: &mut Conn, now: Millis) -> Result<Vec<StoredRequest>, StoreError> {
    let sql = "UPDATE permission_requests SET state = 'resolved', decision = $1, resolved_at = $2
               WHERE state = 'open' AND expires_at <= $2 RETURNING *";
    let rows = conn.fetch_all(sql, values![EXPIRED, now]).await?;
    rows.iter().map(StoredRequest::from_row).collect()
}

/// Closes the open requests of a turn that is over, and returns how many.
pub(crate) async fn expire_turn(
    conn: &mut Conn,
    turn: TurnId,
    now: Millis,
) -> Result<u64, StoreError> {
    let sql = "UPDATE permission_requests SET state = 'resolved', decision = $1, resolved_at = $2
               WHERE state = 'open' AND turn = $3";
    conn.execute(sql, values![EXPIRED, now, turn]).await
}

/// Returns a request by its id.
pub(crate) async fn find(
    conn: &mut Conn,
    id: PermissionId,
) -> Result<Option<StoredRequest>, StoreError> {
    let sql = "SELECT * FROM permission_requests WHERE id = $1";
    let row = conn.fetch_optional(sql, values![id]).await?;
    row.map(|row| StoredRequest::from_row(&row)).transpose()
}

/// Returns the open requests of a conversation.
#[cfg(test)]
pub(crate) async fn open_in(
    conn: &mut Conn,
    conversation: ConversationId,
) -> Result<Vec<StoredRequest>, StoreError> {
    let sql = "SELECT * FROM permission_requests WHERE conversation = $1 AND state = 'open'
               ORDER BY id";
    let rows = conn.fetch_all(sql, values![conversation]).await?;
    rows.iter().map(StoredRequest::from_row).collect()
}

/// Lists the open requests of a project, each with its turn's job, newest first,
/// beginning after one of them.
pub(crate) async fn open_of(
    conn: &mut Conn,
    project: ProjectId,
    now: Millis,
    after: Option<PermissionId>,
    limit: u32,
) -> Result<Vec<(StoredRequest, Option<JobId>)>, StoreError> {
    // No id is above this: the digits are all lower.
    let before = after.map_or_else(|| "prm_g".to_owned(), |id| id.to_string());
    // What is open is little, and is looked at first; a project has many conversations.
    let sql = "SELECT asked.*, turns.job AS job
               FROM permission_requests AS asked
                   CROSS JOIN conversations
                   LEFT JOIN turns ON turns.id = asked.turn
               WHERE asked.state = 'open' AND asked.expires_at > $2 AND asked.id < $3
                   AND conversations.id = asked.conversation AND conversations.project = $1
               ORDER BY asked.id DESC LIMIT +$4";
    let values = values![project, now, &before, i64::from(limit)];
    let rows = conn.fetch_all(sql, values).await?;
    rows.iter().map(|row| Ok((StoredRequest::from_row(row)?, row.opt_parsed("job")?))).collect()
}

/// Whether there is a request of that id in a project.
pub(crate) async fn is_in(
    conn: &mut Conn,
    project: ProjectId,
    id: PermissionId,
) -> Result<bool, StoreError> {
    let sql = "SELECT 1 AS found FROM permission_requests
               JOIN conversations ON conversations.id = permission_requests.conversation
               WHERE permission_requests.id = $1 AND project = $2";
    Ok(conn.fetch_optional(sql, values![id, project]).await?.is_some())
}

/// Returns the requests of a turn that were decided, or whose time was up.
pub(crate) async fn resolved_of(
    conn: &mut Conn,
    turn: TurnId,
) -> Result<Vec<StoredRequest>, StoreError> {
    let sql = "SELECT * FROM permission_requests WHERE turn = $1 AND state = 'resolved'
               ORDER BY id";
    let rows = conn.fetch_all(sql, values![turn]).await?;
    rows.iter().map(StoredRequest::from_row).collect()
}

/// Removes requests that were closed before a time, at most this many.
pub(crate) async fn remove_before(
    conn: &mut Conn,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM permission_requests WHERE id IN (
                   SELECT id FROM permission_requests
                   WHERE state = 'resolved' AND resolved_at < $1
                   ORDER BY resolved_at LIMIT +$2)";
    conn.execute(sql, values![before, i64::from(limit)]).await
}

impl StoredRequest {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let resolution = match row.opt_text("decision")? {
            None => None,
            Some(decision) => Some(Resolution {
                decision: Decision { decision, text: row.opt_text("answer")? },
                by: row.opt_text("decided_by")?,
                at: row.opt_millis("resolved_at")?,
            }),
        };
        Ok(Self {
            id: row.parsed("id")?,
            request: NewRequest {
                conversation: row.parsed("conversation")?,
                turn: row.parsed("turn")?,
                request: row.text("request")?,
                body: row.text("body")?,
                asked_of: row.opt_text("asked_of")?,
                asked_at: row.millis("asked_at")?,
                expires_at: row.millis("expires_at")?,
            },
            number: row.opt_int("first_number")?.map(choice_numbers::shown),
            resolution,
        })
    }
}
