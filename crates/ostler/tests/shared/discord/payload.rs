//! Messages as the API and the gateway tell them.

use serde_json::{Value, json};

use super::{
    mention::{self, Mentions},
    message::{Attachment, Message},
    session::intent,
    time,
    world::World,
};

/// The fields that are empty for an application that may not read content.
const CONTENT: [(&str, &str); 4] =
    [("content", "\"\""), ("embeds", "[]"), ("attachments", "[]"), ("components", "[]")];

impl World {
    pub(super) fn message_json(&self, message: &Message) -> Value {
        let mut json = self.plain_message_json(message);
        if let Some(replied) = message.reply_to {
            let found = self.find_message(message.channel, replied);
            json["referenced_message"] =
                found.map_or(Value::Null, |found| self.plain_message_json(found));
        }
        json
    }

    fn plain_message_json(&self, message: &Message) -> Value {
        let mentions = self.mentions(message);
        let mut json = json!({
            "id": message.id.to_string(),
            "channel_id": message.channel.to_string(),
            "type": self.message_type(message),
            "author": self.author_json(message),
            "content": message.content,
            "timestamp": time::made_at(message.id),
            "edited_timestamp": message.edited_at.map(time::text),
            "tts": false,
            "pinned": false,
            "mention_everyone": mentions.everyone,
            "mention_roles": mentions.roles.iter().map(u64::to_string).collect::<Vec<_>>(),
            "mentions": mentions.users.iter().map(|user| self.user_json(*user)).collect::<Vec<_>>(),
            "embeds": message.embeds,
            "components": message.components,
            "flags": message.flags,
            "attachments": message.attachments.iter()
                .map(|attachment| self.attachment_json(message.channel, attachment))
                .collect::<Vec<_>>(),
        });
        if let Some(nonce) = &message.nonce {
            json["nonce"] = nonce.clone();
        }
        if message.webhook.is_some() {
            json["webhook_id"] = message.author.to_string().into();
        }
        if let Some(replied) = message.reply_to {
            json["message_reference"] = json!({
                "type": 0,
                "message_id": replied.to_string(),
                "channel_id": message.channel.to_string(),
            });
            if let Some(guild) = self.guild_of(message.channel) {
                json["message_reference"]["guild_id"] = guild.to_string().into();
            }
        }
        if let Some(interaction) = message.interaction.and_then(|id| self.interactions.get(&id)) {
            json["application_id"] = self.application.to_string().into();
            json["webhook_id"] = self.application.to_string().into();
            json["interaction_metadata"] = json!({
                "id": interaction.id.to_string(),
                "type": interaction.kind,
                "user": self.user_json(interaction.user),
                "authorizing_integration_owners": self.owners(interaction.channel),
            });
        }
        if let Some(thread) = self.channels.get(&message.id) {
            debug_assert!(thread.parent == Some(message.channel));
            json["thread"] = self.channel_json(message.id);
        }
        json
    }

    fn message_type(&self, message: &Message) -> u64 {
        let interaction = message.interaction.and_then(|id| self.interactions.get(&id));
        match (message.reply_to, interaction) {
            (Some(_), _) => 19,
            (None, Some(interaction)) if interaction.kind == 2 => 20,
            (None, _) => 0,
        }
    }

    fn author_json(&self, message: &Message) -> Value {
        let mut author = self.user_json(message.author);
        if let Some(name) = &message.webhook {
            author["username"] = name.clone().into();
            author["discriminator"] = "0000".into();
            author["bot"] = true.into();
        }
        author
    }

    fn attachment_json(&self, channel: u64, attachment: &Attachment) -> Value {
        let (id, name) = (attachment.id, &attachment.name);
        let plain = |one: char| one.is_ascii_alphanumeric() || matches!(one, '.' | '-' | '_');
        let path: String = name.chars().map(|one| if plain(one) { one } else { '_' }).collect();
        let url = format!("{}/attachments/{channel}/{id}/{path}", self.api);
        let mut json = json!({
            "id": id.to_string(),
            "filename": name,
            "size": attachment.size,
            "url": url,
            "proxy_url": url,
            "content_type": attachment.content_type(),
        });
        if let Some(description) = &attachment.description {
            json["description"] = description.clone().into();
        }
        json
    }

    /// Returns whom a message names and may name, and whom it replies to.
    pub(super) fn mentions(&self, message: &Message) -> Mentions {
        let mut mentions = self.named(message);
        if message.author == self.bot
            && let Some(replied) = message.reply_to
            && mention::rings_replied(message.allowed_mentions.as_ref())
            && let Some(replied) = self.find_message(message.channel, replied)
            && replied.author != self.bot
            && !mentions.users.contains(&replied.author)
        {
            mentions.users.push(replied.author);
        }
        mentions
    }

    /// Returns whom the words of a message name and may name.
    pub(super) fn named(&self, message: &Message) -> Mentions {
        let mut text = message.content.clone();
        displayed(&message.components, &mut text);
        let mut mentions = Mentions::read(&text);
        mentions.users.retain(|user| self.users.contains_key(user));
        if message.author != self.bot {
            return mentions;
        }
        let default: &[&str] = if message.interaction.is_some() {
            &["users"]
        } else {
            &["users", "roles", "everyone"]
        };
        let allowed = message.allowed_mentions.as_ref();
        mentions.permitted(allowed, default)
    }

    pub(super) fn guild_of(&self, channel: u64) -> Option<u64> {
        self.channels.get(&channel)?.guild
    }

    /// Tells the bot of a message, with what only the gateway adds.
    pub(super) fn dispatch_message(&mut self, event: &str, message: &Message) {
        if message.is_ephemeral() {
            return;
        }
        let mut json = self.message_json(message);
        let guild = self.guild_of(message.channel);
        if let Some(guild) = guild {
            json["guild_id"] = guild.to_string().into();
            self.add_members(guild, message, &mut json);
        }
        let needs = if guild.is_some() { intent::GUILD_MESSAGES } else { intent::DIRECT_MESSAGES };
        let to_the_bot = self.mentions(message).users.contains(&self.bot);
        if guild.is_none() || message.author == self.bot || to_the_bot {
            self.dispatch(event, needs, &json);
            return;
        }
        let mut redacted = json.clone();
        for (field, empty) in CONTENT {
            redacted[field] = serde_json::from_str(empty).unwrap();
        }
        self.dispatch_redacted(event, needs, &json, &redacted);
    }

    fn add_members(&self, guild: u64, message: &Message, json: &mut Value) {
        if message.webhook.is_none()
            && let Some(member) = self.member_json(guild, message.author)
        {
            json["member"] = member;
        }
        for user in json["mentions"].as_array_mut().into_iter().flatten() {
            let id = user["id"].as_str().and_then(|id| id.parse().ok()).unwrap_or(0);
            if let Some(member) = self.member_json(guild, id) {
                user["member"] = member;
            }
        }
    }
}

/// Adds the text that components show.
fn displayed(components: &[Value], text: &mut String) {
    for component in components {
        if component["type"] == 10 {
            text.push('\n');
            text.push_str(component["content"].as_str().unwrap_or(""));
        }
        if let Some(inner) = component["components"].as_array() {
            displayed(inner, text);
        }
    }
}
