//! What a turn knows of its session, and what it leaves behind for the next one.

use std::time::Duration;

use serde_json::Value;

use super::outcome::Counted;
use crate::{
    agent::{Action, SessionKey, TurnKey, emit::emit_warning},
    memo::{Memo, Totals},
    request::Options,
};

/// How long the CLI may wait between its own retries before the error is told.
const PATIENCE: Duration = Duration::from_secs(20);

/// A session of the CLI.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) key: SessionKey,
    /// The id that was asked for, until the CLI has told one.
    asked: Option<String>,
    /// The id under which the CLI keeps it.
    pub(super) id: Option<String>,
    /// What the CLI's totals counted before the turn.
    pub(super) counted: Counted,
    /// What the session has used in all.
    pub(super) totals: Option<Totals>,
    /// How long the CLI may wait between retries in all.
    pub(super) patience: Option<Duration>,
}

impl Session {
    /// A session that is to be made, or the one of a memo.
    pub(super) fn new(key: SessionKey, memo: Option<&Memo>, options: &Options) -> Self {
        let totals = memo.and_then(|memo| memo.totals);
        let named = |name: &str| options.env.iter().any(|(known, _)| known == name);
        Self {
            key,
            asked: memo.map(|memo| memo.id.clone()),
            id: None,
            counted: match memo {
                Some(_) => Counted::BySession(totals.map(|totals| totals.cost_usd)),
                None => Counted::Nothing,
            },
            totals,
            // An operator who sets the number of retries wants them made.
            patience: (!named("CLAUDE_CODE_MAX_RETRIES")).then_some(PATIENCE),
        }
    }

    /// Tells the session's id, again only if it really changed.
    pub(super) fn open(&mut self, id: String, turn: TurnKey, out: &mut Vec<Action>) {
        if id.is_empty() || self.id.as_deref() == Some(&id) {
            return;
        }
        if let Some(asked) = self.asked.take().filter(|asked| *asked != id) {
            let text = format!("the session {asked} goes on under the id {id}");
            emit_warning(turn, text, out);
        }
        self.id = Some(id.clone());
        out.push(Action::Opened { session: self.key, id });
    }

    /// Remembers up to where a result has counted.
    pub(super) fn count(&mut self, result: &Value) {
        if let Some(cost) = result.get("total_cost_usd").and_then(Value::as_f64) {
            self.counted = Counted::ByProcess(cost);
        }
    }

    /// The conversation begins anew, in a session whose id is told later.
    pub(super) fn forget(&mut self) {
        self.asked = None;
        self.id = None;
        self.counted = Counted::Nothing;
        self.totals = None;
    }
}
