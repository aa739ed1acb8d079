//! What people do in Discord, in words of our own: a message, a button, a command.
//! Pure. Whether anybody listens to them is decided elsewhere.

mod places;

use std::fmt;

use twilight_model::{
    application::interaction::{
        Interaction, InteractionData,
        application_command::{CommandData, CommandDataOption, CommandOptionValue},
        modal::ModalInteractionComponent,
    },
    channel::{Message, message::MessageType},
    guild::PartialMember,
    id::{Id, marker::RoleMarker},
    user::User,
};

pub(crate) use self::places::{Place, Places};
use super::names;

/// The longest name of a person, in characters.
const NAME: usize = 80;

/// Somebody in Discord.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) id: String,
    /// What he is called where he spoke. Never empty, and one line.
    pub(crate) name: String,
    pub(crate) is_bot: bool,
}

/// A message of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) message: String,
    pub(crate) channel: String,
    /// Nothing in a direct message.
    pub(crate) guild: Option<String>,
    /// The channel that it is in, if `channel` is a thread.
    pub(crate) parent: Option<String>,
    /// Whether `channel` may be a thread of which Discord did not say where it is.
    pub(crate) is_astray: bool,
    pub(crate) channel_name: Option<String>,
    pub(crate) author: Person,
    pub(crate) roles: Vec<String>,
    /// Whether the author may have roles of which Discord did not say which they are.
    pub(crate) is_unranked: bool,
    /// Without the mention of the bot.
    pub(crate) text: String,
    pub(crate) is_mentioned: bool,
    pub(crate) attachments: Vec<Attached>,
    /// Whether it is a reply to a message of the bot.
    pub(crate) answers_bot: bool,
}

/// A file that came with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attached {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) bytes: u64,
    pub(crate) media_type: Option<String>,
}

/// What an answer to a button or a command is given with. It is good for a quarter
/// of an hour.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) application: String,
    pub(crate) id: String,
    /// Whoever has it can answer.
    pub(crate) token: String,
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A button that was pressed, or a form that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pressed {
    pub(crate) ticket: Ticket,
    pub(crate) channel: String,
    pub(crate) guild: Option<String>,
    pub(crate) parent: Option<String>,
    /// The message that has the button.
    pub(crate) message: Option<String>,
    pub(crate) person: Person,
    pub(crate) roles: Vec<String>,
    /// What the button or the form was given as its id.
    pub(crate) id: String,
    /// What was typed into the form.
    pub(crate) text: Option<String>,
}

/// A command that was given by its slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slash {
    pub(crate) ticket: Ticket,
    pub(crate) channel: String,
    pub(crate) guild: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) person: Person,
    pub(crate) roles: Vec<String>,
    pub(crate) name: String,
    pub(crate) options: Vec<(String, String)>,
}

/// What an interaction is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Interacted {
    Pressed(Pressed),
    Slash(Slash),
}

/// Returns what a person said; nothing if it was not a person, or nobody's words.
pub(crate) fn heard(message: &Message, bot: &str, places: &Places) -> Option<Heard> {
    let is_said = matches!(message.kind, MessageType::Regular | MessageType::Reply);
    let author = person(&message.author, message.member.as_ref());
    let is_ours = author.is_bot || author.id == bot || message.webhook_id.is_some();
    if !is_said || is_ours || message.author.system == Some(true) {
        return None;
    }
    let channel = message.channel_id.to_string();
    let place = places.get(&channel);
    // A reply names the one it answers, too, and in a block of code nobody is meant.
    let is_named = message.mentions.iter().any(|mention| mention.id.to_string() == bot);
    let without = is_named.then(|| without_mention(&message.content, bot)).flatten();
    let answered = message.referenced_message.as_deref();
    Some(Heard {
        message: message.id.to_string(),
        guild: message.guild_id.map(|guild| guild.to_string()),
        parent: place.and_then(|place| place.parent.clone()),
        is_astray: false,
        channel_name: place.and_then(|place| place.name.clone()),
        channel,
        author,
        roles: message.member.as_ref().map(|member| roles(&member.roles)).unwrap_or_default(),
        is_unranked: false,
        is_mentioned: without.is_some(),
        text: without.unwrap_or_else(|| message.content.trim().to_owned()),
        attachments: message
            .attachments
            .iter()
            .map(|file| Attached {
                name: names::of_file(&file.filename),
                url: file.url.clone(),
                bytes: file.size,
                media_type: file.content_type.clone(),
            })
            .collect(),
        answers_bot: message.kind == MessageType::Reply
            && answered.is_some_and(|answered| answered.author.id.to_string() == bot),
    })
}

/// Returns a text without the mentions of the bot; nothing if there are none.
fn without_mention(text: &str, bot: &str) -> Option<String> {
    let mentions = [format!("<@{bot}>"), format!("<@!{bot}>")];
    let has_one = |text: &str| mentions.iter().any(|mention| text.contains(mention.as_str()));
    if !has_one(text) {
        return None;
    }
    let mut text = text.to_owned();
    // What is left may make a new one, until nothing is.
    while has_one(&text) {
        for mention in &mentions {
            // What stood on both sides of it shall not stand two spaces apart.
            text = text.replace(&format!(" {mention} "), " ").replace(mention.as_str(), "");
        }
    }
    Some(text.trim().to_owned())
}

/// Returns what was pressed or asked for; nothing if it is something else, or of no
/// place or person.
pub(crate) fn interacted(interaction: &Interaction, places: &Places) -> Option<Interacted> {
    let ticket = Ticket {
        application: interaction.application_id.to_string(),
        id: interaction.id.to_string(),
        token: interaction.token.clone(),
    };
    let member = interaction.member.as_ref();
    let person = person(interaction.author()?, member);
    let roles = member.map(|member| roles(&member.roles)).unwrap_or_default();
    #[expect(deprecated, reason = "still sent, and all there is where the channel is missing")]
    let channel = interaction.channel.as_ref().map(|channel| channel.id).or(interaction.channel_id);
    let channel = channel?.to_string();
    let guild = interaction.guild_id.map(|guild| guild.to_string());
    let of_thread = interaction.channel.as_ref().filter(|channel| channel.kind.is_thread());
    let parent = of_thread.and_then(|thread| thread.parent_id).map(|id| id.to_string());
    let known = || places.get(&channel).and_then(|place| place.parent.clone());
    let parent = parent.or_else(known);
    let pressed = |id: &str, text: Option<String>| Pressed {
        ticket: ticket.clone(),
        channel: channel.clone(),
        guild: guild.clone(),
        parent: parent.clone(),
        message: interaction.message.as_ref().map(|message| message.id.to_string()),
        person: person.clone(),
        roles: roles.clone(),
        id: id.to_owned(),
        text,
    };
    match interaction.data.as_ref()? {
        InteractionData::MessageComponent(data) => {
            Some(Interacted::Pressed(pressed(&data.custom_id, None)))
        }
        InteractionData::ModalSubmit(data) => {
            let text = data.components.iter().find_map(typed);
            Some(Interacted::Pressed(pressed(&data.custom_id, text)))
        }
        InteractionData::ApplicationCommand(data) => Some(Interacted::Slash(Slash {
            parent,
            guild,
            name: data.name.clone(),
            options: options(data),
            ticket,
            channel,
            person,
            roles,
        })),
        _ => None,
    }
}

/// Returns what was typed into a form, or a part of one.
fn typed(component: &ModalInteractionComponent) -> Option<String> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing can be typed into the others")]
    match component {
        ModalInteractionComponent::ActionRow(row) => row.components.iter().find_map(typed),
        ModalInteractionComponent::Label(label) => typed(&label.component),
        ModalInteractionComponent::TextInput(input) => Some(input.value.clone()),
        _ => None,
    }
}

fn options(data: &CommandData) -> Vec<(String, String)> {
    let value = |option: &CommandDataOption| match &option.value {
        CommandOptionValue::String(text) | CommandOptionValue::Focused(text, _) => {
            Some(text.clone())
        }
        CommandOptionValue::Boolean(value) => Some(value.to_string()),
        CommandOptionValue::Integer(value) => Some(value.to_string()),
        CommandOptionValue::Number(value) => Some(value.to_string()),
        CommandOptionValue::Attachment(id) => Some(id.to_string()),
        CommandOptionValue::Channel(id) => Some(id.to_string()),
        CommandOptionValue::Mentionable(id) => Some(id.to_string()),
        CommandOptionValue::Role(id) => Some(id.to_string()),
        CommandOptionValue::User(id) => Some(id.to_string()),
        // We have none of them.
        CommandOptionValue::SubCommand(_) | CommandOptionValue::SubCommandGroup(_) => None,
    };
    let pair = |option: &CommandDataOption| Some((option.name.clone(), value(option)?));
    data.options.iter().filter_map(pair).collect()
}

fn roles(roles: &[Id<RoleMarker>]) -> Vec<String> {
    roles.iter().map(ToString::to_string).collect()
}

fn person(user: &User, member: Option<&PartialMember>) -> Person {
    let nick = member.and_then(|member| member.nick.as_deref());
    let names = [nick, user.global_name.as_deref(), Some(&user.name)];
    let mut names = names.into_iter().flatten().map(|name| names::shown(name, NAME));
    let id = user.id.to_string();
    let name = names.find(|name| !name.is_empty()).unwrap_or_else(|| id.clone());
    Person { id, name, is_bot: user.bot }
}

#[cfg(test)]
mod tests;
