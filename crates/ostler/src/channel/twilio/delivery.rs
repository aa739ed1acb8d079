//! What becomes of messages after Twilio took them: it is noted, and what failed is
//! sent again where that can help, or told to the operator.

use std::time::Duration;

use serde_json::json;
use tokio::time;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    api::Message,
    chat::{TwilioChat, WAITS, away},
    code::{self, Meaning},
    desk,
    heard::{Form, Malformed},
    kind::Kind,
};
use crate::{
    channel::{
        Next, SendError,
        chat::{Chat as _, Posting, Slot},
        is_sid, place,
    },
    clock::Millis,
    id::PermissionId,
    store::{
        Conn, Store, StoreError,
        audit::{self, Entry},
        contacts,
        outbox::{self, Reopened, Standing, State},
        permissions::{self, StoredRequest},
        posts::{self, Part, StoredPost},
        turns,
    },
};

/// The wait before something is sent again.
const AGAIN: Duration = Duration::from_secs(30);
/// The shortest wait before a request for permission is asked again; the agent waits for
/// it. Each is as long as the request has been open by then.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// How often a message is sent in all.
const MOST: i64 = 5;
/// How long it may take until a message is noted of which Twilio tells at once.
const NOTED: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(4)];

/// What Twilio says became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delivered {
    kind: Kind,
    message: String,
    place: String,
    status: String,
    error: Option<u32>,
}

impl Delivered {
    pub(crate) fn read(form: Form<'_>) -> Result<Self, Malformed> {
        let message = form.need("MessageSid")?;
        if !is_sid(message, "SM") && !is_sid(message, "MM") {
            return Err(Malformed::Wrong("MessageSid"));
        }
        let (kind, number) = Kind::of(form.need("To")?);
        let error = form.get("ErrorCode").and_then(|code| code.parse().ok());
        Ok(Self {
            kind,
            message: message.to_owned(),
            place: number.to_owned(),
            status: form.need("MessageStatus")?.to_owned(),
            error,
        })
    }

    /// Reads what Twilio has of a message of ours; nothing if it says nothing.
    pub(crate) fn of(message: &Message) -> Option<Self> {
        let (kind, number) = Kind::of(message.to.as_deref()?);
        Some(Self {
            kind,
            message: message.sid.clone(),
            place: number.to_owned(),
            status: message.status.clone()?,
            error: message.error_code,
        })
    }

    /// Whether more is known of a message. What is told late or twice changes nothing.
    fn is_old(&self, part: &Part) -> bool {
        part.delivery.as_deref().map_or(0, rank) >= rank(&self.status)
    }

    fn has_failed(&self) -> bool {
        matches!(self.status.as_str(), "failed" | "undelivered" | "canceled")
    }
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Nothing,
    /// It cannot be said yet: whoever sends it is still at it.
    Later,
    /// It is sent again after a while.
    Again,
    /// It is a request for permission, and asked again after a while.
    AskAgain(Duration),
    /// It is sent when the person writes.
    Wait,
    Lost,
}

/// Whoever follows messages.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) store: Store,
    pub(crate) chats: Vec<TwilioChat>,
    /// What is done beside what happens next.
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Delivery {
    /// Notes what became of a message, and does what follows. It may be told before
    /// the message is known; what is not known after a while is found out later.
    pub(crate) async fn note(&self, delivered: &Delivered) -> Result<(), StoreError> {
        for pause in NOTED {
            time::sleep(pause).await;
            if self.try_note(delivered).await? != Then::Later {
                break;
            }
        }
        Ok(())
    }

    /// Notes what became of a message, if it is known.
    pub(crate) async fn note_late(&self, delivered: &Delivered) -> Result<(), StoreError> {
        self.try_note(delivered).await.map(drop)
    }

    async fn try_note(&self, delivered: &Delivered) -> Result<Then, StoreError> {
        let looked = self.store.read(delivered.clone(), |conn, it| Box::pin(look(conn, it)));
        // Most of what is told is known, and there is nothing to write.
        if let Some(then) = looked.await? {
            return Ok(then);
        }
        let args = (delivered.clone(), Millis::now());
        let then =
            self.store.write(args, |conn, (delivered, now)| Box::pin(write(conn, delivered, *now)));
        let then = then.await?;
        let code = delivered.error.unwrap_or_default();
        // Not as `message`, by which the log knows what it says.
        let (message, why) = (&delivered.message, code::words(code));
        match then {
            Then::Nothing | Then::Later => {
                tracing::debug!(id = %message, status = delivered.status, "told of a message")
            }
            Then::Again => {
                tracing::warn!(id = %message, why, "a message did not arrive; it is sent again")
            }
            Then::AskAgain(wait) => {
                let after = wait.as_secs();
                tracing::warn!(id = %message, why, "a request for permission did not arrive; it is asked again in {after} s, if it is open then");
                self.ask_again(delivered, wait);
            }
            Then::Wait => {
                tracing::warn!(id = %message, why, "a message waits until its reader writes");
                if let Some(chat) = self.chat(delivered.kind)
                    && let Err(error) = chat.call(&delivered.place).await
                {
                    tracing::warn!(%error, "the template could not be sent");
                }
            }
            Then::Lost => {
                tracing::error!(id = %message, why, "a message did not arrive, and is not sent again")
            }
        }
        Ok(then)
    }
}

/// A request for permission that is asked again.
struct Asking {
    part: Part,
    slot: Slot,
    requests: Vec<StoredRequest>,
}

impl Delivery {
    fn chat(&self, kind: Kind) -> Option<&TwilioChat> {
        self.chats.iter().find(|chat| chat.kind() == kind)
    }

    /// Asks again for what did not arrive, for as long as somebody waits for the answer.
    fn ask_again(&self, delivered: &Delivered, wait: Duration) {
        let Some(chat) = self.chat(delivered.kind).cloned() else { return };
        let (delivery, message, stop) =
            (self.clone(), delivered.message.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            stop.run_until_cancelled(delivery.ask_until(&chat, &message, wait)).await;
        });
    }

    async fn ask_until(&self, chat: &TwilioChat, message: &str, mut wait: Duration) {
        let args = (chat.kind().channel(), message.to_owned());
        let part = self.store.read(args, |conn, (channel, message)| {
            Box::pin(posts::by_message(conn, channel, message))
        });
        let part: Result<_, StoreError> = part.await;
        // What is known by another name was sent again by whoever shows it.
        let Ok(Some(part)) = part else { return };
        loop {
            time::sleep(wait).await;
            let error = match self.ask(chat, &part).await {
                Ok(()) => return,
                Err(error) => error,
            };
            let SendError { reason, next, .. } = error;
            match next {
                Next::Retry { after } => {
                    wait = wait.saturating_mul(2).max(after.unwrap_or_default())
                }
                Next::GiveUp if reason == WAITS => wait = ASK_AGAIN,
                Next::GiveUp => {
                    return tracing::error!(
                        id = message,
                        reason,
                        "a request for permission was not asked again"
                    );
                }
            }
            tracing::warn!(
                id = message,
                reason,
                "a request for permission could not be asked again yet"
            );
        }
    }

    /// Asks again what a part of an answer asks, if that is open.
    async fn ask(&self, chat: &TwilioChat, part: &Part) -> Result<(), SendError> {
        let open = self.store.read(part.clone(), |conn, part| Box::pin(still_asked(conn, part)));
        let Some(Asking { part, slot, requests }) = open.await.map_err(away)? else {
            return Ok(());
        };
        let Some(post) = desk::shown(&requests, &slot, chat.limits()) else { return Ok(()) };
        self.note_asked(&part, None).await.map_err(away)?;
        let nonce = format!("{}:{slot}:again", part.subject.id);
        let posting = Posting { post: &post, nonce: &nonce, answers: None };
        let stands = chat.send(&part.subject.place, posting).await?;
        self.note_asked(&part, Some(stands.message)).await.map_err(away)
    }

    /// Notes by which message something is asked; none while it is on its way.
    async fn note_asked(&self, part: &Part, message: Option<String>) -> Result<(), StoreError> {
        let post = StoredPost { slot: part.slot.clone(), message, posted_at: Millis::now() };
        let args = (part.subject.clone(), post);
        let noted = self.store.write_repeatable(args, |conn, (subject, post)| {
            Box::pin(posts::note(conn, subject, post))
        });
        noted.await
    }
}

/// Returns a request with those of its turn, if its answer is waited for.
async fn still_asked(conn: &mut Conn, part: &Part) -> Result<Option<Asking>, StoreError> {
    let Some(slot) = Slot::parse(&part.slot) else { return Ok(None) };
    let Some(id) = desk::request_of(&part.slot) else { return Ok(None) };
    let Some(request) = open_request(conn, id).await? else { return Ok(None) };
    let requests = permissions::of_turn(conn, request.request.turn).await?;
    Ok(Some(Asking { part: part.clone(), slot, requests }))
}

async fn open_request(
    conn: &mut Conn,
    id: PermissionId,
) -> Result<Option<StoredRequest>, StoreError> {
    let found = permissions::find(conn, id).await?;
    let Some(request) = found.filter(|found| found.resolution.is_none()) else { return Ok(None) };
    let is_running = turns::is_running(conn, request.request.turn).await?;
    Ok(is_running.then_some(request))
}

/// Decides what follows for a request for permission that did not arrive.
async fn asked(
    conn: &mut Conn,
    id: PermissionId,
    meaning: Meaning,
    now: Millis,
) -> Result<Then, StoreError> {
    let Some(request) = open_request(conn, id).await? else { return Ok(Then::Nothing) };
    Ok(match meaning {
        Meaning::Lasting => Then::Lost,
        // He is called then, and it is sent soon after he writes.
        Meaning::Window => Then::AskAgain(ASK_AGAIN),
        Meaning::Passing | Meaning::File => {
            let open = now.0.saturating_sub(request.request.asked_at.0);
            let open = Duration::from_millis(u64::try_from(open).unwrap_or_default());
            Then::AskAgain(ASK_AGAIN.max(open))
        }
    })
}

/// Returns what follows if nothing has to be written for it.
async fn look(conn: &mut Conn, delivered: &Delivered) -> Result<Option<Then>, StoreError> {
    let channel = delivered.kind.channel();
    let part = posts::by_message(conn, channel, &delivered.message).await?;
    Ok(match part {
        None if delivered.has_failed() => Some(Then::Later),
        None => Some(Then::Nothing),
        Some(part) => delivered.is_old(&part).then_some(Then::Nothing),
    })
}

async fn write(conn: &mut Conn, delivered: &Delivered, now: Millis) -> Result<Then, StoreError> {
    let channel = delivered.kind.channel();
    let part = posts::by_message(conn, channel, &delivered.message).await?;
    let Some(part) = part.filter(|part| !delivered.is_old(part)) else { return Ok(Then::Nothing) };
    let code = delivered.error.unwrap_or_default();
    let trouble = delivered.has_failed().then(|| code::words(code));
    let then = match &trouble {
        None => Then::Nothing,
        Some(why) => failed(conn, delivered, &part, why, now).await?,
    };
    if then != Then::Later {
        let (message, status) = (&delivered.message, &delivered.status);
        posts::delivered(conn, channel, message, status, trouble.as_deref()).await?;
    }
    Ok(then)
}

async fn failed(
    conn: &mut Conn,
    delivered: &Delivered,
    part: &Part,
    why: &str,
    now: Millis,
) -> Result<Then, StoreError> {
    let subject = &part.subject;
    let contact = contacts::find(conn, &subject.channel, &subject.place).await?;
    let has_written = contact.is_some_and(|contact| part.posted_at < contact.heard_at);
    let told = code::meaning(delivered.error.unwrap_or_default());
    // Since he wrote it would arrive.
    let is_over = told == Meaning::Window && has_written;
    let meaning = if is_over { Meaning::Passing } else { told };
    // What was asked on the way has no message in the outbox.
    let request = desk::request_of(&part.slot);
    let standing = match request {
        Some(_) => None,
        None => outbox::standing(conn, subject).await?,
    };
    let then = match request {
        Some(id) => asked(conn, id, meaning, now).await?,
        None => decide(meaning, standing.as_ref()),
    };
    let reopened = match then {
        Then::Again => {
            let wait = code::pause(delivered.error.unwrap_or_default()).unwrap_or(AGAIN);
            Some(Reopened::Again(now.after(wait)))
        }
        Then::Wait => Some(Reopened::Failed(WAITS)),
        Then::Lost => Some(Reopened::Failed(why)),
        Then::Nothing | Then::Later | Then::AskAgain(_) => None,
    };
    if let (Some(Standing { id, state: State::Waiting | State::Sent, .. }), Some(reopened)) =
        (&standing, reopened)
        && !outbox::reopen(conn, *id, reopened, now).await?
    {
        // Somebody has begun to send it since.
        return Ok(Then::Later);
    }
    if meaning == Meaning::Window && then != Then::Later {
        contacts::silent(conn, &subject.channel, &subject.place).await?;
    }
    if then == Then::Lost {
        let entry = Entry {
            at: now,
            actor: "gateway".to_owned(),
            action: "reply.undelivered".to_owned(),
            subject: subject.id.clone(),
            detail: json!({ "to": place(&subject.channel, &subject.place), "reason": why })
                .to_string(),
        };
        audit::add(conn, &entry).await?;
    }
    Ok(then)
}

/// Decides what follows for a message of which a part did not arrive.
fn decide(meaning: Meaning, standing: Option<&Standing>) -> Then {
    let Some(Standing { state, attempt, .. }) = standing else {
        return if meaning == Meaning::Window { Then::Wait } else { Then::Lost };
    };
    match (meaning, state) {
        (_, State::Sending) => Then::Later,
        (Meaning::Lasting, _) => Then::Lost,
        // It goes with what waits already.
        (_, State::Failed(reason)) if reason == WAITS => Then::Wait,
        (_, State::Failed(_)) => Then::Lost,
        (Meaning::Window, State::Sent | State::Waiting) => Then::Wait,
        (Meaning::Passing | Meaning::File, State::Sent) if *attempt >= MOST => Then::Lost,
        (Meaning::Passing | Meaning::File, State::Sent | State::Waiting) => Then::Again,
    }
}

/// Returns how far a message has come by what is said of it.
fn rank(status: &str) -> u8 {
    match status {
        "accepted" | "queued" | "scheduled" => 1,
        "sending" => 2,
        "sent" => 3,
        "delivered" => 4,
        "read" => 5,
        "failed" | "undelivered" | "canceled" => 6,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::OutboxId;

    #[test]
    fn what_follows_depends_on_why_it_failed_and_on_who_is_at_it() {
        let then = |meaning, state: &State, attempt| {
            decide(meaning, Some(&Standing { id: OutboxId::new(), state: state.clone(), attempt }))
        };
        let (waits, lost) = (State::Failed(WAITS.to_owned()), State::Failed("no".to_owned()));
        for meaning in [Meaning::Passing, Meaning::File] {
            assert_eq!(then(meaning, &State::Sent, 1), Then::Again);
            assert_eq!(then(meaning, &State::Sent, MOST), Then::Lost);
            // It is sent anyway, and the part that is missing with it.
            assert_eq!(then(meaning, &State::Waiting, MOST), Then::Again);
            assert_eq!(then(meaning, &waits, 1), Then::Wait);
            assert_eq!(decide(meaning, None), Then::Lost);
        }
        assert_eq!(then(Meaning::Window, &State::Sent, MOST), Then::Wait);
        assert_eq!(then(Meaning::Window, &waits, 1), Then::Wait);
        assert_eq!(decide(Meaning::Window, None), Then::Wait);
        assert_eq!(then(Meaning::Lasting, &State::Sent, 1), Then::Lost);
        for meaning in [Meaning::Passing, Meaning::File, Meaning::Window, Meaning::Lasting] {
            assert_eq!(then(meaning, &State::Sending, 1), Then::Later);
            assert_eq!(then(meaning, &lost, 1), Then::Lost);
        }
    }

    #[test]
    fn what_is_told_goes_forward_and_ends_with_a_failure() {
        let way = ["?", "queued", "sending", "sent", "delivered", "read", "undelivered"];
        assert!(way.map(rank).is_sorted_by(|before, after| before < after));
    }
}
