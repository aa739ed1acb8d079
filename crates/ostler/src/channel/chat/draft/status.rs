//! The lines below the text of a turn that runs: which tools run and ran, what the
//! agent thinks, and whether it tries again.

use std::collections::VecDeque;

use serde_json::Value;

use super::{
    super::{Limits, markup::Markup},
    Detail, text, words,
};

/// The longest title of a tool, and the longest thought.
const TITLE: usize = 100;
/// How many tools are shown that run, and how many that are done.
const TOOLS: usize = 5;
/// How many tools are known that run: some agents never say that one is done.
const KNOWN: usize = 64;

/// What goes on in a turn, beside its text.
#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    running: Vec<Tool>,
    done: VecDeque<(Tool, String)>,
    thought: String,
    retry: Option<String>,
}

#[derive(Clone, Debug)]
struct Tool {
    id: String,
    /// Its name and what it does, as shown.
    line: String,
}

impl Status {
    /// A tool runs.
    pub(super) fn began(&mut self, event: &Value, markup: Markup) {
        let tool = Tool { id: text(event, "id").to_owned(), line: named(event, markup) };
        // Agents that tell more of a call while it is made say it again.
        match self.running.iter_mut().find(|known| known.id == tool.id) {
            Some(known) => *known = tool,
            None => self.running.push(tool),
        }
        if self.running.len() > KNOWN {
            self.running.remove(0);
        }
    }

    /// A tool is done.
    pub(super) fn ended(&mut self, event: &Value) {
        let id = text(event, "id");
        let Some(at) = self.running.iter().position(|tool| tool.id == id) else { return };
        let tool = self.running.remove(at);
        let is_error = event.get("is_error").and_then(Value::as_bool).unwrap_or_default();
        let code = event.get("exit_code").and_then(Value::as_i64).filter(|code| *code != 0);
        let how = match (is_error, code) {
            (false, None) => "ok".to_owned(),
            (true, None) => "failed".to_owned(),
            (true | false, Some(code)) => format!("failed, exit code {code}"),
        };
        self.done.push_back((tool, how));
        if self.done.len() > TOOLS {
            self.done.pop_front();
        }
    }

    /// The agent thinks.
    pub(super) fn thought(&mut self, more: &str) {
        self.thought.push_str(more);
        let surplus = self.thought.chars().count().saturating_sub(4 * TITLE);
        self.thought = self.thought.chars().skip(surplus).collect();
    }

    /// The agent tries something again.
    pub(super) fn tries_again(&mut self, event: &Value) {
        let number = |name| event.get(name).and_then(Value::as_u64);
        let attempt = match (number("attempt"), number("max")) {
            (Some(attempt), Some(max)) => format!(" {attempt} of {max}"),
            (Some(attempt), None) => format!(" {attempt}"),
            (None, _) => String::new(),
        };
        let delay = number("delay_ms").map(|delay| format!(" in {} s", delay.div_ceil(1000)));
        self.retry = Some(format!("⏳ Retry{attempt}{}", delay.unwrap_or_default()));
    }

    /// The agent says something again; returns whether that is news.
    pub(super) fn said(&mut self) -> bool {
        self.retry.take().is_some()
    }

    /// A further attempt begins.
    pub(super) fn begin_again(&mut self) {
        self.running.clear();
        self.thought.clear();
    }

    /// Tells whether there was a tool that can be shown.
    pub(super) fn has_tools(&self) -> bool {
        !self.running.is_empty() || !self.done.is_empty()
    }

    /// Returns the lines, as far as they fit into a message: the last ones matter most.
    pub(super) fn lines(&self, detail: Detail, limits: &Limits) -> Vec<String> {
        let Limits { text: most, measure, markup, .. } = *limits;
        let done = match detail {
            Detail::Quiet => return Vec::new(),
            Detail::Normal => 1,
            Detail::Verbose => TOOLS,
        };
        let mut lines = Vec::new();
        let done = self.done.iter().skip(self.done.len().saturating_sub(done));
        lines.extend(done.map(|(tool, how)| format!("🔧 {} · {how}", tool.line)));
        let running = self.running.iter().skip(self.running.len().saturating_sub(TOOLS));
        lines.extend(running.map(|tool| format!("🔧 {}", tool.line)));
        lines.extend(self.retry.clone());
        if detail == Detail::Verbose && !self.thought.trim().is_empty() {
            lines.push(format!("💭 {}", markup.as_it_is(&tail(&self.thought))));
        }
        let mut left = most;
        let mut kept = Vec::new();
        for line in lines.into_iter().rev() {
            let line = markup.aside(&line);
            let length = measure.of(&line) + 1;
            let Some(rest) = (left + 1).checked_sub(length) else { continue };
            left = rest.saturating_sub(1);
            kept.push(line);
        }
        kept.reverse();
        kept
    }
}

/// Names a tool and what it does, on one line.
fn named(event: &Value, markup: Markup) -> String {
    let tool = markup.as_it_is(&words::line(text(event, "tool"), 40));
    let title = markup.as_it_is(&words::line(text(event, "title"), TITLE));
    match (tool.is_empty(), title.is_empty() || title == tool) {
        (true, _) => title,
        (false, true) => tool,
        (false, false) => format!("{tool}: {title}"),
    }
}

/// Returns the end of a thought, on one line.
fn tail(thought: &str) -> String {
    let line = words::line(thought, usize::MAX);
    let surplus = line.chars().count().saturating_sub(TITLE);
    let end: String = line.chars().skip(surplus).collect();
    if surplus > 0 { format!("…{end}") } else { end }
}
