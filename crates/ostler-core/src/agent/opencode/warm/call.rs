//! The tool calls of a turn.

use serde_json::{Map, Value};

use super::{message::message_of, turn::LiveTurn};
use crate::agent::{Action, opencode::tool::Tool};

/// What is known of a tool call.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) title: String,
    pub(super) input: Option<Value>,
    /// Somebody has allowed it.
    pub(super) is_allowed: bool,
    /// The message that it is part of, and the provider's id of it, which is not
    /// the only one of its kind: some providers begin to count anew.
    message: String,
    call: String,
    is_over: bool,
}

impl LiveTurn {
    /// Takes the record of a tool call; `parent` is the call that it is made for.
    pub(super) fn tool(
        &mut self,
        parent: Option<&str>,
        part: Map<String, Value>,
        out: &mut Vec<Action>,
    ) {
        let status = part.get("state").and_then(|state| state.get("status"));
        let is_over = matches!(status.and_then(Value::as_str), Some("completed" | "error"));
        if status.and_then(Value::as_str) == Some("pending") {
            return;
        }
        let message = message_of(&part).to_owned();
        let mut tool = Tool::read(part);
        if tool.is_old || tool.part.is_empty() {
            return;
        }
        self.patience.answered();
        if tool.is_rejected && self.rejected.is_none() {
            self.rejected = Some(tool.output().to_owned());
        }
        let known = self.calls.entry(tool.part.clone()).or_default();
        if known.is_over {
            return;
        }
        known.is_over = is_over;
        let id = tool.part.clone();
        if self.told.insert(format!("call {id}")) {
            let input = tool.input.take();
            *known = Call {
                tool: tool.name().to_owned(),
                title: tool.title.clone(),
                input: input.clone(),
                is_allowed: false,
                message,
                call: tool.call().to_owned(),
                is_over,
            };
            let begun = tool.begun(id.clone(), input);
            self.tell(parent, begun, out);
        } else if !is_over && tool.input.is_some() && tool.input != known.input {
            // The provider gave the same id to two calls at once, and the server
            // has one record for both. Only the other one was allowed.
            known.input = tool.input.take();
            known.title = tool.title.clone();
            known.is_allowed = false;
        }
        if is_over {
            self.tell(parent, tool.ended(id), out);
        }
    }

    /// Returns the call that is meant by this message and id, and the id of its
    /// record, if that is certain and it still runs.
    pub(super) fn call(&self, message: Option<&str>, id: &str) -> Option<(&str, &Call)> {
        let is_meant =
            |call: &Call| call.call == id && message.is_none_or(|message| call.message == message);
        let mut meant = self.calls.iter().filter(|(_, call)| is_meant(call));
        let (Some((part, call)), None) = (meant.next(), meant.next()) else { return None };
        (!call.is_over).then_some((part.as_str(), call))
    }

    /// Somebody has allowed a call, by the id of its record.
    pub(super) fn allow(&mut self, part: &str) {
        if let Some(call) = self.calls.get_mut(part) {
            call.is_allowed = true;
        }
    }
}
