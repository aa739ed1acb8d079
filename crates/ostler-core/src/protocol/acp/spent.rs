//! What a turn has used. Agents count in different ways: for the session, for
//! every call of the model, or not at all.

use serde_json::Value;

use crate::{event::Usage, memo::Totals};

/// Tokens, as an agent counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Whole prompts, cache included.
    input: u64,
    /// What the model wrote, reasoning included.
    output: u64,
    /// Read from a cache.
    cached: u64,
}

impl Counts {
    /// Reads the protocol's field.
    pub(super) fn read(usage: &Value) -> Option<Self> {
        let count = |name: &str| usage.get(name).and_then(Value::as_u64);
        let (input, output) = (count("inputTokens")?, count("outputTokens")?);
        let cached = count("cachedReadTokens").unwrap_or(0);
        let aside = cached.saturating_add(count("cachedWriteTokens").unwrap_or(0));
        let thought = count("thoughtTokens").unwrap_or(0);
        // Whether the cache and the thoughts are in the figures beside them is
        // not agreed upon; the total tells.
        let total = count("totalTokens").unwrap_or(0);
        let sum = input.saturating_add(output);
        let is_apart = total != sum && total == sum.saturating_add(aside).saturating_add(thought);
        let (more_in, more_out) = if is_apart { (aside, thought) } else { (0, 0) };
        let (input, output) = (input.saturating_add(more_in), output.saturating_add(more_out));
        Some(Self { input, output, cached })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
        }
    }

    /// Returns what has been added since; all of it, where something has become
    /// less and the count must have begun anew.
    fn since(self, before: Self) -> Self {
        let less = |now: u64, before: u64| now.checked_sub(before);
        match (
            less(self.input, before.input),
            less(self.output, before.output),
            less(self.cached, before.cached),
        ) {
            (Some(input), Some(output), Some(cached)) => Self { input, output, cached },
            _ => self,
        }
    }

    fn usage(self) -> Usage {
        Usage::of_tokens(self.input, self.output, self.cached)
    }
}

/// What a session has used so far, as the agent counts it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    counts: Option<Counts>,
    cost: Option<f64>,
    /// Whether something was used before that is not known.
    is_start_unknown: bool,
}

impl Tally {
    /// Goes on where a former process has stopped. Where that is not known, the
    /// first figures that are told say where to begin, and no more.
    pub(super) fn resumed(totals: Option<&Totals>) -> Self {
        let counts = totals.map(|totals| Counts {
            input: totals.input_tokens,
            output: totals.output_tokens,
            cached: totals.cached_tokens,
        });
        let cost = totals.map(|totals| totals.cost_usd);
        Self { counts, cost, is_start_unknown: totals.is_none() }
    }

    /// Returns what was used in all, where the agent counts that way.
    pub(super) fn totals(&self) -> Option<Totals> {
        if self.counts.is_none() && self.cost.is_none() {
            return None;
        }
        let counts = self.counts.unwrap_or_default();
        Some(Totals {
            input_tokens: counts.input,
            output_tokens: counts.output,
            cached_tokens: counts.cached,
            cost_usd: self.cost.unwrap_or(0.0),
        })
    }
}

/// What a turn is told to have used, while it runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spending {
    /// The sum over the calls of the model.
    calls: Option<Counts>,
    /// What the session has cost, as told last.
    cost: Option<f64>,
}

impl Spending {
    /// Adds what one call of the model used.
    pub(super) fn add_call(&mut self, counts: Counts) {
        self.calls = Some(self.calls.unwrap_or_default().plus(counts));
    }

    /// Notes what the session has cost so far.
    pub(super) fn cost_is(&mut self, cost: f64) {
        self.cost = Some(cost);
    }

    /// Returns what the turn used, and counts it in the session.
    pub(super) fn settle(&self, result: &Value, tally: &mut Tally) -> Usage {
        let told = result.get("usage").and_then(Counts::read);
        let mut usage = match (told, self.calls) {
            (Some(now), _) => {
                let start = (!tally.is_start_unknown).then(Counts::default);
                let before = tally.counts.replace(now).or(start);
                before.map_or_else(Usage::default, |before| now.since(before).usage())
            }
            (None, Some(calls)) => calls.usage(),
            (None, None) => Usage::default(),
        };
        if let Some(cost) = self.cost {
            let start = (!tally.is_start_unknown).then_some(0.0);
            let before = tally.cost.replace(cost).or(start);
            usage.cost_usd = before.map(|before| if cost >= before { cost - before } else { cost });
        }
        usage
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(input: u64, output: u64, cached: u64) -> Value {
        json!({ "usage": { "inputTokens": input, "outputTokens": output,
                           "cachedReadTokens": cached, "totalTokens": input + output } })
    }

    #[test]
    fn what_is_counted_for_the_session_is_told_for_the_turn() {
        let mut tally = Tally::default();
        let settle = |told: &Value, tally: &mut Tally| Spending::default().settle(told, tally);
        assert_eq!(settle(&told(1100, 28, 900), &mut tally), Usage::of_tokens(1100, 28, 900));
        assert_eq!(settle(&told(2200, 56, 1800), &mut tally), Usage::of_tokens(1100, 28, 900));
        assert_eq!(tally.totals().unwrap().input_tokens, 2200);
        // It has begun to count anew.
        assert_eq!(settle(&told(500, 10, 0), &mut tally), Usage::of_tokens(500, 10, 0));
        assert_eq!(settle(&json!({}), &mut tally), Usage::default());
    }

    #[test]
    fn what_a_session_used_before_that_is_not_known_is_not_told_for_a_turn() {
        let mut tally = Tally::resumed(None);
        assert_eq!(tally.totals(), None);
        let settle = |input: u64, cost: f64, tally: &mut Tally| {
            let mut spending = Spending::default();
            spending.cost_is(cost);
            spending.settle(&told(input, 28, 900), tally)
        };
        assert_eq!(settle(1100, 2.0, &mut tally), Usage::default());
        assert_eq!(tally.totals().unwrap().input_tokens, 1100);
        let usage = settle(1500, 2.5, &mut tally);
        assert_eq!(usage, Usage { cost_usd: Some(0.5), ..Usage::of_tokens(400, 0, 0) });
    }

    #[test]
    fn a_cache_that_is_counted_apart_belongs_to_the_prompt() {
        let usage = json!({ "inputTokens": 100, "outputTokens": 20, "thoughtTokens": 5,
                            "cachedReadTokens": 900, "cachedWriteTokens": 10, "totalTokens": 1035 });
        let counts = Counts::read(&usage).unwrap();
        assert_eq!(counts, Counts { input: 1010, output: 25, cached: 900 });
    }

    #[test]
    fn the_calls_of_a_turn_are_added_where_nothing_else_is_told() {
        let mut spending = Spending::default();
        let call = Counts { input: 10, output: 2, cached: 1 };
        spending.add_call(call);
        spending.add_call(call);
        spending.cost_is(0.75);
        let mut tally = Tally { cost: Some(0.5), ..Tally::default() };
        let usage = spending.settle(&json!({}), &mut tally);
        assert_eq!(usage, Usage { cost_usd: Some(0.25), ..Usage::of_tokens(20, 4, 2) });
        // What it has cost so far is counted by the agent, the tokens are not.
        assert_eq!(tally.totals(), Some(Totals { cost_usd: 0.75, ..Totals::default() }));
    }
}
