//! Turns that an agent begins by itself, such as when work in the background has
//! ended. They belong to the conversation whose session they run in: their
//! events are in its log, and what they say is sent like any reply.
//!
//! No job stands behind them. One that is cut off is not begun again.

use ostler_core::{
    event::{EventBody, TurnReport},
    failure::FailureKind,
    turn::Turn,
};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    begin::{Beginning, Place},
    ending::{self, Turned},
    log::Log,
    persistence::{Persistence, Then},
    record::record,
    requests::Requests,
    result::{self, Outcome},
};
use crate::{
    clock::Millis,
    id::TurnId,
    store::{
        BoxFuture, Conn, Store, StoreError,
        events::{self, Belonging, NewEvent},
        sessions,
        turns::{self, NewTurn},
    },
    telemetry::{Tally, Telemetry, TurnStatus},
};

/// How many such turns may wait to be listened to; further ones are forgotten.
const AHEAD: usize = 8;

/// Listens to turns that nobody asked for. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Unasked {
    pub(crate) store: Store,
    pub(crate) log: Log,
    pub(crate) telemetry: Telemetry,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

/// Whose turns they are.
struct Listener {
    unasked: Unasked,
    place: Place,
    agent: String,
    /// Where its agent works.
    cwd: Option<String>,
}

impl Unasked {
    /// Listens to the session of a turn that begins, for as long as its process
    /// has it open.
    pub(crate) fn listener(
        &self,
        beginning: &Beginning,
        cwd: Option<String>,
    ) -> mpsc::Sender<Turn> {
        let (turns, begun) = mpsc::channel(AHEAD);
        // Its command will be over.
        let belongs = beginning.place.belongs.as_ref().map(Belonging::of_project);
        let place = Place { belongs, ..beginning.place.clone() };
        let agent = beginning.agent.name.to_string();
        let listener = Listener { unasked: self.clone(), place, agent, cwd };
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            stop.run_until_cancelled(listener.listen(begun)).await;
        });
        turns
    }
}

impl Listener {
    async fn listen(self, mut begun: mpsc::Receiver<Turn>) {
        while let Some(turn) = begun.recv().await {
            if let Ok(id) = turn.id().as_str().parse() {
                self.follow(turn, id).await;
            }
        }
    }

    async fn follow(&self, mut turn: Turn, id: TurnId) {
        let begins = NewTurn {
            id,
            conversation: self.place.conversation,
            job: None,
            attempt: 1,
            agent: self.agent.clone(),
            begun_at: Millis::now(),
        };
        self.write(begins, |conn, turn| Box::pin(begin(conn, turn))).await;
        let mut requests = Requests::new(&self.unasked.store, &self.place, id);
        let mut last = Vec::new();
        loop {
            let event = tokio::select! {
                event = turn.next() => event,
                () = requests.answered() => {
                    requests.answer(&turn).await;
                    continue;
                }
            };
            let Some(event) = event else { return };
            self.unasked.telemetry.event(&self.agent, &event.body);
            let request = requests.event(&event).await;
            let stored = record(self.place.whose(), id, &event, request);
            if let EventBody::Complete(report) = event.body {
                last.push(stored);
                self.end(id, &report, last, requests.has_asked()).await;
                return;
            }
            if matches!(event.body, EventBody::Error(_)) {
                last.push(stored);
            } else if self.unasked.log.append(stored).await.is_err() {
                return;
            }
        }
    }

    async fn end(&self, id: TurnId, report: &TurnReport, mut last: Vec<NewEvent>, has_asked: bool) {
        // What happened before the end is stored before it, or with it.
        let Ok(mut all) = self.unasked.log.take_back(id).await else { return };
        all.append(&mut last);
        let text = serde_json::to_string(report).unwrap_or_else(|_| "{}".to_owned());
        let project = self.place.belongs.as_ref().map(|belongs| belongs.project);
        let tally = Tally::new(&self.agent, project, &text);
        let status = match &report.error {
            None => TurnStatus::Completed,
            Some(failure) if failure.kind == FailureKind::Cancelled => TurnStatus::Cancelled,
            Some(_) => TurnStatus::Failed,
        };
        self.unasked.telemetry.turn(&tally, status);
        let (agent, cwd) = (self.agent.clone(), self.cwd.clone());
        let turn = Turned { id, agent, report: text, has_asked, cwd };
        let outcome = Outcome::of(report, self.place.target.clone());
        let memo = result::session(report);
        let args = (self.place.clone(), turn, outcome, memo, all.clone(), Millis::now());
        let written = self.write(args, |conn, (place, turn, outcome, memo, all, now)| {
            Box::pin(async move {
                if !turns::end(conn, turn.id, &turn.report, *now).await? {
                    // It was written before, by a try that nobody heard of.
                    return Ok(());
                }
                if let Some(memo) = memo {
                    // The conversation may have begun afresh meanwhile.
                    let session = ending::stored(memo, *now);
                    sessions::refresh(conn, place.conversation, &turn.agent, &session).await?;
                }
                ending::say(conn, place, turn, outcome, *now).await?;
                events::append(conn, all).await.map(drop)
            })
        });
        if written.await == Then::GiveUp {
            // What happened stays on record all the same.
            self.unasked.log.append_all(all).await.ok();
        }
    }

    /// Writes, for as long as it takes. Gives up only if the store says no.
    async fn write<A, F>(&self, args: A, body: F) -> Then
    where
        A: Clone + Send + Sync + 'static,
        F: for<'a> Fn(&'a mut Conn, &'a A) -> BoxFuture<'a, Result<(), StoreError>>
            + Copy
            + Send
            + Sync
            + 'static,
    {
        let mut persistence = Persistence::new("a turn that nobody asked for");
        while let Err(error) = self.unasked.store.write_repeatable(args.clone(), body).await {
            if matches!(error, StoreError::Closed) {
                break;
            }
            if persistence.after(&error).await == Then::GiveUp {
                return Then::GiveUp;
            }
        }
        Then::Again
    }
}

/// Stores that a turn begins, once.
async fn begin(conn: &mut Conn, turn: &NewTurn) -> Result<(), StoreError> {
    match turns::find(conn, turn.id).await? {
        Some(_) => Ok(()),
        None => turns::begin(conn, turn).await,
    }
}
