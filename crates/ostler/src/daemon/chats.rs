//! The chats of a gateway: what is started for them, and how it ends.

use std::sync::Arc;

use ostler_core::environment::Variables;
use tokio::sync::watch;

use super::StartError;
use crate::{
    channel::{
        Channels,
        chat::{Chats, carrier::Carrier, show::Shows},
        discord::{
            api::Api,
            bot::{Bot, Duty, Parts},
        },
    },
    config,
    gateway::{Gateway, policy::Policy},
    store::Store,
};

/// What is needed to speak on Discord.
pub(super) struct Prepared {
    token: String,
    gateway_url: Option<String>,
    api: Arc<Api>,
}

/// Makes what can be made before the gateway runs; nothing, if no bot is configured.
pub(super) async fn prepare(
    discord: &config::Discord,
    environment: &Variables,
) -> Result<Option<Prepared>, StartError> {
    let Some(source) = &discord.token else { return Ok(None) };
    let unusable = |why: String| StartError::Discord { why };
    let token = source.get(environment).await.map_err(|error| unusable(error.to_string()))?;
    let token = token.reveal().to_owned();
    let api = Api::new(&token, discord.api_url.as_deref());
    let api = Arc::new(api.map_err(|error| unusable(error.to_string()))?);
    Ok(Some(Prepared { token, gateway_url: discord.gateway_url.clone(), api }))
}

/// The chats, with nobody in them yet.
pub(super) struct Opened {
    prepared: Prepared,
    shows: Shows,
    on_duty: watch::Sender<bool>,
}

/// The chats of a gateway that runs.
pub(super) struct Open {
    bot: Bot,
    shows: Shows,
}

impl Prepared {
    /// Lets replies go there.
    pub(super) fn open(
        self,
        store: &Store,
        policy: &watch::Receiver<Arc<Policy>>,
        channels: Channels,
    ) -> (Opened, Channels) {
        let chats = Chats::with_discord(Arc::clone(&self.api) as Arc<_>);
        let on_duty = watch::Sender::new(false);
        let shows = Shows::start(store.clone(), chats.clone(), policy.clone(), on_duty.subscribe());
        let carrier =
            Carrier::new(store.clone(), chats, shows.clone(), policy.clone(), on_duty.subscribe());
        (Opened { prepared: self, shows, on_duty }, channels.with_chats(carrier))
    }
}

impl Opened {
    /// Lets people in.
    pub(super) fn start(
        self,
        gateway: &Gateway,
        store: &Store,
        policy: watch::Receiver<Arc<Policy>>,
    ) -> Open {
        let Self { prepared, shows, on_duty } = self;
        let Prepared { token, gateway_url, api } = prepared;
        let (gateway, store) = (gateway.clone(), store.clone());
        let bot = Bot::start(Parts { token, gateway_url, api, gateway, store, policy, on_duty });
        Open { bot, shows }
    }
}

impl Open {
    /// Takes no more messages.
    pub(super) async fn close(self) -> Closed {
        Closed { duty: self.bot.stop().await, shows: self.shows }
    }
}

/// Chats that are only spoken to.
pub(super) struct Closed {
    duty: Duty,
    shows: Shows,
}

impl Closed {
    /// Ends what is shown, and lets another gateway speak.
    pub(super) async fn end(self) {
        self.shows.stop().await;
        self.duty.give_back().await;
    }
}
