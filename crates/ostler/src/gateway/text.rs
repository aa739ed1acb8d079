//! The text that an agent is asked, put together from what was said and what
//! the operator wants said with it. Pure.
//!
//! Always in this order; what is empty is left out:
//!
//! 1. the session intro, with the first message of a session
//! 2. the group intro, with the first message of a session in a group
//! 3. the notes of hooks
//! 4. the body prefix
//! 5. the media note, a line for each medium
//! 6. the transcript
//! 7. the message itself
//!
//! A blank line is between them, but behind the prefix there is nothing: it may
//! be a label on the message's own line. Of messages that are answered together
//! each has its own 4 to 7. A prompt of `ostler run` has nothing around it.
//!
//! What these say is data: nothing that is filled in is filled in again.

#[cfg(test)]
mod tests;
pub(crate) mod variables;

use ostler_core::request::{Identity, Options, Repeat};

use self::variables::{Session, Subject};
use super::{
    begin::Beginning,
    inbound::{Details, Group, LOCAL, Media, Origin, Payload},
    joined,
};
use crate::config::Reply;

/// How many members of a group an agent is told by name.
const MEMBERS: usize = 50;

/// What the operator wants said with messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Texts {
    session_intro: String,
    body_prefix: String,
    /// How often the prefix is sent.
    repeat: Repeat,
}

impl Default for Texts {
    fn default() -> Self {
        Self { session_intro: String::new(), body_prefix: String::new(), repeat: Repeat::EachTurn }
    }
}

impl Texts {
    /// Takes what the block `inbound.reply` says.
    pub(crate) fn new(reply: &Reply) -> Self {
        Self {
            session_intro: reply.session.session_intro.clone().unwrap_or_default(),
            body_prefix: reply.body_prefix.clone().unwrap_or_default(),
            repeat: repeat(reply),
        }
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
    let Details { media, transcript, .. } = &payload.details;
    let transcript = transcript.as_deref().filter(|text| !text.trim().is_empty());
    let said = apart([
        media.iter().map(media_note).collect::<Vec<_>>().join("\n"),
        transcript.map(|text| format!("Transcript of the recording:\n{text}")).unwrap_or_default(),
        payload.text.clone(),
    ]);
    let is_due = texts.repeat == Repeat::EachTurn || session == Session::New;
    if is_due && is_from_chat(payload) && payload.origin == Origin::Person {
        let prefix = Subject { payload, session }.expand(&texts.body_prefix);
        return format!("{prefix}{said}");
    }
    said
}

/// Joins what is there, with a blank line between. What stands alone is as it was.
fn apart(parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.trim().is_empty()).collect();
    parts.join("\n\n")
}

/// Tells an agent of a medium, in one line.
fn media_note(media: &Media) -> String {
    let Media { path, url, media_type, trouble } = media;
    if let Some(why) = trouble {
        return line(&format!("[An attachment could not be fetched: {why}]"));
    }
    let kind = media_type.as_deref().unwrap_or("a file");
    match path.as_deref().or(url.as_deref()) {
        Some(place) => line(&format!("[Attached: {kind}, {place}]")),
        None => line(&format!("[Attached: {kind}, which is not kept here]")),
    }
}

/// Tells an agent where it is when several people can hear it.
fn group_intro(group: &Group) -> String {
    let Group { subject, members } = group;
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
    text.replace(char::is_control, " ")
}
