//! Answers to what an agent asks, in words: a number, a yes or a no, or whatever is
//! written where a question is open. What somebody means is decided by `meant`, which
//! is pure; whether he may decide it, elsewhere.

use std::{sync::Arc, time::Duration};

use ostler_core::permission::DecidedBy;
use serde_json::Value;

use super::Desk;
use crate::{
    channel::{
        access::Rules,
        chat::{
            Limits, Slot,
            draft::{Detail, Draft},
            intake::{Given, Intake},
        },
        twilio::{heard::Heard, kind::Kind},
    },
    clock::Millis,
    gateway::{
        asking,
        gate::{self, Asked},
    },
    id::PermissionId,
    queue::MessageKey,
    store::{
        Conn, StoreError, jobs,
        permissions::{self, Resolution, Standing, StoredRequest},
        posts,
    },
};

/// Twilio writes moments by the second.
const SECOND: Duration = Duration::from_secs(1);
/// How soon after it was sent somebody can have read a request and answered it, where it
/// is not known yet whether it arrived.
const READ: Duration = Duration::from_secs(2);
/// For how long a number is taken for that of a request which nobody answered in time,
/// where nothing else is asked.
const LATE: Duration = Duration::from_secs(600);
/// What is written on the buttons of a template.
const BUTTONS: [&str; 3] = ["Allow", "Always", "Deny"];
/// What somebody is told of whom it is not known what he decides.
const UNCLEAR: &str = "It is not clear which request you mean. Send the number of a choice.";

/// What a request offers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Offer {
    request: PermissionId,
    /// Whether somebody waits for the answer, and it can be read.
    is_open: bool,
    /// Whether its time was up a short while ago.
    has_lapsed: bool,
    is_question: bool,
    /// Since when it can have been read.
    stood_at: Millis,
    /// Whether it was sent so lately that nobody can have read it.
    is_unread: bool,
    /// The number of its first choice.
    number: usize,
    /// What the agent takes as an answer.
    choices: Vec<String>,
}

/// Something that may be an answer.
#[derive(Clone, Copy, Debug)]
struct Answer<'a> {
    text: &'a str,
    /// Whether it was said to the agent, and not to others who are there.
    is_called: bool,
    /// When it was written, to the second, if that was not just now.
    at: Option<Millis>,
    /// Whether it may be a button that was pressed, and nobody says where it stands.
    may_be_button: bool,
}

impl Answer<'_> {
    /// Whether it was written before something could be read, for certain.
    fn is_before(&self, offer: &Offer) -> bool {
        offer.is_unread || self.at.is_some_and(|at| at.after(SECOND) <= offer.stood_at)
    }
}

/// What a message refers to, besides by what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quoted {
    Nothing,
    Request(PermissionId),
    /// Something that was not asked.
    Other,
}

/// What is meant by an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meant {
    Choice(Choice),
    /// One request or another.
    Unclear,
}

/// A choice that somebody made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    request: PermissionId,
    choice: String,
    text: Option<String>,
}

impl Desk {
    /// Returns which request a message answers, if it does.
    pub(super) async fn answer_of(
        &self,
        intake: &Intake,
        heard: &Heard,
        is_called: bool,
    ) -> Result<Option<Meant>, StoreError> {
        let policy = Arc::clone(&self.policy.borrow());
        // What stands before a word in a group is no part of it.
        let text = match heard.kind {
            Kind::Group => heard.after_call(&policy.twilio.group_words).unwrap_or(&heard.text),
            Kind::WhatsApp | Kind::Sms => &heard.text,
        };
        let reset_words = &policy.rules.sessions.reset_words;
        let is_fresh = !matches!(gate::read(text, reset_words), Asked::Prompt { fresh: None, .. });
        // A file is for the agent, and so is the wish to begin afresh.
        if is_fresh || !heard.media.is_empty() || text.trim().is_empty() {
            return Ok(None);
        }
        let number = number(trimmed(text)).and_then(|number| u32::try_from(number).ok());
        let args = (intake.channel, heard.place.clone(), heard.answers.clone(), number);
        let asked = intake.store.read(args, |conn, (channel, place, answers, number)| {
            Box::pin(asked(conn, channel, place, answers.as_deref(), *number))
        });
        let asked = asked.await?;
        let offers = offers(&asked, intake.chat.limits(), Millis::now());
        let numbered = asked.numbered.map(|request| request.id);
        let at = heard.at.map(|at| Millis(at.as_millisecond()));
        let has_buttons = policy.twilio.approval_template.is_some();
        // Whoever is asked for messages does not say what they refer to.
        let may_be_button = at.is_some() && has_buttons && heard.kind == Kind::WhatsApp;
        let said = Answer { text, is_called, at, may_be_button };
        Ok(meant(said, &offers, asked.quoted, numbered))
    }

    /// Gives an answer, once, and says why if it is not taken.
    pub(super) async fn answer(
        &self,
        intake: &Intake,
        heard: &Heard,
        meant: Meant,
        rules: &Rules<'_>,
    ) -> Result<(), StoreError> {
        let answered = match meant {
            Meant::Unclear => Err(UNCLEAR.to_owned()),
            Meant::Choice(Choice { request, choice, text }) => {
                let given = Given {
                    request,
                    choice: &choice,
                    text: text.as_deref(),
                    message: Some(&heard.message),
                    place: &heard.place,
                    sender: &heard.from,
                };
                intake.answer(given, rules).await
            }
        };
        // What was decided was noted with that; anything else changed nothing.
        if let Err(why) = answered
            && intake.note_once(&heard.place, &heard.message).await?
        {
            intake.tell(&heard.place, &heard.message, why);
        }
        Ok(())
    }
}

/// What is asked at a place, as far as a message can be about it.
struct AskedThere {
    /// What waits for an answer, in the order of the numbers.
    open: Vec<Standing>,
    quoted: Quoted,
    /// What somebody refers to that is not among these.
    other: Option<StoredRequest>,
    /// What has the number that was said.
    numbered: Option<StoredRequest>,
}

async fn asked(
    conn: &mut Conn,
    channel: &str,
    place: &str,
    answers: Option<&str>,
    number: Option<u32>,
) -> Result<AskedThere, StoreError> {
    let open = permissions::open_at(conn, channel, place).await?;
    let quoted = match answers {
        None => Quoted::Nothing,
        Some(message) => match posts::by_message(conn, channel, message).await? {
            Some(part) if part.subject.place == place => {
                request_of(&part.slot).map_or(Quoted::Other, Quoted::Request)
            }
            Some(_) => Quoted::Other,
            None => match open.last() {
                // Nobody knows its name yet; his own messages have one.
                Some(Standing { request, message: None, .. })
                    if jobs::noted_as(conn, &MessageKey::new(channel, place, message))
                        .await?
                        .is_none() =>
                {
                    Quoted::Request(request.id)
                }
                Some(_) | None => Quoted::Other,
            },
        },
    };
    let other = match quoted {
        Quoted::Request(id) if open.iter().all(|it| it.request.id != id) => {
            permissions::find(conn, id).await?
        }
        Quoted::Request(_) | Quoted::Nothing | Quoted::Other => None,
    };
    let numbered = match number {
        Some(number) => permissions::numbered(conn, channel, place, number).await?,
        None => None,
    };
    Ok(AskedThere { open, quoted, other, numbered })
}

pub(crate) fn request_of(slot: &str) -> Option<PermissionId> {
    match Slot::parse(slot) {
        Some(Slot::Asked(id) | Slot::Page(id, _)) => id.parse().ok(),
        Some(Slot::Text(_) | Slot::Note) | None => None,
    }
}

/// Returns what requests offer, each of them once.
fn offers(asked: &AskedThere, limits: &Limits, now: Millis) -> Vec<Offer> {
    let open = asked.open.iter().map(|it| (&it.request, Some(it)));
    let more = asked.other.iter().chain(&asked.numbered).map(|request| (request, None));
    let mut offers: Vec<Offer> = Vec::new();
    for (request, standing) in open.chain(more) {
        if offers.iter().all(|offer| offer.request != request.id) {
            offers.push(Offer::of(request, standing, limits, now));
        }
    }
    offers
}

impl Offer {
    /// Reads what a request offers, with the choices as they were numbered when they were
    /// shown. One that does not stand anywhere is not open.
    fn of(
        stored: &StoredRequest,
        standing: Option<&Standing>,
        limits: &Limits,
        now: Millis,
    ) -> Self {
        let body = asking::event_of(stored);
        let is_question = body.get("kind").and_then(Value::as_str) == Some("question");
        let mut draft = Draft::new(limits, Detail::Quiet);
        draft.event("permission", &body);
        let choices = draft.choices();
        let choices = choices.iter().filter_map(|choice| choice.split_once(':'));
        let has_lapsed = stored.resolution.as_ref().is_some_and(|resolution| {
            by_nobody(resolution) && resolution.at.is_some_and(|at| now < at.after(LATE))
        });
        // What is on its way was begun then.
        let stood_at = standing.map_or(stored.request.asked_at, |it| match it.message {
            Some(_) => it.stood_at,
            None => it.stood_at.after(READ),
        });
        Self {
            request: stored.id,
            is_open: standing.is_some(),
            has_lapsed,
            is_question,
            stood_at,
            is_unread: standing.is_some_and(|it| it.message.is_none()) && now < stood_at,
            number: stored.number.and_then(|it| usize::try_from(it).ok()).unwrap_or(1),
            choices: choices.map(|(_, choice)| choice.to_owned()).collect(),
        }
    }

    /// Returns the choice that has a number.
    fn choice(&self, number: usize) -> Option<&str> {
        let at = number.checked_sub(self.number)?;
        self.choices.get(at).map(String::as_str)
    }
}

/// Whether nobody decided something while there was time.
fn by_nobody(resolution: &Resolution) -> bool {
    const NOBODY: [DecidedBy; 3] = [DecidedBy::Timeout, DecidedBy::Cancel, DecidedBy::Agent];
    let by = resolution.by.as_deref();
    by.is_none_or(|by| NOBODY.iter().any(|nobody| nobody.code() == by))
}

/// Says what somebody means, if it is an answer. A number means one choice of one
/// request, which is found out before.
fn meant(
    answer: Answer<'_>,
    offers: &[Offer],
    quoted: Quoted,
    numbered: Option<PermissionId>,
) -> Option<Meant> {
    let Answer { text, is_called, .. } = answer;
    let find = |request| offers.iter().find(|offer| offer.request == request);
    let quoted = match quoted {
        Quoted::Nothing => None,
        // Whoever quotes what he cannot have read quotes something else.
        Quoted::Request(request) => Some(find(request).filter(|offer| !offer.is_unread)?),
        Quoted::Other => return None,
    };
    let is_open = |offer: &&Offer| offer.is_open && !answer.is_before(offer);
    let open: Vec<&Offer> = offers.iter().filter(is_open).collect();
    let said = trimmed(text);
    let chosen = number(said).zip(numbered.and_then(find));
    let chosen = chosen.and_then(|(number, offer)| Some((offer, offer.choice(number)?)));
    if let Some((offer, choice)) = chosen {
        match taken(offer, quoted, &open) {
            // A number after everything was decided is what it says.
            Taken::Number if answer.is_before(offer) => return None,
            Taken::Number => return Some(Meant::choice(offer, choice)),
            Taken::ForAgent => return None,
            Taken::Unclear => return Some(Meant::Unclear),
            Taken::Text => {}
        }
    }
    // Words are clear only if one thing is asked, or he says which he means.
    let offer = match (quoted, open.as_slice()) {
        (Some(offer), _) => offer,
        (None, [only]) => *only,
        (None, []) => return None,
        (None, _) => return (is_called && word(said).is_some()).then_some(Meant::Unclear),
    };
    // Among others it may be about something else.
    if !is_called && quoted.is_none() {
        return None;
    }
    if offer.is_question {
        let is_written = offer.is_open && !text.trim().is_empty();
        return is_written.then(|| Meant::text(offer, text));
    }
    let choice = word(said)?;
    if quoted.is_none() && answer.may_be_button && BUTTONS.contains(&text.trim()) {
        return Some(Meant::Unclear);
    }
    let is_offered = offer.choices.iter().any(|offered| offered == choice);
    is_offered.then(|| Meant::choice(offer, choice))
}

/// What a number is that is a choice of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Number,
    /// What is written in answer to a question.
    Text,
    ForAgent,
    Unclear,
}

/// Decides what the number of a choice is taken for.
fn taken(offer: &Offer, quoted: Option<&Offer>, open: &[&Offer]) -> Taken {
    match (quoted, open) {
        (Some(quoted), _) if quoted.request == offer.request => Taken::Number,
        (Some(quoted), _) if quoted.is_question => Taken::Text,
        (Some(_), _) => Taken::Unclear,
        (None, _) if offer.is_open => Taken::Number,
        // It says how many, where that may be asked.
        (None, [only]) if only.is_question && only.choices.is_empty() => Taken::Text,
        (None, []) if !offer.has_lapsed => Taken::ForAgent,
        // He is told that it is too late for that.
        (None, _) => Taken::Number,
    }
}

impl Meant {
    fn choice(offer: &Offer, choice: &str) -> Self {
        let (request, choice) = (offer.request, choice.to_owned());
        Self::Choice(Choice { request, choice, text: None })
    }

    fn text(offer: &Offer, text: &str) -> Self {
        let (request, choice) = (offer.request, "text".to_owned());
        Self::Choice(Choice { request, choice, text: Some(text.to_owned()) })
    }
}

/// Returns a text without what may stand around a number or a word.
fn trimmed(text: &str) -> &str {
    text.trim().trim_end_matches(['.', '!', ')']).trim_end()
}

fn number(said: &str) -> Option<usize> {
    said.parse().ok()
}

/// Returns the decision that a word is.
fn word(said: &str) -> Option<&'static str> {
    match said.to_lowercase().as_str() {
        "yes" | "y" | "ok" | "okay" | "allow" | "👍" => Some("allow"),
        "always" | "allow always" | "allow for this session" => Some("allow_always"),
        "no" | "n" | "deny" | "👎" => Some("deny"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
