//! Reads the JSON of one turn, whether its process is kept or not.
//!
//! What a line means is decided by its `type`. The state here is what has to be
//! remembered between lines; text that comes twice is sorted out in `blocks`,
//! the last word in `outcome`, errors in `failure`; `message`, `notice` and
//! `flat` read the lines of their kinds. What a turn leaves behind for the next
//! one of its session is in `session`.

use std::{
    collections::{BTreeSet, HashMap},
    mem,
    time::Duration,
};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    blocks::{BlockKind, Blocks},
    failure::{self, WARNINGS},
    field,
    outcome::{self, Before},
    session::Session,
};
use crate::{
    agent::{
        Action, Exit, TurnEnd, TurnKey,
        emit::{emit_unknown, emit_warning},
    },
    event::{StopReason, Stream, Usage},
    failure::{Failure, FailureKind},
};

/// How much of the lines that are no JSON is kept for finding out what failed.
const MAX_PRINTED_BYTES: usize = 8 * 1024;

/// What is remembered of a turn.
pub(super) struct Turn {
    pub(super) key: TurnKey,
    pub(super) session: Session,
    pub(super) blocks: Blocks,
    /// The names of the tools that were called, by the ids of the calls.
    pub(super) calls: HashMap<String, String>,
    /// What was started in the background and has not ended.
    pub(super) tasks: BTreeSet<String>,
    /// What the end of the turn will need.
    pub(super) before: Before,
    /// Tokens of the model calls that are done, and of the prompt of this one.
    pub(super) used: Usage,
    pub(super) prompt: Value,
    /// How long the CLI waited since the model last said something.
    pub(super) waited: Duration,
    /// Why the turn is not worth waiting for.
    pub(super) given_up: Option<Failure>,
    /// Some text of the answer was passed on.
    pub(super) told: bool,
    /// Somebody interrupted the CLI.
    pub(super) aborted: bool,
    /// A line was too long to read.
    pub(super) has_lost_line: bool,
    /// An older message came, which can be an answer without a result.
    pub(super) answered: bool,
    /// The older call whose result comes without an id.
    pub(super) last_call: Option<String>,
    /// A result that is not an answer to our prompt, in case no other comes.
    unasked: Option<TurnEnd>,
    /// Lines that are no JSON.
    printed: String,
    ended: bool,
}

impl Turn {
    /// Nothing is known of the turn but its session.
    pub(super) fn new(key: TurnKey, session: Session) -> Self {
        Self {
            key,
            blocks: Blocks::default(),
            calls: HashMap::new(),
            tasks: BTreeSet::new(),
            before: Before {
                counted: session.counted,
                totals: session.totals,
                ..Before::default()
            },
            session,
            used: Usage::default(),
            prompt: Value::Null,
            waited: Duration::ZERO,
            given_up: None,
            told: false,
            aborted: false,
            has_lost_line: false,
            answered: false,
            last_call: None,
            unasked: None,
            printed: String::new(),
            ended: false,
        }
    }

    /// Reads one object; returns whether it was understood. One that was not
    /// is left as it was.
    pub(super) fn document(
        &mut self,
        now: Timestamp,
        line: &mut Value,
        out: &mut Vec<Action>,
    ) -> bool {
        if self.ended {
            // Background work can start turns that nobody asked for.
            return line.get("type").is_some();
        }
        match line.get("type").and_then(Value::as_str) {
            Some("stream_event") => self.stream_event(line, out),
            Some("assistant") => self.assistant(line, out),
            Some("user") => self.user(line, out),
            Some("system") => self.notice(now, line, out),
            Some("result") => self.result(now, line, out),
            Some("rate_limit_event") => self.limit(line, out),
            Some("conversation_reset") => self.reset(line),
            // Heartbeats of tools and of the input queue.
            Some("tool_progress" | "command_lifecycle" | "keep_alive") => true,
            Some(_) => self.flat(line, out),
            None => line.get("result").is_some() && self.result(now, line, out),
        }
    }

    /// Takes a line that is no JSON.
    pub(super) fn stray(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        emit_unknown(self.key, Stream::Stdout, bytes, out);
        if self.printed.len() < MAX_PRINTED_BYTES {
            let start = bytes.get(..MAX_PRINTED_BYTES).unwrap_or(bytes);
            self.printed.push_str(&String::from_utf8_lossy(start));
            self.printed.push('\n');
        }
    }

    /// Reads what the CLI tells about itself at the start of a turn.
    pub(super) fn begin(&mut self, line: &mut Value, out: &mut Vec<Action>) {
        if let Some(id) = field::take_text(line, "session_id") {
            self.session.open(id, self.key, out);
        }
        if let Some(model) = field::take_text(line, "model") {
            self.before.model = Some(model);
        }
        for (key, name) in [
            ("claude_code_version", "version"),
            ("version", "version"),
            ("permissionMode", "permission_mode"),
            ("apiKeySource", "api_key_source"),
            ("mcp_servers", "mcp_servers"),
        ] {
            if let Some(value) = field::take_first(line, &[key]) {
                self.before.meta.insert(name.to_owned(), value);
            }
        }
    }

    /// Tells the id that a line carries, if none was told yet.
    pub(super) fn open_by(&mut self, line: &mut Value, out: &mut Vec<Action>) {
        if self.session.id.is_none()
            && let Some(id) = field::take_text(line, "session_id")
        {
            self.session.open(id, self.key, out);
        }
    }

    fn result(&mut self, now: Timestamp, line: &mut Value, out: &mut Vec<Action>) -> bool {
        if outcome::is_unasked(line) {
            self.open_by_result(line, out);
            self.unasked = Some(outcome::read(line, self.before.clone(), now));
        } else {
            self.finish(now, line, out);
        }
        true
    }

    /// Ends the turn by its result.
    pub(super) fn finish(&mut self, now: Timestamp, line: &mut Value, out: &mut Vec<Action>) {
        self.open_by_result(line, out);
        self.session.count(line);
        let mut end = outcome::read(line, mem::take(&mut self.before), now);
        self.session.totals = end.totals.or(self.session.totals);
        // A call of the model that was interrupted is missing in the CLI's own sum.
        if self.aborted && self.used.total_tokens > end.usage.total_tokens {
            end.usage = Usage { cost_usd: end.usage.cost_usd, ..self.used };
        }
        if let Some(failure) = self.given_up.take() {
            end.failure = Some(failure);
            end.text = None;
            end.stop_reason = Some(StopReason::Error);
        }
        self.end(end, out);
    }

    /// A session that could not be opened is reported with an id all the same,
    /// but nothing was done in it.
    fn open_by_result(&mut self, line: &mut Value, out: &mut Vec<Action>) {
        let idle = field::number(line, "num_turns") == Some(0);
        if !(idle && outcome::is_error(line)) {
            self.open_by(line, out);
        }
    }

    /// Ends the turn by the end of its process, which was to run no other.
    pub(super) fn exited(&mut self, now: Timestamp, exit: &Exit, out: &mut Vec<Action>) {
        if let Some(end) = self.unasked.take() {
            return self.end(end, out);
        }
        if !exit.is_success() {
            return self.cut_short(now, exit, out);
        }
        if self.aborted {
            return self.fail(outcome::interrupted(), out);
        }
        if self.answered {
            return self.let_go(out);
        }
        self.fail(Failure::unreadable(), out);
    }

    /// Ends the turn by the end of its process, which was to go on.
    pub(super) fn cut_short(&mut self, now: Timestamp, exit: &Exit, out: &mut Vec<Action>) {
        let evidence = mem::take(&mut self.before.evidence);
        let printed = mem::take(&mut self.printed);
        let failure =
            self.given_up.take().unwrap_or_else(|| failure::of_exit(exit, evidence, &printed, now));
        self.fail(failure, out);
    }

    /// Ends the turn with what was said so far.
    pub(super) fn let_go(&mut self, out: &mut Vec<Action>) {
        let before = mem::take(&mut self.before);
        let end = TurnEnd {
            text: before.last_text,
            usage: self.used,
            model: before.model,
            meta: before.meta,
            ..TurnEnd::default()
        };
        self.end(end, out);
    }

    /// Ends the turn with a failure.
    pub(super) fn fail(&mut self, failure: Failure, out: &mut Vec<Action>) {
        let stop_reason = if failure.kind == FailureKind::Cancelled {
            StopReason::Cancelled
        } else {
            StopReason::Error
        };
        let before = mem::take(&mut self.before);
        let end = TurnEnd {
            failure: Some(failure),
            model: before.model,
            stop_reason: Some(stop_reason),
            meta: before.meta,
            usage: self.used,
            ..TurnEnd::default()
        };
        self.end(end, out);
    }

    /// Ends the turn, once. An answer that came with the last word only is
    /// passed on first, so that a reader of the events misses nothing.
    fn end(&mut self, end: TurnEnd, out: &mut Vec<Action>) {
        if mem::replace(&mut self.ended, true) {
            return;
        }
        if let (Some(text), false) = (&end.text, self.told) {
            let tells = self.blocks.fresh(BlockKind::Output, text.clone());
            self.tell(tells, None, out);
        }
        out.push(Action::EndTurn { turn: self.key, end: Box::new(end) });
    }
}

/// Passes on a line of standard error: a warning as such, others as they are.
pub(super) fn complaint(turn: TurnKey, bytes: &[u8], out: &mut Vec<Action>) {
    let text = String::from_utf8_lossy(bytes);
    if WARNINGS.iter().any(|start| text.starts_with(start)) {
        return emit_warning(turn, text, out);
    }
    emit_unknown(turn, Stream::Stderr, bytes, out);
}
