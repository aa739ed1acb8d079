//! Which of several gateways on one store speaks in a chat: the one that has the
//! duty, by a lease that it renews. The others wait to take over.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Millis,
    store::{Store, StoreError, Topic, duties},
};

/// After how much silence of a gateway another speaks.
const LEASE: Duration = Duration::from_secs(30);
/// How often that is renewed or looked at.
const RENEW: Duration = Duration::from_secs(10);

/// The duty to speak in a chat, for one gateway.
#[derive(Clone, Debug)]
pub(crate) struct Duty {
    pub(crate) store: Store,
    /// What the store calls it.
    pub(crate) name: &'static str,
    /// The gateway.
    pub(crate) owner: String,
    /// Whether it has the duty, for everybody who has to know.
    pub(crate) is_own: watch::Sender<bool>,
}

impl Duty {
    /// Waits until this gateway has it; returns whether it does, for it may be stopped
    /// before.
    pub(crate) async fn obtain(&self, stop: &CancellationToken) -> bool {
        while !stop.is_cancelled() {
            if matches!(self.take().await, Ok(true)) {
                self.is_own.send_replace(true);
                self.open_outbox().await;
                return true;
            }
            self.is_own.send_replace(false);
            stop.run_until_cancelled(time::sleep(RENEW)).await;
        }
        false
    }

    /// Renews it until it is lost.
    pub(crate) async fn keep(&self) {
        // It was taken a moment ago.
        let mut until = Instant::now() + LEASE - RENEW;
        loop {
            time::sleep_until(until.min(Instant::now() + RENEW)).await;
            // The lease counts from before it is written.
            let asked = Instant::now();
            // The store may be away for as long as nobody else can have the duty.
            match time::timeout_at(until, self.take()).await {
                Ok(Ok(true)) => until = asked + LEASE,
                Ok(Err(_)) if Instant::now() < until => {}
                Ok(Ok(false) | Err(_)) | Err(_) => {
                    self.is_own.send_replace(false);
                    return;
                }
            }
        }
    }

    /// Lets another gateway speak, without waiting for the end of the lease.
    pub(crate) async fn give_back(self) {
        let Self { store, name, owner, .. } = self;
        let given = store.write_repeatable((name, owner), |conn, (name, owner)| {
            Box::pin(duties::give_back(conn, name, owner))
        });
        let given: Result<(), StoreError> = given.await;
        if let Err(error) = given {
            tracing::debug!(%error, "other gateways wait until the lease is over");
        }
    }

    /// Takes it or keeps it; returns whether this gateway has it.
    async fn take(&self) -> Result<bool, StoreError> {
        let args = (self.name, self.owner.clone(), Millis::now());
        let taken = self.store.write_repeatable(args, |conn, (name, owner, now)| {
            Box::pin(duties::take(conn, name, owner, *now, LEASE))
        });
        taken.await
    }

    /// Lets what waited for this gateway leave.
    async fn open_outbox(&self) {
        let woken = self.store.write((), |conn, ()| {
            conn.wake(Topic::Outbox);
            Box::pin(async { Ok::<_, StoreError>(()) })
        });
        if let Err(error) = woken.await {
            tracing::debug!(%error, "what waits for the chat is found later");
        }
    }
}
