//! Reads what `pi --mode json` prints: one JSON object a line.
//!
//! The end of a turn is `agent_settled`, or the exit where a version has no
//! such line. `agent_end` is not: the CLI may try the request again after it.
//! An error is a message of the model that ended in one; the exit code is 0
//! all the same. The older one-line result is read as well. `stream` and
//! `notice` read the lines of their kinds.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    blocks::Blocks,
    fault, field,
    message::{Ending, Message, Spent},
    plain::Plain,
    tool,
    turn::Turn,
};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, Launch,
        document::{Documents, Piece},
        emit::{emit, emit_unknown},
    },
    event::{EventBody, StopReason, Stream},
    failure::{Failure, FailureKind},
    request::{Format, PromptCommands},
};

/// How much of the lines that were not understood is kept for finding out what failed.
const MAX_PRINTED_BYTES: usize = 8 * 1024;

/// Makes the state machine for the output that was asked for.
pub(super) fn dialect(launch: &Launch<'_>) -> Box<dyn Dialect> {
    match launch.options.wire_format() {
        Format::Text => Box::new(Plain::new(launch)),
        Format::StreamJson | Format::Json => {
            Box::new(JsonLines { documents: Documents::default(), reader: Reader::new(launch) })
        }
    }
}

struct JsonLines {
    documents: Documents,
    reader: Reader,
}

impl Dialect for JsonLines {
    fn step(&mut self, now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        let Self { documents, reader } = self;
        match input {
            Input::Line { from: Stream::Stderr, bytes, .. } => reader.turn.stderr(bytes, out),
            Input::Line { bytes, cut: true, .. } => {
                documents.finish(|piece| reader.piece(now, piece, out));
                reader.has_lost_line = true;
                emit_unknown(reader.turn.key(), Stream::Stdout, bytes, out);
            }
            Input::Line { bytes, .. } => {
                documents.push(bytes, |piece| reader.piece(now, piece, out));
            }
            Input::Cancel { .. } => out.push(Action::Stop),
            Input::Timer(_) | Input::Order(_) => {}
            Input::Exited(exit) => {
                documents.finish(|piece| reader.piece(now, piece, out));
                reader.exited(exit, out);
            }
        }
    }
}

/// What is remembered of a turn.
pub(super) struct Reader {
    pub(super) turn: Turn,
    pub(super) blocks: Blocks,
    pub(super) spent: Spent,
    /// The newest message of the model: the answer, once the turn is over.
    pub(super) last: Option<Message>,
    /// Whether a line was too long to read since the newest message.
    pub(super) has_lost_line: bool,
    /// Whether the CLI said that a run is over, and not that it tries again.
    has_run: bool,
    /// The model calls that were not in vain, and how many there may be.
    pub(super) n_calls: u32,
    pub(super) max_calls: Option<u32>,
    pub(super) retrying_since: Option<Timestamp>,
    /// Whether the CLI may have carried out the prompt as a command.
    may_be_command: bool,
    /// Lines that were not understood.
    printed: String,
}

impl Reader {
    fn new(launch: &Launch<'_>) -> Self {
        Self {
            turn: Turn::new(launch),
            blocks: Blocks::default(),
            spent: Spent::default(),
            last: None,
            has_lost_line: false,
            has_run: false,
            n_calls: 0,
            max_calls: launch.options.max_turns,
            retrying_since: None,
            may_be_command: launch.options.prompt_commands == PromptCommands::On,
            printed: String::new(),
        }
    }

    fn piece(&mut self, now: Timestamp, piece: Piece<'_>, out: &mut Vec<Action>) {
        let bytes = match piece {
            Piece::Document { mut value, raw } => {
                if !self.turn.has_ended() && self.document(now, &mut value, out) {
                    return;
                }
                raw
            }
            Piece::Line(bytes) => bytes,
        };
        emit_unknown(self.turn.key(), Stream::Stdout, bytes, out);
        if self.printed.len() < MAX_PRINTED_BYTES {
            let start = bytes.get(..MAX_PRINTED_BYTES).unwrap_or(bytes);
            self.printed.push_str(&String::from_utf8_lossy(start));
            self.printed.push('\n');
        }
    }

    /// Reads one object; returns whether it was understood.
    fn document(&mut self, now: Timestamp, line: &mut Value, out: &mut Vec<Action>) -> bool {
        match field::text(line, "type") {
            Some("session") => self.session(line, out),
            Some("agent_start") => {
                self.has_run = false;
                true
            }
            Some("message_start") => self.message_start(line, out),
            Some("message_update") => self.message_update(line, out),
            Some("message_end") => self.message_end(line, out),
            Some("tool_execution_start") => self.tell(tool::call(line), out),
            Some("tool_execution_end") => self.tell(tool::result(line), out),
            Some("turn_end") => self.turn_end(out),
            Some("agent_end") => {
                self.has_run = !field::is_true(line, "willRetry");
                true
            }
            Some("agent_settled") => self.settled(line, out),
            Some("auto_retry_start" | "summarization_retry_scheduled") => {
                self.retry(now, line, out)
            }
            Some("compaction_end") => self.compacted(line, out),
            Some("result") => self.older_result(line, out),
            // What a reader learns from other lines, or needs not know: the
            // beginnings and ends of things, a tool's output while it runs, and
            // the CLI's own book-keeping.
            Some(
                "turn_start"
                | "tool_execution_update"
                | "auto_retry_end"
                | "compaction_start"
                | "summarization_retry_attempt_start"
                | "summarization_retry_finished"
                | "entry_appended"
                | "queue_update"
                | "session_info_changed"
                | "thinking_level_changed",
            ) => true,
            Some(_) | None => false,
        }
    }

    fn session(&mut self, line: &mut Value, out: &mut Vec<Action>) -> bool {
        let Some(id) = field::take_text(line, "id") else {
            return false;
        };
        self.turn.name(id, out);
        true
    }

    fn settled(&mut self, line: &Value, out: &mut Vec<Action>) -> bool {
        if field::is_true(line, "aborted") {
            let text = self.last.take().map(|message| message.text);
            self.turn.fail(aborted(), text, out);
        } else {
            self.finish(out);
        }
        true
    }

    fn older_result(&mut self, line: &mut Value, out: &mut Vec<Action>) -> bool {
        let Some(text) = field::take_text(line, "result") else {
            return false;
        };
        if let Some(id) = field::take_text(line, "session_id") {
            self.turn.name(id, out);
            self.turn.open(out);
        }
        if self.turn.has_ended() {
            return true;
        }
        if self.last.is_none() {
            self.blocks
                .end(&Value::String(text.clone()), &mut |event| emit(self.turn.key(), event, out));
        }
        self.turn.complete(text, StopReason::EndTurn, out);
        true
    }

    /// Ends the turn with the newest message.
    fn finish(&mut self, out: &mut Vec<Action>) {
        if self.has_lost_line {
            // What was lost may have been the answer; what came before it is not.
            return self.turn.fail(Failure::unreadable(), None, out);
        }
        let Some(Message { text, ending }) = self.last.take() else {
            return self.turn.complete(String::new(), StopReason::EndTurn, out);
        };
        match ending {
            Ending::Done | Ending::Tools => self.turn.complete(text, StopReason::EndTurn, out),
            Ending::Other(word) => self.turn.complete(text, StopReason::Other(word), out),
            Ending::Length => {
                let words = "the answer was cut at the limit of its length";
                let failure = Failure::new(FailureKind::LimitReached, words);
                self.turn.end.fail(failure, StopReason::MaxTokens, Some(text), out);
            }
            Ending::Refused(words) => {
                let words = if words.is_empty() { "the model refused".to_owned() } else { words };
                let failure = Failure::new(FailureKind::Refused, words);
                self.turn.fail(failure, Some(text), out);
            }
            Ending::Failed(words) => {
                let failure = fault::of_message(&words, self.otherwise());
                self.turn.fail(failure, Some(text), out);
            }
            Ending::Aborted => self.turn.fail(aborted(), Some(text), out),
        }
    }

    /// The kind of an error in unknown words: what the CLI takes for passing it
    /// tries again first.
    fn otherwise(&self) -> FailureKind {
        match self.retrying_since {
            Some(_) => FailureKind::Unavailable,
            None => FailureKind::InvalidRequest,
        }
    }

    fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        if self.turn.has_ended() {
            return;
        }
        let has_answered = match &self.last {
            None => self.may_be_command && self.turn.is_named(),
            // Without the end of its run it would have gone on.
            Some(message) => message.ending != Ending::Tools || self.has_run,
        };
        let has_failed = matches!(
            self.last,
            Some(Message { ending: Ending::Failed(_) | Ending::Refused(_), .. })
        );
        if has_failed || (exit.is_success() && has_answered) {
            return self.finish(out);
        }
        let text = self.last.take().map(|message| message.text);
        self.turn.fail_with_exit(exit, &self.printed, text, out);
    }

    fn tell(&self, event: Option<EventBody>, out: &mut Vec<Action>) -> bool {
        match event {
            Some(event) => {
                emit(self.turn.key(), event, out);
                true
            }
            None => false,
        }
    }
}

fn aborted() -> Failure {
    Failure::new(FailureKind::Cancelled, "the agent was interrupted")
}
