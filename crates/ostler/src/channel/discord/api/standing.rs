//! What the bot is allowed in servers and channels, as far as Discord tells.

use serde::{Deserialize, Deserializer, de::Error as _};
use twilight_http::routing::Route;

use super::{Api, Trouble, id, to};
use crate::channel::discord::rights::{Member, Overwrite, Rights};

#[derive(Deserialize)]
struct ReadGuild {
    id: String,
    owner_id: String,
    roles: Vec<ReadRole>,
}

#[derive(Deserialize)]
struct ReadRole {
    id: String,
    #[serde(deserialize_with = "rights")]
    permissions: Rights,
}

#[derive(Deserialize)]
struct ReadMember {
    roles: Vec<String>,
}

#[derive(Deserialize)]
struct ReadChannel {
    #[serde(rename = "type")]
    kind: u8,
    #[serde(default)]
    guild_id: Option<String>,
    #[serde(default)]
    parent_id: Option<String>,
    #[serde(default)]
    permission_overwrites: Vec<ReadOverwrite>,
}

#[derive(Deserialize)]
struct ReadOverwrite {
    id: String,
    #[serde(deserialize_with = "rights")]
    allow: Rights,
    #[serde(deserialize_with = "rights")]
    deny: Rights,
}

/// Permissions are numbers in texts.
fn rights<'de, D: Deserializer<'de>>(from: D) -> Result<Rights, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

impl Api {
    /// Returns what the bot is in a server.
    pub(crate) async fn member(&self, guild: &str, bot: &str) -> Result<Member, Trouble> {
        let guild_id = id(guild)?;
        let route = Route::GetGuild { guild_id, with_counts: false };
        let ReadGuild { id: guild, owner_id, roles } = self.ask(to(&route)).await?;
        let route = Route::GetMember { guild_id, user_id: id(bot)? };
        let ReadMember { roles: has } = self.ask(to(&route)).await?;
        let allowed = roles.into_iter().map(|ReadRole { id, permissions }| (id, permissions));
        Ok(Member {
            guild,
            bot: bot.to_owned(),
            is_owner: owner_id == bot,
            roles: has,
            allowed: allowed.collect(),
        })
    }

    /// Returns what the bot may do in a channel; nothing where there are no
    /// permissions, as in direct messages.
    pub(crate) async fn rights_in(
        &self,
        channel: &str,
        bot: &str,
    ) -> Result<Option<Rights>, Trouble> {
        let mut read: ReadChannel =
            self.ask(to(&Route::GetChannel { channel_id: id(channel)? })).await?;
        // A thread has the permissions of its channel.
        if let (10..=12, Some(parent)) = (read.kind, &read.parent_id) {
            read = self.ask(to(&Route::GetChannel { channel_id: id(parent)? })).await?;
        }
        let Some(guild) = &read.guild_id else { return Ok(None) };
        let member = self.member(guild, bot).await?;
        let overwrites = read.permission_overwrites.into_iter();
        let overwrites: Vec<Overwrite> = overwrites
            .map(|ReadOverwrite { id, allow, deny }| Overwrite { id, allow, deny })
            .collect();
        Ok(Some(member.rights(&overwrites)))
    }
}
