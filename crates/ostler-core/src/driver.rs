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

pub(crate) mod stopper;
pub(crate) mod timers;

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep_until};

use self::{
    stopper::{Progress, Stopper},
    timers::Timers,
};
use crate::{
    agent::{Action, Dialect, Exit, Input, ONLY_TURN, Order, StopStep, TurnEnd},
    event::{EventBody, Status},
    outbox::Outbox,
    proc::{Proc, ProcEvent},
    transcript::{Said, Transcript},
    turn::Control,
    verdict::{Evidence, Reason},
};

/// How long a process may live on after its agent's last word.
const GRACE_AFTER_END: Duration = Duration::from_secs(2);
/// How long a dialect may take to end a cancelled turn by its own means.
const GRACE_AFTER_CANCEL: Duration = Duration::from_secs(2);

/// The time limits of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) deadline: Instant,
    pub(crate) timeout: Duration,
    pub(crate) idle: Duration,
}

impl Limits {
    /// Returns when the turn has lasted too long, or has been silent too long.
    pub(crate) fn alarm(&self, heard_at: Instant) -> Instant {
        let silent_until = heard_at.checked_add(self.idle);
        silent_until.map_or(self.deadline, |at| at.min(self.deadline))
    }

    /// Says which of the two it was.
    pub(crate) fn exceeded(&self, now: Instant) -> String {
        if now >= self.deadline {
            format!("no answer within {:?}", self.timeout)
        } else {
            format!("the agent printed nothing for {:?}", self.idle)
        }
    }
}

/// One process, one dialect, one turn, until all of it has ended.
pub(crate) struct Drive<'a> {
    pub(crate) proc: Proc,
    pub(crate) dialect: Box<dyn Dialect>,
    pub(crate) stop_plan: &'static [StopStep],
    /// Whether the process is spoken to, and not only given its prompt.
    pub(crate) is_spoken_to: bool,
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
    stopper: Stopper,
    timers: Timers,
    /// When the agent was last paused or unpaused by its reader.
    reader_caught_up_at: Instant,
    /// The agent's id for the session, which a command in a prompt can change.
    session: Option<String>,
}

impl Drive<'_> {
    /// Runs until the process is gone and returns what the witnesses say.
    pub(crate) async fn run(mut self) -> Evidence {
        let mut state = State {
            evidence: Evidence::default(),
            actions: Vec::new(),
            stopper: Stopper::new(self.stop_plan),
            timers: Timers::default(),
            reader_caught_up_at: Instant::now(),
            session: None,
        };
        if self.is_spoken_to {
            self.step(&mut state, Input::Order(Order::Start));
        }
        while state.evidence.exit.is_none() {
            let alarm = self.alarm(&state);
            let running = state.evidence.reason.is_none() && state.evidence.end.is_none();
            // A process that is to end is read on even if the reader is behind;
            // else a reader that has stopped could hide how it ended.
            let may_read = !self.outbox.is_behind() || state.stopper.is_going();
            let killed = state.stopper.is_killed();
            tokio::select! {
                biased;
                () = self.control.kill.cancelled(), if !killed => self.kill_now(&mut state),
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
                Transcript::note(&mut self.transcript, Said::by(from), &bytes, self.outbox);
                self.step(state, Input::Line { from, bytes: &bytes, cut });
            }
            // Its prompt was all that it had to read, unless it is spoken to.
            ProcEvent::StdinClosed if self.is_spoken_to => self.begin_stop(state),
            ProcEvent::StdinClosed => {}
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
                Action::Arm { timer, after } => state.timers.arm(timer, after),
                Action::Write(bytes) => {
                    let line = bytes.trim_ascii_end();
                    Transcript::note(&mut self.transcript, Said::Stdin, line, self.outbox);
                    self.proc.write(&bytes);
                }
                // Nor is it a server, its session is no lease, and every byte of it
                // is about its turn.
                Action::Call { .. }
                | Action::Working { .. }
                | Action::Listen(_)
                | Action::Ready
                | Action::OpenFailed { .. }
                | Action::Unasked { .. }
                | Action::Ask { .. }
                | Action::Withdraw { .. } => {}
            }
        }
        state.actions = actions;
    }

    fn ended(&mut self, state: &mut State, end: TurnEnd) {
        state.evidence.end = Some(end);
        self.outbox.limit();
        if !state.stopper.is_going() {
            state.stopper.expect(GRACE_AFTER_END);
        }
    }

    fn give_up(&mut self, state: &mut State, reason: Reason) {
        state.evidence.reason = Some(reason);
        self.outbox.limit();
        state.stopper.expect(GRACE_AFTER_CANCEL);
        self.step(state, Input::Cancel { turn: ONLY_TURN });
    }

    fn begin_stop(&mut self, state: &mut State) {
        Self::note_stop(state);
        state.stopper.begin(&mut self.proc);
    }

    /// Notes that an exit from here on is our doing, if the agent has had its last word.
    fn note_stop(state: &mut State) {
        if state.evidence.reason.is_none() && state.evidence.end.is_some() {
            state.evidence.stopped_after_end = true;
        }
    }

    fn kill_now(&mut self, state: &mut State) {
        if state.evidence.end.is_none() {
            state.evidence.reason.get_or_insert(Reason::Cancelled);
        } else {
            state.evidence.stopped_after_end = true;
        }
        state.stopper.kill(&mut self.proc);
    }

    /// Returns the next moment at which something is due.
    fn alarm(&self, state: &State) -> Instant {
        let own = self.own_alarm(state);
        state.timers.due().map_or(own, |timer| timer.min(own))
    }

    /// Returns the next moment at which the driver itself has something to do.
    fn own_alarm(&self, state: &State) -> Instant {
        if let Some(at) = state.stopper.due() {
            return at;
        }
        // A paused agent cannot print, so its silence does not count.
        if self.outbox.is_behind() {
            return self.limits.deadline;
        }
        let last_byte = self.proc.last_byte_at().max(state.reader_caught_up_at);
        self.limits.alarm(last_byte)
    }

    fn alarm_rang(&mut self, state: &mut State) {
        let now = Instant::now();
        if let Some(timer) = state.timers.take(now) {
            self.step(state, Input::Timer(timer));
        }
        if now < self.own_alarm(state) {
            return;
        }
        if !state.stopper.is_going() {
            return self.give_up(state, Reason::TimedOut(self.limits.exceeded(now)));
        }
        Self::note_stop(state);
        if state.stopper.advance(&mut self.proc) == Progress::Lost {
            let exit = Exit { code: None, signal: Some(libc::SIGKILL), stderr: String::new() };
            self.step(state, Input::Exited(&exit));
            state.evidence.exit = Some(exit);
        }
    }
}
