//! Webhooks: whom to call when something happens to the commands of projects. The
//! calls themselves are messages of the outbox, which this file also looks at.

use serde::{Deserialize, Serialize};

use super::{
    Conn, StoreError, Topic,
    db::{Row, Value, unreadable, values},
};
use crate::{
    clock::Millis,
    id::{OutboxId, ProjectId, WebhookId},
};

/// The channel of the outbox by which webhooks are called: its addresses are
/// their ids.
pub(crate) const NOTICE: &str = "notice";

/// What a webhook can be told of. The words are stored, and part of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
// An object with one of the words as its field would be taken for the word.
#[serde(try_from = "String")]
pub(crate) enum NoticeKind {
    #[serde(rename = "command.started")]
    Started,
    #[serde(rename = "command.completed")]
    Completed,
    /// Also of commands that were cancelled.
    #[serde(rename = "command.failed")]
    Failed,
}

impl NoticeKind {
    pub(crate) const ALL: [Self; 3] = [Self::Started, Self::Completed, Self::Failed];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Started => "command.started",
            Self::Completed => "command.completed",
            Self::Failed => "command.failed",
        }
    }
}

impl TryFrom<String> for NoticeKind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        let all = Self::ALL.map(Self::as_str).join(", ");
        found.ok_or_else(|| format!("{text:?} is none of {all}"))
    }
}

/// A webhook as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Webhook {
    pub(crate) id: WebhookId,
    /// The project whose commands it hears of; `None` for all.
    pub(crate) project: Option<ProjectId>,
    pub(crate) url: String,
    pub(crate) kinds: Vec<NoticeKind>,
    /// What its calls are signed with.
    pub(crate) secret: String,
    pub(crate) created_by: String,
    pub(crate) created_at: Millis,
}

impl std::fmt::Debug for Webhook {
    /// Leaves out what is secret: the URL may be as well.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A call of a webhook, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: OutboxId,
    /// What makes it the same: the webhook, the command and what happened to it.
    pub(crate) dedupe: String,
    pub(crate) state: String,
    pub(crate) attempts: i64,
    /// What the other side answered, if that was good.
    pub(crate) answer: Option<String>,
    /// Why the last attempt failed.
    pub(crate) reason: Option<String>,
    pub(crate) created_at: Millis,
    pub(crate) ended_at: Option<Millis>,
}

/// Keeps a webhook.
pub(crate) async fn add(conn: &mut Conn, webhook: &Webhook) -> Result<(), StoreError> {
    let kinds = serde_json::to_string(&webhook.kinds).unwrap_or_default();
    conn.execute(
        "INSERT INTO webhooks (id, project, url, events, secret, created_by, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        values![
            webhook.id,
            webhook.project,
            &webhook.url,
            &kinds,
            &webhook.secret,
            &webhook.created_by,
            webhook.created_at
        ],
    )
    .await
    .map(drop)
}

/// Returns a webhook by its id, unless it was deleted.
pub(crate) async fn find(conn: &mut Conn, id: WebhookId) -> Result<Option<Webhook>, StoreError> {
    let sql = "SELECT * FROM webhooks WHERE id = $1 AND deleted_at IS NULL";
    let row = conn.fetch_optional(sql, values![id]).await?;
    row.map(|row| Webhook::from_row(&row)).transpose()
}

/// Counts the webhooks of a project, or those of all projects.
pub(crate) async fn count(conn: &mut Conn, project: Option<ProjectId>) -> Result<u64, StoreError> {
    let row = match project {
        Some(project) => {
            let sql = "SELECT count(*) AS n FROM webhooks
                       WHERE deleted_at IS NULL AND project = $1";
            conn.fetch_one(sql, values![project]).await?
        }
        None => {
            let sql = "SELECT count(*) AS n FROM webhooks
                       WHERE deleted_at IS NULL AND project IS NULL";
            conn.fetch_one(sql, values![]).await?
        }
    };
    row.count("n")
}

/// Which webhooks somebody may see.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    All,
    /// Those of every project, but not those of all projects together.
    OfProjects,
    Of(Vec<ProjectId>),
}

/// Lists webhooks, newest first, beginning after one of them. Those of projects
/// that were deleted are not there.
pub(crate) async fn list(
    conn: &mut Conn,
    seen: &Seen,
    after: Option<WebhookId>,
    limit: u32,
) -> Result<Vec<Webhook>, StoreError> {
    // No id is above this: the digits are all lower.
    let before = after.map_or_else(|| "whk_g".to_owned(), |id| id.to_string());
    let mut values = vec![Value::from(&before), Value::from(i64::from(limit))];
    let among = match seen {
        Seen::All => String::new(),
        Seen::OfProjects => "AND project IS NOT NULL".to_owned(),
        Seen::Of(projects) => {
            values.extend(projects.iter().map(|id| Value::from(*id)));
            let places: Vec<_> = (3..=values.len()).map(|number| format!("${number}")).collect();
            // A list must not be empty, and nothing has this id.
            let places = if places.is_empty() { "''".to_owned() } else { places.join(", ") };
            format!("AND project IN ({places})")
        }
    };
    let sql = format!(
        "SELECT * FROM webhooks WHERE deleted_at IS NULL AND id < $1 {among}
             AND (project IS NULL OR EXISTS (
                 SELECT 1 FROM projects
                 WHERE projects.id = webhooks.project AND projects.deleted_at IS NULL))
         ORDER BY id DESC LIMIT +$2"
    );
    conn.fetch_all(sql, &values).await?.iter().map(Webhook::from_row).collect()
}

/// Returns the webhooks that hear of something that happens in a project. Those of
/// a project that was deleted hear nothing any more, also of what ends later.
pub(crate) async fn fitting(
    conn: &mut Conn,
    project: ProjectId,
    kind: NoticeKind,
) -> Result<Vec<Webhook>, StoreError> {
    let sql = "SELECT * FROM webhooks
               WHERE deleted_at IS NULL AND (project = $1 OR project IS NULL)
                   AND (project IS NULL OR EXISTS (
                       SELECT 1 FROM projects WHERE id = $1 AND projects.deleted_at IS NULL))";
    let rows = conn.fetch_all(sql, values![project]).await?;
    let all = rows.iter().map(Webhook::from_row).collect::<Result<Vec<_>, _>>()?;
    let mut fitting: Vec<_> =
        all.into_iter().filter(|webhook| webhook.kinds.contains(&kind)).collect();
    // Sorted here, for SQLite would walk through all of them to have them in order.
    fitting.sort_by_key(|webhook| webhook.id.to_string());
    Ok(fitting)
}

/// Takes a webhook away, with all calls of it that wait; returns whether it was
/// there. What was called is kept for a while.
pub(crate) async fn delete(
    conn: &mut Conn,
    id: WebhookId,
    now: Millis,
) -> Result<bool, StoreError> {
    let sql = "UPDATE webhooks SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL";
    let n_deleted = conn.execute(sql, values![id, now]).await?;
    let sql = "UPDATE outbox SET state = 'failed', reason = 'the webhook was deleted',
                   ended_at = $3
               WHERE channel = $1 AND address = $2 AND state = 'waiting'";
    conn.execute(sql, values![NOTICE, id, now]).await?;
    conn.wake(Topic::Outbox);
    Ok(n_deleted > 0)
}

/// Gives up the calls of a webhook that does not answer, as far as they wait since
/// before a time: they would only pile up.
pub(crate) async fn give_up_before(
    conn: &mut Conn,
    webhook: &str,
    before: Millis,
    now: Millis,
) -> Result<(), StoreError> {
    // Said twice, for there is an index of those that are open.
    let sql = "UPDATE outbox SET state = 'failed', reason = 'the webhook does not answer',
                   ended_at = $4
               WHERE channel = $1 AND address = $2 AND state IN ('waiting', 'sending')
                   AND state = 'waiting' AND created_at < $3";
    conn.execute(sql, values![NOTICE, webhook, before, now]).await.map(drop)
}

/// Lists the calls of a webhook, newest first, beginning after one of them.
pub(crate) async fn calls(
    conn: &mut Conn,
    id: WebhookId,
    after: Option<OutboxId>,
    limit: u32,
) -> Result<Vec<Call>, StoreError> {
    let before = after.map_or_else(|| "out_g".to_owned(), |id| id.to_string());
    // The channel stands in the text because an index is for it alone.
    let sql = "SELECT id, dedupe, state, attempt, message, reason, created_at, ended_at
               FROM outbox WHERE channel = 'notice' AND address = $1 AND id < $2
               ORDER BY id DESC LIMIT +$3";
    let rows = conn.fetch_all(sql, values![id, &before, i64::from(limit)]).await?;
    let call = |row: &Row| {
        Ok(Call {
            id: row.parsed("id")?,
            dedupe: row.text("dedupe")?,
            state: row.text("state")?,
            attempts: row.int("attempt")?,
            answer: row.opt_text("message")?,
            reason: row.opt_text("reason")?,
            created_at: row.millis("created_at")?,
            ended_at: row.opt_millis("ended_at")?,
        })
    };
    rows.iter().map(call).collect()
}

/// Removes webhooks that were deleted before a time, by themselves or with their
/// projects, at most this many. Each stays for as long as a call of it.
pub(crate) async fn remove_before(
    conn: &mut Conn,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM webhooks WHERE id IN (
                   SELECT id FROM webhooks AS gone
                   WHERE (deleted_at < $1 OR EXISTS (
                           SELECT 1 FROM projects
                           WHERE projects.id = gone.project AND projects.deleted_at < $1))
                       AND NOT EXISTS (
                           SELECT 1 FROM outbox
                           WHERE outbox.channel = 'notice' AND outbox.address = gone.id)
                   LIMIT +$2)";
    conn.execute(sql, values![before, i64::from(limit)]).await
}

impl Webhook {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let kinds = row.text("events")?;
        Ok(Self {
            id: row.parsed("id")?,
            project: row.opt_parsed("project")?,
            url: row.text("url")?,
            kinds: serde_json::from_str(&kinds).map_err(|error| unreadable("events", error))?,
            secret: row.text("secret")?,
            created_by: row.text("created_by")?,
            created_at: row.millis("created_at")?,
        })
    }
}
