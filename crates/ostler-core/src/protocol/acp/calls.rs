//! The calls of tools in a turn: what is known of each, and what is told of it.

use std::collections::btree_map::Entry;

use super::{
    call::{Call, Stage},
    turn::LiveTurn,
};
use crate::{
    agent::{Action, emit::emit, words::one_line},
    event::{EventBody, ToolResult},
};

/// What is known of a call.
pub(super) struct Known {
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
pub(super) enum By {
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
    pub(super) fn begin(&mut self, call: &Call, by: By, out: &mut Vec<Action>) {
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
    pub(super) fn finish(&mut self, call: &Call, out: &mut Vec<Action>) {
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

    pub(super) fn result(
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
}
