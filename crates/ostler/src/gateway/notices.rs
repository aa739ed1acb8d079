//! Notices: what webhooks are told of the commands of projects. Put on their way in
//! the write that they tell of, one for each webhook that fits, so that each is sent
//! although a gateway dies, and made once although a turn is tried again. How they are
//! sent is in `channel`.

use serde_json::{Value, json};

use super::commands::CommandResult;
use crate::{
    api::provider,
    clock::Millis,
    id::{CommandId, ProjectId, WebhookId},
    store::{
        Conn, StoreError,
        commands::{self, CommandState, StoredCommand},
        outbox::{self, NewMessage},
        webhooks::{self, NOTICE, NoticeKind},
    },
};

/// How much of an answer is told, in bytes.
const LONGEST: usize = 16 * 1024;

/// Tells that work on a command began.
pub(crate) async fn begun(
    conn: &mut Conn,
    project: ProjectId,
    id: CommandId,
    now: Millis,
) -> Result<(), StoreError> {
    let kind = NoticeKind::Started;
    let hearers = webhooks::fitting(conn, project, kind).await?;
    if hearers.is_empty() {
        return Ok(());
    }
    let Some(begun) = commands::find(conn, id).await? else { return Ok(()) };
    put(conn, &hearers, kind, &begun, None, now).await
}

/// Tells that a command is over.
pub(crate) async fn ended(
    conn: &mut Conn,
    ended: &StoredCommand,
    result: &CommandResult,
    now: Millis,
) -> Result<(), StoreError> {
    let kind = match ended.state {
        CommandState::Completed => NoticeKind::Completed,
        CommandState::Failed | CommandState::Cancelled => NoticeKind::Failed,
        CommandState::Queued | CommandState::Running => return Ok(()),
    };
    let hearers = webhooks::fitting(conn, ended.command.project, kind).await?;
    put(conn, &hearers, kind, ended, Some(result), now).await
}

async fn put(
    conn: &mut Conn,
    hearers: &[webhooks::Webhook],
    kind: NoticeKind,
    about: &StoredCommand,
    result: Option<&CommandResult>,
    now: Millis,
) -> Result<(), StoreError> {
    for hearer in hearers {
        let message = NewMessage {
            dedupe: key(hearer.id, about.command.id, kind),
            conversation: None,
            turn: None,
            channel: NOTICE.to_owned(),
            address: hearer.id.to_string(),
            body: body(kind, about, result, now).to_string(),
        };
        outbox::put(conn, &message, now).await?;
    }
    Ok(())
}

/// Returns what makes a notice the same notice.
fn key(webhook: WebhookId, command: CommandId, kind: NoticeKind) -> String {
    format!("{webhook}:{command}:{}", kind.as_str())
}

/// Returns which command a notice is about, and what happened to it.
pub(crate) fn read_key(key: &str) -> (Option<CommandId>, Option<NoticeKind>) {
    let mut parts = key.splitn(3, ':').skip(1);
    let command = parts.next().and_then(|id| id.parse().ok());
    let kind = parts.next();
    (command, NoticeKind::ALL.into_iter().find(|known| kind == Some(known.as_str())))
}

/// Makes what is told. The field names are part of the contract; the id of the
/// notice joins them when it is sent. What was asked is nobody's business but the
/// asker's.
fn body(
    kind: NoticeKind,
    about: &StoredCommand,
    result: Option<&CommandResult>,
    now: Millis,
) -> Value {
    let StoredCommand { command, state, .. } = about;
    let agent = result.and_then(|result| result.provider.as_deref());
    let agent = agent.or(command.agent.as_deref());
    json!({
        "type": kind,
        "created_at": now,
        "data": {
            "project_id": command.project,
            "command_id": command.id,
            "stream_id": command.stream,
            "kind": command.kind,
            "state": state,
            "session_id": result.and_then(|result| result.session_id.as_deref()),
            "provider": agent.map(provider),
            "result": result.map(told),
        },
    })
}

/// Makes what is told of what came of a command.
fn told(result: &CommandResult) -> Value {
    let text = result.response_text.as_deref();
    let shown = text.map(|text| text.get(..text.floor_char_boundary(LONGEST)).unwrap_or_default());
    json!({
        "exit_code": result.exit_code,
        "duration_ms": result.duration_ms,
        "model": result.model,
        "stop_reason": result.stop_reason,
        "response_text": shown,
        "is_cut": text.map(str::len) > shown.map(str::len),
        "is_error": result.is_error,
        "error": result.error,
        "usage": result.usage,
    })
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
