//! What the server tells by itself: notifications, and lines that are none.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    fault::TurnError,
    notice,
    server::AppServer,
    session::Session,
    turn::{Interrupt, LiveTurn},
};
use crate::{
    agent::{
        Action, SessionKey, TimerKey, TurnKey,
        codex::{item::Stage, turn::is_same_session},
        emit::emit_unknown,
        field::remove_text,
    },
    event::Stream,
    failure::{Failure, FailureKind},
    memo::Totals,
};

impl AppServer {
    pub(super) fn notification(
        &mut self,
        method: &str,
        mut params: Map<String, Value>,
        line: &[u8],
        out: &mut Vec<Action>,
    ) {
        let turn = self.worked_on(&params);
        let n_before = out.len();
        let text = |name: &str| params.get(name).and_then(Value::as_str);
        let key = text("threadId").and_then(|thread| self.find(thread));
        let is_known = match method {
            "thread/started" => {
                self.note_child(&params);
                true
            }
            "serverRequest/resolved" => {
                self.withdraw(&params, out);
                true
            }
            "turn/started" => self.turn_started(key, &params, out),
            "turn/completed" => self.turn_completed(key, &mut params, out),
            "thread/closed" => {
                if let Some(thread) = text("threadId") {
                    self.children.remove(thread);
                }
                self.closed(key, out);
                true
            }
            "thread/tokenUsage/updated" => self.used(key, &params, out),
            _ => self.of_turn(key, method, params, out),
        };
        if !is_known && !notice::is_quiet(method) {
            self.not_understood(key, Stream::Stdout, line, out);
        }
        if let Some(turn) = turn.filter(|_| out.len() == n_before) {
            out.push(Action::Working { turn });
        }
    }

    /// Returns the turn that a notification shows to be worked on, if only by a
    /// helper.
    fn worked_on(&mut self, params: &Map<String, Value>) -> Option<TurnKey> {
        let thread = params.get("threadId")?.as_str()?;
        let live = match self.find(thread) {
            Some(key) => self.turn_of(key, params)?,
            None => {
                let parent = self.children.get(thread)?;
                self.sessions.get_mut(&parent.0)?.turn.as_mut()?
            }
        };
        Some(live.key)
    }

    /// Finds the session of a thread.
    pub(super) fn find(&self, thread: &str) -> Option<SessionKey> {
        let is_it = |known: &Option<String>| {
            known.as_deref().is_some_and(|known| is_same_session(known, thread))
        };
        let mut sessions = self.sessions.iter();
        sessions.find(|(_, session)| is_it(&session.thread)).map(|(key, _)| SessionKey(*key))
    }

    /// Finds the turn that a notification is about. Late ones of a turn that is
    /// over are nobody's. Those that name no turn are the running one's.
    fn turn_of(&mut self, key: SessionKey, params: &Map<String, Value>) -> Option<&mut LiveTurn> {
        let live = self.sessions.get_mut(&key.0)?.turn.as_mut()?;
        match params.get("turnId").and_then(Value::as_str) {
            Some(id) => (live.id.as_deref() == Some(id)).then_some(live),
            None => Some(live),
        }
    }

    /// Takes a notification about a turn; returns whether it was understood.
    /// Where there is no turn, nobody is there who could be told.
    fn of_turn(
        &mut self,
        key: Option<SessionKey>,
        method: &str,
        params: Map<String, Value>,
        out: &mut Vec<Action>,
    ) -> bool {
        let Some(key) = key else { return true };
        let Some(live) = self.turn_of(key, &params) else { return true };
        let turn = live.key;
        match of_turn(live, method, params, out) {
            Ok(is_known) => {
                self.conclude_if_clean(key, out);
                is_known
            }
            Err(retry) => {
                self.watch(key, turn, retry, out);
                true
            }
        }
    }

    /// Notes which session a thread belongs to that an agent began for a helper.
    fn note_child(&mut self, params: &Map<String, Value>) {
        let Some(thread) = params.get("thread") else { return };
        let text = |name: &str| thread.get(name).and_then(Value::as_str);
        let (Some(id), Some(parent)) = (text("id"), text("parentThreadId")) else { return };
        let parent = self.find(parent).or_else(|| self.children.get(parent).copied());
        if let Some(parent) = parent {
            self.children.insert(id.to_owned(), parent);
        }
    }

    fn turn_started(
        &mut self,
        key: Option<SessionKey>,
        params: &Map<String, Value>,
        out: &mut Vec<Action>,
    ) -> bool {
        let Some(key) = key else { return true };
        let id = params.get("turn").and_then(|turn| turn.get("id")).and_then(Value::as_str);
        let Some(id) = id else { return false };
        let Some(session) = self.sessions.get_mut(&key.0) else { return true };
        if session.turn.is_none() && session.is_open {
            self.n_unasked += 1;
            let turn = TurnKey::unasked(self.n_unasked);
            let mut live = LiveTurn::new(turn, session.totals);
            live.model.clone_from(&session.model);
            live.file.clone_from(&session.file);
            session.turn = Some(live);
            out.push(Action::Unasked { session: key, turn });
        }
        let Some(live) = &mut session.turn else { return true };
        let is_its = live.id.as_deref().is_none_or(|known| known == id);
        if is_its && live.ending.is_none() {
            live.id = Some(id.to_owned());
            live.is_running = true;
            let turn = live.key;
            self.send_steers(turn, out);
            self.send_interrupt(turn, out);
        }
        true
    }

    fn turn_completed(
        &mut self,
        key: Option<SessionKey>,
        params: &mut Map<String, Value>,
        out: &mut Vec<Action>,
    ) -> bool {
        let Some(turn) = params.remove("turn") else { return false };
        let id = turn.get("id").and_then(Value::as_str);
        let Some(key) = key else { return true };
        let Some(session) = self.sessions.get_mut(&key.0) else { return true };
        let Some(live) = &mut session.turn else { return true };
        if live.ending.is_none() && id.is_some() && live.id.as_deref() == id {
            let end = live.over(turn, out);
            self.end(key, end, out);
        }
        true
    }

    /// The server has unloaded a thread. If it still had a turn, that is lost.
    fn closed(&mut self, key: Option<SessionKey>, out: &mut Vec<Action>) {
        let Some(key) = key else { return };
        let Some(session) = self.sessions.get_mut(&key.0).filter(|session| session.is_open) else {
            return self.reopen(key, out);
        };
        session.is_stale = true;
        if let Some(live) = &mut session.turn {
            let text = "codex closed the session while a turn ran in it";
            let failure = live.failure.take();
            let failure = failure.unwrap_or_else(|| Failure::new(FailureKind::Crashed, text));
            let end = live.ending.take().unwrap_or_else(|| live.failed(failure));
            live.ending = Some(end);
            self.conclude(key, out);
        }
    }

    fn used(
        &mut self,
        key: Option<SessionKey>,
        params: &Map<String, Value>,
        out: &mut Vec<Action>,
    ) -> bool {
        let total = params.get("tokenUsage").and_then(|usage| usage.get("total"));
        let Some(totals) = total.and_then(totals) else { return false };
        let Some(session) = key.and_then(|key| self.sessions.get_mut(&key.0)) else { return true };
        session.totals = Some(totals);
        if let Some(live) = &mut session.turn {
            let id = params.get("turnId").and_then(Value::as_str);
            if id.is_none_or(|id| live.id.as_deref() == Some(id)) {
                live.used(totals, out);
            } else {
                live.found(totals);
            }
        }
        true
    }

    /// A line that was too long to keep. If it was the last word on a turn,
    /// there will be no other.
    pub(super) fn cut_line(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        let start = String::from_utf8_lossy(bytes.get(..bytes.len().min(1024)).unwrap_or(bytes));
        let is_named = |thread: &Option<String>| {
            thread.as_deref().is_some_and(|thread| start.contains(thread))
        };
        let mut sessions = self.sessions.iter();
        let key = sessions.find(|(_, session)| is_named(&session.thread));
        let key = key.map(|(key, _)| SessionKey(*key));
        self.not_understood(key, Stream::Stdout, bytes, out);
        if start.contains("\"turn/completed\"")
            && let Some(key) = key
            && let Some(session) = self.sessions.get_mut(&key.0)
            && let Some(live) = &mut session.turn
            && live.ending.is_none()
        {
            let end = live.failed(Failure::unreadable());
            self.end(key, end, out);
        }
    }

    /// Passes on a line that was not understood, to the turn that it belongs to
    /// or to the only one that runs.
    pub(super) fn not_understood(
        &self,
        key: Option<SessionKey>,
        stream: Stream,
        bytes: &[u8],
        out: &mut Vec<Action>,
    ) {
        let running = |session: &Session| session.turn.as_ref().map(|live| live.key);
        let turn = match key {
            Some(key) => self.sessions.get(&key.0).and_then(running),
            None => {
                let mut turns = self.sessions.values().filter_map(running);
                turns.next().filter(|_| turns.next().is_none())
            }
        };
        if let Some(turn) = turn {
            emit_unknown(turn, stream, bytes, out);
        }
    }
}

/// A timer of the turn's, and how long until it rings.
type Retry = (TimerKey, Duration);

/// Takes a notification about a turn; returns whether it was understood, or the
/// timer that a first notice of a retry wants.
fn of_turn(
    live: &mut LiveTurn,
    method: &str,
    mut params: Map<String, Value>,
    out: &mut Vec<Action>,
) -> Result<bool, Retry> {
    let mut text = |name: &str| remove_text(&mut params, name);
    match method {
        "item/agentMessage/delta" => {
            let (Some(id), Some(delta)) = (text("itemId"), text("delta")) else {
                return Ok(false);
            };
            live.piece(&id, delta, out);
        }
        "item/reasoning/summaryTextDelta" => {
            let (Some(id), Some(delta)) = (text("itemId"), text("delta")) else {
                return Ok(false);
            };
            let part = params.get("summaryIndex").and_then(Value::as_u64).unwrap_or(0);
            live.thought(&id, part, &delta, out);
        }
        "item/started" | "item/completed" => {
            let Some(Value::Object(item)) = params.remove("item") else { return Ok(false) };
            let is_started = method == "item/started";
            let stage = if is_started { Stage::Started } else { Stage::Completed };
            return Ok(live.item(stage, item, out));
        }
        "turn/plan/updated" => {
            return Ok(params.remove("plan").is_some_and(|steps| live.plan(steps, out)));
        }
        "error" => {
            let will_retry = params.get("willRetry").and_then(Value::as_bool) == Some(true);
            let Some(error) = TurnError::of(params.get_mut("error")) else { return Ok(false) };
            // An interrupted turn needs no patience.
            let retry = live.error(error, will_retry, out);
            return retry.filter(|_| live.interrupt == Interrupt::No).map_or(Ok(true), Err);
        }
        "warning" | "guardianWarning" => match text("message") {
            Some(message) => live.warn(message, out),
            None => return Ok(false),
        },
        "mcpServer/startupStatus/updated" => {
            if let (Some(name), Some("failed")) = (text("name"), text("status").as_deref()) {
                let why = text("error").unwrap_or_default();
                live.warn(format!("the tool server {name} did not start: {why}"), out);
            }
        }
        "model/rerouted" => {
            let Some(model) = text("toModel") else { return Ok(false) };
            live.warn(format!("codex answers with another model: {model}"), out);
            live.model = Some(model);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Reads the figures of a thread, as `codex exec` tells them in another case.
fn totals(usage: &Value) -> Option<Totals> {
    let number = |name: &str| usage.get(name).and_then(Value::as_u64);
    Some(Totals {
        input_tokens: number("inputTokens")?,
        output_tokens: number("outputTokens")?,
        cached_tokens: number("cachedInputTokens").unwrap_or(0),
        cost_usd: 0.0,
    })
}
