//! Speaks with one `codex app-server`: JSON-RPC, a line a message, both ways.
//!
//! Here is what comes in and where it goes. How sessions and turns are begun is
//! in `opening`, how they are ended in `stopping`. What the server tells by
//! itself is read in `reading`, what it asks in `asking`.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{asking::Asked, launch::api_key, session::Session, turn::LiveTurn};
use crate::{
    agent::{
        Action, Dialect, Input, Order, SessionKey, TimerKey, TurnEnd, TurnKey, WarmLaunch,
        codex::{fault, turn::is_noise},
        emit::{emit, emit_warning},
    },
    event::{EventBody, Status, Stream},
    failure::{Failure, FailureKind},
    protocol::jsonrpc::{Form, Incoming, Peer, RpcError},
};

/// Makes the state machine.
pub(super) fn dialect(launch: &WarmLaunch<'_>) -> Box<dyn Dialect> {
    Box::new(AppServer {
        peer: Peer::new(Form::Bare),
        api_key: api_key(launch).map(str::to_owned),
        is_ready: false,
        refusal: None,
        version: None,
        sessions: BTreeMap::new(),
        children: BTreeMap::new(),
        asked: BTreeMap::new(),
        alarms: BTreeMap::new(),
        n_alarms: 0,
        n_unasked: 0,
    })
}

/// One process with all its threads.
pub(super) struct AppServer {
    pub(super) peer: Peer<Call>,
    api_key: Option<String>,
    pub(super) is_ready: bool,
    /// Why no session can be opened.
    refusal: Option<Failure>,
    pub(super) version: Option<String>,
    pub(super) sessions: BTreeMap<u32, Session>,
    /// Threads that a session's agent began for its own helpers.
    pub(super) children: BTreeMap<String, SessionKey>,
    /// What the server waits to be told, by the name under which it was passed on.
    pub(super) asked: BTreeMap<String, Asked>,
    alarms: BTreeMap<u32, Alarm>,
    n_alarms: u32,
    pub(super) n_unasked: u32,
}

/// What a request of ours was about.
#[derive(Debug)]
pub(super) enum Call {
    Initialize,
    Login,
    Open(SessionKey),
    Begin(SessionKey, TurnKey),
    Steer(SessionKey, TurnKey, String),
    Clean(SessionKey, TurnKey),
    /// A thread is unloaded to be opened with other settings.
    Reopen(SessionKey),
    /// Whatever the reply is, nothing follows from it.
    Nothing,
}

/// What a timer is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Alarm {
    /// The server has tried again for long enough.
    Patience(SessionKey, TurnKey, TimerKey),
    /// A turn should have ended by now.
    Stop(SessionKey, TurnKey),
    /// A thread should be closed by now.
    Reopen(SessionKey, u32),
}

impl Dialect for AppServer {
    fn step(&mut self, _now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        match input {
            Input::Line { from: Stream::Stderr, bytes, .. } => {
                if !is_noise(&String::from_utf8_lossy(bytes)) {
                    self.not_understood(None, Stream::Stderr, bytes, out);
                }
            }
            Input::Line { from: Stream::Stdout, bytes, cut: true } => self.cut_line(bytes, out),
            Input::Line { from: Stream::Stdout, bytes, cut: false } => self.line(bytes, out),
            Input::Order(order) => self.order(order, out),
            Input::Cancel { turn } => self.cancel(turn, out),
            Input::Timer(TimerKey(number)) => {
                if let Some(alarm) = self.alarms.remove(&number) {
                    self.rang(alarm, out);
                }
            }
            Input::Heard(_) => {}
            Input::Exited(exit) => self.exited(exit, out),
        }
    }
}

impl AppServer {
    fn line(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        match self.peer.read(bytes) {
            Incoming::Notification { method, params } => {
                self.notification(&method, params, bytes, out);
            }
            Incoming::Request { id, method, params } => self.request(id, &method, params, out),
            Incoming::Reply { call, result } => self.reply(call, result, out),
            Incoming::Stray => {}
            Incoming::Unreadable => self.not_understood(None, Stream::Stdout, bytes, out),
        }
    }

    fn order(&mut self, order: Order<'_>, out: &mut Vec<Action>) {
        match order {
            Order::Start => {
                let client = json!({ "name": "ostler", "title": "Ostler", "version": env!("CARGO_PKG_VERSION") });
                // Without the experimental part the commands that an interrupted turn
                // leaves running could not be ended.
                let capabilities = json!({
                    "experimentalApi": true,
                    "requestAttestation": false,
                    "optOutNotificationMethods": ["account/rateLimits/updated"],
                });
                let params = json!({ "clientInfo": client, "capabilities": capabilities });
                self.ask_server(Call::Initialize, "initialize", params, out);
            }
            Order::Open { session, open, options } => {
                if let Some(failure) = self.refusal.clone() {
                    // Nor can any other: the next one gets a process of its own.
                    out.push(Action::OpenFailed { session, failure });
                    out.push(Action::Stop);
                    return;
                }
                let new = Session::new(open, options);
                let (method, params) = new.opening(Some(options));
                self.sessions.insert(session.0, new);
                self.ask_server(Call::Open(session), method, params, out);
            }
            Order::Prompt { session, turn, prompt, options } => {
                if let Some(known) = self.sessions.get_mut(&session.0) {
                    known.hold(turn, prompt, options);
                    self.advance(session, out);
                } else {
                    out.push(Action::EndTurn { turn, end: Box::new(TurnEnd::not_open()) });
                }
            }
            Order::Steer { turn, text } => self.steer(turn, text, out),
            Order::Answer { request, ruling, .. } => self.answer(request, ruling, out),
            Order::Close { session } => self.close(session, out),
            // A process is ended, not left.
            Order::Leave => {}
        }
    }

    fn reply(&mut self, call: Call, result: Result<Value, RpcError>, out: &mut Vec<Action>) {
        match call {
            Call::Initialize => match result {
                Ok(about) => {
                    self.version = version(&about);
                    out.push(Action::Write(self.peer.notification("initialized")));
                    match self.api_key.take() {
                        Some(key) => {
                            let params = json!({ "type": "apiKey", "apiKey": key });
                            self.ask_server(Call::Login, "account/login/start", params, out);
                        }
                        None => self.ready(None, out),
                    }
                }
                Err(error) => self.ready(Some(refused(&error, FailureKind::Internal)), out),
            },
            Call::Login => {
                let failure = result.err().map(|error| refused(&error, FailureKind::Auth));
                self.ready(failure, out);
            }
            Call::Open(session) => self.opened(session, result, out),
            Call::Begin(session, turn) => self.begun(session, turn, result, out),
            Call::Steer(session, turn, text) => {
                if self.live(session, turn).is_some() {
                    match result {
                        Ok(_) => emit(turn, EventBody::Status(Status::Steered { text }), out),
                        Err(error) => emit_warning(turn, too_late(&text, &error.message), out),
                    }
                }
            }
            Call::Clean(session, turn) => self.cleaned(session, turn, out),
            Call::Reopen(session) => self.unloaded(session, result.ok().as_ref(), out),
            Call::Nothing => {}
        }
    }

    fn ready(&mut self, refusal: Option<Failure>, out: &mut Vec<Action>) {
        self.is_ready = true;
        self.refusal = refusal;
        out.push(Action::Ready);
    }

    /// Asks the server for something.
    pub(super) fn ask_server(
        &mut self,
        call: Call,
        method: &str,
        params: Value,
        out: &mut Vec<Action>,
    ) {
        out.push(Action::Write(self.peer.request(call, method, params)));
    }

    /// Watches over a turn whose server tries again.
    pub(super) fn watch(
        &mut self,
        key: SessionKey,
        turn: TurnKey,
        (timer, after): (TimerKey, Duration),
        out: &mut Vec<Action>,
    ) {
        self.arm(Alarm::Patience(key, turn, timer), after, out);
    }

    /// Sets a timer.
    pub(super) fn arm(&mut self, alarm: Alarm, after: Duration, out: &mut Vec<Action>) {
        self.n_alarms = self.n_alarms.wrapping_add(1);
        self.alarms.insert(self.n_alarms, alarm);
        out.push(Action::Arm { timer: TimerKey(self.n_alarms), after });
    }

    /// Returns a turn that has not ended.
    pub(super) fn live(&mut self, key: SessionKey, turn: TurnKey) -> Option<&mut LiveTurn> {
        let live = self.sessions.get_mut(&key.0)?.turn.as_mut()?;
        (live.key == turn).then_some(live)
    }

    /// Finds a turn that has not ended, with the thread it runs in.
    pub(super) fn find_live(
        &mut self,
        turn: TurnKey,
    ) -> Option<(SessionKey, String, &mut LiveTurn)> {
        self.sessions.iter_mut().find_map(|(key, session)| {
            let live = session.turn.as_mut().filter(|live| live.key == turn)?;
            Some((SessionKey(*key), session.thread.clone()?, live))
        })
    }
}

/// Makes a failure of what the server did not do.
pub(super) fn refused(error: &RpcError, otherwise: FailureKind) -> Failure {
    fault::of_message(&error.message, otherwise)
}

/// Says that a text was not taken into account.
pub(super) fn too_late(text: &str, why: &str) -> String {
    format!("not taken into account, because {why}: {text}")
}

/// Reads the server's version: `ostler/0.166.0 (…`.
fn version(about: &Value) -> Option<String> {
    let (_, rest) = about.get("userAgent")?.as_str()?.split_once('/')?;
    rest.split(' ').next().map(str::to_owned)
}
