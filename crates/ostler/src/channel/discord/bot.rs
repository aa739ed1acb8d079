//! The bot on Discord, for as long as a gateway runs. Of several gateways on one
//! store one speaks there; the others wait to take over.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    task::{JoinError, JoinSet},
    time,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    api::Api,
    desk::{Desk, POSITION},
    shard::{self, Connection, Fatal, Position},
};
use crate::{
    background::Background,
    channel::{
        DISCORD,
        chat::intake::Intake,
        duty::{Duty, Until},
        pace::Pace,
    },
    config::Secret,
    gateway::{Gateway, policy::Policy},
    store::{Store, StoreError, choices, duties},
};

/// The wait after the connection was refused for good.
const REFUSED: Duration = Duration::from_secs(300);
/// How much may happen before anybody deals with it.
const WAITING: usize = 1000;
/// The wait after a connection that ended for no reason.
const PAUSE: Duration = Duration::from_secs(10);
/// The wait before the store is asked again.
const AGAIN: Duration = Duration::from_secs(1);
/// How long what is under way may take to end.
const ENDING: Duration = Duration::from_secs(3);

/// What a bot is made of.
pub(crate) struct Parts {
    pub(crate) token: Secret,
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

impl Bot {
    pub(crate) fn start(parts: Parts) -> Self {
        let duty = parts.duty();
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

/// Why a connection is over.
enum Over {
    Refused(Fatal),
    /// Another gateway speaks now, or the store cannot say who does.
    OffDuty,
    Stopped,
}

impl Parts {
    fn duty(&self) -> Duty {
        let owner = self.gateway.name().to_owned();
        let (store, is_own) = (self.store.clone(), self.on_duty.clone());
        Duty { store, name: duties::DISCORD, owner, is_own }
    }

    async fn work(self, stop: CancellationToken) {
        let duty = self.duty();
        while let Some(until) = duty.obtain(&stop).await {
            match Box::pin(self.connected(&duty, until, &stop)).await {
                Over::Refused(Fatal { reason }) => {
                    tracing::error!("Discord refuses the bot: {reason}");
                    // What is to be sent can still be sent.
                    let refused = time::timeout(REFUSED, duty.keep_on());
                    stop.run_until_cancelled(refused).await;
                }
                Over::OffDuty => tracing::warn!("another gateway speaks on Discord now"),
                // The store may have been closed under it, or it broke down.
                Over::Stopped => {
                    stop.run_until_cancelled(time::sleep(PAUSE)).await;
                }
            }
        }
    }

    /// Listens for as long as this gateway is the one that speaks.
    async fn connected(&self, duty: &Duty, kept: Until, stop: &CancellationToken) -> Over {
        let (tell, events) = mpsc::channel(WAITING);
        let tasks = TaskTracker::new();
        let until = stop.child_token();
        let intake = Intake {
            channel: DISCORD,
            people: DISCORD,
            chat: Arc::clone(&self.api) as Arc<_>,
            gateway: self.gateway.clone(),
            store: self.store.clone(),
            pace: Arc::new(Pace::new(self.policy.borrow().discord.messages_per_minute)),
            tasks: tasks.clone(),
            stop: until.clone(),
        };
        let desk = Desk::new(intake, Arc::clone(&self.api), self.policy.clone());
        // Without it what was said meanwhile would be passed over.
        let Some(resume) = self.position(kept, stop).await else { return Over::Stopped };
        let connection = Connection {
            token: self.token.clone(),
            gateway_url: self.gateway_url.clone(),
            api: Arc::clone(&self.api),
            resume,
        };
        let over = {
            let listening = shard::listen(connection, tell, until.clone());
            let working = desk.work(events);
            // If they panic nobody else does.
            let mut both = JoinSet::new();
            both.spawn(async { tokio::join!(listening, working).0 });
            tokio::select! {
                ended = both.join_next() => over(ended),
                () = duty.keep(kept) => {
                    until.cancel();
                    both.join_next().await;
                    Over::OffDuty
                }
            }
        };
        until.cancel();
        tasks.close();
        tasks.wait().await;
        over
    }

    /// Returns where an earlier connection stood, if there was one; nothing if the store
    /// does not say so while this gateway has the duty.
    async fn position(&self, kept: Until, stop: &CancellationToken) -> Option<Option<Position>> {
        loop {
            let found = self.store.read((), |conn, ()| Box::pin(choices::find(conn, POSITION)));
            let found: Result<Option<String>, StoreError> = found.await;
            match found {
                Ok(text) => return Some(text.and_then(|text| read(&text))),
                Err(error) => {
                    tracing::warn!(%error, "where the connection to Discord stood is not known yet");
                }
            }
            if kept.is_over() {
                return None;
            }
            stop.run_until_cancelled(time::sleep(AGAIN)).await?;
        }
    }
}

/// Returns why a connection is over, by how its task ended.
fn over(ended: Option<Result<Result<(), Fatal>, JoinError>>) -> Over {
    match ended {
        Some(Ok(Ok(()))) | None => Over::Stopped,
        Some(Ok(Err(fatal))) => Over::Refused(fatal),
        // What it says may have words of people in it.
        Some(Err(_)) => {
            tracing::error!("the connection to Discord broke down in Ostler; it is begun again");
            Over::Stopped
        }
    }
}

/// Reads where a connection stood.
fn read(text: &str) -> Option<Position> {
    let position = serde_json::from_str(text);
    if let Err(error) = &position {
        let key = POSITION;
        tracing::warn!(
            key,
            %error,
            "where the connection to Discord stood cannot be read; what was missed is not known"
        );
    }
    position.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_connection_stood_is_read_as_it_was_noted_or_not_at_all() {
        let position = Position {
            session: "s".to_owned(),
            sequence: 7,
            url: "wss://gateway".to_owned(),
            newest: Some(9),
        };
        assert_eq!(read(&serde_json::to_string(&position).unwrap()), Some(position));
        for nonsense in ["", "{}", "[7]"] {
            assert_eq!(read(nonsense), None);
        }
    }
}
