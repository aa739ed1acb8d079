//! A program that is run instead of an agent: a turn with lines for an answer.
//!
//! It is run once. Nobody knows what a program did before it was cut off, so that
//! one that was interrupted is over, and says so.

mod git;
mod output;
mod report;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, time::Duration};

use ostler_core::{
    agent::{AgentName, Stdin},
    environment::Variables,
    event::{Event, EventBody, Mode, Started, Status, Trigger},
    failure::{Failure, FailureKind},
};
use tokio::sync::watch;

use self::{
    output::{Kept, Output},
    report::{Finish, Ran},
};
use super::{
    attempt::Wish,
    begin::Place,
    conclusion::without_turn,
    ending::{Ending, Turned},
    policy::Policy,
    record::{printed, record},
    result::Outcome,
    tools::Tools,
};
use crate::{
    command::{
        CommandError, Launch,
        live::{Live, Told},
    },
    id::TurnId,
    project,
    queue::{JobEnd, Ticket},
    store::{commands::CommandKind, events::NewEvent},
};

/// How long a program may take that nobody set a time for.
pub(crate) const LIMIT: Duration = Duration::from_secs(10 * 60);
/// How much of a line is told, in bytes.
const LONGEST_LINE: usize = 64 * 1024;

/// Why one is over that was begun before.
pub(crate) const INTERRUPTED: &str =
    "it was interrupted when the gateway stopped; it is not run again";

/// A program that is to be run.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) place: Place,
    pub(crate) kind: CommandKind,
    /// The program and its arguments, as they were allowed.
    pub(crate) words: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) limit: Duration,
    /// Whether an earlier attempt may have begun it.
    pub(crate) is_again: bool,
}

/// Runs a program; returns what came of it, unless that is nobody's business any
/// more.
pub(crate) async fn run(
    tools: &Tools,
    ticket: &Ticket,
    turn: TurnId,
    policy: &Policy,
    program: Program,
    wish: watch::Receiver<Wish>,
) -> Option<Ending> {
    let attempt = u32::try_from(ticket.attempt).unwrap_or(u32::MAX);
    Run { tools, turn, attempt, program, wish, seq: 0, last: Vec::new() }.run(policy).await
}

/// One that runs.
struct Run<'a> {
    tools: &'a Tools,
    turn: TurnId,
    attempt: u32,
    program: Program,
    wish: watch::Receiver<Wish>,
    /// The number of its last event.
    seq: u64,
    /// What is written with the end.
    last: Vec<NewEvent>,
}

impl Run<'_> {
    async fn run(mut self, policy: &Policy) -> Option<Ending> {
        let ran = self.attempt(policy).await;
        if *self.wish.borrow() == Wish::Lost {
            return None;
        }
        // What happened before the end is stored before it, or with it.
        self.last = self.tools.log.take_back(self.turn).await.ok()?;
        Some(self.end(ran))
    }

    async fn attempt(&mut self, policy: &Policy) -> Ran {
        if self.program.is_again {
            return Ran::not_started(Finish::Interrupted);
        }
        // A wish may have come while it was claimed.
        if let Some(finish) = self.unwanted() {
            return Ran::not_started(finish);
        }
        let prepared = tokio::select! {
            prepared = self.prepare(policy) => prepared.map_err(Finish::NotStarted),
            finish = self.until_unwanted() => Err(finish),
        };
        // Both may have happened.
        let prepared = match self.unwanted() {
            Some(finish) => Err(finish),
            None => prepared,
        };
        let env = match prepared {
            Ok(env) => env,
            Err(finish) => return Ran::not_started(finish),
        };
        let Program { words, cwd, limit, .. } = &self.program;
        let launch = Launch { words, env: &env, cwd, stdin: Stdin::Null };
        match Live::start(launch, LONGEST_LINE, *limit) {
            Ok(live) => self.follow(live).await,
            Err(error) => Ran::not_started(Finish::NotStarted(not_started(&error))),
        }
    }

    /// Returns how it ends if it is not wanted any more.
    fn unwanted(&self) -> Option<Finish> {
        match *self.wish.borrow() {
            Wish::Nothing => None,
            Wish::Cancel => Some(Finish::Cancelled),
            Wish::Release | Wish::Lost => Some(Finish::Interrupted),
        }
    }

    async fn until_unwanted(&self) -> Finish {
        let mut wish = self.wish.clone();
        loop {
            if let Some(finish) = self.unwanted() {
                return finish;
            }
            if wish.changed().await.is_err() {
                // Nobody is left who could want anything.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Sees to it that the program can run, and returns its environment.
    async fn prepare(&self, policy: &Policy) -> Result<Variables, Failure> {
        project::check_folder(policy, &self.program.cwd).await?;
        let base = &policy.program_environment;
        match self.program.kind {
            CommandKind::Git => git::environment(base, &self.program).await,
            CommandKind::Shell | CommandKind::Prompt => Ok(base.clone()),
        }
    }

    /// Follows it to its end, and does what is wanted of it meanwhile.
    async fn follow(&mut self, mut live: Live) -> Ran {
        self.tell(&mut live, self.started()).await;
        let mut output = Output::default();
        let mut wish = self.wish.clone();
        let mut has_wish = true;
        let end = loop {
            // Both can be dropped half-way without losing anything.
            let told = tokio::select! {
                told = live.next() => told,
                changed = wish.changed(), if has_wish => {
                    has_wish = changed.is_ok();
                    heed(*wish.borrow_and_update(), &mut live);
                    continue;
                }
            };
            let (from, bytes, is_cut) = match told {
                Told::Line { from, bytes, is_cut } => (from, bytes, is_cut),
                Told::Ended(end) => break end,
            };
            let text = String::from_utf8_lossy(&bytes);
            match output.take(&text) {
                Kept::Yes => {
                    self.seq += 1;
                    let (whose, turn) = (self.program.place.whose(), self.turn);
                    let line = printed(whose, turn, self.seq, from, &text, is_cut);
                    self.put(&mut live, line).await;
                }
                Kept::FirstDropped => {
                    let text = output::DROPPED.to_owned();
                    self.tell(&mut live, EventBody::Status(Status::Warning { text })).await;
                }
                Kept::No => {}
            }
        };
        let finish = Finish::of(end, live.stopped(), self.program.limit, *self.wish.borrow());
        Ran { finish, ran_for: live.ran(), output }
    }

    fn started(&self) -> EventBody {
        EventBody::Started(Started {
            agent: self.agent(),
            version: None,
            mode: Mode::OneShot,
            session_id: None,
            model: None,
            cwd: self.program.cwd.clone(),
            resumed: false,
            attempt: self.attempt,
            trigger: Trigger::Prompt,
        })
    }

    fn agent(&self) -> AgentName {
        AgentName::built_in(self.program.kind.as_str())
    }

    async fn tell(&mut self, live: &mut Live, body: EventBody) {
        let event = self.event(body);
        self.put(live, event).await;
    }

    /// Numbers an event.
    fn event(&mut self, body: EventBody) -> NewEvent {
        self.seq += 1;
        let (seq, at, turn) = (self.seq, jiff::Timestamp::now(), self.turn.into());
        let event = Event { seq, at, turn, parent: None, body };
        record(self.program.place.whose(), self.turn, &event, None)
    }

    /// Stores an event. If that takes long the program waits, but not beyond its
    /// time, and not if it is to end.
    async fn put(&mut self, live: &mut Live, event: NewEvent) {
        let mut put = std::pin::pin!(self.tools.log.append(event));
        let mut wish = self.wish.clone();
        let mut has_wish = true;
        loop {
            tokio::select! {
                // Closed only if the gateway did not wait for this any more.
                _ = &mut put => return,
                () = live.mind() => {}
                changed = wish.changed(), if has_wish => {
                    has_wish = changed.is_ok();
                    heed(*wish.borrow_and_update(), live);
                }
            }
        }
    }

    fn end(mut self, ran: Ran) -> Ending {
        let report = ran.report(self.agent());
        if let Some(failure) = report.error.clone().filter(|_| !ran.finish.is_own()) {
            let event = self.event(EventBody::Error(failure));
            self.last.push(event);
        }
        let event = self.event(EventBody::Complete(Box::new(report.clone())));
        self.last.push(event);
        let end = match (&ran.finish, &report.error) {
            (Finish::Cancelled, Some(failure)) => {
                JobEnd::Cancelled { reason: failure.message.clone() }
            }
            // It is done, whatever came of it.
            (Finish::Code(_) | Finish::Signal(_), _) | (_, None) => JobEnd::Done,
            (_, Some(failure)) => {
                let reason = format!("{}: {}", failure.kind.code(), failure.message);
                JobEnd::Dead { reason }
            }
        };
        let place = self.program.place;
        let outcome = Outcome::of(&report, place.target.clone());
        let text = serde_json::to_string(&report).unwrap_or_else(|_| "{}".to_owned());
        let agent = report.agent.to_string();
        Ending {
            turn: Some(Turned { id: self.turn, agent, report: text, has_asked: false, cwd: None }),
            events: self.last,
            ..without_turn(end, Some(place), Some(outcome))
        }
    }
}

fn heed(wish: Wish, live: &mut Live) {
    match wish {
        Wish::Nothing => {}
        Wish::Cancel | Wish::Release => live.stop(),
        Wish::Lost => live.kill(),
    }
}

fn not_started(error: &CommandError) -> Failure {
    Failure::new(FailureKind::SpawnFailed, error.to_string())
}

/// Returns for how long a program may run.
pub(crate) fn limit(timeout_ms: Option<u64>) -> Duration {
    timeout_ms.map_or(LIMIT, Duration::from_millis)
}
