//! What was said while nobody listened. Discord tells again what a session missed only
//! if the session can be gone on with; of the others one has to ask, at each place
//! where somebody may have spoken to the bot.

mod tour;

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio::time::{self, Instant};
use twilight_model::channel::Message;

use self::tour::{PLACES, Tour, Turn, Visit};
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
/// How much is found at most that is for the bot.
const MOST: usize = 1000;
/// How much is read at a place before the others have their turn, and how much in all, in
/// hundreds of messages.
const PAGES: usize = 5;
const MOST_PAGES: usize = 50;
/// How long it may take in all: what is said meanwhile waits for it.
const LIMIT: Duration = Duration::from_secs(60);
/// How long one call may take. A place that does not answer is to leave time for others.
const CALL: Duration = Duration::from_secs(5);

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

/// What came of a visit.
enum Visited {
    /// Nothing went wrong, and these are to be made after it.
    Done(Vec<Visit>),
    /// It came as far as this.
    Stuck(Visit, Trouble),
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
        let mut tour = Tour::new();
        for place in self.where_to_look().await {
            add(&mut tour, place);
        }
        let n_failed = look.go(&mut tour).await;
        let (n_found, n_places) = (look.found.len(), tour.n_places());
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

/// Adds a place to those that are looked at.
fn add(tour: &mut Tour, place: String) {
    let name = place.clone();
    if !tour.add(place) {
        tracing::warn!(place = name, "nobody looks for what was said meanwhile at a place");
    }
}

impl Look<'_> {
    /// Looks at one place after the other; returns at how many it could not be looked to
    /// the end.
    async fn go(&mut self, tour: &mut Tour) -> usize {
        let mut n_failed = 0;
        while let Some(turn) = tour.next() {
            let visit = match turn {
                Turn::Visit(visit) => visit,
                Turn::Pause(pause) => {
                    time::sleep_until(self.by.min(Instant::now() + pause)).await;
                    continue;
                }
            };
            if Instant::now() >= self.by || self.found.len() >= MOST {
                tour.go_on(visit);
                let (n_found, left) = (self.found.len(), tour.left());
                tracing::warn!(
                    n_found,
                    ?left,
                    "not all that was said meanwhile on Discord is looked for"
                );
                return n_failed + left.len();
            }
            match self.at(visit).await {
                Visited::Done(more) => {
                    for visit in more {
                        match visit {
                            Visit::First(place) => add(tour, place),
                            Visit::Next { .. } => tour.go_on(visit),
                        }
                    }
                }
                // A token that is refused is refused in a minute, too.
                Visited::Stuck(visit, trouble)
                    if trouble.may_pass() && !trouble.is_token_refused() =>
                {
                    let (place, why) = (visit.place().to_owned(), trouble.to_string());
                    if tour.put_off(visit) {
                        tracing::warn!(place, why, "it is looked later what was said meanwhile");
                    }
                }
                Visited::Stuck(visit, trouble) => {
                    n_failed += 1;
                    let (place, why) = (visit.place(), trouble.to_string());
                    tracing::warn!(place, why, "it stays unknown what was said meanwhile");
                }
            }
        }
        n_failed
    }

    /// Looks at a place for a while.
    async fn at(&mut self, visit: Visit) -> Visited {
        let api = Arc::clone(&self.desk.api);
        let (place, seat, mut after, mut n_pages) = match visit {
            Visit::Next { place, seat, after, n_pages } => (place, seat, after, n_pages),
            Visit::First(place) => {
                let seat = match self.ask(api.seat(&place)).await {
                    Ok(seat) => seat,
                    Err(trouble) => return Visited::Stuck(Visit::First(place), trouble),
                };
                // Where a thread began others may begin.
                let parent = seat.place.parent.clone().map(Visit::First);
                let is_silent = seat.last.is_some_and(|last| last <= self.since);
                let next = Visit::Next { place, seat, after: self.since, n_pages: 0 };
                return Visited::Done(
                    parent.into_iter().chain((!is_silent).then_some(next)).collect(),
                );
            }
        };
        for _ in 0..PAGES {
            if n_pages >= MOST_PAGES {
                tracing::warn!(place, "more was said meanwhile at a place than is looked for");
                return Visited::Done(Vec::new());
            }
            let (messages, next) = match self.ask(api.messages_after(&place, after)).await {
                Ok(read) => read,
                Err(trouble) => {
                    return Visited::Stuck(Visit::Next { place, seat, after, n_pages }, trouble);
                }
            };
            for message in messages {
                self.read(&place, &seat, message).await;
            }
            let Some(next) = next else { return Visited::Done(Vec::new()) };
            (after, n_pages) = (next, n_pages + 1);
        }
        Visited::Done(vec![Visit::Next { place, seat, after, n_pages }])
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

    /// Returns the roles of somebody, if Discord says so at once. If it does not, he and
    /// others of his server are asked for when their messages have their turn.
    async fn roles(&mut self, guild: &str, person: &str) -> Option<Vec<String>> {
        let key = (guild.to_owned(), person.to_owned());
        if let Some(roles) = self.roles.get(&key) {
            return roles.clone();
        }
        if self.roles.iter().any(|((of, _), roles)| of == guild && roles.is_none()) {
            return None;
        }
        let roles = self.ask(self.desk.api.roles_of(guild, person)).await.map_err(|trouble| {
            let why = trouble.to_string();
            tracing::warn!(person, why, "it is not known yet which roles somebody has");
        });
        self.roles.insert(key, roles.clone().ok());
        roles.ok()
    }

    /// Asks for something once, for as long as there is time for one call.
    async fn ask<T>(&self, asking: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
        let by = self.by.min(Instant::now() + CALL);
        let asked = time::timeout_at(by, asking).await;
        asked.unwrap_or(Err(Trouble::Late { was_sent: true }))
    }
}
