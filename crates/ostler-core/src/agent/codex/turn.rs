//! What both forms of Codex's output have in common: the session and the end.

use serde_json::Value;

use crate::{
    agent::{
        Action, Exit, Launch, ONLY_SESSION, ONLY_TURN, TurnKey, emit::emit_warning,
        last_word::LastWord,
    },
    event::{Status, StopReason, Usage},
    failure::{Failure, FailureKind},
    memo::Totals,
};

use super::fault;

/// Lines on standard error that tell a reader nothing.
const NOISE: &[&str] = &[
    // Said whenever standard input is not a terminal, the null device included.
    "Reading additional input from stdin...",
    "Reading prompt from stdin...",
];

/// The one turn of a one-shot process.
pub(super) struct Turn {
    resumed: Option<Resumed>,
    opened: bool,
    pub(super) end: LastWord,
}

struct Resumed {
    id: String,
    totals: Option<Totals>,
}

impl Turn {
    pub(super) fn new(launch: &Launch<'_>) -> Self {
        Self {
            resumed: launch
                .open
                .memo()
                .map(|memo| Resumed { id: memo.id.clone(), totals: memo.totals }),
            opened: false,
            end: LastWord::new(ONLY_TURN, launch.options.model.clone()),
        }
    }

    pub(super) fn key(&self) -> TurnKey {
        self.end.turn
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.is_said()
    }

    /// Takes the id that the CLI tells.
    ///
    /// Resuming keeps the id. Another one means that the CLI did not find the
    /// session and began a new, empty one without a word: an answer from there
    /// would look right and know nothing, so the turn ends as a lost session,
    /// before the model is called.
    pub(super) fn open(&mut self, id: String, out: &mut Vec<Action>) {
        if self.opened || self.has_ended() {
            return;
        }
        let lost = self.resumed.as_ref().filter(|resumed| !is_same_session(&resumed.id, &id)).map(
            |resumed| {
                format!("codex did not resume session {} but began a new one, {id}", resumed.id)
            },
        );
        if let Some(message) = lost {
            emit_warning(self.key(), message.clone(), out);
            self.fail(Failure::new(FailureKind::SessionLost, message), None, out);
            out.push(Action::Stop);
            return;
        }
        self.opened = true;
        out.push(Action::Opened { session: ONLY_SESSION, id });
    }

    /// Ends the turn well.
    pub(super) fn complete(&mut self, text: String, totals: Option<Totals>, out: &mut Vec<Action>) {
        self.end.usage = totals.map_or_else(Usage::default, |totals| self.usage(totals));
        self.end.totals = totals;
        self.end.complete(text, StopReason::EndTurn, out);
    }

    /// Ends the turn badly, with what there was of an answer.
    pub(super) fn fail(&mut self, failure: Failure, text: Option<String>, out: &mut Vec<Action>) {
        let reason = fault::stop_reason(&failure);
        self.end.fail(failure, reason, text, out);
    }

    /// Ends a turn whose process is gone without a last word.
    pub(super) fn fail_with_exit(
        &mut self,
        exit: &Exit,
        said: Option<&str>,
        text: Option<String>,
        out: &mut Vec<Action>,
    ) {
        let failure = match said {
            Some(message) => fault::of_message(message, FailureKind::Crashed),
            None if exit.is_success() => Failure::unreadable(),
            None => fault::of_exit(exit, is_noise),
        };
        self.fail(failure, text, out);
    }

    fn usage(&self, now: Totals) -> Usage {
        let before = match &self.resumed {
            None => Some(Totals::default()),
            Some(resumed) => resumed.totals,
        };
        usage_between(before, now)
    }
}

/// Returns what was used since. The CLI counts over the whole session, earlier
/// turns included.
pub(super) fn usage_between(before: Option<Totals>, now: Totals) -> Usage {
    let difference = before.and_then(|before| {
        Some(Usage::of_tokens(
            now.input_tokens.checked_sub(before.input_tokens)?,
            now.output_tokens.checked_sub(before.output_tokens)?,
            now.cached_tokens.checked_sub(before.cached_tokens)?,
        ))
    });
    difference.unwrap_or_default()
}

/// Reads the figures of a session: cached tokens are part of the input,
/// reasoning is part of the output.
pub(super) fn totals(usage: &Value) -> Option<Totals> {
    let number = |name: &str| usage.get(name).and_then(Value::as_u64);
    Some(Totals {
        input_tokens: number("input_tokens")?,
        output_tokens: number("output_tokens")?,
        cached_tokens: number("cached_input_tokens").unwrap_or(0),
        cost_usd: 0.0,
    })
}

/// Ids are compared as numbers: case does not matter.
pub(super) fn is_same_session(asked: &str, told: &str) -> bool {
    match (uuid::Uuid::try_parse(asked), uuid::Uuid::try_parse(told)) {
        (Ok(asked), Ok(told)) => asked == told,
        _ => asked == told,
    }
}

/// Whether a line of standard error tells a reader nothing.
pub(super) fn is_noise(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || NOISE.contains(&line)
}

/// Returns what stands in brackets: why the CLI tries again.
pub(super) fn retry_reason(message: &str) -> &str {
    let in_brackets = message.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    in_brackets.unwrap_or(message)
}

/// Reads `Reconnecting... 2/5 (why)`, which is not an error but a notice.
pub(super) fn retry_notice(message: &str) -> Option<Status> {
    let rest = message.strip_prefix("Reconnecting... ")?;
    let numbers = rest.split(' ').next().and_then(|count| count.split_once('/'));
    Some(Status::Retry {
        attempt: numbers.and_then(|(attempt, _)| attempt.parse().ok()),
        max: numbers.and_then(|(_, max)| max.parse().ok()),
        delay_ms: None,
        text: message.to_owned(),
    })
}
