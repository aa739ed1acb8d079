//! One attempt at a job: the turn, from its start to the write that ends it.

use std::sync::Arc;

use ostler_core::{
    CliAgent,
    cli_agent::StartError,
    event::{Event, EventBody, Status, TurnReport},
    failure::{Failure, FailureKind},
    registry::Agent as _,
    request::{MemoKeeping, TurnRequest},
    turn::Turn,
};
use tokio::sync::watch;

use super::{
    begin::{Beginning, Begun, Place},
    conclusion::{Conclusion, without_turn},
    ending::{self, Ending, SessionEnd, status},
    fetching, instructions,
    opened::Opened,
    policy::Policy,
    program,
    record::{self, record},
    requests::Requests,
    result::Outcome,
    steering::Steering,
    telling::{self, News},
    text::{self, Question},
    tools::Tools,
};
use crate::{
    clock::Millis,
    config::Busy,
    id::TurnId,
    project,
    queue::{JobEnd, JobState, Ticket},
    store::{Topic, events::NewEvent},
    telemetry::{Tally, TurnStatus},
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

/// Waits until a turn that has not begun is not wanted any more; returns why it
/// does not begin, unless that is nobody's business.
pub(crate) async fn unwanted(mut wish: watch::Receiver<Wish>) -> Option<Failure> {
    let wanted = wish.wait_for(|wish| *wish != Wish::Nothing).await.map(|wish| *wish);
    match wanted {
        Ok(Wish::Lost) => None,
        Ok(Wish::Nothing | Wish::Cancel | Wish::Release) => {
            Some(Failure::new(FailureKind::Cancelled, "cancelled before it began"))
        }
        // Nobody is left to want anything.
        Err(_) => std::future::pending().await,
    }
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
    let news = News::new(&policy, &ticket, turn, &begun);
    // A program is stored like a turn, but no agent was asked for anything.
    let is_counted = matches!(begun, Begun::Turn(_));
    if let Some(news) = &news {
        news.begin(&tools, &policy);
    }
    let ending = match begun {
        Begun::Turn(beginning) => {
            let policy = Arc::clone(&policy);
            let attempt = Attempt::new(&tools, ticket.clone(), turn, policy, *beginning, wish);
            let Some(ending) = attempt.run().await else { return };
            ending
        }
        Begun::Program(begun) => {
            let ended = program::run(&tools, &ticket, turn, &policy, *begun, wish).await;
            let Some(ending) = ended else { return };
            ending
        }
        Begun::Reset(place, _) => {
            let text = "the next message begins a new session";
            let event = status(&place, None, "fresh_session", text, &[], Millis::now());
            let reply = "The next message begins a new session.".to_owned();
            let outcome = Outcome::said(reply, place.target.clone());
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
        Begun::Skipped(place, skip) => {
            tracing::debug!(job = %ticket.job, reason = skip.code(), "a heartbeat is dropped: {skip}");
            let reason = skip.to_string();
            without_turn(JobEnd::Cancelled { reason }, Some(place), None)
        }
        Begun::Unusable(place, reason) => {
            let failed = |place: &Place| {
                Outcome::failed(FailureKind::InvalidRequest, reason.clone(), place.target.clone())
            };
            let outcome = place.as_ref().map(failed);
            without_turn(JobEnd::Dead { reason }, place, outcome)
        }
    };
    let mut end = telling::End::of(&ending);
    let is_put_back = matches!(ending.end, JobEnd::Release);
    let tally = tally(&ending).filter(|_| is_counted);
    let Some(ended) = ending::write(&tools, &ticket, &policy, ending).await else { return };
    if let Some(tally) = tally {
        let status = status_of(&tally, ended.state, is_put_back);
        tools.telemetry.turn(&tally, status);
    }
    if ended.is_bare {
        end.is_not_stored();
    }
    if let Some(news) = news {
        news.end(&tools, &policy, &end, ended.state);
    }
}

/// Returns what is counted of the turn of an attempt.
fn tally(ending: &Ending) -> Option<Tally> {
    let belongs = ending.place.as_ref().and_then(|place| place.belongs.as_ref());
    let turn = ending.turn.as_ref()?;
    Some(Tally::new(&turn.agent, belongs.map(|belongs| belongs.project), &turn.report))
}

/// Says what became of a turn, by what became of its job.
fn status_of(tally: &Tally, state: JobState, is_put_back: bool) -> TurnStatus {
    match state {
        JobState::Done if !tally.is_failed() => TurnStatus::Completed,
        JobState::Done | JobState::Dead => TurnStatus::Failed,
        JobState::Cancelled => TurnStatus::Cancelled,
        JobState::Waiting | JobState::Ready | JobState::Running => {
            if is_put_back {
                TurnStatus::Interrupted
            } else {
                TurnStatus::Retried
            }
        }
    }
}

/// A turn that runs.
struct Attempt<'a> {
    tools: &'a Tools,
    ticket: Ticket,
    id: TurnId,
    policy: Arc<Policy>,
    beginning: Beginning,
    wish: watch::Receiver<Wish>,
    /// What hooks put before the prompt.
    notes: Vec<String>,
    /// Where it is run, once that is known.
    cwd: Option<String>,
    /// The session that is stored.
    opened: Opened,
    requests: Requests,
    steering: Steering,
    /// What is written with the end.
    last: Vec<NewEvent>,
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
        let opened = Opened::new(&beginning);
        let requests = Requests::new(&tools.store, &beginning.place, id);
        Self {
            tools,
            ticket,
            id,
            policy,
            beginning,
            wish,
            notes: Vec::new(),
            cwd: None,
            opened,
            requests,
            steering: Steering::default(),
            last: Vec::new(),
        }
    }

    /// Runs the turn; returns what came of it, unless that is nobody's business
    /// any more.
    async fn run(mut self) -> Option<Ending> {
        let about = (&self.ticket, self.id, &self.beginning);
        let hooks = &self.tools.hooks;
        match telling::before_turn(hooks, &self.policy, about, self.wish.clone()).await {
            Ok(notes) => self.notes = notes,
            Err(failure) => {
                let report = self.not_started(failure?);
                return Some(self.conclusion().of_report(&report));
            }
        }
        if let Err(failure) = self.check_folder().await {
            let report = self.not_started(failure);
            return Some(self.conclusion().of_report(&report));
        }
        let (job, wish) = (self.ticket.job, self.wish.clone());
        let media = (&*self.tools.fetcher, &self.policy.media);
        if let Err(failure) = fetching::fetch(media, job, &mut self.beginning, wish).await {
            let report = self.not_started(failure?);
            return Some(self.conclusion().of_report(&report));
        }
        let (agent, mut request) = self.request();
        self.cwd = request.options.cwd.to_str().map(str::to_owned);
        let told = instructions::give(&self.policy, &self.beginning, &mut request).await;
        let agent =
            agent.with_unasked(self.tools.unasked.listener(&self.beginning, self.cwd.clone()));
        self.opened.by(&request);
        let turn = match agent.start(request).await {
            Ok(turn) => turn,
            Err(StartError::ShuttingDown) => return Some(self.conclusion().put_back()),
            Err(error) => {
                let report = self.not_started(error.failure());
                return Some(self.conclusion().of_report(&report));
            }
        };
        let report = self.follow(turn).await;
        if *self.wish.borrow() == Wish::Lost {
            return None;
        }
        // What happened before the end is stored before it, or with it.
        let mut before = self.tools.log.take_back(self.id).await.ok()?;
        before.append(&mut self.last);
        self.last = before;
        Some(match report {
            Some(report) => self.conclusion().of_report(&told.noted(report)),
            // The host was shut down under it.
            None => self.conclusion().put_back(),
        })
    }

    /// Checks where the turn of a project is run. Others work where they like.
    async fn check_folder(&self) -> Result<(), Failure> {
        let Beginning { place, payload, .. } = &self.beginning;
        match &payload.wishes.cwd {
            Some(folder) if place.belongs.is_some() => {
                project::check_folder(&self.policy, folder).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Makes the report and the events of a turn that never began.
    fn not_started(&mut self, failure: Failure) -> TurnReport {
        let report = TurnReport::not_started(self.beginning.agent.name.clone(), failure);
        let whose = self.beginning.place.whose();
        self.last.extend(record::not_started(whose, self.id, &report));
        for event in record::told_of(&report) {
            self.tools.telemetry.event(&report.agent, &event);
        }
        report
    }

    fn conclusion(self) -> Conclusion {
        let rules = self.policy.retry_rules(&self.beginning.payload.wishes);
        let wish = *self.wish.borrow();
        Conclusion {
            job: self.ticket.job,
            turn: self.id,
            beginning: self.beginning,
            cwd: self.cwd,
            rules,
            wish,
            steered: self.steering.taken(),
            last: self.last,
            has_asked: self.requests.has_asked(),
            now: Millis::now(),
        }
    }

    fn request(&self) -> (CliAgent, TurnRequest) {
        let Beginning { agent, memo, .. } = &self.beginning;
        let (cli, mut request) = self.policy.agents.prepare(agent, &self.beginning.wished());
        let question = Question::new(&self.policy.texts, &self.beginning);
        request.prompt = question.prompt(&self.notes);
        question.fill_in(&mut request.options);
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
                () = self.requests.answered() => self.requests.answer(&turn).await,
                _ = messages.next(), if steers => {
                    let (store, lane) = (&self.tools.store, &self.ticket.lane);
                    let first = &self.beginning.payload;
                    let text = |payload: &_| {
                        let texts = &self.policy.texts;
                        let is_ready = !fetching::is_due(&self.policy.media, payload);
                        is_ready.then(|| text::steering(texts, payload, self.opened.session()))
                    };
                    self.steering.steer(store, lane, first, text, &turn).await;
                }
            }
        }
    }

    /// Stores an event; returns the report if it is the last.
    async fn event(&mut self, event: Event) -> Option<TurnReport> {
        if *self.wish.borrow() == Wish::Lost {
            return None;
        }
        self.tools.telemetry.event(&self.beginning.agent.name, &event.body);
        let id = self.requests.event(&event).await;
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others are only stored")]
        match &event.body {
            EventBody::Status(Status::Session { session_id }) => {
                let place = &self.beginning.place;
                let (store, policy) = (&self.tools.store, &self.policy);
                self.opened.keep(store, policy, place, self.id, session_id).await;
            }
            EventBody::Status(Status::Steered { text }) => self.steering.took(text),
            _ => {}
        }
        let stored = record(self.beginning.place.whose(), self.id, &event, id);
        if let EventBody::Complete(report) = event.body {
            self.last.push(stored);
            return Some(*report);
        }
        if matches!(event.body, EventBody::Error(_)) {
            self.last.push(stored);
        } else {
            // Closed only if the gateway did not wait for this turn any more.
            self.tools.log.append(stored).await.ok();
        }
        None
    }
}
