//! What becomes of what happens on Discord: a message is stored or done at once, a
//! button is an answer. What is the same in all chats is in `chat::intake`; how it
//! all travels is up to `api` and `shard`, what is shown to `chat`.
//!
//! What is said at a place is dealt with in its order, and holds up no other place
//! (`lanes`). Discord waits three seconds for a word on buttons and commands: nothing
//! that takes long is between hearing of one and that word.

mod hear;
mod lanes;
mod missed;
mod pressed;
mod slash;

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::{JoinError, JoinSet},
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use self::{
    lanes::{Due, Lanes, Spot},
    slash::Received,
};
use super::{
    api::{Api, Given, Response},
    heard::{Heard, Place, Places, Slash, Ticket},
    shard::{Event, Happening, Position},
    slash::commands,
};
use crate::{
    channel::chat::intake::{Intake, NotTaken},
    clock::Millis,
    gateway::policy::Policy,
    store::{StoreError, choices},
};

/// How often it is noted where the connection stands.
const NOTE: Duration = Duration::from_secs(2);
/// The wait before a message is offered to the store again.
const AGAIN: Duration = Duration::from_secs(1);
/// The waits after Discord was not told of the commands. After the last one the next
/// connection has to do.
const UNTOLD: [Duration; 6] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(600),
    Duration::from_secs(3600),
];
/// How much is done at a time. Whoever waits, for Discord or for his turn, is not among it.
const AT_ONCE: usize = 200;
/// The name under which it is kept where the connection stands.
pub(super) const POSITION: &str = "discord_position";

/// Whoever deals with what happens. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) intake: Intake,
    pub(crate) api: Arc<Api>,
    pub(crate) policy: watch::Receiver<Arc<Policy>>,
    /// Room for what is done at a time.
    at_once: Arc<Semaphore>,
}

/// What has its turn at a place.
enum Deed {
    Heard(Box<Heard>),
    Slash(Box<Slash>, Received),
}

/// Something that is under way.
type Work = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// What is over.
enum Ended {
    /// A deed that had its turn.
    Turn { number: u64, lane: u64, dealt: Dealt },
    /// Something that waited for nobody.
    Aside { number: u64 },
    /// The look for what was said while nobody listened.
    Look { number: u64, found: Vec<Heard> },
    /// It was to be noted where the connection stands.
    Note { is_noted: bool },
}

/// What became of a deed.
enum Dealt {
    Done {
        /// A place that was not known before.
        learnt: Option<(String, Place)>,
    },
    /// It is to stop. It comes again: it is not noted that it was dealt with.
    Not,
}

/// What a desk has before it.
struct Round {
    lanes: Lanes<Deed>,
    /// What is under way; it goes with whoever waits for it.
    works: JoinSet<Ended>,
    /// Where threads are, as far as that had to be asked for.
    places: Places,
    /// Where the connection stands, as it is noted.
    noted: Option<Position>,
    note_at: Option<Instant>,
    noted_at: Option<Instant>,
    is_noting: bool,
    /// Whether nothing more is heard.
    is_ending: bool,
    /// Whether nothing more is begun.
    is_given_up: bool,
    /// Ends the attempts to tell Discord of the commands; nothing until it has to be told.
    registering: Option<CancellationToken>,
}

impl Desk {
    pub(crate) fn new(intake: Intake, api: Arc<Api>, policy: watch::Receiver<Arc<Policy>>) -> Self {
        Self { intake, api, policy, at_once: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Works until nothing more happens or it is to stop. A message is dealt with
    /// when it is stored; where the connection stands is noted after that, so that
    /// what was not dealt with is told again.
    pub(crate) async fn work(self, mut events: mpsc::Receiver<Event>) {
        let mut round = Round {
            lanes: Lanes::default(),
            works: JoinSet::new(),
            places: Places::default(),
            noted: None,
            note_at: None,
            noted_at: None,
            is_noting: false,
            is_ending: false,
            is_given_up: false,
            registering: None,
        };
        let mut policy = self.policy.clone();
        let mut has_policy = true;
        loop {
            let is_open = !round.is_ending && !round.lanes.is_full();
            if round.is_ending && round.works.is_empty() {
                break;
            }
            let note_at = round.note_at.filter(|_| !round.is_noting);
            // Each of them keeps what it has when another one is first.
            tokio::select! {
                event = events.recv(), if is_open => match event {
                    Some(event) => self.happened(event, &mut round),
                    None => round.is_ending = true,
                },
                Some(ended) = round.works.join_next(), if !round.works.is_empty() => {
                    if !self.ended(ended, &mut round) {
                        // What runs is finished, and nothing else begun.
                        (round.is_ending, round.is_given_up) = (true, true);
                        events.close();
                    }
                }
                changed = policy.changed(), if has_policy => {
                    has_policy = changed.is_ok();
                    // There may be other agents now.
                    if has_policy && round.registering.is_some() {
                        self.tell_commands(&mut round);
                    }
                }
                () = time::sleep_until(note_at.unwrap_or_else(Instant::now)), if note_at.is_some() => {
                    (round.note_at, round.is_noting) = (None, true);
                    round.noted = round.lanes.position().cloned();
                    let (desk, position) = (self.clone(), round.noted.clone());
                    round.works.spawn(async move {
                        Ended::Note { is_noted: desk.note(position).await }
                    });
                }
            }
            if !round.is_given_up {
                for Due { number, lane, what } in round.lanes.due() {
                    let work = self.begin(number, lane, what, &round);
                    round.works.spawn(work);
                }
            }
            if round.lanes.position() != round.noted.as_ref() && round.note_at.is_none() {
                // At once after a silence: an old place is better than none.
                let due = round.noted_at.map_or_else(Instant::now, |at| at + NOTE);
                round.note_at = Some(due);
            }
        }
        let position = round.lanes.position().filter(|at| Some(*at) != round.noted.as_ref());
        self.note(position.cloned()).await;
    }

    /// Notes where the connection stands; returns whether that is so now.
    async fn note(&self, position: Option<Position>) -> bool {
        let Some(text) = position.and_then(|position| serde_json::to_string(&position).ok()) else {
            return true;
        };
        let args = (text, Millis::now());
        let noted = self.intake.store.write_repeatable(args, |conn, (text, now)| {
            Box::pin(choices::keep(conn, POSITION, text, *now))
        });
        let noted: Result<(), StoreError> = noted.await;
        if let Err(error) = &noted {
            tracing::debug!(%error, "where the connection to Discord stands is not noted");
        }
        noted.is_ok()
    }

    /// Takes something that happened: nothing is waited for here.
    fn happened(&self, event: Event, round: &mut Round) {
        let number = round.lanes.open(event.position);
        match event.happening {
            Happening::Connected { bot, missed_since, .. } => {
                self.tell_commands(round);
                let Some(since) = missed_since else { return round.lanes.close(number) };
                round.lanes.hold();
                let desk = self.clone();
                round.works.spawn(async move {
                    let missed = Box::pin(desk.missed(since, &bot));
                    let found = desk.intake.stop.run_until_cancelled(missed).await;
                    Ended::Look { number, found: found.unwrap_or_default() }
                });
            }
            Happening::Heard(heard) => {
                // What people say to each other waits for nothing, and nothing for it.
                if self.is_for_others(&heard, round.places.get(&heard.channel)) {
                    return round.lanes.close(number);
                }
                let spot = heard.spot();
                round.lanes.put(number, spot, Deed::Heard(Box::new(heard)));
            }
            Happening::Slash(slash) => {
                let (channel, message) = (slash.channel.clone(), slash.ticket.id.clone());
                let received = self.receive(&slash);
                let deed = Deed::Slash(Box::new(slash), received);
                round.lanes.put(number, Spot { channel, message }, deed);
            }
            Happening::Pressed(pressed) => {
                let desk = self.clone();
                round.works.spawn(async move {
                    let stop = &desk.intake.stop;
                    stop.run_until_cancelled(desk.pressed(pressed)).await;
                    Ended::Aside { number }
                });
            }
        }
    }

    /// Begins a deed whose turn it is.
    fn begin(&self, number: u64, lane: u64, deed: Deed, round: &Round) -> Work {
        let desk = self.clone();
        let known = match &deed {
            Deed::Heard(heard) => round.places.get(&heard.channel).cloned(),
            Deed::Slash(..) => None,
        };
        Box::pin(async move {
            let dealt = match deed {
                Deed::Heard(heard) => desk.hear(*heard, known).await,
                Deed::Slash(slash, received) => desk.slash(&slash, received).await,
            };
            Ended::Turn { number, lane, dealt }
        })
    }

    /// Takes what is over; returns whether to go on.
    fn ended(&self, ended: Result<Ended, JoinError>, round: &mut Round) -> bool {
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => {
                tracing::error!(%error, "something that happened on Discord was not dealt with");
                return false;
            }
        };
        match ended {
            Ended::Turn { dealt: Dealt::Not, .. } => return false,
            Ended::Turn { number, lane, dealt: Dealt::Done { learnt } } => {
                if let Some((channel, place)) = learnt {
                    round.places.put(&channel, place);
                }
                round.lanes.ended(number, lane);
            }
            // What was not done because of a stop is told again.
            Ended::Aside { .. } | Ended::Look { .. } if self.intake.stop.is_cancelled() => {
                return false;
            }
            Ended::Aside { number } => round.lanes.close(number),
            Ended::Look { number, found } => {
                let found = found.into_iter();
                let found = found.map(|heard| (heard.spot(), Deed::Heard(Box::new(heard))));
                round.lanes.release(number, found.collect());
            }
            Ended::Note { is_noted } => {
                (round.noted_at, round.is_noting) = (Some(Instant::now()), false);
                round.noted = round.noted.take().filter(|_| is_noted);
            }
        }
        true
    }

    /// Does something beside what happens next.
    fn spawn<F>(&self, work: impl FnOnce(Self) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.intake.spawn(work(self.clone()));
    }

    /// Tries something until the store takes it; nothing if that is not to be any
    /// more. It comes again then: it is not noted that it was dealt with.
    async fn insist<T, E, F>(&self, attempt: impl Fn() -> F) -> Option<T>
    where
        E: Into<NotTaken>,
        F: Future<Output = Result<T, E>>,
    {
        loop {
            let attempted = {
                // It is not closed by anybody.
                let _room = self.at_once.acquire().await.ok();
                // What is done takes memory, what waits hardly any.
                Box::pin(attempt()).await
            };
            let error = match attempted.map_err(Into::into) {
                Ok(done) => return Some(done),
                Err(NotTaken::Stopping | NotTaken::Store(StoreError::Closed)) => return None,
                Err(NotTaken::Store(error)) => error,
            };
            tracing::warn!(error = error.chain(), "a message from Discord waits for the store");
            self.intake.stop.run_until_cancelled(time::sleep(AGAIN)).await?;
        }
    }

    /// Sees to it that Discord knows the commands as they are now.
    fn tell_commands(&self, round: &mut Round) {
        let until = CancellationToken::new();
        if let Some(earlier) = round.registering.replace(until.clone()) {
            earlier.cancel();
        }
        self.spawn(|desk| async move {
            until.run_until_cancelled(desk.register()).await;
        });
    }

    /// Tells Discord which commands there are, if it does not know; more than once if
    /// that may help.
    async fn register(&self) {
        for pause in UNTOLD {
            let policy = Arc::clone(&self.policy.borrow());
            let agents = policy.agents.availability().into_iter().filter(|(_, can_run)| *can_run);
            let agents: Vec<String> = agents.map(|(name, _)| name).collect();
            match self.api.register(&commands(&agents)).await {
                Ok(true) => return tracing::info!("Discord knows the commands now"),
                Ok(false) => return,
                Err(error) => tracing::warn!(%error, "Discord was not told of the commands"),
            }
            time::sleep(pause).await;
        }
    }

    /// Gives the first answer to a button or a command; nothing if it did not get there.
    async fn respond(&self, ticket: &Ticket, response: Response) -> Option<Given> {
        match self.api.respond(ticket, &response).await {
            Ok(given) => Some(given),
            Err(error) => {
                tracing::info!(%error, "an interaction could not be answered");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
