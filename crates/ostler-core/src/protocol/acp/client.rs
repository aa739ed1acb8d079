//! Speaks with one agent: the orders, what the agent tells, and what follows
//! from the replies to our requests. What it asks is read in `asking`.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    AcpFacts, Habits, Stderr,
    asking::Asked,
    hello::{self, About, OTHER_VERSION},
    session::{Held, Pending, Reopening, Session, State},
    settings::What,
    spent::Tally,
    turn::LiveTurn,
    update::{self, Told, Update},
};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, ONLY_SESSION, Order, SessionKey, TimerKey, TurnEnd, TurnKey,
        emit::{emit_unknown, emit_warning},
        words::exit_words,
    },
    event::{StopReason, Stream},
    failure::{Failure, FailureKind},
    protocol::jsonrpc::{Form, Incoming, Peer, RpcError},
    request::{Open, Options},
};

/// How long the agent may take to change a setting.
const SETTING_LIMIT: Duration = Duration::from_secs(10);
/// How long a turn that we ended ourselves may take to end.
const STOP_LIMIT: Duration = Duration::from_millis(1500);
/// How long the next prompt waits for an agent that does not end such a turn.
const DRAIN_LIMIT: Duration = Duration::from_secs(15);
/// How long the agent may still take to open a session that nobody needs.
const OPEN_LIMIT: Duration = Duration::from_secs(30);

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
    stderr: Box<dyn Stderr>,
    is_ready: bool,
    /// Why no session can be opened.
    refusal: Option<Failure>,
    /// How sessions can be gone on with, if they can.
    reopening: Option<Reopening>,
    /// Whether the agent wants to know that a session is not needed any more.
    can_close: bool,
    /// What somebody could do to log in.
    logins: Vec<String>,
    pub(super) habits: &'static Habits,
    version: Option<String>,
    n_settings: u32,
    pub(super) sessions: BTreeMap<u32, Session>,
    /// The sessions that the agent opens for nobody, with their ids if they have one.
    given_up: BTreeMap<u32, Option<String>>,
    /// What the agent waits to be told, by the name under which it was passed on.
    pub(super) asked: BTreeMap<String, Asked>,
    alarms: BTreeMap<u32, Alarm>,
    n_alarms: u32,
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
enum Alarm {
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

    fn open(&mut self, key: SessionKey, open: &Open, options: &Options, out: &mut Vec<Action>) {
        let cannot_load = || {
            let text = "this agent cannot go on with a former session";
            Failure::new(FailureKind::SessionLost, text)
        };
        let refusal = self.refusal.clone();
        let is_lost = open.memo().is_some() && self.reopening.is_none();
        if let Some(failure) = refusal.or_else(|| is_lost.then(cannot_load)) {
            out.push(Action::OpenFailed { session: key, failure });
            return;
        }
        let mut session = Session::new(self.facts, open, options);
        if self.habits.counts_anew {
            session.tally = Tally::default();
        }
        let (method, params) = session.opening(self.reopening.unwrap_or(Reopening::Load));
        self.sessions.insert(key.0, session);
        self.ask_agent(Request::Open(key), method, params, out);
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

    fn introduced(&mut self, about: &Value) {
        let about = About::read(about);
        self.reopening = about.reopening;
        self.can_close = about.can_close;
        self.version = about.version;
        self.habits = (self.facts.habits)(&about.name.unwrap_or_default());
        self.logins = about.logins;
        if !about.speaks_ours {
            self.refusal = Some(Failure::new(FailureKind::Internal, OTHER_VERSION));
        }
    }

    fn opened(&mut self, key: SessionKey, result: Result<Value, RpcError>, out: &mut Vec<Action>) {
        if let Some(id) = self.given_up.remove(&key.0) {
            let told = result.as_ref().ok().and_then(|told| told.get("sessionId")?.as_str());
            let id = id.or_else(|| told.map(str::to_owned)).filter(|_| result.is_ok());
            // It may have been opened once more meanwhile.
            if let Some(id) = id.filter(|id| self.find(id).is_none()) {
                self.close_id(&id, out);
            }
            return;
        }
        let is_known = self.sessions.get(&key.0).is_some_and(|session| session.id.is_some());
        let result = result.map_err(|error| self.not_opened(&error, is_known));
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let told = result.and_then(|told| {
            let id = told.get("sessionId").and_then(Value::as_str).map(str::to_owned);
            // The reply to a session that is gone on with names none.
            session.id.clone().or(id).ok_or_else(Failure::unreadable).map(|id| (id, told))
        });
        match told {
            Ok((id, told)) => {
                session.confirmed(self.facts, &told);
                session.wire_id.get_or_insert_with(|| id.clone());
                let is_loaded = session.id.replace(id.clone()).is_some()
                    && self.reopening == Some(Reopening::Load);
                session.state = State::Open;
                if let Some(limit) = self.facts.replay.filter(|_| is_loaded) {
                    session.state = State::Replaying;
                    self.arm(Alarm::Replay(key), limit, out);
                }
                out.push(Action::Opened { session: key, id });
                self.advance(key, out);
            }
            Err(failure) => {
                self.sessions.remove(&key.0);
                out.push(Action::OpenFailed { session: key, failure });
            }
        }
    }

    /// Finds out why a session was not opened.
    fn not_opened(&self, error: &RpcError, is_known: bool) -> Failure {
        let mut failure = (self.facts.failure)(error);
        if is_known && (self.facts.is_lost)(error) {
            failure.kind = FailureKind::SessionLost;
        }
        if failure.kind == FailureKind::Auth && !self.logins.is_empty() {
            let ways = self.logins.join("; ");
            failure.message =
                format!("{}. To log in: {ways}", failure.message.trim_end_matches('.'));
        }
        failure
    }

    /// Takes the reply to a change of settings.
    fn set(
        &mut self,
        key: SessionKey,
        number: u32,
        result: Result<Value, RpcError>,
        out: &mut Vec<Action>,
    ) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some(pending) = session.answered(number) else { return };
        match result {
            Ok(told) => {
                session.settings.done(&pending.change);
                session.settings.options_are(&told);
                if let Some(text) = session.settings.contradicts(&pending.change) {
                    not_set(session, &pending, text, out);
                }
            }
            Err(error) => {
                let what = match pending.change.what {
                    What::Mode => "mode",
                    What::Model => "model",
                    What::Thinking => "thinking level",
                };
                let why = (self.facts.failure)(&error).message;
                let text = format!("the {what} {} was not taken: {why}", pending.change.value);
                not_set(session, &pending, text, out);
            }
        }
        self.advance(key, out);
    }

    /// Sends the prompt that waits, as soon as that is possible.
    fn advance(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        if session.state != State::Open || session.turn.is_some() || session.is_busy {
            return;
        }
        let Some(wire_id) = session.wire_id.clone().filter(|_| session.held.is_some()) else {
            return;
        };
        let mut complaints = Vec::new();
        let change = session.next_change(self.facts, &mut complaints);
        if let Some(held) = &session.held {
            complaints.into_iter().for_each(|text| emit_warning(held.turn, text, out));
        }
        if let Some(change) = change {
            self.n_settings = self.n_settings.wrapping_add(1);
            let number = self.n_settings;
            session.state = State::Setting(number);
            let (method, params) = change.request(&wire_id);
            session.pending = session.held.as_ref().map(|held| Pending { change, turn: held.turn });
            self.ask_agent(Request::Setting(key, number), method, params, out);
            self.arm(Alarm::Setting(key, number), SETTING_LIMIT, out);
            return;
        }
        let Some(mut held) = session.held.take() else { return };
        if let Some(text) = session.warning.take() {
            emit_warning(held.turn, text, out);
        }
        if self.facts.has_settings {
            // What is set needs no words.
            held.options.thinking =
                held.options.thinking.filter(|level| !session.settings.can_think(*level));
        }
        let text = (self.facts.prompt)(&held.prompt, &held.options, session.system_sent);
        let model = session.model(self.facts);
        let (facts, habits) = (self.facts, self.habits);
        let permissions = held.permissions();
        session.turn = Some(LiveTurn::new(facts, habits, held.turn, permissions, model));
        session.is_busy = true;
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": wire_id, "prompt": prompt });
        self.ask_agent(Request::Prompt(key, held.turn), "session/prompt", params, out);
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

    /// Ends a turn whose prompt was answered.
    fn over(&mut self, key: SessionKey, result: Result<Value, RpcError>, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some(mut live) = session.turn.take() else { return };
        let is_done = result.is_ok();
        let end = live.over(result, &mut session.tally, out);
        session.system_sent |= live.is_answered || is_done;
        self.drop_asked(live.key, out);
        self.say_end(live.key, end, out);
    }

    fn say_end(&self, turn: TurnKey, mut end: Box<TurnEnd>, out: &mut Vec<Action>) {
        if let Some(version) = &self.version {
            end.meta.insert("version".to_owned(), Value::from(version.as_str()));
        }
        out.push(Action::EndTurn { turn, end });
    }

    fn cancel(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        let is_it = |session: &Session| {
            let waits = session.held.as_ref().is_some_and(|held| held.turn == turn);
            waits && session.state == State::Opening
        };
        let opening = self.sessions.iter().find(|(_, session)| is_it(session));
        if let Some(number) = opening.map(|(number, _)| *number) {
            return self.give_up(SessionKey(number), out);
        }
        for session in self.sessions.values_mut() {
            if session.held.as_ref().is_some_and(|held| held.turn == turn) {
                // The agent knows nothing of it yet.
                session.held = None;
                let totals = session.tally.totals();
                let end = TurnEnd { totals, ..TurnEnd::never_begun() };
                out.push(Action::EndTurn { turn, end: Box::new(end) });
            }
        }
        self.stop(turn, out);
    }

    /// Fails a session whose opening is not waited for any longer: the next turn
    /// is not to wait for it either.
    fn give_up(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.remove(&key.0) else { return };
        self.given_up.insert(key.0, session.wire_id);
        let text = "the turn was cancelled before it began";
        let failure = Failure::new(FailureKind::Cancelled, text);
        out.push(Action::OpenFailed { session: key, failure });
        self.arm(Alarm::Open(key), OPEN_LIMIT, out);
    }

    /// Makes the agent end a turn. It does not while it waits for an answer.
    fn stop(&mut self, turn: TurnKey, out: &mut Vec<Action>) -> Option<SessionKey> {
        let (key, session) = self.sessions.iter_mut().find(|(_, session)| {
            session.turn.as_ref().is_some_and(|live| live.key == turn && !live.is_stopping)
        })?;
        let key = SessionKey(*key);
        if let Some(live) = &mut session.turn {
            live.is_stopping = true;
        }
        let params = json!({ "sessionId": session.wire_id });
        self.drop_asked(turn, out);
        out.push(Action::Write(self.peer.notification_of("session/cancel", params)));
        Some(key)
    }

    /// Takes a line of standard error.
    fn complaint(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        let turn = self.only_turn();
        let failure = self.stderr.line(bytes, turn, out);
        if let (Some(failure), Some(turn)) = (failure, turn)
            && let Some(key) = self.stop(turn, out)
        {
            if let Some(live) = self.find_live(turn) {
                live.failure = Some(failure);
            }
            self.arm(Alarm::Stop(key, turn), STOP_LIMIT, out);
        }
    }

    fn rang(&mut self, alarm: Alarm, out: &mut Vec<Action>) {
        match alarm {
            Alarm::Replay(key) => {
                let Some(session) = self.sessions.get_mut(&key.0) else { return };
                if session.state == State::Replaying {
                    session.state = State::Open;
                    self.advance(key, out);
                }
            }
            Alarm::Setting(key, number) => {
                let Some(session) = self.sessions.get_mut(&key.0) else { return };
                let Some(pending) = session.answered(number) else { return };
                // It may still come to be set.
                session.settings.forget(pending.change.what);
                if let Some(held) = session.held.as_mut().filter(|held| held.turn == pending.turn) {
                    // Whatever was to be set, it is not asked for once more.
                    held.settled.extend([What::Mode, What::Model, What::Thinking]);
                }
                let text =
                    format!("the agent did not answer when {} was to be set", pending.change.value);
                not_set(session, &pending, text, out);
                self.advance(key, out);
            }
            Alarm::Open(key) => {
                // An agent that hangs, and that nobody else uses, is of no use.
                if self.given_up.contains_key(&key.0) && self.sessions.is_empty() {
                    out.push(Action::Stop);
                }
            }
            Alarm::Stop(key, turn) => {
                let Some(session) = self.sessions.get_mut(&key.0) else { return };
                let is_it = |live: &mut LiveTurn| live.key == turn && live.failure.is_some();
                if let Some(mut live) = session.turn.take_if(is_it)
                    && let Some(failure) = live.failure.take()
                {
                    // The next prompt waits until the agent has ended this one.
                    let end = live.failed(failure, &session.tally);
                    self.say_end(turn, end, out);
                    self.arm(Alarm::Drain(key), DRAIN_LIMIT, out);
                }
            }
            Alarm::Drain(key) => {
                let is_stuck = |session: &Session| session.is_busy && session.turn.is_none();
                if self.sessions.get(&key.0).is_some_and(is_stuck) {
                    self.sessions.remove(&key.0);
                    let text = "the agent does not end the turn before, which was given up";
                    let failure = Failure::new(FailureKind::SessionBusy, text);
                    out.push(Action::OpenFailed { session: key, failure });
                }
            }
        }
    }

    /// Forgets a session, and says so to an agent that wants to know.
    fn close(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let turn = self.sessions.get(&key.0).and_then(|session| session.turn.as_ref());
        if let Some(turn) = turn.map(|live| live.key) {
            self.stop(turn, out);
        }
        let Some(session) = self.sessions.remove(&key.0) else { return };
        match session.wire_id {
            // It can be closed when it is open.
            id if session.state == State::Opening => {
                self.given_up.insert(key.0, id);
            }
            Some(id) => self.close_id(&id, out),
            None => {}
        }
    }

    fn close_id(&mut self, id: &str, out: &mut Vec<Action>) {
        if self.can_close {
            self.ask_agent(Request::Close, "session/close", json!({ "sessionId": id }), out);
        }
    }

    fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        if !self.is_ready {
            let failure = self.stderr.not_started(exit);
            out.push(Action::OpenFailed { session: ONLY_SESSION, failure });
        }
        let crashed = Failure::new(FailureKind::Crashed, exit_words(exit));
        for session in std::mem::take(&mut self.sessions).into_values() {
            if let Some(mut live) = session.turn {
                let failure = live.failure.take().unwrap_or_else(|| crashed.clone());
                let end = live.failed(failure, &session.tally);
                self.say_end(live.key, end, out);
            }
            if let Some(held) = session.held {
                let (failure, totals) = (Some(crashed.clone()), session.tally.totals());
                let end = TurnEnd { failure, totals, ..TurnEnd::default() };
                out.push(Action::EndTurn { turn: held.turn, end: Box::new(end) });
            }
        }
        self.asked.clear();
    }

    /// Passes on a line that names no session, if only one turn can be meant.
    fn not_understood(&self, bytes: &[u8], out: &mut Vec<Action>) {
        if let Some(turn) = self.only_turn() {
            emit_unknown(turn, Stream::Stdout, bytes, out);
        }
    }

    fn ask_agent(&mut self, call: Request, method: &str, params: Value, out: &mut Vec<Action>) {
        out.push(Action::Write(self.peer.request(call, method, params)));
    }

    fn arm(&mut self, alarm: Alarm, after: Duration, out: &mut Vec<Action>) {
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

    fn only_turn(&self) -> Option<TurnKey> {
        let mut running = self.sessions.values().filter_map(|session| session.turn.as_ref());
        running.next().filter(|_| running.next().is_none()).map(|live| live.key)
    }
}

/// Says of the prompt that waits that something was not set for it. Where that
/// would let the agent do what it may not, the turn ends; else the prompt is
/// sent all the same, as things are.
fn not_set(session: &mut Session, pending: &Pending, text: String, out: &mut Vec<Action>) {
    let Pending { change, turn } = pending;
    let Some(held) = session.held.take_if(|held| held.turn == *turn) else { return };
    if !change.guards(held.permissions()) {
        emit_warning(*turn, text, out);
        session.held = Some(held);
        return;
    }
    let text = format!(
        "{text}. Without it the agent might do what it may not: change its own settings, \
         or use `--permissions bypass`"
    );
    let end = TurnEnd {
        failure: Some(Failure::new(FailureKind::Denied, text)),
        stop_reason: Some(StopReason::Error),
        totals: session.tally.totals(),
        ..TurnEnd::default()
    };
    out.push(Action::EndTurn { turn: *turn, end: Box::new(end) });
}
