//! Reads what Gemini prints as JSON: an event a line, or one object at the end.
//!
//! Only `result`, the object and the exit end a turn. An `error` event may be a
//! warning, a `result` with status `error` may have no reason in it, and an exit
//! code of 0 means nothing without a result: a killed process exits so, too.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    complaint::Complaints,
    fault::{self, Said},
    patience::give_up,
    plain::Plain,
    stats,
    tool::Tools,
    turn::Turn,
};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, Launch,
        document::{Documents, Piece},
        emit::{emit, emit_unknown, emit_warning},
        field::remove_text,
    },
    event::{StopReason, Stream, Usage},
    failure::{Failure, FailureKind},
    request::Format,
};

/// How events begin that say no more than that there was no answer.
const EMPTY_ANSWERS: &[&str] = &[
    "The model returned an empty response",
    "The model returned reasoning thoughts but no final response text",
];

/// How the warning begins with which the CLI stops a model that repeats itself.
const LOOP: &str = "Loop detected, stopping execution";

/// Makes the state machine for the output that was asked for.
pub(super) fn dialect(launch: &Launch<'_>) -> Box<dyn Dialect> {
    match launch.options.wire_format() {
        Format::Text => Box::new(Plain::new(launch)),
        Format::StreamJson | Format::Json => Box::new(Json::new(launch)),
    }
}

struct Json {
    turn: Turn,
    documents: Documents,
    complaints: Complaints,
    tools: Tools,
    /// How many more times the model may be asked, when there is a limit.
    calls_left: Option<u32>,
    max_turns: u32,
    /// An error that the last result may be about.
    error: Option<String>,
    /// The last word of a turn that failed. The exit says what kind of failure it was.
    failed: Option<Said>,
}

impl Dialect for Json {
    fn step(&mut self, _now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        match input {
            Input::Line { from: Stream::Stderr, bytes, .. } => {
                let heard = self.complaints.line(bytes, out);
                give_up(&heard, &mut self.turn, &self.complaints, out);
            }
            Input::Line { from: Stream::Stdout, bytes, cut: true } => {
                self.turn.has_lost_line = true;
                emit_unknown(self.turn.key(), Stream::Stdout, bytes, out);
            }
            Input::Line { from: Stream::Stdout, bytes, cut: false } => self.stdout(bytes, out),
            Input::Cancel { .. } => {
                // Ended like this, the CLI keeps the prompt.
                self.turn.confirm(out);
                out.push(Action::Stop);
            }
            Input::Timer(_) | Input::Order(_) | Input::Heard(_) => {}
            Input::Exited(exit) => self.exited(exit, out),
        }
    }
}

impl Json {
    fn new(launch: &Launch<'_>) -> Self {
        Self {
            turn: Turn::new(launch),
            documents: Documents::default(),
            complaints: Complaints::default(),
            tools: Tools::default(),
            calls_left: launch.options.max_turns,
            max_turns: launch.options.max_turns.unwrap_or_default(),
            error: None,
            failed: None,
        }
    }

    fn stdout(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        let mut documents = std::mem::take(&mut self.documents);
        documents.push(bytes, |piece| self.piece(piece, out));
        self.documents = documents;
    }

    fn piece(&mut self, piece: Piece<'_>, out: &mut Vec<Action>) {
        match piece {
            Piece::Document { value: Value::Object(fields), raw } => {
                if !self.object(fields, out) {
                    emit_unknown(self.turn.key(), Stream::Stdout, raw, out);
                }
            }
            Piece::Document { raw, .. } | Piece::Line(raw) => {
                emit_unknown(self.turn.key(), Stream::Stdout, raw, out);
            }
        }
    }

    /// Takes one object; returns whether it was understood.
    fn object(&mut self, mut fields: Map<String, Value>, out: &mut Vec<Action>) -> bool {
        let kind = remove_text(&mut fields, "type");
        match kind.as_deref().unwrap_or_default() {
            "init" => self.init(fields, out),
            // The prompt, once more.
            "message" if fields.get("role").and_then(Value::as_str) == Some("user") => true,
            _ if self.turn.has_ended() => false,
            "" => self.single(fields, out),
            "message" => self.message(fields, out),
            "tool_use" => match self.tools.call(&mut fields) {
                Some(event) => {
                    self.turn.end_block();
                    self.turn.confirm(out);
                    emit(self.turn.key(), event, out);
                    true
                }
                None => false,
            },
            "tool_result" => match self.tools.result(&mut fields) {
                Some(event) => {
                    self.turn.end_block();
                    emit(self.turn.key(), event, out);
                    self.count_call(out);
                    true
                }
                None => false,
            },
            "error" => self.error(fields, out),
            "result" => self.result(fields, out),
            _ => false,
        }
    }

    fn init(&mut self, mut fields: Map<String, Value>, out: &mut Vec<Action>) -> bool {
        let Some(id) = remove_text(&mut fields, "session_id") else {
            return false;
        };
        self.turn.end.model = remove_text(&mut fields, "model").or(self.turn.end.model.take());
        self.turn.session(id, out);
        true
    }

    fn message(&mut self, mut fields: Map<String, Value>, out: &mut Vec<Action>) -> bool {
        let is_answer = fields.get("role").and_then(Value::as_str) == Some("assistant");
        let Some(text) = remove_text(&mut fields, "content").filter(|_| is_answer) else {
            return false;
        };
        if fields.get("delta").and_then(Value::as_bool) != Some(true) {
            self.turn.end_block();
        }
        self.turn.text(text, out);
        true
    }

    /// The CLI's own limit is a setting, and those are the user's; so its calls
    /// are counted here. It asks the model again once all tools are done.
    fn count_call(&mut self, out: &mut Vec<Action>) {
        let Some(calls_left) = self.calls_left.filter(|_| self.tools.all_done()) else {
            return;
        };
        let calls_left = calls_left.saturating_sub(1);
        self.calls_left = Some(calls_left);
        if calls_left == 0 {
            let text = format!("reached the limit of {} model calls", self.max_turns);
            let failure = Failure::new(FailureKind::LimitReached, text);
            self.turn.fail(failure, Usage::default(), out);
            out.push(Action::Stop);
        }
    }

    fn error(&mut self, mut fields: Map<String, Value>, out: &mut Vec<Action>) -> bool {
        let Some(message) = remove_text(&mut fields, "message") else {
            return false;
        };
        if fields.get("severity").and_then(Value::as_str) == Some("error") {
            self.error = Some(message);
        } else {
            self.warn(message, out);
        }
        true
    }

    fn result(&mut self, mut fields: Map<String, Value>, out: &mut Vec<Action>) -> bool {
        let stats = fields.remove("stats").unwrap_or(Value::Null);
        let usage = stats::of_events(&stats);
        self.note_stats(stats);
        let error = fields.get("error").and_then(Said::of_error);
        match (fields.get("status").and_then(Value::as_str), error) {
            (Some("success"), None) => self.done(usage, out),
            (_, Some(said)) => self.failed = Some(said),
            (Some("error"), None) => self.done(usage, out),
            _ => return false,
        }
        true
    }

    /// The one object of `format=json`: an answer, an error, or both.
    fn single(&mut self, mut fields: Map<String, Value>, out: &mut Vec<Action>) -> bool {
        let answer = remove_text(&mut fields, "response");
        let error = fields.get("error").and_then(Said::of_error);
        if answer.is_none() && error.is_none() {
            return false;
        }
        if let Some(id) = remove_text(&mut fields, "session_id") {
            self.turn.session(id, out);
        }
        let stats = fields.remove("stats").unwrap_or(Value::Null);
        let usage = stats::of_object(&stats);
        self.note_stats(stats);
        for warning in fields.get("warnings").and_then(Value::as_array).into_iter().flatten() {
            self.warn(warning.as_str().unwrap_or_default().to_owned(), out);
        }
        match (answer, error) {
            (Some(answer), error) => {
                self.turn.text(answer, out);
                self.error = error.map(|said| said.message);
                self.done(usage, out);
            }
            (None, error) => self.failed = error,
        }
        true
    }

    fn note_stats(&mut self, stats: Value) {
        self.turn.end.model = stats::model(&stats).or(self.turn.end.model.take());
        self.turn.end.meta.insert("stats".to_owned(), stats);
    }

    fn warn(&mut self, text: String, out: &mut Vec<Action>) {
        if text.starts_with(LOOP) {
            self.turn.stop_reason = Some(StopReason::Other("loop_detected".to_owned()));
        }
        emit_warning(self.turn.key(), text, out);
    }

    /// Ends the turn by a result without a reason in it: the error event before
    /// it tells whether there was an answer. None at all is an empty answer.
    fn done(&mut self, usage: Usage, out: &mut Vec<Action>) {
        match self.error.take() {
            Some(text) if EMPTY_ANSWERS.iter().any(|start| text.starts_with(start)) => {
                self.warn(text, out);
                self.turn.complete(usage, out);
            }
            Some(text) => {
                let said = Said::of_words(&text);
                let failure = fault::failure(Some(&said), &Complaints::default(), None);
                self.turn.fail(
                    fault::unless_crashed(failure, FailureKind::Unavailable),
                    usage,
                    out,
                );
            }
            // Stopped by the CLI itself, and nothing is left of what it had said.
            None if self.turn.stop_reason.is_some() && !self.turn.has_answer() => {
                self.turn.fail(Failure::new(FailureKind::LimitReached, LOOP), usage, out);
            }
            None => {
                self.turn.confirm(out);
                self.turn.complete(usage, out);
            }
        }
    }

    fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        let mut documents = std::mem::take(&mut self.documents);
        documents.finish(|piece| self.piece(piece, out));
        self.complaints.finish(out);
        if let Some(id) = self.complaints.session.take() {
            self.turn.session(id, out);
        }
        if self.turn.has_ended() {
            return;
        }
        let failure = match self.failed.take() {
            None if exit.is_success() => Failure::unreadable(),
            said => fault::failure(said.as_ref(), &self.complaints, Some(exit)),
        };
        self.turn.fail(failure, Usage::default(), out);
    }
}
