//! The last word on a turn: what is known for it meanwhile, and that it is said once.
//!
//! How an agent's output becomes an answer or a failure is for the agent to say.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::{Action, TurnEnd, TurnKey};
use crate::{
    event::{StopReason, Usage},
    failure::Failure,
    memo::Totals,
};

/// What the end of one turn will tell beside its answer.
#[derive(Debug)]
pub(crate) struct LastWord {
    /// The turn that it is about.
    pub(crate) turn: TurnKey,
    /// The model that answers, as far as it is known.
    pub(crate) model: Option<String>,
    /// What the turn used, as far as it is known.
    pub(crate) usage: Usage,
    /// What the session used in all, where the agent counts that way.
    pub(crate) totals: Option<Totals>,
    /// The file in which the agent keeps the session, where it tells.
    pub(crate) file: Option<PathBuf>,
    /// Everything else the agent told about itself.
    pub(crate) meta: Map<String, Value>,
    is_said: bool,
}

impl LastWord {
    /// Nothing is known yet but maybe the model that was asked for.
    pub(crate) fn new(turn: TurnKey, model: Option<String>) -> Self {
        Self {
            turn,
            model,
            usage: Usage::default(),
            totals: None,
            file: None,
            meta: Map::new(),
            is_said: false,
        }
    }

    /// Returns whether the turn has ended.
    pub(crate) fn is_said(&self) -> bool {
        self.is_said
    }

    /// Ends the turn well.
    pub(crate) fn complete(&mut self, text: String, reason: StopReason, out: &mut Vec<Action>) {
        self.say(Some(text), None, reason, out);
    }

    /// Ends the turn badly, with what there was of an answer.
    pub(crate) fn fail(
        &mut self,
        failure: Failure,
        reason: StopReason,
        text: Option<String>,
        out: &mut Vec<Action>,
    ) {
        self.say(text, Some(failure), reason, out);
    }

    fn say(
        &mut self,
        text: Option<String>,
        failure: Option<Failure>,
        reason: StopReason,
        out: &mut Vec<Action>,
    ) {
        if std::mem::replace(&mut self.is_said, true) {
            return;
        }
        let end = TurnEnd {
            text,
            failure,
            usage: self.usage,
            totals: self.totals,
            model: self.model.take(),
            stop_reason: Some(reason),
            meta: std::mem::take(&mut self.meta),
            file: self.file.take(),
        };
        out.push(Action::EndTurn { turn: self.turn, end: Box::new(end) });
    }
}
