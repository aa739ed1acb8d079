//! Reads what `pi --mode json` prints: one JSON object a line.
//!
//! The end of a turn is `agent_settled`, or the exit where a version has no
//! such line. `agent_end` is not: the CLI may try the request again after it.
//! An error is a message of the model that ended in one; the exit code is 0
//! all the same. The older one-line result is read as well.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{
    blocks::{BlockKind, Blocks},
    fault, field,
    message::{Ending, Message, Spent},
    plain::Plain,
    tool,
    turn::{Turn, emit, unknown},
};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, Launch,
        document::{Documents, Piece},
    },
    event::{EventBody, Status, StopReason, Stream},
    failure::{Failure, FailureKind},
    request::{Format, PromptCommands},
};

/// How long after its first error the CLI may still try again.
///
/// Its retries can be bounded only in the user's own settings. By default it
/// waits 2, 4 and 8 seconds; anything slower would not end within 20.
const PATIENCE: SignedDuration = SignedDuration::from_secs(15);

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
                unknown(Stream::Stdout, bytes, out);
            }
            Input::Line { bytes, .. } => {
                documents.push(bytes, |piece| reader.piece(now, piece, out));
            }
            Input::Cancel { .. } => out.push(Action::Stop),
            Input::Timer(_) => {}
            Input::Exited(exit) => {
                documents.finish(|piece| reader.piece(now, piece, out));
                reader.exited(exit, out);
            }
        }
    }
}

/// What is remembered of a turn.
struct Reader {
    turn: Turn,
    blocks: Blocks,
    spent: Spent,
    /// The newest message of the model: the answer, once the turn is over.
    last: Option<Message>,
    /// Whether a line was too long to read since the newest message.
    has_lost_line: bool,
    /// Whether the CLI said that a run is over, and not that it tries again.
    has_run: bool,
    /// The model calls that were not in vain, and how many there may be.
    n_calls: u32,
    max_calls: Option<u32>,
    retrying_since: Option<Timestamp>,
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
        unknown(Stream::Stdout, bytes, out);
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
            Some("tool_execution_start") => tell(tool::call(line), out),
            Some("tool_execution_end") => tell(tool::result(line), out),
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

    fn message_start(&mut self, line: &Value, out: &mut Vec<Action>) -> bool {
        match role(line) {
            Some("assistant") => {
                if self.last.as_ref().is_some_and(Message::may_be_void) {
                    self.blocks.retract(&mut |event| emit(event, out));
                }
                self.blocks.start();
                true
            }
            Some(role) => is_known_role(role),
            None => false,
        }
    }

    fn message_update(&mut self, line: &mut Value, out: &mut Vec<Action>) -> bool {
        let mut event = field::take(line, "assistantMessageEvent");
        let kind = match field::text(&event, "type") {
            Some("text_start" | "text_delta" | "text_end") => BlockKind::Output,
            Some("thinking_start" | "thinking_delta" | "thinking_end") => BlockKind::Thinking,
            // A call is told when it is made, with all its arguments.
            Some("toolcall_start" | "toolcall_delta" | "toolcall_end" | "start" | "done") => {
                return true;
            }
            Some(_) | None => return false,
        };
        let index = field::number(&event, "contentIndex").unwrap_or(0);
        let tell = &mut |event| emit(event, out);
        if let Some(text) = field::take_text(&mut event, "delta") {
            self.blocks.piece(index, kind, text, tell);
        } else if let Some(text) = field::text(&event, "content") {
            self.blocks.whole(index, kind, text, tell);
        }
        true
    }

    fn message_end(&mut self, line: &mut Value, out: &mut Vec<Action>) -> bool {
        match role(line) {
            Some("assistant") => {}
            Some("user") => {
                self.turn.asked(out);
                return true;
            }
            Some(role) => return is_known_role(role),
            None => return false,
        }
        let mut message = field::take(line, "message");
        let content = message.get("content").unwrap_or(&Value::Null);
        self.blocks.end(content, &mut |event| emit(event, out));
        self.turn.open(out);
        if let Some(model) = field::take_text(&mut message, "model") {
            self.turn.model = Some(model);
        }
        for key in ["provider", "api", "thinkingLevel", "rawStopReason"] {
            let value = field::take_kept(&mut message, key);
            self.turn.meta.extend(value.map(|value| (field::snake_case(key), value)));
        }
        self.spent.add(message.get("usage").unwrap_or(&Value::Null));
        self.tell_usage(out);
        let read = Message::read(&mut message);
        if !matches!(read.ending, Ending::Failed(_) | Ending::Aborted) {
            self.n_calls += 1;
            self.retrying_since = None;
        }
        self.last = Some(read);
        self.has_lost_line = false;
        true
    }

    fn tell_usage(&mut self, out: &mut Vec<Action>) {
        if let Some(usage) = self.spent.usage()
            && usage != self.turn.usage
        {
            self.turn.usage = usage;
            emit(EventBody::Usage(usage), out);
        }
    }

    /// The results of a message's tools are in, and the model would be called again.
    fn turn_end(&mut self, out: &mut Vec<Action>) -> bool {
        let wants_more = self.last.as_ref().is_some_and(|message| message.ending == Ending::Tools);
        if let Some(max) = self.max_calls.filter(|max| wants_more && self.n_calls >= *max) {
            let message = format!("the turn reached its limit of {max} model calls");
            let failure = Failure::new(FailureKind::LimitReached, message);
            let text = self.last.take().map(|message| message.text);
            self.turn.fail_for(failure, StopReason::MaxTurns, text, out);
            out.push(Action::Stop);
        }
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

    fn retry(&mut self, now: Timestamp, line: &mut Value, out: &mut Vec<Action>) -> bool {
        let small = |key| field::number(line, key).and_then(|n| u32::try_from(n).ok());
        let (attempt, max) = (small("attempt"), small("maxAttempts"));
        let delay_ms = field::number(line, "delayMs");
        let text = field::take_text(line, "errorMessage").unwrap_or_default();
        if self.last.as_ref().is_some_and(Message::may_be_void) {
            self.blocks.retract(&mut |event| emit(event, out));
        }
        let failure = fault::of_message(&text, FailureKind::Unavailable);
        let notice = Status::Retry { attempt, max, delay_ms, text: failure.message.clone() };
        emit(EventBody::Status(notice), out);
        let since = *self.retrying_since.get_or_insert(now);
        let delay = i64::try_from(delay_ms.unwrap_or(0)).unwrap_or(i64::MAX);
        let waited = now.duration_since(since);
        if waited.saturating_add(SignedDuration::from_millis(delay)) > PATIENCE {
            self.turn.fail(failure, None, out);
            out.push(Action::Stop);
        }
        true
    }

    fn compacted(&mut self, line: &mut Value, out: &mut Vec<Action>) -> bool {
        let result = field::take(line, "result");
        self.spent.add(result.get("usage").unwrap_or(&Value::Null));
        self.tell_usage(out);
        let status = match field::take_text(line, "errorMessage") {
            Some(text) => Status::Warning { text },
            None if result.is_null() => return true,
            None => {
                let reason = field::take_text(line, "reason").unwrap_or_default();
                let before = field::number(&result, "tokensBefore").unwrap_or(0);
                Status::Compacted { text: format!("{reason}: {before} tokens were summarized") }
            }
        };
        emit(EventBody::Status(status), out);
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
            self.blocks.end(&Value::String(text.clone()), &mut |event| emit(event, out));
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
                self.turn.fail_for(failure, StopReason::MaxTokens, Some(text), out);
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
}

fn aborted() -> Failure {
    Failure::new(FailureKind::Cancelled, "the agent was interrupted")
}

fn role(line: &Value) -> Option<&str> {
    field::text(line.get("message")?, "role")
}

/// The other messages of a conversation: what was asked, and results that the
/// tools' own lines tell.
fn is_known_role(role: &str) -> bool {
    ["user", "system", "toolResult"].contains(&role)
}

fn tell(event: Option<EventBody>, out: &mut Vec<Action>) -> bool {
    match event {
        Some(event) => {
            emit(event, out);
            true
        }
        None => false,
    }
}
