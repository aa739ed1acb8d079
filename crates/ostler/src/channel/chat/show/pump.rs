//! Reads the log once for all answers that are shown, and begins a show with the
//! first event of a turn that somebody in a chat waits for.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time,
};
use tokio_util::sync::CancellationToken;

use super::{Live, Stage, act::Show, lock};
use crate::{
    channel::chat::{
        Chats, Share,
        draft::{Detail, Draft},
    },
    gateway::{
        inbound::{Origin, Payload},
        policy::Policy,
    },
    id::TurnId,
    store::{
        Conn, Store, StoreError, Topic, conversations,
        events::{self, StoredEvent},
        jobs,
        posts::Subject,
        turns::{self, TurnState},
    },
};

/// How many events are read at once.
const PAGE: u32 = 500;
/// How many turns that run are looked at when this gateway begins to speak in a chat.
const RUNNING: u32 = 10_000;
/// How many turns are remembered that nobody in a chat waits for.
const REMEMBERED: usize = 10_000;
/// The wait after the store failed.
const PAUSE: Duration = Duration::from_secs(2);
/// How long shows may take to end by themselves: less than the pump has for it.
const LEAVING: Duration = Duration::from_secs(4);

/// What one needs to know of a turn in order to show it.
struct Begun {
    subject: Subject,
    answers: Option<String>,
    /// What was said of it in this conversation, if something was.
    is_verbose: Option<bool>,
}

/// Whether a turn is shown.
enum Begin {
    Now(Arc<Stage>),
    /// Another gateway shows it; this one may have to later.
    Elsewhere,
    /// Nobody in a chat waits for it.
    Never,
}

/// How much of the log was read.
enum Read {
    All,
    /// There may be more.
    Some,
}

/// Whoever reads the log.
pub(super) struct Pump {
    pub(super) store: Store,
    pub(super) chats: Chats,
    pub(super) policy: watch::Receiver<Arc<Policy>>,
    pub(super) stages: Arc<Mutex<HashMap<Subject, Arc<Stage>>>>,
    /// The shows; those that take too long to end go with it.
    pub(super) tasks: JoinSet<()>,
    pub(super) stop: CancellationToken,
    /// Up to where the log was read; nothing before it was looked at.
    pub(super) after: Option<i64>,
    /// Turns that are shown.
    pub(super) turns: HashMap<TurnId, Arc<Stage>>,
    /// Turns that run and are not.
    pub(super) others: HashSet<TurnId>,
    /// The chats in which this gateway spoke when it last looked.
    pub(super) spoken_in: Vec<&'static str>,
}

impl Pump {
    pub(super) async fn work(mut self) {
        let mut wakeups = self.store.wakeups(Topic::Events);
        while !self.stop.is_cancelled() {
            let read = match self.after {
                None => self.newest().await,
                Some(number) => self.page(number).await,
            };
            match read {
                Ok(Read::Some) => {}
                Ok(Read::All) => {
                    tokio::select! {
                        _ = wakeups.next() => {}
                        () = self.stop.cancelled() => {}
                    }
                }
                Err(StoreError::Closed) => break,
                Err(error) => {
                    tracing::debug!(%error, "answers are not shown while the store is away");
                    self.stop.run_until_cancelled(time::sleep(PAUSE)).await;
                }
            }
        }
        for stage in lock(&self.stages).values() {
            stage.stop.cancel();
        }
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        // What hangs in a call of the chat is given up, and gone when this returns.
        if time::timeout(LEAVING, ended).await.is_err() {
            self.tasks.shutdown().await;
        }
    }

    /// Ends the shows that another gateway has now.
    fn leave_closed(&mut self) {
        for (subject, stage) in lock(&self.stages).iter() {
            if !self.chats.is_on_duty(&subject.channel) {
                stage.stop.cancel();
            }
        }
        self.turns.retain(|_, stage| !stage.stop.is_cancelled());
    }

    /// Begins what ran before this gateway spoke in a chat. A turn that waits for an
    /// answer says nothing more by itself.
    async fn take_over(&mut self) -> Result<(), StoreError> {
        let own = self.chats.own();
        if own.iter().any(|channel| !self.spoken_in.contains(channel)) {
            let running =
                self.store.read(RUNNING, |conn, limit| Box::pin(turns::running(conn, *limit)));
            for turn in running.await? {
                self.pick_up(turn).await?;
            }
        }
        self.spoken_in = own;
        Ok(())
    }

    /// Begins to show a turn with the last of it that was read.
    async fn pick_up(&mut self, turn: TurnId) -> Result<(), StoreError> {
        let (Some(after), false) = (self.after, self.turns.contains_key(&turn)) else {
            return Ok(());
        };
        let last = self
            .store
            .read((turn, after), |conn, (turn, after)| Box::pin(events::last(conn, *turn, *after)));
        match last.await? {
            Some(last) => self.event(&last).await,
            None => Ok(()),
        }
    }

    async fn newest(&mut self) -> Result<Read, StoreError> {
        let extent = self.store.read((), |conn, ()| Box::pin(events::extent(conn))).await?;
        self.after = Some(extent.newest);
        Ok(Read::All)
    }

    /// Takes the next events.
    async fn page(&mut self, after: i64) -> Result<Read, StoreError> {
        let page = self.store.read(after, |conn, after| Box::pin(events::read(conn, *after, PAGE)));
        let page = page.await?;
        self.take_over().await?;
        for event in &page {
            self.event(event).await?;
            // Not with the whole page: what a draft has taken it must not take again.
            self.after = Some(event.number);
        }
        Ok(if page.len() < PAGE as usize { Read::All } else { Read::Some })
    }

    async fn event(&mut self, stored: &StoredEvent) -> Result<(), StoreError> {
        let Some(turn) = stored.event.turn else { return Ok(()) };
        match self.chats.share() {
            Share::All => {}
            Share::Some => self.leave_closed(),
            Share::None => {
                self.leave_closed();
                return Ok(());
            }
        }
        if self.others.contains(&turn) {
            if stored.event.kind == "complete" {
                self.others.remove(&turn);
            }
            return Ok(());
        }
        let stage = match self.turns.get(&turn) {
            Some(stage) => Arc::clone(stage),
            None => match self.begin(turn, stored).await? {
                Begin::Now(stage) => {
                    self.turns.retain(|_, stage| !*stage.over.borrow());
                    self.turns.insert(turn, Arc::clone(&stage));
                    stage
                }
                Begin::Elsewhere => return Ok(()),
                Begin::Never => {
                    // Some of them never end; those that run are found again.
                    if self.others.len() >= REMEMBERED {
                        self.others.clear();
                    }
                    if stored.event.kind != "complete" {
                        self.others.insert(turn);
                    }
                    return Ok(());
                }
            },
        };
        stage.take(stored);
        if stored.event.kind == "complete" {
            self.turns.remove(&turn);
        }
        Ok(())
    }

    /// Begins to show a turn, if somebody in a chat waits for it.
    async fn begin(&mut self, turn: TurnId, first: &StoredEvent) -> Result<Begin, StoreError> {
        let begun = self.store.read(turn, |conn, turn| Box::pin(look(conn, *turn))).await?;
        let Some(Begun { subject, answers, is_verbose }) = begun else { return Ok(Begin::Never) };
        let Some(chat) = self.chats.get(&subject.channel) else { return Ok(Begin::Never) };
        if !self.chats.is_on_duty(&subject.channel) {
            return Ok(Begin::Elsewhere);
        }
        // What shows an earlier try ends first; the new one waits for that.
        let earlier = lock(&self.stages).get(&subject).cloned();
        if let Some(earlier) = &earlier {
            earlier.stop.cancel();
        }
        let detail = match (is_verbose, self.chats.detail(&subject.channel, &self.policy.borrow()))
        {
            (Some(true), _) => Detail::Verbose,
            (Some(false), Detail::Verbose) => Detail::Normal,
            (Some(false) | None, configured) => configured,
        };
        let stage = Arc::new(Stage {
            turn,
            live: Mutex::new(Live { draft: Draft::new(chat.limits(), detail), end: None }),
            news: Notify::new(),
            stop: self.stop.child_token(),
            over: watch::Sender::new(false),
        });
        self.replay(&stage, first).await?;
        lock(&self.stages).insert(subject.clone(), Arc::clone(&stage));
        // Looked at after it can be found: whoever sends the answer ends this first,
        // and there is no answer yet if the turn runs.
        let state = self.store.read(turn, |conn, turn| Box::pin(turns::find(conn, *turn))).await;
        if !matches!(&state, Ok(Some(turn)) if turn.state == TurnState::Running) {
            stage.over.send_replace(true);
            let mut stages = lock(&self.stages);
            // Whoever sends the answer has to wait for the one that ends.
            match earlier.filter(|earlier| !*earlier.over.borrow()) {
                Some(earlier) => stages.insert(subject, earlier),
                None => stages.remove(&subject),
            };
            return state.map(|_| Begin::Never);
        }
        let (store, shown) = (self.store.clone(), Arc::clone(&stage));
        let typing_every = self.policy.borrow().typing_every;
        let show = Show { chat, store, stage: shown, earlier, answers, typing_every };
        let stages = Arc::clone(&self.stages);
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(async move {
            show.run(subject.clone()).await;
            let mut stages = lock(&stages);
            if stages.get(&subject).is_some_and(|now| now.turn == turn) {
                stages.remove(&subject);
            }
        });
        Ok(Begin::Now(stage))
    }

    /// Takes what happened in a turn before this one heard of it.
    async fn replay(&self, stage: &Stage, first: &StoredEvent) -> Result<(), StoreError> {
        if first.event.seq <= 1 {
            return Ok(());
        }
        let mut after = 0;
        loop {
            let args = (stage.turn, after, PAGE);
            let page = self.store.read(args, |conn, (turn, after, limit)| {
                Box::pin(events::read_turn(conn, *turn, *after, *limit))
            });
            let page = page.await?;
            let is_last = page.len() < PAGE as usize;
            for event in page {
                if event.number >= first.number {
                    return Ok(());
                }
                stage.take(&event);
                after = event.number;
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

/// Finds out for whom a turn is. Nobody is shown a heartbeat, which may say nothing.
async fn look(conn: &mut Conn, turn: TurnId) -> Result<Option<Begun>, StoreError> {
    let Some(stored) = turns::find(conn, turn).await? else { return Ok(None) };
    let Some(job) = stored.turn.job else { return Ok(None) };
    let Some(job) = jobs::find(conn, job).await? else { return Ok(None) };
    let Ok(payload) = Payload::read(&job.payload) else { return Ok(None) };
    if payload.origin == Origin::Heartbeat {
        return Ok(None);
    }
    let conversation = conversations::find(conn, stored.turn.conversation).await?;
    let is_verbose = conversation.and_then(|it| it.settings().verbose);
    let Payload { channel, address: place, message, .. } = payload;
    let subject = Subject { id: job.id.to_string(), channel, place };
    Ok(Some(Begun { subject, answers: message, is_verbose }))
}
