//! Speaks with one `codex app-server`: JSON-RPC, a line a message, both ways.
//!
//! Here are the orders and what follows from the replies to our requests. What
//! the server tells by itself is read in `reading`, what it asks in `asking`.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    launch::api_key,
    session::{Session, input},
    turn::{Interrupt, LiveTurn},
};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, ONLY_SESSION, Order, SessionKey, TimerKey, TurnEnd, TurnKey,
        WarmLaunch,
        codex::{
            fault,
            turn::{is_noise, is_same_session},
            warm::asking::Asked,
        },
        emit::{emit, emit_warning},
        words::exit_words,
    },
    event::{EventBody, Status, StopReason, Stream},
    failure::{Failure, FailureKind},
    protocol::jsonrpc::{Form, Incoming, Peer, RpcError},
};

/// How long an interrupted turn may take to end and to be cleaned up.
const STOP_LIMIT: Duration = Duration::from_millis(1500);
/// How long the last words on commands may take after that.
const LAST_WORDS_LIMIT: Duration = Duration::from_millis(250);

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
    is_ready: bool,
    /// Why no session can be opened.
    refusal: Option<Failure>,
    version: Option<String>,
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
    /// Whatever the reply is, nothing follows from it.
    Nothing,
}

/// What a timer is for.
#[derive(Clone, Copy, Debug)]
enum Alarm {
    /// The server has tried again for long enough.
    Patience(SessionKey, TurnKey, TimerKey),
    /// A turn should have ended by now.
    Stop(SessionKey, TurnKey),
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
                    out.push(Action::OpenFailed { session, failure });
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
                    let text = "the session is not open";
                    let failure = Some(Failure::new(FailureKind::Internal, text));
                    let end = Box::new(TurnEnd { failure, ..TurnEnd::default() });
                    out.push(Action::EndTurn { turn, end });
                }
            }
            Order::Steer { turn, text } => self.steer(turn, text, out),
            Order::Answer { request, ruling, .. } => self.answer(request, ruling, out),
            Order::Close { session } => self.close(session, out),
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
            Call::Clean(session, turn) => {
                let Some(live) = self.live(session, turn) else { return };
                live.is_cleaned = true;
                if live.has_commands() {
                    self.arm(Alarm::Stop(session, turn), LAST_WORDS_LIMIT, out);
                }
                self.conclude_if_clean(session, out);
            }
            Call::Nothing => {}
        }
    }

    fn ready(&mut self, refusal: Option<Failure>, out: &mut Vec<Action>) {
        self.is_ready = true;
        self.refusal = refusal;
        out.push(Action::Ready);
    }

    fn opened(&mut self, key: SessionKey, result: Result<Value, RpcError>, out: &mut Vec<Action>) {
        let result = result.map_err(|error| refused(&error, FailureKind::InvalidRequest));
        let told = result.and_then(|result| {
            let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
            let thread = result.get("thread");
            let id = text(thread.and_then(|thread| thread.get("id")));
            let file = text(thread.and_then(|thread| thread.get("path")));
            Ok((id.ok_or_else(Failure::unreadable)?, file, text(result.get("model"))))
        });
        let Some(session) = self.sessions.get_mut(&key.0) else {
            // It was closed meanwhile.
            if let Ok((id, ..)) = told {
                self.unload(&id, out);
            }
            return;
        };
        let lost = |asked: &str, id: &str| {
            let text = format!("codex did not resume session {asked} but opened {id}");
            Failure::new(FailureKind::SessionLost, text)
        };
        let told = match (told, &session.thread) {
            (Ok((id, ..)), Some(asked)) if !is_same_session(asked, &id) => Err(lost(asked, &id)),
            (told, _) => told,
        };
        match told {
            Ok((id, file, model)) => {
                session.is_open = true;
                session.thread = Some(id.clone());
                session.file = file.map(Into::into);
                session.model = model.or(session.model.take());
                out.push(Action::Opened { session: key, id });
                self.advance(key, out);
            }
            Err(failure) => {
                self.sessions.remove(&key.0);
                out.push(Action::OpenFailed { session: key, failure });
            }
        }
    }

    /// Sends the prompt that waits, as soon as that is possible.
    pub(super) fn advance(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        if !session.is_open || session.turn.is_some() || session.held.is_none() {
            return;
        }
        let Some(thread) = session.thread.clone() else { return };
        if session.must_reopen() {
            let (method, params) = session.opening(None);
            self.unload(&thread, out);
            self.ask_server(Call::Open(key), method, params, out);
            return;
        }
        let Some(mut held) = session.held.take() else { return };
        let mut turn = LiveTurn::new(held.turn, session.totals);
        turn.model = held.model().or(session.model.as_ref()).cloned();
        turn.file.clone_from(&session.file);
        turn.steers.append(&mut held.steers);
        if let Some(text) = session.warning.take() {
            turn.warn(text, out);
        }
        session.model.clone_from(&turn.model);
        session.turn = Some(turn);
        let params = held.params(&thread);
        self.ask_server(Call::Begin(key, held.turn), "turn/start", params, out);
    }

    fn begun(
        &mut self,
        key: SessionKey,
        turn: TurnKey,
        result: Result<Value, RpcError>,
        out: &mut Vec<Action>,
    ) {
        let Some(live) = self.live(key, turn).filter(|live| live.ending.is_none()) else { return };
        match result {
            Ok(result) => {
                let id = result.get("turn").and_then(|turn| turn.get("id"));
                if live.id.is_none() {
                    live.id = id.and_then(Value::as_str).map(str::to_owned);
                }
            }
            Err(error) => {
                let end = live.failed(refused(&error, FailureKind::InvalidRequest));
                self.end(key, end, out);
            }
        }
    }

    fn steer(&mut self, turn: TurnKey, text: &str, out: &mut Vec<Action>) {
        let Some((_, session)) = self.sessions.iter_mut().find(|(_, s)| s.has_turn(turn)) else {
            return;
        };
        match (&mut session.turn, &mut session.held) {
            (Some(live), _) if live.key == turn => live.steers.push(text.to_owned()),
            (_, Some(held)) => held.steers.push(text.to_owned()),
            _ => {}
        }
        self.send_steers(turn, out);
    }

    /// Sends what the running turn is to take into account, once it runs.
    pub(super) fn send_steers(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        let Some((key, thread, live)) = self.find_live(turn) else { return };
        if !live.is_running || live.interrupt != Interrupt::No || live.ending.is_some() {
            return;
        }
        let Some(id) = live.id.clone() else { return };
        for text in std::mem::take(&mut live.steers) {
            let params = json!({ "threadId": thread, "expectedTurnId": id, "input": input(&text) });
            self.ask_server(Call::Steer(key, turn, text), "turn/steer", params, out);
        }
    }

    fn cancel(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        for session in self.sessions.values_mut() {
            if session.held.as_ref().is_some_and(|held| held.turn == turn) {
                // The server knows nothing of it yet.
                session.held = None;
                let text = "the turn was cancelled before it began";
                let end = TurnEnd {
                    failure: Some(Failure::new(FailureKind::Cancelled, text)),
                    stop_reason: Some(StopReason::Cancelled),
                    totals: session.totals,
                    ..TurnEnd::default()
                };
                out.push(Action::EndTurn { turn, end: Box::new(end) });
            }
        }
        self.stop(turn, out);
    }

    /// Makes the server end a turn, and what runs in it.
    fn stop(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        let Some((key, _, live)) = self.find_live(turn) else { return };
        if live.interrupt == Interrupt::No && live.ending.is_none() {
            live.interrupt = Interrupt::Wanted;
            self.arm(Alarm::Stop(key, turn), STOP_LIMIT, out);
            self.send_interrupt(turn, out);
        }
    }

    /// Sends the interruption that is wanted, once the turn runs.
    pub(super) fn send_interrupt(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        let Some((_, thread, live)) = self.find_live(turn) else { return };
        if live.interrupt != Interrupt::Wanted || !live.is_running || live.ending.is_some() {
            return;
        }
        let Some(id) = live.id.clone() else { return };
        live.interrupt = Interrupt::Sent;
        let params = json!({ "threadId": thread, "turnId": id });
        self.ask_server(Call::Nothing, "turn/interrupt", params, out);
    }

    fn rang(&mut self, alarm: Alarm, out: &mut Vec<Action>) {
        match alarm {
            Alarm::Patience(key, turn, timer) => {
                let Some(live) = self.live(key, turn) else { return };
                if let Some(why) = live.rang(timer).filter(|_| live.interrupt == Interrupt::No) {
                    live.failure = Some(fault::of_message(&why, FailureKind::Unavailable));
                    self.stop(turn, out);
                }
            }
            Alarm::Stop(key, turn) => {
                let Some(live) = self.live(key, turn) else { return };
                if live.ending.is_some() {
                    return self.conclude(key, out);
                }
                // A cancelled turn that does not end is for the driver to give up,
                // with the process. One that we ended ourselves leaves a thread
                // behind that is opened anew for the next prompt.
                if let Some(failure) = live.failure.take() {
                    live.ending = Some(live.failed(failure));
                    if let Some(session) = self.sessions.get_mut(&key.0) {
                        session.is_stale = true;
                    }
                    self.conclude(key, out);
                }
            }
        }
    }

    /// Takes the last word on a turn, and ends it when nothing of it is left.
    pub(super) fn end(&mut self, key: SessionKey, end: Box<TurnEnd>, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some(live) = &mut session.turn else { return };
        live.ending = Some(end);
        let turn = live.key;
        if !live.leaves_something() {
            return self.conclude(key, out);
        }
        let was_interrupted = live.interrupt != Interrupt::No;
        let params = json!({ "threadId": session.thread });
        self.ask_server(Call::Clean(key, turn), "thread/backgroundTerminals/clean", params, out);
        if !was_interrupted {
            self.arm(Alarm::Stop(key, turn), STOP_LIMIT, out);
        }
    }

    /// Says the last word on a turn, if it was said and nothing runs any more.
    pub(super) fn conclude_if_clean(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let turn = self.sessions.get(&key.0).and_then(|session| session.turn.as_ref());
        let is_over = |live: &LiveTurn| live.ending.is_some() && live.is_cleaned;
        if turn.is_some_and(|live| is_over(live) && !live.has_commands()) {
            self.conclude(key, out);
        }
    }

    /// Says the last word on a turn and goes on with the session.
    pub(super) fn conclude(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some(mut live) = session.turn.take() else { return };
        let mut end = live.ending.take().unwrap_or_default();
        end.totals = session.totals;
        if let Some(version) = &self.version {
            end.meta.insert("version".to_owned(), Value::from(version.as_str()));
        }
        self.deny_all(live.key, out);
        for text in live.steers {
            emit_warning(live.key, too_late(&text, "the turn has ended"), out);
        }
        out.push(Action::EndTurn { turn: live.key, end });
        self.advance(key, out);
    }

    fn close(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.remove(&key.0) else { return };
        self.children.retain(|_, parent| *parent != key);
        if let Some(live) = &session.turn {
            self.deny_all(live.key, out);
        }
        // One that is still being opened is unloaded when the server says that it is.
        if let Some(thread) = session.thread.filter(|_| session.is_open) {
            if session.turn.is_some() {
                let params = json!({ "threadId": thread });
                let method = "thread/backgroundTerminals/clean";
                self.ask_server(Call::Nothing, method, params, out);
            }
            self.unload(&thread, out);
        }
    }

    /// Makes the server forget a thread, so that others can go on with it.
    fn unload(&mut self, thread: &str, out: &mut Vec<Action>) {
        let params = json!({ "threadId": thread });
        self.ask_server(Call::Nothing, "thread/unsubscribe", params, out);
    }

    /// The process is gone. What it printed on standard error long ago says
    /// nothing about that, unless it never got to work.
    fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        if !self.is_ready {
            let failure = fault::of_exit(exit, is_noise);
            out.push(Action::OpenFailed { session: ONLY_SESSION, failure });
        }
        let failure = Failure::new(FailureKind::Crashed, exit_words(exit));
        let keys: Vec<u32> = self.sessions.keys().copied().collect();
        for key in keys {
            let Some(mut session) = self.sessions.remove(&key) else { continue };
            let waiting = session.held.take().map(|held| held.turn);
            let running = session.turn.take();
            if let Some(mut live) = running {
                let end = live.ending.take().unwrap_or_else(|| live.failed(failure.clone()));
                out.push(Action::EndTurn { turn: live.key, end });
            }
            if let Some(turn) = waiting {
                let failure = Some(failure.clone());
                let end = Box::new(TurnEnd { failure, ..TurnEnd::default() });
                out.push(Action::EndTurn { turn, end });
            }
        }
        self.asked.clear();
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

    fn arm(&mut self, alarm: Alarm, after: Duration, out: &mut Vec<Action>) {
        self.n_alarms = self.n_alarms.wrapping_add(1);
        self.alarms.insert(self.n_alarms, alarm);
        out.push(Action::Arm { timer: TimerKey(self.n_alarms), after });
    }

    /// Returns a turn that has not ended.
    pub(super) fn live(&mut self, key: SessionKey, turn: TurnKey) -> Option<&mut LiveTurn> {
        let live = self.sessions.get_mut(&key.0)?.turn.as_mut()?;
        (live.key == turn).then_some(live)
    }

    fn find_live(&mut self, turn: TurnKey) -> Option<(SessionKey, String, &mut LiveTurn)> {
        self.sessions.iter_mut().find_map(|(key, session)| {
            let live = session.turn.as_mut().filter(|live| live.key == turn)?;
            Some((SessionKey(*key), session.thread.clone()?, live))
        })
    }
}

fn refused(error: &RpcError, otherwise: FailureKind) -> Failure {
    fault::of_message(&error.message, otherwise)
}

fn too_late(text: &str, why: &str) -> String {
    format!("not taken into account, because {why}: {text}")
}

/// Reads the server's version: `ostler/0.166.0 (…`.
fn version(about: &Value) -> Option<String> {
    let (_, rest) = about.get("userAgent")?.as_str()?.split_once('/')?;
    rest.split(' ').next().map(str::to_owned)
}
