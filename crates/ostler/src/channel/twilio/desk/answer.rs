//! Answers to what an agent asks, in words: a number, a yes or a no, or whatever is
//! written where a question is open. What somebody means is decided by `meant`, which
//! is pure; whether he may decide it, elsewhere.

use std::{sync::Arc, time::Duration};

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
    gateway::gate::{self, Asked},
    id::PermissionId,
    store::{
        Conn, StoreError,
        permissions::{self, StoredRequest},
        posts, turns,
    },
};

/// Twilio writes moments by the second.
const SECOND: Duration = Duration::from_secs(1);

/// What a request offers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Offer {
    request: PermissionId,
    is_open: bool,
    is_question: bool,
    asked_at: Millis,
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
}

impl Answer<'_> {
    /// Whether it was written before something was asked, for certain.
    fn is_before(&self, offer: &Offer) -> bool {
        self.at.is_some_and(|at| at.after(SECOND) <= offer.asked_at)
    }
}

/// An answer that somebody gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meant {
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
        let args = (intake.channel, heard.place.clone(), heard.answers.clone());
        let asked = intake.store.read(args, |conn, (channel, place, answers)| {
            Box::pin(asked(conn, channel, place, answers.as_deref()))
        });
        let (requests, quoted) = asked.await?;
        if requests.is_empty() {
            return Ok(None);
        }
        let offers = offers(&requests, intake.chat.limits());
        let at = heard.at.map(|at| Millis(at.as_millisecond()));
        let said = Answer { text, is_called, at };
        Ok(meant(said, &offers, quoted))
    }

    /// Gives an answer, once, and says why if it is not taken.
    pub(super) async fn answer(
        &self,
        intake: &Intake,
        heard: &Heard,
        answer: Meant,
        rules: &Rules<'_>,
    ) -> Result<(), StoreError> {
        let given = Given {
            request: answer.request,
            choice: &answer.choice,
            text: answer.text.as_deref(),
            place: &heard.place,
            sender: &heard.from,
        };
        // Decided first: a request is decided once, and what is not noted is told again.
        let answered = intake.answer(given, rules).await;
        let is_first = intake.note_once(&heard.place, &heard.message).await?;
        if let (Err(why), true) = (answered, is_first) {
            intake.tell(&heard.place, &heard.message, why);
        }
        Ok(())
    }
}

/// Returns what was asked in the turn that runs at a place, and the request that
/// somebody's message refers to, with all of its turn.
async fn asked(
    conn: &mut Conn,
    channel: &str,
    place: &str,
    answers: Option<&str>,
) -> Result<(Vec<StoredRequest>, Option<PermissionId>), StoreError> {
    let quoted = match answers {
        Some(message) => posts::by_message(conn, channel, message).await?.map(|part| part.slot),
        None => None,
    };
    let quoted = quoted.as_deref().and_then(request_of);
    let newest = posts::last_asked(conn, channel, place).await?;
    let Some(id) = quoted.or_else(|| newest.as_deref().and_then(request_of)) else {
        return Ok((Vec::new(), None));
    };
    let Some(request) = permissions::find(conn, id).await? else {
        return Ok((Vec::new(), None));
    };
    let turn = request.request.turn;
    if quoted.is_none() && !turns::is_running(conn, turn).await? {
        return Ok((Vec::new(), None));
    }
    Ok((permissions::of_turn(conn, turn).await?, quoted))
}

pub(crate) fn request_of(slot: &str) -> Option<PermissionId> {
    match Slot::parse(slot) {
        Some(Slot::Asked(id) | Slot::Page(id, _)) => id.parse().ok(),
        Some(Slot::Text(_) | Slot::Note) | None => None,
    }
}

/// Returns the event that shows a request.
fn event_of(stored: &StoredRequest) -> Value {
    let mut body: Value = serde_json::from_str(&stored.request.body).unwrap_or_default();
    if let Some(fields) = body.as_object_mut() {
        fields.insert("id".to_owned(), stored.id.to_string().into());
    }
    body
}

/// Returns what requests offer, with the choices as they were numbered when they
/// were shown.
fn offers(requests: &[StoredRequest], limits: &Limits) -> Vec<Offer> {
    let mut draft = Draft::new(limits, Detail::Quiet);
    let mut offers = Vec::with_capacity(requests.len());
    let mut n_known = 0;
    for stored in requests {
        let body = event_of(stored);
        let is_question = body.get("kind").and_then(Value::as_str) == Some("question");
        draft.event("permission", &body);
        let all = draft.choices();
        let own = all.iter().skip(n_known).filter_map(|choice| choice.split_once(':'));
        let choices = own.map(|(_, choice)| choice.to_owned()).collect();
        n_known = all.len();
        let is_open = stored.resolution.is_none();
        let asked_at = stored.request.asked_at;
        offers.push(Offer { request: stored.id, is_open, is_question, asked_at, choices });
    }
    offers
}

/// Says what somebody means, if it is an answer.
fn meant(answer: Answer<'_>, offers: &[Offer], quoted: Option<PermissionId>) -> Option<Meant> {
    let Answer { text, is_called, .. } = answer;
    let is_open = |offer: &&Offer| offer.is_open && !answer.is_before(offer);
    let open: Vec<&Offer> = offers.iter().filter(is_open).collect();
    let said = text.trim().trim_end_matches(['.', '!', ')']).trim_end();
    let number = said.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    if let Some((offer, choice)) = number.and_then(|number| numbered(offers).nth(number)) {
        // One that nobody can mean any more says how many, where that may be asked.
        let is_amount = matches!(open.as_slice(), [only] if only.is_question && only.choices.is_empty())
            && !offer.is_open
            && quoted.is_none();
        if !is_amount {
            // A number after the last request was decided is what it says.
            let is_answer = !answer.is_before(offer) && (!open.is_empty() || quoted.is_some());
            let (request, choice) = (offer.request, choice.to_owned());
            return is_answer.then_some(Meant { request, choice, text: None });
        }
    }
    // Words are clear only if one thing is asked, or he says which he means.
    let offer = match (quoted, open.as_slice()) {
        (Some(request), _) => offers.iter().find(|offer| offer.request == request)?,
        (None, [only]) => *only,
        (None, _) => return None,
    };
    // Among others it may be about something else.
    if !is_called && quoted.is_none() {
        return None;
    }
    if offer.is_question {
        let text = (offer.is_open && !text.trim().is_empty()).then(|| text.to_owned())?;
        let request = offer.request;
        return Some(Meant { request, choice: "text".to_owned(), text: Some(text) });
    }
    let choice = word(said)?;
    let is_offered = offer.choices.iter().any(|offered| offered == choice);
    is_offered.then(|| Meant { request: offer.request, choice: choice.to_owned(), text: None })
}

/// Returns the choices in the order of their numbers.
fn numbered(offers: &[Offer]) -> impl Iterator<Item = (&Offer, &str)> {
    offers.iter().flat_map(|offer| offer.choices.iter().map(move |choice| (offer, choice.as_str())))
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ASKED: Millis = Millis(10_500);

    fn offer(is_open: bool, choices: &[&str]) -> Offer {
        let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
        let (request, asked_at) = (PermissionId::new(), ASKED);
        Offer { request, is_open, is_question: false, asked_at, choices }
    }

    fn question(choices: &[&str]) -> Offer {
        Offer { is_question: true, ..offer(true, choices) }
    }

    /// Says what somebody means in private.
    fn meant(text: &str, offers: &[Offer], quoted: Option<PermissionId>) -> Option<Meant> {
        super::meant(Answer { text, is_called: true, at: None }, offers, quoted)
    }

    const DECISIONS: [&str; 3] = ["allow", "allow_always", "deny"];

    #[test]
    fn a_number_means_one_choice_of_one_request() {
        let offers = [offer(true, &DECISIONS), offer(true, &["allow", "deny"])];
        for (said, request, choice) in [
            ("1", 0, "allow"),
            (" 3. ", 0, "deny"),
            ("2)", 0, "allow_always"),
            ("4", 1, "allow"),
            ("5!", 1, "deny"),
        ] {
            let meant = meant(said, &offers, None).unwrap();
            assert_eq!((meant.request, meant.choice.as_str()), (offers[request].request, choice));
        }
        for said in ["0", "6", "-1", "1 2", "99999999999999999999"] {
            assert_eq!(meant(said, &offers, None), None, "{said}");
        }
    }

    #[test]
    fn a_word_counts_where_one_thing_is_asked_or_the_request_is_named() {
        let one = [offer(false, &DECISIONS), offer(true, &["allow", "deny"])];
        assert_eq!(meant("Yes!", &one, None).unwrap().choice, "allow");
        assert_eq!(meant("no", &one, None).unwrap().request, one[1].request);
        // What is not offered is not meant.
        assert_eq!(meant("always", &one, None), None);
        let two = [offer(true, &DECISIONS), offer(true, &DECISIONS)];
        assert_eq!(meant("yes", &two, None), None);
        let second = meant("yes", &two, Some(two[1].request)).unwrap();
        assert_eq!(second.request, two[1].request);
    }

    #[test]
    fn a_question_is_answered_by_whatever_is_written() {
        let offers = [question(&["option:0", "option:1"])];
        assert_eq!(meant("2", &offers, None).unwrap().choice, "option:1");
        let written = meant("the red one", &offers, None).unwrap();
        assert_eq!(written.text.as_deref(), Some("the red one"));
        assert_eq!(meant(" ", &offers, None), None);
    }

    #[test]
    fn a_number_that_is_no_choice_answers_a_question() {
        for offers in [vec![question(&["option:0", "option:1"])], vec![question(&[])]] {
            let meant = meant("42", &offers, None).unwrap();
            assert_eq!((meant.choice.as_str(), meant.text.as_deref()), ("text", Some("42")));
        }
        // One that was the choice of something that is over may be it, too.
        let offers = [offer(false, &DECISIONS), question(&[])];
        assert_eq!(meant("2", &offers, None).unwrap().request, offers[1].request);
        let offers = [offer(true, &DECISIONS), question(&[])];
        assert_eq!(meant("2", &offers, None).unwrap().request, offers[0].request);
        assert_eq!(meant("42", &offers, None), None);
        let quoted = meant("42", &offers, Some(offers[1].request)).unwrap();
        assert_eq!(quoted.text.as_deref(), Some("42"));
    }

    #[test]
    fn what_was_written_before_it_was_asked_is_no_answer() {
        let (decide, ask) = ([offer(true, &DECISIONS)], [question(&["option:0"])]);
        let said = |text, at| Answer { text, is_called: true, at: Some(Millis(at)) };
        for (offers, text) in
            [(&decide, "1"), (&decide, "yes"), (&ask, "1"), (&ask, "red"), (&ask, "7")]
        {
            assert_eq!(super::meant(said(text, 9000), offers, None), None, "{text}");
            // Moments have whole seconds: this may have been after it.
            assert!(super::meant(said(text, 10_000), offers, None).is_some(), "{text}");
        }
    }

    #[test]
    fn what_is_written_when_nothing_is_open_is_for_the_agent() {
        let over = [offer(false, &DECISIONS)];
        assert_eq!(meant("1", &over, None), None);
        assert_eq!(meant("yes", &over, None), None);
        assert_eq!(meant("go on with the rest", &[offer(true, &DECISIONS)], None), None);
    }

    #[test]
    fn who_replies_to_a_request_means_it_however_long_ago_that_was() {
        let over = [offer(false, &DECISIONS)];
        let request = over[0].request;
        assert_eq!(meant("1", &over, Some(request)).unwrap().request, request);
        assert_eq!(meant("no", &over, Some(request)).unwrap().choice, "deny");
        assert_eq!(meant("and what else?", &over, Some(request)), None);
    }

    #[test]
    fn among_others_a_word_counts_only_if_it_is_said_to_the_agent() {
        let said = |text, is_called| Answer { text, is_called, at: None };
        let (decide, ask) = ([offer(true, &DECISIONS)], [question(&["option:0"])]);
        for (offers, text) in [(&decide, "yes"), (&ask, "red")] {
            assert!(super::meant(said(text, false), offers, None).is_none());
            assert!(super::meant(said(text, true), offers, None).is_some());
            assert!(super::meant(said(text, false), offers, Some(offers[0].request)).is_some());
        }
        // What can mean nothing else needs no call.
        assert!(super::meant(said("1", false), &decide, None).is_some());
    }

    proptest! {
        #[test]
        fn nothing_is_meant_that_was_not_offered(text in any::<String>(), is_open: bool) {
            let offers = [offer(is_open, &DECISIONS)];
            if let Some(meant) = meant(&text, &offers, None) {
                prop_assert!(is_open && offers[0].choices.contains(&meant.choice));
            }
        }
    }
}
