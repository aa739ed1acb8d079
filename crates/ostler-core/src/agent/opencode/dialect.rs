//! Reads what `opencode run --format json` prints: one JSON object a line.
//!
//! No line ends a turn, only the exit does: after a last word the CLI may make
//! its history shorter and go on. The answer is the text of the last message;
//! texts before it are talk on the way. The one-line result of early releases
//! is read as well.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    answer::{Message, ending},
    message::{self, Finish, Line, Origin, Text},
    plain::Plain,
    tool::Tool,
    turn::Turn,
};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, Launch,
        document::{Documents, Piece},
        emit::{emit, emit_unknown},
    },
    event::{EventBody, Status, StopReason, Stream},
    failure::{Failure, FailureKind},
    request::Format,
};

/// Makes the state machine for the output that was asked for.
pub(super) fn dialect(launch: &Launch<'_>) -> Box<dyn Dialect> {
    match launch.options.wire_format() {
        Format::Text => Box::new(Plain::new(launch)),
        Format::StreamJson | Format::Json => Box::new(JsonLines::new(launch)),
    }
}

struct JsonLines {
    documents: Documents,
    reader: Reader,
}

struct Reader {
    turn: Turn,
    max_turns: Option<u32>,
    n_calls: u32,
    /// The message that is being written, or was written last.
    message: Message,
    /// The blocks of text and the records of tool calls that were told.
    told: BTreeSet<String>,
    /// Whether a line was too long to read since the last message began.
    has_lost_line: bool,
    /// The last error.
    error: Option<Failure>,
    /// Whether the model went on after it.
    is_got_over: bool,
}

impl Dialect for JsonLines {
    fn step(&mut self, now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        let Self { documents, reader } = self;
        match input {
            Input::Line { from: Stream::Stderr, bytes, .. } => reader.turn.stderr(now, bytes, out),
            Input::Line { from: Stream::Stdout, bytes, cut: true } => {
                documents.finish(|piece| reader.piece(now, piece, out));
                reader.has_lost_line = true;
                emit_unknown(reader.turn.key(), Stream::Stdout, bytes, out);
            }
            Input::Line { from: Stream::Stdout, bytes, cut: false } => {
                documents.push(bytes, |piece| reader.piece(now, piece, out));
            }
            Input::Cancel { .. } => out.push(Action::Stop),
            Input::Order(_) | Input::Heard(_) => {}
            Input::Timer(timer) => reader.turn.rang(timer, out),
            Input::Exited(exit) => {
                documents.finish(|piece| reader.piece(now, piece, out));
                reader.exited(exit, out);
            }
        }
    }
}

impl JsonLines {
    fn new(launch: &Launch<'_>) -> Self {
        let reader = Reader {
            turn: Turn::new(launch),
            max_turns: launch.options.max_turns,
            n_calls: 0,
            message: Message::default(),
            told: BTreeSet::new(),
            has_lost_line: false,
            error: None,
            is_got_over: false,
        };
        Self { documents: Documents::default(), reader }
    }
}

impl Reader {
    fn piece(&mut self, now: Timestamp, piece: Piece<'_>, out: &mut Vec<Action>) {
        let raw = match piece {
            Piece::Document { value: Value::Object(fields), raw } => {
                match message::read(fields).filter(|_| !self.turn.has_ended()) {
                    Some((session, line)) => return self.line(now, session, line, out),
                    None => raw,
                }
            }
            Piece::Document { raw, .. } | Piece::Line(raw) => raw,
        };
        emit_unknown(self.turn.key(), Stream::Stdout, raw, out);
    }

    fn line(&mut self, now: Timestamp, session: Option<String>, line: Line, out: &mut Vec<Action>) {
        if let Some(id) = session {
            self.turn.open(id, out);
        }
        match line {
            Line::StepStart { message } => self.step_start(now, message, out),
            Line::Text(text) => self.text(text, out),
            Line::Reasoning { part, text } => {
                self.answered(out);
                let block = self.new_block(&part);
                emit(self.turn.key(), EventBody::Thinking { text, block }, out);
            }
            Line::Tool(tool) => self.tool(*tool, out),
            Line::StepFinish(finish) => self.step_finish(finish, out),
            Line::Error(error) => {
                self.error = Some(self.turn.fault(&error));
                self.is_got_over = false;
            }
            Line::Result { text } => {
                let block = self.new_block("result");
                emit(self.turn.key(), EventBody::Output { text: text.clone(), block }, out);
                self.turn.complete(text, StopReason::EndTurn, out);
            }
        }
    }

    fn step_start(&mut self, now: Timestamp, id: String, out: &mut Vec<Action>) {
        let is_same = id == self.message.id && self.message.finish.is_none();
        let failed_at = self.message.started_at.filter(|_| is_same);
        if self.message.is_broken() {
            for (block, _) in std::mem::take(&mut self.message.texts) {
                emit(self.turn.key(), EventBody::Status(Status::Retracted { block }), out);
            }
            emit(self.turn.key(), EventBody::Status(self.turn.patience.asked_again()), out);
        }
        if let Some(failed_at) = failed_at.filter(|_| !self.turn.patience.is_waiting()) {
            let message = "the connection to the model broke off".to_owned();
            self.turn.patience.failing_since(failed_at);
            self.turn.model_failed(now, message, out);
        }
        self.turn.told_to_be_tried_again(out);
        if !is_same {
            self.begin(id);
        }
        self.message.started_at = Some(now);
    }

    /// Takes note that another message is being written.
    fn begin(&mut self, id: String) {
        self.message = Message { id, ..Message::default() };
        self.has_lost_line = false;
        self.is_got_over = true;
    }

    fn text(&mut self, text: Text, out: &mut Vec<Action>) {
        self.answered(out);
        match text.origin {
            Origin::Model => {}
            // Words of the CLI to the model.
            Origin::Synthetic => return,
            Origin::Compaction => return self.compacted(out),
        }
        if text.message != self.message.id {
            self.begin(text.message);
        }
        let is_repeated = self.message.texts.last().is_some_and(|(block, before)| {
            *block == text.part && !block.is_empty() && *before == text.text
        });
        if is_repeated {
            return;
        }
        let block = self.new_block(&text.part);
        self.message.texts.push((block.clone(), text.text.clone()));
        emit(self.turn.key(), EventBody::Output { text: text.text, block }, out);
    }

    /// The last message was not an answer but the history made shorter.
    fn compacted(&mut self, out: &mut Vec<Action>) {
        let mut summary = String::new();
        for (block, text) in std::mem::take(&mut self.message.texts) {
            summary.push_str(&text);
            emit(self.turn.key(), EventBody::Status(Status::Retracted { block }), out);
        }
        emit(self.turn.key(), EventBody::Status(Status::Compacted { text: summary }), out);
    }

    fn tool(&mut self, tool: Tool, out: &mut Vec<Action>) {
        // The record of an earlier turn's call, made shorter at the end of this one.
        if tool.is_old {
            return;
        }
        self.answered(out);
        self.message.has_tools = true;
        if tool.is_rejected && self.turn.rejected.is_none() {
            self.turn.rejected = Some(tool.output().to_owned());
        }
        if !tool.part.is_empty() && !self.told.insert(format!("part {}", tool.part)) {
            return;
        }
        let call = if tool.call().is_empty() { tool.part.clone() } else { tool.call().to_owned() };
        let id = self.new_block(&call);
        tool.events(id).into_iter().for_each(|event| emit(self.turn.key(), event, out));
    }

    fn step_finish(&mut self, finish: Finish, out: &mut Vec<Action>) {
        self.n_calls = self.n_calls.saturating_add(1);
        self.turn.end.meta.insert("model_calls".to_owned(), self.n_calls.into());
        if let Some(usage) = &finish.usage {
            self.turn.spent(usage, out);
        }
        if finish.message != self.message.id {
            self.begin(finish.message);
        }
        self.message.finish = Some(finish.reason);
        if self.message.is_broken() {
            if let Some(failure) = self.turn.patience.broke_off() {
                self.stop_with(failure, StopReason::Error, out);
            }
            return;
        }
        self.turn.patience.finished();
        let goes_on = matches!(self.message.finish.as_deref(), Some("tool-calls" | "unknown"));
        if goes_on && self.max_turns.is_some_and(|max| self.n_calls >= max) {
            let message = format!("stopped after {} calls of the model", self.n_calls);
            let failure = Failure::new(FailureKind::LimitReached, message);
            self.stop_with(failure, StopReason::MaxTurns, out);
        }
    }

    fn stop_with(&mut self, failure: Failure, reason: StopReason, out: &mut Vec<Action>) {
        let text = self.message.text();
        self.turn.end.fail(failure, reason, text, out);
        out.push(Action::Stop);
    }

    fn answered(&mut self, out: &mut Vec<Action>) {
        self.turn.told_to_be_tried_again(out);
        self.turn.patience.answered();
    }

    fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        if self.turn.has_ended() {
            return;
        }
        let error = self.error.take();
        let finish = self.message.finish.take();
        let text = self.message.text();
        if !exit.is_success() {
            let failure = error.unwrap_or_else(|| self.turn.exit_fault(exit));
            return self.turn.fail(failure, text, out);
        }
        if let Some(failure) = error.filter(|_| !self.is_got_over) {
            return self.turn.fail(failure, text, out);
        }
        if self.has_lost_line {
            return self.turn.fail(Failure::unreadable(), None, out);
        }
        match (finish.as_deref(), text) {
            (Some(finish), text) => match ending(finish, self.turn.rejected.take()) {
                Ok(reason) => self.turn.complete(text.unwrap_or_default(), reason, out),
                Err(failure) => self.turn.fail(failure, text, out),
            },
            (None, Some(text)) => self.turn.complete(text, StopReason::EndTurn, out),
            (None, None) => self.turn.fail(Failure::unreadable(), None, out),
        }
    }

    /// Returns a name that no other block or tool call of the turn has.
    fn new_block(&mut self, id: &str) -> String {
        let id = if id.is_empty() { "text" } else { id };
        let mut block = id.to_owned();
        let mut n = 1;
        while !self.told.insert(block.clone()) {
            n += 1;
            block = format!("{id}-{n}");
        }
        block
    }
}
