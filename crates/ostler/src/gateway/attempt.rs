//! One attempt at a job: the turn, from its start to the write that ends it.

use std::{path::PathBuf, sync::Arc};

use jiff::Timestamp;
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
    begin::{Beginning, Begun, Place, TOGETHER, joining},
    conclusion::{Conclusion, without_turn},
    ending::{self, Ending, SessionEnd, status},
    inbound::Origin,
    instructions,
    policy::Policy,
    record::record,
    requests::Requests,
    result::Outcome,
    telling::{self, News},
    text::{self, Question},
    tools::Tools,
};
use crate::{
    clock::Millis,
    config::Busy,
    id::{JobId, TurnId},
    queue::{JobEnd, Ticket},
    store::{StoreError, Topic, events::NewEvent, jobs, sessions, turns},
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
    let end = telling::End::of(&ending);
    let state = ending::write(&tools, &ticket, ending).await;
    if let (Some(news), Some(state)) = (news, state) {
        news.end(&tools, &policy, &end, state);
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
    /// The session that is stored.
    session: Option<String>,
    requests: Requests,
    /// Messages that were handed to the turn, which has not said yet whether it
    /// takes them.
    handed: Vec<(JobId, String)>,
    /// Messages that it took.
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
        let requests = Requests::new(&tools.store, &beginning.place, id);
        Self {
            tools,
            ticket,
            id,
            policy,
            beginning,
            wish,
            notes: Vec::new(),
            session,
            requests,
            handed: Vec::new(),
            steered: Vec::new(),
            last: Vec::new(),
            folders: Default::default(),
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
        let (agent, mut request) = self.request();
        let told = instructions::give(&self.policy, &self.beginning, &mut request).await;
        let agent = agent.with_unasked(self.tools.unasked.listener(&self.beginning));
        self.folders = (request.options.cwd.clone(), request.options.home.clone());
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

    /// Makes the report and the events of a turn that never began.
    fn not_started(&mut self, failure: Failure) -> TurnReport {
        let agent = self.beginning.agent.name.clone();
        let report = TurnReport::not_started(agent, failure.clone());
        let told = [EventBody::Error(failure), EventBody::Complete(Box::new(report.clone()))];
        for (body, seq) in told.into_iter().zip(1..) {
            let turn = self.id.into();
            let event = Event { seq, at: Timestamp::now(), turn, parent: None, body };
            self.last.push(record(self.beginning.place.conversation, self.id, &event, None));
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
            rules,
            wish,
            steered: self.steered,
            last: self.last,
            has_asked: self.requests.has_asked(),
            now: Millis::now(),
        }
    }

    fn request(&self) -> (CliAgent, TurnRequest) {
        let Beginning { payload, agent, memo, .. } = &self.beginning;
        let (cli, mut request) = self.policy.agents.prepare(agent, payload);
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
                _ = messages.next(), if steers => self.steer(&turn).await,
            }
        }
    }

    /// Stores an event; returns the report if it is the last.
    async fn event(&mut self, event: Event) -> Option<TurnReport> {
        if *self.wish.borrow() == Wish::Lost {
            return None;
        }
        let id = self.requests.event(&event).await;
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others are only stored")]
        match &event.body {
            EventBody::Status(Status::Session { session_id }) => self.keep(session_id).await,
            EventBody::Status(Status::Steered { text }) => self.took(text),
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
            // Closed only if the gateway did not wait for this turn any more.
            self.tools.log.append(stored).await.ok();
        }
        None
    }

    /// Keeps a session as soon as it has a name: if this gateway is killed, the
    /// next attempt goes on with it.
    async fn keep(&mut self, session: &str) {
        let is_heartbeat = self.beginning.payload.origin == Origin::Heartbeat;
        if is_heartbeat || self.session.as_deref() == Some(session) {
            return;
        }
        self.session = Some(session.to_owned());
        let agent = self.beginning.agent.name.to_string();
        let mut memo = ostler_core::Memo::of_id(agent.clone(), session);
        memo.cwd = Some(self.folders.0.clone());
        memo.home.clone_from(&self.folders.1);
        let session = ending::stored(&memo, Millis::now());
        let args = (self.beginning.place.conversation, self.id, agent, session);
        let kept = self.tools.store.write_repeatable(args, |conn, args| {
            let (conversation, turn, agent, session) = args;
            Box::pin(async move {
                // If the job is another's by now, so is the session.
                if turns::is_running(conn, *turn).await? {
                    sessions::keep(conn, *conversation, agent, session).await?;
                }
                Ok::<_, StoreError>(())
            })
        });
        if let Err(error) = kept.await {
            // It is stored again with the end of the turn.
            tracing::warn!(%error, "the name of a session could not be stored yet");
        }
    }

    /// Hands the turn what has come since it began.
    async fn steer(&mut self, turn: &Turn) {
        let lane = self.ticket.lane.clone();
        let behind = self
            .tools
            .store
            .read(lane, |conn, lane| Box::pin(jobs::waiting_behind(conn, lane, TOGETHER)));
        let Ok(behind) = behind.await else { return };
        for (job, payload) in joining(&self.beginning.payload, behind) {
            let is_handed = self.handed.iter().any(|(handed, _)| *handed == job);
            if is_handed || self.steered.contains(&job) {
                continue;
            }
            let text = text::steering(&self.policy.texts, &payload, self.session.as_deref());
            // What it does not take is its own turn, later.
            if turn.steer(&text).await.is_err() {
                return;
            }
            self.handed.push((job, text));
        }
    }

    /// Notes that the turn took a text.
    fn took(&mut self, text: &str) {
        if let Some(at) = self.handed.iter().position(|(_, handed)| handed == text) {
            let (job, _) = self.handed.remove(at);
            self.steered.push(job);
        }
    }
}
