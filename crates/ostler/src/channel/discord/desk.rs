//! What becomes of what happens on Discord: a message is stored or done at once, a
//! button is an answer. What is the same in all chats is in `chat::intake`; how it
//! all travels is up to `api` and `shard`, what is shown to `chat`.

mod pressed;
mod slash;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    time::{self, Instant},
};

use super::{
    api::{Api, Response},
    heard::{Heard, Ticket},
    shard::{Event, Happening, Position},
    slash::commands,
};
use crate::{
    channel::{
        access::Source,
        chat::intake::{Intake, NotTaken, Said, Screened},
    },
    clock::Millis,
    gateway::{
        inbound::{Details, Group, Media},
        policy::Policy,
    },
    store::{StoreError, choices},
};

/// How often it is noted where the connection stands.
const NOTE: Duration = Duration::from_secs(2);
/// The wait before a message is offered to the store again.
const AGAIN: Duration = Duration::from_secs(1);
/// The waits before it is asked again where a message was written. Messages that come
/// after it wait as well.
const ASTRAY: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
];
/// The name under which it is kept where the connection stands.
pub(super) const POSITION: &str = "discord_position";

/// Whoever deals with what happens. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) intake: Intake,
    pub(crate) api: Arc<Api>,
    pub(crate) policy: watch::Receiver<Arc<Policy>>,
}

impl Desk {
    /// Works until nothing more happens or it is to stop. A message is dealt with
    /// when it is stored; where the connection stands is noted after that, so that
    /// what was not dealt with is told again.
    pub(crate) async fn work(self, mut events: mpsc::Receiver<Event>) {
        let mut position = None;
        let mut note_at = None;
        let mut noted_at: Option<Instant> = None;
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                () = time::sleep_until(note_at.unwrap_or_else(Instant::now)), if note_at.is_some() => {
                    self.note(position.take()).await;
                    (note_at, noted_at) = (None, Some(Instant::now()));
                    continue;
                }
            };
            let Some(event) = event else { break };
            if !self.happened(event.happening).await {
                break;
            }
            if event.position.is_some() {
                position = event.position;
                // At once after a silence: an old place is better than none.
                let due = noted_at.map_or_else(Instant::now, |at| at + NOTE);
                note_at = note_at.or(Some(due));
            }
        }
        self.note(position).await;
    }

    async fn note(&self, position: Option<Position>) {
        let Some(text) = position.and_then(|position| serde_json::to_string(&position).ok()) else {
            return;
        };
        let args = (text, Millis::now());
        let noted = self.intake.store.write_repeatable(args, |conn, (text, now)| {
            Box::pin(choices::keep(conn, POSITION, text, *now))
        });
        if let Err(error) = noted.await {
            let error: StoreError = error;
            tracing::debug!(%error, "where the connection to Discord stands is not noted");
        }
    }

    /// Deals with something; returns whether to go on.
    async fn happened(&self, happening: Happening) -> bool {
        match happening {
            Happening::Connected { .. } => {
                self.intake.pace.change(self.policy.borrow().discord.messages_per_minute);
                self.spawn(|desk| async move { desk.register().await });
                true
            }
            Happening::Heard(heard) => match self.placed(heard).await {
                Some(heard) => self.heard(&heard).await,
                None => false,
            },
            Happening::Slash(slash) => self.slash(slash).await,
            Happening::Pressed(pressed) => {
                self.spawn(|desk| async move { desk.pressed(pressed).await });
                true
            }
        }
    }

    /// Does something beside what happens next.
    fn spawn<F>(&self, work: impl FnOnce(Self) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.intake.spawn(work(self.clone()));
    }

    /// Finds out where a message was written, if that is not known: who may talk can
    /// depend on it. Nothing if it is to stop.
    async fn placed(&self, mut heard: Heard) -> Option<Heard> {
        for pause in ASTRAY {
            if !heard.is_astray {
                break;
            }
            self.intake.stop.run_until_cancelled(time::sleep(pause)).await?;
            match self.intake.stop.run_until_cancelled(self.api.channel(&heard.channel)).await? {
                Ok(place) => {
                    heard = Heard {
                        parent: place.parent,
                        channel_name: place.name,
                        is_astray: false,
                        ..heard
                    };
                }
                Err(trouble) => heard.is_astray = trouble.may_pass(),
            }
        }
        if heard.is_astray {
            let (channel, message) = (&heard.channel, &heard.message);
            tracing::error!(channel, message, "it stays unknown where a message was written");
        }
        Some(heard)
    }

    /// Deals with a message, for as long as that takes; returns whether to go on.
    async fn heard(&self, heard: &Heard) -> bool {
        let said = heard.said();
        let policy = Arc::clone(&self.policy.borrow());
        let rules = policy.discord.access();
        // A thread that begins with a message has its id.
        let places = [heard.channel.as_str(), heard.message.as_str()];
        match self.insist(|| self.intake.screen(&said, &rules, &places)).await {
            Some(Screened::ForAgent) => {}
            Some(Screened::Dealt) => return true,
            None => return false,
        }
        let place = self.place(heard).await;
        self.insist(|| self.intake.accept(&said, &place)).await.is_some()
    }

    /// Returns where a message is answered: in a thread that begins with it, if that
    /// is wanted. Such a thread has the id of its message.
    async fn place(&self, heard: &Heard) -> String {
        let threads = self.policy.borrow().discord.threads;
        if !threads || heard.guild.is_none() || heard.parent.is_some() {
            return heard.channel.clone();
        }
        let name: String = heard.text.chars().take(80).collect();
        let name = if name.trim().is_empty() { heard.author.name.clone() } else { name };
        match self.api.begin_thread(&heard.channel, &heard.message, &name).await {
            Ok(thread) => thread,
            Err(error) => {
                tracing::warn!(%error, "no thread could be begun; the answer comes in the channel");
                heard.channel.clone()
            }
        }
    }

    /// Tries something until the store takes it; nothing if that is not to be any
    /// more. It comes again then: it is not noted that it was dealt with.
    async fn insist<T, E, F>(&self, attempt: impl Fn() -> F) -> Option<T>
    where
        E: Into<NotTaken>,
        F: Future<Output = Result<T, E>>,
    {
        loop {
            let error = match attempt().await.map_err(Into::into) {
                Ok(done) => return Some(done),
                Err(NotTaken::Stopping | NotTaken::Store(StoreError::Closed)) => return None,
                Err(NotTaken::Store(error)) => error,
            };
            tracing::warn!(error = error.chain(), "a message from Discord waits for the store");
            self.intake.stop.run_until_cancelled(time::sleep(AGAIN)).await?;
        }
    }

    /// Tells Discord which commands there are, if it does not know.
    async fn register(&self) {
        let policy = Arc::clone(&self.policy.borrow());
        let agents = policy.agents.availability().into_iter().filter(|(_, can_run)| *can_run);
        let agents: Vec<String> = agents.map(|(name, _)| name).collect();
        match self.api.register(&commands(&agents)).await {
            Ok(true) => tracing::info!("Discord knows the commands now"),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "Discord was not told of the commands"),
        }
    }

    async fn respond(&self, ticket: &Ticket, response: Response) {
        if let Err(error) = self.api.respond(ticket, &response).await {
            tracing::info!(%error, "an interaction could not be answered");
        }
    }
}

impl Heard {
    fn said(&self) -> Said<'_> {
        Said {
            from: Source {
                guild: self.guild.as_deref(),
                channel: &self.channel,
                parent: self.parent.as_deref(),
                sender: &self.author.id,
                roles: &self.roles,
                is_mentioned: self.is_mentioned || self.answers_bot,
            },
            message: &self.message,
            name: &self.author.name,
            text: &self.text,
            is_called: true,
            at: None,
            details: self.details(),
        }
    }

    /// Returns the group that it was said in, if it was one.
    fn group(&self) -> Option<Group> {
        self.guild.as_ref().map(|_| Group {
            subject: self.channel_name.clone().unwrap_or_default(),
            ..Group::default()
        })
    }

    /// Returns what else is known of it.
    fn details(&self) -> Details {
        let media = self.attachments.iter().map(|attached| Media {
            path: None,
            url: Some(attached.url.clone()),
            media_type: attached.media_type.clone(),
            ..Media::default()
        });
        Details {
            sender_name: Some(self.author.name.clone()),
            group: self.group(),
            media: media.collect(),
            ..Details::default()
        }
    }
}
