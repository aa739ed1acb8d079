//! One process that is kept, or one server of somebody else's that is spoken
//! to, with all its sessions and turns.
//!
//! The loop waits for the process, for orders, for readers and for the clock at
//! once, like that of the one-shot driver; what happens becomes an input of the
//! dialect, whose actions are carried out in order. The driver's reason for
//! ending a turn wins over whatever the agent then says. What differs is that a
//! turn's end is not the process's: the process goes on until it is told to
//! stop, becomes unusable or dies, and its end ends every turn in it.

mod clock;
mod ending;
mod server;
mod sessions;
mod turns;

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    future::poll_fn,
    mem,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use jiff::Timestamp;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    footing::Footing,
    live::{Done, LiveTurn, NewTurn, Phase, Way},
    pool::{MemberId, News},
    wire::Wire,
};
use crate::{
    agent::{Action, AgentName, Dialect, Exit, Input, Order, SessionKey, TurnKey},
    driver::timers::Timers,
    event::EventBody,
    failure::Failure,
    lock::SessionLock,
    memo::MemoStore,
    permission::{Allowances, Allowed, DecidedBy, Decision},
    proc::ProcEvent,
    request::{Open, Options},
    transcript::{Said as Line, Transcript},
    turn::Say,
    verdict::Reason,
};

/// How long a process may take until it accepts sessions.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long a dialect may take to end a cancelled turn by its own means.
const GRACE_AFTER_CANCEL: Duration = Duration::from_secs(2);
/// What nothing is due at.
const FAR_AWAY: Duration = Duration::from_secs(24 * 3600);

/// What can be told to a worker.
pub(crate) enum Command {
    /// Takes a session in.
    Open { session: SessionKey, open: Box<Open>, options: Box<Options>, lock: Option<SessionLock> },
    /// Begins a turn, or queues it behind another one of its session.
    Prompt(Box<NewTurn>),
    /// Says something to a turn.
    Say { turn: TurnKey, say: Say },
    /// Ends a turn.
    Cancel { turn: TurnKey },
    /// Ends a turn at once, with the process if need be.
    Kill { turn: TurnKey },
    /// Gives a session up, once no turn runs in it.
    Close { session: SessionKey },
}

/// Makes the way of a turn that the agent began by itself, in the session of
/// this id.
pub(crate) type UnaskedHook =
    Arc<dyn Fn(TurnKey, Option<&str>) -> (Way, Vec<EventBody>) + Send + Sync>;

/// What a worker is made from.
pub(crate) struct Parts {
    pub(crate) member: MemberId,
    pub(crate) agent: AgentName,
    pub(crate) is_shared: bool,
    pub(crate) can_steer: bool,
    pub(crate) footing: Footing,
    pub(crate) dialect: Box<dyn Dialect>,
    pub(crate) memos: MemoStore,
    pub(crate) allowances: Allowances,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) stop: CancellationToken,
    pub(crate) news: mpsc::UnboundedSender<News>,
    pub(crate) tasks: TaskTracker,
}

/// One process with all its sessions and turns.
pub(crate) struct Worker {
    parts: Parts,
    /// The way to a process that is an HTTP server.
    wire: Wire,
    timers: Timers,
    actions: Vec<Action>,
    /// Actions are being carried out.
    is_stepping: bool,
    /// Sessions that can begin a turn once that is done.
    next_up: Vec<SessionKey>,
    ready: bool,
    /// No new turn begins here.
    retired: bool,
    /// It began to end by itself.
    died: bool,
    /// Why a server of somebody else's takes no session.
    unusable: Option<Failure>,
    start_limit: Instant,
    sessions: HashMap<SessionKey, Session>,
    /// Why sessions could not be opened whose first turn is still on its way.
    refused: HashMap<SessionKey, Failure>,
    turns: BTreeMap<u32, LiveTurn>,
    exit: Option<Exit>,
}

struct Session {
    /// What to open, until the process is ready.
    pending: Option<(Box<Open>, Box<Options>)>,
    /// The id that it was asked for by, whose lock came with it.
    asked: Option<String>,
    id: Option<String>,
    lock: Option<SessionLock>,
    active: Option<TurnKey>,
    queue: VecDeque<TurnKey>,
    allowed: Allowed,
    unasked: Option<UnaskedHook>,
    /// The warnings that its turns were told.
    warned: HashSet<String>,
    /// It is to be closed once no turn runs in it.
    closing: bool,
}

impl Worker {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            parts,
            wire: Wire::new(),
            timers: Timers::default(),
            actions: Vec::new(),
            is_stepping: false,
            next_up: Vec::new(),
            ready: false,
            retired: false,
            died: false,
            unusable: None,
            start_limit: Instant::now() + START_LIMIT,
            sessions: HashMap::new(),
            refused: HashMap::new(),
            turns: BTreeMap::new(),
            exit: None,
        }
    }

    /// Runs until the process is gone.
    pub(crate) async fn run(mut self) {
        self.step(Input::Order(Order::Start));
        while self.exit.is_none() {
            let alarm = self.alarm();
            let behind = self.turns.values().any(|turn| turn.way.outbox.is_behind());
            // Only a process of one session can be paused by its reader.
            let gives_up = |turn: &LiveTurn| matches!(turn.phase, Phase::GivenUp(_));
            let may_read = self.parts.is_shared
                || !behind
                || self.parts.footing.is_going()
                || self.turns.values().any(gives_up);
            let retired = self.retired;
            tokio::select! {
                biased;
                () = self.parts.stop.cancelled(), if !retired => self.retire(),
                Some(command) = self.parts.commands.recv() => self.command(command),
                () = sleep_until(alarm) => self.rang(),
                () = deliver(&mut self.turns), if behind => {}
                event = self.parts.footing.hear(may_read) => self.took(event),
                came = self.wire.next() => self.came(came),
            }
        }
        self.bury();
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Open { session, open, options, lock } => {
                let entry = Session {
                    asked: open.memo().map(|memo| memo.id.clone()),
                    id: None,
                    pending: Some((open, options)),
                    lock,
                    active: None,
                    queue: VecDeque::new(),
                    allowed: Allowed::default(),
                    unasked: None,
                    warned: HashSet::new(),
                    closing: false,
                };
                self.sessions.insert(session, entry);
                self.open_pending(session);
            }
            Command::Prompt(new) => self.prompt(*new),
            Command::Say { turn, say } => {
                let taken = self.say(turn, say.what);
                // Whoever said it may have gone.
                say.taken.send(taken).ok();
            }
            Command::Cancel { turn } => self.give_up(turn, Reason::Cancelled),
            Command::Kill { turn } => self.kill(turn),
            Command::Close { session } => self.close(session),
        }
    }

    fn took(&mut self, event: ProcEvent) {
        match event {
            ProcEvent::Line { from, bytes, cut } => {
                self.write_down(Line::by(from), &bytes);
                self.step(Input::Line { from, bytes: &bytes, cut });
            }
            // Nothing can be asked of it any more, not even to cancel.
            ProcEvent::StdinClosed => {
                self.died |= !self.retired;
                self.stop_hard();
            }
            ProcEvent::Exited { code, signal } => {
                self.ended(self.parts.footing.exit(code, signal));
            }
        }
    }

    fn step(&mut self, input: Input<'_>) {
        let mut actions = mem::take(&mut self.actions);
        self.parts.dialect.step(Timestamp::now(), input, &mut actions);
        let is_nested = mem::replace(&mut self.is_stepping, true);
        for action in actions.drain(..) {
            self.act(action);
        }
        self.actions = actions;
        self.is_stepping = is_nested;
        if !is_nested {
            for session in mem::take(&mut self.next_up) {
                self.begin_next(session);
            }
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Write(bytes) => {
                self.write_down(Line::Stdin, bytes.trim_ascii_end());
                self.parts.footing.write(&bytes);
            }
            Action::Call { call, request } => self.call(call, *request),
            Action::Listen(source) => self.wire.listen(source),
            Action::Ready => {
                self.ready = true;
                let mut sessions: Vec<_> = self.sessions.keys().copied().collect();
                sessions.sort_by_key(|session| session.0);
                for session in sessions {
                    self.open_pending(session);
                }
            }
            Action::Opened { session, id } => self.opened(session, &id),
            Action::OpenFailed { failure, .. } if !self.ready => {
                // Whatever keeps the process from starting keeps it from all of them.
                let sessions: Vec<_> = self.sessions.keys().copied().collect();
                for session in sessions {
                    self.open_failed(session, &failure);
                }
                self.unusable = Some(failure).filter(|_| self.parts.footing.is_server());
            }
            Action::OpenFailed { session, failure } => self.open_failed(session, &failure),
            Action::Unasked { session, turn } => self.unasked(session, turn),
            Action::Working { turn } => {
                if let Some(turn) = self.turns.get_mut(&turn.0) {
                    turn.heard_at = Instant::now();
                }
            }
            Action::Emit { turn, parent, event } => self.emit(turn, parent, event),
            Action::Ask { turn, permission } => self.ask(turn, *permission),
            Action::Withdraw { turn, request } => {
                if let Some(turn) = self.turns.get_mut(&turn.0) {
                    turn.resolve(&request, Decision::Deny, DecidedBy::Agent);
                }
            }
            Action::EndTurn { turn, end } => self.finish(turn, Some(*end)),
            Action::Stop if self.parts.footing.is_server() => self.left(),
            Action::Stop => {
                self.leave_pool();
                self.stop();
            }
            Action::Arm { timer, after } => self.timers.arm(timer, after),
        }
    }

    fn write_down(&mut self, said: Line, bytes: &[u8]) {
        for turn in self.turns.values_mut() {
            if !matches!(turn.phase, Phase::Waiting { .. }) {
                let Way { transcript, outbox, .. } = &mut turn.way;
                Transcript::note(transcript, said, bytes, outbox);
            }
        }
    }

    fn tell(&self, news: News) {
        // The pool outlives its members, except when the runtime ends.
        self.parts.news.send(news).ok();
    }
}

fn not_begun(turn: LiveTurn, why: &str) {
    let Way { outbox, transcript, done, .. } = turn.way;
    done.send(Done::NotBegun { outbox, transcript, why: why.to_owned() }).ok();
}

/// Hands events over until some reader has caught up. Cancel-safe.
async fn deliver(turns: &mut BTreeMap<u32, LiveTurn>) {
    poll_fn(|context| {
        let mut any = Poll::Pending;
        for turn in turns.values_mut().filter(|turn| turn.way.outbox.is_behind()) {
            if turn.way.outbox.poll_deliver(context).is_ready() {
                turn.heard_at = Instant::now();
                any = Poll::Ready(());
            }
        }
        any
    })
    .await;
}
