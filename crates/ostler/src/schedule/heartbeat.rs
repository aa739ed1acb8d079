//! Heartbeats: from time to time the agent of the newest conversation is asked
//! whether something needs attention, and says nothing if nothing does.
//!
//! A heartbeat is the least of all messages. It goes on with a session that
//! there is and never begins one, gives way to whoever speaks, is tried once,
//! and does not count as a word in the conversation.

mod rules;

use std::{sync::Arc, time::Duration};

#[cfg(test)]
pub(crate) use self::rules::EVERY;
pub(crate) use self::rules::{Rules, Skip};
use crate::{
    clock::Millis,
    gateway::{
        gate::has_gone_idle,
        inbound::{Details, HEARTBEAT, LOCAL, Origin, PAYLOAD, Payload, Refusal, check_place},
        policy::Policy,
    },
    id::{ConversationId, JobId},
    queue::{Enqueued, Job, LaneId, MessageKey, NewJob, enqueue::enqueue},
    store::{
        Conn, Store, StoreError,
        conversations::{self, Address, Conversation},
        jobs, messages, sessions,
    },
    wishes::Wishes,
};

/// The answer after which nothing is sent.
pub(crate) const OK: &str = "HEARTBEAT_OK";
/// What the agent is told, if nothing else is configured.
pub(crate) const PROMPT_TEXT: &str = "This is a heartbeat: nobody has written. Look whether \
    something needs attention now: what you were asked to keep an eye on, what was to be done by \
    now, what somebody has to know. If there is something, write to the person about it, briefly. \
    If there is nothing, answer with HEARTBEAT_OK and nothing else.";
/// Among lanes, people's messages go first.
const PRIORITY: i64 = -10;
/// One that could not begin for so long is dropped.
const STALE: Duration = Duration::from_secs(10 * 60);
/// Who speaks in it.
const SENDER: &str = "heartbeat";
/// Where the names of slots are kept, as if it was a channel.
const CHANNEL: &str = "heartbeat";

/// Why there is a heartbeat now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// Its time has come. However many gateways see that, there is one.
    Slot { every: Duration, slot: i64 },
    /// Somebody wants one, here if he says where.
    Asked(Option<Address>),
}

/// What became of a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    Job {
        job: JobId,
        conversation: ConversationId,
    },
    Skipped(Skip),
    /// Another gateway made that of this slot.
    Before,
}

/// Makes a heartbeat, if there is room for one.
pub(crate) async fn make(
    store: &Store,
    policy: &Arc<Policy>,
    occasion: Occasion,
    now: Millis,
) -> Result<Made, Refusal> {
    let args = (Arc::clone(policy), occasion, JobId::new(), now);
    store
        .write_repeatable(args, |conn, (policy, occasion, job, now)| {
            Box::pin(put(conn, policy, occasion, *job, *now))
        })
        .await
}

async fn put(
    conn: &mut Conn,
    policy: &Policy,
    occasion: &Occasion,
    job: JobId,
    now: Millis,
) -> Result<Made, Refusal> {
    let conversation = match find(conn, policy, occasion).await? {
        Ok(conversation) => conversation,
        Err(skip) => return Ok(Made::Skipped(skip)),
    };
    let lane = LaneId::new(conversation.id);
    // Nobody speaks between the look and the job.
    jobs::lock(conn, &lane).await?;
    if jobs::find(conn, job).await?.is_some() {
        // An earlier try of this write made it.
        return Ok(Made::Job { job, conversation: conversation.id });
    }
    if jobs::is_busy(conn, &lane).await? {
        return Ok(Made::Skipped(Skip::Busy));
    }
    if let Some(skip) = unfit(conn, policy, &conversation, now).await? {
        return Ok(Made::Skipped(skip));
    }
    let Some(target) = reached_at(conn, policy, &conversation).await? else {
        return Ok(Made::Skipped(Skip::NowhereToSend));
    };
    let payload = Payload {
        v: PAYLOAD,
        text: policy.heartbeat.prompt.clone().unwrap_or_else(|| PROMPT_TEXT.to_owned()),
        sender: SENDER.to_owned(),
        channel: target.channel().to_owned(),
        address: target.key().to_owned(),
        fresh: None,
        wishes: Wishes::default(),
        message: None,
        at: Some(now.0),
        origin: Origin::Heartbeat,
        details: Details::default(),
        belongs: None,
        words: None,
    };
    let message = match occasion {
        Occasion::Asked(_) => None,
        Occasion::Slot { every, slot } => Some(MessageKey {
            channel: CHANNEL.to_owned(),
            message: format!("{} {slot}", every.as_millis()),
        }),
    };
    let new = NewJob {
        message,
        priority: PRIORITY,
        max_failures: 1,
        ..NewJob::new(HEARTBEAT, &payload.to_json()?)
    };
    Ok(match enqueue(conn, job, &lane, &new, &policy.rules.capacity, now).await? {
        Enqueued::New(job) => Made::Job { job, conversation: conversation.id },
        Enqueued::Again(_) => Made::Before,
    })
}

/// Finds the conversation that it goes to.
async fn find(
    conn: &mut Conn,
    policy: &Policy,
    occasion: &Occasion,
) -> Result<Result<Conversation, Skip>, StoreError> {
    let asked = match occasion {
        Occasion::Asked(address) => address.as_ref(),
        Occasion::Slot { .. } => None,
    };
    Ok(match asked.or(policy.heartbeat.conversation.as_ref()) {
        Some(address) => conversations::find_at(conn, address)
            .await?
            .ok_or_else(|| Skip::Unknown(address.clone())),
        None => conversations::newest(conn).await?.ok_or(Skip::NoConversation),
    })
}

/// Returns why a conversation is not one for a heartbeat, if it is not.
async fn unfit(
    conn: &mut Conn,
    policy: &Policy,
    conversation: &Conversation,
    now: Millis,
) -> Result<Option<Skip>, StoreError> {
    let Ok(agent) = policy.agents.resolve(conversation.agent.as_deref()) else {
        return Ok(Some(Skip::NoSession));
    };
    let sessions = sessions::list(conn, conversation.id).await?;
    if !sessions.iter().any(|(of, _)| *of == *agent.name) {
        return Ok(Some(Skip::NoSession));
    }
    let spoke = conversation.last_user_at;
    if policy.heartbeat.idle.is_some_and(|idle| spoke.is_none_or(|last| last.after(idle) < now)) {
        return Ok(Some(Skip::Quiet));
    }
    let is_idle = has_gone_idle(conn, conversation, now, &policy.rules.sessions).await?;
    Ok(is_idle.then_some(Skip::Idle))
}

/// Returns where people are reached in a conversation: where the last of them
/// wrote from, for several places may share one. Nobody looks at this machine all
/// the time, if there is a channel for that.
async fn reached_at(
    conn: &mut Conn,
    policy: &Policy,
    conversation: &Conversation,
) -> Result<Option<Address>, StoreError> {
    let place = messages::newest_place_in(conn, conversation.id).await?;
    let place = place.unwrap_or_else(|| conversation.address.clone());
    let output = policy.rules.output.clone().filter(|_| place.channel() == LOCAL);
    Ok(output.or(Some(place)).filter(|place| check_place(place).is_ok()))
}

/// Returns why a heartbeat that was claimed is dropped, if it is.
pub(crate) async fn dropped(
    conn: &mut Conn,
    job: &Job,
    conversation: &Conversation,
    policy: &Policy,
    now: Millis,
) -> Result<Option<Skip>, StoreError> {
    if job.attempt > 1 {
        return Ok(Some(Skip::CutOff));
    }
    if job.enqueued_at.after(STALE) < now {
        return Ok(Some(Skip::Stale));
    }
    if !jobs::waiting_behind(conn, &job.lane, 1).await?.is_empty() {
        return Ok(Some(Skip::GaveWay));
    }
    unfit(conn, policy, conversation, now).await
}

/// Whether an answer says that nothing needs attention: the word alone, in
/// whatever quotes or markup, with or without a full stop. An answer without a
/// text says so, too; anything beside the word is something to be told.
pub(crate) fn says_nothing(answer: &str) -> bool {
    let word = answer.trim_matches(|c: char| !c.is_alphanumeric());
    word.is_empty() || word.eq_ignore_ascii_case(OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_alone_says_nothing_and_anything_beside_it_is_told() {
        for answer in [
            "HEARTBEAT_OK",
            " heartbeat_ok\n",
            "HEARTBEAT_OK.",
            "**HEARTBEAT_OK**",
            "`HEARTBEAT_OK`",
            "```\nHEARTBEAT_OK\n```",
            "\"HEARTBEAT_OK\"",
            "“HEARTBEAT_OK”!",
            "- HEARTBEAT_OK",
            "",
            " \n",
            "✅ HEARTBEAT_OK",
        ] {
            assert!(says_nothing(answer), "{answer:?}");
        }
        for answer in [
            "HEARTBEAT_OK, but the disk is full",
            "All is well: HEARTBEAT_OK",
            "HEARTBEAT OK",
            "HEARTBEAT_OK HEARTBEAT_OK",
            "NOT_HEARTBEAT_OK",
            "ok",
            "The build is red.",
        ] {
            assert!(!says_nothing(answer), "{answer:?}");
        }
        assert!(PROMPT_TEXT.contains(OK));
    }
}
