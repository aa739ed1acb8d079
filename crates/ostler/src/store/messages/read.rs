//! Reading the messages that are kept.

use std::time::Duration;

use super::{
    super::{Conn, StoreError, conversations::Address, db::values},
    Message,
};
use crate::{
    clock::Millis,
    id::{ConversationId, MessageId},
};

/// No id is above this: the digits are all lower.
const ABOVE_ALL: &str = "msg_g";
/// By how much the order of messages may differ from that of their times.
const SLACK: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the message that was kept under a name, and its conversation.
pub(crate) async fn named(
    conn: &mut Conn,
    dedupe: &str,
) -> Result<Option<(MessageId, ConversationId)>, StoreError> {
    let sql = "SELECT id, conversation FROM messages WHERE dedupe = $1 AND dedupe IS NOT NULL";
    let row = conn.fetch_optional(sql, values![dedupe]).await?;
    row.map(|row| Ok((row.parsed("id")?, row.parsed("conversation")?))).transpose()
}

/// Returns the conversation in which a person last said something, and from where.
pub(crate) async fn newest_place(
    conn: &mut Conn,
) -> Result<Option<(ConversationId, Address)>, StoreError> {
    let sql = "SELECT conversation, channel, address FROM messages WHERE origin = 'person'
               ORDER BY id DESC LIMIT 1";
    let Some(row) = conn.fetch_optional(sql, values![]).await? else { return Ok(None) };
    let conversation = row.parsed("conversation")?;
    // One that was accepted once is an address.
    let place = Address::new(&row.text("channel")?, &row.text("address")?).ok();
    Ok(place.map(|place| (conversation, place)))
}

/// Returns the place from which a person last said something in a conversation.
pub(crate) async fn newest_place_in(
    conn: &mut Conn,
    conversation: ConversationId,
) -> Result<Option<Address>, StoreError> {
    let sql = "SELECT channel, address FROM messages WHERE conversation = $1 AND origin = 'person'
               ORDER BY number DESC, id DESC LIMIT 1";
    let Some(row) = conn.fetch_optional(sql, values![conversation]).await? else { return Ok(None) };
    Ok(Address::new(&row.text("channel")?, &row.text("address")?).ok())
}

/// Returns the conversation of the newest message.
pub(crate) async fn newest_conversation(
    conn: &mut Conn,
) -> Result<Option<ConversationId>, StoreError> {
    let sql = "SELECT conversation FROM messages ORDER BY id DESC LIMIT 1";
    let row = conn.fetch_optional(sql, values![]).await?;
    row.map(|row| row.parsed("conversation")).transpose()
}

/// Where to begin to read, and in which direction. The position itself is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Oldest,
    After(i64, MessageId),
    Newest,
    Before(i64, MessageId),
}

impl Start {
    /// Goes on behind a message that was read.
    pub(crate) fn beyond(&self, message: &Message) -> Self {
        match self {
            Self::Oldest | Self::After(..) => Self::After(message.number, message.id),
            Self::Newest | Self::Before(..) => Self::Before(message.number, message.id),
        }
    }
}

/// Which messages to read.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    /// Nothing for those of all conversations.
    pub(crate) conversation: Option<ConversationId>,
    pub(crate) since: Option<Millis>,
    /// From then on none.
    pub(crate) until: Option<Millis>,
    pub(crate) from: Start,
    pub(crate) limit: u32,
}

/// Reads messages: from the oldest on in their order, from the newest on in the
/// reverse one.
pub(crate) async fn read(conn: &mut Conn, query: &Query) -> Result<Vec<Message>, StoreError> {
    macro_rules! select {
        ($span:literal, $order:literal) => {
            concat!(
                "SELECT * FROM messages WHERE at >= $1 AND at < $2 AND ",
                $span,
                " ORDER BY ",
                $order,
                " LIMIT +$3"
            )
        };
    }
    let Some(Span { is_forward, lower, upper }) = Span::of(conn, query).await? else {
        return Ok(Vec::new());
    };
    let since = query.since.unwrap_or(Millis(i64::MIN));
    let until = query.until.unwrap_or(Millis(i64::MAX));
    let limit = i64::from(query.limit);
    let rows = match query.conversation {
        Some(conversation) => {
            let sql = if is_forward {
                select!(
                    "conversation = $4 AND (number, id) > ($5, $6) AND (number, id) < ($7, $8)",
                    "number, id"
                )
            } else {
                select!(
                    "conversation = $4 AND (number, id) > ($5, $6) AND (number, id) < ($7, $8)",
                    "number DESC, id DESC"
                )
            };
            let (lower, upper) = ((lower.0, &lower.1), (upper.0, &upper.1));
            let values =
                values![since, until, limit, conversation, lower.0, lower.1, upper.0, upper.1];
            conn.fetch_all(sql, values).await?
        }
        None => {
            let sql = if is_forward {
                select!("id > $4 AND id < $5", "id")
            } else {
                select!("id > $4 AND id < $5", "id DESC")
            };
            conn.fetch_all(sql, values![since, until, limit, &lower.1, &upper.1]).await?
        }
    };
    rows.iter().map(Message::from_row).collect()
}

/// Between which positions is read, without both, and in which direction.
struct Span {
    is_forward: bool,
    lower: (i64, String),
    upper: (i64, String),
}

impl Span {
    /// Returns where to read; nothing if there is nothing. What is long before the
    /// time from which on something is wanted is not looked at.
    async fn of(conn: &mut Conn, query: &Query) -> Result<Option<Self>, StoreError> {
        let (least, most) = ((0, String::new()), (i64::MAX, ABOVE_ALL.to_owned()));
        let (is_forward, mut lower, upper) = match &query.from {
            Start::Oldest => (true, least, most),
            Start::After(number, id) => (true, (*number, id.to_string()), most),
            Start::Newest => (false, least, most),
            Start::Before(number, id) => (false, least, (*number, id.to_string())),
        };
        if let Some(since) = query.since.map(|since| since.before(SLACK)) {
            match query.conversation {
                Some(conversation) => {
                    let Some(number) = number_at(conn, conversation, since).await? else {
                        return Ok(None);
                    };
                    lower = lower.max((number, String::new()));
                }
                None => lower.1 = lower.1.max(id_at(since)),
            }
        }
        Ok(Some(Self { is_forward, lower, upper }))
    }
}

/// Returns the number of the first message of a conversation from a time on.
async fn number_at(
    conn: &mut Conn,
    conversation: ConversationId,
    time: Millis,
) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT number FROM messages WHERE conversation = $1 AND at >= $2
               ORDER BY at LIMIT 1";
    let row = conn.fetch_optional(sql, values![conversation, time]).await?;
    row.map(|row| row.int("number")).transpose()
}

/// Returns how the ids begin that are made at a time.
fn id_at(time: Millis) -> String {
    const LAST: i64 = (1 << 48) - 1;
    format!("msg_{:012x}", time.0.clamp(0, LAST))
}

/// Returns a message by its id.
pub(crate) async fn find(conn: &mut Conn, id: MessageId) -> Result<Option<Message>, StoreError> {
    let row = conn.fetch_optional("SELECT * FROM messages WHERE id = $1", values![id]).await?;
    row.map(|row| Message::from_row(&row)).transpose()
}
