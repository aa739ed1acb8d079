//! Reads one turn of what Pi tells in JSON, whichever mode it runs in.
//!
//! The end of a turn is `agent_settled`. `agent_end` is not: the CLI may try the
//! request again after it. An error is a message of the model that ended in
//! one. The older one-line result is read as well. `stream` and `notice` read
//! the lines of their kinds; how lines come to be objects, and what the end of
//! the process means, is for the dialects to say.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    blocks::Blocks,
    fault, field,
    message::{Ending, Message, Spent},
    tool,
    turn::Turn,
};
use crate::{
    agent::{Action, emit::emit},
    event::{EventBody, StopReason},
    failure::{Failure, FailureKind},
};

/// Lines that repeat what others told: nothing is lost when they are.
const REPEATING: [&[u8]; 2] = [br#"{"type":"agent_end""#, br#"{"type":"turn_end""#];

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
    pub(super) has_run: bool,
    /// The model calls that were not in vain, and how many there may be.
    pub(super) n_calls: u32,
    pub(super) max_calls: Option<u32>,
    pub(super) retrying_since: Option<Timestamp>,
    /// Whether somebody wants the turn to end.
    pub(super) is_cancelled: bool,
    halt: Halt,
    verdict: Option<Verdict>,
}

/// How a turn is kept from going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// Its process is ended; nobody else needs it.
    Stop,
    /// The CLI is told to abort what it does, which is for the dialect to do.
    Abort,
}

/// How a turn that must not go on will have ended.
#[derive(Debug)]
struct Verdict {
    failure: Failure,
    reason: StopReason,
    text: Option<String>,
}

impl Reader {
    pub(super) fn new(turn: Turn, max_calls: Option<u32>, halt: Halt) -> Self {
        Self {
            turn,
            blocks: Blocks::default(),
            spent: Spent::default(),
            last: None,
            has_lost_line: false,
            has_run: false,
            n_calls: 0,
            max_calls,
            retrying_since: None,
            is_cancelled: false,
            halt,
            verdict: None,
        }
    }

    /// Takes the start of a line that was too long to keep.
    pub(super) fn lost_line(&mut self, start: &[u8]) {
        if !REPEATING.iter().any(|known| start.starts_with(known)) {
            self.has_lost_line = true;
        }
    }

    /// Reads one object; returns whether it was understood.
    pub(super) fn document(
        &mut self,
        now: Timestamp,
        line: &mut Value,
        out: &mut Vec<Action>,
    ) -> bool {
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
            self.is_cancelled = true;
        }
        self.finish(out);
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
    pub(super) fn finish(&mut self, out: &mut Vec<Action>) {
        if let Some(Verdict { failure, reason, text }) = self.verdict.take() {
            return self.turn.end.fail(failure, reason, text, out);
        }
        if self.is_cancelled {
            // Whatever the model's last message says, this is what it was about.
            let text = self.last.take().map(|message| message.text);
            return self.turn.fail(aborted(), text, out);
        }
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

    /// Ends a turn that the CLI would go on with.
    pub(super) fn halt(
        &mut self,
        failure: Failure,
        reason: StopReason,
        text: Option<String>,
        out: &mut Vec<Action>,
    ) {
        match self.halt {
            Halt::Stop => {
                self.turn.end.fail(failure, reason, text, out);
                out.push(Action::Stop);
            }
            Halt::Abort => {
                self.verdict.get_or_insert(Verdict { failure, reason, text });
            }
        }
    }

    /// Returns whether the turn must not go on, and the CLI does not know it.
    pub(super) fn is_to_be_aborted(&self) -> bool {
        self.verdict.is_some() && !self.turn.has_ended()
    }

    /// Returns whether the newest message says why the turn failed.
    pub(super) fn has_failed(&self) -> bool {
        let ending = self.last.as_ref().map(|message| &message.ending);
        matches!(ending, Some(Ending::Failed(_) | Ending::Refused(_)))
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

pub(super) fn aborted() -> Failure {
    Failure::new(FailureKind::Cancelled, "the agent was interrupted")
}
