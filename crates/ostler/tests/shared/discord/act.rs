//! What people do: they write, edit, use commands, press buttons, fill in modals.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Discord,
    message::{Attachment, Content, Message},
    time,
    world::World,
};

/// A file that a person sends.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    name: String,
    size: u64,
    content: Content,
}

impl Attached {
    pub(crate) fn new(name: &str, bytes: &[u8]) -> Self {
        let size = bytes.len() as u64;
        Self { name: name.to_owned(), size, content: Content::Bytes(Arc::from(bytes)) }
    }

    /// A file whose download never ends.
    pub(crate) fn endless(name: &str) -> Self {
        Self { name: name.to_owned(), size: 1024, content: Content::Endless }
    }

    /// Tells a size that need not be true.
    pub(crate) fn claiming(mut self, size: u64) -> Self {
        self.size = size;
        self
    }
}

impl Discord {
    /// Lets a user write a message.
    pub(crate) fn say(&self, channel: u64, user: u64, text: &str) -> u64 {
        self.say_attaching(channel, user, text, &[])
    }

    /// Lets a user write a message with files.
    pub(crate) fn say_with(
        &self,
        channel: u64,
        user: u64,
        text: &str,
        files: &[(&str, &[u8])],
    ) -> u64 {
        let files: Vec<Attached> =
            files.iter().map(|(name, bytes)| Attached::new(name, bytes)).collect();
        self.say_attaching(channel, user, text, &files)
    }

    /// Lets a user write a message with files that need not be what they claim.
    pub(crate) fn say_attaching(
        &self,
        channel: u64,
        user: u64,
        text: &str,
        files: &[Attached],
    ) -> u64 {
        self.shared.change(|world| {
            let mut message = world.said(channel, user, text);
            message.attachments = files.iter().map(|file| world.attach(file)).collect();
            world.deliver(message)
        })
    }

    /// Lets a user write a reply.
    pub(crate) fn reply(&self, channel: u64, user: u64, to: u64, text: &str) -> u64 {
        self.shared.change(|world| {
            let mut message = world.said(channel, user, text);
            message.reply_to = Some(to);
            world.deliver(message)
        })
    }

    /// Lets another bot write a message.
    pub(crate) fn bot_says(&self, channel: u64, text: &str) -> u64 {
        self.shared.change(|world| {
            let bot = world.add_user("other-bot", true);
            let message = world.said(channel, bot, text);
            world.deliver(message)
        })
    }

    /// Lets a webhook write a message.
    pub(crate) fn webhook_says(&self, channel: u64, text: &str) -> u64 {
        self.shared.change(|world| {
            let id = world.next_id();
            let webhook = world.next_id();
            let mut message = Message::new(id, channel, webhook, text);
            message.webhook = Some("webhook".to_owned());
            world.deliver(message)
        })
    }

    /// Tells the bot of a message that it was told of before.
    pub(crate) fn deliver_again(&self, message: u64) {
        self.shared.change(|world| {
            let found = world.any_message(message);
            world.dispatch_message("MESSAGE_CREATE", &found);
        });
    }

    /// Lets the author change a message.
    pub(crate) fn edit_by_user(&self, message: u64, text: &str) {
        self.shared.change(|world| {
            let mut message = world.any_message(message);
            text.clone_into(&mut message.content);
            message.edited = true;
            message.edited_at = Some(time::now());
            let here = world.messages.entry(message.channel).or_default();
            here.insert(message.id, message.clone());
            world.dispatch_message("MESSAGE_UPDATE", &message);
        });
    }

    /// Lets somebody delete a message.
    pub(crate) fn delete_by_user(&self, message: u64) {
        self.shared.change(|world| {
            let message = world.any_message(message);
            world.remove(message.channel, message.id);
        });
    }

    /// Lets a user use a command that is registered. The options are a list as Discord
    /// sends it, or an object of names and values.
    pub(crate) fn slash(&self, channel: u64, user: u64, command: &str, options: Value) -> u64 {
        self.interact(|world| {
            let guild = world.guild_of(channel);
            let known = world.commands.find(guild, command);
            let known = known.unwrap_or_else(|| panic!("no command {command} is registered"));
            let mut data = json!({
                "id": known["id"],
                "name": command,
                "type": known["type"],
                "options": options_of(known, options),
            });
            if let Some(guild) = known.get("guild_id") {
                data["guild_id"] = guild.clone();
            }
            world.interact(2, channel, user, None, &data)
        })
    }

    /// Lets a user press a button of a message.
    pub(crate) fn press(&self, channel: u64, user: u64, message: u64, custom_id: &str) -> u64 {
        self.interact(|world| {
            let found = world.find_message(channel, message);
            let found = found.unwrap_or_else(|| panic!("no message {message} in {channel}"));
            let component = found.component(custom_id);
            let component = component
                .unwrap_or_else(|| panic!("no {custom_id} among {:?}", found.custom_ids()));
            assert!(component["disabled"] != true, "{custom_id} is disabled");
            let data = json!({
                "custom_id": custom_id,
                "component_type": component["type"],
                "id": component["id"].as_u64().unwrap_or(1),
            });
            world.interact(3, channel, user, Some(message), &data)
        })
    }

    /// Lets a user press a button that is not there, or not any more: a client of his
    /// own can say so of any message that he sees.
    pub(crate) fn forge(&self, channel: u64, user: u64, message: u64, custom_id: &str) -> u64 {
        let data = json!({ "custom_id": custom_id, "component_type": 2, "id": 1 });
        self.interact(|world| world.interact(3, channel, user, Some(message), &data))
    }

    /// Tells the bot of an interaction that it was told of before.
    pub(crate) fn interact_again(&self, interaction: u64) {
        self.shared.change(|world| {
            let event = world.interactions[&interaction].event.clone();
            world.dispatch("INTERACTION_CREATE", 0, &event);
        });
    }

    /// Lets the user who was shown a modal fill it in, by the custom ids of its inputs.
    pub(crate) fn submit_modal(&self, interaction: u64, values: &[(&str, &str)]) -> u64 {
        self.interact(|world| {
            let one = world.interactions[&interaction].clone();
            let modal = one.modal.unwrap_or_else(|| panic!("{interaction} was not shown a modal"));
            let shown = modal["components"].as_array().map_or(&[][..], Vec::as_slice);
            let components: Vec<Value> = shown.iter().map(|row| filled(row, values)).collect();
            let data = json!({ "custom_id": modal["custom_id"], "components": components });
            world.interact(5, one.channel, one.user, one.source, &data)
        })
    }

    /// Begins an interaction, which fails when it is not answered in time.
    fn interact(&self, begin: impl FnOnce(&mut World) -> u64) -> u64 {
        let (id, patience) = self.shared.change(|world| (begin(world), world.patience));
        self.later(patience, move |world| world.give_up(id));
        id
    }
}

impl World {
    fn said(&mut self, channel: u64, user: u64, text: &str) -> Message {
        assert!(self.channels.contains_key(&channel), "no channel {channel}");
        self.join(channel, user);
        let id = self.next_id();
        Message::new(id, channel, user, text)
    }

    fn attach(&mut self, file: &Attached) -> Attachment {
        Attachment {
            id: self.next_id(),
            name: file.name.clone(),
            description: None,
            size: file.size,
            content: file.content.clone(),
        }
    }

    fn deliver(&mut self, message: Message) -> u64 {
        self.messages.entry(message.channel).or_default().insert(message.id, message.clone());
        self.dispatch_message("MESSAGE_CREATE", &message);
        message.id
    }

    fn any_message(&self, id: u64) -> Message {
        let found = self.messages.values().find_map(|here| here.get(&id));
        found.unwrap_or_else(|| panic!("no message {id}")).clone()
    }
}

/// Returns the options of a command as Discord sends them.
fn options_of(command: &Value, options: Value) -> Value {
    let Value::Object(named) = options else {
        return if options.is_null() { json!([]) } else { options };
    };
    let registered = command["options"].as_array().map_or(&[][..], Vec::as_slice);
    let option = |(name, value): (String, Value)| {
        let known = registered.iter().find(|option| option["name"] == name);
        let known = known.unwrap_or_else(|| panic!("{} has no option {name}", command["name"]));
        json!({ "name": name, "type": known["type"], "value": value })
    };
    named.into_iter().map(option).collect()
}

/// Returns a part of a modal as it comes back.
fn filled(part: &Value, values: &[(&str, &str)]) -> Value {
    let mut back = json!({ "type": part["type"], "id": part["id"].as_u64().unwrap_or(1) });
    if let Some(custom_id) = part["custom_id"].as_str() {
        let given = values.iter().find(|(id, _)| *id == custom_id);
        back["custom_id"] = custom_id.into();
        back["value"] = given.map_or("", |(_, value)| value).into();
    }
    if let Some(inner) = part["components"].as_array() {
        back["components"] = inner.iter().map(|one| filled(one, values)).collect();
    }
    if let Some(inner) = part.get("component") {
        back["component"] = filled(inner, values);
    }
    back
}
