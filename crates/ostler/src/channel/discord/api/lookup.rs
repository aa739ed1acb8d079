//! What can be asked of Discord beside messages: who the bot is, what it may do,
//! which channels there are; and making channels to talk in.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use twilight_http::routing::Route;
use twilight_model::channel::Message;

use super::{Api, Trouble, id, to};
use crate::channel::discord::{
    heard::{Person, Place},
    names,
};

/// The longest name of a thread, in characters.
const THREAD: usize = 100;
/// After how long without a word a thread is put away, in minutes.
const PUT_AWAY: u16 = 1440;
/// How many messages are asked for at once.
const PAGE: u16 = 100;
/// What says that a bot may read messages that do not mention it: the permission,
/// and that of a bot that is in few servers only.
const MAY_READ: u64 = 1 << 18 | 1 << 19;

/// What Discord says of somebody who is not in a server.
const UNKNOWN_MEMBER: u64 = 10007;

/// What the bot belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Application {
    pub(crate) id: String,
    /// Whether it gets to read messages that do not mention it.
    pub(crate) may_read: bool,
}

/// A channel, and which server it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) place: Place,
    /// Nothing for direct messages.
    pub(crate) guild: Option<String>,
    /// The id of the newest message that there is or was, if there was one.
    pub(crate) last: Option<u64>,
}

/// How often a bot may still connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Starts {
    pub(crate) remaining: u32,
    pub(crate) total: u32,
    /// When there are `total` again.
    pub(crate) reset_after: Duration,
}

#[derive(Deserialize)]
struct ReadUser {
    id: String,
    username: String,
    #[serde(default)]
    bot: bool,
}

#[derive(Deserialize)]
struct ReadApplication {
    id: String,
    #[serde(default)]
    flags: Option<u64>,
}

#[derive(Deserialize)]
struct ReadChannel {
    id: String,
    #[serde(rename = "type", default)]
    kind: u8,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    parent_id: Option<String>,
    #[serde(default)]
    guild_id: Option<String>,
    #[serde(default)]
    last_message_id: Option<String>,
}

#[derive(Deserialize)]
struct ReadMember {
    roles: Vec<String>,
}

#[derive(Deserialize)]
struct ReadGateway {
    session_start_limit: ReadLimit,
}

#[derive(Deserialize)]
struct ReadLimit {
    remaining: u32,
    total: u32,
    reset_after: u64,
}

#[derive(Serialize)]
struct NewThread {
    name: String,
    auto_archive_duration: u16,
}

impl Api {
    /// Returns who the bot is.
    pub(crate) async fn me(&self) -> Result<Person, Trouble> {
        let user: ReadUser = self.ask(to(&Route::GetCurrentUser)).await?;
        let name = Some(names::shown(&user.username, 80)).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| user.id.clone());
        Ok(Person { id: user.id, name, is_bot: user.bot })
    }

    pub(crate) async fn application(&self) -> Result<Application, Trouble> {
        let read: ReadApplication = self.ask(to(&Route::GetCurrentUserApplicationInfo)).await?;
        let may_read = read.flags.unwrap_or(0) & MAY_READ != 0;
        Ok(Application { id: read.id, may_read })
    }

    /// Returns how often the bot may still connect.
    pub(crate) async fn starts(&self) -> Result<Starts, Trouble> {
        let ReadGateway { session_start_limit: limit } =
            self.ask(to(&Route::GetGatewayBot)).await?;
        let ReadLimit { remaining, total, reset_after } = limit;
        Ok(Starts { remaining, total, reset_after: Duration::from_millis(reset_after) })
    }

    /// Looks at a channel: whether the bot can see it, and what it is.
    pub(crate) async fn channel(&self, channel: &str) -> Result<Place, Trouble> {
        Ok(self.seat(channel).await?.place)
    }

    /// Looks at a channel and where it is.
    pub(crate) async fn seat(&self, channel: &str) -> Result<Seat, Trouble> {
        let route = Route::GetChannel { channel_id: id(channel)? };
        let read: ReadChannel = self.ask(to(&route)).await?;
        let is_thread = matches!(read.kind, 10..=12);
        let place = Place::new(read.name.as_deref(), read.parent_id.filter(|_| is_thread));
        let last = read.last_message_id.and_then(|last| last.parse().ok());
        Ok(Seat { place, guild: read.guild_id, last })
    }

    /// Returns the first messages of a channel after an id, the oldest first, and the
    /// id to go on after if there may be more. What cannot be read is left out.
    pub(crate) async fn messages_after(
        &self,
        channel: &str,
        after: u64,
    ) -> Result<(Vec<Message>, Option<u64>), Trouble> {
        let route = Route::GetMessages {
            channel_id: id(channel)?,
            after: Some(after),
            around: None,
            before: None,
            limit: Some(PAGE),
        };
        let read: Vec<Value> = self.ask(to(&route)).await?;
        let is_full = read.len() >= usize::from(PAGE);
        let number = |message: &Value| message.get("id")?.as_str()?.parse::<u64>().ok();
        let last = read.iter().filter_map(number).max().filter(|_| is_full);
        let messages = read.into_iter().filter_map(|one| serde_json::from_value(one).ok());
        let mut messages: Vec<Message> = messages.collect();
        messages.sort_by_key(|message| message.id);
        Ok((messages, last))
    }

    /// Returns the roles that somebody has in a server; none if he is not there any more.
    pub(crate) async fn roles_of(&self, guild: &str, user: &str) -> Result<Vec<String>, Trouble> {
        let route = Route::GetMember { guild_id: id(guild)?, user_id: id(user)? };
        match self.ask(to(&route)).await {
            Ok(ReadMember { roles }) => Ok(roles),
            Err(trouble) if trouble.is_code(UNKNOWN_MEMBER) => Ok(Vec::new()),
            Err(trouble) => Err(trouble),
        }
    }

    /// Begins a thread at a message; returns its id. If there is one already, it is
    /// that one's.
    pub(crate) async fn begin_thread(
        &self,
        channel: &str,
        message: &str,
        name: &str,
    ) -> Result<String, Trouble> {
        let route =
            Route::CreateThreadFromMessage { channel_id: id(channel)?, message_id: id(message)? };
        let name = Some(names::shown(name, THREAD)).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| "thread".to_owned());
        let new = NewThread { name, auto_archive_duration: PUT_AWAY };
        match self.ask::<ReadChannel>(to(&route).json(&new)).await {
            Ok(thread) => Ok(thread.id),
            // A thread at a message has the id of the message.
            Err(trouble) if trouble.is_code(160_004) => Ok(message.to_owned()),
            Err(trouble) => Err(trouble),
        }
    }
}
