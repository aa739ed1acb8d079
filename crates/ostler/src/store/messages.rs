//! Messages as people know them: what they said, and what was said to them. Kept
//! for the history and for the archive; nothing else goes by them.
//!
//! Their order within a conversation is that of the writes that stored them. Over
//! all conversations it is that of their ids.

mod read;

pub(crate) use self::read::{
    Query, Start, find, named, newest_conversation, newest_place, newest_place_in, read,
};
use super::{
    Conn, StoreError,
    conversations::Address,
    db::{Row, values},
};
use crate::{
    clock::Millis,
    id::{ConversationId, JobId, MessageId, TurnId},
};

/// The origin of what a person said.
pub(crate) const PERSON: &str = "person";

/// Who spoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

impl Direction {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
        }
    }
}

/// A message that is to be kept. It has a text or an error.
#[derive(Clone, Debug)]
pub(crate) struct NewMessage<'a> {
    pub(crate) id: MessageId,
    pub(crate) conversation: ConversationId,
    pub(crate) direction: Direction,
    /// What made it, in a word.
    pub(crate) origin: &'a str,
    /// Where it came from, or where it goes.
    pub(crate) place: &'a Address,
    pub(crate) sender: Option<&'a str>,
    pub(crate) agent: Option<&'a str>,
    pub(crate) text: Option<&'a str>,
    /// Why there is no text, as JSON.
    pub(crate) error: Option<&'a str>,
    pub(crate) job: Option<JobId>,
    pub(crate) turn: Option<TurnId>,
    pub(crate) at: Millis,
    /// What makes it the same message: the second with this is not kept.
    pub(crate) dedupe: Option<&'a str>,
}

/// A message that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: MessageId,
    pub(crate) conversation: ConversationId,
    pub(crate) number: i64,
    pub(crate) direction: Direction,
    pub(crate) origin: String,
    pub(crate) channel: String,
    pub(crate) address: String,
    pub(crate) sender: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) job: Option<JobId>,
    pub(crate) turn: Option<TurnId>,
    pub(crate) at: Millis,
}

/// Keeps a message, once; returns whether it is a new one.
pub(crate) async fn add(conn: &mut Conn, message: &NewMessage<'_>) -> Result<bool, StoreError> {
    let n_added = conn
        .execute(
            "INSERT INTO messages (id, conversation, number, direction, origin, channel, address,
                 sender, agent, text, error, job, turn, at, dedupe, archived)
             VALUES ($1, $2,
                 coalesce((SELECT max(number) FROM messages WHERE conversation = $2), 0) + 1,
                 $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0)
             ON CONFLICT DO NOTHING",
            values![
                message.id,
                message.conversation,
                message.direction.as_str(),
                message.origin,
                message.place.channel(),
                message.place.key(),
                message.sender,
                message.agent,
                message.text,
                message.error,
                message.job,
                message.turn,
                message.at,
                message.dedupe
            ],
        )
        .await?;
    Ok(n_added > 0)
}

/// Returns whether there are messages that are not archived yet.
pub(crate) async fn has_unarchived(conn: &mut Conn) -> Result<bool, StoreError> {
    let sql = "SELECT 1 AS found FROM messages WHERE archived = 0 LIMIT 1";
    Ok(conn.fetch_optional(sql, values![]).await?.is_some())
}

/// A message that is not archived yet, and what its conversation is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unarchived {
    pub(crate) message: Message,
    /// The channel and the name of the conversation, which may be another place
    /// than the message's.
    pub(crate) channel: String,
    pub(crate) name: String,
}

/// Returns messages that are not archived yet, beginning after one of them.
pub(crate) async fn unarchived(
    conn: &mut Conn,
    after: Option<MessageId>,
    limit: u32,
) -> Result<Vec<Unarchived>, StoreError> {
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    let sql = "SELECT messages.*, conversations.channel AS home, conversations.address AS name
               FROM messages JOIN conversations ON conversations.id = messages.conversation
               WHERE messages.archived = 0 AND messages.id > $1 ORDER BY messages.id LIMIT +$2";
    let rows = conn.fetch_all(sql, values![&after, i64::from(limit)]).await?;
    let read = |row: &Row| {
        let (channel, name) = (row.text("home")?, row.text("name")?);
        Ok(Unarchived { message: Message::from_row(row)?, channel, name })
    };
    rows.iter().map(read).collect()
}

/// Notes that messages are in the archive.
pub(crate) async fn archived(conn: &mut Conn, ids: &[MessageId]) -> Result<(), StoreError> {
    for id in ids {
        conn.execute("UPDATE messages SET archived = 1 WHERE id = $1", values![*id]).await?;
    }
    Ok(())
}

/// Which messages may be removed when they are old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removable {
    All,
    /// Only those that are in the archive.
    Archived,
}

/// Removes the oldest messages that are from before a time, at most this many.
pub(crate) async fn remove_before(
    conn: &mut Conn,
    which: Removable,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    let least = match which {
        Removable::All => 0_i64,
        Removable::Archived => 1,
    };
    // By their times and not by their ids: those made while a clock was ahead, and
    // for a while after it, are none that the time can be told from.
    let sql = "DELETE FROM messages WHERE id IN (
                   SELECT id FROM messages WHERE at < $1 AND archived >= $2 ORDER BY at LIMIT +$3)";
    conn.execute(sql, values![before, least, i64::from(limit)]).await
}

impl Message {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let is_in = row.text("direction")? == Direction::In.as_str();
        Ok(Self {
            id: row.parsed("id")?,
            conversation: row.parsed("conversation")?,
            number: row.int("number")?,
            direction: if is_in { Direction::In } else { Direction::Out },
            origin: row.text("origin")?,
            channel: row.text("channel")?,
            address: row.text("address")?,
            sender: row.opt_text("sender")?,
            agent: row.opt_text("agent")?,
            text: row.opt_text("text")?,
            error: row.opt_text("error")?,
            job: row.opt_parsed("job")?,
            turn: row.opt_parsed("turn")?,
            at: row.millis("at")?,
        })
    }
}
