//! One turn while it runs: what the server tells of it, and how it ends.
//!
//! Knows nothing of requests and timers; those are the server's side of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use serde_json::{Map, Value};

use super::{
    approval::CallInfo,
    fault::TurnError,
    item::{self, Read},
    message::Texts,
};
use crate::{
    agent::{
        Action, TimerKey, TurnEnd, TurnKey,
        codex::{
            fault::stop_reason,
            item::{Item, Stage, Tool},
            turn::{retry_notice, usage_between},
        },
        emit::{emit, emit_warning},
        patience::Patience,
    },
    event::{EventBody, Status, StopReason, Usage},
    failure::{Failure, FailureKind},
    memo::Totals,
};

/// A turn.
pub(super) struct LiveTurn {
    pub(super) key: TurnKey,
    /// The server's id, once it is told.
    pub(super) id: Option<String>,
    /// Whether the server has said that it began. Before that it cannot be
    /// interrupted: the server says that nothing runs, and goes on.
    pub(super) is_running: bool,
    pub(super) interrupt: Interrupt,
    /// The last word, while what the turn left behind is cleaned up.
    pub(super) ending: Option<Box<TurnEnd>>,
    /// Whether the server has ended what was left behind. What it says of the
    /// commands comes a moment later.
    pub(super) is_cleaned: bool,
    /// Texts that wait until the turn has begun.
    pub(super) steers: Vec<String>,
    /// What is known of calls that are not complete.
    pub(super) calls: BTreeMap<String, CallInfo>,
    /// Why we ended the turn ourselves.
    pub(super) failure: Option<Failure>,
    pub(super) model: Option<String>,
    pub(super) file: Option<PathBuf>,
    /// What the session had used when the turn began, where that is known.
    before: Option<Totals>,
    usage: Usage,
    texts: Texts,
    told: BTreeSet<String>,
    /// Commands that have begun and not ended.
    commands: BTreeSet<String>,
    plan: Option<Value>,
    patience: Patience,
    error: Option<TurnError>,
    last_warning: Option<String>,
}

/// How far an interruption has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// Nobody wants one.
    No,
    /// It is sent as soon as the turn runs.
    Wanted,
    /// The server was told. Telling it twice gets no answer.
    Sent,
}

impl LiveTurn {
    /// A turn that the server is asked for, or has begun by itself.
    pub(super) fn new(key: TurnKey, before: Option<Totals>) -> Self {
        Self {
            key,
            id: None,
            is_running: false,
            interrupt: Interrupt::No,
            ending: None,
            is_cleaned: false,
            steers: Vec::new(),
            calls: BTreeMap::new(),
            failure: None,
            model: None,
            file: None,
            before,
            usage: Usage::default(),
            texts: Texts::default(),
            told: BTreeSet::new(),
            commands: BTreeSet::new(),
            plan: None,
            patience: Patience::default(),
            error: None,
            last_warning: None,
        }
    }

    /// Returns whether something of the turn may still run when it has ended.
    pub(super) fn leaves_something(&self) -> bool {
        self.interrupt != Interrupt::No || self.has_commands()
    }

    /// Returns whether commands have begun and not ended.
    pub(super) fn has_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    /// Takes an item; returns whether it was understood.
    pub(super) fn item(
        &mut self,
        stage: Stage,
        fields: Map<String, Value>,
        out: &mut Vec<Action>,
    ) -> bool {
        self.patience.progress();
        let item = match item::read(fields) {
            Read::Item(item) => item,
            Read::Compaction => {
                if stage == Stage::Completed {
                    let text = "the history was made shorter".to_owned();
                    self.tell(EventBody::Status(Status::Compacted { text }), out);
                }
                return true;
            }
            Read::Quiet => return true,
            Read::Unknown => return false,
        };
        match (item, stage) {
            (Item::Message { .. }, Stage::Started) => self.tell_all(Texts::begin, out),
            (Item::Message { id, text }, Stage::Completed) => {
                self.tell_all(|texts| texts.whole(&id, text), out);
            }
            (Item::Reasoning { id, text }, Stage::Completed) => {
                let told = self.texts.whole_thought(&id, text);
                told.into_iter().for_each(|event| self.tell(event, out));
            }
            (Item::Message { .. } | Item::Reasoning { .. }, _) => {}
            (Item::Error { message }, _) => self.warn(message, out),
            (Item::Tool(tool), stage) => self.tool(*tool, stage, out),
        }
        true
    }

    /// Takes a piece of a message.
    pub(super) fn piece(&mut self, id: &str, text: String, out: &mut Vec<Action>) {
        self.patience.progress();
        let event = self.texts.piece(id, text);
        self.tell(event, out);
    }

    /// Takes a piece of a thought.
    pub(super) fn thought(&mut self, id: &str, part: u64, text: &str, out: &mut Vec<Action>) {
        self.patience.progress();
        let event = self.texts.thought_piece(id, part, text);
        self.tell(event, out);
    }

    /// Takes the steps of the agent's plan.
    pub(super) fn plan(&mut self, steps: Value, out: &mut Vec<Action>) -> bool {
        let Some(tool) = item::plan(&steps) else { return false };
        self.plan = Some(steps);
        self.tool(tool, Stage::Updated, out);
        true
    }

    fn tool(&mut self, tool: Tool, stage: Stage, out: &mut Vec<Action>) {
        let id = tool.result.id.clone();
        let is_first = self.told.insert(id.clone());
        if stage == Stage::Completed {
            self.calls.remove(&id);
            self.commands.remove(&id);
        } else {
            if tool.result.tool == "command_execution" {
                self.commands.insert(id.clone());
            }
            let info = CallInfo { title: tool.title.clone(), input: tool.input.clone() };
            self.calls.insert(id, info);
        }
        tool.events(stage, is_first).into_iter().for_each(|event| self.tell(event, out));
    }

    /// Takes an error that is not the end, if it says that the server tries
    /// again. Returns a timer and how long until then, for the first of a row.
    pub(super) fn error(
        &mut self,
        error: TurnError,
        will_retry: bool,
        out: &mut Vec<Action>,
    ) -> Option<(TimerKey, Duration)> {
        if !will_retry {
            self.error = Some(error);
            return None;
        }
        let text = match &error.details {
            Some(details) => format!("{} ({details})", error.message),
            None => error.message.clone(),
        };
        let notice = retry_notice(&text).unwrap_or(Status::Retry {
            attempt: None,
            max: None,
            delay_ms: None,
            text,
        });
        self.tell(EventBody::Status(notice), out);
        let mut armed = Vec::new();
        self.patience.notice(error.reason(), &mut armed);
        armed.into_iter().find_map(|action| {
            let Action::Arm { timer, after } = action else { return None };
            Some((timer, after))
        })
    }

    /// Returns why the turn fails, if this timer says that it took too long.
    pub(super) fn rang(&mut self, timer: TimerKey) -> Option<String> {
        self.patience.rang(timer)
    }

    /// Takes what the session had used before, which the server may tell only
    /// when the turn has been asked for.
    pub(super) fn found(&mut self, totals: Totals) {
        self.before.get_or_insert(totals);
    }

    /// Takes what the session has used by now.
    pub(super) fn used(&mut self, totals: Totals, out: &mut Vec<Action>) {
        let usage = usage_between(self.before, totals);
        // What is said again is no news, and nothing used means that the figures
        // of what was interrupted never came.
        if usage != self.usage && usage.total_tokens.is_some_and(|total| total > 0) {
            self.usage = usage;
            self.tell(EventBody::Usage(usage), out);
        }
    }

    /// Says something that does not end the turn. Some things come twice in a row.
    pub(super) fn warn(&mut self, text: String, out: &mut Vec<Action>) {
        if self.last_warning.as_ref() != Some(&text) {
            self.last_warning = Some(text.clone());
            emit_warning(self.key, text, out);
        }
    }

    /// Returns the last word of a turn that the server says is over.
    pub(super) fn over(&mut self, mut turn: Value, out: &mut Vec<Action>) -> Box<TurnEnd> {
        if let Some(tool) = self.plan.take().as_ref().and_then(item::plan) {
            self.tool(tool, Stage::Completed, out);
        }
        let told = TurnError::of(turn.get_mut("error"));
        let before = self.error.take();
        match (self.failure.take(), turn.get("status").and_then(Value::as_str)) {
            (Some(failure), _) => self.failed(failure),
            (None, Some("completed")) => {
                if let Some(error) = before {
                    self.warn(error.message, out);
                }
                self.tell_all(Texts::begin, out);
                let answer = self.texts.take_answer().or_else(|| last_message(&mut turn));
                let text = Some(answer.unwrap_or_default());
                self.end(text, None, StopReason::EndTurn)
            }
            (None, Some("interrupted")) => {
                let text = told.map_or("the turn was interrupted".to_owned(), |told| told.message);
                let failure = Failure::new(FailureKind::Cancelled, text);
                let partial = self.texts.take_partial();
                self.end(partial, Some(failure), StopReason::Cancelled)
            }
            (None, _) => {
                let failure = match told.or(before) {
                    Some(error) => error.failure(self.unnamed()),
                    None => Failure::new(self.unnamed(), "codex says that the turn failed"),
                };
                self.failed(failure)
            }
        }
    }

    /// Returns the last word of a turn that failed.
    pub(super) fn failed(&mut self, failure: Failure) -> Box<TurnEnd> {
        let reason = stop_reason(&failure);
        let partial = self.texts.take_partial();
        self.end(partial, Some(failure), reason)
    }

    /// What the server takes for passing it tries again first, and says so.
    fn unnamed(&self) -> FailureKind {
        if self.patience.is_tried() {
            FailureKind::Unavailable
        } else {
            FailureKind::InvalidRequest
        }
    }

    fn end(
        &mut self,
        text: Option<String>,
        failure: Option<Failure>,
        reason: StopReason,
    ) -> Box<TurnEnd> {
        Box::new(TurnEnd {
            text,
            failure,
            usage: self.usage,
            model: self.model.take(),
            file: self.file.take(),
            stop_reason: Some(reason),
            ..TurnEnd::default()
        })
    }

    fn tell(&self, event: EventBody, out: &mut Vec<Action>) {
        emit(self.key, event, out);
    }

    fn tell_all(
        &mut self,
        events: impl FnOnce(&mut Texts) -> Vec<EventBody>,
        out: &mut Vec<Action>,
    ) {
        events(&mut self.texts).into_iter().for_each(|event| self.tell(event, out));
    }
}

/// The last message among the items that a finished turn lists.
fn last_message(turn: &mut Value) -> Option<String> {
    let items = turn.get_mut("items")?.as_array_mut()?;
    items.drain(..).rev().find_map(|item| {
        let Value::Object(fields) = item else { return None };
        let Read::Item(Item::Message { text, .. }) = item::read(fields) else { return None };
        Some(text)
    })
}
