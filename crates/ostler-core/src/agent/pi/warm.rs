//! Pi, kept running: `pi --mode rpc`, JSON lines both ways.
//!
//! One process is in one session at a time and can go to another by the path of
//! its file. It says nothing by itself when it is up, so it is asked for its
//! state; the answer also tells the session. Prompts wait here until the session
//! is open, and until nothing is on its way that the CLI would put before them.
//! Here are the orders; what the CLI says is read in `reading`, its turns in
//! `running`, and what its extensions ask in `dialog`.

mod dialog;
mod launch;
mod place;
mod reading;
mod request;
mod running;
mod timers;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use self::{
    dialog::Dialogs,
    place::{Place, Plan},
    request::{Purpose, Requests},
    running::Running,
    timers::{Due, Timers},
};
use super::{
    fault,
    launch::{Extensions, extensions, would_be_command},
    reader::aborted,
    session::{Kept, Session},
    version,
};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, ONLY_SESSION, Order, SessionKey, Signal, StopStep, TurnEnd,
        TurnKey, WarmLaunch, WarmSpec, command_line::Form, emit::emit_warning,
    },
    event::{StopReason, Stream},
    failure::{Failure, FailureKind},
    request::{Open, Options, PromptCommands},
};

/// How Pi is kept running.
pub(super) static WARM: WarmSpec = WarmSpec {
    sessions_per_process: 1,
    supports_steering: true,
    is_bound_to_directory: true,
    adopts: |memo| memo.file.is_some(),
    // It exits as soon as its input ends, even in the middle of a run. It ends
    // its shells on SIGTERM, too, but not on SIGINT.
    stop: &[
        StopStep::CloseStdin { wait: Duration::from_secs(2) },
        StopStep::Signal { signal: Signal::Term, wait: Duration::from_secs(2) },
    ],
    launch: launch::launch,
    dialect: |launch| Box::new(Rpc::new(launch)),
    attach: None,
};

/// How long after the end of a run another one may follow in versions that do
/// not say that they are done.
const SETTLING: Duration = Duration::from_millis(200);
/// How long the CLI may take to abort what must not go on.
const HEARING: Duration = Duration::from_secs(2);
/// How many warnings of the time before the first turn are kept for it.
const MAX_EARLY_WARNINGS: usize = 16;

/// One process.
struct Rpc {
    /// The id of the session that it was started for.
    started_for: Option<String>,
    kept: Kept,
    version: Option<String>,
    /// Whether what it is given may be a command.
    prompt_commands: PromptCommands,
    /// Whether it says when it is done with a prompt.
    settles: bool,
    stage: Stage,
    place: Place,
    /// The session, while no turn has it.
    session: Option<Session>,
    waiting: Option<Waiting>,
    running: Option<Running>,
    requests: Requests,
    dialogs: Dialogs,
    timers: Timers,
    early_warnings: Vec<String>,
    n_unasked: u32,
}

/// How far the process has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Starting,
    /// It is up, and nobody has wanted a session of it.
    Ready,
    /// It goes to the session that is wanted.
    Opening(SessionKey),
    Open,
    /// It is not where it should be.
    Lost,
}

/// A prompt that the CLI has not been given yet.
struct Waiting {
    turn: TurnKey,
    prompt: String,
    max_calls: Option<u32>,
    may_be_command: bool,
}

impl Dialect for Rpc {
    fn step(&mut self, now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        match input {
            Input::Order(order) => self.order(order, out),
            Input::Line { from: Stream::Stderr, bytes, .. } => self.stderr(bytes, out),
            Input::Line { bytes, cut: true, .. } => {
                if let Some(running) = &mut self.running {
                    running.lost_line(bytes);
                }
                self.unknown(bytes, out);
            }
            Input::Line { bytes, .. } => self.line(now, bytes, out),
            Input::Cancel { turn } => self.cancel(turn, out),
            Input::Timer(timer) => {
                if let Some(due) = self.timers.take(timer) {
                    self.rang(due, out);
                }
            }
            Input::Heard(_) => {}
            Input::Exited(exit) => self.exited(exit, out),
        }
        if self.running.as_ref().is_some_and(Running::has_ended) {
            self.turn_over(out);
        }
        self.send_waiting(out);
    }
}

impl Rpc {
    fn new(launch: &WarmLaunch<'_>) -> Self {
        Self {
            started_for: launch.open.memo().map(|memo| memo.id.clone()),
            kept: Kept::of(&launch.options.extra_args),
            version: launch.version.map(str::to_owned),
            prompt_commands: launch.options.prompt_commands,
            settles: launch
                .version
                .is_some_and(|version| version::is_at_least(version, (0, 80, 4))),
            stage: Stage::Starting,
            place: Place::default(),
            session: None,
            waiting: None,
            running: None,
            requests: Requests::default(),
            dialogs: Dialogs::default(),
            timers: Timers::default(),
            early_warnings: Vec::new(),
            n_unasked: 0,
        }
    }

    fn order(&mut self, order: Order<'_>, out: &mut Vec<Action>) {
        match order {
            Order::Start => self.requests.ask_state(Purpose::Ready, out),
            Order::Open { session, open, options } => self.open(session, open, options, out),
            Order::Prompt { turn, prompt, options, .. } => self.prompt(turn, prompt, options, out),
            Order::Steer { turn, text } => self.steer(turn, text, out),
            Order::Answer { request, ruling, .. } => {
                self.timers.forget(&Due::Expired(request.to_owned()));
                self.dialogs.answer(request, ruling, out);
            }
            // A process of one session is stopped instead.
            Order::Close { .. } | Order::Leave => {}
        }
    }

    fn open(&mut self, key: SessionKey, open: &Open, options: &Options, out: &mut Vec<Action>) {
        let resumed = open.memo().map(|memo| memo.id.clone());
        let session = Session::new(key, resumed, self.kept, self.version.as_deref());
        self.session = Some(session);
        match self.place.plan(self.started_for.as_deref(), open, options) {
            Plan::Stay => self.arrived(key, out),
            Plan::Switch(path) => {
                self.stage = Stage::Opening(key);
                let fields = json!({"sessionPath": path});
                self.requests.send("switch_session", fields, Purpose::Move, out);
            }
            Plan::Begin => {
                self.stage = Stage::Opening(key);
                self.requests.send("new_session", json!({}), Purpose::Move, out);
            }
            Plan::Fail(failure) => self.lose(key, failure, out),
        }
    }

    /// The CLI is in the session where it is to stay.
    fn arrived(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = &mut self.session else { return };
        match session.name(self.place.id().to_owned(), out) {
            Ok(()) => self.stage = Stage::Open,
            Err(lost) => self.lose(key, Failure::new(FailureKind::SessionLost, lost), out),
        }
    }

    /// The session cannot be had; whoever waits for it is told with this.
    fn lose(&mut self, session: SessionKey, failure: Failure, out: &mut Vec<Action>) {
        self.stage = Stage::Lost;
        self.session = None;
        self.waiting = None;
        out.push(Action::OpenFailed { session, failure });
    }

    fn prompt(&mut self, turn: TurnKey, prompt: &str, options: &Options, out: &mut Vec<Action>) {
        if matches!(self.stage, Stage::Starting | Stage::Ready | Stage::Lost) {
            let failure = Failure::new(FailureKind::Internal, "there is no session");
            return end(turn, failure, StopReason::Error, out);
        }
        self.prompt_commands = options.prompt_commands;
        self.waiting = Some(Waiting {
            turn,
            prompt: as_text(prompt, self.prompt_commands),
            max_calls: options.max_turns,
            may_be_command: extensions(options, Form::Default) == Extensions::Loaded,
        });
    }

    /// Gives the CLI the prompt that waits, as soon as it goes to the right place.
    fn send_waiting(&mut self, out: &mut Vec<Action>) {
        let may = self.stage == Stage::Open
            && self.running.is_none()
            // What comes too late for its turn would be put before the next prompt.
            && !self.requests.has_steering();
        if !may || self.session.is_none() {
            return;
        }
        let Some(Waiting { turn, prompt, max_calls, may_be_command }) = self.waiting.take() else {
            return;
        };
        self.begin(turn, max_calls, may_be_command, out);
        let fields = json!({"message": prompt});
        self.requests.send("prompt", fields, Purpose::Prompt(turn), out);
    }

    fn begin(
        &mut self,
        turn: TurnKey,
        max_calls: Option<u32>,
        may_be_command: bool,
        out: &mut Vec<Action>,
    ) {
        let Some(session) = self.session.take() else { return };
        let mut running = Running::new(session, turn, max_calls, may_be_command);
        running.note_file(self.place.file());
        self.running = Some(running);
        for text in self.early_warnings.drain(..) {
            emit_warning(turn, text, out);
        }
    }

    /// The turn has ended: nothing of it may reach the next one.
    fn turn_over(&mut self, out: &mut Vec<Action>) {
        self.dialogs.dismiss(out);
        self.timers.clear();
        self.session = self.running.take().map(Running::into_session);
    }

    fn steer(&mut self, turn: TurnKey, text: &str, out: &mut Vec<Action>) {
        if self.running_as(turn).is_some() {
            let purpose = Purpose::Steer(turn, text.to_owned());
            let fields = json!({"message": as_text(text, self.prompt_commands)});
            self.requests.send("steer", fields, purpose, out);
        }
    }

    fn cancel(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        if self.waiting.as_ref().is_some_and(|waiting| waiting.turn == turn) {
            self.waiting = None;
            return end(turn, aborted(), StopReason::Cancelled, out);
        }
        let Some(running) = self.running_as(turn) else { return };
        running.cancel();
        self.abort(turn, out);
    }

    fn abort(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        // Else a tool would wait for its answer, and the CLI for the tool.
        self.dialogs.dismiss(out);
        // Else the CLI would go on with what is queued.
        self.requests.send("clear_queue", json!({}), Purpose::Forget, out);
        self.requests.send("abort", json!({}), Purpose::Abort(turn), out);
    }

    fn rang(&mut self, due: Due, out: &mut Vec<Action>) {
        let Some(running) = &mut self.running else { return };
        match due {
            Due::Settled => running.finish(out),
            Due::Unheard => {
                running.finish(out);
                out.push(Action::Stop);
            }
            Due::Expired(id) => self.dialogs.expire(&id, running.key(), out),
        }
    }

    fn stderr(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        if let Some(running) = &mut self.running {
            return running.stderr(bytes, out);
        }
        let line = String::from_utf8_lossy(bytes);
        if let Some(text) = super::turn::warning(&line)
            && self.early_warnings.len() < MAX_EARLY_WARNINGS
        {
            self.early_warnings.push(text.to_owned());
        }
    }

    fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        let why = || fault::of_silence(&exit.stderr).unwrap_or_else(|| fault::of_exit(exit, ""));
        if let Some(running) = &mut self.running {
            running.exited(exit, out);
        }
        if let Some(waiting) = self.waiting.take() {
            end(waiting.turn, why(), StopReason::Error, out);
        }
        if self.stage == Stage::Starting {
            self.lose(ONLY_SESSION, why(), out);
        }
        self.stage = Stage::Lost;
    }

    fn running_as(&mut self, turn: TurnKey) -> Option<&mut Running> {
        self.running.as_mut().filter(|running| running.key() == turn && !running.has_ended())
    }
}

/// Ends a turn that the CLI never heard of.
fn end(turn: TurnKey, failure: Failure, reason: StopReason, out: &mut Vec<Action>) {
    let end = TurnEnd { stop_reason: Some(reason), ..TurnEnd::failed(failure) };
    out.push(Action::EndTurn { turn, end: Box::new(end) });
}

/// Keeps a prompt from being read as a command, where that is not wanted: only
/// a slash in the very first place counts.
fn as_text(prompt: &str, commands: PromptCommands) -> String {
    let before = if would_be_command(prompt, commands, Form::Default) { " " } else { "" };
    format!("{before}{prompt}")
}
