//! The chats of a gateway: what is started for them, and how it ends.

use std::sync::Arc;

use axum::Router;
use ostler_core::environment::Variables;
use tokio::sync::watch;

use super::StartError;
use crate::{
    channel::{
        Channels, DISCORD,
        chat::{Chat, Chats, carrier::Carrier, show::Shows},
        discord::{
            api::Api,
            bot::{self, Bot},
        },
        duty::Held,
        twilio::{self, chat::TwilioChat, post::Post},
    },
    config::{Config, Secret},
    gateway::{Gateway, policy::Policy},
    media::{self, hosting::Hosting},
    store::Store,
};

/// What can be made before the gateway runs, of the chats that are configured.
pub(super) struct Prepared {
    discord: Option<Discord>,
    twilio: Option<twilio::Line>,
}

/// What is needed to speak on Discord.
struct Discord {
    token: Secret,
    gateway_url: Option<String>,
    api: Arc<Api>,
}

/// Makes what can be made.
pub(super) async fn prepare(
    config: &Config,
    environment: &Variables,
    hosting: &Hosting,
) -> Result<Prepared, StartError> {
    let twilio = twilio::Line::prepare(&config.twilio, environment, hosting.clone()).await;
    let twilio = twilio.map_err(|why| StartError::Twilio { why })?;
    Ok(Prepared { discord: discord(config, environment).await?, twilio })
}

async fn discord(config: &Config, environment: &Variables) -> Result<Option<Discord>, StartError> {
    let Some(source) = &config.discord.token else { return Ok(None) };
    let unusable = |why: String| StartError::Discord { why };
    let token = source.get(environment).await.map_err(|error| unusable(error.to_string()))?;
    let api = Api::new(token.reveal(), config.discord.api_url.as_deref());
    let api = api.map_err(|error| unusable(error.to_string()))?;
    let api = Arc::new(api.with_rate(config.discord.requests_per_second));
    Ok(Some(Discord { token, gateway_url: config.discord.gateway_url.clone(), api }))
}

/// The chats, with nobody in them yet.
pub(super) struct Opened {
    prepared: Prepared,
    /// Those of Twilio's, which others there look into as well.
    lines: Vec<TwilioChat>,
    shows: Option<Shows>,
    discord: watch::Sender<bool>,
    twilio: watch::Sender<bool>,
}

impl Prepared {
    /// Lets files be fetched that come from there.
    pub(super) fn vouch(&self, media: &mut media::Rules) {
        if let Some(line) = &self.twilio {
            line.vouch(media);
        }
    }

    /// Lets replies go there.
    pub(super) fn open(
        self,
        store: &Store,
        policy: &watch::Receiver<Arc<Policy>>,
        channels: Channels,
    ) -> (Opened, Channels) {
        let (discord, twilio) = (watch::Sender::new(false), watch::Sender::new(false));
        let mut chats = Chats::default();
        if let Some(Discord { api, .. }) = &self.discord {
            chats.add(DISCORD, Arc::clone(api) as Arc<dyn Chat>, discord.subscribe());
        }
        let lines = self.twilio.as_ref().map(|line| line.chats(store, policy)).unwrap_or_default();
        for chat in &lines {
            chats.add(chat.kind().channel(), Arc::new(chat.clone()), twilio.subscribe());
        }
        if chats.is_empty() {
            return (Opened { prepared: self, lines, shows: None, discord, twilio }, channels);
        }
        let shows = Shows::start(store.clone(), chats.clone(), policy.clone());
        let carrier = Carrier::new(store.clone(), chats, shows.clone(), policy.clone());
        let opened = Opened { prepared: self, lines, shows: Some(shows), discord, twilio };
        (opened, channels.with_chats(carrier))
    }
}

impl Opened {
    /// Lets people in. What is returned with it answers calls.
    pub(super) fn start(
        self,
        gateway: &Gateway,
        store: &Store,
        policy: &watch::Receiver<Arc<Policy>>,
    ) -> (Open, Router) {
        let Self { prepared: Prepared { discord, twilio: line }, lines, shows, .. } = self;
        let bot = discord.map(|Discord { token, gateway_url, api }| {
            let (gateway, store, policy) = (gateway.clone(), store.clone(), policy.clone());
            let on_duty = self.discord;
            Bot::start(bot::Parts { token, gateway_url, api, gateway, store, policy, on_duty })
        });
        let mut routes = Router::new();
        let post = line.map(|line| {
            let (gateway, store, policy) = (gateway.clone(), store.clone(), policy.clone());
            let (post, calls) = Post::start(line, lines, gateway, store, policy, self.twilio);
            routes = calls;
            post
        });
        (Open { bot, post, shows }, routes)
    }
}

/// The chats of a gateway that runs.
pub(super) struct Open {
    bot: Option<Bot>,
    post: Option<Post>,
    shows: Option<Shows>,
}

impl Open {
    /// Takes no more messages.
    pub(super) async fn close(self) -> Closed {
        let mut duties = Vec::new();
        if let Some(bot) = self.bot {
            duties.push(bot.stop().await.hold());
        }
        if let Some(post) = self.post {
            duties.push(post.stop().await.hold());
        }
        Closed { duties, shows: self.shows }
    }
}

/// Chats that are only spoken to.
pub(super) struct Closed {
    duties: Vec<Held>,
    shows: Option<Shows>,
}

impl Closed {
    /// Ends what is shown, and lets another gateway speak.
    pub(super) async fn end(self) {
        if let Some(shows) = self.shows {
            shows.stop().await;
        }
        for duty in self.duties {
            duty.end().await;
        }
    }
}
