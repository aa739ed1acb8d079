//! Sends what is in the outbox. Decides when something is sent and when it is
//! tried again; how it is sent is up to the channels.
//!
//! At least once: what was sent and could not be noted is sent again after a
//! crash, and says so. For one address things leave in their order, one after
//! the other; up to sixteen addresses are served at once. At most half of them are
//! webhooks that hear of commands, so that receivers which do not answer leave room
//! for replies, for which somebody waits.

mod outcome;
mod pace;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    task::{self, JoinSet},
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

pub(crate) use self::pace::Pace;
use crate::{
    background::Background,
    channel::Channels,
    clock::Millis,
    id::OutboxId,
    store::{
        Store, StoreError, Topic,
        outbox::{self, Among, Sending},
        webhooks::NOTICE,
    },
};

/// How many messages are sent at once.
const AT_ONCE: usize = 16;
/// How many of them can be calls of webhooks.
const NOTICES_AT_ONCE: usize = 8;

/// A delivery that runs.
#[derive(Debug)]
pub(crate) struct Delivery(Background);

impl Delivery {
    /// Starts to send, under a name that no other gateway at this store has.
    pub(crate) fn start(store: Store, channels: Channels, worker: &str, pace: Pace) -> Self {
        let (worker, is_store_away) = (worker.to_owned(), AtomicBool::new(false));
        Self(Background::start(|stop| {
            // What is under way is dropped with the set that it is in.
            work(Arc::new(Desk { store, channels, worker, pace, stop, is_store_away }))
        }))
    }

    /// Claims nothing more, and returns when all that was under way has ended. What
    /// has not after this long is left; the next delivery finds it, and is unsure of it.
    pub(crate) async fn stop(self, limit: Duration) {
        if !self.0.stop(limit).await {
            tracing::warn!("replies that were being sent were left; they will be sent again");
        }
    }
}

/// What all that is under way shares.
struct Desk {
    store: Store,
    channels: Channels,
    worker: String,
    pace: Pace,
    stop: CancellationToken,
    /// Whether it was told that the store cannot be used.
    is_store_away: AtomicBool,
}

/// What was claimed, and when there is more.
struct Claimed {
    sendings: Vec<Sending>,
    due: Option<Millis>,
}

/// Sends until it is told to stop, then waits for what is under way.
async fn work(desk: Arc<Desk>) {
    // Before the first look, so that nothing is missed between the two.
    let mut wakeups = desk.store.wakeups(Topic::Outbox);
    let mut under_way = UnderWay::default();
    let mut recovered = false;
    let mut reclaim_at = Instant::now() + desk.pace.lease / 4;
    let mut n_failures = 0;
    while !desk.stop.is_cancelled() {
        let looked = async {
            if !recovered {
                desk.recover().await?;
                recovered = true;
            } else if reclaim_at <= Instant::now() {
                desk.reclaim(under_way.tickets()).await?;
                reclaim_at = Instant::now() + desk.pace.lease / 4;
            }
            desk.claim(under_way.room()).await
        };
        let due = match looked.await {
            Ok(Claimed { sendings, due }) => {
                desk.store_answers();
                n_failures = 0;
                for sending in sendings {
                    under_way.add(&desk, sending);
                }
                due
            }
            Err(StoreError::Closed) => break,
            Err(error) => {
                desk.store_failed(&error);
                let pause = desk.pace.store_pause(n_failures);
                n_failures += 1;
                under_way.wait(pause, &desk.stop).await;
                continue;
            }
        };
        let is_full = under_way.len() >= AT_ONCE;
        let until_due = due.map(|due| until(due, Millis::now()));
        // All of these are cancel-safe: whatever is missed is found by the next look.
        tokio::select! {
            () = desk.stop.cancelled() => {}
            () = under_way.one() => {}
            _ = wakeups.next(), if !is_full => {}
            () = time::sleep(until_due.unwrap_or_default()), if until_due.is_some() && !is_full => {}
            // What takes long is kept, also while there is no room for more.
            () = time::sleep_until(reclaim_at), if under_way.len() > 0 => {}
        }
    }
    while under_way.len() > 0 {
        under_way.one().await;
    }
}

/// Returns how long it is from now until a time.
fn until(due: Millis, now: Millis) -> Duration {
    Duration::from_millis(u64::try_from(due.0.saturating_sub(now.0)).unwrap_or(0))
}

impl Desk {
    /// Takes back what a gateway that was killed had begun.
    async fn recover(&self) -> Result<(), StoreError> {
        let now = Millis::now();
        let recovered = self.store.write(now, |conn, now| Box::pin(outbox::recover(conn, *now)));
        let n_back = recovered.await?;
        if n_back > 0 {
            tracing::info!(
                replies = n_back,
                "some replies may have been sent; they are sent again"
            );
        }
        Ok(())
    }

    /// Takes back what others did not finish in time. What is under way here is
    /// not: it may only have to wait until the store can be told that it was sent.
    async fn reclaim(&self, own: Vec<(OutboxId, i64)>) -> Result<(), StoreError> {
        let now = Millis::now();
        let args = (own, now, now.after(self.pace.lease));
        let n_back = self.store.write(args, |conn, (own, now, lease_until)| {
            Box::pin(async move {
                for (id, attempt) in own {
                    outbox::renew(conn, *id, *attempt, *lease_until).await?;
                }
                outbox::reclaim(conn, *now).await
            })
        });
        let n_back: u64 = n_back.await?;
        if n_back > 0 {
            tracing::warn!(replies = n_back, "a gateway did not finish some replies in time");
        }
        Ok(())
    }

    /// Claims what is due, as far as there is room.
    async fn claim(&self, room: Room) -> Result<Claimed, StoreError> {
        let closed = self.channels.closed();
        let args = (self.worker.clone(), Millis::now(), self.pace.lease, room, closed);
        let claimed = self.store.write(args, |conn, (worker, now, lease, room, closed)| {
            Box::pin(async move {
                let mut sendings = Vec::new();
                let mut room = *room;
                while let Some(among) = room.among() {
                    match outbox::claim(conn, worker, among, closed, *now, *lease).await? {
                        Some(sending) => {
                            room.take(&sending);
                            sendings.push(sending);
                        }
                        None => break,
                    }
                }
                let due = outbox::next_due(conn, *now).await?;
                Ok(Claimed { sendings, due })
            })
        });
        claimed.await
    }

    /// Tells that the store cannot be used, once until it can.
    fn store_failed(&self, error: &StoreError) {
        if !self.is_store_away.swap(true, Ordering::Relaxed) {
            let error = error.chain();
            tracing::warn!(error, "the store cannot be used; replies wait for it");
        }
    }

    fn store_answers(&self) {
        if self.is_store_away.swap(false, Ordering::Relaxed) {
            tracing::info!("the store can be used again; replies go on");
        }
    }
}

/// How many more can be sent.
#[derive(Clone, Copy, Debug)]
struct Room {
    n_free: usize,
    /// Of these, for calls of webhooks.
    n_for_notices: usize,
}

impl Room {
    /// Returns what there is room for, if there is any.
    fn among(self) -> Option<Among> {
        match self {
            Self { n_free: 0, .. } => None,
            Self { n_for_notices: 0, .. } => Some(Among::Replies),
            Self { .. } => Some(Among::All),
        }
    }

    fn take(&mut self, sending: &Sending) {
        self.n_free = self.n_free.saturating_sub(1);
        if is_notice(sending) {
            self.n_for_notices = self.n_for_notices.saturating_sub(1);
        }
    }
}

fn is_notice(sending: &Sending) -> bool {
    sending.message.channel == NOTICE
}

/// What is being sent, or was and is not noted yet.
#[derive(Default)]
struct UnderWay {
    tasks: JoinSet<()>,
    tickets: HashMap<task::Id, Ticket>,
}

#[derive(Clone, Copy, Debug)]
struct Ticket {
    id: OutboxId,
    attempt: i64,
    is_notice: bool,
}

impl UnderWay {
    fn len(&self) -> usize {
        self.tickets.len()
    }

    fn tickets(&self) -> Vec<(OutboxId, i64)> {
        self.tickets.values().map(|ticket| (ticket.id, ticket.attempt)).collect()
    }

    fn room(&self) -> Room {
        let n_notices = self.tickets.values().filter(|ticket| ticket.is_notice).count();
        Room {
            n_free: AT_ONCE.saturating_sub(self.len()),
            n_for_notices: NOTICES_AT_ONCE.saturating_sub(n_notices),
        }
    }

    fn add(&mut self, desk: &Arc<Desk>, sending: Sending) {
        let (id, attempt, is_notice) = (sending.id, sending.attempt, is_notice(&sending));
        let task = self.tasks.spawn(outcome::deliver(Arc::clone(desk), sending));
        self.tickets.insert(task.id(), Ticket { id, attempt, is_notice });
    }

    /// Waits until one of them has ended; for ever if there is none. Cancel-safe.
    async fn one(&mut self) {
        let id = match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => id,
            Some(Err(error)) => {
                if error.is_panic() {
                    tracing::error!(
                        "sending a reply failed in an unforeseen way; it is tried again"
                    );
                }
                error.id()
            }
            None => return std::future::pending().await,
        };
        self.tickets.remove(&id);
    }

    /// Waits this long, or for the end.
    async fn wait(&mut self, pause: Duration, stop: &CancellationToken) {
        let pause = time::sleep(pause);
        tokio::pin!(pause);
        loop {
            // All of these are cancel-safe.
            tokio::select! {
                () = &mut pause => return,
                () = stop.cancelled() => return,
                () = self.one() => {}
            }
        }
    }
}
