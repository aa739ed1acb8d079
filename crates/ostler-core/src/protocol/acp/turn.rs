//! One turn while it runs: what the agent tells of it, and how it ends.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    AcpFacts, Habits, Used,
    calls::{By, Known},
    spent::{Spending, Tally},
    update::Update,
};
use crate::{
    agent::{
        Action, TurnEnd, TurnKey,
        emit::{emit, emit_warning},
        plain::MAX_ANSWER_BYTES,
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
    pub(super) facts: &'static AcpFacts,
    pub(super) habits: &'static Habits,
    pub(super) model: Option<String>,
    /// The calls so far.
    pub(super) calls: BTreeMap<String, Known>,
    /// The number of the block of text that is being written, and of the thought.
    pub(super) n_blocks: u32,
    pub(super) n_thoughts: u32,
    pub(super) is_block_over: bool,
    pub(super) is_thought_over: bool,
    /// The text of the last block.
    pub(super) answer: Option<String>,
    /// The last piece of it.
    pub(super) last_piece: String,
    pub(super) n_plans: u32,
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
