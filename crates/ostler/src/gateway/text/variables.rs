//! The variables of a message: `{{Body}}` and the fifteen others, which command
//! lines and texts of the operator's may have in them. Pure.
//! docs/inbound-reply.md shows the same table; a test compares them.

use std::collections::BTreeMap;

use ostler_core::template;

use crate::gateway::inbound::{Media, Payload};

/// One variable.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    /// What it is, in words.
    #[cfg_attr(not(test), expect(dead_code, reason = "the documentation is compared with it"))]
    pub(crate) about: &'static str,
    value: fn(&Subject<'_>) -> String,
}

/// What the variables are about: a message, and the session it goes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) payload: &'a Payload,
    pub(crate) session: Session<'a>,
}

/// The session that a message goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Session<'a> {
    /// None: nobody is asked.
    None,
    /// One that begins with this message. It has no name yet.
    New,
    /// One that goes on.
    Resumed(&'a str),
}

/// Every variable. A name that is not here is empty.
#[rustfmt::skip]
pub(crate) const VARIABLES: &[Variable] = &[
    variable("Body", "the message as it was written; in a command line everything that the agent is asked", |it| it.payload.text.clone()),
    variable("BodyStripped", "the message alone: without the mention that it begins with, and without blanks around it", |it| stripped(it.payload).to_owned()),
    variable("From", "who wrote it, by the name that the channel vouches for", |it| it.payload.sender.clone()),
    variable("To", "to which number or account of the gateway", |it| some(it.payload.details.to.as_ref())),
    variable("MessageSid", "what the channel calls the message", |it| some(it.payload.message.as_ref())),
    variable("MediaPath", "where the first medium lies on this machine", |it| medium(it.payload, |media| media.path.as_ref())),
    variable("MediaUrl", "where the first medium came from", |it| medium(it.payload, |media| media.url.as_ref())),
    variable("MediaType", "the type of the first medium, such as `image/png`", |it| medium(it.payload, |media| media.media_type.as_ref())),
    variable("Transcript", "what is spoken in the message, as text", |it| some(it.payload.details.transcript.as_ref())),
    variable("ChatType", "`group` or `direct`", |it| if is_group(it.payload) { "group" } else { "direct" }.to_owned()),
    variable("GroupSubject", "what the group is called", |it| it.payload.details.group.as_ref().map(|group| group.subject.clone()).unwrap_or_default()),
    variable("GroupMembers", "who is in the group, with commas between them", |it| it.payload.details.group.as_ref().map(|group| group.members.join(", ")).unwrap_or_default()),
    variable("SenderName", "what the sender calls himself; without that, as `From`", |it| it.payload.details.sender_name.as_ref().unwrap_or(&it.payload.sender).clone()),
    variable("SenderE164", "the sender's telephone number, such as `+491701234567`", |it| some(it.payload.details.sender_number.as_ref())),
    variable("SessionId", "the agent's session; in a text empty while a session begins", |it| match it.session { Session::Resumed(id) => id.to_owned(), Session::None | Session::New => String::new() }),
    variable("IsNewSession", "`true` with the first message of a session, else `false`", |it| (it.session == Session::New).to_string()),
];

/// Variables that a command line fills in itself: the prompt is all that is
/// asked, and a session that begins gets a name there.
const OF_COMMAND_LINE: [&str; 2] = ["Body", "SessionId"];

const fn variable(
    name: &'static str,
    about: &'static str,
    value: fn(&Subject<'_>) -> String,
) -> Variable {
    Variable { name, about, value }
}

impl Subject<'_> {
    /// Fills a text in.
    pub(crate) fn expand(&self, text: &str) -> String {
        if !template::has_variable(text) {
            return text.to_owned();
        }
        let values: BTreeMap<_, _> =
            VARIABLES.iter().map(|variable| (variable.name, (variable.value)(self))).collect();
        template::expand(text, &|name: &str| values.get(name).map(String::as_str))
    }

    /// Returns what a command line is filled in with, beside what it knows itself.
    pub(crate) fn of_command_line(&self) -> BTreeMap<String, String> {
        let others = VARIABLES.iter().filter(|it| !OF_COMMAND_LINE.contains(&it.name));
        others.map(|it| (it.name.to_owned(), (it.value)(self))).collect()
    }
}

fn some(value: Option<&String>) -> String {
    value.cloned().unwrap_or_default()
}

fn medium(payload: &Payload, field: fn(&Media) -> Option<&String>) -> String {
    some(payload.details.media.first().and_then(field))
}

fn is_group(payload: &Payload) -> bool {
    payload.details.group.is_some()
}

/// Returns the message without the mentions that it begins with. The reset word
/// is gone before the message is stored. A name with an at sign is a mention
/// only among several people.
fn stripped(payload: &Payload) -> &str {
    let mut rest = payload.text.trim();
    while let Some(behind) = behind_mention(rest, is_group(payload)) {
        rest = behind.trim_start_matches([',', ':']).trim_start();
    }
    rest
}

/// Returns what is behind a mention, if the text begins with one: `<@123>`,
/// `<@!123>` or `<@&123>`; in a group also `@name`.
fn behind_mention(text: &str, is_group: bool) -> Option<&str> {
    if let Some(rest) = text.strip_prefix("<@") {
        let (id, behind) = rest.split_once('>')?;
        let id = id.strip_prefix(['!', '&']).unwrap_or(id);
        let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
        return is_id.then_some(behind);
    }
    let rest = text.strip_prefix('@').filter(|_| is_group)?;
    let is_of_name = |c: char| c.is_alphanumeric() || ['_', '-', '.', '+'].contains(&c);
    let behind = rest.trim_start_matches(is_of_name);
    let ends = behind.is_empty()
        || behind.starts_with(|c: char| c.is_whitespace() || c == ',' || c == ':');
    (behind.len() < rest.len() && ends).then_some(behind)
}
