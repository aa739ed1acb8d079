//! Times, and what is made of many of them.

use std::time::Instant;

/// How long a turn took, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) first_text: f64,
    pub(crate) total: f64,
}

/// A way to an agent, in one session.
pub(crate) trait Gateway {
    /// Runs the same small turn as all the others.
    fn turn(&mut self) -> Took;
}

/// What every turn is asked.
pub(crate) const PROMPT: &str = "hello";

/// A clock that runs while a turn does.
pub(crate) struct Clock {
    started: Instant,
    first_text: Option<f64>,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), first_text: None }
    }

    pub(crate) fn text(&mut self) {
        let now = ms(self.started);
        self.first_text.get_or_insert(now);
    }

    pub(crate) fn end(&self) -> Took {
        let total = ms(self.started);
        Took { first_text: self.first_text.unwrap_or(total), total }
    }
}

/// What a column shows of a turn.
pub(crate) type Column = fn(&Took) -> f64;

pub(crate) const FIRST_TEXT: Column = |took| took.first_text;
pub(crate) const TOTAL: Column = |took| took.total;

pub(crate) fn column(took: &[Took], column: Column) -> Vec<f64> {
    took.iter().map(column).collect()
}

pub(crate) fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}

pub(crate) fn quartiles(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let at = |quarter: usize| values[(values.len() - 1) * quarter / 4];
    format!("{:6.2} ({:.2}–{:.2})", median(values.clone()), at(1), at(3))
}
