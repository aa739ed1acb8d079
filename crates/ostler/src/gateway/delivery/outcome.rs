//! One message: sends it, and notes what came of it for as long as that takes.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time;

use super::{Desk, Pace, until};
use crate::{
    channel::{self, Reply, SendError, Sent},
    clock::Millis,
    store::{
        Conn, StoreError,
        audit::{self, Entry},
        events::{self, NewEvent},
        outbox::{self, Next, Sending},
        webhooks::{self, NOTICE},
    },
};

/// How long notices wait for a webhook that does not answer. Part of the contract.
const STALE: Duration = Duration::from_secs(10 * 60);

/// What there is to note of a message.
#[derive(Clone, Debug)]
enum Note {
    /// It was not begun.
    Untried,
    Sent(Sent),
    Failed {
        reason: String,
        is_unsure: bool,
        then: Then,
    },
}

/// What follows an attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    RetryIn(Duration),
    /// It was tried often enough.
    Exhausted,
    /// Trying again would be in vain.
    Refused,
}

/// Sends a message and notes what came of it. Until it is noted it counts as
/// being sent, so that nobody sends it a second time.
pub(super) async fn deliver(desk: Arc<Desk>, sending: Sending) {
    let note = if desk.stop.is_cancelled() {
        Note::Untried
    } else {
        note(desk.channels.send(&sending).await, &desk.pace, &sending)
    };
    let args = Arc::new((sending, note));
    let mut n_failures = 0;
    loop {
        // The wait counts from when it can be noted at the earliest.
        let now = Millis::now();
        let noted = desk.store.write_repeatable((Arc::clone(&args), now), |conn, (args, now)| {
            Box::pin(write(conn, &args.0, &args.1, *now))
        });
        let error = match noted.await {
            Ok(is_news) => {
                desk.store_answers();
                return tell(&args.0, &args.1, is_news);
            }
            Err(error) => error,
        };
        desk.store_failed(&error);
        if matches!(error, StoreError::Closed) {
            return tracing::error!(
                reply = %args.0.id,
                "the store was closed before it was noted what came of a reply"
            );
        }
        let is_stopping = desk.stop.is_cancelled();
        // There is not much time any more for what must not get lost.
        let pause = desk.pace.store_pause(if is_stopping { 0 } else { n_failures });
        tokio::select! {
            () = time::sleep(pause) => {}
            () = desk.stop.cancelled(), if !is_stopping => {}
        }
        n_failures += 1;
    }
}

/// Decides what an attempt comes to.
fn note(sent: Result<Sent, SendError>, pace: &Pace, sending: &Sending) -> Note {
    match sent {
        Ok(sent) => Note::Sent(sent),
        Err(SendError { reason, next, is_unsure }) => {
            let then = match next {
                channel::Next::Retry { after } => {
                    let tries = pace.of(&sending.message.channel);
                    let tried_for = until(Millis::now(), sending.tried_since);
                    let wait = tries.retry_in(sending.attempt, tried_for, after);
                    wait.map_or(Then::Exhausted, Then::RetryIn)
                }
                channel::Next::Wait | channel::Next::GiveUp => Then::Refused,
            };
            Note::Failed { reason, is_unsure, then }
        }
    }
}

/// Writes a note. Written twice it is the same as once: only the present attempt
/// can fail, and only once. Returns whether it was news.
async fn write(
    conn: &mut Conn,
    sending: &Sending,
    note: &Note,
    now: Millis,
) -> Result<bool, StoreError> {
    let Sending { id, attempt, .. } = *sending;
    match note {
        Note::Untried => outbox::give_back(conn, id, attempt).await,
        Note::Sent(sent) => outbox::sent(conn, id, sent.message.as_deref(), now).await,
        Note::Failed { reason, is_unsure, then } => {
            if *is_unsure {
                outbox::doubt(conn, id, attempt).await?;
            }
            let next = match then {
                Then::RetryIn(wait) => Next::RetryAt(now.after(*wait)),
                Then::Exhausted | Then::Refused => Next::GiveUp,
            };
            let is_news = outbox::failed(conn, id, attempt, reason, next, now).await?;
            if is_news && next == Next::GiveUp {
                let is_unsure = *is_unsure || sending.is_unsure;
                audit::add(conn, &entry(sending, reason, is_unsure, now)).await?;
                // Nobody follows a conversation for what is not said in one.
                if sending.message.channel != NOTICE {
                    events::append(conn, &[warning(sending, reason, is_unsure, now)]).await?;
                } else if *then == Then::Exhausted {
                    let (webhook, since) = (&sending.message.address, now.before(STALE));
                    webhooks::give_up_before(conn, webhook, since, now).await?;
                }
            }
            Ok(is_news)
        }
    }
}

/// Logs what was noted.
fn tell(sending: &Sending, note: &Note, is_news: bool) {
    let Sending { id: reply, attempt, message, .. } = sending;
    let to = channel::place(&message.channel, &message.address);
    let conversation = message.conversation.map(|id| id.to_string()).unwrap_or_default();
    match note {
        _ if !is_news => {
            tracing::info!(%reply, attempt, "a reply was in other hands before its end was noted");
        }
        Note::Untried => tracing::debug!(%reply, "a reply was given back, for it is time to stop"),
        Note::Sent(_) => tracing::debug!(%reply, attempt, to, "a reply was sent"),
        Note::Failed { reason, then: Then::RetryIn(wait), .. } => {
            let why = outline(reason);
            tracing::info!(%reply, attempt, to, why, ?wait, "a reply was not taken; it waits");
        }
        Note::Failed { reason, then: Then::Exhausted | Then::Refused, .. } => {
            let why = outline(reason);
            tracing::warn!(%reply, conversation, attempt, to, why, "a reply was given up");
        }
    }
}

/// Returns a reason without the receiver's own words, which may repeat the reply.
fn outline(reason: &str) -> &str {
    reason.split_once(": ").map_or(reason, |(outline, _)| outline)
}

/// Makes the line of the audit about a message that was given up.
fn entry(sending: &Sending, reason: &str, is_unsure: bool, now: Millis) -> Entry {
    let message = &sending.message;
    let detail = json!({
        "conversation": message.conversation,
        "turn": message.turn,
        "channel": message.channel,
        "to": channel::place(&message.channel, &message.address),
        "attempt": sending.attempt,
        "reason": reason,
        "is_unsure": is_unsure,
    });
    Entry {
        at: now,
        actor: "gateway".to_owned(),
        action: if message.channel == NOTICE { "notice.given_up" } else { "reply.given_up" }
            .to_owned(),
        subject: sending.id.to_string(),
        detail: detail.to_string(),
    }
}

/// Makes the event about it, for those who follow the conversation.
fn warning(sending: &Sending, reason: &str, is_unsure: bool, now: Millis) -> NewEvent {
    let message = &sending.message;
    let to = channel::place(&message.channel, &message.address);
    let job = Reply::from_json(&message.body).ok().and_then(|reply| reply.job);
    let job = job.map(|job| format!(" of {job}"));
    let tries = if sending.attempt == 1 {
        "one attempt".to_owned()
    } else {
        format!("{} attempts", sending.attempt)
    };
    let doubt = if is_unsure { "; it may have arrived all the same" } else { "" };
    let text = format!(
        "the reply{} could not be delivered to {to} after {tries}: {reason}{doubt}",
        job.unwrap_or_default(),
    );
    let body = json!({
        "seq": 0, "at": now, "type": "status", "turn": null, "code": "warning", "text": text,
    });
    NewEvent {
        conversation: message.conversation,
        turn: None,
        seq: 0,
        at: now,
        kind: "status".to_owned(),
        body: body.to_string(),
        belongs: None,
    }
}
