//! One turn with a process of its own: the protocol for one session and one
//! prompt, and then the end. There is no other way to ask such an agent.
//!
//! Nobody can be asked meanwhile, so a turn that should ask is read-only.

use std::time::Duration;

use jiff::Timestamp;

use super::FACTS;
use crate::{
    agent::{
        Action, Dialect, Exit, Input, Launch, ONLY_SESSION, ONLY_TURN, Order, TimerKey, TurnEnd,
        words::exit_words,
    },
    failure::{Failure, FailureKind},
    protocol::acp,
    request::{Open, Options, Permissions},
};

/// How long the agent may take until it can be spoken with.
const START_LIMIT: Duration = Duration::from_secs(60);
/// The client counts its own timers from the other end.
const START_TIMER: TimerKey = TimerKey(u32::MAX);

/// Makes the state machine for one turn.
pub(super) fn dialect(launch: &Launch<'_>) -> Box<dyn Dialect> {
    let mut options = launch.options.clone();
    if options.permissions == Permissions::Ask {
        options.permissions = Permissions::ReadOnly;
    }
    Box::new(Once {
        client: acp::dialect(&FACTS),
        options,
        open: launch.open.clone(),
        prompt: launch.prompt.to_owned(),
        is_ready: false,
        is_over: false,
        is_gone: false,
    })
}

struct Once {
    client: Box<dyn Dialect>,
    options: Options,
    open: Open,
    prompt: String,
    is_ready: bool,
    is_over: bool,
    /// Whether the process has ended.
    is_gone: bool,
}

impl Dialect for Once {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "whatever else there is goes through as it is"
    )]
    fn step(&mut self, now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        match input {
            Input::Timer(START_TIMER) => {
                if !self.is_ready {
                    let text = format!("the agent was not ready within {START_LIMIT:?}");
                    self.fail(Failure::timed_out(text), out);
                }
            }
            Input::Exited(exit) => {
                self.is_gone = true;
                self.pass(now, Input::Exited(exit), out);
                self.fail(crashed(exit), out);
            }
            Input::Cancel { turn } => {
                self.pass(now, Input::Cancel { turn }, out);
                // The client knows of no turn before the agent is ready.
                if !self.is_ready {
                    out.push(Action::Stop);
                }
            }
            Input::Order(Order::Start) => {
                out.push(Action::Arm { timer: START_TIMER, after: START_LIMIT });
                self.pass(now, Input::Order(Order::Start), out);
            }
            input => self.pass(now, input, out),
        }
    }
}

impl Once {
    /// Gives the client an input and does what it would want of whoever keeps
    /// a process.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "whatever else there is goes through as it is"
    )]
    fn pass(&mut self, now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        let mut wanted = Vec::new();
        self.client.step(now, input, &mut wanted);
        for action in wanted {
            match action {
                Action::Ready => {
                    self.is_ready = true;
                    self.begin(now, out);
                }
                Action::OpenFailed { failure, .. } => self.fail(failure, out),
                Action::EndTurn { end, .. } => self.end(end, out),
                action => out.push(action),
            }
        }
    }

    fn begin(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        let (open, options, prompt) =
            (self.open.clone(), self.options.clone(), std::mem::take(&mut self.prompt));
        let (session, turn) = (ONLY_SESSION, ONLY_TURN);
        let orders = [
            Order::Open { session, open: &open, options: &options },
            Order::Prompt { session, turn, prompt: &prompt, options: &options },
        ];
        for order in orders {
            if !self.is_over {
                self.pass(now, Input::Order(order), out);
            }
        }
    }

    fn fail(&mut self, failure: Failure, out: &mut Vec<Action>) {
        self.end(Box::new(TurnEnd::failed(failure)), out);
    }

    /// Ends the turn, once, and the process with it.
    fn end(&mut self, end: Box<TurnEnd>, out: &mut Vec<Action>) {
        if !std::mem::replace(&mut self.is_over, true) {
            out.push(Action::EndTurn { turn: ONLY_TURN, end });
            // An end of its own accord is not ours.
            if !self.is_gone {
                out.push(Action::Stop);
            }
        }
    }
}

fn crashed(exit: &Exit) -> Failure {
    Failure::new(FailureKind::Crashed, exit_words(exit))
}
