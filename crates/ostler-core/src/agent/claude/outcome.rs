//! Turns the CLI's last word, the `result`, into the end of a turn.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{failure::Evidence, field};
use crate::{
    agent::TurnEnd,
    event::{StopReason, Usage},
    failure::{Failure, FailureKind},
    memo::Totals,
};

/// Fields that have a place of their own in the end of a turn, or that only
/// mean something inside the CLI. All others are kept in `meta`.
const CONSUMED: &[&str] = &[
    "type",
    "result",
    "errors",
    "session_id",
    "uuid",
    "is_error",
    "usage",
    "total_cost_usd",
    "stop_reason",
    "result_index",
    "queued_turn_count",
    "user_message_uuid",
    "user_message_uuids",
];

/// A line of the CLI's own diagnosis, which tells a user nothing.
const DIAGNOSIS: &str = "[ede_diagnostic]";

/// Which cost the CLI's total held already when a turn began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Counted {
    /// None: the session is new.
    #[default]
    Nothing,
    /// That of the session, as far as it is known; but versions before 2.1.325
    /// begin to count with each process.
    BySession(Option<f64>),
    /// What the same process told last.
    ByProcess(f64),
}

/// What was known before the result came.
#[derive(Clone, Debug, Default)]
pub(super) struct Before {
    /// Which cost is not this turn's.
    pub(super) counted: Counted,
    /// What the session had used.
    pub(super) totals: Option<Totals>,
    /// The model that answered last.
    pub(super) model: Option<String>,
    /// The newest text of the model, for results that do not repeat it.
    pub(super) last_text: Option<String>,
    /// What was said about an error.
    pub(super) evidence: Evidence,
    /// What the CLI told about itself at its start.
    pub(super) meta: Map<String, Value>,
}

/// Returns whether a result reports a failure. `subtype` does not tell: errors
/// of the provider come as `success`.
pub(super) fn is_error(result: &Value) -> bool {
    match result.get("is_error").and_then(Value::as_bool) {
        Some(is_error) => is_error,
        None => {
            field::text(result, "error").is_some()
                || field::text(result, "subtype").is_some_and(|word| word.starts_with("error"))
        }
    }
}

/// Returns whether a result ends a turn that nobody asked for.
pub(super) fn is_unasked(result: &Value) -> bool {
    result.get("origin").is_some_and(|origin| !origin.is_null())
}

/// Reads a result. What is taken out of `result` is gone afterwards.
pub(super) fn read(result: &mut Value, mut before: Before, now: Timestamp) -> TurnEnd {
    let failed = is_error(result);
    let usage = Usage {
        cost_usd: turn_cost(result, &before),
        ..result.get("usage").map(usage).unwrap_or_default()
    };
    let totals = totals(result, before.totals);
    let model = before.model.take().or_else(|| only_model(result));
    let answer = answer(result);
    let failure = failed.then(|| failure(result, answer.as_deref(), before.evidence, now));
    let kind = failure.as_ref().map(|failure| failure.kind);
    TurnEnd {
        stop_reason: stop_reason(result, kind),
        text: (!failed).then(|| answer.or(before.last_text).unwrap_or_default()),
        failure,
        usage,
        totals,
        model,
        meta: meta(result, before.meta),
        ..TurnEnd::default()
    }
}

/// Makes the failure that a result reports.
pub(super) fn failure(
    result: &Value,
    answer: Option<&str>,
    mut evidence: Evidence,
    now: Timestamp,
) -> Failure {
    evidence.gather(result);
    evidence.message = words(result, answer, &evidence.message);
    let failure = evidence.conclude(now);
    match failure.message.is_empty() {
        true if failure.kind == FailureKind::Cancelled => interrupted(),
        true => Failure { message: "the agent stopped without saying why".to_owned(), ..failure },
        false => failure,
    }
}

/// Reads the tokens of a usage record. The whole prompt is what was sent anew
/// and what was written to and read from the cache.
pub(super) fn usage(record: &Value) -> Usage {
    let count = |key| field::number(record, key);
    let fresh = count("input_tokens");
    let output = count("output_tokens");
    let (Some(fresh), Some(output)) = (fresh, output) else {
        return Usage::default();
    };
    let cached = count("cache_read_input_tokens").unwrap_or(0);
    let written = count("cache_creation_input_tokens").unwrap_or(0);
    let input = fresh.saturating_add(written).saturating_add(cached);
    Usage::of_tokens(input, output, cached)
}

/// Returns the cost of this turn. The total grows over the turns of a session,
/// from 2.1.325 on also over resumes; those versions number their results.
fn turn_cost(result: &Value, before: &Before) -> Option<f64> {
    if let Some(Value::Object(models)) = result.get("model_usage_since_last_result") {
        // Not `sum`, which is -0.0 for none.
        return Some(models.values().filter_map(cost_usd).fold(0.0, |a, b| a + b));
    }
    let total = result.get("total_cost_usd").and_then(Value::as_f64)?;
    let is_numbered = result.get("result_index").is_some();
    let counted = match before.counted {
        Counted::BySession(known) if is_numbered => known?,
        Counted::ByProcess(known) => known,
        Counted::Nothing | Counted::BySession(_) => return Some(total),
    };
    let cost = total - counted;
    // The difference of two sums has dust in its last digits.
    (cost > -1e-9).then(|| (cost.max(0.0) * 1e9).round() / 1e9)
}

/// Returns what the session has used in all. A failed start reports zeros,
/// which must not make the next turn look expensive.
fn totals(result: &Value, before: Option<Totals>) -> Option<Totals> {
    let cost_usd = result.get("total_cost_usd").and_then(Value::as_f64)?;
    if let Some(before) = before.filter(|before| before.cost_usd > cost_usd) {
        return Some(before);
    }
    let mut totals = Totals { cost_usd, ..Totals::default() };
    let models = result.get("modelUsage").and_then(Value::as_object);
    for model in models.into_iter().flat_map(Map::values) {
        let count = |key| field::number(model, key).unwrap_or(0);
        let add = |sum: &mut u64, key| *sum = sum.saturating_add(count(key));
        add(&mut totals.cached_tokens, "cacheReadInputTokens");
        add(&mut totals.output_tokens, "outputTokens");
        for key in ["inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens"] {
            add(&mut totals.input_tokens, key);
        }
    }
    Some(totals)
}

fn cost_usd(model: &Value) -> Option<f64> {
    model.get("costUSD").and_then(Value::as_f64)
}

/// Names the model of a result that no message came before. A session that
/// changed its model lists several, of which only those used in this process
/// have a `canonicalModel`. Of several the right one cannot be told.
fn only_model(result: &Value) -> Option<String> {
    let models = result.get("modelUsage").and_then(Value::as_object)?;
    let is_new = |usage: &Value| field::text(usage, "canonicalModel").is_some();
    let any_new = models.values().any(is_new);
    let mut names =
        models.iter().filter(|(_, usage)| is_new(usage) || !any_new).map(|(name, _)| name);
    match (names.next(), names.next()) {
        (Some(name), None) => Some(name.clone()),
        (_, _) => None,
    }
}

/// Takes the answer: `result`, or what other shapes of the line call it.
fn answer(result: &mut Value) -> Option<String> {
    let keys = ["result", "content", "text", "message", "output", "response"];
    match field::take_first(result, &keys)? {
        Value::String(text) => Some(text),
        mut record @ Value::Object(_) => {
            ["text", "content", "result"].iter().find_map(|key| field::take_text(&mut record, key))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

/// Returns the words for a failure: the answer, else the list of errors, else
/// what was said before.
fn words(result: &Value, answer: Option<&str>, before: &str) -> String {
    if let Some(answer) = answer.filter(|answer| !answer.is_empty()) {
        return answer.to_owned();
    }
    let errors = result.get("errors").and_then(Value::as_array);
    let errors: Vec<&str> = errors
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|error| !error.starts_with(DIAGNOSIS))
        .collect();
    let said = field::text(result, "error");
    match (errors.is_empty(), said) {
        (false, _) => errors.join("\n"),
        (true, Some(error)) => error.to_owned(),
        (true, None) => before.to_owned(),
    }
}

/// The failure of a turn that somebody stopped from outside.
pub(super) fn interrupted() -> Failure {
    Failure::new(FailureKind::Cancelled, "the agent was interrupted")
}

fn stop_reason(result: &Value, failed: Option<FailureKind>) -> Option<StopReason> {
    let word = field::text(result, "stop_reason");
    let terminal = field::text(result, "terminal_reason");
    match (failed, word) {
        (Some(FailureKind::Cancelled), _) => Some(StopReason::Cancelled),
        (Some(FailureKind::Refused), _) => Some(StopReason::Refusal),
        (Some(FailureKind::LimitReached), _)
            if field::text(result, "api_error") == Some("max_output_tokens") =>
        {
            Some(StopReason::MaxTokens)
        }
        (Some(FailureKind::LimitReached), _) => Some(match terminal {
            Some(word) if word != "max_turns" => StopReason::Other(word.to_owned()),
            Some(_) | None => StopReason::MaxTurns,
        }),
        (Some(_), _) => Some(StopReason::Error),
        (None, None) => None,
        (None, Some("end_turn" | "stop_sequence")) => Some(StopReason::EndTurn),
        (None, Some("max_tokens")) => Some(StopReason::MaxTokens),
        (None, Some("refusal")) => Some(StopReason::Refusal),
        (None, Some(word)) => Some(StopReason::Other(word.to_owned())),
    }
}

fn meta(result: &mut Value, mut meta: Map<String, Value>) -> Map<String, Value> {
    if let Some(fields) = result.as_object_mut() {
        let kept = std::mem::take(fields)
            .into_iter()
            .filter(|(key, value)| !CONSUMED.contains(&key.as_str()) && !value.is_null());
        meta.extend(kept);
    }
    meta
}
