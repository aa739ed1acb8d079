//! Speaks with one `opencode serve`, of ours or of somebody else's.
//!
//! Here is which part of it each order, reply and timer is for. How a prompt is
//! sent is in `prompting`, and how turns end in `ending`. What the server tells
//! by itself is read in `reading`, what it asks in `asking`, what it told while
//! nobody listened in `resync`, and how one that is not ours is found, lost and
//! left in `visit`.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    alarm::Alarm,
    asking::Asked,
    client::{Client, Purpose},
    health::Health,
    launch,
    session::{Session, State},
    turn::LiveTurn,
    visit::Visit,
};
use crate::{
    agent::{
        Action, Dialect, Input, Order, SessionKey, TimerKey, TurnEnd, TurnKey, WarmLaunch,
        emit::emit_unknown,
        http::{Heard, ServerAddress},
        opencode::log::{self, Notice},
    },
    event::Stream,
    failure::{Failure, FailureKind},
};

/// How the line begins that tells the address.
const LISTENING: &str = "opencode server listening on ";
/// How long until a server that is not well yet is asked again.
const NEXT_HEALTH: Duration = Duration::from_millis(100);

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
    pub(super) alarms: BTreeMap<u32, Alarm>,
    pub(super) n_alarms: u32,
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

    /// Returns a turn that the server has not ended.
    pub(super) fn live(&mut self, key: SessionKey, turn: TurnKey) -> Option<&mut LiveTurn> {
        let live = self.sessions.get_mut(&key.0)?.turn.as_mut()?;
        (live.key == turn).then_some(live)
    }

    pub(super) fn find_live(&mut self, turn: TurnKey) -> Option<(SessionKey, &mut LiveTurn)> {
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
