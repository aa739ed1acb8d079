//! How soon buttons and commands are answered, by a clock that the tests move.

use std::sync::mpsc::{self as threads, Sender};

use serde_json::json;
use tokio::task;
use tokio_util::task::TaskTracker;

use super::*;
use crate::{
    channel::{
        DISCORD,
        discord::{
            heard::{Person, Pressed},
            testing::{Asked, Server},
        },
        pace::Pace,
    },
    config::Discord,
    gateway::testing::{Knobs, Rig},
    id::PermissionId,
    store::{
        Store,
        testing::{on_sqlite, stall},
    },
};

/// How long Discord waits for a first answer, less what its way may take.
const WAITS: Duration = Duration::from_millis(2500);
/// How long the clock stands still at most, by the machine's own.
const STILL: Duration = Duration::from_secs(30);
/// How far it is moved at once.
const STEP: Duration = Duration::from_millis(100);

const PUT_OFF: u64 = 5;
const NOTHING: u64 = 6;

/// A desk at which Ada may ask, and Discord as it hears of it.
struct Office {
    rig: Rig,
    server: Server,
    events: mpsc::Sender<Event>,
    stop: CancellationToken,
    work: JoinSet<()>,
    /// As long as it is there nobody but the test moves the clock.
    still: Option<Sender<()>>,
    /// When the clock was stopped, and how far it was moved since.
    since: Instant,
    moved: Duration,
}

impl Office {
    async fn open(store: Store) -> Self {
        let discord = Discord { users: vec!["7".to_owned()], ..Discord::default() };
        let rig = Rig::new(store.clone(), Knobs { discord, ..Knobs::default() }).await;
        let server = Server::start().await;
        let api = Arc::new(Api::new("token", Some(&server.url)).unwrap());
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let intake = Intake {
            channel: DISCORD,
            people: DISCORD,
            chat: Arc::clone(&api) as Arc<_>,
            gateway: rig.gateway.clone(),
            store,
            pace: Arc::new(Pace::new(20)),
            tasks,
            stop: stop.clone(),
        };
        let desk = Desk::new(intake, api, rig.policy.subscribe());
        let (events, happening) = mpsc::channel(9);
        let mut work = JoinSet::new();
        work.spawn(desk.work(happening));
        let (since, moved) = (Instant::now(), Duration::ZERO);
        Self { rig, server, events, stop, work, still: None, since, moved }
    }

    /// Stops the clock.
    fn freeze(&mut self) {
        time::pause();
        let (still, held) = threads::channel();
        // It does not move by itself while such a task runs.
        task::spawn_blocking(move || held.recv_timeout(STILL));
        (self.still, self.since) = (Some(still), Instant::now());
    }

    async fn happens(&self, happening: Happening) {
        self.events.send(Event { position: None, happening }).await.unwrap();
    }

    /// Lets the time pass that Discord waits.
    async fn wait(&mut self) {
        while self.moved < WAITS {
            time::advance(STEP).await;
            self.moved += STEP;
        }
    }

    /// Returns what Discord is told next, which has to be a first answer: to what, and of
    /// which kind.
    async fn answered(&mut self) -> (String, u64) {
        let asked = self.server.next().await;
        assert_eq!(self.since.elapsed(), self.moved, "{} came too late", asked.what);
        let path = asked.what.strip_prefix("POST /interactions/").expect(&asked.what);
        let id = path.strip_suffix("/ticket/callback").expect(path).to_owned();
        let kind = asked.json()["type"].as_u64().unwrap();
        asked.answer(204, &json!(null));
        (id, kind)
    }

    async fn close(mut self) {
        time::resume();
        drop((self.still, self.events));
        self.stop.cancel();
        self.work.join_next().await.unwrap().unwrap();
        self.rig.stop().await;
    }
}

fn ticket(id: &str) -> Ticket {
    Ticket { application: "800".to_owned(), id: id.to_owned(), token: "ticket".to_owned() }
}

fn ada() -> Person {
    Person { id: "7".to_owned(), name: "ada".to_owned(), is_bot: false }
}

fn slash(id: &str, name: &str) -> Happening {
    Happening::Slash(Slash {
        ticket: ticket(id),
        channel: "50".to_owned(),
        guild: Some("10".to_owned()),
        parent: None,
        person: ada(),
        roles: Vec::new(),
        name: name.to_owned(),
        options: vec![("prompt".to_owned(), "hay".to_owned())],
    })
}

fn pressed(id: &str) -> Happening {
    Happening::Pressed(Pressed {
        ticket: ticket(id),
        channel: "50".to_owned(),
        guild: Some("10".to_owned()),
        parent: None,
        message: Some("60".to_owned()),
        person: ada(),
        roles: Vec::new(),
        id: format!("{}:allow", PermissionId::new()),
        text: None,
    })
}

/// A message of which Discord has to be asked where it was written.
fn said() -> Happening {
    Happening::Heard(Heard {
        message: "61".to_owned(),
        channel: "50".to_owned(),
        guild: Some("10".to_owned()),
        parent: None,
        is_astray: true,
        channel_name: None,
        author: ada(),
        roles: Vec::new(),
        is_unranked: false,
        text: "oats".to_owned(),
        is_mentioned: true,
        attachments: Vec::new(),
        answers_bot: false,
    })
}

#[tokio::test]
async fn a_button_is_answered_at_once_and_a_command_in_time_although_the_store_says_nothing() {
    on_sqlite(async |store| {
        let mut office = Office::open(store.clone()).await;
        let stalled = stall(&store).await;
        office.freeze();
        office.happens(slash("100", "ask")).await;
        office.happens(slash("101", "status")).await;
        office.happens(pressed("102")).await;
        assert_eq!(office.answered().await, ("102".to_owned(), NOTHING));
        office.wait().await;
        let mut answered = [office.answered().await, office.answered().await];
        answered.sort();
        assert_eq!(answered, ["100", "101"].map(|id| (id.to_owned(), PUT_OFF)));
        drop(stalled);
        office.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_command_is_answered_in_time_although_a_message_before_it_waits_for_discord() {
    on_sqlite(async |store| {
        let mut office = Office::open(store).await;
        office.happens(said()).await;
        let asked: Asked = office.server.next().await;
        assert_eq!(asked.what, "GET /channels/50");
        office.freeze();
        office.happens(slash("101", "status")).await;
        // What is for the gateway is put off as soon as it is known who may ask.
        assert_eq!(office.answered().await, ("101".to_owned(), PUT_OFF));
        office.happens(slash("100", "ask")).await;
        office.wait().await;
        assert_eq!(office.answered().await, ("100".to_owned(), PUT_OFF));
        drop(asked);
        office.close().await;
    })
    .await;
}
