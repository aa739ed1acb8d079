//! One attempt at a job: the turn, from its start to the write that ends it.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use ostler_core::{
    event::{Event, EventBody, Status, TurnReport},
    failure::{Failure, FailureKind, chain},
    registry::Agent as _,
    request::{MemoKeeping, TurnRequest},
    turn::Turn,
};
use serde_json::json;
use tokio::sync::watch;

use super::{
    asking,
    begin::{Beginning, Begun, Place, joining},
    ending::{self, Ending, SessionEnd, Turned, status},
    joined,
    log::Log,
    policy::Policy,
    record::record,
    result::{self, Outcome},
    retry::{self, Next, Session},
    unasked::Unasked,
};
use crate::{
    clock::Millis,
    config::Busy,
    id::{JobId, PermissionId, TurnId},
    queue::{JobEnd, JobState, Joined, Queue, Ticket},
    store::{Store, Topic, Wakeups, events::NewEvent, jobs, sessions},
};

/// What is wanted of a running job. Later ones are never less urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wish {
    /// Go on.
    Nothing,
    /// Somebody wants it to end.
    Cancel,
    /// The gateway shuts down: end it, and leave the job for later.
    Release,
    /// It is not this gateway's any more: end it, and say nothing about it.
    Lost,
}

/// What every attempt works with.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    pub(crate) store: Store,
    pub(crate) queue: Queue,
    pub(crate) log: Log,
    pub(crate) unasked: Unasked,
}

/// A job that was claimed.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) ticket: Ticket,
    pub(crate) turn: TurnId,
    pub(crate) policy: Arc<Policy>,
    pub(crate) begun: Begun,
}

/// Makes an attempt. Whatever happens, the job has been ended or put back when
/// this returns, unless it was lost or the store closed.
pub(crate) async fn make(tools: Tools, claimed: Claimed, wish: watch::Receiver<Wish>) {
    let Claimed { ticket, turn, policy, begun } = claimed;
    let now = Millis::now();
    let ending = match begun {
        Begun::Turn(beginning) => {
            let attempt = Attempt::new(&tools, ticket.clone(), turn, policy, *beginning, wish);
            let Some(ending) = attempt.run().await else { return };
            ending
        }
        Begun::Reset(place) => {
            let text = "the next message begins a new session";
            let event = status(&place, None, "fresh_session", text, &[], now);
            let outcome = Outcome::said(capitalised(text), place.target.clone());
            Ending {
                session: SessionEnd::Forget,
                events: vec![event],
                ..without_turn(JobEnd::Done, Some(place), Some(outcome))
            }
        }
        Begun::Fixed(place, text) => {
            let outcome = Outcome::said(text, place.target.clone());
            without_turn(JobEnd::Done, Some(place), Some(outcome))
        }
        Begun::Unusable(place, reason) => {
            let failed = |place: &Place| {
                Outcome::failed(FailureKind::InvalidRequest, reason.clone(), place.target.clone())
            };
            let outcome = place.as_ref().map(failed);
            without_turn(JobEnd::Dead { reason }, place, outcome)
        }
    };
    ending::write(&tools.queue, &ticket, ending).await;
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

fn without_turn(end: JobEnd, place: Option<Place>, outcome: Option<Outcome>) -> Ending {
    let (turn, session, events) = (None, SessionEnd::AsItWas, Vec::new());
    Ending { end, joined: Joined::none(), place, turn, session, outcome, events }
}

/// A turn that runs.
struct Attempt<'a> {
    tools: &'a Tools,
    ticket: Ticket,
    id: TurnId,
    policy: Arc<Policy>,
    beginning: Beginning,
    wish: watch::Receiver<Wish>,
    /// The session that is stored.
    session: Option<String>,
    /// Requests that wait for an answer, by the names that the agent gave them.
    open: HashMap<String, PermissionId>,
    /// Messages that were handed to the running turn.
    steered: Vec<JobId>,
    /// What is written with the end.
    last: Vec<NewEvent>,
    /// Where the agent works, and its home if it has one of its own.
    folders: (PathBuf, Option<PathBuf>),
}

impl<'a> Attempt<'a> {
    fn new(
        tools: &'a Tools,
        ticket: Ticket,
        id: TurnId,
        policy: Arc<Policy>,
        beginning: Beginning,
        wish: watch::Receiver<Wish>,
    ) -> Self {
        let session = beginning.memo.as_ref().map(|memo| memo.id.clone());
        let (open, steered, last, folders) = Default::default();
        Self { tools, ticket, id, policy, beginning, wish, session, open, steered, last, folders }
    }

    /// Runs the turn; returns what came of it, unless that is nobody's business
    /// any more.
    async fn run(mut self) -> Option<Ending> {
        let (agent, request) = self.request();
        let agent = agent.with_unasked(self.tools.unasked.listener(&self.beginning));
        self.folders = (request.options.cwd.clone(), request.options.home.clone());
        let turn = match agent.start(request).await {
            Ok(turn) => turn,
            Err(error) => {
                let (_, failure) = crate::cli::refusal(&error);
                return Some(self.not_started(&failure, chain(&error)));
            }
        };
        let report = self.follow(turn).await;
        if *self.wish.borrow() == Wish::Lost {
            return None;
        }
        // What happened before the end is stored before it.
        self.tools.log.flush().await.ok()?;
        Some(match report {
            Some(report) => self.ended(&report),
            // The host was shut down under it.
            None => self.put_back(),
        })
    }

    fn request(&self) -> (ostler_core::CliAgent, TurnRequest) {
        let Beginning { payload, agent, memo, joined, .. } = &self.beginning;
        let (cli, mut request) = self.policy.agents.prepare(agent, payload);
        let joined = joined.iter().map(|(_, payload)| payload.text.as_str());
        request.prompt = joined::together([payload.text.as_str()].into_iter().chain(joined));
        if self.beginning.joined.is_empty() {
            request.prompt.clone_from(&payload.text);
        }
        request.turn = Some(self.id.into());
        request.attempt = u32::try_from(self.ticket.attempt).unwrap_or(u32::MAX);
        request.memos = MemoKeeping::Caller;
        if let Some(memo) = memo.clone() {
            request = request.resume(memo);
        }
        (cli, request)
    }

    /// Follows the turn to its end, and does what is wanted of it meanwhile.
    async fn follow(&mut self, mut turn: Turn) -> Option<TurnReport> {
        let mut answers = self.tools.store.wakeups(Topic::Wishes);
        let mut messages = self.tools.store.wakeups(Topic::Jobs);
        let steers = self.policy.rules.busy == Busy::Steer;
        let mut wish = self.wish.clone();
        let mut has_wish = true;
        loop {
            // All of these can be dropped half-way without losing anything.
            tokio::select! {
                event = turn.next() => match event {
                    None => return None,
                    Some(event) => if let Some(report) = self.event(event).await {
                        return Some(report);
                    },
                },
                changed = wish.changed(), if has_wish => {
                    has_wish = changed.is_ok();
                    match *wish.borrow_and_update() {
                        Wish::Nothing => {}
                        Wish::Cancel | Wish::Release => turn.cancel(),
                        Wish::Lost => turn.kill(),
                    }
                }
                _ = waiting(&mut answers), if !self.open.is_empty() => self.answer(&turn).await,
                _ = waiting(&mut messages), if steers => self.steer(&turn).await,
            }
        }
    }

    /// Stores an event; returns the report if it is the last.
    async fn event(&mut self, event: Event) -> Option<TurnReport> {
        if *self.wish.borrow() == Wish::Lost {
            return None;
        }
        let mut id = None;
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others are only stored")]
        match &event.body {
            EventBody::Permission(permission) => {
                let asked = asking::Asked {
                    conversation: self.beginning.place.conversation,
                    turn: self.id,
                    of: self.beginning.place.sender.clone(),
                    permission,
                };
                let stored = asking::store(&self.tools.store, asked).await;
                if let Some(stored) = stored {
                    self.open.insert(permission.request.clone(), stored);
                }
                id = stored;
            }
            EventBody::Status(Status::PermissionResolved { request, decision, by }) => {
                if let Some(id) = self.open.remove(request) {
                    asking::settle(&self.tools.store, id, *decision, *by).await;
                }
            }
            EventBody::Status(Status::Session { session_id }) => self.keep(session_id).await,
            _ => {}
        }
        let stored = record(self.beginning.place.conversation, self.id, &event, id);
        if let EventBody::Complete(report) = event.body {
            self.last.push(stored);
            return Some(*report);
        }
        if matches!(event.body, EventBody::Error(_)) {
            self.last.push(stored);
        } else {
            // It is closed only after the last turn has ended.
            self.tools.log.append(stored).await.ok();
        }
        None
    }

    /// Keeps a session as soon as it has a name: if this gateway is killed, the
    /// next attempt goes on with it.
    async fn keep(&mut self, session: &str) {
        if self.session.as_deref() == Some(session) {
            return;
        }
        self.session = Some(session.to_owned());
        let agent = self.beginning.agent.name.to_string();
        let mut memo = ostler_core::Memo::of_id(agent.clone(), session);
        memo.cwd = Some(self.folders.0.clone());
        memo.home.clone_from(&self.folders.1);
        let now = Millis::now();
        let args = (self.beginning.place.conversation, agent, ending::stored(&memo, now));
        let kept =
            self.tools.store.write_repeatable(args, |conn, (conversation, agent, session)| {
                Box::pin(sessions::keep(conn, *conversation, agent, session))
            });
        if let Err(error) = kept.await {
            // It is stored again with the end of the turn.
            tracing::warn!(%error, "the name of a session could not be stored yet");
        }
    }

    /// Hands the turn the answers that were given to its requests.
    async fn answer(&mut self, turn: &Turn) {
        for (request, answer) in asking::answers(&self.tools.store, self.id, &self.open).await {
            self.open.remove(&request);
            // One that is no longer open was decided meanwhile, and its event says so.
            turn.answer(&request, answer).await.ok();
        }
    }

    /// Hands the turn what has come since it began.
    async fn steer(&mut self, turn: &Turn) {
        let args = self.ticket.lane.clone();
        let behind = self
            .tools
            .store
            .read(args, |conn, lane| Box::pin(jobs::waiting_behind(conn, lane, asking::AT_ONCE)));
        let Ok(behind) = behind.await else { return };
        for (job, payload) in joining(&self.beginning.payload, behind) {
            if self.steered.contains(&job) {
                continue;
            }
            // What it does not take is its own turn, later.
            if turn.steer(&payload.text).await.is_err() {
                return;
            }
            self.steered.push(job);
        }
    }

    /// Makes the end of a turn that never began.
    fn not_started(self, failure: &Failure, why: String) -> Ending {
        let target = self.beginning.place.target.clone();
        let report = json!({
            "agent": self.beginning.agent.name, "is_error": true, "response_text": why,
            "error": { "kind": failure.kind.code(), "message": why,
                       "retryable": failure.kind.retryable() },
        });
        let outcome = Outcome::failed(failure.kind, why, target);
        self.failed(failure, outcome, report.to_string(), SessionEnd::AsItWas)
    }

    /// Makes the end of a turn that ran.
    fn ended(self, report: &TurnReport) -> Ending {
        let stored = result::session(report);
        let session = stored.map_or(SessionEnd::AsItWas, |memo| SessionEnd::Keep(Box::new(memo)));
        let outcome = Outcome::of(report, self.beginning.place.target.clone());
        let text = serde_json::to_string(report).unwrap_or_else(|_| "{}".to_owned());
        match &report.error {
            None => self.ending(JobEnd::Done, session, Some(outcome), text),
            Some(failure) if failure.kind == FailureKind::Cancelled => {
                self.stopped(failure, session, outcome, text)
            }
            Some(failure) => self.failed(failure, outcome, text, session),
        }
    }

    /// Makes the end of a turn that somebody stopped.
    fn stopped(
        self,
        failure: &Failure,
        session: SessionEnd,
        outcome: Outcome,
        report: String,
    ) -> Ending {
        let wish = *self.wish.borrow();
        let end = match wish {
            Wish::Release => JobEnd::Release,
            Wish::Nothing | Wish::Cancel | Wish::Lost => {
                JobEnd::Cancelled { reason: failure.message.clone() }
            }
        };
        self.ending(end, session, Some(outcome), report)
    }

    /// Makes the end of a turn that failed: it is tried again, or not.
    fn failed(
        mut self,
        failure: &Failure,
        outcome: Outcome,
        report: String,
        session: SessionEnd,
    ) -> Ending {
        let rules = self.policy.retry_rules(&self.beginning.payload.wishes);
        let now = Millis::now();
        let reason = format!("{}: {}", failure.kind.code(), failure.message);
        match retry::decide(failure, &self.beginning.earlier, rules) {
            Next::GiveUp => self.ending(JobEnd::Dead { reason }, session, Some(outcome), report),
            Next::Again { number, delay, session: keep } => {
                let (place, turn) = (&self.beginning.place, Some(self.id));
                if let Some(number) = number {
                    let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
                    let fields = [
                        ("attempt", json!(number)),
                        ("max", json!(rules.max)),
                        ("delay_ms", json!(delay_ms)),
                    ];
                    self.last.push(status(place, turn, "retry", &reason, &fields, now));
                }
                let session = match keep {
                    Session::Keep => session,
                    Session::Drop => {
                        let text = "the next try begins a new session";
                        self.last.push(status(place, turn, "fresh_session", text, &[], now));
                        SessionEnd::Forget
                    }
                };
                let end = JobEnd::Retry { not_before: now.after(delay), reason };
                self.ending(end, session, Some(outcome), report)
            }
        }
    }

    /// Leaves the job for later, without a word about the turn.
    fn put_back(self) -> Ending {
        without_turn(JobEnd::Release, Some(self.beginning.place), None)
    }

    fn ending(
        self,
        end: JobEnd,
        session: SessionEnd,
        outcome: Option<Outcome>,
        report: String,
    ) -> Ending {
        let with = self.beginning.joined.iter().map(|(job, _)| *job).chain(self.steered);
        let state = match end {
            JobEnd::Done => Some(JobState::Done),
            JobEnd::Cancelled { .. } => Some(JobState::Cancelled),
            // They get a turn of their own.
            JobEnd::Dead { .. } | JobEnd::Retry { .. } | JobEnd::Release => None,
        };
        let joined = match state {
            Some(state) => {
                let reason = joined::reason(self.ticket.job);
                Joined { jobs: with.collect(), state, reason }
            }
            None => Joined::none(),
        };
        let agent = self.beginning.agent.name.to_string();
        Ending {
            end,
            joined,
            place: Some(self.beginning.place),
            turn: Some(Turned { id: self.id, agent, report }),
            session,
            outcome,
            events: self.last,
        }
    }
}

async fn waiting(wakeups: &mut Wakeups) {
    wakeups.next().await;
}
