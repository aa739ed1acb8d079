//! One line of `opencode run --format json`, out of its JSON.
//!
//! Fields that are missing or of another type than expected are empty; a line
//! of an unknown type is nothing.

use serde_json::{Map, Value};

use super::tool::Tool;
use crate::{agent::field::remove_text, event::Usage};

/// What a line says.
#[derive(Debug)]
pub(super) enum Line {
    /// The model begins to answer.
    StepStart {
        /// The message it writes.
        message: String,
    },
    /// A text is complete.
    Text(Text),
    /// A thought is complete.
    Reasoning {
        /// The CLI's id of it.
        part: String,
        /// The thought.
        text: String,
    },
    /// A tool call is over.
    Tool(Box<Tool>),
    /// The model came to an end, maybe for the time being.
    StepFinish(Finish),
    /// Something failed; the rest is inside.
    Error(Value),
    /// The whole answer of early releases.
    Result {
        /// The answer.
        text: String,
    },
}

/// A text, and who wrote it.
#[derive(Debug)]
pub(super) struct Text {
    /// The CLI's id of it.
    pub(super) part: String,
    /// The message it belongs to.
    pub(super) message: String,
    /// The text.
    pub(super) text: String,
    /// Who wrote it.
    pub(super) origin: Origin,
}

/// Who wrote a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The model.
    Model,
    /// The CLI, to make the model go on after the history was made shorter.
    Compaction,
    /// The CLI, for another reason.
    Synthetic,
}

/// How one call of the model ended.
#[derive(Debug)]
pub(super) struct Finish {
    /// The message it wrote.
    pub(super) message: String,
    /// Why it ended.
    pub(super) reason: String,
    /// What it used.
    pub(super) usage: Option<Usage>,
}

/// Reads a line; `None` when its type is not known. The session is returned
/// beside it, because every line has one.
pub(super) fn read(mut fields: Map<String, Value>) -> Option<(Option<String>, Line)> {
    let kind = remove_text(&mut fields, "type")?;
    let session =
        remove_text(&mut fields, "sessionID").or_else(|| remove_text(&mut fields, "session_id"));
    let mut part = take_object(&mut fields, "part");
    let message = remove_text(&mut part, "messageID").unwrap_or_default();
    let line = match kind.as_str() {
        "step_start" => Line::StepStart { message },
        "text" => Line::Text(Text {
            message,
            origin: origin(&part),
            text: remove_text(&mut part, "text")?,
            part: remove_text(&mut part, "id").unwrap_or_default(),
        }),
        "reasoning" => Line::Reasoning {
            text: remove_text(&mut part, "text")?,
            part: remove_text(&mut part, "id").unwrap_or_default(),
        },
        "tool_use" if part.contains_key("state") => Line::Tool(Box::new(Tool::read(part))),
        "step_finish" => Line::StepFinish(Finish {
            message,
            reason: remove_text(&mut part, "reason").unwrap_or_default(),
            usage: usage(&part),
        }),
        "error" => Line::Error(fields.remove("error")?),
        "result" => Line::Result { text: remove_text(&mut fields, "text")? },
        _ => return None,
    };
    Some((session, line))
}

fn origin(part: &Map<String, Value>) -> Origin {
    let is_continued = part
        .get("metadata")
        .is_some_and(|data| data.get("compaction_continue").and_then(Value::as_bool) == Some(true));
    if is_continued {
        Origin::Compaction
    } else if part.get("synthetic").and_then(Value::as_bool) == Some(true) {
        Origin::Synthetic
    } else {
        Origin::Model
    }
}

/// What is read from a cache is not part of the input here, and reasoning is
/// not part of the output.
pub(super) fn usage(part: &Map<String, Value>) -> Option<Usage> {
    let tokens = part.get("tokens")?;
    let number = |value: &Value, name: &str| value.get(name).and_then(Value::as_u64);
    let cache = |name: &str| tokens.get("cache").and_then(|cache| number(cache, name)).unwrap_or(0);
    let input =
        number(tokens, "input")?.saturating_add(cache("read")).saturating_add(cache("write"));
    let reasoning = number(tokens, "reasoning").unwrap_or(0);
    let output = number(tokens, "output")?.saturating_add(reasoning);
    if input == 0 && output == 0 {
        // An answer that broke off came without its figures.
        return None;
    }
    // Nothing is also what it says of a model whose price it does not know.
    let cost = part.get("cost").and_then(Value::as_f64).filter(|cost| *cost > 0.0);
    Some(Usage { cost_usd: cost, ..Usage::of_tokens(input, output, cache("read")) })
}

/// Takes an object out of an object; what is none is empty.
pub(super) fn take_object(fields: &mut Map<String, Value>, name: &str) -> Map<String, Value> {
    match fields.remove(name) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}
