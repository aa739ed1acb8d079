//! Speaks with one agent: the orders, what the agent tells, and what follows
//! from the replies to our requests. What it asks is read in `asking`.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    AcpFacts, Habits, Stderr,
    asking::Asked,
    hello,
    session::{Held, Reopening, Session, State},
    turn::LiveTurn,
    update::{self, Told, Update},
};
use crate::{
    agent::{
        Action, Dialect, Input, Order, SessionKey, TimerKey, TurnEnd, TurnKey,
        emit::{emit_unknown, emit_warning},
    },
    event::Stream,
    failure::Failure,
    protocol::jsonrpc::{Form, Incoming, Peer, RpcError},
};

/// Makes the state machine for an agent of which these facts are true.
pub(crate) fn dialect(facts: &'static AcpFacts) -> Box<dyn Dialect> {
    Box::new(Client {
        facts,
        peer: Peer::new(Form::Marked),
        stderr: (facts.stderr)(),
        is_ready: false,
        refusal: None,
        reopening: None,
        can_close: false,
        logins: Vec::new(),
        habits: &Habits::NONE,
        version: None,
        n_settings: 0,
        sessions: BTreeMap::new(),
        given_up: BTreeMap::new(),
        asked: BTreeMap::new(),
        alarms: BTreeMap::new(),
        n_alarms: 0,
    })
}

/// One process with all its sessions.
pub(super) struct Client {
    pub(super) facts: &'static AcpFacts,
    pub(super) peer: Peer<Request>,
    pub(super) stderr: Box<dyn Stderr>,
    pub(super) is_ready: bool,
    /// Why no session can be opened.
    pub(super) refusal: Option<Failure>,
    /// How sessions can be gone on with, if they can.
    pub(super) reopening: Option<Reopening>,
    /// Whether the agent wants to know that a session is not needed any more.
    pub(super) can_close: bool,
    /// What somebody could do to log in.
    pub(super) logins: Vec<String>,
    pub(super) habits: &'static Habits,
    pub(super) version: Option<String>,
    pub(super) n_settings: u32,
    pub(super) sessions: BTreeMap<u32, Session>,
    /// The sessions that the agent opens for nobody, with their ids if they have one.
    pub(super) given_up: BTreeMap<u32, Option<String>>,
    /// What the agent waits to be told, by the name under which it was passed on.
    pub(super) asked: BTreeMap<String, Asked>,
    pub(super) alarms: BTreeMap<u32, Alarm>,
    pub(super) n_alarms: u32,
}

/// What a request of ours was about.
#[derive(Debug)]
pub(super) enum Request {
    Initialize,
    Open(SessionKey),
    Setting(SessionKey, u32),
    Prompt(SessionKey, TurnKey),
    Close,
}

/// What a timer is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Alarm {
    /// A history should have been repeated by now.
    Replay(SessionKey),
    /// A setting should have been changed by now.
    Setting(SessionKey, u32),
    /// A session that nobody needs should have been opened by now.
    Open(SessionKey),
    /// A turn should have ended by now.
    Stop(SessionKey, TurnKey),
    /// The agent should have answered the prompt of a turn that we ended.
    Drain(SessionKey),
}

impl Dialect for Client {
    fn step(&mut self, _now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        match input {
            Input::Line { from: Stream::Stderr, bytes, .. } => self.complaint(bytes, out),
            Input::Line { from: Stream::Stdout, bytes, cut: true } => {
                for session in self.sessions.values_mut() {
                    if let Some(live) = &mut session.turn {
                        live.has_lost_line = true;
                    }
                }
                self.not_understood(bytes, out);
            }
            Input::Line { from: Stream::Stdout, bytes, cut: false } => self.line(bytes, out),
            Input::Order(order) => self.order(order, out),
            Input::Cancel { turn } => self.cancel(turn, out),
            Input::Timer(TimerKey(number)) => {
                if let Some(alarm) = self.alarms.remove(&number) {
                    self.rang(alarm, out);
                }
            }
            // It is no HTTP server.
            Input::Heard(_) => {}
            Input::Exited(exit) => self.exited(exit, out),
        }
    }
}

impl Client {
    fn line(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        match self.peer.read(bytes) {
            Incoming::Notification { method, params } if method == "session/update" => {
                self.update(params, bytes, out);
            }
            Incoming::Notification { method, params }
                if self.habits.mode_notice == Some(method.as_str()) =>
            {
                self.mode_is(&params);
            }
            Incoming::Request { id, method, params } => self.request(id, &method, params, out),
            Incoming::Reply { call, result } => self.reply(call, result, out),
            Incoming::Stray => {}
            Incoming::Notification { .. } | Incoming::Unreadable => self.not_understood(bytes, out),
        }
    }

    fn order(&mut self, order: Order<'_>, out: &mut Vec<Action>) {
        match order {
            Order::Start => {
                self.ask_agent(Request::Initialize, "initialize", hello::params(), out);
            }
            Order::Open { session, open, options } => self.open(session, open, options, out),
            Order::Prompt { session, turn, prompt, options } => {
                let held = Held {
                    turn,
                    prompt: prompt.to_owned(),
                    options: options.clone(),
                    settled: Vec::new(),
                };
                if let Some(known) = self.sessions.get_mut(&session.0) {
                    known.held = Some(held);
                    self.advance(session, out);
                } else {
                    out.push(Action::EndTurn { turn, end: Box::new(TurnEnd::not_open()) });
                }
            }
            Order::Steer { turn, text } => {
                let text = format!("not taken into account, because the agent cannot: {text}");
                emit_warning(turn, text, out);
            }
            Order::Answer { request, ruling, .. } => self.answer(request, ruling, out),
            Order::Close { session } => self.close(session, out),
            // A process is ended, not left.
            Order::Leave => {}
        }
    }

    fn reply(&mut self, call: Request, result: Result<Value, RpcError>, out: &mut Vec<Action>) {
        match call {
            Request::Initialize => {
                match result {
                    Ok(about) => self.introduced(&about),
                    Err(error) => self.refusal = Some((self.facts.failure)(&error)),
                }
                self.is_ready = true;
                out.push(Action::Ready);
            }
            Request::Open(key) => self.opened(key, result, out),
            Request::Setting(key, number) => self.set(key, number, result, out),
            Request::Close => {}
            Request::Prompt(key, turn) => {
                let Some(session) = self.sessions.get_mut(&key.0) else { return };
                session.is_busy = false;
                if session.turn.as_ref().is_some_and(|live| live.key == turn) {
                    self.over(key, result, out);
                }
                self.advance(key, out);
            }
        }
    }

    fn update(&mut self, params: Map<String, Value>, bytes: &[u8], out: &mut Vec<Action>) {
        let Some(Told { session, update, call }) = update::read(params) else {
            return self.not_understood(bytes, out);
        };
        let Some(key) = self.find(&session) else { return };
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        if let Update::Mode(mode) = &update {
            session.settings.mode_is(mode.clone());
        }
        if let Update::Options(told) = &update
            && self.facts.has_settings
        {
            session.settings.options_are(told);
        }
        match (&mut session.turn, &update) {
            // What comes outside of a turn is history, or of a turn that was given up.
            (None, Update::Commands) if session.state == State::Replaying => {
                session.state = State::Open;
                self.advance(key, out);
            }
            (None, _) => {}
            (Some(live), _) => {
                if let Some(call) = call {
                    live.spending.add_call(call);
                }
                let n_before = out.len();
                if !live.update(update, out) {
                    emit_unknown(live.key, Stream::Stdout, bytes, out);
                }
                if out.len() == n_before {
                    out.push(Action::Working { turn: live.key });
                }
            }
        }
    }

    /// Takes a notice of its own kind that the agent has changed its mode.
    fn mode_is(&mut self, params: &Map<String, Value>) {
        let text = |name: &str| params.get(name).and_then(Value::as_str);
        let key = text("sessionId").and_then(|id| self.find(id));
        if let (Some(key), Some(mode)) = (key, text("currentModeId"))
            && let Some(session) = self.sessions.get_mut(&key.0)
        {
            session.settings.mode_is(mode.to_owned());
        }
    }

    /// Passes on a line that names no session, if only one turn can be meant.
    fn not_understood(&self, bytes: &[u8], out: &mut Vec<Action>) {
        if let Some(turn) = self.only_turn() {
            emit_unknown(turn, Stream::Stdout, bytes, out);
        }
    }

    pub(super) fn ask_agent(
        &mut self,
        call: Request,
        method: &str,
        params: Value,
        out: &mut Vec<Action>,
    ) {
        out.push(Action::Write(self.peer.request(call, method, params)));
    }

    pub(super) fn arm(&mut self, alarm: Alarm, after: Duration, out: &mut Vec<Action>) {
        self.n_alarms = self.n_alarms.wrapping_add(1);
        self.alarms.insert(self.n_alarms, alarm);
        out.push(Action::Arm { timer: TimerKey(self.n_alarms), after });
    }

    /// Finds a session by the id that the agent is told.
    pub(super) fn find(&self, wire_id: &str) -> Option<SessionKey> {
        let mut sessions = self.sessions.iter();
        let is_it = |session: &Session| session.wire_id.as_deref() == Some(wire_id);
        sessions.find(|(_, session)| is_it(session)).map(|(key, _)| SessionKey(*key))
    }

    pub(super) fn find_live(&mut self, turn: TurnKey) -> Option<&mut LiveTurn> {
        let mut running = self.sessions.values_mut().filter_map(|session| session.turn.as_mut());
        running.find(|live| live.key == turn)
    }

    pub(super) fn only_turn(&self) -> Option<TurnKey> {
        let mut running = self.sessions.values().filter_map(|session| session.turn.as_ref());
        running.next().filter(|_| running.next().is_none()).map(|live| live.key)
    }
}
