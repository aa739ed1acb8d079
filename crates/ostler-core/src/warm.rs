//! A turn in a process that is kept for further ones.
//!
//! The process comes from the pool: the one in which the session is open, a
//! shared or spare one, or a new one. Who has a session open also has its lock,
//! so a turn elsewhere, in a process of its own or of another Ostler, waits.

mod live;
pub(crate) mod pool;
pub(crate) mod seed;
#[cfg(feature = "http")]
mod wire;
#[cfg(not(feature = "http"))]
#[path = "warm/wire/none.rs"]
mod wire;
mod worker;

use std::{path::Path, sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep},
};
use uuid::Uuid;

use self::{
    live::{Done, NewTurn, Way},
    pool::Lease,
    seed::Seed,
    worker::{Command, UnaskedHook},
};
use crate::{
    agent::{CommandLine, LaunchError, TurnKey, WarmSpec},
    driver::Limits,
    event::{EventBody, Status, Trigger, TurnId},
    failure::{Failure, FailureKind},
    outbox::Outbox,
    prepared::{Held, InFlight, Prepared, Session},
    request::Open,
    turn::{Control, EVENTS_AHEAD, Turn},
    verdict::{Evidence, Reason},
};

/// How often a turn looks for another process when one ends under it before it
/// took the prompt.
const TRIES: usize = 3;
const PAUSE: Duration = Duration::from_millis(20);

impl Prepared {
    /// Runs the turn in a kept process.
    pub(crate) async fn run_warm(
        &mut self,
        warm: &'static WarmSpec,
        turn: &mut InFlight,
    ) -> Result<Evidence, Reason> {
        let limits = self.limits(turn.started);
        let mut last = String::new();
        for _ in 0..TRIES {
            let (lease, opening) = self.lease(warm, turn, limits).await?;
            match self.follow(turn, lease, opening, limits).await {
                Ok(evidence) => return Ok(evidence),
                Err(why) => last = why,
            }
            let text = format!("{last}; trying another one");
            turn.outbox.push(None, EventBody::Status(Status::Warning { text }));
            // Whoever is opening the session, or leaving, needs a moment.
            sleep(PAUSE).await;
        }
        Err(Reason::Failed(Failure::new(FailureKind::Crashed, last)))
    }

    /// Makes the command line of a process that would be started for this turn.
    pub(crate) fn warm_line(
        &self,
        warm: &WarmSpec,
        run_dir: &Path,
    ) -> Result<CommandLine, LaunchError> {
        let new_id = Uuid::new_v4().to_string();
        seed::line(self, warm, &self.request.open, &new_id, run_dir)
    }

    /// Finds a process, and returns what the turn's reader learns first.
    async fn lease(
        &mut self,
        warm: &'static WarmSpec,
        turn: &mut InFlight,
        limits: Limits,
    ) -> Result<(Lease, Vec<EventBody>), Reason> {
        let mut seed = Seed::new(self, warm)?;
        let started = |this: &Self| EventBody::Started(this.started(Trigger::Prompt));
        if self.request.open.memo().is_some() {
            // The pool is there before it is asked.
            self.host.pool();
            match self.lock_session(turn, limits.deadline, Some(&seed.key)).await? {
                Held::Lock(lock) => turn.session.lock = lock,
                Held::Place(lease) => {
                    self.recall()?;
                    let warnings = seed.warnings.into_iter().chain(self.notes());
                    let warnings = warnings.map(|text| EventBody::Status(Status::Warning { text }));
                    return Ok((lease, std::iter::once(started(self)).chain(warnings).collect()));
                }
            }
            self.recall()?;
            seed = Seed::new(self, warm)?;
        }
        let mut warnings: Vec<String> = seed.warnings.drain(..).chain(self.notes()).collect();
        let lease = self.host.pool().take(seed, self.request.open.clone()).await?;
        if lease.is_replacement {
            warnings.push("the agent's process had ended; a new one was started".to_owned());
        }
        let warnings = warnings.into_iter().map(|text| Status::Warning { text });
        let opening =
            std::iter::once(started(self)).chain(warnings.map(EventBody::Status)).collect();
        Ok((lease, opening))
    }

    /// Hands the turn to the process and waits for its end; says why if the
    /// process never took it.
    async fn follow(
        &mut self,
        turn: &mut InFlight,
        lease: Lease,
        opening: Vec<EventBody>,
        limits: Limits,
    ) -> Result<Evidence, String> {
        let gone = || "the agent's process had ended".to_owned();
        if lease.is_new {
            let open = Command::Open {
                session: lease.session,
                open: Box::new(self.request.open.clone()),
                options: Box::new(self.request.options.clone()),
                lock: turn.session.lock.take(),
            };
            lease.commands.send(open).await.map_err(|_| gone())?;
        }
        let (done, ended) = oneshot::channel();
        let host = self.host.clone();
        let id = turn.id.clone();
        let placeholder = Outbox::closed(turn.id.clone());
        let prompt = Command::Prompt(Box::new(NewTurn {
            key: lease.turn,
            session: lease.session,
            prompt: self.prompt(),
            options: self.request.options.clone(),
            opening,
            way: Way {
                outbox: std::mem::replace(&mut turn.outbox, placeholder),
                limits,
                ask_timeout: self.request.ask_timeout,
                transcript: turn.transcript.take(),
                opened: Box::new(move |session| host.running().opened(&id, session)),
                done,
            },
            unasked: self.unasked_hook(&lease),
        }));
        if let Err(mpsc::error::SendError(Command::Prompt(new))) = lease.commands.send(prompt).await
        {
            turn.outbox = new.way.outbox;
            turn.transcript = new.way.transcript;
            return Err(gone());
        }
        self.attend(turn, &lease.commands, lease.turn, ended).await
    }

    /// Passes on what the caller wants until the process is done with the turn.
    async fn attend(
        &mut self,
        turn: &mut InFlight,
        commands: &mpsc::Sender<Command>,
        key: TurnKey,
        mut ended: oneshot::Receiver<Done>,
    ) -> Result<Evidence, String> {
        let (mut cancelled, mut killed) = (false, false);
        loop {
            // A worker that is gone drops what it was told; `ended` says so.
            let command = tokio::select! {
                biased;
                done = &mut ended => return self.done(turn, done),
                () = turn.control.kill.cancelled(), if !killed => {
                    killed = true;
                    Command::Kill { turn: key }
                }
                () = turn.control.cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    Command::Cancel { turn: key }
                }
                Some(say) = turn.says.recv() => Command::Say { turn: key, say },
            };
            commands.send(command).await.ok();
        }
    }

    fn done(
        &mut self,
        turn: &mut InFlight,
        done: Result<Done, oneshot::error::RecvError>,
    ) -> Result<Evidence, String> {
        match done {
            Ok(Done::Ended(ended)) => {
                turn.outbox = ended.outbox;
                if let Some(id) = ended.session_id {
                    // The turn that this one waited for has left a newer one. A
                    // memo that cannot be read is written anew.
                    self.recall().ok();
                    turn.session.memo = Some(self.memo_of(&id));
                }
                Ok(ended.evidence)
            }
            Ok(Done::NotBegun { outbox, transcript, why }) => {
                turn.outbox = outbox;
                turn.transcript = transcript;
                Err(why)
            }
            Err(_) => {
                let text = "the task of the agent's process is gone";
                let reason = Some(Reason::Failed(Failure::new(FailureKind::Internal, text)));
                Ok(Evidence { reason, ..Evidence::default() })
            }
        }
    }

    /// Makes what receives the turns that the agent begins by itself.
    fn unasked_hook(&self, lease: &Lease) -> UnaskedHook {
        let prepared = self.clone();
        let commands = lease.commands.downgrade();
        Arc::new(move |key, session| {
            let mut prepared = prepared.clone();
            if let Some(session) = session {
                let memo = prepared.memo_of(session);
                prepared.request.open = Open::Resume(Box::new(memo));
            }
            let id = TurnId::new();
            let (control, says) = Control::under(prepared.host.shutdown_token());
            let (sender, events) = mpsc::channel(EVENTS_AHEAD);
            let (done, ended) = oneshot::channel();
            let memo = prepared.request.open.memo();
            prepared.host.running().add(&id, &prepared.spec.name, memo, &control);
            let opening = vec![EventBody::Started(prepared.started(Trigger::Agent))];
            let started = Instant::now();
            let host = prepared.host.clone();
            let opened_id = id.clone();
            let way = Way {
                outbox: Outbox::new(id.clone(), sender),
                limits: prepared.limits(started),
                ask_timeout: prepared.request.ask_timeout,
                transcript: None,
                opened: Box::new(move |session| host.running().opened(&opened_id, session)),
                done,
            };
            let turn = Turn::new(id.clone(), events, control.clone());
            let listener = prepared.unasked.clone();
            let tasks = prepared.host.tasks().clone();
            tasks.spawn(async move {
                let unheard = match listener {
                    Some(listener) => {
                        listener.try_send(turn).err().map(mpsc::error::TrySendError::into_inner)
                    }
                    None => Some(turn),
                };
                // Nobody wants it: it is read to its end all the same, for a
                // dropped turn would be cancelled.
                if let Some(turn) = unheard {
                    turn.end().await;
                }
            });
            let commands = commands.clone();
            tasks.spawn(async move {
                // A process that is gone takes nothing, but has said how it ended.
                let commands = commands.upgrade().unwrap_or_else(|| mpsc::channel(1).0);
                let mut turn = InFlight {
                    outbox: Outbox::closed(id.clone()),
                    id,
                    started,
                    control,
                    says,
                    transcript: None,
                    session: Session::default(),
                };
                let attempt = prepared.attend(&mut turn, &commands, key, ended).await;
                let crashed = |why| Reason::Failed(Failure::new(FailureKind::Crashed, why));
                prepared.conclude(turn, attempt.map_err(crashed)).await;
            });
            (way, opening)
        })
    }
}
