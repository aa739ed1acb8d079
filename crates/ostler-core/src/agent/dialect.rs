//! What a dialect is asked and what it answers: the whole interface between
//! meaning and I/O. Data only.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::http::{CallKey, EventSource, Heard, HttpCall};
use crate::{
    event::{EventBody, StopReason, Stream, Usage},
    failure::{Failure, FailureKind},
    memo::Totals,
    permission::{Permission, Ruling},
    request::{Open, Options},
};

/// Reads one agent process with all its sessions, and says what to do.
///
/// Does no I/O, never panics, and never fails on what the other side prints:
/// what it does not know becomes an [`EventBody::Unknown`].
pub trait Dialect: Send {
    /// Takes one input and appends what follows from it.
    fn step(&mut self, now: Timestamp, input: Input<'_>, out: &mut Vec<Action>);
}

/// One of our names for a session inside a process. One-shot has the first only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey(pub u32);

/// One of our names for a turn inside a process. One-shot has the first only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TurnKey(pub u32);

impl TurnKey {
    /// Makes the name of a process's nth turn that nobody asked for. The driver
    /// counts its own from the other end.
    #[must_use]
    pub fn unasked(number: u32) -> Self {
        Self(u32::MAX.saturating_sub(number))
    }
}

/// A dialect's own name for a timer it armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerKey(pub u32);

/// The only session of a one-shot process.
pub const ONLY_SESSION: SessionKey = SessionKey(0);
/// The only turn of a one-shot process.
pub const ONLY_TURN: TurnKey = TurnKey(0);

/// What happened to the process or was asked of it.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// It printed a line. `bytes` has no line end.
    Line {
        /// Where.
        from: Stream,
        /// The line, or the start of one that was too long.
        bytes: &'a [u8],
        /// Whether the line was too long to keep.
        cut: bool,
    },
    /// Something is wanted of a process that is kept running.
    Order(Order<'a>),
    /// The turn should end.
    Cancel {
        /// Which.
        turn: TurnKey,
    },
    /// A timer rang.
    Timer(TimerKey),
    /// An agent that is an HTTP server was heard.
    Heard(Heard<'a>),
    /// The process is gone, and everything it printed has been read.
    Exited(&'a Exit),
}

/// What can be wanted of a process that is kept running. A process of one turn
/// gets none of these: all it has to know is in its command line.
#[derive(Clone, Debug)]
pub enum Order<'a> {
    /// The process has just been started. The first order; nothing else comes
    /// before the dialect says [`Action::Ready`].
    Start,
    /// A session is to be made or gone on with. A process of one session gets
    /// this once.
    Open {
        /// Our name for it.
        session: SessionKey,
        /// Which.
        open: &'a Open,
        /// How.
        options: &'a Options,
    },
    /// A turn begins. At most one runs in a session; it may come before the
    /// agent has confirmed the session.
    Prompt {
        /// In which session.
        session: SessionKey,
        /// Our name for the turn.
        turn: TurnKey,
        /// The prompt, identity text included.
        prompt: &'a str,
        /// How, as of now: what can change within a session is taken from here.
        options: &'a Options,
    },
    /// The running turn is to take this into account.
    Steer {
        /// Which.
        turn: TurnKey,
        /// The text.
        text: &'a str,
    },
    /// A permission request was decided. Comes once for each [`Action::Ask`],
    /// unless that was withdrawn or its turn has ended.
    Answer {
        /// In which turn.
        turn: TurnKey,
        /// The request's id.
        request: &'a str,
        /// How.
        ruling: &'a Ruling,
    },
    /// Nobody needs the session any more; no turn runs in it.
    Close {
        /// Which.
        session: SessionKey,
    },
    /// Nobody needs the server any more, which is somebody else's and stays.
    /// What still runs there for us is to be ended; [`Action::Stop`] says that
    /// it is. The last order.
    Leave,
}

/// What the driver is to do.
#[derive(Clone, Debug)]
pub enum Action {
    /// Ends the process by its stop plan. A server of somebody else's is left
    /// alone from here on.
    Stop,
    /// Writes to the process's standard input.
    Write(Vec<u8>),
    /// Calls an agent that is an HTTP server; answered by [`Heard::Reply`]. Calls
    /// run beside each other, and their answers come in any order.
    Call {
        /// The dialect's name for it.
        call: CallKey,
        /// What.
        request: Box<HttpCall>,
    },
    /// Listens to a server's events, instead of to those it listened to before.
    Listen(EventSource),
    /// The process takes sessions now.
    Ready,
    /// A session could not be opened; it is gone, with the turn that waits in it.
    OpenFailed {
        /// Which.
        session: SessionKey,
        /// Why.
        failure: Failure,
    },
    /// The agent began a turn that nobody asked for.
    Unasked {
        /// In which session.
        session: SessionKey,
        /// The dialect's name for the turn: [`TurnKey::unasked`].
        turn: TurnKey,
    },
    /// Somebody has to decide; the answer comes as [`Order::Answer`].
    Ask {
        /// In which turn.
        turn: TurnKey,
        /// What is asked.
        permission: Box<Permission>,
    },
    /// What was asked needs no answer any more.
    Withdraw {
        /// In which turn.
        turn: TurnKey,
        /// The request's id.
        request: String,
    },
    /// Rings once after a while. Arming the same timer again moves it.
    Arm {
        /// Which.
        timer: TimerKey,
        /// How long from now.
        after: Duration,
    },
    /// The agent's id for the session is known, and the session exists. Said
    /// again when the id has changed.
    Opened {
        /// Which session.
        session: SessionKey,
        /// The agent's id.
        id: String,
    },
    /// The agent works on a turn, though there is nothing to tell of it.
    Working {
        /// Which.
        turn: TurnKey,
    },
    /// Tells the caller.
    Emit {
        /// In which turn.
        turn: TurnKey,
        /// On whose behalf, for sub-agents.
        parent: Option<String>,
        /// What.
        event: EventBody,
    },
    /// The agent's last word on a turn.
    EndTurn {
        /// Which.
        turn: TurnKey,
        /// How it ended.
        end: Box<TurnEnd>,
    },
}

/// The agent's last word on a turn, before the driver's view is added.
#[derive(Clone, Debug, Default)]
pub struct TurnEnd {
    /// The answer, exact; absent when there was none to read.
    pub text: Option<String>,
    /// Why the agent failed.
    pub failure: Option<Failure>,
    /// What this turn used.
    pub usage: Usage,
    /// What the session used in all, where the agent counts that way.
    pub totals: Option<Totals>,
    /// The model that answered.
    pub model: Option<String>,
    /// Why the model stopped.
    pub stop_reason: Option<StopReason>,
    /// The file in which the agent keeps the session, where it tells.
    pub file: Option<std::path::PathBuf>,
    /// Everything else the agent told about itself.
    pub meta: Map<String, Value>,
}

impl TurnEnd {
    /// The end of a turn that came to nothing.
    #[must_use]
    pub fn failed(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }

    /// The end of a turn in a session that is not open.
    pub(crate) fn not_open() -> Self {
        Self::failed(Failure::new(FailureKind::Internal, "the session is not open"))
    }

    /// The end of a turn that nobody wants any more and the agent knows nothing of.
    pub(crate) fn never_begun() -> Self {
        let text = "the turn was cancelled before it began";
        let failure = Failure::new(FailureKind::Cancelled, text);
        Self { stop_reason: Some(StopReason::Cancelled), ..Self::failed(failure) }
    }
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The start of what it printed on standard error.
    pub stderr: String,
}

impl Exit {
    /// Returns the exit code, or 128 + the signal.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.code.or(self.signal.map(|signal| 128 + signal)).unwrap_or(-1)
    }

    /// Returns whether the process ended well.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }
}
