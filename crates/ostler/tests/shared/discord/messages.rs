//! What the API does with messages: create, read, edit, delete, react, type.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    answer::{Answer, Refusal, Reply},
    checks,
    form::Form,
    mention,
    message::{Attachment, ChangeKind, Content, Message},
    session::intent,
    time,
    world::World,
};

/// The permission to write.
const SEND_MESSAGES: u64 = 1 << 11;
/// The permission to attach files.
const ATTACH_FILES: u64 = 1 << 15;
/// From when on a message can be edited a few times only, in milliseconds.
const OLD: u64 = 3_600_000;
/// How long a nonce is remembered.
const NONCE: Duration = Duration::from_secs(300);

impl World {
    pub(super) fn create_message(&mut self, channel: u64, form: &Form) -> Answer {
        let place = self.reach(channel)?;
        if place.denied & SEND_MESSAGES != 0 {
            return Err(Refusal::missing_permissions());
        }
        self.check_files(channel, form)?;
        checks::message(&form.json)?;
        if let Some(known) = self.same_nonce(&form.json) {
            return Reply::ok(known);
        }
        let message = self.draft(channel, form)?;
        // Who speaks in a thread opens it again.
        if let Some(channel) = self.channels.get_mut(&channel) {
            channel.archived = false;
        }
        let json = self.publish(message);
        Reply::ok(json)
    }

    /// Refuses files where none may be attached.
    fn check_files(&self, channel: u64, form: &Form) -> Result<(), Refusal> {
        let is_denied = self.reach(channel)?.denied & ATTACH_FILES != 0;
        if is_denied && !form.files.is_empty() {
            return Err(Refusal::missing_permissions());
        }
        Ok(())
    }

    /// Refuses what cannot be done in a thread that is closed.
    fn check_open(&self, channel: u64) -> Result<(), Refusal> {
        if self.reach(channel)?.archived { Err(Refusal::archived()) } else { Ok(()) }
    }

    /// Returns the message that was created with the same nonce, if that is to be unique.
    fn same_nonce(&self, json: &Value) -> Option<Value> {
        let (channel, id, at) = self.nonces.get(&unique_nonce(json)?)?;
        let message = self.find_message(*channel, *id)?;
        (at.elapsed() < NONCE).then(|| self.message_json(message))
    }

    /// Makes a message of the bot out of a body, and publishes nothing.
    pub(super) fn draft(&mut self, channel: u64, form: &Form) -> Result<Message, Refusal> {
        let json = &form.json;
        checks::message(json)?;
        mention::check(&json["allowed_mentions"])?;
        let reply_to = self.reference(channel, &json["message_reference"])?;
        let id = self.next_id();
        let mut message = Message::new(id, channel, self.bot, "");
        message.reply_to = reply_to;
        message.flags = json["flags"].as_u64().unwrap_or(0);
        message.nonce = json.get("nonce").filter(|nonce| !nonce.is_null()).cloned();
        self.fill(&mut message, form);
        if is_empty(&message) {
            return Err(Refusal::empty_message());
        }
        Ok(message)
    }

    /// Writes into a message what a body gives, and leaves what it does not.
    pub(super) fn fill(&mut self, message: &mut Message, form: &Form) {
        let json = &form.json;
        if let Some(content) = json.get("content") {
            message.content = content.as_str().unwrap_or("").to_owned();
        }
        if let Some(embeds) = json.get("embeds") {
            message.embeds = embeds.as_array().cloned().unwrap_or_default();
        }
        if let Some(components) = json.get("components") {
            message.components = components.as_array().cloned().unwrap_or_default();
        }
        if let Some(allowed) = json.get("allowed_mentions") {
            message.allowed_mentions = Some(allowed.clone());
        }
        let listed = json["attachments"].as_array();
        if let Some(listed) = listed {
            let named = |id: u64| listed.iter().any(|one| number(&one["id"]) == Some(id));
            message.attachments.retain(|attachment| named(attachment.id));
        }
        for file in &form.files {
            let about = listed
                .and_then(|all| all.iter().find(|one| number(&one["id"]) == Some(file.number)));
            let text = |field: &str| about.and_then(|about| about[field].as_str());
            message.attachments.push(Attachment {
                id: self.next_id(),
                name: text("filename").unwrap_or(&file.name).to_owned(),
                description: text("description").map(ToOwned::to_owned),
                size: file.bytes.len() as u64,
                content: Content::Bytes(Arc::from(file.bytes.as_slice())),
            });
        }
    }

    /// Returns the message that is replied to.
    fn reference(&self, channel: u64, reference: &Value) -> Result<Option<u64>, Refusal> {
        if reference["message_id"].is_null() {
            return Ok(None);
        }
        let Some(id) = number(&reference["message_id"]) else {
            let message = format!("Value {} is not snowflake.", reference["message_id"]);
            let field = "message_reference.message_id";
            return Err(Refusal::form(field, "NUMBER_TYPE_COERCE", &message));
        };
        if self.find_message(channel, id).is_some() {
            return Ok(Some(id));
        }
        if reference["fail_if_not_exists"] == false {
            return Ok(None);
        }
        let code = "MESSAGE_REFERENCE_UNKNOWN_MESSAGE";
        Err(Refusal::form("message_reference", code, "Unknown message"))
    }

    /// Puts a message of the bot into its channel and tells of it.
    pub(super) fn publish(&mut self, message: Message) -> Value {
        let (channel, id) = (message.channel, message.id);
        if message.nonce.is_some() {
            let nonce = json!({ "nonce": message.nonce, "enforce_nonce": true });
            if let Some(nonce) = unique_nonce(&nonce) {
                self.nonces.insert(nonce, (channel, id, Instant::now()));
            }
        }
        if !self.mentions(&message).is_empty() {
            self.pings.push(message.clone());
        }
        if !message.is_ephemeral() {
            self.changed(channel, ChangeKind::Sent, id, &message.content);
        }
        self.messages.entry(channel).or_default().insert(id, message.clone());
        self.dispatch_message("MESSAGE_CREATE", &message);
        self.message_json(&message)
    }

    pub(super) fn get_messages(&self, channel: u64, query: &[(String, String)]) -> Answer {
        self.reach(channel)?;
        let asked = |name: &str| {
            let found = query.iter().find(|(key, _)| key == name);
            found.and_then(|(_, value)| value.parse::<u64>().ok())
        };
        let limit = asked("limit").unwrap_or(50);
        if !(1..=100).contains(&limit) {
            let message = "int value should be between 1 and 100.";
            return Err(Refusal::form("limit", "NUMBER_TYPE_MAX", message));
        }
        let limit = usize::try_from(limit).unwrap();
        let mut found = self.messages(channel);
        if let Some(after) = asked("after") {
            found.retain(|message| message.id > after);
            found.truncate(limit);
        }
        if let Some(before) = asked("before") {
            found.retain(|message| message.id < before);
        }
        let newest = found.iter().rev().take(limit);
        Reply::ok(newest.map(|message| self.message_json(message)).collect())
    }

    pub(super) fn get_message(&self, channel: u64, id: u64) -> Answer {
        self.reach(channel)?;
        let message = self.find_message(channel, id).filter(|message| !message.is_ephemeral());
        Reply::ok(self.message_json(message.ok_or_else(Refusal::unknown_message)?))
    }

    /// Returns a message that the bot may edit in its channel.
    fn own(&self, channel: u64, id: u64) -> Result<Message, Refusal> {
        self.reach(channel)?;
        let message = self.find_message(channel, id).ok_or_else(Refusal::unknown_message)?;
        if message.author != self.bot {
            return Err(Refusal::not_the_author());
        }
        Ok(message.clone())
    }

    pub(super) fn edit_message(&mut self, channel: u64, id: u64, form: &Form) -> Answer {
        let message = self.own(channel, id)?;
        self.check_open(channel)?;
        self.check_files(channel, form)?;
        self.count_old_edit(id)?;
        let json = self.edit(message, form)?;
        Reply::ok(json)
    }

    /// Counts an edit of a message of more than an hour, of which there may be few.
    fn count_old_edit(&mut self, id: u64) -> Result<(), Refusal> {
        if time::now().saturating_sub(time::millis(id)) <= OLD {
            return Ok(());
        }
        let n_edits = self.edited_old.entry(id).or_default();
        if *n_edits >= self.old_edits {
            return Err(Refusal::old_message());
        }
        *n_edits += 1;
        Ok(())
    }

    /// Edits a message of the bot and tells of it.
    pub(super) fn edit(&mut self, mut message: Message, form: &Form) -> Result<Value, Refusal> {
        checks::message(&form.json)?;
        mention::check(&form.json["allowed_mentions"])?;
        self.fill(&mut message, form);
        if is_empty(&message) {
            return Err(Refusal::empty_message());
        }
        if message.is_loading() {
            message.set_loaded();
            if !self.mentions(&message).is_empty() {
                self.pings.push(message.clone());
            }
        } else {
            message.edited = true;
            message.edited_at = Some(time::now());
        }
        if !message.is_ephemeral() {
            self.changed(message.channel, ChangeKind::Edited, message.id, &message.content);
        }
        self.messages.entry(message.channel).or_default().insert(message.id, message.clone());
        self.dispatch_message("MESSAGE_UPDATE", &message);
        Ok(self.message_json(&message))
    }

    pub(super) fn delete_message(&mut self, channel: u64, id: u64) -> Answer {
        self.check_open(channel)?;
        let message = self.find_message(channel, id).ok_or_else(Refusal::unknown_message)?;
        if message.author != self.bot && self.guild_of(channel).is_none() {
            return Err(Refusal::direct_channel());
        }
        if message.author != self.bot {
            return Err(Refusal::missing_permissions());
        }
        self.remove(channel, id);
        Reply::nothing()
    }

    /// Takes a message away and tells of it.
    pub(super) fn remove(&mut self, channel: u64, id: u64) {
        let here = self.messages.entry(channel).or_default();
        let Some(message) = here.remove(&id) else { return };
        if message.is_ephemeral() {
            return;
        }
        if message.author == self.bot {
            self.changed(channel, ChangeKind::Deleted, id, &message.content);
        }
        let mut gone = json!({ "id": id.to_string(), "channel_id": channel.to_string() });
        let guild = self.guild_of(channel);
        if let Some(guild) = guild {
            gone["guild_id"] = guild.to_string().into();
        }
        let needs = if guild.is_some() { intent::GUILD_MESSAGES } else { intent::DIRECT_MESSAGES };
        self.dispatch("MESSAGE_DELETE", needs, &gone);
    }

    /// Adds or takes a reaction of the bot.
    pub(super) fn react(&mut self, channel: u64, id: u64, emoji: &str, add: bool) -> Answer {
        self.reach(channel)?;
        let message = self.messages.entry(channel).or_default().get_mut(&id);
        let message = message.ok_or_else(Refusal::unknown_message)?;
        message.reactions.retain(|one| one != emoji);
        if add {
            message.reactions.push(emoji.to_owned());
        }
        Reply::nothing()
    }

    pub(super) fn type_in(&mut self, channel: u64) -> Answer {
        self.reach(channel)?;
        self.changed(channel, ChangeKind::Typing, 0, "");
        let mut typing = json!({
            "channel_id": channel.to_string(),
            "user_id": self.bot.to_string(),
            "timestamp": time::now() / 1000,
        });
        let guild = self.guild_of(channel);
        if let Some(guild) = guild {
            typing["guild_id"] = guild.to_string().into();
            typing["member"] = self.full_member_json(guild, self.bot).into();
        }
        let needs = if guild.is_some() { intent::GUILD_TYPING } else { intent::DIRECT_TYPING };
        self.dispatch("TYPING_START", needs, &typing);
        Reply::nothing()
    }
}

/// Returns the nonce of a body that wants it to be unique.
fn unique_nonce(json: &Value) -> Option<String> {
    if json["enforce_nonce"] != true {
        return None;
    }
    match json.get("nonce")? {
        Value::String(nonce) => Some(nonce.clone()),
        Value::Number(nonce) => Some(nonce.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn is_empty(message: &Message) -> bool {
    message.content.trim().is_empty()
        && message.embeds.is_empty()
        && message.components.is_empty()
        && message.attachments.is_empty()
}

/// Returns an id that is text or a number.
pub(super) fn number(id: &Value) -> Option<u64> {
    id.as_u64().or_else(|| id.as_str()?.parse().ok())
}
