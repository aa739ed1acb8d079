//! Messages on their way out. Put in the transaction of what they tell of, and
//! sent from here until they have left or were given up.
//!
//! For one address they leave in the order in which they were put: one that
//! has to be tried again holds up those after it. A message whose sender died
//! may have arrived or not; it is sent again, and says so (`is_unsure`).

use std::time::Duration;

use super::{
    Conn, StoreError, Topic,
    db::{Dialect, Row, values},
    posts::Subject,
};
use crate::{
    clock::Millis,
    id::{ConversationId, OutboxId, TurnId},
};

/// A message that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewMessage {
    /// What makes it the same message: the second with this is not put.
    pub(crate) dedupe: String,
    pub(crate) conversation: Option<ConversationId>,
    pub(crate) turn: Option<TurnId>,
    pub(crate) channel: String,
    pub(crate) address: String,
    /// What to send, as JSON.
    pub(crate) body: String,
}

/// Whether a message was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    New(OutboxId),
    /// It had been put before.
    Again(OutboxId),
}

/// A message that somebody was given to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sending {
    pub(crate) id: OutboxId,
    pub(crate) message: NewMessage,
    pub(crate) attempt: i64,
    /// When the first attempt began, since it was put or opened again.
    pub(crate) tried_since: Millis,
    /// Whether an earlier attempt may have sent it.
    pub(crate) is_unsure: bool,
}

/// What follows an attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    RetryAt(Millis),
    GiveUp,
}

/// A message that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) id: OutboxId,
    pub(crate) message: NewMessage,
    pub(crate) attempt: i64,
    pub(crate) reason: String,
}

/// Puts a message, once.
pub(crate) async fn put(
    conn: &mut Conn,
    message: &NewMessage,
    now: Millis,
) -> Result<Put, StoreError> {
    let id = OutboxId::new();
    let n_put = conn
        .execute(
            "INSERT INTO outbox (id, dedupe, conversation, turn, channel, address, number, body,
                 state, attempt, is_unsure, next_at, created_at)
             VALUES ($1, $2, $3, $4, $5, $6,
                 coalesce((SELECT max(number) FROM outbox WHERE channel = $5 AND address = $6), 0)
                     + 1,
                 $7, 'waiting', 0, 0, 0, $8)
             ON CONFLICT (dedupe) DO NOTHING",
            values![
                id,
                &message.dedupe,
                message.conversation,
                message.turn,
                &message.channel,
                &message.address,
                &message.body,
                now
            ],
        )
        .await?;
    if n_put == 0 {
        let sql = "SELECT id FROM outbox WHERE dedupe = $1";
        return Ok(Put::Again(conn.fetch_one(sql, values![&message.dedupe]).await?.parsed("id")?));
    }
    conn.wake(Topic::Outbox);
    Ok(Put::New(id))
}

/// Which messages are given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Among {
    All,
    /// Those for which somebody waits, and no calls of webhooks.
    Replies,
}

/// How many channels there can be that are closed.
const CLOSED: usize = 4;

/// Gives out the next message that is due, if there is one. What is for a channel
/// that is closed here is left for whoever has it open.
pub(crate) async fn claim(
    conn: &mut Conn,
    owner: &str,
    among: Among,
    closed: &[&str],
    now: Millis,
    lease: Duration,
) -> Result<Option<Sending>, StoreError> {
    macro_rules! claim {
        ($among:literal, $lock:literal) => {
            concat!(
                "UPDATE outbox SET state = 'sending', attempt = attempt + 1, owner = $1,
                     lease_until = $2, tried_since = coalesce(tried_since, $3)
                 WHERE id = (
                     SELECT id FROM outbox AS due WHERE state = 'waiting' AND next_at <= $3
                         AND channel NOT IN ($4, $5, $6, $7)",
                $among,
                "        AND NOT EXISTS (
                             SELECT 1 FROM outbox AS earlier
                             WHERE earlier.channel = due.channel AND earlier.address = due.address
                                 AND (earlier.number < due.number
                                      OR (earlier.number = due.number AND earlier.id < due.id))
                                 AND earlier.state IN ('waiting', 'sending'))
                     ORDER BY next_at, number LIMIT 1",
                $lock,
                ") RETURNING *"
            )
        };
    }
    let sql = match (conn.dialect(), among) {
        (Dialect::Sqlite, Among::All) => claim!("", ""),
        (Dialect::Sqlite, Among::Replies) => claim!(" AND channel <> 'notice'", ""),
        (Dialect::Postgres, Among::All) => claim!("", " FOR UPDATE SKIP LOCKED"),
        (Dialect::Postgres, Among::Replies) => {
            claim!(" AND channel <> 'notice'", " FOR UPDATE SKIP LOCKED")
        }
    };
    debug_assert!(closed.len() <= CLOSED, "a channel would be taken for an open one");
    let closed: [&str; CLOSED] =
        std::array::from_fn(|number| closed.get(number).copied().unwrap_or_default());
    let [first, second, third, fourth] = closed;
    let until = now.after(lease);
    let row =
        conn.fetch_optional(sql, values![owner, until, now, first, second, third, fourth]).await?;
    row.map(|row| {
        Ok(Sending {
            id: row.parsed("id")?,
            message: NewMessage::from_row(&row)?,
            attempt: row.int("attempt")?,
            tried_since: row.opt_millis("tried_since")?.unwrap_or(now),
            is_unsure: row.is("is_unsure")?,
        })
    })
    .transpose()
}

/// Notes that a message has left. True whenever it is said, so that it counts
/// also from one whose time was up; returns whether it was news.
pub(crate) async fn sent(
    conn: &mut Conn,
    id: OutboxId,
    message: Option<&str>,
    now: Millis,
) -> Result<bool, StoreError> {
    let n_sent = conn
        .execute(
            "UPDATE outbox SET state = 'sent', owner = NULL, lease_until = NULL, message = $2,
                 reason = NULL, ended_at = $3
             WHERE id = $1 AND state <> 'sent'",
            values![id, message, now],
        )
        .await?;
    conn.wake(Topic::Outbox);
    Ok(n_sent > 0)
}

/// Notes that an attempt certainly did not send a message. Only the present
/// attempt can say so; returns whether this is it.
pub(crate) async fn failed(
    conn: &mut Conn,
    id: OutboxId,
    attempt: i64,
    reason: &str,
    next: Next,
    now: Millis,
) -> Result<bool, StoreError> {
    let n_failed = match next {
        Next::RetryAt(at) => {
            let sql = "UPDATE outbox SET state = 'waiting', owner = NULL, lease_until = NULL,
                           reason = $3, next_at = $4
                       WHERE id = $1 AND attempt = $2 AND state = 'sending'";
            conn.execute(sql, values![id, attempt, reason, at]).await?
        }
        Next::GiveUp => {
            let sql = "UPDATE outbox SET state = 'failed', owner = NULL, lease_until = NULL,
                           reason = $3, ended_at = $4
                       WHERE id = $1 AND attempt = $2 AND state = 'sending'";
            conn.execute(sql, values![id, attempt, reason, now]).await?
        }
    };
    conn.wake(Topic::Outbox);
    Ok(n_failed > 0)
}

/// Gives a message back that was not tried, as when its sender is shutting
/// down. Nothing has left, so nothing is unsure. Only the present attempt can
/// say so; returns whether this is it.
pub(crate) async fn give_back(
    conn: &mut Conn,
    id: OutboxId,
    attempt: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE outbox SET state = 'waiting', owner = NULL, lease_until = NULL
               WHERE id = $1 AND attempt = $2 AND state = 'sending'";
    let n_back = conn.execute(sql, values![id, attempt]).await?;
    conn.wake(Topic::Outbox);
    Ok(n_back > 0)
}

/// Whether something is still on its way to an address.
pub(crate) async fn has_open(
    conn: &mut Conn,
    channel: &str,
    address: &str,
) -> Result<bool, StoreError> {
    let sql = "SELECT 1 AS found FROM outbox
               WHERE channel = $1 AND address = $2 AND state IN ('waiting', 'sending') LIMIT 1";
    Ok(conn.fetch_optional(sql, values![channel, address]).await?.is_some())
}

/// Returns when the next message that has to wait for its time is due, if one does.
pub(crate) async fn next_due(conn: &mut Conn, now: Millis) -> Result<Option<Millis>, StoreError> {
    let sql = "SELECT min(next_at) AS due FROM outbox WHERE state = 'waiting' AND next_at > $1";
    conn.fetch_one(sql, values![now]).await?.opt_millis("due")
}

/// Takes messages back when a gateway starts: on SQLite all that were being
/// sent, for no other gateway could be at it, whatever the leases say. On
/// PostgreSQL only those whose time is up.
pub(crate) async fn recover(conn: &mut Conn, now: Millis) -> Result<u64, StoreError> {
    let by = match conn.dialect() {
        Dialect::Sqlite => Millis(i64::MAX),
        Dialect::Postgres => now,
    };
    reclaim(conn, by).await
}

/// Takes messages back from senders whose time was up by then, and returns how many.
pub(crate) async fn reclaim(conn: &mut Conn, now: Millis) -> Result<u64, StoreError> {
    let sql = "UPDATE outbox SET state = 'waiting', is_unsure = 1, owner = NULL, lease_until = NULL
               WHERE state = 'sending' AND lease_until <= $1";
    let n_back = conn.execute(sql, values![now]).await?;
    if n_back > 0 {
        conn.wake(Topic::Outbox);
    }
    Ok(n_back)
}

/// Prolongs the time of a sender that is still at it; returns whether it is.
pub(crate) async fn renew(
    conn: &mut Conn,
    id: OutboxId,
    attempt: i64,
    lease_until: Millis,
) -> Result<bool, StoreError> {
    let sql = "UPDATE outbox SET lease_until = $3
               WHERE id = $1 AND attempt = $2 AND state = 'sending'";
    Ok(conn.execute(sql, values![id, attempt, lease_until]).await? > 0)
}

/// Notes that an attempt may have sent a message though it failed. Said before
/// that, in the same write.
pub(crate) async fn doubt(conn: &mut Conn, id: OutboxId, attempt: i64) -> Result<(), StoreError> {
    let sql = "UPDATE outbox SET is_unsure = 1
               WHERE id = $1 AND attempt = $2 AND state = 'sending'";
    conn.execute(sql, values![id, attempt]).await.map(drop)
}

/// Lists messages that were given up, by id, beginning after one of them.
pub(crate) async fn list_failed(
    conn: &mut Conn,
    after: Option<OutboxId>,
    limit: u32,
) -> Result<Vec<Failed>, StoreError> {
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    let sql = "SELECT * FROM outbox WHERE state = 'failed' AND id > $1 ORDER BY id LIMIT +$2";
    let rows = conn.fetch_all(sql, values![&after, i64::from(limit)]).await?;
    let failed = |row: &Row| {
        Ok(Failed {
            id: row.parsed("id")?,
            message: NewMessage::from_row(row)?,
            attempt: row.int("attempt")?,
            reason: row.opt_text("reason")?.unwrap_or_default(),
        })
    };
    rows.iter().map(failed).collect()
}

/// Lets a message that was given up be tried again; returns whether it was.
pub(crate) async fn retry(conn: &mut Conn, id: OutboxId) -> Result<bool, StoreError> {
    let sql = "UPDATE outbox SET state = 'waiting', next_at = 0, ended_at = NULL, reopened = 0,
                   tried_since = NULL
               WHERE id = $1 AND state = 'failed'";
    let n_retried = conn.execute(sql, values![id]).await?;
    conn.wake(Topic::Outbox);
    Ok(n_retried > 0)
}

/// How the message of an answer stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) id: OutboxId,
    pub(crate) state: State,
    /// How often it was opened again after it had left.
    pub(crate) n_reopened: i64,
}

/// Where a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Waiting,
    Sending,
    Sent,
    /// It was given up, for this reason.
    Failed(String),
}

/// Returns how the message of an answer stands, the newest if there are several.
pub(crate) async fn standing(
    conn: &mut Conn,
    subject: &Subject,
) -> Result<Option<Standing>, StoreError> {
    // The answer to a job is known by the job and its attempt, what a turn says by
    // itself is known by the turn, and anything else by its own id.
    let sql = "SELECT * FROM outbox WHERE channel = $1 AND address = $2
                   AND (id = $3 OR dedupe = $3 OR dedupe LIKE $3 || ':%')
               ORDER BY number DESC LIMIT 1";
    let Subject { id, channel, place } = subject;
    let row = conn.fetch_optional(sql, values![channel, place, id]).await?;
    row.map(|row| {
        let state = match row.text("state")?.as_str() {
            "waiting" => State::Waiting,
            "sending" => State::Sending,
            "sent" => State::Sent,
            _ => State::Failed(row.opt_text("reason")?.unwrap_or_default()),
        };
        Ok(Standing { id: row.parsed("id")?, state, n_reopened: row.int("reopened")? })
    })
    .transpose()
}

/// What becomes of a message of which something did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reopened<'a> {
    /// It is sent again at a time.
    Again(Millis),
    /// It is given up, for this reason.
    Failed(&'a str),
}

/// Opens a message that had left, or waits; returns whether it did.
pub(crate) async fn reopen(
    conn: &mut Conn,
    id: OutboxId,
    reopened: Reopened<'_>,
    now: Millis,
) -> Result<bool, StoreError> {
    let n_reopened = match reopened {
        Reopened::Again(at) => {
            let sql = "UPDATE outbox
                       SET reopened = reopened + CASE WHEN state = 'sent' THEN 1 ELSE 0 END,
                           tried_since = CASE WHEN state = 'sent' THEN NULL ELSE tried_since END,
                           state = 'waiting', next_at = $2, ended_at = NULL
                       WHERE id = $1 AND state IN ('waiting', 'sent')";
            conn.execute(sql, values![id, at]).await?
        }
        Reopened::Failed(reason) => {
            let sql = "UPDATE outbox SET state = 'failed', reason = $2, ended_at = $3
                       WHERE id = $1 AND state IN ('waiting', 'sent')";
            conn.execute(sql, values![id, reason, now]).await?
        }
    };
    conn.wake(Topic::Outbox);
    Ok(n_reopened > 0)
}

/// Lets the messages for an address be tried again that were given up for a reason;
/// returns how many.
pub(crate) async fn release(
    conn: &mut Conn,
    channel: &str,
    address: &str,
    reason: &str,
) -> Result<u64, StoreError> {
    let sql = "UPDATE outbox SET state = 'waiting', next_at = 0, ended_at = NULL,
                   tried_since = NULL
               WHERE channel = $1 AND address = $2 AND state = 'failed' AND reason = $3";
    let n_released = conn.execute(sql, values![channel, address, reason]).await?;
    if n_released > 0 {
        conn.wake(Topic::Outbox);
    }
    Ok(n_released)
}

/// Removes messages that left before a time, at most this many. What was put
/// once can be put again after that.
pub(crate) async fn remove_before(
    conn: &mut Conn,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM outbox WHERE id IN (
                   SELECT id FROM outbox WHERE state IN ('sent', 'failed') AND ended_at < $1
                   ORDER BY ended_at LIMIT +$2)";
    conn.execute(sql, values![before, i64::from(limit)]).await
}

impl NewMessage {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            dedupe: row.text("dedupe")?,
            conversation: row.opt_parsed("conversation")?,
            turn: row.opt_parsed("turn")?,
            channel: row.text("channel")?,
            address: row.text("address")?,
            body: row.text("body")?,
        })
    }
}
