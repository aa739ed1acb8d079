//! Reads a finished message of the model: its text, its end, its cost.

use serde_json::Value;

use super::field;
use crate::event::Usage;

/// What is kept of the newest message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) text: String,
    pub(super) ending: Ending,
}

/// How a message ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The model was done.
    Done,
    /// It waits for the results of tools.
    Tools,
    /// It reached the limit of its length.
    Length,
    /// The model refused, in these words.
    Refused(String),
    /// The request failed, in these words.
    Failed(String),
    /// Somebody stopped it.
    Aborted,
    /// The CLI's own word for anything else.
    Other(String),
}

impl Message {
    /// Reads a message; its text is gone from it afterwards.
    pub(super) fn read(message: &mut Value) -> Self {
        let text = field::content_text(&mut field::take(message, "content"));
        let said = || field::text(message, "errorMessage").unwrap_or_default().to_owned();
        let ending = match field::text(message, "stopReason") {
            Some("stop") | None => Ending::Done,
            Some("toolUse") => Ending::Tools,
            Some("length") => Ending::Length,
            Some("error") if field::text(message, "rawStopReason") == Some("refusal") => {
                Ending::Refused(said())
            }
            Some("error") => Ending::Failed(said()),
            Some("aborted") => Ending::Aborted,
            Some(word) => Ending::Other(word.to_owned()),
        };
        Self { text, ending }
    }

    /// Whether the CLI may put another message in the place of this one.
    pub(super) fn may_be_void(&self) -> bool {
        match self.ending {
            Ending::Failed(_) | Ending::Refused(_) | Ending::Length | Ending::Aborted => true,
            Ending::Done | Ending::Tools | Ending::Other(_) => false,
        }
    }
}

/// What the model calls of a turn used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    usage: Option<Usage>,
    cost_usd: f64,
}

impl Spent {
    /// Adds the figures of one call. A call that failed has zeros, which say
    /// nothing; the same is true of the price of a model whose price is unknown.
    pub(super) fn add(&mut self, record: &Value) {
        let count = |key| field::number(record, key).unwrap_or(0);
        let cached = count("cacheRead");
        let input = count("input").saturating_add(count("cacheWrite")).saturating_add(cached);
        let output = count("output");
        if input == 0 && output == 0 {
            return;
        }
        let before = self.usage.unwrap_or_default();
        let sum = |before: Option<u64>, more: u64| before.unwrap_or(0).saturating_add(more);
        self.usage = Some(Usage::of_tokens(
            sum(before.input_tokens, input),
            sum(before.output_tokens, output),
            sum(before.cached_tokens, cached),
        ));
        let cost = record.pointer("/cost/total").and_then(Value::as_f64).unwrap_or(0.0);
        if cost.is_finite() && cost > 0.0 {
            self.cost_usd += cost;
        }
    }

    /// Returns the sum, if anything is known.
    pub(super) fn usage(&self) -> Option<Usage> {
        let cost_usd = (self.cost_usd > 0.0).then(|| (self.cost_usd * 1e9).round() / 1e9);
        self.usage.map(|usage| Usage { cost_usd, ..usage })
    }
}
