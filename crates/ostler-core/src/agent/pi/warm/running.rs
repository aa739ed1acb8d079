//! A turn that the CLI was asked for and has not ended yet.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    agent::{
        Action, Exit, TurnKey,
        pi::{
            fault, field,
            message::Ending,
            reader::{Halt, Reader, aborted},
            session::Session,
            turn::Turn,
        },
    },
    event::StopReason,
    failure::{Failure, FailureKind},
};

/// How much of what it prints on standard error is kept for finding out what failed.
const MAX_STDERR_BYTES: usize = 8 * 1024;

/// A turn that runs.
pub(super) struct Running {
    reader: Reader,
    /// Whether the CLI has begun to work on it.
    has_begun: bool,
    /// Whether an extension may carry out the prompt as a command.
    may_be_command: bool,
    /// What the CLI complained about meanwhile. What it said before, maybe long
    /// ago, does not tell why it ended now.
    stderr: String,
}

impl Running {
    pub(super) fn new(
        session: Session,
        turn: TurnKey,
        max_calls: Option<u32>,
        may_be_command: bool,
    ) -> Self {
        let reader = Reader::new(Turn::within(session, turn), max_calls, Halt::Abort);
        Self { reader, has_begun: false, may_be_command, stderr: String::new() }
    }

    pub(super) fn key(&self) -> TurnKey {
        self.reader.turn.key()
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub(super) fn has_ended(&self) -> bool {
        self.reader.turn.has_ended()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.reader.is_cancelled
    }

    /// Returns whether the turn must not go on, and the CLI does not know it.
    pub(super) fn is_to_be_aborted(&self) -> bool {
        self.reader.is_to_be_aborted()
    }

    /// Returns whether the CLI was told to end it.
    pub(super) fn is_ending(&self) -> bool {
        self.is_cancelled() || self.is_to_be_aborted()
    }

    /// Returns whether the CLI has said that its run is over.
    pub(super) fn has_run(&self) -> bool {
        self.reader.has_run
    }

    /// Gives the session back.
    pub(super) fn into_session(self) -> Session {
        self.reader.turn.session
    }

    /// Notes where the CLI keeps the session.
    pub(super) fn note_file(&mut self, file: Option<std::path::PathBuf>) {
        self.reader.turn.end.file = file;
    }

    /// Reads an event; returns whether it was understood.
    pub(super) fn event(
        &mut self,
        now: Timestamp,
        line: &mut Value,
        out: &mut Vec<Action>,
    ) -> bool {
        match field::text(line, "type") {
            Some("agent_start" | "turn_start" | "message_start") => self.has_begun = true,
            // That of what ran before.
            Some("agent_settled" | "agent_end") if !self.has_begun => return true,
            // Only the other modes print these.
            Some("session" | "result") => return false,
            Some(_) | None => {}
        }
        self.reader.document(now, line, out)
    }

    pub(super) fn lost_line(&mut self, start: &[u8]) {
        self.reader.lost_line(start);
    }

    pub(super) fn stderr(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        if self.stderr.len() < MAX_STDERR_BYTES {
            let start = bytes.get(..MAX_STDERR_BYTES).unwrap_or(bytes);
            self.stderr.push_str(&String::from_utf8_lossy(start));
            self.stderr.push('\n');
        }
        self.reader.turn.stderr(bytes, out);
    }

    pub(super) fn cancel(&mut self) {
        self.reader.is_cancelled = true;
    }

    /// The CLI did not take the prompt.
    pub(super) fn refuse(&mut self, error: &str, out: &mut Vec<Action>) {
        let failure = if self.is_cancelled() {
            aborted()
        } else {
            fault::of_message(error, FailureKind::InvalidRequest)
        };
        self.reader.turn.fail(failure, None, out);
    }

    /// Takes what became of the prompt; returns whether the CLI has to be asked
    /// if it works on it at all.
    ///
    /// A command of an extension is carried out at once, and then nothing more
    /// is heard of it. Versions before 0.99 do not say that it was one.
    pub(super) fn accepted(&mut self, data: &Value, out: &mut Vec<Action>) -> bool {
        match field::text(data, "disposition") {
            Some("handled") => self.handled(out),
            Some(_) => {}
            None => return self.may_be_command && !self.has_begun,
        }
        false
    }

    /// Takes what the CLI says that it is doing.
    pub(super) fn works(&mut self, state: &Value, out: &mut Vec<Action>) {
        if !field::is_true(state, "isStreaming") {
            self.handled(out);
        }
    }

    fn handled(&mut self, out: &mut Vec<Action>) {
        if self.has_begun || self.has_ended() {
            return;
        }
        if self.is_cancelled() {
            return self.finish(out);
        }
        // It lives in the process, even if it is not written down yet.
        self.reader.turn.open(out);
        self.reader.turn.complete(String::new(), StopReason::EndTurn, out);
    }

    /// Ends the turn with what there is.
    pub(super) fn finish(&mut self, out: &mut Vec<Action>) {
        self.reader.finish(out);
    }

    /// Ends a turn whose process is gone.
    pub(super) fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        let last = self.reader.last.as_ref();
        let has_answered =
            self.has_run() && last.is_some_and(|message| message.ending != Ending::Tools);
        if has_answered
            || self.is_cancelled()
            || self.is_to_be_aborted()
            || self.reader.has_failed()
        {
            return self.finish(out);
        }
        let text = self.reader.last.take().map(|message| message.text);
        let failure = self.why(exit);
        self.reader.turn.fail(failure, text, out);
    }

    fn why(&self, exit: &Exit) -> Failure {
        fault::of_exit(&Exit { stderr: self.stderr.clone(), ..exit.clone() }, "")
    }
}
