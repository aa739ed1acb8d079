//! The agents' own sessions, at most one for each agent of a conversation, with
//! the memo that the next turn goes on from.

use super::{
    Conn, StoreError,
    db::{Row, values},
};
use crate::{
    clock::Millis,
    id::{ConversationId, ProjectId},
};

/// A session as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    /// What the agent calls it.
    pub(crate) session: String,
    /// What a turn hands to the next, as JSON.
    pub(crate) memo: String,
    pub(crate) updated_at: Millis,
}

/// Returns the sessions of a conversation, each with its agent.
pub(crate) async fn list(
    conn: &mut Conn,
    conversation: ConversationId,
) -> Result<Vec<(String, Session)>, StoreError> {
    let sql = "SELECT agent, session, memo, updated_at FROM sessions WHERE conversation = $1
               ORDER BY agent";
    let rows = conn.fetch_all(sql, values![conversation]).await?;
    rows.iter().map(|row| Ok((row.text("agent")?, Session::from_row(row)?))).collect()
}

/// Keeps the session of an agent in place of the one before.
pub(crate) async fn keep(
    conn: &mut Conn,
    conversation: ConversationId,
    agent: &str,
    session: &Session,
) -> Result<(), StoreError> {
    conn.execute(
        "INSERT INTO sessions (conversation, agent, session, memo, updated_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (conversation, agent) DO UPDATE
         SET session = excluded.session, memo = excluded.memo, updated_at = excluded.updated_at",
        values![conversation, agent, &session.session, &session.memo, session.updated_at],
    )
    .await
    .map(drop)
}

/// Keeps what is new of a session, if it still is the one of its agent. It counts
/// as no use of it.
pub(crate) async fn refresh(
    conn: &mut Conn,
    conversation: ConversationId,
    agent: &str,
    session: &Session,
) -> Result<(), StoreError> {
    let sql = "UPDATE sessions SET memo = $4
               WHERE conversation = $1 AND agent = $2 AND session = $3";
    let values = values![conversation, agent, &session.session, &session.memo];
    conn.execute(sql, values).await.map(drop)
}

/// Forgets the sessions of all agents but one.
pub(crate) async fn forget_others(
    conn: &mut Conn,
    conversation: ConversationId,
    agent: &str,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM sessions WHERE conversation = $1 AND agent <> $2";
    conn.execute(sql, values![conversation, agent]).await.map(drop)
}

/// Forgets the sessions of all agents.
pub(crate) async fn clear(conn: &mut Conn, conversation: ConversationId) -> Result<(), StoreError> {
    let sql = "DELETE FROM sessions WHERE conversation = $1";
    conn.execute(sql, values![conversation]).await.map(drop)
}

/// Forgets the sessions of all agents in all conversations of a project; returns
/// how many those were.
pub(crate) async fn clear_in(conn: &mut Conn, project: ProjectId) -> Result<u64, StoreError> {
    let sql = "DELETE FROM sessions WHERE conversation IN (
                   SELECT id FROM conversations WHERE project = $1)";
    conn.execute(sql, values![project]).await
}

impl Session {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            session: row.text("session")?,
            memo: row.text("memo")?,
            updated_at: row.millis("updated_at")?,
        })
    }
}

/// Returns the conversation of a project that has a session.
pub(crate) async fn conversation_of(
    conn: &mut Conn,
    project: ProjectId,
    session: &str,
) -> Result<Option<ConversationId>, StoreError> {
    let sql = "SELECT conversation FROM sessions
               JOIN conversations ON conversations.id = sessions.conversation
               WHERE session = $2 AND project = $1
               ORDER BY conversation DESC LIMIT 1";
    let row = conn.fetch_optional(sql, values![project, session]).await?;
    row.map(|row| row.parsed("conversation")).transpose()
}

/// Returns whether a session is known from somewhere that is not of a project.
pub(crate) async fn is_elsewhere(
    conn: &mut Conn,
    project: ProjectId,
    session: &str,
) -> Result<bool, StoreError> {
    let sql = "SELECT 1 AS found FROM sessions
               JOIN conversations ON conversations.id = sessions.conversation
               WHERE session = $2 AND (project IS NULL OR project <> $1) LIMIT 1";
    Ok(conn.fetch_optional(sql, values![project, session]).await?.is_some())
}
