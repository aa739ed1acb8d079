//! What becomes of a message before anything runs: which conversation it
//! belongs to, and which job it becomes. Decided here, written in one go.

use super::{
    details, history,
    inbound::{
        API, Accepted, COMMAND, Fresh, Group, HEARTBEAT, Inbound, LOCAL, Origin, PAYLOAD, PROGRAM,
        PROMPT, Payload, RESET, Refusal,
    },
};
use crate::{
    clock::Millis,
    config::{Busy, Scope, Sessions},
    id::JobId,
    queue::{
        Capacity, Enqueued, JobState, LaneId, MessageKey, NewJob, cancel::cancel, enqueue::enqueue,
    },
    schedule::heartbeat::Skip,
    store::{
        Conn, StoreError, Topic,
        conversations::{self, Address, AddressError, Conversation},
        jobs, sessions,
        turns::{self, TurnState},
    },
};

/// The conversation that is everybody's.
const GLOBAL: (&str, &str) = ("global", "all");
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
/// text is the first of a new session. Of several that fit, the longest counts.
pub(crate) fn read<'a>(text: &'a str, reset_words: &[String]) -> Asked<'a> {
    let trimmed = text.trim();
    let words = reset_words.iter().map(|word| word.trim()).filter(|word| !word.is_empty());
    let rest = words.filter_map(|word| after_word(trimmed, word)).min_by_key(|rest| rest.len());
    match rest {
        None => Asked::Prompt { text, fresh: None },
        Some("") => Asked::Reset,
        Some(rest) => Asked::Prompt { text: rest, fresh: Some(Fresh::Asked) },
    }
}

/// Returns what follows a word that a text begins with, if it does.
fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(word.len())?;
    let ends = rest.is_empty() || rest.starts_with(char::is_whitespace);
    (ends && start.eq_ignore_ascii_case(word)).then(|| rest.trim_start())
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
    if matches!(address.channel(), LOCAL | API) {
        return Ok(address.clone());
    }
    let of_sender = || Address::new(address.channel(), &format!("{} {sender}", address.key()));
    match (scope, group) {
        (Scope::PerChannel, _) | (Scope::PerGroup, Some(_)) => Ok(address.clone()),
        (Scope::PerSender, _) | (Scope::PerGroup, None) => of_sender(),
        (Scope::Global, _) => Address::new(GLOBAL.0, GLOBAL.1),
    }
}

/// Returns the conversation that something belongs to which no sender said. Whom
/// of several senders it is for is not known; it has a conversation of its own.
pub(crate) fn shared(address: &Address, scope: Scope) -> Result<Address, AddressError> {
    match scope {
        Scope::Global if address.channel() != LOCAL => Address::new(GLOBAL.0, GLOBAL.1),
        Scope::Global | Scope::PerSender | Scope::PerChannel | Scope::PerGroup => {
            Ok(address.clone())
        }
    }
}

/// What the gate goes by, as configured.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) sessions: Sessions,
    pub(crate) busy: Busy,
    pub(crate) capacity: Capacity,
    /// Where agents speak that nobody asked and that were not told where.
    pub(crate) output: Option<Address>,
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
    let Inbound { address, sender, message, text, wishes, origin, details, belongs, words } =
        inbound;
    let asked = match origin {
        // Nothing around it is nothing around it.
        Origin::Run | Origin::Command => Asked::Prompt { text, fresh: None },
        Origin::Person | Origin::Heartbeat | Origin::Schedule | Origin::Hook => {
            read(text, &rules.sessions.reset_words)
        }
    };
    let (kind, text, fresh) = match asked {
        // The word is the caption of something that is said with it.
        Asked::Reset if details::has_content(details) => (PROMPT, "", Some(Fresh::Asked)),
        Asked::Reset => (RESET, "", None),
        Asked::Prompt { text, fresh: Some(fresh) } => (PROMPT, text, Some(fresh)),
        // Whoever names a session means it.
        Asked::Prompt { text, fresh: None } if *origin == Origin::Command => (COMMAND, text, None),
        Asked::Prompt { text, fresh: None } => {
            let idle = has_gone_idle(conn, conversation, now, &rules.sessions).await?;
            (PROMPT, text, idle.then_some(Fresh::Idle))
        }
    };
    let kind = if words.is_some() { PROGRAM } else { kind };
    let payload = Payload {
        v: PAYLOAD,
        text: text.to_owned(),
        sender: sender.clone(),
        channel: address.channel().to_owned(),
        address: address.key().to_owned(),
        fresh,
        wishes: wishes.clone(),
        message: message.clone(),
        at: Some(now.0),
        origin: *origin,
        details: details.clone(),
        belongs: belongs.clone(),
        words: words.clone(),
    };
    let payload = payload.to_json()?;
    let key = message.as_ref();
    let key = key.map(|message| MessageKey::new(address.channel(), address.key(), message));
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
        displace_heartbeat(conn, &lane, now).await?;
        // A command is cancelled by whoever gave it.
        if rules.busy == Busy::Interrupt && *origin != Origin::Command {
            interrupt(conn, &lane, job, now).await?;
        }
    }
    Ok(Accepted { conversation: conversation.id, job, is_again })
}

/// Whether a conversation was silent for too long: since a person said something,
/// and since somebody was last at work on an answer. Where nobody is known to
/// have been, it is the session that tells.
pub(crate) async fn has_gone_idle(
    conn: &mut Conn,
    conversation: &Conversation,
    now: Millis,
    sessions: &Sessions,
) -> Result<bool, StoreError> {
    let person = conversation.last_user_at;
    if person.is_some() && !is_idle(person, now, sessions) {
        return Ok(false);
    }
    match turns::last_of(conn, conversation.id).await? {
        Some(turn) if turn.state == TurnState::Running => return Ok(false),
        Some(turn) => return Ok(is_idle(turn.ended_at, now, sessions)),
        None => {}
    }
    let stored = sessions::list(conn, conversation.id).await?;
    let used = stored.iter().map(|(_, session)| session.updated_at).max();
    Ok(is_idle(used.or(person), now, sessions))
}

/// Takes back a heartbeat that somebody who speaks would wait for.
async fn displace_heartbeat(conn: &mut Conn, lane: &LaneId, now: Millis) -> Result<(), StoreError> {
    if let Some(ready) = jobs::ready_in(conn, lane).await?.filter(|job| job.kind == HEARTBEAT) {
        // It may run by now; then it goes on.
        let reason = Skip::GaveWay.to_string();
        jobs::end_not_begun(conn, lane, &[ready.id], JobState::Cancelled, &reason, now).await?;
        jobs::promote(conn, lane).await?;
        conn.wake(Topic::Jobs);
    }
    Ok(())
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
mod tests;
