//! The day within which WhatsApp lets somebody be answered, and the template by which
//! he is called after it.

use std::{
    collections::HashSet,
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use super::{api::Outgoing, chat::TwilioChat, kind::Kind};
use crate::{
    channel::{Next, SendError, chat::Slot},
    clock::Millis,
    store::{
        StoreError, contacts,
        posts::{self, StoredPost, Subject},
    },
};

/// For how long somebody on WhatsApp can be answered.
pub(crate) const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
/// Why something waits until somebody writes. It is sent then, by this very reason.
pub(crate) const WAITS: &str = "the person has not written for a day, and WhatsApp takes nothing but templates until he does; \
     it is sent when he writes";

/// For how many people something can wait until the operator is told of some again.
const MANY: usize = 1000;

/// What a message by which somebody is called is noted as, before his number.
pub(super) const CALL: &str = "call:";

/// Whether it is by such a message that somebody was to be called.
pub(super) fn is_call(subject: &Subject) -> bool {
    subject.id.starts_with(CALL)
}

impl TwilioChat {
    /// Returns an error if WhatsApp would take nothing for somebody now. He is called
    /// by a template then, once.
    pub(super) async fn check_window(&self, place: &str) -> Result<(), SendError> {
        if self.kind != Kind::WhatsApp {
            return Ok(());
        }
        if self.is_window_open(place).await? {
            self.waiting().remove(place);
            return Ok(());
        }
        self.call(place).await?;
        // He may have written meanwhile.
        if self.is_window_open(place).await? {
            return Ok(());
        }
        Err(waits())
    }

    /// Notes that nothing reaches somebody until he writes, for Twilio said so of what was
    /// begun to be sent at a time, and calls him; returns why something waits.
    pub(super) async fn close_window(
        &self,
        place: &str,
        begun: Millis,
    ) -> Result<SendError, SendError> {
        let args = (self.kind.channel(), place.to_owned(), begun);
        let noted = self.store.write_repeatable(args, |conn, (channel, place, begun)| {
            Box::pin(contacts::silent(conn, channel, place, *begun))
        });
        noted.await.map_err(SendError::away)?;
        // What he wrote meanwhile opened it.
        if self.is_window_open(place).await? {
            return Ok(SendError::soon("the person wrote while it was sent"));
        }
        self.call(place).await?;
        Ok(waits())
    }

    /// Whether somebody has written within a day.
    async fn is_window_open(&self, place: &str) -> Result<bool, SendError> {
        let args = (self.kind.channel(), place.to_owned());
        let contact = self
            .store
            .read(args, |conn, (channel, place)| Box::pin(contacts::find(conn, channel, place)));
        let contact = contact.await.map_err(SendError::away)?;
        let until = contact.map(|contact| contact.heard_at.after(WINDOW));
        Ok(until.is_some_and(|until| Millis::now() < until))
    }

    fn waiting(&self) -> MutexGuard<'_, HashSet<String>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that something waits for somebody; returns whether that is new.
    fn is_new_waiting(&self, place: &str) -> bool {
        let mut waiting = self.waiting();
        if waiting.len() >= MANY {
            waiting.clear();
        }
        waiting.insert(place.to_owned())
    }

    /// Tells somebody by a template that something waits for him, once until he
    /// writes.
    pub(crate) async fn call(&self, place: &str) -> Result<(), SendError> {
        let Some(template) = self.policy.borrow().twilio.window_template.clone() else {
            // What is asked is tried again and again until he writes.
            if self.is_new_waiting(place) {
                tracing::warn!(
                    "a message by WhatsApp waits until its reader writes: he has not for a day. \
                     twilio.window_template names a template that would call him"
                );
            }
            return Ok(());
        };
        let args = (self.kind.channel(), place.to_owned(), Millis::now());
        let is_new = self.store.write(args, |conn, (channel, place, now)| {
            Box::pin(contacts::called(conn, channel, place, *now))
        });
        if !is_new.await.map_err(SendError::away)? {
            return Ok(());
        }
        let error = match self.send_call(place, template).await {
            Ok(message) => return self.note_call(place, message).await.map_err(SendError::away),
            Err(error) => error,
        };
        if error.is_unsure {
            tracing::warn!(why = error.reason, "the template may have been sent");
            return Ok(());
        }
        let args = (self.kind.channel(), place.to_owned());
        let noted = self.store.write_repeatable(args, |conn, (channel, place)| {
            Box::pin(contacts::not_called(conn, channel, place))
        });
        noted.await.map_err(SendError::away)?;
        match error.next {
            Next::Retry { .. } => Err(error),
            Next::Wait | Next::GiveUp => {
                tracing::error!(
                    why = error.reason,
                    "the template was not sent; check twilio.window_template"
                );
                Ok(())
            }
        }
    }

    /// Calls somebody once more whom an earlier call did not reach, unless he has written or
    /// was called since a time.
    pub(super) async fn call_again(&self, place: &str, since: Millis) -> Result<(), SendError> {
        let Some(template) = self.policy.borrow().twilio.window_template.clone() else {
            return Ok(());
        };
        let args = (self.kind.channel(), place.to_owned(), since, Millis::now());
        let waits = self.store.write(args, |conn, (channel, place, since, now)| {
            Box::pin(contacts::called_again(conn, channel, place, *since, *now))
        });
        if waits.await.map_err(SendError::away)? {
            let message = self.send_call(place, template).await?;
            self.note_call(place, message).await.map_err(SendError::away)?;
        }
        Ok(())
    }

    /// Sends the template by which somebody is called; returns what Twilio calls it.
    async fn send_call(&self, place: &str, template: String) -> Result<String, SendError> {
        let template = Some((template, "{}".to_owned()));
        let message = self.api.send(&Outgoing { template, ..self.to(place) }).await?;
        tracing::info!("somebody on WhatsApp was called by the template");
        Ok(message)
    }

    /// Notes by which message somebody was called, so that it is heard of if that does
    /// not arrive.
    async fn note_call(&self, place: &str, message: String) -> Result<(), StoreError> {
        let (channel, place) = (self.kind.channel().to_owned(), place.to_owned());
        let subject = Subject { id: format!("{CALL}{place}"), channel, place };
        let slot = Slot::Note.to_string();
        let post = StoredPost { slot, message: Some(message), posted_at: Millis::now() };
        let noted = self.store.write_repeatable((subject, post), |conn, (subject, post)| {
            Box::pin(posts::note(conn, subject, post))
        });
        noted.await
    }
}

/// It is sent when the person writes.
fn waits() -> SendError {
    SendError::certain(Next::Wait, WAITS)
}
