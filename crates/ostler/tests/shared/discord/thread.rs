//! Threads: channels below a channel, from a message or on their own.

use serde_json::{Value, json};

use super::{
    answer::{Answer, Refusal, Reply},
    place::Channel,
    session::intent,
    time,
    world::World,
};

impl World {
    /// Starts a thread from a message, whose id it takes.
    pub(super) fn thread_from(&mut self, channel: u64, message: u64, form: &Value) -> Answer {
        self.reach(channel)?;
        if self.find_message(channel, message).is_none() {
            return Err(Refusal::unknown_message());
        }
        if self.channels.contains_key(&message) {
            return Err(Refusal::thread_exists());
        }
        self.start_thread(channel, message, 11, form)
    }

    /// Starts a thread without a message.
    pub(super) fn thread_alone(&mut self, channel: u64, form: &Value) -> Answer {
        self.reach(channel)?;
        let id = self.next_id();
        self.start_thread(channel, id, form["type"].as_u64().unwrap_or(12), form)
    }

    fn start_thread(&mut self, channel: u64, id: u64, kind: u64, form: &Value) -> Answer {
        let place = self.reach(channel)?;
        let Some(guild) = place.guild else { return Err(Refusal::direct_channel()) };
        if place.parent.is_some() {
            let message = "Cannot execute action on this channel type";
            return Err(Refusal {
                status: 400,
                body: json!({ "message": message, "code": 50024 }),
            });
        }
        let name = name(form)?.ok_or_else(|| Refusal::required("name"))?;
        if !matches!(form["auto_archive_duration"].as_u64(), None | Some(60 | 1440 | 4320 | 10080))
        {
            let message = "Value must be one of {60, 1440, 4320, 10080}.";
            return Err(Refusal::form("auto_archive_duration", "BASE_TYPE_CHOICES", message));
        }
        let thread = Channel {
            name,
            guild: Some(guild),
            parent: Some(channel),
            kind,
            recipient: None,
            owner: Some(self.bot),
            archived: false,
            denied: 0,
        };
        self.channels.insert(id, thread);
        let json = self.channel_json(id);
        let mut created = json.clone();
        created["newly_created"] = true.into();
        self.dispatch("THREAD_CREATE", intent::GUILDS, &created);
        Reply::created(json)
    }

    /// Renames a channel, or archives a thread.
    pub(super) fn edit_channel(&mut self, id: u64, form: &Value) -> Answer {
        self.reach(id)?;
        let name = name(form)?;
        let channel = self.channels.get_mut(&id).ok_or_else(Refusal::unknown_channel)?;
        if let Some(name) = name {
            channel.name = name;
        }
        if let Some(archived) = form["archived"].as_bool() {
            channel.archived = archived;
        }
        let event = if channel.parent.is_some() { "THREAD_UPDATE" } else { "CHANNEL_UPDATE" };
        let json = self.channel_json(id);
        self.dispatch(event, intent::GUILDS, &json);
        Reply::ok(json)
    }

    /// Adds what only threads have.
    pub(super) fn thread_fields(&self, id: u64, json: &mut Value) {
        let thread = &self.channels[&id];
        let count = self.messages(id).len();
        json["owner_id"] = thread.owner.map(|owner| owner.to_string()).into();
        json["message_count"] = count.into();
        json["total_message_sent"] = count.into();
        json["member_count"] = 1.into();
        json["thread_metadata"] = json!({
            "archived": thread.archived,
            "auto_archive_duration": 1440,
            "archive_timestamp": time::made_at(id),
            "create_timestamp": time::made_at(id),
            "locked": false,
        });
        json["member"] = json!({
            "id": id.to_string(),
            "user_id": self.bot.to_string(),
            "join_timestamp": time::made_at(id),
            "flags": 0,
        });
    }
}

fn name(form: &Value) -> Result<Option<String>, Refusal> {
    let Some(name) = form["name"].as_str() else { return Ok(None) };
    if !(1..=100).contains(&name.chars().count()) {
        return Err(Refusal::length("name", 1, 100));
    }
    Ok(Some(name.to_owned()))
}
