//! The text that an agent is asked, put together from what was said and what
//! the operator wants said with it. Pure.
//!
//! Always in this order; what is empty is left out:
//!
//! 1. the session intro, with the first message of a session
//! 2. the group intro, with the first message of a session in a group
//! 3. the notes of hooks
//! 4. the time, the message prefix and the body prefix
//! 5. what was said in the group before, a line each
//! 6. the media note, a line for each medium
//! 7. the transcript
//! 8. the message itself, in a group of telephones with who says it
//!
//! A blank line is between them, but behind a prefix there is nothing: it may
//! be a label on the message's own line. Of messages that are answered together
//! each has its own 4 to 8. A prompt of `ostler run` has nothing around it.
//!
//! What these say is data: nothing that is filled in is filled in again.

#[cfg(test)]
mod tests;
pub(crate) mod variables;

use jiff::{Timestamp, tz::TimeZone};
use ostler_core::request::{Identity, Options, Repeat};

use self::variables::{Session, Subject};
use super::{
    begin::Beginning,
    inbound::{Details, Group, LOCAL, Line, Media, Origin, Payload},
    joined,
};
use crate::{
    channel::GROUP,
    config::{Inbound, Reply},
    unruly::is_unruly,
};

/// How many members of a group an agent is told by name.
const MEMBERS: usize = 50;

/// What the operator wants said with messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Texts {
    session_intro: String,
    body_prefix: String,
    /// How often that prefix is sent.
    repeat: Repeat,
    /// What stands before each message, however often it was said.
    message_prefix: String,
    /// Where it is the time that stands before each message.
    clock: Option<TimeZone>,
    /// What stands before each answer.
    response_prefix: String,
}

impl Default for Texts {
    fn default() -> Self {
        Self {
            session_intro: String::new(),
            body_prefix: String::new(),
            repeat: Repeat::EachTurn,
            message_prefix: String::new(),
            clock: None,
            response_prefix: String::new(),
        }
    }
}

impl Texts {
    /// Takes what the block `inbound` says.
    pub(crate) fn new(inbound: &Inbound) -> Self {
        let Inbound { reply, message_prefix, response_prefix, timestamp_prefix } = inbound;
        let zone = timestamp_prefix.as_deref().and_then(|zone| TimeZone::get(zone).ok());
        let given = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            session_intro: reply
                .as_ref()
                .map(|reply| given(&reply.session.session_intro))
                .unwrap_or_default(),
            body_prefix: reply.as_ref().map(|reply| given(&reply.body_prefix)).unwrap_or_default(),
            repeat: reply.as_ref().map_or(Repeat::EachTurn, repeat),
            message_prefix: given(message_prefix),
            clock: zone,
            response_prefix: given(response_prefix),
        }
    }

    /// Returns what stands before each answer in a chat.
    pub(crate) fn response_prefix(&self) -> &str {
        &self.response_prefix
    }

    /// Returns what stands before a message: the time, and what the operator wants.
    fn before(&self, payload: &Payload, session: Session<'_>) -> String {
        let at = payload.at.and_then(|at| Timestamp::from_millisecond(at).ok());
        let time = self.clock.clone().zip(at).map(|(zone, at)| {
            let at = at.to_zoned(zone);
            format!("[{}] ", at.strftime("%Y-%m-%d %H:%M %Z"))
        });
        let prefix = Subject { payload, session }.expand(&self.message_prefix);
        format!("{}{prefix}", time.unwrap_or_default())
    }
}

/// Returns how often identity and prefix are sent.
pub(crate) fn repeat(reply: &Reply) -> Repeat {
    if reply.session.send_system_once { Repeat::OncePerSession } else { Repeat::EachTurn }
}

/// Whether the block `inbound.reply` is about a message: it is about what comes
/// from chats.
pub(crate) fn is_from_chat(payload: &Payload) -> bool {
    payload.channel != LOCAL && !payload.origin.is_bare()
}

/// Whether a fixed text may be the answer to a message. What the operator has
/// arranged himself is asked of an agent.
pub(crate) fn has_fixed_answer(payload: &Payload) -> bool {
    is_from_chat(payload) && payload.origin == Origin::Person
}

/// Returns the fixed text that is the answer to a message.
pub(crate) fn fixed(text: &str, payload: &Payload) -> String {
    Subject { payload, session: Session::None }.expand(text)
}

/// Messages that are answered together, on their way to an agent.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    texts: &'a Texts,
    first: &'a Payload,
    /// Those that joined the first one.
    joined: Vec<&'a Payload>,
    session: Session<'a>,
}

impl<'a> Question<'a> {
    /// Takes what a turn begins with.
    pub(crate) fn new(texts: &'a Texts, beginning: &'a Beginning) -> Self {
        let memo = beginning.memo.as_ref();
        Self {
            texts,
            first: &beginning.payload,
            joined: beginning.joined.iter().map(|(_, payload)| payload).collect(),
            session: memo.map_or(Session::New, |memo| Session::Resumed(&memo.id)),
        }
    }

    /// Puts the prompt together. The notes are texts of others about this turn.
    pub(crate) fn prompt(&self, notes: &[String]) -> String {
        let messages = [self.first].into_iter().chain(self.joined.iter().copied());
        let mut messages: Vec<_> =
            messages.map(|payload| message(self.texts, payload, self.session)).collect();
        let said = match messages.pop() {
            Some(only) if messages.is_empty() => only,
            last => joined::together(messages.iter().chain(&last).map(String::as_str)),
        };
        if self.first.origin.is_bare() {
            return said;
        }
        let mut parts = Vec::new();
        if self.session == Session::New {
            if is_from_chat(self.first) {
                parts.push(self.subject().expand(&self.texts.session_intro));
            }
            parts.extend(self.first.details.group.as_ref().map(group_intro));
        }
        parts.extend_from_slice(notes);
        parts.push(said);
        apart(parts)
    }

    /// Fills in what else the agent gets: the identity, and the words of a
    /// command line of the operator's own.
    pub(crate) fn fill_in(&self, options: &mut Options) {
        if let Identity::Text(text, _) = &mut options.identity {
            *text = self.subject().expand(text);
        }
        if let Some(template) = &mut options.template {
            template.variables.extend(self.subject().of_command_line());
        }
    }

    fn subject(&self) -> Subject<'a> {
        Subject { payload: self.first, session: self.session }
    }
}

/// Returns a message as an agent gets it that is at work already.
pub(crate) fn steering(texts: &Texts, payload: &Payload, session: Option<&str>) -> String {
    message(texts, payload, Session::Resumed(session.unwrap_or_default()))
}

/// Puts together what belongs to one message.
fn message(texts: &Texts, payload: &Payload, session: Session<'_>) -> String {
    if payload.origin.is_bare() {
        return payload.text.clone();
    }
    let Details { media, transcript, group, .. } = &payload.details;
    let transcript = transcript.as_deref().filter(|text| !text.trim().is_empty());
    let said = apart([
        group.as_ref().map(before).unwrap_or_default(),
        media.iter().map(media_note).collect::<Vec<_>>().join("\n"),
        transcript.map(|text| transcribed(payload, text)).unwrap_or_default(),
        labelled(payload),
    ]);
    if !is_from_chat(payload) || payload.origin != Origin::Person {
        return said;
    }
    let is_due = texts.repeat == Repeat::EachTurn || session == Session::New;
    let body_prefix = if is_due { texts.body_prefix.as_str() } else { "" };
    let body_prefix = Subject { payload, session }.expand(body_prefix);
    format!("{}{body_prefix}{said}", texts.before(payload, session))
}

/// Joins what is there, with a blank line between. What stands alone is as it was.
fn apart(parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.trim().is_empty()).collect();
    parts.join("\n\n")
}

/// Tells an agent of a medium, in one line.
fn media_note(media: &Media) -> String {
    let Media { path, url, media_type, trouble, unheard } = media;
    if let Some(why) = trouble {
        return line(&format!("[An attachment could not be fetched: {why}]"));
    }
    let kind = media_type.as_deref().unwrap_or("a file");
    let unheard = unheard.as_ref().map(|why| format!("; it could not be transcribed: {why}"));
    let unheard = unheard.unwrap_or_default();
    match path.as_deref().or(url.as_deref()) {
        Some(place) => line(&format!("[Attached: {kind}, {place}{unheard}]")),
        None => line(&format!("[Attached: {kind}, which is not kept here]")),
    }
}

/// Tells an agent what was said in a group since it heard something last.
fn before(group: &Group) -> String {
    let said = |said: &Line| format!("{}: {}", line(said.name.trim()), line(&said.text));
    let lines: Vec<String> = group.before.iter().map(said).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("[Said in the group before]\n{}", lines.join("\n"))
}

/// Tells an agent what was said in a recording.
fn transcribed(payload: &Payload, text: &str) -> String {
    match speaker(payload) {
        Some(name) => format!("{name}, in the recording: {}", indented(text)),
        None => format!("Transcript of the recording:\n{text}"),
    }
}

/// Returns a message with its sender, where an agent cannot know him otherwise.
fn labelled(payload: &Payload) -> String {
    match speaker(payload) {
        Some(name) => format!("{name}: {}", indented(&payload.text)).trim_end().to_owned(),
        None => payload.text.clone(),
    }
}

/// Returns who speaks, where several people do and an agent cannot know otherwise.
fn speaker(Payload { channel, details, .. }: &Payload) -> Option<String> {
    let name = details.sender_name.as_deref().filter(|_| channel == GROUP)?;
    Some(line(name.trim()))
}

/// Sets off all lines but the first: one could pass for what somebody else says.
fn indented(text: &str) -> String {
    let text = text.trim_end().replace("\r\n", "\n");
    text.split(is_line_end).collect::<Vec<_>>().join("\n    ")
}

/// Whether a character may be shown as the end of a line.
fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Tells an agent where it is when several people can hear it.
fn group_intro(group: &Group) -> String {
    let Group { subject, members, .. } = group;
    let mut text = "You take part in a group chat in which several people write.".to_owned();
    if !subject.trim().is_empty() {
        text.push_str(&line(&format!(" It is called \"{}\".", subject.trim())));
    }
    let known = members.iter().filter(|name| !name.trim().is_empty());
    let names: Vec<_> = known.clone().take(MEMBERS).map(|name| line(name.trim())).collect();
    if !names.is_empty() {
        let more = known.count() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text.push_str(&format!(" Its members are: {}{more}.", names.join(", ")));
    }
    text
}

/// Keeps a text in its line.
fn line(text: &str) -> String {
    text.replace(is_unruly, " ")
}
