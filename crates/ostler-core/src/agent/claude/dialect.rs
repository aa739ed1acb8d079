//! Reads Claude's JSON lines: one process, one session, one turn.
//!
//! What a line means is decided by its `type`. The state here is what has to be
//! remembered between lines; text that comes twice is sorted out in `blocks`,
//! the last word in `outcome`, errors in `failure`; `message`, `notice` and
//! `flat` read the lines of their kinds.

use std::{collections::HashMap, mem, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    blocks::{BlockKind, Blocks},
    failure::{self, WARNINGS},
    field,
    outcome::{self, Before},
    text::PlainText,
};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, Launch, ONLY_SESSION, ONLY_TURN, TurnEnd, TurnKey,
        document::{Documents, Piece},
        emit::{emit_unknown, emit_warning},
    },
    event::{StopReason, Stream, Usage},
    failure::{Failure, FailureKind},
    request::Format,
};

/// How long the CLI may wait between its own retries before the error is told.
const PATIENCE: Duration = Duration::from_secs(20);

/// How much of the lines that are no JSON is kept for finding out what failed.
const MAX_PRINTED_BYTES: usize = 8 * 1024;

/// Makes the reader of a process.
pub(super) fn dialect(launch: &Launch<'_>) -> Box<dyn Dialect> {
    match launch.options.wire_format() {
        Format::StreamJson | Format::Json => {
            Box::new(Claude { documents: Documents::default(), turn: Turn::new(launch) })
        }
        Format::Text => Box::new(PlainText::new(launch)),
    }
}

struct Claude {
    documents: Documents,
    turn: Turn,
}

impl Dialect for Claude {
    fn step(&mut self, now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        let Self { documents, turn } = self;
        match input {
            Input::Line { from: Stream::Stderr, bytes, .. } => complaint(turn.key, bytes, out),
            Input::Line { bytes, cut: true, .. } => {
                documents.finish(|piece| turn.piece(now, piece, out));
                emit_unknown(turn.key, Stream::Stdout, bytes, out);
            }
            Input::Line { bytes, .. } => {
                documents.push(bytes, |piece| turn.piece(now, piece, out));
            }
            Input::Cancel { .. } => out.push(Action::Stop),
            Input::Timer(_) | Input::Order(_) => {}
            Input::Exited(exit) => {
                documents.finish(|piece| turn.piece(now, piece, out));
                turn.exited(now, exit, out);
            }
        }
    }
}

/// What is remembered of a turn.
pub(super) struct Turn {
    pub(super) key: TurnKey,
    /// The session that was asked for.
    resumed: Option<String>,
    /// The session that answers.
    session: Option<String>,
    pub(super) blocks: Blocks,
    /// The names of the tools that were called, by the ids of the calls.
    pub(super) calls: HashMap<String, String>,
    /// What the end of the turn will need.
    pub(super) before: Before,
    /// Tokens of the model calls that are done, and of the prompt of this one.
    pub(super) used: Usage,
    pub(super) prompt: Value,
    /// How long the CLI waited since the model last said something.
    pub(super) waited: Duration,
    pub(super) patience: Option<Duration>,
    /// Some text of the answer was passed on.
    pub(super) told: bool,
    /// Somebody interrupted the CLI.
    pub(super) aborted: bool,
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
    fn new(launch: &Launch<'_>) -> Self {
        let memo = launch.open.memo();
        let named = |name: &str| launch.options.env.iter().any(|(known, _)| known == name);
        Self {
            key: ONLY_TURN,
            resumed: memo.map(|memo| memo.id.clone()),
            session: None,
            blocks: Blocks::default(),
            calls: HashMap::new(),
            before: Before {
                resumed: memo.is_some(),
                totals: memo.and_then(|memo| memo.totals),
                ..Before::default()
            },
            used: Usage::default(),
            prompt: Value::Null,
            waited: Duration::ZERO,
            // An operator who sets the number of retries wants them made.
            patience: (!named("CLAUDE_CODE_MAX_RETRIES")).then_some(PATIENCE),
            told: false,
            aborted: false,
            answered: false,
            last_call: None,
            unasked: None,
            printed: String::new(),
            ended: false,
        }
    }

    fn piece(&mut self, now: Timestamp, piece: Piece<'_>, out: &mut Vec<Action>) {
        match piece {
            Piece::Document { value: Value::Array(mut items), .. }
                if items.iter().any(|item| item.get("type").is_some()) =>
            {
                for item in &mut items {
                    if !self.document(now, item, out) {
                        emit_unknown(self.key, Stream::Stdout, item.to_string().as_bytes(), out);
                    }
                }
            }
            Piece::Document { mut value, raw } => {
                if !self.document(now, &mut value, out) {
                    emit_unknown(self.key, Stream::Stdout, raw, out);
                }
            }
            Piece::Line(bytes) => {
                emit_unknown(self.key, Stream::Stdout, bytes, out);
                if self.printed.len() < MAX_PRINTED_BYTES {
                    let start = bytes.get(..MAX_PRINTED_BYTES).unwrap_or(bytes);
                    self.printed.push_str(&String::from_utf8_lossy(start));
                    self.printed.push('\n');
                }
            }
        }
    }

    /// Reads one object; returns whether it was understood. One that was not
    /// is left as it was.
    fn document(&mut self, now: Timestamp, line: &mut Value, out: &mut Vec<Action>) -> bool {
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
            Some("conversation_reset") => self.reset(line, out),
            // Heartbeats of tools and of the input queue.
            Some("tool_progress" | "command_lifecycle" | "keep_alive") => true,
            Some(_) => self.flat(line, out),
            None => line.get("result").is_some() && self.result(now, line, out),
        }
    }

    /// Reads what the CLI tells about itself at the start of a turn.
    pub(super) fn begin(&mut self, line: &mut Value, out: &mut Vec<Action>) {
        if let Some(id) = field::take_text(line, "session_id") {
            self.open(id, out);
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

    /// Tells the session's id, again only if it really changed.
    pub(super) fn open(&mut self, id: String, out: &mut Vec<Action>) {
        if id.is_empty() || self.session.as_deref() == Some(&id) {
            return;
        }
        if let Some(asked) = self.resumed.take().filter(|asked| *asked != id) {
            let text = format!("the session {asked} goes on under the id {id}");
            emit_warning(self.key, text, out);
        }
        self.session = Some(id.clone());
        out.push(Action::Opened { session: ONLY_SESSION, id });
    }

    /// Tells the id that a line carries, if none was told yet.
    pub(super) fn open_by(&mut self, line: &mut Value, out: &mut Vec<Action>) {
        if self.session.is_none()
            && let Some(id) = field::take_text(line, "session_id")
        {
            self.open(id, out);
        }
    }

    fn result(&mut self, now: Timestamp, line: &mut Value, out: &mut Vec<Action>) -> bool {
        // A session that could not be opened is reported with an id all the
        // same, but nothing was done in it.
        let idle = field::number(line, "num_turns") == Some(0);
        if !(idle && outcome::is_error(line)) {
            self.open_by(line, out);
        }
        let unasked = line.get("origin").is_some_and(|origin| !origin.is_null());
        if unasked {
            self.unasked = Some(outcome::read(line, self.before.clone(), now));
        } else {
            let end = outcome::read(line, mem::take(&mut self.before), now);
            self.end(end, out);
        }
        true
    }

    fn exited(&mut self, now: Timestamp, exit: &Exit, out: &mut Vec<Action>) {
        if self.ended {
            return;
        }
        if let Some(end) = self.unasked.take() {
            return self.end(end, out);
        }
        if !exit.is_success() {
            let evidence = mem::take(&mut self.before.evidence);
            let printed = mem::take(&mut self.printed);
            return self.fail(failure::of_exit(exit, evidence, &printed, now), out);
        }
        if self.aborted {
            return self.fail(outcome::interrupted(), out);
        }
        if self.answered {
            let before = mem::take(&mut self.before);
            let end = TurnEnd {
                text: before.last_text,
                usage: self.used,
                model: before.model,
                meta: before.meta,
                ..TurnEnd::default()
            };
            return self.end(end, out);
        }
        self.fail(Failure::unreadable(), out);
    }

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

    /// Ends the turn. An answer that came with the last word only is passed on
    /// first, so that a reader of the events misses nothing.
    fn end(&mut self, end: TurnEnd, out: &mut Vec<Action>) {
        self.ended = true;
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
