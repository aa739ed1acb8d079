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
use twilight_model::channel::Message;

use super::Desk;
use crate::{
    channel::{
        DISCORD,
        access::{self, Admission},
        discord::{
            api::{Seat, Trouble},
            heard::{Heard, Person, Places, heard},
            snowflake,
        },
    },
    clock::Millis,
    gateway::policy::Policy,
    store::conversations,
};

/// What was said longer ago is not looked for: nobody waits for an answer any more.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);
/// For how long a place counts where somebody spoke.
const LIVELY: Duration = Duration::from_hours(30 * 24);
/// At how many places it is looked, and how much is found at most that is for the bot.
const PLACES: usize = 100;
const MOST: usize = 1000;
/// How much is read at a place before the others have their turn, and how much in all, in
/// hundreds of messages.
const PAGES: usize = 5;
const MOST_PAGES: usize = 50;
/// How long it may take in all: what is said meanwhile waits for it.
const LIMIT: Duration = Duration::from_secs(60);
/// How long it may take to learn somebody's roles. If it takes longer they are asked for
/// when his message has its turn.
const RANKED: Duration = Duration::from_secs(5);
/// The waits before another look, if that may help.
const AGAIN: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5)];

/// A look, as far as it has come.
struct Look<'a> {
    desk: &'a Desk,
    policy: Arc<Policy>,
    bot: &'a Person,
    since: u64,
    by: Instant,
    /// The roles of people in servers; nothing of those of whom Discord did not say them.
    roles: HashMap<(String, String), Option<Vec<String>>>,
    found: Vec<Heard>,
}

/// A place that was not looked at, or not to the end.
enum Visit {
    First(String),
    Next { place: String, seat: Seat, after: u64, n_pages: usize },
}

impl Desk {
    /// Returns what people said since an id was given, the oldest first at each place.
    pub(super) async fn missed(&self, since: u64, bot: &Person) -> Vec<Heard> {
        let oldest = Timestamp::now().checked_sub(LONGEST).map(snowflake::of_time);
        let mut look = Look {
            desk: self,
            policy: Arc::clone(&self.policy.borrow()),
            bot,
            since: since.max(oldest.unwrap_or_default()),
            by: Instant::now() + LIMIT,
            roles: HashMap::new(),
            found: Vec::new(),
        };
        let places = self.where_to_look().await;
        let mut visits: VecDeque<Visit> = places.into_iter().map(Visit::First).collect();
        let mut seen: Vec<String> = Vec::new();
        let mut n_failed = 0;
        while let Some(visit) = visits.pop_front() {
            if let Visit::First(place) = &visit {
                if seen.contains(place) {
                    continue;
                }
                if seen.len() >= PLACES {
                    tracing::warn!(place, "nobody looks for what was said meanwhile at a place");
                    continue;
                }
                seen.push(place.clone());
            }
            if Instant::now() >= look.by || look.found.len() >= MOST {
                let left: Vec<&str> =
                    [&visit].into_iter().chain(&visits).map(Visit::place).collect();
                let n_found = look.found.len();
                tracing::warn!(
                    n_found,
                    ?left,
                    "not all that was said meanwhile on Discord is looked for"
                );
                break;
            }
            let place = visit.place().to_owned();
            match look.at(visit).await {
                Ok(more) => visits.extend(more),
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

impl Visit {
    fn place(&self) -> &str {
        match self {
            Self::First(place) | Self::Next { place, .. } => place,
        }
    }
}

impl Look<'_> {
    /// Looks at a place for a while; returns where to look after that.
    async fn at(&mut self, visit: Visit) -> Result<Vec<Visit>, Trouble> {
        let api = Arc::clone(&self.desk.api);
        let mut more = Vec::new();
        let (place, seat, mut after, n_before) = match visit {
            Visit::Next { place, seat, after, n_pages } => (place, seat, after, n_pages),
            Visit::First(place) => {
                let seat = self.insist(|| api.seat(&place)).await?;
                // Where a thread began others may begin.
                more.extend(seat.place.parent.clone().map(Visit::First));
                if seat.last.is_some_and(|last| last <= self.since) {
                    return Ok(more);
                }
                (place, seat, self.since, 0)
            }
        };
        for _ in 0..PAGES {
            let (messages, next) = self.insist(|| api.messages_after(&place, after)).await?;
            for message in messages {
                self.read(&place, &seat, message).await;
            }
            let Some(next) = next else { return Ok(more) };
            after = next;
        }
        let n_pages = n_before + PAGES;
        if n_pages < MOST_PAGES {
            more.push(Visit::Next { place, seat, after, n_pages });
        } else {
            tracing::warn!(place, "more was said meanwhile at a place than is looked for");
        }
        Ok(more)
    }

    /// Keeps a message if it may be for the bot.
    async fn read(&mut self, place: &str, seat: &Seat, mut message: Message) {
        let mut places = Places::default();
        places.put(place, seat.place.clone());
        message.guild_id = seat.guild.as_deref().and_then(|guild| guild.parse().ok());
        let Some(heard) = heard(&message, &self.bot.id, &places) else { return };
        let policy = Arc::clone(&self.policy);
        let rules = policy.discord.access();
        // A message that is asked for does not tell the roles of who wrote it.
        let heard = match access::admit(&rules, &heard.source(), access::Standing::Unknown) {
            Admission::NotMeant => return,
            Admission::Stranger if !rules.roles.is_empty() => match &seat.guild {
                Some(guild) => match self.roles(guild, &heard.author.id).await {
                    Some(roles) => Heard { roles, ..heard },
                    None => Heard { is_unranked: true, ..heard },
                },
                None => heard,
            },
            Admission::Admitted | Admission::Stranger => heard,
        };
        self.found.push(heard);
    }

    /// Returns the roles of somebody, if Discord says so at once.
    async fn roles(&mut self, guild: &str, person: &str) -> Option<Vec<String>> {
        let key = (guild.to_owned(), person.to_owned());
        if let Some(roles) = self.roles.get(&key) {
            return roles.clone();
        }
        let by = self.by.min(Instant::now() + RANKED);
        let asked = time::timeout_at(by, self.desk.api.roles_of(guild, person)).await;
        let roles = asked.unwrap_or(Err(Trouble::Late { was_sent: true })).map_err(|trouble| {
            let why = trouble.to_string();
            tracing::warn!(person, why, "it is not known yet which roles somebody has");
        });
        self.roles.insert(key, roles.clone().ok());
        roles.ok()
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
