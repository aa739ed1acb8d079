//! Reads what the model and its tools say: pieces, whole messages, results.

use std::{mem, time::Duration};

use serde_json::Value;

use super::{
    blocks::{BlockKind, Tell},
    field, outcome, tool,
    turn::Turn,
};
use crate::{
    agent::{
        Action,
        emit::{emit, emit_for, emit_unknown},
    },
    event::{EventBody, Status, Stream, Usage},
};

/// The model of messages that the CLI wrote itself.
const SYNTHETIC: &str = "<synthetic>";

impl Turn {
    pub(super) fn assistant(&mut self, line: &mut Value, out: &mut Vec<Action>) -> bool {
        if !line.get("message").is_some_and(Value::is_object) {
            return false;
        }
        self.open_by(line, out);
        let parent = field::take_text(line, "parent_tool_use_id");
        self.aborted |= field::is_true(line, "aborted");
        if field::is_true(line, "is_api_error_message") || field::text(line, "error").is_some() {
            self.api_error(line, parent, out);
            return true;
        }
        let Some(message) = line.get_mut("message") else {
            return false;
        };
        let id = field::take_text(message, "id").unwrap_or_default();
        let model = field::take_text(message, "model").filter(|model| model != SYNTHETIC);
        if let (Some(model), None) = (model, &parent) {
            self.before.model = Some(model);
            self.waited = Duration::ZERO;
        }
        match message.get_mut("content").map(Value::take) {
            Some(Value::Array(blocks)) => {
                for block in blocks {
                    self.content(&id, parent.as_deref(), block, out);
                }
            }
            Some(Value::String(text)) => {
                self.whole(&id, parent.as_deref(), BlockKind::Output, text, out);
            }
            Some(_) | None => {}
        }
        true
    }

    fn content(
        &mut self,
        message: &str,
        parent: Option<&str>,
        mut block: Value,
        out: &mut Vec<Action>,
    ) {
        match block.get("type").and_then(Value::as_str) {
            Some("text") => {
                let text = field::take_text(&mut block, "text").unwrap_or_default();
                self.whole(message, parent, BlockKind::Output, text, out);
            }
            Some("thinking") => {
                let text = field::take_text(&mut block, "thinking").unwrap_or_default();
                self.whole(message, parent, BlockKind::Thinking, text, out);
            }
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                let id = field::take_text(&mut block, "id").unwrap_or_default();
                let tool = field::take_text(&mut block, "name").unwrap_or_default();
                let input = field::take_first(&mut block, &["input"]);
                self.tool_use(id, tool, input, parent, out);
            }
            Some(kind) if kind.ends_with("tool_result") => {
                self.tool_result(block, None, parent, out);
            }
            // Thinking that only the provider can read.
            Some("redacted_thinking") => {}
            Some(_) | None => {
                emit_unknown(self.key, Stream::Stdout, block.to_string().as_bytes(), out);
            }
        }
    }

    pub(super) fn whole(
        &mut self,
        message: &str,
        parent: Option<&str>,
        kind: BlockKind,
        text: String,
        out: &mut Vec<Action>,
    ) {
        if parent.is_none() && kind == BlockKind::Output {
            self.before.last_text = Some(text.clone());
        }
        let tells = self.blocks.whole(message, parent, kind, text);
        self.tell(tells, parent, out);
    }

    pub(super) fn tool_use(
        &mut self,
        id: String,
        tool: String,
        input: Option<Value>,
        parent: Option<&str>,
        out: &mut Vec<Action>,
    ) {
        self.calls.insert(id.clone(), tool.clone());
        let title = tool::title(&tool, input.as_ref().unwrap_or(&Value::Null));
        let event = EventBody::ToolUse { id, tool, input, title };
        emit_for(self.key, parent, event, out);
    }

    pub(super) fn tool_result(
        &mut self,
        mut block: Value,
        details: Option<&Value>,
        parent: Option<&str>,
        out: &mut Vec<Action>,
    ) {
        let id = field::take_text(&mut block, "tool_use_id").unwrap_or_default();
        let tool = self.calls.remove(&id).unwrap_or_default();
        let result = tool::result(&mut block, details, id, tool);
        emit_for(self.key, parent, EventBody::ToolResult(result), out);
    }

    /// An error of the provider, written by the CLI as if the model had said it.
    fn api_error(&mut self, line: &mut Value, parent: Option<String>, out: &mut Vec<Action>) {
        let content = line.pointer_mut("/message/content").map(Value::take);
        let message = content.map(tool::output_text).unwrap_or_default();
        if parent.is_some() {
            // A sub-agent failed; the turn goes on.
            let event = EventBody::Status(Status::Warning { text: message });
            return emit_for(self.key, parent.as_deref(), event, out);
        }
        self.before.evidence.gather(line);
        self.before.evidence.message = message;
    }

    pub(super) fn user(&mut self, line: &mut Value, out: &mut Vec<Action>) -> bool {
        let blocks = line.pointer("/message/content").and_then(Value::as_array);
        let Some(blocks) = blocks else {
            return is_own_words(line);
        };
        let is_result = |block: &Value| field::text(block, "type") == Some("tool_result");
        let interrupted = |block: &Value| {
            field::text(block, "text").is_some_and(|text| text.starts_with("[Request interrupted"))
        };
        if blocks.iter().any(interrupted) {
            self.aborted = true;
            return true;
        }
        if !blocks.iter().any(is_result) {
            return is_own_words(line);
        }
        let parent = field::take_text(line, "parent_tool_use_id");
        let details = field::take_first(line, &["tool_use_result"]);
        let blocks = line.pointer_mut("/message/content").map(Value::take);
        if let Some(Value::Array(blocks)) = blocks {
            for block in blocks.into_iter().filter(is_result) {
                self.tool_result(block, details.as_ref(), parent.as_deref(), out);
            }
        }
        true
    }

    pub(super) fn stream_event(&mut self, line: &mut Value, out: &mut Vec<Action>) -> bool {
        let parent = line.get("parent_tool_use_id").and_then(Value::as_str);
        let parent = parent.map(str::to_owned);
        let parent = parent.as_deref();
        let Some(event) = line.get_mut("event") else {
            return false;
        };
        match event.get("type").and_then(Value::as_str) {
            Some("message_start") => {
                let id = event.pointer("/message/id").and_then(Value::as_str);
                let tells = self.blocks.start(id.unwrap_or_default(), parent);
                self.tell(tells, parent, out);
                if parent.is_none() {
                    let usage = event.pointer_mut("/message/usage").map(Value::take);
                    self.prompt = usage.unwrap_or_default();
                    self.waited = Duration::ZERO;
                }
                true
            }
            Some("content_block_start") => {
                self.delta(event, "content_block", parent, out);
                true
            }
            Some("content_block_delta") => {
                self.delta(event, "delta", parent, out);
                true
            }
            Some("message_delta") => {
                if parent.is_none() {
                    self.usage(event, out);
                }
                true
            }
            Some("message_stop") => {
                let id = line.pointer("/abandoned_blocks/api_message_id");
                if let Some(id) = id.and_then(Value::as_str) {
                    let from = line.pointer("/abandoned_blocks/from_block_index");
                    let from = from.and_then(Value::as_u64).unwrap_or(0);
                    let tells = self.blocks.abandon(id, from);
                    self.tell(tells, parent, out);
                }
                true
            }
            Some("content_block_stop" | "ping") => true,
            Some(_) | None => false,
        }
    }

    /// Reads a piece of text; pieces of tool arguments and signatures come
    /// whole later.
    fn delta(&mut self, event: &mut Value, key: &str, parent: Option<&str>, out: &mut Vec<Action>) {
        let index = field::number(event, "index").unwrap_or(0);
        let Some(piece) = event.get_mut(key) else {
            return;
        };
        let (kind, key) = match piece.get("type").and_then(Value::as_str) {
            Some("text_delta" | "text") => (BlockKind::Output, "text"),
            Some("thinking_delta" | "thinking") => (BlockKind::Thinking, "thinking"),
            Some(_) | None => return,
        };
        let text = field::take_text(piece, key).unwrap_or_default();
        let tells = self.blocks.piece(parent, index, kind, text);
        self.tell(tells, parent, out);
    }

    /// Adds up what the model calls of this turn used so far.
    fn usage(&mut self, event: &mut Value, out: &mut Vec<Action>) {
        let mut record = mem::take(&mut self.prompt);
        if let (Some(known), Some(Value::Object(newer))) =
            (record.as_object_mut(), event.get_mut("usage").map(Value::take))
        {
            known.extend(newer.into_iter().filter(|(_, value)| !value.is_null()));
        }
        let call = outcome::usage(&record);
        let add = |a: Option<u64>, b: Option<u64>| a.unwrap_or(0).saturating_add(b.unwrap_or(0));
        if call.total_tokens.is_some() {
            self.used = Usage::of_tokens(
                add(self.used.input_tokens, call.input_tokens),
                add(self.used.output_tokens, call.output_tokens),
                add(self.used.cached_tokens, call.cached_tokens),
            );
            emit(self.key, EventBody::Usage(self.used), out);
        }
    }

    /// Passes on what is new about blocks of text.
    pub(super) fn tell(
        &mut self,
        tells: impl IntoIterator<Item = Tell>,
        parent: Option<&str>,
        out: &mut Vec<Action>,
    ) {
        for tell in tells {
            let event = match tell {
                Tell::Text { kind: BlockKind::Output, block, text } => {
                    self.told |= parent.is_none();
                    EventBody::Output { text, block }
                }
                Tell::Text { kind: BlockKind::Thinking, block, text } => {
                    EventBody::Thinking { text, block }
                }
                Tell::Retract { block } => EventBody::Status(Status::Retracted { block }),
            };
            emit_for(self.key, parent, event, out);
        }
    }
}

/// Prompts that the CLI writes for the model, and those of sub-agents, which
/// their tool call already told.
fn is_own_words(line: &Value) -> bool {
    field::is_true(line, "isSynthetic")
        || field::is_true(line, "isReplay")
        || field::text(line, "parent_tool_use_id").is_some()
}
