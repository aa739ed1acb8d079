//! Requests for permission that agents made, and how each was decided, once.

use super::{
    Conn, StoreError,
    db::{Row, values},
};
use crate::{
    clock::Millis,
    id::{ConversationId, PermissionId, TurnId},
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
    pub(crate) asked_at: Millis,
    pub(crate) expires_at: Millis,
}

/// A request as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredRequest {
    pub(crate) id: PermissionId,
    pub(crate) request: NewRequest,
    /// Nothing while it is open.
    pub(crate) resolution: Option<Resolution>,
}

/// How a request was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolution {
    pub(crate) decision: String,
    /// Nobody, if its time ran out.
    pub(crate) by: Option<String>,
    pub(crate) at: Option<Millis>,
}

/// What came of an attempt to decide a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resolved {
    Now,
    /// Somebody else was first.
    Before(Resolution),
    /// Its time is up.
    Late,
    /// There is no such request.
    Unknown,
}

/// Stores a request.
pub(crate) async fn ask(conn: &mut Conn, request: &NewRequest) -> Result<PermissionId, StoreError> {
    let id = PermissionId::new();
    conn.execute(
        "INSERT INTO permission_requests
             (id, conversation, turn, request, body, state, asked_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, 'open', $6, $7)",
        values![
            id,
            request.conversation,
            request.turn,
            &request.request,
            &request.body,
            request.asked_at,
            request.expires_at
        ],
    )
    .await?;
    Ok(id)
}

/// Decides a request, if it is open and its time is not up.
pub(crate) async fn resolve(
    conn: &mut Conn,
    id: PermissionId,
    decision: &str,
    by: &str,
    now: Millis,
) -> Result<Resolved, StoreError> {
    let sql = "UPDATE permission_requests
               SET state = 'resolved', decision = $2, decided_by = $3, resolved_at = $4
               WHERE id = $1 AND state = 'open' AND expires_at > $4";
    if conn.execute(sql, values![id, decision, by, now]).await? > 0 {
        return Ok(Resolved::Now);
    }
    Ok(match find(conn, id).await? {
        None => Resolved::Unknown,
        Some(StoredRequest { resolution: None, .. }) => Resolved::Late,
        Some(StoredRequest { resolution: Some(resolution), .. }) => match resolution.by {
            None => Resolved::Late,
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
pub(crate) async fn open_in(
    conn: &mut Conn,
    conversation: ConversationId,
) -> Result<Vec<StoredRequest>, StoreError> {
    let sql = "SELECT * FROM permission_requests WHERE conversation = $1 AND state = 'open'
               ORDER BY id";
    let rows = conn.fetch_all(sql, values![conversation]).await?;
    rows.iter().map(StoredRequest::from_row).collect()
}

impl StoredRequest {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let resolution = match row.opt_text("decision")? {
            None => None,
            Some(decision) => Some(Resolution {
                decision,
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
                asked_at: row.millis("asked_at")?,
                expires_at: row.millis("expires_at")?,
            },
            resolution,
        })
    }
}
