//! Drives one dialect over one process: the only loop where I/O and meaning
//! meet.
//!
//! The loop waits for the reader, the process, the caller and the clock at
//! once. Whatever happens becomes an input of the dialect, and the dialect's
//! actions are carried out in order. The driver owns the *why* of an early end:
//! deadline, silence and the caller's wish all become a cancel, and the turn
//! ends with the driver's reason whatever the agent then says. A process that
//! does not go by its stop plan is killed with its whole tree, so the loop
//! always ends.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep_until};

use crate::{
    agent::{Action, Dialect, Exit, Input, ONLY_TURN, StopStep, TimerKey, TurnEnd},
    event::{EventBody, Status, Stream},
    outbox::Outbox,
    proc::{Proc, ProcEvent},
    transcript::Transcript,
    turn::Control,
    verdict::{Evidence, Reason},
};

/// How long a process may live on after its agent's last word.
const GRACE_AFTER_END: Duration = Duration::from_secs(2);
/// How long a dialect may take to end a cancelled turn by its own means.
const GRACE_AFTER_CANCEL: Duration = Duration::from_secs(2);
/// How long a killed tree may take to go. The keeper gives up before that.
const GRACE_AFTER_KILL: Duration = Duration::from_secs(10);

/// The time limits of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) deadline: Instant,
    pub(crate) timeout: Duration,
    pub(crate) idle: Duration,
}

/// One process, one dialect, one turn, until all of it has ended.
pub(crate) struct Drive<'a> {
    pub(crate) proc: Proc,
    pub(crate) dialect: Box<dyn Dialect>,
    pub(crate) stop_plan: &'a [StopStep],
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) control: &'a Control,
    pub(crate) limits: Limits,
    pub(crate) transcript: Option<Transcript>,
    /// Called when the agent's id for the session is known.
    pub(crate) opened: &'a mut (dyn FnMut(&str) + Send),
}

/// Where the driver stands with a process.
struct State {
    evidence: Evidence,
    actions: Vec<Action>,
    stopping: Stopping,
    killed: bool,
    /// What the dialect wants to be reminded of.
    timers: Vec<(Instant, TimerKey)>,
    /// When the agent was last paused or unpaused by its reader.
    reader_caught_up_at: Instant,
    /// The agent's id for the session, which a command in a prompt can change.
    session: Option<String>,
}

#[derive(Clone, Copy)]
enum Stopping {
    /// Nobody wants it to end.
    No,
    /// It should end by itself until then.
    Expected(Instant),
    /// The plan's step of this number was made, and waits until then.
    Step(usize, Instant),
    /// Its tree was killed and must be gone by then.
    Killed(Instant),
}

impl Drive<'_> {
    /// Runs until the process is gone and returns what the witnesses say.
    pub(crate) async fn run(mut self) -> Evidence {
        let mut state = State {
            evidence: Evidence::default(),
            actions: Vec::new(),
            stopping: Stopping::No,
            killed: false,
            timers: Vec::new(),
            reader_caught_up_at: Instant::now(),
            session: None,
        };
        while state.evidence.exit.is_none() {
            let alarm = self.alarm(&state);
            let running = state.evidence.reason.is_none() && state.evidence.end.is_none();
            // A process that is to end is read on even if the reader is behind;
            // else a reader that has stopped could hide how it ended.
            let may_read = !self.outbox.is_behind() || !matches!(state.stopping, Stopping::No);
            tokio::select! {
                biased;
                () = self.control.kill.cancelled(), if !state.killed => self.kill_now(&mut state),
                () = self.control.cancel.cancelled(), if running => {
                    self.give_up(&mut state, Reason::Cancelled);
                }
                () = sleep_until(alarm) => self.alarm_rang(&mut state),
                () = self.outbox.deliver(), if self.outbox.is_behind() => {
                    state.reader_caught_up_at = Instant::now();
                }
                event = self.proc.next(), if may_read => self.took(&mut state, event),
            }
        }
        state.evidence
    }

    fn took(&mut self, state: &mut State, event: ProcEvent) {
        match event {
            ProcEvent::Line { from, bytes, cut } => {
                self.write_down(from, &bytes);
                self.step(state, Input::Line { from, bytes: &bytes, cut });
            }
            ProcEvent::Exited { code, signal } => {
                let stderr = String::from_utf8_lossy(self.proc.stderr_head()).into_owned();
                let exit = Exit { code, signal, stderr };
                self.step(state, Input::Exited(&exit));
                state.evidence.exit = Some(exit);
            }
        }
    }

    fn step(&mut self, state: &mut State, input: Input<'_>) {
        let mut actions = std::mem::take(&mut state.actions);
        self.dialect.step(Timestamp::now(), input, &mut actions);
        for action in actions.drain(..) {
            match action {
                // What is still in the pipes after the last word belongs to the turn, too.
                Action::Emit { turn, parent, event } => {
                    if turn == ONLY_TURN {
                        self.outbox.push(parent, event);
                    }
                }
                Action::Opened { id, .. } => {
                    if state.session.as_ref() != Some(&id) {
                        (self.opened)(&id);
                        state.session = Some(id.clone());
                        let status = Status::Session { session_id: id };
                        self.outbox.push(None, EventBody::Status(status));
                    }
                }
                Action::EndTurn { turn, end } => {
                    if turn == ONLY_TURN && state.evidence.end.is_none() {
                        self.ended(state, *end);
                    }
                }
                Action::Stop => self.begin_stop(state),
                Action::Arm { timer, after } => {
                    state.timers.retain(|(_, armed)| *armed != timer);
                    state.timers.extend(Instant::now().checked_add(after).map(|at| (at, timer)));
                }
            }
        }
        state.actions = actions;
    }

    fn ended(&mut self, state: &mut State, end: TurnEnd) {
        state.evidence.end = Some(end);
        self.outbox.limit();
        if matches!(state.stopping, Stopping::No) {
            state.stopping = Stopping::Expected(Instant::now() + GRACE_AFTER_END);
        }
    }

    fn give_up(&mut self, state: &mut State, reason: Reason) {
        state.evidence.reason = Some(reason);
        self.outbox.limit();
        state.stopping = Stopping::Expected(Instant::now() + GRACE_AFTER_CANCEL);
        self.step(state, Input::Cancel { turn: ONLY_TURN });
    }

    fn begin_stop(&mut self, state: &mut State) {
        match state.stopping {
            Stopping::No | Stopping::Expected(_) => self.stop_step(state, 0),
            Stopping::Step(..) | Stopping::Killed(_) => {}
        }
    }

    fn stop_step(&mut self, state: &mut State, number: usize) {
        if state.evidence.reason.is_none() && state.evidence.end.is_some() {
            state.evidence.stopped_after_end = true;
        }
        match self.stop_plan.get(number) {
            Some(StopStep::Signal { signal, wait }) => {
                self.proc.signal(*signal);
                state.stopping = Stopping::Step(number, Instant::now() + *wait);
            }
            None => self.kill_tree(state),
        }
    }

    fn kill_tree(&mut self, state: &mut State) {
        self.proc.kill();
        state.killed = true;
        state.stopping = Stopping::Killed(Instant::now() + GRACE_AFTER_KILL);
    }

    fn kill_now(&mut self, state: &mut State) {
        if state.evidence.end.is_none() {
            state.evidence.reason.get_or_insert(Reason::Cancelled);
        } else {
            state.evidence.stopped_after_end = true;
        }
        self.kill_tree(state);
    }

    /// Returns the next moment at which something is due.
    fn alarm(&self, state: &State) -> Instant {
        let own = self.own_alarm(state);
        state.timers.iter().map(|(at, _)| *at).min().map_or(own, |timer| timer.min(own))
    }

    /// Returns the next moment at which the driver itself has something to do.
    fn own_alarm(&self, state: &State) -> Instant {
        match state.stopping {
            Stopping::Expected(at) | Stopping::Step(_, at) | Stopping::Killed(at) => at,
            // A paused agent cannot print, so its silence does not count.
            Stopping::No if self.outbox.is_behind() => self.limits.deadline,
            Stopping::No => {
                let last_byte = self.proc.last_byte_at().max(state.reader_caught_up_at);
                let silent_until = last_byte.checked_add(self.limits.idle);
                silent_until.map_or(self.limits.deadline, |at| at.min(self.limits.deadline))
            }
        }
    }

    fn alarm_rang(&mut self, state: &mut State) {
        let now = Instant::now();
        if let Some(rang) = state.timers.iter().position(|(at, _)| *at <= now) {
            let (_, timer) = state.timers.swap_remove(rang);
            self.step(state, Input::Timer(timer));
        }
        if now < self.own_alarm(state) {
            return;
        }
        match state.stopping {
            Stopping::No => {
                let message = if now >= self.limits.deadline {
                    format!("no answer within {:?}", self.limits.timeout)
                } else {
                    format!("the agent printed nothing for {:?}", self.limits.idle)
                };
                self.give_up(state, Reason::TimedOut(message));
            }
            Stopping::Expected(_) => self.stop_step(state, 0),
            Stopping::Step(number, _) => self.stop_step(state, number + 1),
            Stopping::Killed(_) => {
                // The keeper itself is gone or stuck; its exit will never be seen.
                let exit = Exit { code: None, signal: Some(libc::SIGKILL), stderr: String::new() };
                self.step(state, Input::Exited(&exit));
                state.evidence.exit = Some(exit);
            }
        }
    }

    fn write_down(&mut self, from: Stream, bytes: &[u8]) {
        let Some(transcript) = &mut self.transcript else {
            return;
        };
        let line = String::from_utf8_lossy(bytes).into_owned();
        let name = match from {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        if !transcript.write(name, &line.into()) {
            let text = "the transcript could not be written; it ends here".to_owned();
            self.outbox.push(None, EventBody::Status(Status::Warning { text }));
            self.transcript = None;
        }
    }
}
