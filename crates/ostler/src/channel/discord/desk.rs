//! What becomes of what happens on Discord: who is let in, and what he wants. A
//! message becomes a stored job, a word is done at once, a button is an answer. How
//! it all travels is up to `api` and `shard`, what is shown to `chat`.

mod pressed;
mod slash;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    api::{Api, Response},
    heard::{Heard, Person, Ticket},
    shard::{Event, Happening, Position},
    slash::commands,
};
use crate::{
    channel::{
        DISCORD, SendError,
        access::{self, Admission, Source, Standing},
        chat::{Chat as _, Post, Posting},
        code::Code,
        directive::{self, Directive},
        pace::{Pace, Verdict},
    },
    clock::Millis,
    gateway::{
        Gateway,
        inbound::{Details, Group, Inbound, Media, Origin, Refusal},
        policy::Policy,
    },
    queue::EnqueueError,
    store::{
        Store, StoreError, choices,
        conversations::Address,
        pairings::{self, Asked},
    },
    wishes::Wishes,
};

/// How often it is noted where the connection stands.
const NOTE: Duration = Duration::from_secs(2);
/// The wait before a message is offered to the store again.
const AGAIN: Duration = Duration::from_secs(1);
/// The name under which it is kept where the connection stands.
pub(super) const POSITION: &str = "discord_position";

/// Whoever deals with what happens. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) gateway: Gateway,
    pub(crate) store: Store,
    pub(crate) api: Arc<Api>,
    pub(crate) policy: watch::Receiver<Arc<Policy>>,
    pub(crate) pace: Arc<Pace>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
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
        let noted = self.store.write_repeatable(args, |conn, (text, now)| {
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
                self.pace.change(self.policy.borrow().discord.messages_per_minute);
                self.spawn(|desk| async move { desk.register().await });
                true
            }
            Happening::Heard(heard) => self.heard(heard).await,
            Happening::Pressed(pressed) => {
                self.spawn(|desk| async move { desk.pressed(pressed).await });
                true
            }
            Happening::Slash(slash) => {
                self.spawn(|desk| async move { desk.slash(slash).await });
                true
            }
        }
    }

    /// Does something beside what happens next.
    fn spawn<F>(&self, work: impl FnOnce(Self) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (work, stop) = (work(self.clone()), self.stop.clone());
        self.tasks.spawn(async move {
            stop.run_until_cancelled(work).await;
        });
    }

    /// Deals with a message; returns whether to go on. It is let in, or it is not
    /// for us; what is let in is stored for as long as that takes.
    async fn heard(&self, heard: Heard) -> bool {
        let source = Source {
            guild: heard.guild.as_deref(),
            channel: &heard.channel,
            parent: heard.parent.as_deref(),
            sender: &heard.author.id,
            roles: &heard.roles,
            is_mentioned: heard.is_mentioned || heard.answers_bot,
        };
        loop {
            let admitted = self.admission(&source).await;
            let dealt = match admitted {
                Ok((Admission::NotMeant, _)) => return true,
                Ok((Admission::Stranger, standing)) => {
                    self.stranger(&heard, &source, standing).await
                }
                Ok((Admission::Admitted, _)) => return self.admitted(&heard).await,
                Err(error) => Err(error),
            };
            match dealt {
                Ok(()) => return true,
                Err(error) => {
                    if !self.wait_for_store(&error).await {
                        return false;
                    }
                }
            }
        }
    }

    async fn admission(&self, source: &Source<'_>) -> Result<(Admission, Standing), StoreError> {
        let policy = Arc::clone(&self.policy.borrow());
        let first = access::admit(&policy.discord, source, Standing::Unknown);
        // Whoever is not meant is not looked up.
        if first == Admission::NotMeant {
            return Ok((first, Standing::Unknown));
        }
        let person = known_as(source.sender);
        let standing =
            self.store.read(person, |conn, person| Box::pin(pairings::standing(conn, person)));
        let standing = standing.await?;
        Ok((access::admit(&policy.discord, source, standing), standing))
    }

    /// Offers somebody who is not known a code, if that is wanted.
    async fn stranger(
        &self,
        heard: &Heard,
        source: &Source<'_>,
        standing: Standing,
    ) -> Result<(), StoreError> {
        tracing::info!(
            sender = heard.author.id,
            channel = heard.channel,
            "a stranger was not let in"
        );
        let is_offered = access::is_offered_code(&self.policy.borrow().discord, source, standing);
        if !is_offered {
            return Ok(());
        }
        if let Verdict::Slow { .. } = self.pace.allow(&heard.author.id) {
            return Ok(());
        }
        let Ok(code) = Code::make() else {
            tracing::error!("no code could be made: the system has no randomness");
            return Ok(());
        };
        let args = (known_as(&heard.author.id), heard.author.name.clone(), code, Millis::now());
        let asked = self.store.write(args, |conn, (person, name, code, now)| {
            Box::pin(pairings::ask(conn, person, name, code, *now))
        });
        if let Asked::Code(code) = asked.await? {
            let text = format!(
                "I do not know you yet. Ask whoever runs me to say `ostler pairing approve {code}`; \
                 the code is good for an hour."
            );
            self.tell(&heard.channel, &heard.message, text);
        }
        Ok(())
    }

    /// Deals with a message of somebody who may talk.
    async fn admitted(&self, heard: &Heard) -> bool {
        if let Verdict::Slow { wait, is_first } = self.pace.allow(&heard.author.id) {
            if is_first {
                let text = format!("That is too fast for me. Try again in {} s.", seconds(wait));
                self.tell(&heard.channel, &heard.message, text);
            }
            return true;
        }
        if let Some(directive) = directive::read(&heard.text) {
            let heard = heard.clone();
            self.spawn(|desk| async move {
                let said = desk.direct(&heard.channel, &heard.author, heard.group(), &directive);
                let said = said.await;
                desk.tell_now(&heard.channel, &heard.message, said).await;
            });
            return true;
        }
        if heard.text.is_empty() && heard.attachments.is_empty() {
            self.tell(&heard.channel, &heard.message, "What can I do for you?".to_owned());
            return true;
        }
        let place = self.place(heard).await;
        let Ok(address) = Address::new(DISCORD, &place) else { return true };
        let inbound = Inbound {
            address,
            sender: heard.author.id.clone(),
            message: Some(heard.message.clone()),
            text: heard.text.clone(),
            wishes: Wishes::default(),
            origin: Origin::Person,
            details: heard.details(),
            belongs: None,
            words: None,
        };
        self.accept(inbound, &heard.channel, Some(&heard.message)).await
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

    /// Stores a message for as long as it takes; returns whether to go on.
    async fn accept(&self, inbound: Inbound, channel: &str, message: Option<&str>) -> bool {
        let place = inbound.address.key().to_owned();
        loop {
            match self.gateway.accept(inbound.clone()).await {
                Ok(accepted) => {
                    if !accepted.is_again {
                        self.spawn(|desk| async move {
                            // A sign of life; if it does not get through, the answer will.
                            desk.api.typing(&place).await.ok();
                        });
                    }
                    return true;
                }
                Err(Refusal::Enqueue(EnqueueError::Store(error))) => {
                    if !self.wait_for_store(&error).await {
                        return false;
                    }
                }
                // It comes again: it is not noted that it was dealt with.
                Err(Refusal::Stopping) => return false,
                Err(refusal) => {
                    if let Some(message) = message {
                        self.tell(channel, message, format!("⚠️ {refusal}"));
                    }
                    return true;
                }
            }
        }
    }

    /// Waits until the store may be there again; returns whether to go on.
    async fn wait_for_store(&self, error: &StoreError) -> bool {
        tracing::warn!(error = error.chain(), "a message from Discord waits for the store");
        !matches!(error, StoreError::Closed)
            && self.stop.run_until_cancelled(time::sleep(AGAIN)).await.is_some()
    }

    /// Does at once what a word asks for; returns what to say to that.
    async fn direct(
        &self,
        channel: &str,
        person: &Person,
        group: Option<Group>,
        directive: &Directive,
    ) -> String {
        let is_owner = access::is_owner(&self.policy.borrow().discord, &person.id);
        if matches!(directive, Directive::Restart) {
            let said = if is_owner {
                "I cannot start myself again; whoever runs me can."
            } else {
                "Only an owner may ask for that."
            };
            return said.to_owned();
        }
        let Ok(at) = Address::new(DISCORD, channel) else {
            return "There is nobody here.".to_owned();
        };
        match self.gateway.direct(&at, &person.id, group.as_ref(), directive).await {
            Ok(said) => said,
            Err(refusal) => format!("⚠️ {refusal}"),
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

    /// Says something that is not worth a place in the outbox.
    fn tell(&self, channel: &str, answers: &str, text: String) {
        let (channel, answers) = (channel.to_owned(), answers.to_owned());
        self.spawn(|desk| async move { desk.tell_now(&channel, &answers, text).await });
    }

    async fn tell_now(&self, channel: &str, answers: &str, text: String) {
        let post = Post::of(text);
        let nonce = format!("told:{answers}");
        let posting = Posting { post: &post, nonce: &nonce, answers: Some(answers) };
        if let Err(SendError { reason, .. }) = self.api.send(channel, posting).await {
            tracing::info!(reason, "somebody could not be told something");
        }
    }
}

/// Returns by whom the store knows somebody.
fn known_as(sender: &str) -> pairings::Person {
    pairings::Person { channel: DISCORD.to_owned(), sender: sender.to_owned() }
}

fn seconds(wait: Duration) -> u64 {
    wait.as_secs().max(1)
}

impl Heard {
    /// Returns the group that it was said in, if it was one.
    fn group(&self) -> Option<Group> {
        self.guild.as_ref().map(|_| Group {
            subject: self.channel_name.clone().unwrap_or_default(),
            members: Vec::new(),
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
