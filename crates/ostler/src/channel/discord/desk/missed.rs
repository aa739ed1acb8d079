//! What was said while nobody listened. Discord tells again what a session missed only
//! if the session can be gone on with; of the others one has to ask, at each place
//! where somebody may have spoken to the bot.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::time::{self, Instant};

use super::Desk;
use crate::{
    channel::{
        DISCORD,
        discord::{
            api::{Seat, Trouble},
            heard::{Heard, Person, Places, heard},
            snowflake,
        },
    },
    clock::Millis,
    store::conversations,
};

/// What was said longer ago is not looked for: nobody waits for an answer any more.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);
/// For how long a place counts where somebody spoke.
const LIVELY: Duration = Duration::from_hours(30 * 24);
/// At how many places it is looked, how often at one, and how much is found at most.
const PLACES: usize = 100;
const PAGES: usize = 5;
const MOST: usize = 1000;
/// How long it may take in all: what is said meanwhile waits for it.
const LIMIT: Duration = Duration::from_secs(60);
/// The waits before another look, if that may help.
const AGAIN: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5)];

/// A look, as far as it has come.
struct Look<'a> {
    desk: &'a Desk,
    bot: &'a Person,
    since: u64,
    by: Instant,
    /// The roles of people in servers, if anybody is let in by them.
    roles: Option<HashMap<(String, String), Vec<String>>>,
    found: Vec<Heard>,
}

impl Desk {
    /// Returns what people said since an id was given, the oldest first at each place.
    pub(super) async fn missed(&self, since: u64, bot: &Person) -> Vec<Heard> {
        let oldest = Timestamp::now().checked_sub(LONGEST).map(snowflake::of_time);
        let since = since.max(oldest.unwrap_or_default());
        let needs_roles = !self.policy.borrow().discord.roles.is_empty();
        let roles = needs_roles.then(HashMap::new);
        let by = Instant::now() + LIMIT;
        let mut look = Look { desk: self, bot, since, by, roles, found: Vec::new() };
        let mut places: VecDeque<String> = self.where_to_look().await.into();
        let mut seen: Vec<String> = Vec::new();
        let mut n_failed = 0;
        while let Some(place) = places.pop_front() {
            if seen.contains(&place) {
                continue;
            }
            let is_late = Instant::now() >= look.by;
            if is_late || seen.len() >= PLACES || look.found.len() >= MOST {
                tracing::warn!("not all that was said meanwhile on Discord is looked for");
                break;
            }
            seen.push(place.clone());
            match look.at(&place).await {
                // Where a thread began others may begin.
                Ok(parent) => places.extend(parent),
                Err(trouble) => {
                    n_failed += 1;
                    let why = trouble.to_string();
                    tracing::warn!(place, why, "it stays unknown what was said meanwhile");
                }
            }
        }
        let (n_found, n_places) = (look.found.len(), seen.len());
        tracing::info!(n_found, n_places, n_failed, "looked for what was said while away");
        look.found
    }

    /// Returns the places where somebody may have spoken to the bot.
    async fn where_to_look(&self) -> Vec<String> {
        let policy = Arc::clone(&self.policy.borrow());
        let since = Millis::now().before(LIVELY);
        let limit = u32::try_from(PLACES).unwrap_or(u32::MAX);
        let read = || {
            self.intake.store.read((since, limit), |conn, (since, limit)| {
                Box::pin(conversations::lively_places(conn, DISCORD, *since, *limit))
            })
        };
        let lively: Vec<String> = self.insist(read).await.unwrap_or_default();
        let discord = &policy.discord;
        lively
            .into_iter()
            .chain(discord.answer_all_in.clone())
            .chain(discord.channels.clone())
            .collect()
    }
}

impl Look<'_> {
    /// Looks at a place; returns the channel that it is a thread of.
    async fn at(&mut self, place: &str) -> Result<Option<String>, Trouble> {
        let api = Arc::clone(&self.desk.api);
        let seat = self.insist(|| api.seat(place)).await?;
        let parent = seat.place.parent.clone();
        if seat.last.is_some_and(|last| last <= self.since) {
            return Ok(parent);
        }
        let mut after = Some(self.since);
        for _ in 0..PAGES {
            let Some(from) = after.filter(|_| self.found.len() < MOST) else { break };
            let (messages, next) = self.insist(|| api.messages_after(place, from)).await?;
            let mut places = Places::default();
            places.put(place, seat.place.clone());
            for mut message in messages {
                message.guild_id = seat.guild.as_deref().and_then(|guild| guild.parse().ok());
                let Some(heard) = heard(&message, &self.bot.id, &places) else { continue };
                let roles = self.roles(&seat, &heard.author.id).await;
                self.found.push(Heard { roles, ..heard });
            }
            after = next;
        }
        Ok(parent)
    }

    /// Returns the roles of somebody: a message that is asked for does not tell them.
    async fn roles(&mut self, seat: &Seat, person: &str) -> Vec<String> {
        let (Some(guild), Some(known)) = (&seat.guild, &self.roles) else { return Vec::new() };
        let key = (guild.clone(), person.to_owned());
        if let Some(roles) = known.get(&key) {
            return roles.clone();
        }
        let api = Arc::clone(&self.desk.api);
        let roles = match self.insist(|| api.roles_of(guild, person)).await {
            Ok(roles) => roles,
            Err(trouble) => {
                let why = trouble.to_string();
                tracing::warn!(person, why, "it stays unknown which roles somebody has");
                Vec::new()
            }
        };
        if let Some(known) = &mut self.roles {
            known.insert(key, roles.clone());
        }
        roles
    }

    /// Asks for something, more than once if that may help and there is time.
    async fn insist<T, F>(&self, ask: impl Fn() -> F) -> Result<T, Trouble>
    where
        F: Future<Output = Result<T, Trouble>>,
    {
        let mut asked = Err(Trouble::Late { was_sent: false });
        for pause in AGAIN {
            time::sleep(pause).await;
            let late = Err(Trouble::Late { was_sent: true });
            asked = time::timeout_at(self.by, ask()).await.unwrap_or(late);
            match &asked {
                Err(trouble) if trouble.may_pass() && Instant::now() < self.by => {}
                Ok(_) | Err(_) => break,
            }
        }
        asked
    }
}
