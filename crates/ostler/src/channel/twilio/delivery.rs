//! What becomes of messages after Twilio took them: it is noted, and what failed is
//! sent again where that can help, or told to the operator.

use std::time::Duration;

use serde_json::json;
use tokio::time;

use super::{
    api::Message,
    chat::TwilioChat,
    code::{self, Meaning},
    desk,
    heard::{Form, Malformed},
    kind::Kind,
    window::{WAITS, is_call},
};
use crate::{
    channel::{is_sid, place},
    clock::Millis,
    id::PermissionId,
    store::{
        Conn, Store, StoreError,
        audit::{self, Entry},
        contacts,
        outbox::{self, Reopened, Standing, State},
        permissions,
        posts::{self, Part},
        turns,
    },
};

/// The wait before something is sent again.
const AGAIN: Duration = Duration::from_secs(30);
/// How often a message that had left is sent again.
const MOST: i64 = 4;
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
        has_failed(&self.status)
    }
}

/// Whether a message does not arrive any more, by what is said of it.
pub(super) fn has_failed(status: &str) -> bool {
    matches!(status, "failed" | "undelivered" | "canceled")
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Nothing,
    /// It cannot be said yet: whoever sends it is still at it.
    Later,
    /// It is sent again after a while.
    Again,
    /// It is a request for permission, and asked again while it is open.
    AskAgain,
    /// It is sent when the person writes.
    Wait,
    /// It was the template that was to call the person. He is called again after a while,
    /// if a message still waits for him.
    CallAgain,
    /// It was that template, and WhatsApp does not take it.
    NotCalled,
    Lost,
}

/// Whoever follows messages.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) store: Store,
    pub(crate) chats: Vec<TwilioChat>,
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
            // By whoever shows the turn.
            Then::AskAgain => {
                if code::meaning(code) == Meaning::Template
                    && let Some(chat) = self.chat(delivered.kind)
                {
                    chat.leave_template_out();
                    tracing::error!(
                        why,
                        "requests are asked without twilio.approval_template until it is \
                         changed, or the gateway starts again"
                    );
                }
                tracing::warn!(id = %message, why, "a request for permission did not arrive; it is asked again while it is open");
            }
            Then::Wait => {
                tracing::warn!(id = %message, why, "a message waits until its reader writes");
                if let Some(chat) = self.chat(delivered.kind)
                    && let Err(error) = chat.call(&delivered.place).await
                {
                    tracing::warn!(%error, "the template could not be sent");
                }
            }
            Then::CallAgain => {
                tracing::warn!(id = %message, why, "the template did not arrive; it is sent again while a message waits");
            }
            Then::NotCalled => {
                tracing::error!(
                    id = %message,
                    why,
                    "the template did not reach anybody; check that WhatsApp has approved \
                     twilio.window_template"
                )
            }
            Then::Lost => {
                tracing::error!(id = %message, why, "a message did not arrive, and is not sent again")
            }
        }
        Ok(then)
    }

    /// Returns the chat of a sort of conversations.
    pub(super) fn chat(&self, kind: Kind) -> Option<&TwilioChat> {
        self.chats.iter().find(|chat| chat.kind() == kind)
    }
}

/// Whether an agent waits for the answer to a request.
async fn is_open(conn: &mut Conn, id: PermissionId) -> Result<bool, StoreError> {
    let found = permissions::find(conn, id).await?;
    let Some(request) = found.filter(|found| found.resolution.is_none()) else { return Ok(false) };
    turns::is_running(conn, request.request.turn).await
}

/// Decides what follows for a request for permission that did not arrive.
async fn asked(conn: &mut Conn, id: PermissionId, meaning: Meaning) -> Result<Then, StoreError> {
    if !is_open(conn, id).await? {
        return Ok(Then::Nothing);
    }
    Ok(match meaning {
        Meaning::Lasting => Then::Lost,
        // He is called then, and it is sent soon after he writes.
        Meaning::Window | Meaning::Passing | Meaning::File | Meaning::Template => Then::AskAgain,
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
        let stays_away = matches!(then, Then::Lost | Then::NotCalled);
        // The parts of an answer are another try's that the operator may want.
        let is_apart = desk::request_of(&part.slot).is_some() || is_call(&part.subject);
        let status = if stays_away && is_apart { posts::LOST } else { &delivered.status };
        posts::delivered(conn, channel, &delivered.message, status, trouble.as_deref()).await?;
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
        Some(id) => asked(conn, id, meaning).await?,
        None if is_call(subject) => called(meaning),
        None => decide(meaning, standing.as_ref()),
    };
    let reopened = match then {
        Then::Again => {
            let wait = code::pause(delivered.error.unwrap_or_default()).unwrap_or(AGAIN);
            Some(Reopened::Again(now.after(wait)))
        }
        Then::Wait => Some(Reopened::Failed(WAITS)),
        Then::Lost => Some(Reopened::Failed(why)),
        Then::Nothing | Then::Later | Then::AskAgain | Then::CallAgain | Then::NotCalled => None,
    };
    if let (Some(Standing { id, state: State::Waiting | State::Sent, .. }), Some(reopened)) =
        (&standing, reopened)
        && !outbox::reopen(conn, *id, reopened, now).await?
    {
        // Somebody has begun to send it since.
        return Ok(Then::Later);
    }
    if meaning == Meaning::Window && then != Then::Later {
        contacts::silent(conn, &subject.channel, &subject.place, part.posted_at).await?;
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

/// Decides what follows for a template that was to call somebody, and did not arrive.
fn called(meaning: Meaning) -> Then {
    match meaning {
        Meaning::Window | Meaning::Template => Then::NotCalled,
        Meaning::Passing | Meaning::File => Then::CallAgain,
        Meaning::Lasting => Then::Lost,
    }
}

/// Decides what follows for a message of which a part did not arrive.
fn decide(meaning: Meaning, standing: Option<&Standing>) -> Then {
    let Some(Standing { state, n_reopened, .. }) = standing else {
        return if meaning == Meaning::Window { Then::Wait } else { Then::Lost };
    };
    match (meaning, state) {
        (_, State::Sending) => Then::Later,
        (Meaning::Lasting | Meaning::Template, _) => Then::Lost,
        // It goes with what waits already.
        (_, State::Failed(reason)) if reason == WAITS => Then::Wait,
        (_, State::Failed(_)) => Then::Lost,
        (Meaning::Window, State::Sent | State::Waiting) => Then::Wait,
        (Meaning::Passing | Meaning::File, State::Sent) if *n_reopened >= MOST => Then::Lost,
        (Meaning::Passing | Meaning::File, State::Sent | State::Waiting) => Then::Again,
    }
}

/// Returns how far a message has come by what is said of it.
fn rank(status: &str) -> u8 {
    match status {
        "accepted" | "queued" | "scheduled" => 1,
        "sending" => 2,
        "sent" => 3,
        // Each is the end: what arrived has not failed, whatever is told of it later.
        "delivered" | "failed" | "undelivered" | "canceled" | posts::LOST => 4,
        "read" => 5,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::OutboxId;

    #[test]
    fn what_follows_depends_on_why_it_failed_and_on_who_is_at_it() {
        let then = |meaning, state: &State, n_reopened| {
            let (id, state) = (OutboxId::new(), state.clone());
            decide(meaning, Some(&Standing { id, state, n_reopened }))
        };
        let (waits, lost) = (State::Failed(WAITS.to_owned()), State::Failed("no".to_owned()));
        for meaning in [Meaning::Passing, Meaning::File] {
            assert_eq!(then(meaning, &State::Sent, MOST - 1), Then::Again);
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
    fn what_is_told_goes_forward_and_a_failure_is_as_far_as_a_delivery() {
        let way = ["?", "queued", "sending", "sent", "delivered", "read"];
        assert!(way.map(rank).is_sorted_by(|before, after| before < after));
        for failure in ["failed", "undelivered", "canceled", posts::LOST] {
            assert_eq!(rank(failure), rank("delivered"));
        }
    }
}
