//! One turn while it runs: what the server tells of it, and how it ends.
//!
//! A turn is a message of the user's and the model's messages that answer it,
//! with those that the CLI puts between them. Knows nothing of calls and timers.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    answering::Said,
    parts::{Kind, Known, Parts},
    session::Held,
};
use crate::{
    agent::{
        Action, TimerKey, TurnEnd, TurnKey,
        emit::emit_for,
        field::remove_text,
        opencode::{
            answer::ending, fault, message::usage, patience::Patience, tool::Tool, turn::sum,
        },
    },
    event::{EventBody, Status, StopReason, Usage},
    failure::{Failure, FailureKind},
    request::Permissions,
};

/// For how many messages that began unheard a turn is read again.
const MAX_LOOKED_FOR: usize = 64;

/// A turn.
pub(super) struct LiveTurn {
    pub(super) key: TurnKey,
    pub(super) held: Held,
    /// How far the wish to end it has come.
    pub(super) stop: Stop,
    /// Its last word was said; what still comes is nobody's.
    pub(super) is_silent: bool,
    /// The server has begun to work on it.
    pub(super) was_busy: bool,
    /// Further texts that the server was sent and has not confirmed.
    pub(super) n_steers: usize,
    /// Counts the reasons to wait for its end; an old one says nothing.
    pub(super) settling: u32,
    /// Which of them a timer runs for.
    pub(super) awaited: Option<u32>,
    /// Why we ended it ourselves.
    pub(super) failure: Option<(Failure, StopReason)>,
    /// What was answered, by the server's id of the request.
    pub(super) answers: BTreeMap<String, Said>,
    /// The messages of the user that are part of it.
    pub(super) users: Vec<String>,
    messages: Vec<Message>,
    /// Messages that it was read again for, whether they were found or not.
    looked_for: BTreeSet<String>,
    pub(super) parts: Parts,
    calls: BTreeMap<String, Call>,
    /// What was told once and is not to be told again.
    pub(super) told: BTreeSet<String>,
    /// The server tells under flat names, and no figures.
    pub(super) is_flat: bool,
    error: Option<Failure>,
    rejected: Option<String>,
    patience: Patience,
    /// Which try was told of last, and when it is due.
    last_retry: Option<(Option<u64>, Option<i64>)>,
    n_calls: u32,
    usage: Usage,
    pub(super) model: Option<String>,
}

/// How far the wish to end a turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Nobody wants it.
    No,
    /// The server is told as soon as it works: before, it would say yes and
    /// begin all the same.
    Wanted,
    /// The server was told.
    Sent,
}

/// What is known of a tool call.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) title: String,
    pub(super) input: Option<Value>,
    /// Somebody has allowed it.
    pub(super) is_allowed: bool,
    /// The message that it is part of, and the provider's id of it, which is not
    /// the only one of its kind: some providers begin to count anew.
    message: String,
    call: String,
    is_over: bool,
}

/// A message of the model's.
#[derive(Debug, Default)]
struct Message {
    id: String,
    parent: String,
    is_summary: bool,
    is_complete: bool,
    has_tools: bool,
    /// The calls of the model that were begun for it.
    steps: BTreeSet<String>,
    finish: Option<String>,
    error: Option<Value>,
}

impl Message {
    /// Whether the answer was cut off on its way: the CLI then asks again.
    fn is_broken(&self) -> bool {
        self.finish.as_deref() == Some("unknown") && !self.has_tools
    }
}

/// What follows from something that happened in a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Follows {
    Nothing,
    /// It has to be stopped; why is noted.
    Stop,
    /// A timer of its patience.
    Watch(TimerKey, Duration),
}

impl LiveTurn {
    pub(super) fn new(held: Held) -> Self {
        Self {
            key: held.turn,
            stop: Stop::No,
            is_silent: false,
            was_busy: false,
            n_steers: 0,
            settling: 0,
            awaited: None,
            failure: None,
            answers: BTreeMap::new(),
            users: Vec::new(),
            messages: Vec::new(),
            looked_for: BTreeSet::new(),
            parts: Parts::default(),
            calls: BTreeMap::new(),
            told: BTreeSet::new(),
            is_flat: false,
            error: None,
            rejected: None,
            patience: Patience::default(),
            last_retry: None,
            n_calls: 0,
            usage: Usage::default(),
            model: None,
            held,
        }
    }

    /// What the agent may do here without asking.
    pub(super) fn permissions(&self) -> Permissions {
        self.held.permissions
    }

    /// Returns whether this is one of its messages of the model.
    pub(super) fn knows(&self, message: &str) -> bool {
        self.messages.iter().any(|known| known.id == message)
    }

    /// Returns whether the message of a part that is not known should be looked
    /// for: once, and not when an old call is only taken out of the history.
    pub(super) fn is_worth_a_look(&mut self, message: &str, part: &Map<String, Value>) -> bool {
        let state = part.get("state").and_then(|state| state.get("time"));
        let is_old = |time: &Value| time.get("compacted").is_some();
        if part.get("time").is_some_and(is_old) || state.is_some_and(is_old) {
            return false;
        }
        self.looked_for.len() < MAX_LOOKED_FOR && self.looked_for.insert(message.to_owned())
    }

    /// Returns its messages of the model.
    pub(super) fn message_ids(&self) -> Vec<String> {
        self.messages.iter().map(|message| message.id.clone()).collect()
    }

    /// Returns whether the server has taken the prompt up.
    pub(super) fn has_begun(&self) -> bool {
        self.was_busy || self.is_flat || !self.messages.is_empty()
    }

    /// Returns whether something failed before the model wrote anything.
    pub(super) fn failed_early(&self) -> bool {
        self.error.is_some() && self.messages.is_empty()
    }

    /// Returns whether the last message answers the last prompt and is complete.
    pub(super) fn is_over(&self) -> bool {
        self.n_steers == 0
            && self.messages.last().is_some_and(|last| {
                last.is_complete && self.users.last().is_none_or(|user| *user == last.parent)
            })
    }

    /// Returns whether an end without a last message is to be waited for.
    pub(super) fn may_end(&self) -> bool {
        self.stop == Stop::Sent
            || self.error.is_some()
            || self.messages.last().is_some_and(|last| last.is_complete)
    }

    /// Returns whether its end is waited for.
    pub(super) fn is_settling(&self) -> bool {
        self.awaited == Some(self.settling)
    }

    /// Says that a further text is lost, and why.
    pub(super) fn not_steered(&self, text: &str, why: &str, out: &mut Vec<Action>) {
        let text = not_steered(text, why);
        self.tell(None, EventBody::Status(Status::Warning { text }), out);
    }

    /// Takes what is known of a message; returns whether the model began one.
    pub(super) fn message(&mut self, mut info: Map<String, Value>, out: &mut Vec<Action>) -> bool {
        let id = remove_text(&mut info, "id").unwrap_or_default();
        let parent = remove_text(&mut info, "parentID").unwrap_or_default();
        if id.is_empty() || !self.users.contains(&parent) {
            return false;
        }
        let is_new = !self.messages.iter().any(|known| known.id == id);
        let is_summary = info.get("summary").and_then(Value::as_bool) == Some(true);
        if is_new {
            self.begin(Message { id: id.clone(), parent, is_summary, ..Message::default() }, out);
        }
        let provider = remove_text(&mut info, "providerID").unwrap_or_default();
        if let Some(model) = remove_text(&mut info, "modelID").filter(|_| !is_summary) {
            let is_bare = provider.is_empty();
            self.model = Some(if is_bare { model } else { format!("{provider}/{model}") });
        }
        let Some(known) = self.messages.iter_mut().find(|known| known.id == id) else {
            return is_new;
        };
        let is_complete =
            info.get("time").and_then(|time| time.get("completed")).is_some_and(|at| !at.is_null());
        let is_done_now = is_complete && !known.is_complete;
        // What is told after something was read may be older.
        known.is_complete |= is_complete;
        known.finish = remove_text(&mut info, "finish").or(known.finish.take());
        known.error = info.remove("error").filter(|error| !error.is_null()).or(known.error.take());
        if is_done_now && is_summary && known.error.is_none() && known.finish.is_some() {
            let text = self.parts.text(&id, Kind::Hidden).unwrap_or_default();
            self.tell(None, EventBody::Status(Status::Compacted { text }), out);
        }
        is_new
    }

    fn begin(&mut self, message: Message, out: &mut Vec<Action>) {
        if let Some(last) = self.messages.last().filter(|last| last.is_broken()) {
            let retracted = self.parts.retract(&last.id, false);
            retracted.into_iter().for_each(|event| self.tell(None, event, out));
            let again = self.patience.asked_again();
            self.tell(None, EventBody::Status(again), out);
        }
        if !message.is_summary {
            // It goes on, so what failed before was got over.
            self.error = None;
        }
        self.messages.push(message);
    }

    /// Takes what is known of a part of a message. One that was read may have
    /// changed before, unnoticed.
    pub(super) fn part(
        &mut self,
        mut part: Map<String, Value>,
        is_read: bool,
        out: &mut Vec<Action>,
    ) -> Follows {
        let message = message_of(&part).to_owned();
        let Some(owner) = self.messages.iter_mut().find(|known| known.id == message) else {
            return Follows::Nothing;
        };
        let is_summary = owner.is_summary;
        match part.get("type").and_then(Value::as_str).unwrap_or_default() {
            kind @ ("text" | "reasoning") => {
                let kind = match kind {
                    _ if is_summary || is_for_model(&part) => Kind::Hidden,
                    "text" => Kind::Answer,
                    _ => Kind::Thought,
                };
                self.text(part, message, kind, is_read, out);
            }
            "tool" => {
                owner.has_tools = true;
                self.tool(None, part, out);
            }
            "step-start" => {
                let id = remove_text(&mut part, "id").unwrap_or_default();
                if owner.steps.insert(id) && owner.steps.len() > 1 {
                    // The model was asked again, and that it failed may not have
                    // been heard.
                    let retracted = self.parts.retract(&message, true);
                    retracted.into_iter().for_each(|event| self.tell(None, event, out));
                }
            }
            "step-finish" => return self.step_finish(&message, &part, out),
            _ => {}
        }
        Follows::Nothing
    }

    fn text(
        &mut self,
        mut part: Map<String, Value>,
        message: String,
        kind: Kind,
        is_read: bool,
        out: &mut Vec<Action>,
    ) {
        let is_done = part.get("time").is_some_and(|time| time.get("end").is_some());
        let id = remove_text(&mut part, "id").unwrap_or_default();
        let text = remove_text(&mut part, "text").unwrap_or_default();
        if is_done {
            self.patience.answered();
        }
        let known = Known { id, message, kind, text, is_done, is_read };
        let events = self.parts.known(known);
        events.into_iter().for_each(|event| self.tell(None, event, out));
    }

    /// Takes a piece of a text.
    pub(super) fn piece(&mut self, part: &str, text: String, out: &mut Vec<Action>) {
        if let Some(event) = self.parts.piece(part, text) {
            self.tell(None, event, out);
        }
    }

    /// Takes a text that was told under a flat name. One that has none goes on
    /// with the one before.
    pub(super) fn flat_text(&mut self, id: Option<String>, text: String, out: &mut Vec<Action>) {
        let (id, text) = match id {
            Some(id) => (id, text),
            None => (String::new(), self.parts.continued("", text)),
        };
        if !self.messages.iter().any(|known| known.id == id) {
            let parent = self.users.last().cloned().unwrap_or_default();
            self.messages.push(Message { id: id.clone(), parent, ..Message::default() });
        }
        let known = Known {
            message: id.clone(),
            id,
            kind: Kind::Answer,
            text,
            is_done: false,
            is_read: false,
        };
        let events = self.parts.known(known);
        events.into_iter().for_each(|event| self.tell(None, event, out));
    }

    /// Returns the last word of a turn whose end was told under a flat name: the
    /// answer, and no reason.
    pub(super) fn flat_end(&mut self) -> Box<TurnEnd> {
        let last = self.messages.last();
        let text = last.and_then(|last| self.parts.text(&last.id, Kind::Answer));
        let mut end = self.ended(Some(text.unwrap_or_default()), None, StopReason::EndTurn);
        end.stop_reason = None;
        end
    }

    /// Takes the record of a tool call; `parent` is the call that it is made for.
    pub(super) fn tool(
        &mut self,
        parent: Option<&str>,
        part: Map<String, Value>,
        out: &mut Vec<Action>,
    ) {
        let status = part.get("state").and_then(|state| state.get("status"));
        let is_over = matches!(status.and_then(Value::as_str), Some("completed" | "error"));
        if status.and_then(Value::as_str) == Some("pending") {
            return;
        }
        let message = message_of(&part).to_owned();
        let mut tool = Tool::read(part);
        if tool.is_old || tool.part.is_empty() {
            return;
        }
        self.patience.answered();
        if tool.is_rejected && self.rejected.is_none() {
            self.rejected = Some(tool.output().to_owned());
        }
        let known = self.calls.entry(tool.part.clone()).or_default();
        if known.is_over {
            return;
        }
        known.is_over = is_over;
        let id = tool.part.clone();
        if self.told.insert(format!("call {id}")) {
            let input = tool.input.take();
            *known = Call {
                tool: tool.name().to_owned(),
                title: tool.title.clone(),
                input: input.clone(),
                is_allowed: false,
                message,
                call: tool.call().to_owned(),
                is_over,
            };
            let begun = tool.begun(id.clone(), input);
            self.tell(parent, begun, out);
        }
        if is_over {
            self.tell(parent, tool.ended(id), out);
        }
    }

    /// Returns the call that is meant by this message and id, and the id of its
    /// record, if that is certain and it still runs.
    pub(super) fn call(&self, message: Option<&str>, id: &str) -> Option<(&str, &Call)> {
        let is_meant =
            |call: &Call| call.call == id && message.is_none_or(|message| call.message == message);
        let mut meant = self.calls.iter().filter(|(_, call)| is_meant(call));
        let (Some((part, call)), None) = (meant.next(), meant.next()) else { return None };
        (!call.is_over).then_some((part.as_str(), call))
    }

    /// Somebody has allowed a call, by the id of its record.
    pub(super) fn allow(&mut self, part: &str) {
        if let Some(call) = self.calls.get_mut(part) {
            call.is_allowed = true;
        }
    }

    fn step_finish(
        &mut self,
        message: &str,
        part: &Map<String, Value>,
        out: &mut Vec<Action>,
    ) -> Follows {
        let id = part.get("id").and_then(Value::as_str).unwrap_or_default();
        if !self.told.insert(format!("step {id}")) {
            return Follows::Nothing;
        }
        self.n_calls = self.n_calls.saturating_add(1);
        self.spent(part, out);
        let Some(owner) = self.messages.iter_mut().find(|known| known.id == message) else {
            return Follows::Nothing;
        };
        let reason = part.get("reason").and_then(Value::as_str).unwrap_or_default();
        owner.finish = Some(reason.to_owned());
        if owner.is_broken() {
            return match self.patience.broke_off() {
                Some(failure) => self.give_up(failure, StopReason::Error),
                None => Follows::Nothing,
            };
        }
        self.patience.finished();
        let goes_on = matches!(reason, "tool-calls" | "unknown");
        if goes_on && self.held.max_turns.is_some_and(|max| self.n_calls >= max) {
            let text = format!("stopped after {} calls of the model", self.n_calls);
            let failure = Failure::new(FailureKind::LimitReached, text);
            return self.give_up(failure, StopReason::MaxTurns);
        }
        Follows::Nothing
    }

    /// Adds what a call of the model used, also one of a helper's.
    pub(super) fn spent(&mut self, part: &Map<String, Value>, out: &mut Vec<Action>) {
        if let Some(usage) = usage(part) {
            self.usage = sum(self.usage, &usage);
            self.tell(None, EventBody::Usage(self.usage), out);
        }
    }

    /// Returns whether a helper's call of the model was not counted yet.
    pub(super) fn is_news(&mut self, part: &Map<String, Value>) -> bool {
        let id = part.get("id").and_then(Value::as_str).unwrap_or_default();
        self.told.insert(format!("step {id}"))
    }

    /// A call of the model failed and is made again.
    pub(super) fn retry(
        &mut self,
        now: Timestamp,
        message: String,
        attempt: Option<u64>,
        next: Option<i64>,
        out: &mut Vec<Action>,
    ) -> Follows {
        // A stream that was opened anew may tell of the same once more.
        if next.is_some() && self.last_retry.replace((attempt, next)) == Some((attempt, next)) {
            return Follows::Nothing;
        }
        if let Some(last) = self.messages.last() {
            let retracted = self.parts.retract(&last.id, true);
            retracted.into_iter().for_each(|event| self.tell(None, event, out));
        }
        let mut armed = Vec::new();
        self.patience.clock.notice(&message, &mut armed);
        let failure = self.patience.failed(now, message);
        if let Some(Status::Retry { max, text, attempt: ours, .. }) = self.patience.tried_again() {
            let attempt = attempt.and_then(|n| u32::try_from(n).ok()).or(ours);
            let wait = next.map(|next| next.saturating_sub(now.as_millisecond()).max(0));
            let delay_ms = wait.and_then(|wait| u64::try_from(wait).ok());
            let status = Status::Retry { attempt, max, delay_ms, text };
            self.tell(None, EventBody::Status(status), out);
        }
        if let Some(failure) = failure {
            return self.give_up(failure, StopReason::Error);
        }
        let timer = armed.into_iter().find_map(|action| {
            let Action::Arm { timer, after } = action else { return None };
            Some(Follows::Watch(timer, after))
        });
        timer.unwrap_or(Follows::Nothing)
    }

    /// Takes the ring of a timer of its patience.
    pub(super) fn rang(&mut self, timer: TimerKey) -> Follows {
        match self.patience.clock.rang(timer) {
            Some(why) => {
                let failure = fault::of_words(&why, FailureKind::Unavailable);
                self.give_up(failure, StopReason::Error)
            }
            None => Follows::Nothing,
        }
    }

    fn give_up(&mut self, failure: Failure, reason: StopReason) -> Follows {
        // What the provider said before the CLI made the history shorter is why
        // all this happens.
        let overflow = self.error.take().filter(|e| e.kind == FailureKind::ContextTooLong);
        self.failure.get_or_insert((overflow.unwrap_or(failure), reason));
        Follows::Stop
    }

    /// Takes an error; the first counts, those after it tell less.
    pub(super) fn error(&mut self, error: &Value, cause: Option<&str>) {
        let failure = fault::of_error(error, cause);
        if failure.kind != FailureKind::Cancelled || self.stop == Stop::No {
            self.error.get_or_insert(failure);
        }
    }

    /// Returns the last word.
    pub(super) fn end(&mut self, out: &mut Vec<Action>) -> Box<TurnEnd> {
        let last = self.messages.last_mut();
        let error = last.and_then(|last| last.error.take());
        let last = self.messages.last();
        let text = last.and_then(|last| self.parts.text(&last.id, Kind::Answer));
        if let Some((failure, reason)) = self.failure.take() {
            return self.ended(text, Some(failure), reason);
        }
        if self.stop != Stop::No {
            let failure = Failure::new(FailureKind::Cancelled, "the turn was aborted");
            return self.ended(text, Some(failure), StopReason::Cancelled);
        }
        let finish = last.and_then(|last| last.finish.clone()).filter(|_| error.is_none());
        let is_summary = last.is_some_and(|last| last.is_summary);
        let error = match (self.error.take(), error) {
            (Some(before), _) if is_summary || finish.is_none() => Some(before),
            (_, Some(error)) => Some(fault::of_error(&error, None)),
            (_, None) => None,
        };
        let steers = self.unanswered();
        if let Some(text) = steers.filter(|_| error.is_none()) {
            self.tell(None, EventBody::Status(Status::Warning { text }), out);
        }
        match (error, finish) {
            (Some(failure), _) => {
                let reason = fault::stop_reason(&failure);
                self.ended(text, Some(failure), reason)
            }
            (None, Some(finish)) if !is_summary => match ending(&finish, self.rejected.take()) {
                Ok(reason) => self.ended(Some(text.unwrap_or_default()), None, reason),
                Err(failure) => {
                    let reason = fault::stop_reason(&failure);
                    self.ended(text, Some(failure), reason)
                }
            },
            (None, _) => self.ended(text, Some(Failure::unreadable()), StopReason::Error),
        }
    }

    fn unanswered(&self) -> Option<String> {
        let last = self.messages.last()?;
        let is_answered = self.users.last().is_none_or(|user| *user == last.parent);
        (!is_answered).then(|| "the turn ended before a further text was answered".to_owned())
    }

    /// Returns the last word of a turn that failed.
    pub(super) fn failed(&mut self, failure: Failure) -> Box<TurnEnd> {
        let last = self.messages.last();
        let text = last.and_then(|last| self.parts.text(&last.id, Kind::Answer));
        let reason = fault::stop_reason(&failure);
        self.ended(text, Some(failure), reason)
    }

    fn ended(
        &mut self,
        text: Option<String>,
        failure: Option<Failure>,
        reason: StopReason,
    ) -> Box<TurnEnd> {
        let mut meta = Map::new();
        if !self.is_flat {
            meta.insert("model_calls".to_owned(), self.n_calls.into());
        }
        Box::new(TurnEnd {
            text,
            failure,
            usage: self.usage,
            model: self.model.clone(),
            stop_reason: Some(reason),
            meta,
            ..TurnEnd::default()
        })
    }

    pub(super) fn tell(&self, parent: Option<&str>, event: EventBody, out: &mut Vec<Action>) {
        if !self.is_silent {
            emit_for(self.key, parent, event, out);
        }
    }
}

/// Returns how it is said that a further text is lost.
pub(super) fn not_steered(text: &str, why: &str) -> String {
    format!("not taken into account, because {why}: {text}")
}

fn message_of(part: &Map<String, Value>) -> &str {
    part.get("messageID").and_then(Value::as_str).unwrap_or_default()
}

/// Whether a text is meant for the model alone.
fn is_for_model(part: &Map<String, Value>) -> bool {
    let is = |name: &str| part.get(name).and_then(Value::as_bool) == Some(true);
    is("synthetic") || is("ignored")
}
