//! Conversations: a place in a channel, the agent that answers there, and what
//! was set for it.

pub(crate) mod settings;

use std::{fmt, str::FromStr};

use thiserror::Error;

use super::{
    Conn, StoreError,
    db::{Row, values},
    messages::PERSON,
    sessions,
};
use crate::{
    clock::Millis,
    id::{ConversationId, ProjectId},
};

/// The longest name of a place.
const LONGEST: usize = 512;

/// Where a conversation is held: a channel, and what that channel calls the place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    channel: String,
    key: String,
}

/// A name that no place can have.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum AddressError {
    #[error("the name of a conversation must not be empty")]
    Empty,
    #[error("a conversation is named by its channel and its place there, such as local:main")]
    NoChannel,
    #[error("the name of a conversation must not be longer than {LONGEST} bytes")]
    Long,
    #[error("the name of a conversation must not have control characters")]
    Control,
}

impl Address {
    /// Takes a channel and the name of a place in it.
    pub(crate) fn new(channel: &str, key: &str) -> Result<Self, AddressError> {
        for text in [channel, key] {
            if text.is_empty() {
                return Err(AddressError::Empty);
            }
            if text.len() > LONGEST {
                return Err(AddressError::Long);
            }
            if text.chars().any(char::is_control) {
                return Err(AddressError::Control);
            }
        }
        Ok(Self { channel: channel.to_owned(), key: key.to_owned() })
    }

    pub(crate) fn channel(&self) -> &str {
        &self.channel
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.channel, self.key)
    }
}

impl FromStr for Address {
    type Err = AddressError;

    /// Reads `channel:place`; the first colon divides.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (channel, key) = text.split_once(':').ok_or(AddressError::NoChannel)?;
        Self::new(channel, key)
    }
}

/// A conversation as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conversation {
    pub(crate) id: ConversationId,
    pub(crate) address: Address,
    /// Who answers; nobody in particular means the configured agent.
    pub(crate) agent: Option<String>,
    pub(crate) model: Option<String>,
    /// A JSON object of what else was set.
    pub(crate) settings: String,
    pub(crate) created_at: Millis,
    /// When a person last said something, which is what idle time counts from.
    pub(crate) last_user_at: Option<Millis>,
}

impl Conversation {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.parsed("id")?,
            address: Address { channel: row.text("channel")?, key: row.text("address")? },
            agent: row.opt_text("agent")?,
            model: row.opt_text("model")?,
            settings: row.text("settings")?,
            created_at: row.millis("created_at")?,
            last_user_at: row.opt_millis("last_user_at")?,
        })
    }
}

/// Returns the conversation at an address, and begins it if there is none.
pub(crate) async fn find_or_begin(
    conn: &mut Conn,
    address: &Address,
    now: Millis,
) -> Result<Conversation, StoreError> {
    if let Some(found) = find_at(conn, address).await? {
        return Ok(found);
    }
    conn.execute(
        "INSERT INTO conversations (id, channel, address, settings, created_at)
         VALUES ($1, $2, $3, '{}', $4) ON CONFLICT (channel, address) DO NOTHING",
        values![ConversationId::new(), &address.channel, &address.key, now],
    )
    .await?;
    // Somebody else may have been first.
    let sql = "SELECT * FROM conversations WHERE channel = $1 AND address = $2";
    let row = conn.fetch_one(sql, values![&address.channel, &address.key]).await?;
    Conversation::from_row(&row)
}

/// Returns the conversation at an address.
pub(crate) async fn find_at(
    conn: &mut Conn,
    address: &Address,
) -> Result<Option<Conversation>, StoreError> {
    let sql = "SELECT * FROM conversations WHERE channel = $1 AND address = $2";
    let row = conn.fetch_optional(sql, values![&address.channel, &address.key]).await?;
    row.map(|row| Conversation::from_row(&row)).transpose()
}

/// Returns a conversation by its id.
pub(crate) async fn find(
    conn: &mut Conn,
    id: ConversationId,
) -> Result<Option<Conversation>, StoreError> {
    let row = conn.fetch_optional("SELECT * FROM conversations WHERE id = $1", values![id]).await?;
    row.map(|row| Conversation::from_row(&row)).transpose()
}

/// Returns the conversation that a person spoke in last.
pub(crate) async fn newest(conn: &mut Conn) -> Result<Option<Conversation>, StoreError> {
    let sql = "SELECT * FROM conversations WHERE last_user_at IS NOT NULL
               ORDER BY last_user_at DESC LIMIT 1";
    let row = conn.fetch_optional(sql, values![]).await?;
    row.map(|row| Conversation::from_row(&row)).transpose()
}

/// Returns the places of a channel at which people spoke since a time, the one where
/// somebody spoke last first. What conversations they belong to does not matter: several
/// can be held at a place, and one at several.
pub(crate) async fn lively_places(
    conn: &mut Conn,
    channel: &str,
    since: Millis,
    limit: u32,
) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT address FROM messages
               WHERE origin = $1 AND channel = $2 AND at >= $3
               GROUP BY address ORDER BY max(at) DESC LIMIT +$4";
    let rows = conn.fetch_all(sql, values![PERSON, channel, since, i64::from(limit)]).await?;
    rows.iter().map(|row| row.text("address")).collect()
}

/// Lists conversations, newest first, beginning after one of them.
pub(crate) async fn list(
    conn: &mut Conn,
    after: Option<ConversationId>,
    limit: u32,
) -> Result<Vec<Conversation>, StoreError> {
    // No id is above this: the digits are all lower.
    let before = after.map_or_else(|| "cnv_g".to_owned(), |id| id.to_string());
    let sql = "SELECT * FROM conversations WHERE id < $1 ORDER BY id DESC LIMIT +$2";
    let rows = conn.fetch_all(sql, values![&before, i64::from(limit)]).await?;
    rows.iter().map(Conversation::from_row).collect()
}

/// Changes who answers. A change of agent ends all sessions, so that coming
/// back to an agent starts afresh too; a model belongs to its agent.
pub(crate) async fn set_agent(
    conn: &mut Conn,
    id: ConversationId,
    agent: &str,
) -> Result<(), StoreError> {
    let changed = conn
        .execute(
            "UPDATE conversations SET agent = $2, model = NULL
             WHERE id = $1 AND (agent IS NULL OR agent <> $2)",
            values![id, agent],
        )
        .await?;
    if changed > 0 { sessions::clear(conn, id).await } else { Ok(()) }
}

/// Notes that a person said something.
pub(crate) async fn heard_from_user(
    conn: &mut Conn,
    id: ConversationId,
    now: Millis,
) -> Result<(), StoreError> {
    let sql = "UPDATE conversations SET last_user_at = $2 WHERE id = $1";
    conn.execute(sql, values![id, now]).await.map(drop)
}

/// Notes that a conversation belongs to a project.
pub(crate) async fn set_project(
    conn: &mut Conn,
    id: ConversationId,
    project: ProjectId,
) -> Result<(), StoreError> {
    let sql = "UPDATE conversations SET project = $2 WHERE id = $1 AND project IS NULL";
    conn.execute(sql, values![id, project]).await.map(drop)
}
