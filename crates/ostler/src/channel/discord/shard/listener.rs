//! What listens on one connection after the other, and says what each event means
//! for others.

use std::{future, pin::pin, task::Poll, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio::{sync::mpsc, time};
use tokio_util::sync::CancellationToken;
use twilight_gateway::{
    CloseFrame, ConfigBuilder, Event as GatewayEvent, EventTypeFlags, Intents, Session, Shard,
    ShardId, ShardState, StreamExt as _,
    error::{ReceiveMessageError, ReceiveMessageErrorType},
};
use twilight_model::{
    channel::ChannelType,
    gateway::payload::{incoming::MessageCreate, outgoing::identify::IdentifyProperties},
};

use super::{
    super::{
        heard::{Heard, Interacted, Person, Places, heard, interacted},
        snowflake,
    },
    Connection, Event, Fatal, Happening, Position,
};

const INTENTS: Intents = Intents::GUILDS
    .union(Intents::GUILD_MESSAGES)
    .union(Intents::DIRECT_MESSAGES)
    .union(Intents::MESSAGE_CONTENT);
/// What is read of all that is told.
const WANTED: EventTypeFlags = EventTypeFlags::READY
    .union(EventTypeFlags::RESUMED)
    .union(EventTypeFlags::GUILD_CREATE)
    .union(EventTypeFlags::CHANNEL_CREATE)
    .union(EventTypeFlags::CHANNEL_UPDATE)
    .union(EventTypeFlags::CHANNEL_DELETE)
    .union(EventTypeFlags::THREAD_CREATE)
    .union(EventTypeFlags::THREAD_UPDATE)
    .union(EventTypeFlags::THREAD_DELETE)
    .union(EventTypeFlags::THREAD_LIST_SYNC)
    .union(EventTypeFlags::MESSAGE_CREATE)
    .union(EventTypeFlags::INTERACTION_CREATE);
/// Discord's words for a session that cannot be gone on with: it was told wrongly where
/// it was left, or it is too old.
const SESSION_OVER: [u16; 2] = [4007, 4009];
/// How long closing may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// How far the time at which a session begins may be wrong, beside what is known of our
/// clock. What is heard twice by that is known by its name.
const UNSURE: SignedDuration = SignedDuration::from_secs(10);
/// How much earlier than what was heard last something can have been said that was not
/// heard: what is said at different places is not told in its order.
const MARGIN: Duration = Duration::from_secs(5);
/// After how many failures in a row the waits between attempts begin anew. They
/// double, up to minutes.
const FAILURES: u32 = 6;
/// The longest wait after a loss.
const PATIENCE: Duration = Duration::from_secs(60);

/// What listens, from one connection to the next.
pub(super) struct Listener {
    pub(super) connection: Connection,
    pub(super) bot: Person,
    pub(super) application: String,
    pub(super) places: Places,
    pub(super) position: Option<Position>,
    /// The id of what was heard last.
    pub(super) newest: Option<u64>,
    /// What that was before a session that began anew.
    pub(super) missed_since: Option<u64>,
    pub(super) events: mpsc::Sender<Event>,
    /// Whether it was said that nobody is there to connect to.
    pub(super) is_told: bool,
    /// How often the connection was lost without having been of use.
    pub(super) n_losses: u32,
}

/// What comes after a round.
pub(super) enum Round {
    Again,
    Over,
}

impl Listener {
    /// Listens until the end, or until the waits between attempts grew too long.
    pub(super) async fn round(&mut self, stop: &CancellationToken) -> Result<Round, Fatal> {
        let mut shard = self.shard();
        let mut n_failures = 0;
        loop {
            let event = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                // What was read of a message so far stays in the shard.
                event = shard.next_event(WANTED) => event,
            };
            let event = match event {
                Some(Ok(event)) => event,
                Some(Err(error)) => {
                    n_failures += u32::from(self.is_unreachable(&error));
                    if n_failures <= FAILURES {
                        continue;
                    }
                    self.note(&shard);
                    return Ok(Round::Again);
                }
                None => return Err(Fatal::ended()),
            };
            n_failures = 0;
            self.see(&event);
            self.note(&shard);
            let is_session_over = ends_session(&event);
            let happening = self.happening(event);
            let Some(happening) = stop.run_until_cancelled(happening).await else { break };
            let happening = happening?;
            if is_session_over {
                // What connects would try to go on with it for ever.
                self.position = None;
                return Ok(Round::Again);
            }
            let Some(happening) = happening else { continue };
            let event = Event { position: self.position.clone(), happening };
            match stop.run_until_cancelled(self.events.send(event)).await {
                Some(Ok(())) => {}
                Some(Err(_)) | None => break,
            }
        }
        leave(shard).await;
        Ok(Round::Over)
    }

    /// Makes a connection that goes on where the last one was left.
    fn shard(&self) -> Shard {
        let properties = IdentifyProperties::new("ostler", "ostler", std::env::consts::OS);
        let token = self.connection.token.reveal().to_owned();
        let mut config = ConfigBuilder::new(token, INTENTS).identify_properties(properties);
        if let Some(url) = &self.connection.gateway_url {
            config = config.proxy_url(url.trim_end_matches('/').to_owned());
        }
        if let Some(Position { session, sequence, url, newest: _ }) = self.position.clone() {
            let url = url.trim_end_matches('/').to_owned();
            config = config.session(Session::new(sequence, session)).resume_url(url);
        }
        Shard::with_config(ShardId::ONE, config.build())
    }

    /// Notes up to where was heard.
    fn note(&mut self, shard: &Shard) {
        let before = self.position.take().map(|position| position.url);
        let url = shard.resume_url().map(str::to_owned).or(before);
        self.position = shard.session().zip(url).map(|(session, url)| Position {
            session: session.id().to_owned(),
            sequence: session.sequence(),
            url,
            newest: self.newest,
        });
    }

    /// Notes of what time an event is. What a session that begins anew does not tell of
    /// was missed.
    fn see(&mut self, event: &GatewayEvent) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others are not told again")]
        let id = match event {
            GatewayEvent::MessageCreate(message) => message.id.get(),
            GatewayEvent::InteractionCreate(interaction) => interaction.id.get(),
            GatewayEvent::Ready(_) => {
                self.missed_since = self.newest.map(|newest| snowflake::before(newest, MARGIN));
                let skew = self.connection.api.clock_skew().unwrap_or_default();
                let now = Timestamp::now().checked_sub(skew.saturating_add(UNSURE));
                now.map(snowflake::of_time).unwrap_or_default()
            }
            _ => return,
        };
        self.newest = self.newest.max(Some(id));
    }

    /// Notes that something could not be read; returns whether that is because there
    /// is no connection.
    fn is_unreachable(&mut self, error: &ReceiveMessageError) -> bool {
        // The error has the whole event in it.
        if !matches!(error.kind(), ReceiveMessageErrorType::Reconnect) {
            tracing::warn!("an event of Discord could not be read; it is left out");
            return false;
        }
        if !self.is_told {
            tracing::warn!("Discord's gateway cannot be reached; trying again");
        }
        self.is_told = true;
        true
    }

    /// Returns what an event means for others.
    async fn happening(&mut self, event: GatewayEvent) -> Result<Option<Happening>, Fatal> {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "the others tell of places, if anything"
        )]
        match event {
            GatewayEvent::GatewayClose(frame) => {
                let code = frame.map_or(0, |frame| frame.code);
                if let Some(fatal) = Fatal::of_code(code) {
                    return Err(fatal);
                }
                let wait = pause(self.n_losses);
                self.n_losses = self.n_losses.saturating_add(1);
                tracing::info!(code, ?wait, "the connection to Discord was lost; connecting again");
                time::sleep(wait).await;
                Ok(None)
            }
            GatewayEvent::Ready(_) => {
                tracing::info!(bot = self.bot.name, "connected to Discord");
                Ok(Some(self.connected(false)))
            }
            GatewayEvent::Resumed => {
                tracing::info!(bot = self.bot.name, "connected to Discord where it was left");
                Ok(Some(self.connected(true)))
            }
            GatewayEvent::MessageCreate(message) => Ok(self.hear(&message).map(Happening::Heard)),
            GatewayEvent::InteractionCreate(interaction) => {
                let interacted = interacted(&interaction, &self.places);
                Ok(interacted.map(|interacted| match interacted {
                    Interacted::Pressed(pressed) => Happening::Pressed(pressed),
                    Interacted::Slash(slash) => Happening::Slash(slash),
                }))
            }
            other => {
                self.places.learn(&other);
                Ok(None)
            }
        }
    }

    fn connected(&mut self, is_resumed: bool) -> Happening {
        (self.is_told, self.n_losses) = (false, 0);
        let (bot, application) = (self.bot.clone(), self.application.clone());
        let missed_since = self.missed_since.take().filter(|_| !is_resumed);
        Happening::Connected { bot, application, is_resumed, missed_since }
    }

    /// Returns what a message says. After a resume Discord does not tell again which
    /// channels there are, so that a thread may have to be asked for. That is not done
    /// here: nothing else is heard meanwhile.
    fn hear(&self, message: &MessageCreate) -> Option<Heard> {
        let known = heard(message, &self.bot.id, &self.places)?;
        let may_be_thread = message.channel_type.is_none_or(ChannelType::is_thread);
        let is_known = self.places.get(&known.channel).is_some();
        let is_astray = known.guild.is_some() && !is_known && may_be_thread;
        Some(Heard { is_astray, ..known })
    }
}

/// Whether with an event a session is over, so that another has to begin.
fn ends_session(event: &GatewayEvent) -> bool {
    matches!(event, GatewayEvent::GatewayClose(Some(frame)) if SESSION_OVER.contains(&frame.code))
}

/// Returns how long to wait after a loss, by how often there was one just before.
pub(super) fn pause(n_losses: u32) -> Duration {
    match n_losses {
        0 => Duration::ZERO,
        n => PATIENCE.min(Duration::from_secs(1) * 2u32.saturating_pow(n - 1)),
    }
}

/// Closes a connection so that it can be resumed: after 1000 or 1001 it could not.
async fn leave(mut shard: Shard) {
    match shard.state() {
        ShardState::Active | ShardState::Identifying | ShardState::Resuming => {}
        ShardState::Disconnected { .. } | ShardState::FatallyClosed => return,
    }
    shard.close(CloseFrame::RESUME);
    let mut is_closed = false;
    let closing = future::poll_fn(|cx| {
        // Somebody who wants nothing is told of the end first. A shard whose close
        // is not answered connects again instead, which is as good an end.
        let polled = pin!(shard.next_event(EventTypeFlags::empty())).poll(cx).map(drop);
        let is_down = matches!(shard.state(), ShardState::Disconnected { .. });
        if is_closed && !is_down {
            return Poll::Ready(());
        }
        is_closed |= is_down;
        polled
    });
    // If neither comes, dropping the connection has to do.
    time::timeout(FAREWELL, closing).await.ok();
}
