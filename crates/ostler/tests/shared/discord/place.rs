//! People and places: users, guilds with members and roles, channels.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    answer::{Answer, Refusal, Reply},
    session::intent,
    time,
    world::World,
};

/// Every permission but administrator, which would hide mistakes.
const PERMISSIONS: &str = "2248473465835073";

#[derive(Clone, Debug)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) bot: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Guild {
    pub(super) name: String,
    pub(super) owner: u64,
    /// The roles of each member.
    pub(super) members: BTreeMap<u64, Vec<u64>>,
    pub(super) roles: BTreeMap<u64, String>,
}

/// A text channel of a guild, a thread when it has a parent, or direct messages.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) name: String,
    pub(super) guild: Option<u64>,
    pub(super) parent: Option<u64>,
    /// The type, as Discord numbers it.
    pub(super) kind: u64,
    /// With whom direct messages are exchanged.
    pub(super) recipient: Option<u64>,
    pub(super) owner: Option<u64>,
    pub(super) archived: bool,
    /// What nobody may do there, as bits.
    pub(super) denied: u64,
}

impl World {
    pub(super) fn add_user(&mut self, name: &str, bot: bool) -> u64 {
        let id = self.next_id();
        self.users.insert(id, User { name: name.to_owned(), bot });
        id
    }

    pub(super) fn add_guild(&mut self, name: &str) -> u64 {
        let id = self.next_id();
        let owner = self.add_user(&format!("{name}-owner"), false);
        let members = BTreeMap::from([(owner, Vec::new()), (self.bot, Vec::new())]);
        let roles = BTreeMap::from([(id, "@everyone".to_owned())]);
        self.guilds.insert(id, Guild { name: name.to_owned(), owner, members, roles });
        let guild = self.guild_create(id);
        self.dispatch("GUILD_CREATE", intent::GUILDS, &guild);
        id
    }

    pub(super) fn add_channel(&mut self, guild: u64, name: &str) -> u64 {
        assert!(self.guilds.contains_key(&guild), "no guild {guild}");
        let id = self.next_id();
        let channel = Channel {
            name: name.to_owned(),
            guild: Some(guild),
            parent: None,
            kind: 0,
            recipient: None,
            owner: None,
            archived: false,
            denied: 0,
        };
        self.channels.insert(id, channel);
        let channel = self.channel_json(id);
        self.dispatch("CHANNEL_CREATE", intent::GUILDS, &channel);
        id
    }

    pub(super) fn direct(&mut self, user: u64) -> u64 {
        let known = self.channels.iter().find(|(_, channel)| channel.recipient == Some(user));
        if let Some((id, _)) = known {
            return *id;
        }
        let id = self.next_id();
        let channel = Channel {
            name: String::new(),
            guild: None,
            parent: None,
            kind: 1,
            recipient: Some(user),
            owner: None,
            archived: false,
            denied: 0,
        };
        self.channels.insert(id, channel);
        id
    }

    /// Makes a user a member of the guild of a channel.
    pub(super) fn join(&mut self, channel: u64, user: u64) {
        let guild = self.channels.get(&channel).and_then(|channel| channel.guild);
        if let Some(guild) = guild.and_then(|guild| self.guilds.get_mut(&guild)) {
            guild.members.entry(user).or_default();
        }
    }

    pub(super) fn give_role(&mut self, guild: u64, user: u64) -> u64 {
        let role = self.next_id();
        let place = self.guilds.get_mut(&guild).expect("the guild exists");
        place.roles.insert(role, format!("role-{role}"));
        place.members.entry(user).or_default().push(role);
        let created = json!({ "guild_id": guild.to_string(), "role": role_json(role, "role") });
        self.dispatch("GUILD_ROLE_CREATE", intent::GUILDS, &created);
        role
    }

    pub(super) fn lend_role(&mut self, guild: u64, user: u64, role: u64) {
        let place = self.guilds.get_mut(&guild).expect("the guild exists");
        assert!(place.roles.contains_key(&role), "no role {role}");
        place.members.entry(user).or_default().push(role);
    }

    pub(super) fn take_role(&mut self, guild: u64, user: u64, role: u64) {
        let place = self.guilds.get_mut(&guild).expect("the guild exists");
        place.members.entry(user).or_default().retain(|has| *has != role);
    }

    pub(super) fn delete_channel(&mut self, id: u64) {
        let gone = self.channel_json(id);
        let channel = self.channels.remove(&id).expect("the channel exists");
        let event = if channel.parent.is_some() { "THREAD_DELETE" } else { "CHANNEL_DELETE" };
        self.dispatch(event, intent::GUILDS, &gone);
    }

    pub(super) fn user_json(&self, id: u64) -> Value {
        let (name, bot) =
            self.users.get(&id).map_or(("unknown", false), |user| (&user.name, user.bot));
        json!({
            "id": id.to_string(),
            "username": name,
            "global_name": if bot { Value::Null } else { name.into() },
            "discriminator": "0",
            "avatar": null,
            "bot": bot,
            "public_flags": 0,
        })
    }

    /// Returns the bot as it sees itself.
    pub(super) fn me(&self) -> Value {
        let mut me = self.user_json(self.bot);
        me["verified"] = true.into();
        me["mfa_enabled"] = false.into();
        me["email"] = Value::Null;
        me["flags"] = 0.into();
        me
    }

    pub(super) fn application_json(&self) -> Value {
        json!({
            "id": self.application.to_string(),
            "name": "ostler",
            "icon": null,
            "description": "",
            "bot_public": true,
            "bot_require_code_grant": false,
            "bot": self.user_json(self.bot),
            "owner": null,
            "team": null,
            "verify_key": "0".repeat(64),
            "flags": self.application_flags(),
        })
    }

    /// Returns whether the application may read what people write, as its flags say it.
    pub(super) fn application_flags(&self) -> u64 {
        if self.content_forbidden { 0 } else { 1 << 19 }
    }

    /// Returns a member without the user.
    pub(super) fn member_json(&self, guild: u64, user: u64) -> Option<Value> {
        let roles = self.guilds.get(&guild)?.members.get(&user)?;
        let roles: Vec<String> = roles.iter().map(u64::to_string).collect();
        Some(json!({
            "roles": roles,
            "nick": null,
            "avatar": null,
            "joined_at": time::made_at(guild),
            "premium_since": null,
            "deaf": false,
            "mute": false,
            "pending": false,
            "flags": 0,
            "communication_disabled_until": null,
        }))
    }

    pub(super) fn full_member_json(&self, guild: u64, user: u64) -> Option<Value> {
        let mut member = self.member_json(guild, user)?;
        member["user"] = self.user_json(user);
        Some(member)
    }

    pub(super) fn channel_json(&self, id: u64) -> Value {
        let channel = &self.channels[&id];
        let last = self.messages(id).last().map(|message| message.id.to_string());
        let mut json = json!({
            "id": id.to_string(),
            "type": channel.kind,
            "last_message_id": last,
            "flags": 0,
        });
        if let Some(user) = channel.recipient {
            json["recipients"] = json!([self.user_json(user)]);
            return json;
        }
        json["name"] = channel.name.clone().into();
        json["guild_id"] = channel.guild.map(|guild| guild.to_string()).into();
        json["parent_id"] = channel.parent.map(|parent| parent.to_string()).into();
        json["rate_limit_per_user"] = 0.into();
        if channel.parent.is_some() {
            self.thread_fields(id, &mut json);
        } else {
            json["position"] = 0.into();
            json["topic"] = Value::Null;
            json["nsfw"] = false.into();
            json["permission_overwrites"] = self.overwrites(channel);
        }
        json
    }

    fn overwrites(&self, channel: &Channel) -> Value {
        match channel.guild {
            Some(guild) if channel.denied != 0 => {
                let deny = channel.denied.to_string();
                json!([{ "id": guild.to_string(), "type": 0, "allow": "0", "deny": deny }])
            }
            Some(_) | None => json!([]),
        }
    }

    pub(super) fn guild_json(&self, id: u64) -> Value {
        let guild = &self.guilds[&id];
        let roles: Vec<Value> =
            guild.roles.iter().map(|(role, name)| role_json(*role, name)).collect();
        json!({
            "id": id.to_string(), "name": guild.name, "owner_id": guild.owner.to_string(),
            "roles": roles, "emojis": [], "features": [], "stickers": [],
            "icon": null, "splash": null, "discovery_splash": null, "banner": null,
            "description": null, "vanity_url_code": null, "application_id": null,
            "afk_channel_id": null, "afk_timeout": 300, "system_channel_id": null,
            "system_channel_flags": 0, "rules_channel_id": null,
            "public_updates_channel_id": null, "safety_alerts_channel_id": null,
            "verification_level": 0, "default_message_notifications": 1,
            "explicit_content_filter": 0, "mfa_level": 0, "nsfw_level": 0,
            "premium_tier": 0, "premium_subscription_count": 0,
            "premium_progress_bar_enabled": false, "preferred_locale": "en-US",
            "max_members": 500_000, "max_video_channel_users": 25,
        })
    }

    /// Returns a guild with all that the gateway adds.
    pub(super) fn guild_create(&self, id: u64) -> Value {
        let mut guild = self.guild_json(id);
        let members = &self.guilds[&id].members;
        let bot = self.full_member_json(id, self.bot);
        guild["joined_at"] = time::made_at(id).into();
        guild["large"] = false.into();
        guild["unavailable"] = false.into();
        guild["member_count"] = members.len().into();
        guild["members"] = json!([bot]);
        guild["channels"] = self.channels_of(id, |channel| channel.parent.is_none());
        guild["threads"] = self.channels_of(id, |channel| channel.parent.is_some());
        for empty in ["voice_states", "presences", "stage_instances", "guild_scheduled_events"] {
            guild[empty] = json!([]);
        }
        guild
    }

    fn channels_of(&self, guild: u64, is_one: impl Fn(&Channel) -> bool) -> Value {
        let here = self.channels.iter().filter(|(_, channel)| channel.guild == Some(guild));
        here.filter(|(_, channel)| is_one(channel)).map(|(id, _)| self.channel_json(*id)).collect()
    }

    pub(super) fn get_guild(&self, id: u64) -> Answer {
        self.guilds.get(&id).ok_or_else(Refusal::unknown_guild)?;
        Reply::ok(self.guild_json(id))
    }

    pub(super) fn get_guild_channels(&self, id: u64) -> Answer {
        self.guilds.get(&id).ok_or_else(Refusal::unknown_guild)?;
        Reply::ok(self.channels_of(id, |channel| channel.parent.is_none()))
    }

    pub(super) fn get_member(&self, guild: u64, user: u64) -> Answer {
        self.guilds.get(&guild).ok_or_else(Refusal::unknown_guild)?;
        Reply::ok(self.full_member_json(guild, user).ok_or_else(Refusal::unknown_member)?)
    }

    /// Says why the bot cannot use a channel.
    pub(super) fn reach(&self, channel: u64) -> Result<&Channel, Refusal> {
        let found = self.channels.get(&channel).ok_or_else(Refusal::unknown_channel)?;
        let refused = |id: &u64| self.refused.contains(id);
        if refused(&channel) || found.parent.as_ref().is_some_and(refused) {
            return Err(Refusal::missing_access());
        }
        Ok(found)
    }

    pub(super) fn get_channel(&self, id: u64) -> Answer {
        self.reach(id)?;
        Reply::ok(self.channel_json(id))
    }

    pub(super) fn open_direct(&mut self, form: &Value) -> Answer {
        let user = form["recipient_id"].as_str().and_then(|id| id.parse().ok());
        let user = user.ok_or_else(|| Refusal::required("recipient_id"))?;
        if !self.users.contains_key(&user) {
            return Err(Refusal::unknown_user());
        }
        let channel = self.direct(user);
        Reply::ok(self.channel_json(channel))
    }
}

/// Returns the permissions of everyone, as interactions tell them.
pub(super) fn permissions() -> Value {
    PERMISSIONS.into()
}

fn role_json(id: u64, name: &str) -> Value {
    json!({
        "id": id.to_string(),
        "name": name,
        "color": 0,
        "colors": { "primary_color": 0, "secondary_color": null, "tertiary_color": null },
        "hoist": false,
        "managed": false,
        "mentionable": true,
        "permissions": PERMISSIONS,
        "position": u64::from(name != "@everyone"),
        "flags": 0,
    })
}
