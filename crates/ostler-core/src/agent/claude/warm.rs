//! Claude kept between turns: JSON lines both ways, with its control protocol.
//!
//! One process is one session. Here is what is asked of it; what it prints is
//! read in `reading`, a turn's lines in the same `turn` as those of a process
//! that is not kept. Prompts carry ids of ours, and the CLI tells by them which
//! turn is whose: it begins turns of its own when something in the background
//! has ended, and would take a prompt that comes while a tool runs into the
//! turn that runs.
//!
//! That is also why a running turn cannot be steered here: a message becomes
//! part of it only if a tool happens to run, and else a turn of its own, and
//! nothing tells in advance which of both.

mod asked;
mod control;
mod prompted;
mod reading;

use std::time::Duration;

use jiff::Timestamp;

use self::{
    asked::Asked,
    control::{Wish, Wishes},
    prompted::{MessageIds, Prompted},
};
use super::{
    failure::{self, Evidence},
    launch, outcome,
    session::Session,
    turn::{Turn, complaint},
};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, ONLY_SESSION, Order, Signal, StopStep, TimerKey, TurnKey,
        WarmLaunch, WarmSpec,
    },
    event::Stream,
    failure::{Failure, FailureKind},
};

/// How long the CLI may take to end a turn that is given up here.
const GRACE: Duration = Duration::from_secs(2);

/// How long the CLI may take to answer what a prompt waits for. It answers at
/// once, whatever else it does.
const PATIENCE: Duration = Duration::from_secs(5);

/// How Claude is kept between turns.
pub(super) static WARM: WarmSpec = WarmSpec {
    sessions_per_process: 1,
    supports_steering: false,
    is_bound_to_directory: true,
    // The session is chosen by the command line.
    adopts: |_| false,
    // At the end of its input it ends what runs in the background, and itself.
    stop: &[
        StopStep::CloseStdin { wait: Duration::from_secs(2) },
        StopStep::Signal { signal: Signal::Term, wait: Duration::from_secs(5) },
    ],
    launch: launch::warm,
    dialect: |launch| Box::new(Kept::new(launch)),
    attach: None,
};

/// A process that is kept, with its session.
struct Kept {
    session: Session,
    ids: MessageIds,
    wishes: Wishes,
    asked: Asked,
    /// The model that we have set.
    model: Option<String>,
    /// The prompt whose turn has not ended.
    prompted: Option<Prompted>,
    /// The turn whose lines are read now.
    current: Option<Turn>,
    /// The turn that the CLI was told to end.
    interrupted: Option<TurnKey>,
    n_unasked: u32,
    /// Whether the CLI takes prompts.
    is_ready: bool,
    /// Whether the CLI names the messages that its lines are about.
    tells_messages: bool,
    /// Why the process does not become ready.
    failed_start: Option<Failure>,
}

impl Kept {
    fn new(launch: &WarmLaunch<'_>) -> Self {
        Self {
            session: Session::new(ONLY_SESSION, launch.open.memo(), launch.options),
            ids: MessageIds::new(launch.new_id),
            wishes: Wishes::default(),
            asked: Asked::default(),
            model: None,
            prompted: None,
            current: None,
            interrupted: None,
            n_unasked: 0,
            is_ready: false,
            tells_messages: false,
            failed_start: None,
        }
    }

    fn order(&mut self, order: Order<'_>, out: &mut Vec<Action>) {
        match order {
            Order::Start => self.wishes.ask(Wish::Initialize, out),
            Order::Open { session, open, options } => {
                self.session = Session::new(session, open.memo(), options);
            }
            Order::Prompt { turn, prompt, options, .. } => {
                let prompted = Prompted::new(turn, prompt, options, &mut self.ids);
                if self.prompted.is_some() {
                    let text = "another turn of this session is running";
                    let failure = Failure::new(FailureKind::SessionBusy, text);
                    return self.reader(turn).fail(failure, out);
                }
                self.prompted = Some(prompted);
                self.send(out);
            }
            Order::Answer { request, ruling, .. } => self.asked.answer(request, ruling, out),
            // Neither comes: it cannot be steered, and its one session ends with it.
            Order::Steer { .. } | Order::Close { .. } | Order::Leave => {}
        }
    }

    /// Sends the prompt, unless something must be answered before. That is
    /// waited for anew with every answer that comes.
    fn send(&mut self, out: &mut Vec<Action>) {
        let Some(prompted) = self.prompted.as_mut().filter(|prompted| !prompted.is_sent()) else {
            return;
        };
        let turn = prompted.turn;
        if !self.wishes.any_open() {
            match prompted.model.take().filter(|model| self.model.as_ref() != Some(model)) {
                Some(model) => self.wishes.ask(Wish::SetModel { turn, model }, out),
                None => return out.extend(prompted.send().map(Action::Write)),
            }
        }
        out.push(Action::Arm { timer: held_timer_of(turn), after: PATIENCE });
    }

    fn cancel(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        let prompted = self.prompted.as_ref().filter(|prompted| prompted.turn == turn);
        match prompted.map(Prompted::is_sent) {
            Some(true) => self.interrupt(turn, true, out),
            Some(false) => self.fail_prompted(outcome::interrupted(), out),
            None if self.current.as_ref().is_some_and(|current| current.key == turn) => {
                self.interrupt(turn, false, out);
            }
            None => {}
        }
    }

    /// Asks the CLI to end a turn. With `queued` it also drops a prompt that it
    /// has not begun with.
    fn interrupt(&mut self, turn: TurnKey, queued: bool, out: &mut Vec<Action>) {
        if self.interrupted.replace(turn) != Some(turn) {
            self.wishes.ask(Wish::Interrupt { queued }, out);
        }
    }

    /// Ends the turn of a prompt of which the CLI will say nothing.
    fn fail_prompted(&mut self, failure: Failure, out: &mut Vec<Action>) {
        if let Some(prompted) = self.prompted.take() {
            self.reader(prompted.turn).fail(failure, out);
        }
    }

    /// Makes the reader of a turn's lines.
    fn reader(&self, turn: TurnKey) -> Turn {
        Turn::new(turn, self.session.clone())
    }

    /// Returns the turn that a line belongs to which does not say it.
    fn heard_turn(&self) -> Option<TurnKey> {
        let current = self.current.as_ref().map(|turn| turn.key);
        let sent = || self.prompted.as_ref().filter(|prompted| prompted.is_sent());
        current.or_else(|| sent().map(|prompted| prompted.turn))
    }

    /// The CLI did not end a turn that was given up, or did not answer what a
    /// prompt waits for: its process must go.
    fn rang(&mut self, timer: TimerKey, out: &mut Vec<Action>) {
        if self.current.as_ref().is_some_and(|turn| timer_of(turn.key) == timer) {
            out.push(Action::Stop);
        }
        let held = self.prompted.as_ref().filter(|prompted| !prompted.is_sent());
        if held.is_some_and(|prompted| held_timer_of(prompted.turn) == timer) {
            // First, so that no other prompt is given to this process.
            out.push(Action::Stop);
            let text = "the agent did not answer a request that the prompt had to wait for";
            self.fail_prompted(Failure::new(FailureKind::Crashed, text), out);
        }
    }

    fn exited(&mut self, now: Timestamp, exit: &Exit, out: &mut Vec<Action>) {
        if !self.is_ready {
            let of_exit = || failure::of_exit(exit, Evidence::default(), "", now);
            let failure = self.failed_start.take().unwrap_or_else(of_exit);
            if failure.kind != FailureKind::Crashed {
                // That ends what waits or runs in it, too.
                (self.prompted, self.current) = (None, None);
                return out.push(Action::OpenFailed { session: ONLY_SESSION, failure });
            }
        }
        let prompted = self.prompted.take();
        if let Some(mut turn) = self.current.take() {
            turn.cut_short(now, exit, out);
            if prompted.as_ref().is_some_and(|prompted| prompted.turn == turn.key) {
                return;
            }
        }
        if let Some(prompted) = prompted {
            self.reader(prompted.turn).cut_short(now, exit, out);
        }
    }
}

impl Dialect for Kept {
    fn step(&mut self, now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        match input {
            Input::Order(order) => self.order(order, out),
            Input::Line { from: Stream::Stderr, bytes, .. } => {
                if let Some(turn) = self.heard_turn() {
                    complaint(turn, bytes, out);
                }
            }
            Input::Line { bytes, cut: true, .. } => self.lost_line(bytes, out),
            Input::Line { bytes, .. } => self.line(now, bytes, out),
            Input::Cancel { turn } => self.cancel(turn, out),
            Input::Timer(timer) => self.rang(timer, out),
            Input::Heard(_) => {}
            Input::Exited(exit) => self.exited(now, exit, out),
        }
    }
}

/// The timer of a turn that was given up.
fn timer_of(turn: TurnKey) -> TimerKey {
    TimerKey(turn.0)
}

/// The timer of a turn whose prompt is held back. Turns are counted from both
/// ends, and these timers from the middle.
fn held_timer_of(turn: TurnKey) -> TimerKey {
    TimerKey(turn.0 ^ (1 << 31))
}
