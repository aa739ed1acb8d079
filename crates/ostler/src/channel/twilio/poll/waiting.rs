//! What waits until somebody on WhatsApp writes: it is let go when he has, and he is
//! called again if the template that was to call him got lost.

use std::time::Duration;

use tokio::time::Instant;

use super::{Poll, Seen};
use crate::{
    channel::twilio::{
        kind::Kind,
        window::{CALL, WAITS},
    },
    clock::Millis,
    store::{StoreError, contacts, outbox},
};

/// How often it is looked whether something waits for somebody who has written, how
/// long ago that may be, and for how many at most.
const RELEASE: Duration = Duration::from_secs(60);
const LATELY: Duration = Duration::from_secs(300);
const MANY: u32 = 200;
/// How long nobody is called again whom a template did not reach, and how many are
/// called at a time.
const UNHEARD: Duration = Duration::from_secs(3600);
const CALLS: u32 = 20;

impl Poll {
    /// Lets leave what waits for somebody who has written: he may have done that while it
    /// was found that he had not for a day, and before that was noted.
    pub(super) async fn release(&self, seen: &mut Seen) -> Result<(), StoreError> {
        if seen.released.is_some_and(|at| at.elapsed() < RELEASE) {
            return Ok(());
        }
        let since = Millis::now().before(LATELY);
        let store = &self.delivery.store;
        let lately = store.read(since, |conn, since| {
            Box::pin(contacts::heard_since(conn, Kind::WhatsApp.channel(), *since, MANY))
        });
        for place in lately.await? {
            let released = store.write_repeatable(place, |conn, place| {
                Box::pin(outbox::release(conn, Kind::WhatsApp.channel(), place, WAITS))
            });
            released.await?;
        }
        self.call_again().await?;
        seen.released = Some(Instant::now());
        Ok(())
    }

    /// Calls those once more whom no template reached, if something waits for them. The
    /// others have their turn the next time, also if Twilio has no time now.
    async fn call_again(&self) -> Result<(), StoreError> {
        let Some(chat) = self.delivery.chat(Kind::WhatsApp) else { return Ok(()) };
        let before = Millis::now().before(UNHEARD);
        let missed = self.delivery.store.read(before, |conn, before| {
            let channel = Kind::WhatsApp.channel();
            Box::pin(contacts::missed_calls(conn, channel, *before, (CALL, WAITS), CALLS))
        });
        for place in missed.await? {
            if let Err(error) = chat.call_again(&place, before).await {
                tracing::warn!(%error, "the template could not be sent");
                break;
            }
        }
        Ok(())
    }
}
