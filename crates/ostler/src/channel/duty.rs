//! Which of several gateways on one store speaks in a chat: the one that has the
//! duty, by a lease that it renews. The others wait to take over.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use crate::{
    background::Background,
    clock::Millis,
    store::{Store, StoreError, Topic, duties},
};

/// After how much silence of a gateway another speaks.
const LEASE: Duration = Duration::from_secs(30);
/// How often that is renewed or looked at.
const RENEW: Duration = Duration::from_secs(10);
/// The shortest wait before that is tried again.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a renewal that is under way may take to end.
const ENDING: Duration = Duration::from_secs(1);

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

/// When another gateway may take the duty, if this one does not renew it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until(Instant);

impl Until {
    pub(crate) fn is_over(self) -> bool {
        self.0 <= Instant::now()
    }
}

/// A duty that is kept until the gateway has ended.
#[derive(Debug)]
pub(crate) struct Held {
    duty: Duty,
    work: Background,
}

impl Held {
    /// Lets another gateway speak.
    pub(crate) async fn end(self) {
        self.work.stop(ENDING).await;
        self.duty.give_back().await;
    }
}

impl Duty {
    /// Waits until this gateway has it; returns until when it does, or nothing if it is
    /// stopped before.
    pub(crate) async fn obtain(&self, stop: &CancellationToken) -> Option<Until> {
        while !stop.is_cancelled() {
            // The lease counts from before it is written.
            let asked = Instant::now();
            if matches!(self.take().await, Ok(true)) {
                self.is_own.send_replace(true);
                self.wake().await;
                return Some(Until(asked + LEASE));
            }
            self.is_own.send_replace(false);
            stop.run_until_cancelled(time::sleep(RENEW)).await;
        }
        None
    }

    /// Renews it until it is lost.
    pub(crate) async fn keep(&self, Until(mut until): Until) {
        loop {
            let now = Instant::now();
            let early = until.checked_sub(RENEW).unwrap_or(now);
            time::sleep_until(early.min(now + RENEW).max(now + PAUSE)).await;
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

    /// Goes on renewing it, if this gateway has it, until it is lost.
    pub(crate) async fn keep_on(&self) {
        if *self.is_own.borrow() {
            // Nobody knows how old the lease is by now.
            let asked = Instant::now();
            match self.take().await {
                Ok(true) => self.keep(Until(asked + LEASE)).await,
                Ok(false) | Err(_) => drop(self.is_own.send_replace(false)),
            }
        }
    }

    /// Keeps it while what is left to say is said.
    pub(crate) fn hold(self) -> Held {
        let duty = self.clone();
        let work = Background::start(|stop| async move {
            stop.run_until_cancelled(duty.keep_on()).await;
        });
        Held { duty: self, work }
    }

    /// Lets another gateway speak, without waiting for the end of the lease.
    async fn give_back(self) {
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

    /// Lets what waited for this gateway leave, and what runs be shown by it.
    async fn wake(&self) {
        let woken = self.store.write((), |conn, ()| {
            conn.wake(Topic::Outbox);
            conn.wake(Topic::Events);
            Box::pin(async { Ok::<_, StoreError>(()) })
        });
        if let Err(error) = woken.await {
            tracing::debug!(%error, "what waits for the chat is found later");
        }
    }
}
