//! Telling those who wait for work that there may be some: within this process
//! at once, and on PostgreSQL also the other gateways.
//!
//! A wake-up is a hint. It is given after the commit, may come without reason,
//! and may get lost on its way to another gateway; so whoever waits also looks
//! by himself from time to time. Nothing is ever *only* in a wake-up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use sqlx::{PgPool, postgres::PgListener};
use tokio::{
    sync::{Notify, watch},
    time,
};
use tokio_util::sync::CancellationToken;

/// The PostgreSQL channel.
const CHANNEL: &str = "ostler";
/// How long to wait after the connection for notifications could not be had.
const PAUSE: Duration = Duration::from_secs(1);

/// What may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// A job may be ready.
    Jobs = 1,
    /// Something is wanted of a running job: its end, or it was given an
    /// answer to what it asked.
    Wishes = 2,
    /// There are new events.
    Events = 4,
    /// A message may be ready to be sent.
    Outbox = 8,
    /// A schedule was added, changed or removed.
    Schedules = 16,
}

const TOPICS: [Topic; 5] =
    [Topic::Jobs, Topic::Wishes, Topic::Events, Topic::Outbox, Topic::Schedules];

/// A set of topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Topics(u8);

impl Topics {
    pub(super) const ALL: Self = Self(31);

    pub(super) fn add(&mut self, topic: Topic) {
        self.0 |= topic as u8;
    }

    fn has(self, topic: Topic) -> bool {
        self.0 & topic as u8 != 0
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Where wake-ups come together. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Hub {
    bells: Arc<[watch::Sender<()>; 5]>,
    abroad: Option<Arc<Abroad>>,
}

/// What other gateways are yet to be told.
#[derive(Debug)]
pub(super) struct Abroad {
    /// Marks our own notifications.
    name: String,
    pending: AtomicU8,
    wake: Notify,
}

impl Hub {
    pub(super) fn new() -> Self {
        Self { bells: Arc::new(TOPICS.map(|_| watch::Sender::new(()))), abroad: None }
    }

    /// Makes one that also tells other gateways.
    pub(super) fn with_others() -> (Self, Arc<Abroad>) {
        let name = uuid::Uuid::now_v7().simple().to_string();
        let abroad = Arc::new(Abroad { name, pending: AtomicU8::new(0), wake: Notify::new() });
        (Self { abroad: Some(Arc::clone(&abroad)), ..Self::new() }, abroad)
    }

    /// Wakes whoever waits for one of these, here and elsewhere.
    pub(super) fn wake(&self, topics: Topics) {
        if topics.is_empty() {
            return;
        }
        self.wake_here(topics);
        if let Some(abroad) = &self.abroad {
            abroad.pending.fetch_or(topics.0, Ordering::AcqRel);
            abroad.wake.notify_one();
        }
    }

    fn wake_here(&self, topics: Topics) {
        for (topic, bell) in TOPICS.iter().zip(self.bells.iter()) {
            if topics.has(*topic) {
                bell.send_modify(|()| {});
            }
        }
    }

    pub(super) fn subscribe(&self, topic: Topic, poll: Duration) -> Wakeups {
        let mut bells = TOPICS.iter().zip(self.bells.iter());
        // Every topic is in the list.
        let bell = bells.find(|(named, _)| **named == topic).map(|(_, bell)| bell.subscribe());
        Wakeups { bell, poll }
    }
}

/// Wake-ups of one topic. Subscribe, then look, then wait: what changes after
/// the look ends the wait.
#[derive(Debug)]
pub(crate) struct Wakeups {
    bell: Option<watch::Receiver<()>>,
    poll: Duration,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Something changed since the last wait.
    Told,
    /// Nothing was heard for as long as one may trust silence.
    Polled,
}

impl Wakeups {
    /// Waits until there may be something new. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Woken {
        let told = async {
            match &mut self.bell {
                Some(bell) => bell.changed().await.is_ok(),
                None => false,
            }
        };
        match time::timeout(self.poll, told).await {
            Ok(true) => Woken::Told,
            // Nobody rings any more: the store is closed.
            Ok(false) => {
                time::sleep(self.poll).await;
                Woken::Polled
            }
            Err(_) => Woken::Polled,
        }
    }
}

/// Tells other gateways, several changes at once. Notifications are no part of
/// the transactions that they tell of: PostgreSQL makes the commits of such
/// transactions wait for each other.
pub(super) async fn tell(pool: PgPool, abroad: Arc<Abroad>, stop: CancellationToken) {
    let mut is_closing = false;
    while !is_closing {
        tokio::select! {
            // What the last writes changed is still told.
            () = stop.cancelled() => is_closing = true,
            () = abroad.wake.notified() => {}
        }
        let topics = abroad.pending.swap(0, Ordering::AcqRel);
        if topics == 0 {
            continue;
        }
        let notify = sqlx::query("SELECT pg_notify($1, $2)")
            .bind(CHANNEL)
            .bind(format!("{} {topics}", abroad.name))
            .execute(&pool);
        if notify.await.is_err() {
            // Others look by themselves before long; this only helps them to be quick.
            abroad.pending.fetch_or(topics, Ordering::AcqRel);
            abroad.wake.notify_one();
            tokio::select! {
                () = stop.cancelled() => return,
                () = time::sleep(PAUSE) => {}
            }
        }
    }
}

/// Hears what other gateways tell, for as long as the store is open.
pub(super) async fn hear(pool: PgPool, hub: Hub, abroad: Arc<Abroad>, stop: CancellationToken) {
    let heard = async {
        loop {
            if let Ok(mut listener) = PgListener::connect_with(&pool).await {
                // The pool is closed after this has ended.
                listener.ignore_pool_close_event(true);
                if listener.listen(CHANNEL).await.is_ok() {
                    // Whatever happened before it was heard counts as changed.
                    hub.wake_here(Topics::ALL);
                    relay(&mut listener, &hub, &abroad.name).await;
                }
            }
            time::sleep(PAUSE).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = heard => {}
    }
}

/// Relays notifications until the connection is lost for good.
async fn relay(listener: &mut PgListener, hub: &Hub, name: &str) {
    loop {
        match listener.try_recv().await {
            Ok(Some(notification)) => {
                if let Some(topics) = topics(notification.payload(), name) {
                    hub.wake_here(topics);
                }
            }
            // The connection was lost and is made anew; something may have been missed.
            Ok(None) => hub.wake_here(Topics::ALL),
            Err(_) => return,
        }
    }
}

/// Reads a notification; nothing, if it is an own one. One that is not
/// understood, of another version, counts as everything.
fn topics(payload: &str, name: &str) -> Option<Topics> {
    match payload.split_once(' ') {
        Some((from, _)) if from == name => None,
        Some((_, topics)) => Some(topics.parse().map_or(Topics::ALL, Topics)),
        None => Some(Topics::ALL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn what_changes_between_the_look_and_the_wait_ends_the_wait() {
        let hub = Hub::new();
        let mut wakeups = hub.subscribe(Topic::Jobs, LONG);
        hub.wake(Topics(Topic::Jobs as u8));
        assert_eq!(wakeups.next().await, Woken::Told);
        hub.wake(Topics(Topic::Events as u8));
        assert_eq!(wakeups.next().await, Woken::Polled);
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_store_wakes_nobody_in_a_hurry() {
        let hub = Hub::new();
        let mut wakeups = hub.subscribe(Topic::Outbox, LONG);
        drop(hub);
        let before = time::Instant::now();
        assert_eq!(wakeups.next().await, Woken::Polled);
        assert!(before.elapsed() >= LONG);
    }

    #[test]
    fn an_own_notification_is_not_heard_and_a_strange_one_counts_as_everything() {
        assert_eq!(topics("me 3", "me"), None);
        assert_eq!(topics("other 3", "me"), Some(Topics(3)));
        assert_eq!(topics("other of-a-newer-version", "me"), Some(Topics::ALL));
        assert_eq!(topics("", "me"), Some(Topics::ALL));
    }
}
