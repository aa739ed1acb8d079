//! One turn while it runs: what the agent tells of it, and how it ends.

use std::collections::{BTreeMap, btree_map::Entry};

use serde_json::Value;

use super::{
    AcpFacts, Habits, Used,
    call::{Call, Stage},
    spent::{Spending, Tally},
    update::Update,
};
use crate::{
    agent::{
        Action, TurnEnd, TurnKey,
        emit::{emit, emit_warning},
        plain::MAX_ANSWER_BYTES,
        words::one_line,
    },
    event::{EventBody, StopReason, ToolResult, Usage},
    failure::{Failure, FailureKind},
    protocol::jsonrpc::RpcError,
    request::Permissions,
};

/// A turn.
pub(super) struct LiveTurn {
    pub(super) key: TurnKey,
    pub(super) permissions: Permissions,
    /// Whether the agent was told to end it.
    pub(super) is_stopping: bool,
    /// Why we ended it ourselves.
    pub(super) failure: Option<Failure>,
    /// Whether the model has said anything.
    pub(super) is_answered: bool,
    /// Whether a line was too long to read.
    pub(super) has_lost_line: bool,
    /// What it is told to have used.
    pub(super) spending: Spending,
    facts: &'static AcpFacts,
    habits: &'static Habits,
    model: Option<String>,
    /// The calls so far.
    calls: BTreeMap<String, Known>,
    /// The number of the block of text that is being written, and of the thought.
    n_blocks: u32,
    n_thoughts: u32,
    is_block_over: bool,
    is_thought_over: bool,
    /// The text of the last block.
    answer: Option<String>,
    /// The last piece of it.
    last_piece: String,
    n_plans: u32,
}

/// What is known of a call.
struct Known {
    /// The id under which it was told of: the agent may use one of its own again.
    id: String,
    /// How many calls had the agent's id before.
    n_before: u32,
    /// The name under which it was told of.
    tool: String,
    /// All that is known of it so far.
    call: Call,
    /// Whether it was told of. It is not while it is only being prepared.
    is_told: bool,
    /// Whether it only looks, whatever was said of its kind.
    only_looks: bool,
    /// Whether the agent has told of it other than by asking.
    is_announced: bool,
    is_over: bool,
}

/// How a call is heard of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// The agent says that it begins.
    Begun,
    /// The agent says what has become of it.
    Changed,
    /// Somebody is asked about it.
    Asked,
}

impl By {
    /// Returns whether this is another call than the one of that id that is over.
    fn is_another(self, call: &Call) -> bool {
        match self {
            // One that is over may be told of once more.
            Self::Begun => matches!(call.stage(), Some(Stage::Running) | None),
            Self::Changed => false,
            Self::Asked => true,
        }
    }
}

impl LiveTurn {
    pub(super) fn new(
        facts: &'static AcpFacts,
        habits: &'static Habits,
        key: TurnKey,
        permissions: Permissions,
        model: Option<String>,
    ) -> Self {
        Self {
            key,
            permissions,
            is_stopping: false,
            failure: None,
            is_answered: false,
            has_lost_line: false,
            spending: Spending::default(),
            facts,
            habits,
            model,
            calls: BTreeMap::new(),
            n_blocks: 0,
            n_thoughts: 0,
            is_block_over: true,
            is_thought_over: true,
            answer: None,
            last_piece: String::new(),
            n_plans: 0,
        }
    }

    /// Takes what the agent tells; returns whether it was understood.
    pub(super) fn update(&mut self, update: Update, out: &mut Vec<Action>) -> bool {
        match update {
            Update::Text(text) if (self.facts.is_notice)(&text) => {}
            Update::Text(text) if (self.habits.is_notice)(&text) => {
                // What was said before may be said once more.
                self.is_block_over = true;
                self.warn(text, out);
            }
            Update::Text(text) => self.text(text, out),
            Update::Thought(text) => self.thought(text, out),
            Update::Begun(call) => {
                self.begin(&call, By::Begun, out);
                self.finish(&call, out);
            }
            Update::Changed(call) => {
                self.begin(&call, By::Changed, out);
                self.finish(&call, out);
            }
            Update::Plan(entries) => self.plan(entries, out),
            Update::Cost(cost) => self.spending.cost_is(cost),
            Update::Commands | Update::Mode(_) | Update::Options(_) | Update::Quiet => {}
            Update::Unknown => return false,
        }
        true
    }

    /// Takes a piece of the answer. After a tool it belongs to a new block, and
    /// the answer is the last block.
    fn text(&mut self, text: String, out: &mut Vec<Action>) {
        self.is_answered = true;
        self.is_thought_over = true;
        if text.is_empty() {
            return;
        }
        if std::mem::take(&mut self.is_block_over) {
            self.n_blocks += 1;
            self.answer = None;
        }
        let answer = self.answer.get_or_insert_default();
        if answer.len() <= MAX_ANSWER_BYTES {
            answer.push_str(&text);
        }
        self.last_piece.clone_from(&text);
        let block = format!("b{}", self.n_blocks);
        emit(self.key, EventBody::Output { text, block }, out);
    }

    fn thought(&mut self, text: String, out: &mut Vec<Action>) {
        self.is_answered = true;
        if std::mem::replace(&mut self.is_thought_over, self.facts.thoughts_are_whole) {
            self.n_thoughts += 1;
        }
        let block = format!("t{}", self.n_thoughts);
        emit(self.key, EventBody::Thinking { text, block }, out);
    }

    /// Takes a call that the agent asks for. Returns all that is known of it, and
    /// whether it only looks.
    pub(super) fn asked(&mut self, call: &Call, out: &mut Vec<Action>) -> (Call, bool) {
        self.begin(call, By::Asked, out);
        match self.calls.get(&call.id) {
            Some(known) => {
                (known.call.clone(), known.only_looks && (self.facts.looks)(&known.call))
            }
            None => (call.clone(), false),
        }
    }

    /// Tells of a call, the first time that it is heard of.
    fn begin(&mut self, call: &Call, by: By, out: &mut Vec<Action>) {
        self.is_answered = true;
        self.is_block_over = true;
        self.is_thought_over = true;
        let is_announced = by != By::Asked;
        let only_looks = call.kind.is_none() || (self.facts.looks)(call);
        let n_before = match self.calls.get(&call.id) {
            Some(known) if known.is_over && by.is_another(call) => {
                let n_before = known.n_before + 1;
                self.calls.remove(&call.id);
                n_before
            }
            Some(_) | None => 0,
        };
        let known = match self.calls.entry(call.id.clone()) {
            Entry::Vacant(place) => {
                let id = match n_before {
                    0 => call.id.clone(),
                    n_before => format!("{}.{}", call.id, n_before + 1),
                };
                let is_preparing = call.is_preparing();
                let known = place.insert(Known {
                    id,
                    n_before,
                    tool: (self.facts.tool)(call),
                    call: call.clone(),
                    is_told: false,
                    only_looks,
                    is_announced,
                    is_over: false,
                });
                // What somebody is asked about must have been told.
                if is_preparing && is_announced {
                    return;
                }
                known
            }
            Entry::Occupied(place) => {
                let known = place.into_mut();
                known.is_announced |= is_announced;
                known.only_looks &= only_looks;
                known.call = std::mem::take(&mut known.call).with(call);
                known
            }
        };
        if std::mem::replace(&mut known.is_told, true) {
            return;
        }
        known.tool = (self.facts.tool)(&known.call);
        let (id, tool) = (known.id.clone(), known.tool.clone());
        let title = one_line(&(self.facts.title)(&known.call));
        // What is asked about must be known apart; what is told of is as it was told.
        let told = known.call.raw_input.clone();
        let input = told.or_else(|| (self.facts.input)(&known.call));
        emit(self.key, EventBody::ToolUse { id, tool, input, title }, out);
    }

    /// Tells what came of a call, once.
    fn finish(&mut self, call: &Call, out: &mut Vec<Action>) {
        let is_error = match call.stage() {
            Some(Stage::Completed) => false,
            Some(Stage::Failed) => true,
            Some(Stage::Running) | None => return,
        };
        self.result(&call.id, call.output(), is_error, call.exit_code(), out);
    }

    /// Ends a call that was not allowed, unless the agent tells of it itself.
    pub(super) fn denied(&mut self, id: &str, why: &str, out: &mut Vec<Action>) {
        if self.calls.get(id).is_some_and(|known| !known.is_announced) {
            self.result(id, why.to_owned(), true, None, out);
        }
    }

    fn result(
        &mut self,
        id: &str,
        output: String,
        is_error: bool,
        exit_code: Option<i32>,
        out: &mut Vec<Action>,
    ) {
        let Some(known) = self.calls.get_mut(id) else { return };
        if std::mem::replace(&mut known.is_over, true) {
            return;
        }
        let (id, tool) = (known.id.clone(), known.tool.clone());
        let result = ToolResult { id, tool, output, is_error, exit_code, ..ToolResult::default() };
        emit(self.key, EventBody::ToolResult(result), out);
    }

    /// Tells of a plan as of a tool that is done at once.
    fn plan(&mut self, entries: Vec<Value>, out: &mut Vec<Action>) {
        self.n_plans += 1;
        let (id, tool) = (format!("plan{}", self.n_plans), "plan".to_owned());
        let step = |entry: &Value| {
            let text = entry.get("content").and_then(Value::as_str).unwrap_or_default();
            let is_done = entry.get("status").and_then(Value::as_str) == Some("completed");
            format!("[{}] {text}", if is_done { 'x' } else { ' ' })
        };
        let steps: Vec<String> = entries.iter().map(step).collect();
        let title = steps.first().cloned().unwrap_or_default();
        let (input, output) = (Some(Value::Array(entries)), steps.join("\n"));
        let call = EventBody::ToolUse { id: id.clone(), tool: tool.clone(), input, title };
        emit(self.key, call, out);
        let result = ToolResult { id, tool, output, ..ToolResult::default() };
        emit(self.key, EventBody::ToolResult(result), out);
    }

    /// Returns the last word on a turn whose prompt was answered.
    pub(super) fn over(
        &mut self,
        result: Result<Value, RpcError>,
        tally: &mut Tally,
        out: &mut Vec<Action>,
    ) -> Box<TurnEnd> {
        let told = match (self.failure.take(), result) {
            (Some(failure), _) => return self.failed(failure, tally),
            (None, Err(error)) => return self.failed((self.facts.failure)(&error), tally),
            (None, Ok(told)) => told,
        };
        let (mut usage, model) = (self.facts.spent)(&told);
        if usage == Usage::default() {
            // What is only a part of it is not known.
            let told = if self.habits.tells_last_call { &Value::Null } else { &told };
            usage = self.spending.settle(told, tally);
        }
        if usage != Usage::default() {
            emit(self.key, EventBody::Usage(usage), out);
        }
        self.model = model.or(self.model.take());
        let word = told.get("stopReason").and_then(Value::as_str).unwrap_or_default();
        let reason = match word {
            "end_turn" => StopReason::EndTurn,
            "max_tokens" => StopReason::MaxTokens,
            "max_turn_requests" => StopReason::MaxTurns,
            "refusal" => StopReason::Refusal,
            "cancelled" => StopReason::Cancelled,
            "" => return self.failed(Failure::unreadable(), tally),
            other => StopReason::Other(other.to_owned()),
        };
        let is_used = usage.total_tokens.is_some_and(|total| total > 0);
        let used = if is_used { Used::Some } else { Used::NothingTold };
        let failure = (self.facts.stopped)(word)
            .or_else(|| stopped(word))
            .or_else(|| self.has_lost_line.then(Failure::unreadable))
            .or_else(|| (self.habits.told_failure)(&self.last_piece, used));
        // A model that was asked may say nothing; one that was not is suspicious.
        if failure.is_none() && !self.is_answered && used == Used::NothingTold {
            self.warn("the agent ended the turn without a word; its own log may say why", out);
        }
        let mut end = self.end(failure, reason);
        end.usage = usage;
        end.totals = tally.totals();
        end
    }

    /// Returns the last word on a turn that failed.
    pub(super) fn failed(&mut self, failure: Failure, tally: &Tally) -> Box<TurnEnd> {
        let known = [
            (FailureKind::Cancelled, StopReason::Cancelled),
            (FailureKind::Refused, StopReason::Refusal),
            (FailureKind::LimitReached, StopReason::MaxTurns),
        ];
        let reason = known.into_iter().find(|(kind, _)| *kind == failure.kind);
        let reason = reason.map_or(StopReason::Error, |(_, reason)| reason);
        let mut end = self.end(Some(failure), reason);
        end.totals = tally.totals();
        end
    }

    fn end(&mut self, failure: Option<Failure>, reason: StopReason) -> Box<TurnEnd> {
        let text = match (&failure, self.answer.take()) {
            (None, answer) => Some(answer.unwrap_or_default()),
            (Some(_), partial) => partial,
        };
        let (model, stop_reason) = (self.model.take(), Some(reason));
        Box::new(TurnEnd { text, failure, model, stop_reason, ..TurnEnd::default() })
    }

    /// Says something that does not end the turn.
    pub(super) fn warn(&self, text: impl Into<String>, out: &mut Vec<Action>) {
        emit_warning(self.key, text, out);
    }
}

/// Returns why a turn failed that ended for this reason, with any agent.
fn stopped(reason: &str) -> Option<Failure> {
    let (kind, text) = match reason {
        "cancelled" => (FailureKind::Cancelled, "the turn was cancelled"),
        "refusal" => (FailureKind::Refused, "the model refused to answer"),
        "max_turn_requests" => {
            (FailureKind::LimitReached, "the turn reached its limit of model calls")
        }
        _ => return None,
    };
    Some(Failure::new(kind, text))
}
