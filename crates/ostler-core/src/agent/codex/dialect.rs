//! Reads what `codex exec --json` prints: one JSON object a line.
//!
//! Only `turn.completed`, `turn.failed` and the exit end a turn. A line of
//! type `error` may be a retry notice, an item of type `error` is a warning.
//! The older one-line message of early releases is read as well.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    fault,
    item::{self, Item, Stage, Tool, content_text},
    plain::Plain,
    turn::{Turn, is_noise, retry_notice, retry_reason, totals},
};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, Launch,
        emit::{emit, emit_unknown, emit_warning},
        field::remove_text,
        patience::Patience,
    },
    event::{EventBody, Stream},
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
    turn: Turn,
    /// The last message: the answer, once the turn is complete.
    answer: Option<String>,
    /// Whether a line was too long to read since the last message.
    has_lost_line: bool,
    /// The ids of texts and tool calls that were told.
    told: BTreeSet<String>,
    /// An error that may turn out to be the end or a mere warning.
    error: Option<String>,
    last_warning: Option<String>,
    patience: Patience,
    /// How many blocks of text have had each id.
    blocks: BTreeMap<String, u32>,
}

impl Dialect for JsonLines {
    fn step(&mut self, _now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        match input {
            Input::Line { from: Stream::Stderr, bytes, .. } => {
                if !is_noise(&String::from_utf8_lossy(bytes)) {
                    emit_unknown(self.turn.key(), Stream::Stderr, bytes, out);
                }
            }
            Input::Line { from: Stream::Stdout, bytes, cut } => {
                self.has_lost_line |= cut;
                let fields = if cut { None } else { parse(bytes) };
                if !self.line(fields, out) {
                    emit_unknown(self.turn.key(), Stream::Stdout, bytes, out);
                }
            }
            Input::Cancel { .. } => out.push(Action::Stop),
            Input::Order(_) | Input::Heard(_) => {}
            Input::Timer(timer) => {
                if let Some(why) = self.patience.rang(timer).filter(|_| !self.turn.has_ended()) {
                    self.fail(fault::of_message(&why, FailureKind::Unavailable), out);
                    out.push(Action::Stop);
                }
            }
            Input::Exited(exit) => self.exited(exit, out),
        }
    }
}

fn parse(bytes: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}

impl JsonLines {
    fn new(launch: &Launch<'_>) -> Self {
        Self {
            turn: Turn::new(launch),
            answer: None,
            has_lost_line: false,
            told: BTreeSet::new(),
            error: None,
            last_warning: None,
            patience: Patience::default(),
            blocks: BTreeMap::new(),
        }
    }

    /// Takes one line; returns whether it was understood.
    fn line(&mut self, fields: Option<Map<String, Value>>, out: &mut Vec<Action>) -> bool {
        let Some(mut fields) = fields.filter(|_| !self.turn.has_ended()) else {
            return false;
        };
        let kind = remove_text(&mut fields, "type").unwrap_or_default();
        if kind != "turn.failed"
            && let Some(text) = self.error.take()
        {
            self.warn(text, out);
        }
        match kind.as_str() {
            "thread.started" => match remove_text(&mut fields, "thread_id") {
                Some(id) => self.turn.open(id, out),
                None => return false,
            },
            "turn.started" => {}
            "item.started" => return self.item(Stage::Started, fields, out),
            "item.updated" => return self.item(Stage::Updated, fields, out),
            "item.completed" => return self.item(Stage::Completed, fields, out),
            "error" => match remove_text(&mut fields, "message") {
                Some(message) => self.error(message, out),
                None => return false,
            },
            "turn.completed" => self.completed(fields, out),
            "turn.failed" => self.failed(fields, out),
            "message" => return self.older_message(fields, out),
            _ => return self.error_body(fields),
        }
        true
    }

    fn item(
        &mut self,
        stage: Stage,
        mut fields: Map<String, Value>,
        out: &mut Vec<Action>,
    ) -> bool {
        let Some(Value::Object(fields)) = fields.remove("item") else {
            return false;
        };
        let Some(item) = item::read(fields) else {
            return false;
        };
        if !matches!(item, Item::Error { .. }) {
            self.patience.progress();
        }
        match (item, stage) {
            (Item::Message { id, text }, Stage::Completed) => self.message(&id, text, out),
            (Item::Reasoning { id, text }, Stage::Completed) => {
                let block = self.new_block(&id);
                emit(self.turn.key(), EventBody::Thinking { text, block }, out);
            }
            // The whole text comes with the completed item.
            (Item::Message { .. } | Item::Reasoning { .. }, Stage::Started | Stage::Updated) => {}
            (Item::Error { message }, _) => self.warn(message, out),
            (Item::Tool(tool), stage) => return self.tool(*tool, stage, out),
        }
        true
    }

    fn message(&mut self, id: &str, text: String, out: &mut Vec<Action>) {
        let block = self.new_block(id);
        self.answer = Some(text.clone());
        self.has_lost_line = false;
        emit(self.turn.key(), EventBody::Output { text, block }, out);
    }

    fn tool(&mut self, tool: Tool, stage: Stage, out: &mut Vec<Action>) -> bool {
        let is_first = self.told.insert(tool.result.id.clone());
        let events = tool.events(stage, is_first);
        let is_understood = !events.is_empty();
        events.into_iter().for_each(|event| emit(self.turn.key(), event, out));
        is_understood
    }

    fn error(&mut self, message: String, out: &mut Vec<Action>) {
        let Some(notice) = retry_notice(&message) else {
            self.error = Some(message);
            return;
        };
        emit(self.turn.key(), EventBody::Status(notice), out);
        self.patience.notice(retry_reason(&message), out);
    }

    fn completed(&mut self, mut fields: Map<String, Value>, out: &mut Vec<Action>) {
        if self.has_lost_line {
            // What was lost may have been the answer; what came before it is not.
            self.turn.fail(Failure::unreadable(), None, out);
            return;
        }
        let usage = fields.remove("usage").unwrap_or(Value::Null);
        let totals = totals(&usage);
        self.turn.end.meta.insert("session_usage".to_owned(), usage);
        let answer = self.answer.take().unwrap_or_default();
        self.turn.complete(answer, totals, out);
    }

    fn failed(&mut self, mut fields: Map<String, Value>, out: &mut Vec<Action>) {
        let told = match fields.remove("error") {
            Some(Value::Object(mut error)) => remove_text(&mut error, "message"),
            Some(Value::String(message)) => Some(message),
            _ => None,
        };
        let before = self.error.take();
        if let (Some(told), Some(before)) = (&told, &before)
            && told != before
        {
            self.warn(before.clone(), out);
        }
        let message = told.or(before);
        let message = message.as_deref().unwrap_or("codex says that the turn failed");
        // What the CLI takes for passing it tries again first, and says so.
        let otherwise = if self.patience.is_tried() {
            FailureKind::Unavailable
        } else {
            FailureKind::InvalidRequest
        };
        self.fail(fault::of_message(message, otherwise), out);
    }

    fn older_message(&mut self, mut fields: Map<String, Value>, out: &mut Vec<Action>) -> bool {
        if fields.get("role").and_then(Value::as_str) != Some("assistant") {
            return false;
        }
        let Some(text) = fields.remove("content").and_then(content_text) else {
            return false;
        };
        if let Some(id) = remove_text(&mut fields, "session_id") {
            self.turn.open(id, out);
        }
        if !self.turn.has_ended() {
            let id = remove_text(&mut fields, "id").unwrap_or_default();
            self.message(&id, text, out);
        }
        true
    }

    /// A provider's answer on a line of its own is remembered for the exit.
    /// It is still told as a line that was not understood.
    fn error_body(&mut self, fields: Map<String, Value>) -> bool {
        if fields.contains_key("error") {
            self.error = Some(Value::Object(fields).to_string());
        }
        false
    }

    fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        if self.turn.has_ended() {
            return;
        }
        let error = self.error.take();
        match (exit.is_success(), error, self.answer.take()) {
            (true, error, Some(answer)) if !self.has_lost_line => {
                if let Some(text) = error {
                    self.warn(text, out);
                }
                self.turn.complete(answer, None, out);
            }
            (_, error, answer) => {
                self.turn.fail_with_exit(exit, error.as_deref(), answer, out);
            }
        }
    }

    fn fail(&mut self, failure: Failure, out: &mut Vec<Action>) {
        let answer = self.answer.take();
        self.turn.fail(failure, answer, out);
    }

    /// Some warnings come twice in a row.
    fn warn(&mut self, text: String, out: &mut Vec<Action>) {
        if self.last_warning.as_ref() != Some(&text) {
            self.last_warning = Some(text.clone());
            emit_warning(self.turn.key(), text, out);
        }
    }

    /// Returns a name for a block of text that no other block of the turn has.
    fn new_block(&mut self, id: &str) -> String {
        let id = if id.is_empty() { "message" } else { id };
        let n = self.blocks.entry(id.to_owned()).or_default();
        *n += 1;
        if *n == 1 { id.to_owned() } else { format!("{id}#{n}") }
    }
}
