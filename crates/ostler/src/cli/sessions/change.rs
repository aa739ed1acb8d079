//! Changing a conversation beside the gateway, and writing down who did.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Which, find};
use crate::{
    clock::Millis,
    id::{ConversationId, JobId},
    queue::LaneId,
    store::{
        Conn, StoreError,
        audit::{self, Entry},
        conversations::{self, Conversation},
        jobs,
        sessions::{self, Session},
    },
};

/// Who is written down for what is done here.
const OPERATOR: &str = "operator";

/// What was changed. The names are part of the contract.
#[derive(Serialize)]
pub(super) struct Change {
    pub(super) conversation: ConversationId,
    pub(super) outcome: &'static str,
    pub(super) agent: Option<String>,
    /// How many sessions were forgotten.
    pub(super) sessions: usize,
    /// A job that was running, whose session is kept when it ends.
    pub(super) running: Option<JobId>,
}

impl Change {
    /// Returns it for people.
    pub(super) fn text(&self) -> String {
        let Self { conversation, outcome, agent, sessions, .. } = self;
        let agent = agent.as_ref().map(|agent| format!(" to {agent}")).unwrap_or_default();
        let noun = if *sessions == 1 { "session" } else { "sessions" };
        format!("{conversation}: {outcome}{agent}, {sessions} {noun} forgotten")
    }
}

/// Forgets the sessions of a conversation.
pub(super) async fn reset(
    conn: &mut Conn,
    which: &Which,
    now: Millis,
) -> Result<Option<Change>, StoreError> {
    let Some(Conversation { id, .. }) = find(conn, which).await? else { return Ok(None) };
    let forgotten = sessions::list(conn, id).await?;
    sessions::clear(conn, id).await?;
    let detail = json!({ "sessions": named(&forgotten) });
    note(conn, "sessions.reset", id, &detail, now).await?;
    Ok(Some(Change {
        conversation: id,
        outcome: "reset",
        agent: None,
        sessions: forgotten.len(),
        running: jobs::running_in(conn, &LaneId::new(id)).await?,
    }))
}

/// Lets another agent answer in a conversation, for which no session goes on.
pub(super) async fn set_agent(
    conn: &mut Conn,
    which: &Which,
    agent: &str,
    now: Millis,
) -> Result<Option<Change>, StoreError> {
    let Some(conversation) = find(conn, which).await? else { return Ok(None) };
    let id = conversation.id;
    let before = sessions::list(conn, id).await?;
    let is_new = conversation.agent.as_deref() != Some(agent);
    conversations::set_agent(conn, id, agent).await?;
    if is_new {
        let detail = json!({ "from": conversation.agent, "to": agent, "sessions": named(&before) });
        note(conn, "sessions.agent", id, &detail, now).await?;
    }
    let running = jobs::running_in(conn, &LaneId::new(id)).await?;
    Ok(Some(Change {
        conversation: id,
        outcome: if is_new { "changed" } else { "unchanged" },
        agent: Some(agent.to_owned()),
        sessions: if is_new { before.len() } else { 0 },
        running: running.filter(|_| is_new),
    }))
}

fn named(sessions: &[(String, Session)]) -> Vec<Value> {
    let row = |(agent, session): &(String, Session)| json!({ "agent": agent, "session": session.session });
    sessions.iter().map(row).collect()
}

async fn note(
    conn: &mut Conn,
    action: &str,
    subject: ConversationId,
    detail: &Value,
    now: Millis,
) -> Result<(), StoreError> {
    let entry = Entry {
        at: now,
        actor: OPERATOR.to_owned(),
        action: action.to_owned(),
        subject: subject.to_string(),
        detail: detail.to_string(),
    };
    audit::add(conn, &entry).await
}
