//! What a run used, from the figures at its end.
//!
//! They are of this run alone, earlier turns of the session not included, in
//! two spellings: one for events, one for the single object.

use serde_json::Value;

use crate::event::Usage;

/// Reads the figures of the events: `cached` is part of the input, and thoughts
/// are in no number but the total.
pub(super) fn of_events(stats: &Value) -> Usage {
    let number = |name: &str| stats.get(name).and_then(Value::as_u64);
    usage(number("input_tokens"), number("total_tokens"), number("cached"))
}

/// Reads the figures of the single object, which are told model by model.
pub(super) fn of_object(stats: &Value) -> Usage {
    let sum = |name: &str| {
        let models = stats.get("models")?.as_object()?.values();
        let numbers =
            models.filter_map(|model| model.pointer(&format!("/tokens/{name}"))?.as_u64());
        numbers.reduce(u64::saturating_add)
    };
    usage(sum("prompt"), sum("total"), sum("cached"))
}

/// A run that failed, or was stopped by the CLI itself, reports zeros: nothing is known then.
fn usage(input: Option<u64>, total: Option<u64>, cached: Option<u64>) -> Usage {
    match (input, total) {
        (Some(input), Some(total)) if total > 0 => {
            Usage::of_tokens(input, total.saturating_sub(input), cached.unwrap_or(0))
        }
        _ => Usage::default(),
    }
}

/// Returns the model that did most of the work. A small one may have been asked
/// which model to use, and an alias may stand for any.
pub(super) fn model(stats: &Value) -> Option<String> {
    let models = stats.get("models")?.as_object()?;
    let total = |model: &Value| {
        let total = model.get("total_tokens").or_else(|| model.pointer("/tokens/total"));
        total.and_then(Value::as_u64).unwrap_or(0)
    };
    let busiest = models.iter().max_by_key(|(_, model)| total(model))?;
    (total(busiest.1) > 0).then(|| busiest.0.clone())
}
