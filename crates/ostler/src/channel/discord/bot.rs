//! The bot on Discord, for as long as a gateway runs. Of several gateways on one
//! store one speaks there; the others wait to take over.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    api::Api,
    desk::{Desk, POSITION},
    shard::{self, Connection, Fatal, Position},
};
use crate::{
    background::Background,
    channel::{DISCORD, chat::intake::Intake, pace::Pace},
    clock::Millis,
    gateway::{Gateway, policy::Policy},
    store::{Store, StoreError, Topic, choices, duties},
};

/// After how much silence of a gateway another speaks.
const LEASE: Duration = Duration::from_secs(30);
/// How often that is renewed or looked at.
const RENEW: Duration = Duration::from_secs(10);
/// The wait after the connection was refused for good.
const REFUSED: Duration = Duration::from_secs(300);
/// How much may happen before anybody deals with it.
const WAITING: usize = 1000;
/// How long what is under way may take to end.
const ENDING: Duration = Duration::from_secs(3);

/// What a bot is made of.
pub(crate) struct Parts {
    pub(crate) token: String,
    pub(crate) gateway_url: Option<String>,
    pub(crate) api: Arc<Api>,
    pub(crate) gateway: Gateway,
    pub(crate) store: Store,
    pub(crate) policy: watch::Receiver<Arc<Policy>>,
    /// Whether this gateway is the one that speaks.
    pub(crate) on_duty: watch::Sender<bool>,
}

/// A bot that runs.
#[derive(Debug)]
pub(crate) struct Bot {
    work: Background,
    duty: Duty,
}

/// What a gateway has that speaks on Discord, until it is given back.
#[derive(Debug)]
pub(crate) struct Duty {
    store: Store,
    owner: String,
}

impl Bot {
    pub(crate) fn start(parts: Parts) -> Self {
        let duty = Duty { store: parts.store.clone(), owner: parts.gateway.name().to_owned() };
        Self { work: Background::start(|stop| parts.work(stop)), duty }
    }

    /// Takes no more messages, and ends the connection so that it can be picked up.
    /// Answers can still be sent, until the duty is given back.
    pub(crate) async fn stop(self) -> Duty {
        if !self.work.stop(ENDING).await {
            tracing::warn!("the connection to Discord did not end in time");
        }
        self.duty
    }
}

impl Duty {
    /// Lets another gateway speak, without waiting for the end of the lease.
    pub(crate) async fn give_back(self) {
        let Self { store, owner } = self;
        let given = store.write_repeatable(owner, |conn, owner| {
            Box::pin(duties::give_back(conn, duties::DISCORD, owner))
        });
        let given: Result<(), StoreError> = given.await;
        if let Err(error) = given {
            tracing::debug!(%error, "other gateways wait until the lease is over");
        }
    }
}

/// Why a connection is over.
enum Over {
    Refused(Fatal),
    /// Another gateway speaks now, or the store cannot say who does.
    OffDuty,
    Stopped,
}

impl Parts {
    async fn work(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if !matches!(self.take_duty().await, Ok(true)) {
                self.on_duty.send_replace(false);
                stop.run_until_cancelled(time::sleep(RENEW)).await;
                continue;
            }
            self.on_duty.send_replace(true);
            self.open_outbox().await;
            match Box::pin(self.connected(&stop)).await {
                Over::Refused(Fatal { reason }) => {
                    tracing::error!("Discord refuses the bot: {reason}");
                    // What is to be sent can still be sent.
                    let refused = time::timeout(REFUSED, self.while_on_duty());
                    stop.run_until_cancelled(refused).await;
                }
                Over::OffDuty => {
                    self.on_duty.send_replace(false);
                    tracing::warn!("another gateway speaks on Discord now");
                }
                // The store may have been closed under it.
                Over::Stopped => {
                    stop.run_until_cancelled(time::sleep(RENEW)).await;
                }
            }
        }
    }

    /// Listens for as long as this gateway is the one that speaks.
    async fn connected(&self, stop: &CancellationToken) -> Over {
        let (tell, events) = mpsc::channel(WAITING);
        let tasks = TaskTracker::new();
        let until = stop.child_token();
        let intake = Intake {
            channel: DISCORD,
            chat: Arc::clone(&self.api) as Arc<_>,
            gateway: self.gateway.clone(),
            store: self.store.clone(),
            pace: Arc::new(Pace::new(self.policy.borrow().discord.messages_per_minute)),
            tasks: tasks.clone(),
            stop: until.clone(),
        };
        let desk = Desk { intake, api: Arc::clone(&self.api), policy: self.policy.clone() };
        let connection = Connection {
            token: self.token.clone(),
            gateway_url: self.gateway_url.clone(),
            api: Arc::clone(&self.api),
            resume: self.position().await,
        };
        let over = {
            let listening = shard::listen(connection, tell, until.clone());
            let working = desk.work(events);
            let both = async { tokio::join!(listening, working).0 };
            tokio::pin!(both);
            tokio::select! {
                ended = &mut both => match ended {
                    Ok(()) => Over::Stopped,
                    Err(fatal) => Over::Refused(fatal),
                },
                () = self.while_on_duty() => {
                    until.cancel();
                    both.await.ok();
                    Over::OffDuty
                }
            }
        };
        until.cancel();
        tasks.close();
        tasks.wait().await;
        over
    }

    /// Returns where an earlier connection stood.
    async fn position(&self) -> Option<Position> {
        let found = self.store.read((), |conn, ()| Box::pin(choices::find(conn, POSITION)));
        let text: Option<String> = found.await.ok().flatten();
        serde_json::from_str(&text?).ok()
    }

    /// Takes the duty or keeps it; returns whether this gateway has it.
    async fn take_duty(&self) -> Result<bool, StoreError> {
        let args = (self.gateway.name().to_owned(), Millis::now());
        let taken = self.store.write_repeatable(args, |conn, (owner, now)| {
            Box::pin(duties::take(conn, duties::DISCORD, owner, *now, LEASE))
        });
        taken.await
    }

    /// Renews the duty until it is lost.
    async fn while_on_duty(&self) {
        let mut until = Instant::now() + LEASE;
        loop {
            time::sleep(RENEW).await;
            // The store may be away for as long as nobody else can have the duty.
            match time::timeout_at(until, self.take_duty()).await {
                Ok(Ok(true)) => until = Instant::now() + LEASE,
                Ok(Err(_)) if Instant::now() < until => {}
                Ok(Ok(false) | Err(_)) | Err(_) => return,
            }
        }
    }

    /// Lets what waited for this gateway leave.
    async fn open_outbox(&self) {
        let woken = self.store.write((), |conn, ()| {
            conn.wake(Topic::Outbox);
            Box::pin(async { Ok::<_, StoreError>(()) })
        });
        if let Err(error) = woken.await {
            tracing::debug!(%error, "what waits for Discord is found later");
        }
    }
}
