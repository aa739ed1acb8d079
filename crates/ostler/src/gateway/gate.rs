//! What becomes of a message before anything runs: which conversation it
//! belongs to, and which job it becomes. Decided here, written in one go.

use super::{
    history,
    inbound::{
        Accepted, Fresh, Group, Inbound, LOCAL, Origin, PAYLOAD, PROMPT, Payload, RESET, Refusal,
    },
};
use crate::{
    clock::Millis,
    config::{Busy, Scope, Sessions},
    id::JobId,
    queue::{Capacity, Enqueued, LaneId, MessageKey, NewJob, cancel::cancel, enqueue::enqueue},
    store::{
        Conn, StoreError,
        conversations::{self, Address, AddressError, Conversation},
        jobs,
        turns::{self, TurnState},
    },
};

/// Why a turn was cancelled for a newer message.
const INTERRUPTED: &str = "a newer message interrupted it";

/// What a text asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked<'a> {
    /// To begin afresh, and nothing else.
    Reset,
    Prompt {
        text: &'a str,
        fresh: Option<Fresh>,
    },
}

/// Reads a text. A reset word alone begins afresh; with a text after it, that
/// text is the first of a new session.
pub(crate) fn read<'a>(text: &'a str, reset_words: &[String]) -> Asked<'a> {
    let trimmed = text.trim();
    for word in reset_words.iter().map(|word| word.trim()).filter(|word| !word.is_empty()) {
        let Some(start) = trimmed.get(..word.len()) else { continue };
        if !start.eq_ignore_ascii_case(word) {
            continue;
        }
        let rest = trimmed.get(word.len()..).unwrap_or_default();
        if rest.is_empty() {
            return Asked::Reset;
        }
        if rest.starts_with(char::is_whitespace) {
            return Asked::Prompt { text: rest.trim_start(), fresh: Some(Fresh::Asked) };
        }
    }
    Asked::Prompt { text, fresh: None }
}

/// Returns whether a conversation was silent for too long. A clock that was set
/// back makes nothing old.
pub(crate) fn is_idle(last: Option<Millis>, now: Millis, sessions: &Sessions) -> bool {
    match (last, sessions.idle) {
        (Some(last), Some(idle)) => last.after(idle) < now,
        (None, _) | (_, None) => false,
    }
}

/// Returns the conversation that a message belongs to. People on this machine
/// name theirs themselves. A group, where it counts, has one for all of it;
/// whoever is in none has his own.
pub(crate) fn scoped(
    address: &Address,
    sender: &str,
    group: Option<&Group>,
    scope: Scope,
) -> Result<Address, AddressError> {
    if address.channel() == LOCAL {
        return Ok(address.clone());
    }
    let of_sender = || Address::new(address.channel(), &format!("{} {sender}", address.key()));
    match (scope, group) {
        (Scope::PerChannel, _) | (Scope::PerGroup, Some(_)) => Ok(address.clone()),
        (Scope::PerSender, _) | (Scope::PerGroup, None) => of_sender(),
        (Scope::Global, _) => Address::new("global", "all"),
    }
}

/// What the gate goes by, as configured.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) sessions: Sessions,
    pub(crate) busy: Busy,
    pub(crate) capacity: Capacity,
}

/// Stores a message as a job, with the conversation that it belongs to. Done
/// twice with the same id it is the same as once.
pub(crate) async fn store(
    conn: &mut Conn,
    id: JobId,
    inbound: &Inbound,
    rules: &Rules,
    now: Millis,
) -> Result<Accepted, Refusal> {
    let Inbound { address, sender, details, .. } = inbound;
    let place = scoped(address, sender, details.group.as_ref(), rules.sessions.scope)?;
    let conversation = conversations::find_or_begin(conn, &place, now).await?;
    store_in(conn, id, &conversation, inbound, rules, now).await
}

/// Stores a message as a job of a conversation.
pub(crate) async fn store_in(
    conn: &mut Conn,
    id: JobId,
    conversation: &Conversation,
    inbound: &Inbound,
    rules: &Rules,
    now: Millis,
) -> Result<Accepted, Refusal> {
    let Inbound { address, sender, message, text, wishes, origin, details } = inbound;
    let asked = read(text, &rules.sessions.reset_words);
    let (kind, text, fresh) = match asked {
        Asked::Reset => (RESET, "", None),
        Asked::Prompt { text, fresh: Some(fresh) } => (PROMPT, text, Some(fresh)),
        Asked::Prompt { text, fresh: None } => {
            let idle = has_gone_idle(conn, conversation, now, &rules.sessions).await?;
            (PROMPT, text, idle.then_some(Fresh::Idle))
        }
    };
    let payload = Payload {
        v: PAYLOAD,
        text: text.to_owned(),
        sender: sender.clone(),
        channel: address.channel().to_owned(),
        address: address.key().to_owned(),
        fresh,
        wishes: wishes.clone(),
        message: message.clone(),
        origin: *origin,
        details: details.clone(),
    };
    let payload = payload.to_json()?;
    let key = message.as_ref().map(|message| MessageKey {
        channel: address.channel().to_owned(),
        // Neither has such a character in it.
        message: format!("{}\u{1f}{message}", address.key()),
    });
    let lane = LaneId::new(conversation.id.to_string());
    let job = NewJob { message: key, ..NewJob::new(kind, &payload) };
    let (job, is_again) = match enqueue(conn, id, &lane, &job, &rules.capacity, now).await? {
        Enqueued::New(job) => (job, false),
        Enqueued::Again(job) => (job, true),
    };
    // Only what somebody said counts as that.
    if !is_again && origin.is_spoken() {
        if *origin == Origin::Person {
            conversations::heard_from_user(conn, conversation.id, now).await?;
        }
        history::heard(conn, conversation.id, job, inbound, now).await?;
        if rules.busy == Busy::Interrupt {
            interrupt(conn, &lane, job, now).await?;
        }
    }
    Ok(Accepted { conversation: conversation.id, job, is_again })
}

/// Whether a conversation was silent for too long: since a person said something,
/// and since somebody was last at work on an answer.
pub(crate) async fn has_gone_idle(
    conn: &mut Conn,
    conversation: &Conversation,
    now: Millis,
    sessions: &Sessions,
) -> Result<bool, StoreError> {
    if !is_idle(conversation.last_user_at, now, sessions) {
        return Ok(false);
    }
    Ok(match turns::last_of(conn, conversation.id).await? {
        Some(turn) if turn.state == TurnState::Running => false,
        Some(turn) => is_idle(turn.ended_at, now, sessions),
        None => true,
    })
}

/// Asks for the end of what runs in a lane, unless it is this job or a later one:
/// the write may be made a second time.
async fn interrupt(
    conn: &mut Conn,
    lane: &LaneId,
    by: JobId,
    now: Millis,
) -> Result<(), StoreError> {
    let Some(running) = jobs::running_in(conn, lane).await? else { return Ok(()) };
    let (running, by) = (jobs::find(conn, running).await?, jobs::find(conn, by).await?);
    if let (Some(running), Some(by)) = (running, by)
        && running.seq < by.seq
    {
        cancel(conn, running.id, INTERRUPTED, now).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_reset_word_alone_begins_afresh_and_with_a_text_the_text_is_the_first() {
        let words = ["/new".to_owned(), "reset".to_owned(), String::new()];
        let words = words.as_slice();
        let prompt = |text, fresh| Asked::Prompt { text, fresh };
        assert_eq!(read(" /NEW\n", words), Asked::Reset);
        assert_eq!(read("Reset", words), Asked::Reset);
        assert_eq!(read("/new  what is it?", words), prompt("what is it?", Some(Fresh::Asked)));
        assert_eq!(read("/newer", words), prompt("/newer", None));
        assert_eq!(read("é", words), prompt("é", None));
        assert_eq!(read("  as it is ", words), prompt("  as it is ", None));
        assert_eq!(read("/new", &[]), prompt("/new", None));
    }

    #[test]
    fn silence_counts_from_what_a_person_said_last_and_a_clock_that_goes_back_ends_nothing() {
        let sessions = Sessions { idle: Some(Duration::from_secs(60)), ..Sessions::default() };
        let at = |seconds: i64| Millis(seconds * 1000);
        assert!(!is_idle(None, at(1_000), &sessions));
        assert!(!is_idle(Some(at(0)), at(60), &sessions));
        assert!(is_idle(Some(at(0)), at(61), &sessions));
        assert!(!is_idle(Some(at(500)), at(10), &sessions));
        let never = Sessions { idle: None, ..Sessions::default() };
        assert!(!is_idle(Some(at(0)), at(1_000_000), &never));
    }

    #[test]
    fn the_scope_says_who_shares_a_conversation() {
        let hook = Address::new("webhook", "http://a/1").unwrap();
        let other = Address::new("webhook", "http://a/2").unwrap();
        let scoped = |address, sender, scope| scoped(address, sender, None, scope).unwrap();
        assert_eq!(scoped(&hook, "me", Scope::PerChannel), hook);
        assert_ne!(scoped(&hook, "me", Scope::PerSender), scoped(&hook, "you", Scope::PerSender));
        assert_eq!(scoped(&hook, "me", Scope::Global), scoped(&other, "you", Scope::Global));
        let local = Address::new(LOCAL, "main").unwrap();
        assert_eq!(scoped(&local, "me", Scope::Global), local);
    }

    #[test]
    fn by_default_an_hour_is_silence_and_one_word_begins_afresh() {
        let Sessions { idle, reset_words, scope } = Sessions::default();
        assert_eq!(idle, Some(Duration::from_secs(60 * 60)));
        assert_eq!((reset_words, scope), (vec!["/new".to_owned()], Scope::PerChannel));
    }

    #[test]
    fn a_group_shares_a_conversation_and_whoever_is_in_none_has_his_own() {
        let place = Address::new("webhook", "http://a/1").unwrap();
        let group = Group::default();
        let scoped = |sender, group| scoped(&place, sender, group, Scope::PerGroup).unwrap();
        assert_eq!(scoped("me", Some(&group)), place);
        assert_eq!(scoped("you", Some(&group)), place);
        assert_ne!(scoped("me", None), scoped("you", None));
        assert_ne!(scoped("me", None), place);
    }
}
