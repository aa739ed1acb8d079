//! Speaks with one `opencode serve`, of ours or of somebody else's.
//!
//! Here are the orders and what follows from the replies to our calls. What the
//! server tells by itself is read in `reading`, what it asks in `asking`, what
//! it told while nobody listened in `resync`, and how one that is not ours is
//! found, lost and left in `visit`.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    asking::Asked,
    attach::Rules,
    client::{Client, Purpose},
    health::Health,
    launch,
    session::{Session, State},
    turn::{Follows, LiveTurn, Stop, not_steered},
    visit::Visit,
};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, ONLY_SESSION, Order, SessionKey, TimerKey, TurnEnd, TurnKey,
        WarmLaunch,
        emit::{emit_unknown, emit_warning},
        http::{Heard, ServerAddress},
        opencode::{
            SPEC, fault,
            log::{self, Notice},
        },
        words::exit_words,
    },
    event::{EventBody, Status, Stream},
    failure::{Failure, FailureKind},
};

/// How the line begins that tells the address.
const LISTENING: &str = "opencode server listening on ";
/// How long until a server that is not well yet is asked again.
const NEXT_HEALTH: Duration = Duration::from_millis(100);
/// How long a turn that seems to be over may take to say more.
const SETTLE: Duration = Duration::from_millis(500);
/// How long a turn that we ended may take to end.
const STOP_LIMIT: Duration = Duration::from_millis(1500);
/// How long a prompt that nobody wants any more may take to be taken up.
const DRAIN_LIMIT: Duration = Duration::from_secs(15);

/// How many further texts may be on their way, or wait with their prompt.
const MAX_STEERS: usize = 100;
const TOO_MANY: &str = "too many wait already";

/// Makes the state machine that speaks with a process of ours.
pub(super) fn dialect(launch: &WarmLaunch<'_>) -> Box<dyn Dialect> {
    Box::new(Server::new(Client::new(Some(launch::login(launch))), None))
}

/// Makes the state machine that speaks with a server of somebody else's.
pub(super) fn attached(server: &ServerAddress) -> Box<dyn Dialect> {
    let mut client = Client::new(server.login().cloned());
    client.found(server.url());
    Box::new(Server::new(client, Some(Visit::new(server))))
}

/// One server with all its sessions.
pub(super) struct Server {
    pub(super) client: Client,
    /// The server is somebody else's.
    pub(super) visit: Option<Visit>,
    pub(super) is_ready: bool,
    /// The stream of events is open.
    pub(super) is_connected: bool,
    pub(super) version: Option<String>,
    /// What the log said last about a call that failed.
    pub(super) cause: Option<String>,
    /// How often the stream was lost in a row, without having told anything.
    pub(super) n_losses: u32,
    /// When the stream was opened last.
    pub(super) connected_at: Option<Timestamp>,
    pub(super) sessions: BTreeMap<u32, Session>,
    /// Sessions that the server made for helpers of ours, and the tool call for
    /// which, once that is told.
    pub(super) children: BTreeMap<String, (SessionKey, Option<String>)>,
    /// What the server waits to be told, by the name under which it was passed on.
    pub(super) asked: BTreeMap<String, Asked>,
    alarms: BTreeMap<u32, Alarm>,
    n_alarms: u32,
}

/// What a timer is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Alarm {
    /// The server has tried again for long enough.
    Patience(SessionKey, TurnKey, TimerKey),
    /// A turn that seemed to be over has had its time.
    Settle(SessionKey, TurnKey, u32),
    /// A turn should have ended by now.
    Stop(SessionKey, TurnKey),
    /// The server is to be asked again how it is.
    Health,
    /// The stream is to be opened again.
    Listen,
    /// A turn is to be looked at again.
    Look(SessionKey, TurnKey),
    /// The server was waited for long enough, this time.
    Lost(u32),
}

impl Dialect for Server {
    fn step(&mut self, now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        match input {
            Input::Line { from: Stream::Stdout, bytes, .. } => self.stdout(bytes, out),
            Input::Line { from: Stream::Stderr, bytes, .. } => self.stderr(bytes, out),
            Input::Order(order) => self.order(order, out),
            Input::Cancel { turn } => self.cancel(turn, out),
            Input::Timer(TimerKey(number)) => {
                if let Some(alarm) = self.alarms.remove(&number) {
                    self.rang(alarm, out);
                }
            }
            Input::Heard(Heard::Event(data)) => self.event(now, data, out),
            Input::Heard(Heard::Lost { why }) => self.lost(why, out),
            Input::Heard(Heard::Reply { call, reply }) => {
                let cause = self.cause.take();
                if let Some((purpose, reply)) = self.client.reply(call, reply, cause.as_deref()) {
                    self.reply(now, purpose, reply, out);
                }
            }
            Input::Exited(exit) => self.exited(exit, out),
        }
        self.leave_if_done(out);
    }
}

impl Server {
    fn new(client: Client, visit: Option<Visit>) -> Self {
        Self {
            client,
            visit,
            is_ready: false,
            is_connected: false,
            version: None,
            cause: None,
            n_losses: 0,
            connected_at: None,
            sessions: BTreeMap::new(),
            children: BTreeMap::new(),
            asked: BTreeMap::new(),
            alarms: BTreeMap::new(),
            n_alarms: 0,
        }
    }

    fn stdout(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        let line = String::from_utf8_lossy(bytes);
        match line.strip_prefix(LISTENING) {
            Some(address) if !self.client.is_found() => {
                self.client.found(address.trim());
                self.client.health(out);
                self.client.listen(out);
            }
            _ => self.not_understood(Stream::Stdout, bytes, out),
        }
    }

    fn stderr(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        let line = String::from_utf8_lossy(bytes);
        match log::read(&line) {
            Some(Notice::Failed { message }) => self.cause = Some(message),
            // What the log says of turns is told in the stream as well.
            Some(_) => {}
            None if log::is_entry(&log::plain(&line)) => {}
            None => self.not_understood(Stream::Stderr, bytes, out),
        }
    }

    /// Passes a line on that nobody understands, if it is clear to whom.
    fn not_understood(&self, stream: Stream, bytes: &[u8], out: &mut Vec<Action>) {
        let mut live = self.sessions.values().filter_map(|session| session.turn.as_ref());
        if let (Some(only), None) = (live.next(), live.next())
            && !only.is_silent
        {
            emit_unknown(only.key, stream, bytes, out);
        }
    }

    fn order(&mut self, order: Order<'_>, out: &mut Vec<Action>) {
        match order {
            Order::Start if self.visit.is_some() => self.begin_visit(out),
            // It says by itself where it is.
            Order::Start => {}
            Order::Open { session, open, options } => {
                let mut new = Session::new(open, options);
                if let Some(id) = new.id.clone() {
                    if !id.starts_with("ses") {
                        // The server would call this an error of its own.
                        let text = format!("there is no session {id}: opencode's begin with `ses`");
                        let failure = Failure::new(FailureKind::SessionLost, text);
                        return out.push(Action::OpenFailed { session, failure });
                    }
                    new.state = State::Asked;
                    self.client.find(session, (&id, &new.directory), out);
                }
                self.sessions.insert(session.0, new);
            }
            Order::Prompt { session, turn, prompt, options } => {
                let is_ours = self.visit.is_none();
                if let Some(known) = self.sessions.get_mut(&session.0) {
                    known.hold(turn, prompt, options, is_ours);
                    self.seek(out);
                    self.advance(session, out);
                } else {
                    out.push(Action::EndTurn { turn, end: Box::new(TurnEnd::not_open()) });
                }
            }
            Order::Steer { turn, text } => self.steer(turn, text, out),
            Order::Answer { request, ruling, .. } => self.answer(request, ruling, out),
            Order::Close { session } => self.close(session, out),
            Order::Leave => self.leave(out),
        }
    }

    /// Takes sessions, once the server is known to be one and is listened to.
    pub(super) fn ready_if_so(&mut self, out: &mut Vec<Action>) {
        if !self.is_ready && self.is_connected && self.version.is_some() {
            self.is_ready = true;
            out.push(Action::Ready);
        }
    }

    fn reply(
        &mut self,
        now: Timestamp,
        purpose: Purpose,
        reply: Result<Value, Failure>,
        out: &mut Vec<Action>,
    ) {
        match purpose {
            Purpose::Health if self.visit.is_some() => self.welcomed(reply, out),
            Purpose::Health => match reply.map(|health| Health::read(&health)) {
                Ok(Health::Well { version }) => {
                    self.version = Some(version);
                    self.ready_if_so(out);
                }
                // It was up a moment ago: the worker gives up if that goes on.
                Ok(_) | Err(_) => self.arm(Alarm::Health, NEXT_HEALTH, out),
            },
            Purpose::Create(session) | Purpose::Find(session) => self.opened(session, reply, out),
            Purpose::Rules(session) => self.ruled(session, reply, out),
            Purpose::Prompt(session, turn, steer) => self.sent(session, turn, steer, reply, out),
            Purpose::Abort(session, turn) => {
                if let Some(session) = self.sessions.get_mut(&session.0) {
                    session.n_aborts = session.n_aborts.saturating_sub(1);
                }
                // The stream tells the end, unless the turn never came to be.
                if self.live(session, turn).is_some() && reply.is_err() {
                    self.look(session, out);
                }
                self.advance(session, out);
            }
            Purpose::Answer(session, request) => self.answered(session, &request, reply, out),
            Purpose::Look(session, round, sight) => {
                self.seen(now, (session, round), sight, reply, out);
            }
            Purpose::Nothing => {}
        }
    }

    fn opened(&mut self, key: SessionKey, reply: Result<Value, Failure>, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let told = reply.and_then(|session| {
            let text = |name: &str| session.get(name).and_then(Value::as_str).map(str::to_owned);
            let rules = session.get("permission").and_then(Value::as_array).cloned();
            let used = session.get("time").and_then(|time| time.get("updated")?.as_i64());
            Ok((text("id").ok_or_else(Failure::unreadable)?, text("directory"), rules, used))
        });
        match told {
            Ok((id, directory, rules, used)) => {
                session.state = State::Open;
                session.rules = rules.unwrap_or_default();
                session.has_rules = !session.rules.is_empty();
                // One that has just been made has no past, and its first message
                // may come in the same millisecond.
                session.since = used.filter(|_| session.id.is_some());
                session.id = Some(id.clone());
                if let Some(directory) = directory.filter(|told| *told != session.directory) {
                    let text = format!("opencode goes on in {directory}, where the session began");
                    session.warning = Some(text);
                    session.directory = directory;
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

    /// Sends the prompt that waits, as soon as that is possible.
    pub(super) fn advance(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let is_drained = self.is_drained(key);
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        if session.is_closing {
            return self.let_go(key, out);
        }
        let Some(held) = &session.held else { return };
        if self.visit.is_some() && !self.is_connected {
            // What would follow could be missed; it goes on when it is heard again.
            return;
        }
        if session.state == State::New {
            session.state = State::Asked;
            let body = held.session_body();
            return self.client.create(key, &session.directory, body, out);
        }
        let Some((id, directory)) = session.at() else { return };
        if session.state != State::Open || session.turn.is_some() || session.n_aborts > 0 {
            return;
        }
        if !is_drained {
            return;
        }
        if session.ruling.is_some() {
            // Rules that come late would be those of the turn that overtook them.
            return;
        }
        session.insist();
        if let Some(rules) = session.held.as_ref().and_then(|held| held.rules.as_ref())
            && !session.obeys(rules)
        {
            let rules = rules.list();
            self.client.restrict(key, (&id, &directory), &rules, out);
            session.ruling = Some(rules);
            return;
        }
        let Some(held) = session.held.take() else { return };
        if let Some(Rules::Free) = held.rules {
            session.rules = Rules::Free.list();
        }
        if held.model(None).is_some_and(|model| !model.contains('/')) {
            let text = "opencode's models are named provider/model; this one names no provider";
            let end = TurnEnd::failed(Failure::new(FailureKind::InvalidRequest, text));
            let end = Box::new(end);
            return out.push(Action::EndTurn { turn: held.turn, end });
        }
        let body = held.body(&held.prompt, session.model.as_deref());
        let mut turn = LiveTurn::new(held);
        let turn_key = turn.key;
        let steers = std::mem::take(&mut turn.held.steers);
        session.turn = Some(turn);
        session.n_missed = 0;
        if let Some(text) = session.warning.take() {
            emit_warning(turn_key, text, out);
        }
        if !std::mem::replace(&mut session.was_version_judged, true)
            && let Some(version) = self.version.as_deref().filter(|version| is_untested(version))
        {
            emit_warning(turn_key, format!("opencode {version} was not tested with this"), out);
        }
        let purpose = Purpose::Prompt(key, turn_key, None);
        self.client.prompt(purpose, (&id, &directory), body, out);
        for text in steers {
            self.steer(turn_key, &text, out);
        }
    }

    /// The server took a prompt, or did not.
    fn sent(
        &mut self,
        key: SessionKey,
        turn: TurnKey,
        steer: Option<String>,
        reply: Result<Value, Failure>,
        out: &mut Vec<Action>,
    ) {
        let Some(live) = self.live(key, turn) else { return };
        if steer.is_some() {
            live.n_steers = live.n_steers.saturating_sub(1);
        }
        match (reply, steer) {
            (Ok(_), Some(text)) => {
                live.tell(None, EventBody::Status(Status::Steered { text }), out);
                if live.is_settling() {
                    // It is about to be taken up.
                    self.settle(key, out);
                }
            }
            (Ok(_), None) => {}
            (Err(failure), Some(text)) => live.not_steered(&text, &failure.message, out),
            (Err(failure), None) if failure.kind == FailureKind::Unavailable => {
                // It may have heard it all the same, or may be about to end: that
                // would be the better reason.
                let reason = fault::stop_reason(&failure);
                live.failure = Some((failure, reason));
                self.stop(key, out);
            }
            (Err(failure), None) => {
                let end = live.failed(failure);
                self.conclude_with(key, Some(end), out);
            }
        }
    }

    /// The server takes a prompt into account that comes while it works.
    fn steer(&mut self, turn: TurnKey, text: &str, out: &mut Vec<Action>) {
        let found = self.sessions.iter_mut().find(|(_, session)| session.has_turn(turn));
        let Some((key, session)) = found else { return };
        let at = session.at();
        match (&mut session.turn, &mut session.held, at) {
            (Some(live), _, Some((id, directory))) if live.key == turn => {
                if live.stop != Stop::No {
                    return live.not_steered(text, "the turn is being stopped", out);
                }
                if live.n_steers >= MAX_STEERS {
                    return live.not_steered(text, TOO_MANY, out);
                }
                live.n_steers += 1;
                let body = live.held.body(text, session.model.as_deref());
                let purpose = Purpose::Prompt(SessionKey(*key), turn, Some(text.to_owned()));
                self.client.prompt(purpose, (&id, &directory), body, out);
            }
            (_, Some(held), _) if held.steers.len() >= MAX_STEERS => {
                emit_warning(turn, not_steered(text, TOO_MANY), out);
            }
            (_, Some(held), _) => held.steers.push(text.to_owned()),
            _ => {}
        }
    }

    fn cancel(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        let cancelled = || Box::new(TurnEnd::never_begun());
        for session in self.sessions.values_mut() {
            if session.held.as_ref().is_some_and(|held| held.turn == turn) {
                // The server knows nothing of it yet.
                session.held = None;
                out.push(Action::EndTurn { turn, end: cancelled() });
            }
        }
        let Some((key, live)) = self.find_live(turn) else { return };
        if live.has_begun() || live.stop != Stop::No {
            return self.stop(key, out);
        }
        // Nothing has happened that would have to be cleaned up. The prompt is
        // ended when the server takes it up, and the next one waits for that.
        live.stop = Stop::Wanted;
        live.is_silent = true;
        out.push(Action::EndTurn { turn, end: cancelled() });
        self.arm(Alarm::Stop(key, turn), DRAIN_LIMIT, out);
    }

    /// Makes the server end a turn, and what runs in it.
    pub(super) fn stop(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some((id, directory)) = session.at() else { return };
        let Some(live) = &mut session.turn else { return };
        let turn = live.key;
        session.n_aborts += 1;
        if std::mem::replace(&mut live.stop, Stop::Sent) == Stop::No {
            self.arm(Alarm::Stop(key, turn), STOP_LIMIT, out);
        }
        self.client.abort(Purpose::Abort(key, turn), (&id, &directory), out);
    }

    /// Does what follows from something that happened in a turn.
    pub(super) fn follow(&mut self, key: SessionKey, follows: Follows, out: &mut Vec<Action>) {
        let turn = self.sessions.get(&key.0).and_then(|session| session.turn.as_ref());
        let Some((turn, stop)) = turn.map(|live| (live.key, live.stop)) else { return };
        match follows {
            Follows::Nothing => {}
            Follows::Stop if stop == Stop::No => self.stop(key, out),
            Follows::Stop => {}
            Follows::Watch(timer, after) => {
                self.arm(Alarm::Patience(key, turn, timer), after, out);
            }
        }
    }

    fn rang(&mut self, alarm: Alarm, out: &mut Vec<Action>) {
        match alarm {
            Alarm::Health => self.client.health(out),
            Alarm::Listen if self.is_connected => {}
            Alarm::Listen => self.client.listen(out),
            Alarm::Lost(round) => self.waited(round, out),
            Alarm::Patience(key, turn, timer) => {
                let Some(live) = self.live(key, turn) else { return };
                let follows = live.rang(timer);
                self.follow(key, follows, out);
            }
            Alarm::Settle(key, turn, round) => {
                let Some(live) = self.live(key, turn).filter(|live| live.settling == round) else {
                    return;
                };
                if live.n_steers > 0 {
                    // The server may take it up yet; the call has a limit of its own.
                    self.settle(key, out);
                } else {
                    self.conclude(key, out);
                }
            }
            Alarm::Stop(key, turn) => {
                let Some(live) = self.live(key, turn) else { return };
                if live.is_silent {
                    // It was waited for in vain. Should it be about to begin, this
                    // may still end it.
                    self.stop(key, out);
                    self.conclude(key, out);
                } else if live.failure.is_some() {
                    self.conclude(key, out);
                }
                // A cancelled turn that does not end is for the driver to give up.
            }
            Alarm::Look(key, turn) => {
                if self.live(key, turn).is_some() {
                    self.look(key, out);
                }
            }
        }
    }

    /// The turn seems to be over; what may still come gets a moment.
    pub(super) fn settle(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some(live) = &mut session.turn else { return };
        live.settling = live.settling.wrapping_add(1);
        live.awaited = Some(live.settling);
        let alarm = Alarm::Settle(key, live.key, live.settling);
        self.arm(alarm, SETTLE, out);
    }

    /// Says the last word on a turn and goes on with the session.
    pub(super) fn conclude(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let end = session.turn.as_mut().map(|live| live.end(out));
        self.conclude_with(key, end, out);
    }

    pub(super) fn conclude_with(
        &mut self,
        key: SessionKey,
        end: Option<Box<TurnEnd>>,
        out: &mut Vec<Action>,
    ) {
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let Some(live) = session.turn.take() else { return };
        let mut end = end.unwrap_or_default();
        session.meanwhile = None;
        session.answered = live.message_ids();
        if end.failure.is_none() {
            session.model = live.model.or(session.model.take());
        }
        session.remember(live.users);
        self.children.retain(|_, (parent, _)| *parent != key);
        self.deny_all(live.key, out);
        if !live.is_silent {
            if let Some(version) = self.version.as_ref().filter(|version| !version.is_empty()) {
                end.meta.insert("version".to_owned(), Value::from(version.as_str()));
            }
            out.push(Action::EndTurn { turn: live.key, end });
        }
        self.advance(key, out);
    }

    fn close(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        if let Some(session) = self.sessions.get_mut(&key.0).filter(|one| one.is_draining()) {
            session.held = None;
            session.is_closing = true;
            return;
        }
        let Some(session) = self.sessions.remove(&key.0) else { return };
        self.children.retain(|_, (parent, _)| *parent != key);
        if let (Some((id, directory)), Some(live)) = (session.at(), &session.turn) {
            self.deny_all(live.key, out);
            self.client.abort(Purpose::Nothing, (&id, &directory), out);
        }
    }

    /// Forgets a session that was closed, once nothing of it is left on the
    /// server. One that was opened under the same name waits for that.
    fn let_go(&mut self, key: SessionKey, out: &mut Vec<Action>) {
        if self.sessions.get(&key.0).is_none_or(Session::is_draining) {
            return;
        }
        let Some(closed) = self.sessions.remove(&key.0) else { return };
        let next = self.sessions.iter_mut().find(|(_, session)| session.id == closed.id);
        if let Some((next, session)) = next {
            let next = SessionKey(*next);
            session.inherit(closed);
            self.advance(next, out);
        }
    }

    /// Returns whether nothing is left of what ran under a session's name before
    /// it was opened.
    fn is_drained(&self, key: SessionKey) -> bool {
        let id = self.sessions.get(&key.0).and_then(|session| session.id.as_ref());
        let mut closing = self.sessions.values().filter(|session| session.is_closing);
        id.is_none() || !closing.any(|session| session.id.as_ref() == id)
    }

    /// The process is gone, or the server was left.
    fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        if let Some(visit) = &self.visit {
            let failure = visit.given_up();
            return self.fail_all(&failure, out);
        }
        if !self.is_ready {
            let failure = fault::of_exit(exit, self.cause.as_deref());
            out.push(Action::OpenFailed { session: ONLY_SESSION, failure });
        }
        self.fail_all(&Failure::new(FailureKind::Crashed, exit_words(exit)), out);
    }

    /// Ends every turn, for there is nobody any more who would.
    pub(super) fn fail_all(&mut self, failure: &Failure, out: &mut Vec<Action>) {
        for (_, mut session) in std::mem::take(&mut self.sessions) {
            if let Some(mut live) = session.turn.take().filter(|live| !live.is_silent) {
                let end = live.failed(failure.clone());
                out.push(Action::EndTurn { turn: live.key, end });
            }
            if let Some(held) = session.held.take() {
                let end = Box::new(TurnEnd::failed(failure.clone()));
                out.push(Action::EndTurn { turn: held.turn, end });
            }
        }
        self.asked.clear();
    }

    pub(super) fn arm(&mut self, alarm: Alarm, after: Duration, out: &mut Vec<Action>) {
        self.n_alarms = self.n_alarms.wrapping_add(1);
        self.alarms.insert(self.n_alarms, alarm);
        out.push(Action::Arm { timer: TimerKey(self.n_alarms), after });
    }

    /// Returns a turn that the server has not ended.
    pub(super) fn live(&mut self, key: SessionKey, turn: TurnKey) -> Option<&mut LiveTurn> {
        let live = self.sessions.get_mut(&key.0)?.turn.as_mut()?;
        (live.key == turn).then_some(live)
    }

    fn find_live(&mut self, turn: TurnKey) -> Option<(SessionKey, &mut LiveTurn)> {
        self.sessions.iter_mut().find_map(|(key, session)| {
            let live = session.turn.as_mut().filter(|live| live.key == turn && !live.is_silent)?;
            Some((SessionKey(*key), live))
        })
    }

    /// Returns our name for a session of the server's, or of one that it made
    /// for a helper of ours. One that is being closed has a lower key than one
    /// that was opened in its place, and comes first.
    pub(super) fn find(&self, id: &str) -> Option<SessionKey> {
        let own = self.sessions.iter().find(|(_, session)| session.id.as_deref() == Some(id));
        let own = own.map(|(key, _)| SessionKey(*key));
        own.or_else(|| self.children.get(id).map(|(key, _)| *key))
    }
}

fn is_untested(version: &str) -> bool {
    !version.is_empty() && !SPEC.tested_versions.contains(&version)
}
